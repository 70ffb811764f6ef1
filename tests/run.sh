#!/bin/sh
# Sets up, builds and runs all tests labelled "ci":   sh tests/run.sh [further arguments for ctest]
# Works on a bare Debian 12 as root and in a fresh clone; asks nothing. Fails when a test fails, and when one skips something that
# tests/allowed_skips.txt does not allow. The last lines are ctest's own summary.
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
. installers/debian.sh

install_packages build package test
say "Configuring and building (build/release, warnings are errors)"
mkdir -p build
cmake --preset ci -DNS_BUILD_TESTS=ON >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
cmake --build --preset ci --parallel "$(build_jobs)"
say "Running the tests"
status=0
ctest --test-dir build/release -L '^ci$' -j2 --output-on-failure --output-junit "$ROOT/build/release/tests.xml" \
  --output-log "$ROOT/build/ctest.log" "$@" || status=$?
python3 tests/check_skips.py build/release || status=1
sed -n '/ tests passed, /,$p' build/ctest.log
exit $status
