#!/bin/sh
# Packs what is built in build/release: sh installers/pack.sh FOLDER       See package.sh, which builds first.
# FOLDER gets the packages, the archive, their bill of materials (sbom.py) and SHA256SUMS, which covers exactly these.
set -eu
[ $# = 1 ] || { echo "usage: sh installers/pack.sh FOLDER" >&2; exit 64; }
umask 022  # the container of a Debian package has it in its bits
mkdir -p "$1"
OUT=$(cd "$1" && pwd)
HERE=$(cd "$(dirname "$0")" && pwd)
NEW=$OUT/.new
rm -rf "$NEW"
mkdir "$NEW"
cd "$HERE/../build/release"
for generator in DEB TGZ; do cpack -G $generator -B "$NEW"; done
rm -rf "$NEW/_CPack_Packages"
python3 -B "$HERE/sbom.py" "$NEW"
cd "$NEW"
sha256sum -- *.deb *.spdx.json *.tar.gz >SHA256SUMS
rm -f "$OUT/SHA256SUMS.minisig"  # of other sums
mv -f -- * "$OUT"
rmdir "$NEW"
