#!/bin/sh
# Builds the packages: sh installers/package.sh [FOLDER]      (default: build/packages)
#
#   neuroshard_VERSION_ARCH.deb     the desktop app                   (Debian, Ubuntu)
#   neuroshardd_VERSION_ARCH.deb    the core
#   neuroshard-VERSION-linux-ARCH.tar.gz   both, to be run from any folder
#   neuroshard-VERSION.spdx.json   the bill of materials: files, libraries, licences   (SPDX 2.3)
#   SHA256SUMS
#
# installers/sign.sh signs them, installers/appimage.sh makes an AppImage of the archive.
# On Debian 12 it installs what it needs. A build that is there is brought up to date.
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd)
case "${1:-}" in
  -h|--help) sed -n '2,/^set -eu/{s/^# \{0,1\}//;/^set/!p}' "$0"; exit 0 ;;
esac
[ $# -le 1 ] || { echo "error: at most one folder is allowed; see --help" >&2; exit 64; }
cd "$ROOT"
. installers/debian.sh
mkdir -p "${1:-build/packages}"
OUT=$(cd "${1:-build/packages}" && pwd)

install_packages build package
say "Building the Release programs"
cmake --preset release
cmake --build --preset release --parallel "$(build_jobs)" --target neuroshardd neuroshard_network compute_cpu neuroshard
say "Packing"
sh installers/pack.sh "$OUT"
say "Packages in $OUT"
ls -l "$OUT"
