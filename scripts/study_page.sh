#!/usr/bin/env bash
# Runs the whole study and puts its page and figures into docs/; `make study` calls it.
#
#   scripts/study_page.sh LAB [OPTION of lab live study ...]
#
# The page is written where all sessions could prove themselves, also where one is not as modelled: that is what it says then.
# The exit code is the command's.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly NOT_AS_MODELLED=1
readonly lab=$1
shift

out=runs/$(date +%Y%m%d-%H%M%S)-study

"$lab" live study --out "$out" "$@"
code=$?
if [ "$code" -gt "$NOT_AS_MODELLED" ]; then
  echo "study: docs/ stays as it was (exit code $code)" >&2
  exit "$code"
fi
mkdir -p docs/figures
cp "$out"/figures/*.svg docs/figures/
cp "$out/FINDINGS.md" docs/findings.md
echo "study: docs/findings.md is written"
exit "$code"
