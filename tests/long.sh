#!/bin/sh
# Long checks, one at a time:   sh tests/long.sh NAME [ARGUMENT]      sh tests/long.sh --list      sh tests/long.sh --help
# Each writes build/long/NAME/result.json; tests/measurements.py takes rows of docs/measurements.md from there.
# The targets are in tests/long/targets_*.py, what they have in common is in tests/long/run.py.
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
if ! command -v python3 >/dev/null 2>&1; then
  . installers/debian.sh
  install_packages test
fi
exec python3 -B tests/long/main.py "$@"
