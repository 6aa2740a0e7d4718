#!/usr/bin/env bash
# Makes the environments of the conformance tests: each release of google-genai, of livekit-agents and of @google/genai,
# unmodified, in a .venv/genai/VERSION, .venv/livekit-agents/VERSION or .venv/js-genai/VERSION of its own, since they need
# other versions of the same libraries than the lab and than each other.
#
#   scripts/conformance.sh
#
# Does nothing, and needs no network, where all is there. The releases are those of requirements/genai-*.lock,
# requirements/livekit-agents-*.lock and requirements/js-genai-*. Without npm the last are left out, and it says so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly python=${PYTHON:-$PWD/.venv/bin/python}
[ -x "$(command -v "$python")" ] || { echo "conformance: no $python; make setup first" >&2 && exit 5; }

# Two of these at once would remove each other's folders: the second one waits, and finds all there.
mkdir -p .venv
exec 9>.venv/conformance.lock
flock 9

# What an environment was filled from; its scripts hold its path.
fingerprint() { { pwd && "$python" --version && cat "$1" scripts/conformance.sh; } | sha256sum; }

make_environment() {
  local lock=$1 name=${1#requirements/}
  name=${name%.lock}
  local venv=.venv/${name%-*}/${name##*-}
  [ ! -x "$venv/bin/python" ] || [ "$(cat "$venv/installed" 2>/dev/null)" != "$(fingerprint "$lock")" ] || return 0
  echo "conformance: installing $lock into $venv (half a minute to two)" >&2
  rm -rf "$venv"
  "$python" -m venv --without-pip "$venv"
  "$python" -m pip --python "$venv/bin/python" --disable-pip-version-check install --quiet --no-input -r "$lock"
  fingerprint "$lock" >"$venv/installed"
}

make_packages() {
  local from=$1 name=${1##*/}
  local folder=.venv/${name%-*}/${name##*-} wanted
  wanted=$({ pwd && npm --version && cat "$from"/package*.json scripts/conformance.sh; } | sha256sum)
  [ "$(cat "$folder/installed" 2>/dev/null)" != "$wanted" ] || return 0
  echo "conformance: installing $from into $folder" >&2
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$from"/package*.json "$folder"
  npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  echo "$wanted" >"$folder/installed"
}

made=()
if [ -x "$(command -v npm)" ]; then
  for from in requirements/js-genai-*; do
    make_packages "$from" &
    made+=($!)
  done
else
  echo "conformance: no npm here; @google/genai is left out" >&2
fi
for lock in requirements/genai-*.lock requirements/livekit-agents-*.lock; do
  make_environment "$lock" &
  made+=($!)
done
for one in "${made[@]}"; do wait "$one" || { echo "conformance: an environment could not be made, see above" >&2; exit 5; }; done
