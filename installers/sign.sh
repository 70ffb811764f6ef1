#!/bin/sh
# Signs a release:   sh installers/sign.sh FOLDER SECRET_KEY [PUBLIC_KEY]
#
# FOLDER is what installers/package.sh made: packages, archive, bill of materials, SHA256SUMS. SECRET_KEY is a key of minisign;
# `minisign -G -p PUBLIC_KEY -s SECRET_KEY` makes both. Without PUBLIC_KEY it is installers/neuroshard.pub, and where that does not
# exist yet, minisign makes it from SECRET_KEY and asks for the password once more. The script checks that SHA256SUMS holds and
# covers all files of one version, and writes
#
#   SHA256SUMS.minisig   the signature; its trusted comment is "version:VERSION file:SHA256SUMS"
#   neuroshard.pub       the public key, to be published with the release
#
# minisign asks for the password of the key, if it has one. Users check the release with:
#
#   minisign -Vm SHA256SUMS -p neuroshard.pub && sha256sum -c SHA256SUMS
set -eu
case "${1:-}" in
  -h|--help) sed -n '2,/^set -eu/{s/^# \{0,1\}//;/^set/!p}' "$0"; exit 0 ;;
esac
[ $# = 2 ] || [ $# = 3 ] || { echo "usage: sh installers/sign.sh FOLDER SECRET_KEY [PUBLIC_KEY]; see --help" >&2; exit 64; }
fail() { echo "error: $*" >&2; exit 1; }
command -v minisign >/dev/null 2>&1 || fail "minisign is not installed: apt-get install minisign"
[ -r "$2" ] || fail "the secret key $2 can't be read"
KEY=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
PUBLIC=${3:-$(dirname "$0")/neuroshard.pub}
if [ -r "$PUBLIC" ]; then
  PUBLIC=$(cd "$(dirname "$PUBLIC")" && pwd)/$(basename "$PUBLIC")
else
  [ $# = 2 ] || fail "the public key $3 can't be read"
  PUBLIC=
fi
[ -f "$1/SHA256SUMS" ] || fail "$1 has no SHA256SUMS: make the release with sh installers/package.sh $1"
cd "$1"
sha256sum --check --strict --quiet SHA256SUMS || fail "SHA256SUMS does not hold: a file was changed after it was packed; pack again"

# name_of PATTERN: the one line of SHA256SUMS that fits it.
name_of() { sed -n 's/^[0-9a-f]\{64\} [ *]//p' SHA256SUMS | grep -x "$1" || true; }
archive=$(name_of 'neuroshard-.*-linux-.*\.tar\.gz')
[ "$(printf '%s\n' "$archive" | grep -c .)" = 1 ] || fail "SHA256SUMS must name one archive neuroshard-VERSION-linux-ARCH.tar.gz"
VERSION=${archive#neuroshard-}
VERSION=${VERSION%-linux-*}
[ -n "$(name_of "neuroshard-$VERSION\.spdx\.json")" ] || fail "SHA256SUMS does not name neuroshard-$VERSION.spdx.json: pack again"
for file in *.deb *.tar.gz *.spdx.json *.AppImage; do
  [ ! -e "$file" ] || grep -qxF "$file" <<NAMES || fail "SHA256SUMS does not cover $file: move it elsewhere, or pack again"
$(name_of '.*')
NAMES
done

rm -f SHA256SUMS.minisig
minisign -S -s "$KEY" -m SHA256SUMS -x SHA256SUMS.minisig -t "version:$VERSION file:SHA256SUMS" -c "signature of NeuroShard $VERSION" ||
  fail "minisign did not sign: is the password right, and $2 a secret key of minisign?"
if [ -n "$PUBLIC" ]; then
  cat "$PUBLIC" >neuroshard.pub.new
else
  minisign -R -s "$KEY" -p neuroshard.pub.new >/dev/null || fail "minisign can't make the public key of $2"
fi
minisign -VHm SHA256SUMS -p neuroshard.pub.new || {
  rm -f neuroshard.pub.new SHA256SUMS.minisig
  fail "the new signature does not fit the public key: are both keys of one pair?"
}
mv neuroshard.pub.new neuroshard.pub
