#!/usr/bin/env bash
# Makes the environments of the conformance tests: each release of google-genai, unmodified, in a .venv/genai/VERSION of
# its own, since they need other versions of the same libraries than the lab and than each other.
#
#   scripts/conformance.sh
#
# Does nothing, and needs no network, where all is there. The releases are those of requirements/genai-*.lock.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly python=${PYTHON:-$PWD/.venv/bin/python}
[ -x "$(command -v "$python")" ] || { echo "conformance: no $python; make setup first" >&2 && exit 5; }

# What an environment was filled from; its scripts hold its path.
fingerprint() { { pwd && "$python" --version && cat "$1" scripts/conformance.sh; } | sha256sum; }

make_environment() {
  local lock=$1 version=${1#requirements/genai-}
  local venv=.venv/genai/${version%.lock}
  [ ! -x "$venv/bin/python" ] || [ "$(cat "$venv/installed" 2>/dev/null)" != "$(fingerprint "$lock")" ] || return 0
  echo "conformance: installing $lock into $venv (about half a minute)" >&2
  rm -rf "$venv"
  "$python" -m venv --without-pip "$venv"
  "$python" -m pip --python "$venv/bin/python" --disable-pip-version-check install --quiet --no-input -r "$lock"
  fingerprint "$lock" >"$venv/installed"
}

made=()
for lock in requirements/genai-*.lock; do
  make_environment "$lock" &
  made+=($!)
done
for one in "${made[@]}"; do wait "$one" || { echo "conformance: an environment could not be made, see above" >&2; exit 5; }; done
