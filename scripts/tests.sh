#!/usr/bin/env bash
# Runs pytest; a few tests that fail beside others are run once more, alone.
#
#   scripts/tests.sh ARGUMENTS OF PYTEST
#
# Many tests here hold real time against the kernel's own, and a machine that is busy with something else can disturb
# one of two thousand. What fails alone too has failed. What passes alone was disturbed, and is named: a finding about
# that test. More than a few failures are never disturbance, nor is a row of the study: what a busy machine did to its
# sessions makes them INVALID, and those were run again and listed by the study itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly study=lab/experiments/test_live_study.py
readonly pytest=(.venv/bin/python -m pytest -o "cache_dir=$PWD/.pytest_cache") few=3

code=0
"${pytest[@]}" --cache-clear "$@" || code=$?
[ $code -eq 1 ] || exit $code

failed=$(.venv/bin/python - <<'PYTHON'
import json, pathlib
path = pathlib.Path(".pytest_cache/v/cache/lastfailed")
print(*(json.loads(path.read_text()) if path.exists() else {}), sep="\n")
PYTHON
)
count=$(grep -c . <<<"$failed" || true)
[ "$count" -gt 0 ] && [ "$count" -le $few ] || exit $code
! grep -q "^$study::" <<<"$failed" || exit $code

printf '\n==> These failed beside others. Alone, once more; what passes now was DISTURBED:\n%s\n' "$failed"
exec "${pytest[@]}" "$@" -n 0 --last-failed --last-failed-no-failures none
