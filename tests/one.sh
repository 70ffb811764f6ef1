#!/bin/sh
# Runs one test by the name that ctest knows, as ctest would:   sh tests/one.sh NAME [ARGUMENTS OF QT TEST]
#   NS_BUILD   the build folder (default: build/release)
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 1 ] || { sed -n '2,3s/^# \{0,1\}//p' "$0" >&2; exit 64; }
build=${NS_BUILD:-$ROOT/build/release}
line=$(grep -s "^$1 " "$build/tests/programs.txt") || { echo "error: $build has no test $1; build it first, or see ctest -N" >&2; exit 64; }
shift
: "${NS_BIN_DIR:=$build/bin}" "${NS_SOURCE_DIR:=$ROOT}" "${NS_SHARED_DATA:=$ROOT/../shared/data}"
export NS_BIN_DIR NS_SOURCE_DIR NS_SHARED_DATA
# shellcheck disable=SC2086 # NAME PROGRAM CLASS: a program of its own has no class
set -- $line -- "$@"
shift
program=$1; shift
class=
[ "$1" = -- ] || { class=$1; shift; }
shift
exec "$build/tests/$program" ${class:+"$class"} "$@"
