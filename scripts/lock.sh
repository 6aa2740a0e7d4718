#!/usr/bin/env bash
# Resolves requirements/*.lock anew. Resolve with the oldest supported Python: what it needs, newer ones can do without.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

.venv/bin/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
  echo "lock: .venv must be made with Python 3.11: make clean && PYTHON=python3.11 make setup" >&2
  exit 2
}
export CUSTOM_COMPILE_COMMAND="make lock"
compile() {
  .venv/bin/python -m piptools compile --quiet --upgrade --strip-extras --allow-unsafe --annotation-style line \
    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options "$@"
}
compile -o requirements/build.lock requirements/build.in
compile -c requirements/build.lock -o requirements/run.lock pyproject.toml
compile -c requirements/build.lock -c requirements/run.lock --extra dev -o requirements/dev.lock pyproject.toml
compile -c requirements/build.lock -c requirements/run.lock -o requirements/image.lock requirements/image.in
for release in requirements/genai-*.in requirements/livekit-agents-*.in; do
  compile -o "${release%.in}.lock" "$release"
done
