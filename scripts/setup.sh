#!/usr/bin/env bash
# Brings this machine to the point where the lab runs: system packages (apt), a virtual environment, the project in it.
#
#   scripts/setup.sh run    what `lab demo` needs
#   scripts/setup.sh dev    the same, and what the tests, lint and types need
#
# Does nothing, and needs no network, where all is there. PYTHON=/path/to/python chooses the interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly purpose=${1:-run}
case $purpose in run | dev) ;; *) echo "usage: scripts/setup.sh run|dev" >&2 && exit 2 ;; esac

readonly venv=$PWD/.venv
for place in . .venv; do
  [ ! -e "$place" ] || [ -w "$place" ] ||
    { echo "set-up: $PWD/$place belongs to somebody else: work in a clone of your own" >&2 && exit 5; }
done
readonly stamp=$venv/installed
# An ordinary user's PATH lacks the folders in which Debian keeps network tools.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

missing=() # package and purpose, separated by a tab

say() { printf '%s\n' "$*" >&2; }
die() { say "set-up: $*" && exit 5; }

have() { command -v "$1" >/dev/null; }
# No pipe: grep -q would end ldconfig by SIGPIPE now and then, and pipefail would call the library missing.
has_library() { grep -q "^[[:space:]]*$1\.so" <<<"$(ldconfig -p)"; }
has_headers() { printf '#include <stdio.h>\n' | gcc -E - >/dev/null 2>&1; }
is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
has_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

# Remember a package and why, unless the command after both succeeds.
need() {
  local entry=$1$'\t'$2
  shift 2
  "$@" || missing+=("$entry")
}

# The first interpreter that really starts (a version manager's shim may not) and is new enough.
find_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
    if have "$candidate" && is_new_enough "$candidate"; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    fi
    # An interpreter that was asked for by name is used or refused, never replaced.
    [ "$candidate" = "${PYTHON:-}" ] && return 1
  done
  return 1
}

# Debian's own interpreter keeps venv in a package of its own; others bring it along.
venv_package() { "$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'; }

install_packages() {
  [ ${#missing[@]} -gt 0 ] || return 0
  say "set-up: these system packages are missing:"
  local packages=() entry
  for entry in "${missing[@]}"; do
    packages+=("${entry%%$'\t'*}")
    say "$(printf '  %-16s %s' "${entry%%$'\t'*}" "${entry#*$'\t'}")"
  done
  have apt-get || die "there is no apt-get here: install what these packages hold by your system's own means."
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    have sudo || die "neither root nor sudo: ask your administrator for: apt-get install ${packages[*]}"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120)
  say "set-up: installing them with ${as_root[*]:+sudo }apt-get"
  "${apt[@]}" update >&2 || say "set-up: apt-get update failed; trying with the package lists as they are."
  "${apt[@]}" install -y --no-install-recommends "${packages[@]}" >&2 ||
    die "apt-get could not install them (see above); the command was: apt-get install ${packages[*]}"
  missing=()
}

# What the virtual environment was filled from; anything else than this means to fill it again.
fingerprint() { sha256sum pyproject.toml requirements/build.lock "requirements/$1.lock" scripts/setup.sh | sha256sum; }

# Its scripts hold its path, so a copied or moved folder needs a new one; so does another choice of Python.
is_usable_venv() {
  [ "$(cat "$venv/made-in" 2>/dev/null)" = "$venv" ] && is_new_enough "$venv/bin/python" || return 1
  [ -z "${PYTHON:-}" ] || [ "$("$PYTHON" --version 2>&1)" = "$("$venv/bin/python" --version)" ]
}

is_installed() {
  is_usable_venv && [ -x "$venv/bin/lab" ] && [ -f "$stamp" ] || return 1
  # The development environment holds all that a run needs.
  [ "$(cat "$stamp")" = "$(fingerprint dev)" ] && return
  [ "$purpose" = run ] && [ "$(cat "$stamp")" = "$(fingerprint run)" ]
}

install_project() {
  local python=$1 pip=("$venv/bin/python" -m pip --disable-pip-version-check install --quiet --no-input)
  if ! is_usable_venv; then
    say "set-up: making .venv with $("$python" --version) ($python)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    echo "$venv" >"$venv/made-in"
  fi
  say "set-up: installing requirements/$purpose.lock and the lab into .venv (about a minute)"
  rm -f "$stamp"
  "${pip[@]}" -r requirements/build.lock
  "${pip[@]}" --no-build-isolation --use-pep517 -r "requirements/$purpose.lock"
  "${pip[@]}" --no-build-isolation --no-deps --editable .
  fingerprint "$purpose" >"$stamp"
  say "set-up: done; the lab is .venv/bin/lab"
}

need iptables "the libraries and matches that python-iptables loads" has_library libip4tc
need libpcap0.8 "compiles the capture's kernel filter for scapy" has_library libpcap
need libnftables1 "rules, where a kernel lacks the legacy tables" has_library libnftables
if [ "$purpose" = dev ]; then
  need iproute2 "the tests compare with ip, ss and nstat" have ss
  need nftables "the tests look at the nftables rules with nft" have nft
  need ethtool "the benchmarks hold the lab against a script that uses it" have ethtool
  need curl "the requests that the documents show are tested with it" have curl
  need nodejs "a test drives the lab from another language" have node
  need tshark "the tests compare the lab's reading of captures with tshark's" have tshark
fi

if is_installed; then
  install_packages
  exit
fi

need gcc "compiles python-iptables, which is published as source" have gcc
need libc6-dev "headers for the same" has_headers
python=$(find_python) || python=
if [ -z "$python" ]; then
  [ -z "${PYTHON:-}" ] || die "PYTHON=$PYTHON does not start or is older than 3.11."
  # From Debian 12 and Ubuntu 24.04 on, the system's python3 is new enough.
  missing+=("python3"$'\t'"Python 3.11 or newer" "python3-venv"$'\t'"the virtual environment")
else
  need "$(venv_package "$python")" "the virtual environment" has_venv "$python"
fi
install_packages
python=$(find_python) ||
  die "Python 3.11 or newer is needed, and $(python3 --version 2>&1) is what python3 gives: install one, then PYTHON=/path/to/it make setup"
has_venv "$python" || die "$python has no working venv: choose another with PYTHON=/path/to/python make setup"
install_project "$python"
