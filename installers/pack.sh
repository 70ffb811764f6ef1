#!/bin/sh
# Packs what is built in build/release: sh installers/pack.sh FOLDER       See package.sh, which builds first.
set -eu
[ $# = 1 ] || { echo "usage: sh installers/pack.sh FOLDER" >&2; exit 64; }
umask 022  # the container of a Debian package has it in its bits
mkdir -p "$1"
OUT=$(cd "$1" && pwd)
cd "$(dirname "$0")/../build/release"
for generator in DEB TGZ; do cpack -G $generator -B "$OUT"; done
cd "$OUT"
rm -rf _CPack_Packages
sha256sum -- *.deb *.tar.gz >SHA256SUMS
