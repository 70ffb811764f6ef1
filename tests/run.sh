#!/bin/sh
# Sets up, builds and runs all tests labelled "ci":   sh tests/run.sh [further arguments for ctest]
# Works on a bare Debian 12 as root and in a fresh clone; asks nothing. The last lines are ctest's own summary.
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
. installers/debian.sh

install_packages build test
say "Configuring and building (build/release, warnings are errors)"
mkdir -p build
cmake --preset ci -DNS_BUILD_TESTS=ON >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
cmake --build --preset ci --parallel "$(build_jobs)"
say "Running the tests"
exec ctest --test-dir build/release -L '^ci$' -j2 --output-on-failure "$@"
