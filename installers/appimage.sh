#!/bin/sh
# Makes an AppImage of the archive:   sh installers/appimage.sh FOLDER [RUNTIME]
#
# FOLDER holds neuroshard-VERSION-linux-ARCH.tar.gz, as installers/package.sh makes it. The archive is an AppDir. Writes to FOLDER
#
#   neuroshard-VERSION-ARCH.squashfs   the AppDir with its libraries (bundle.py) as a file system, the same bits for the same archive
#   neuroshard-VERSION-ARCH.AppImage   RUNTIME followed by it, if RUNTIME is given; SHA256SUMS then covers it as well
#
# RUNTIME is the file runtime-ARCH of https://github.com/AppImage/type2-runtime. It mounts the file system and starts AppRun.
# The result runs on Linux systems with glibc 2.36 or newer, when it is made on Debian 12.
set -eu
case "${1:-}" in
  -h|--help) sed -n '2,/^set -eu/{s/^# \{0,1\}//;/^set/!p}' "$0"; exit 0 ;;
esac
[ $# = 1 ] || [ $# = 2 ] || { echo "usage: sh installers/appimage.sh FOLDER [RUNTIME]; see --help" >&2; exit 64; }
fail() { echo "error: $*" >&2; exit 1; }
for tool in mksquashfs:squashfs-tools patchelf:patchelf qtpaths6:qt6-base-dev-tools; do
  command -v "${tool%:*}" >/dev/null 2>&1 || fail "${tool%:*} is not installed: apt-get install ${tool#*:}"
done
runtime=${2:-}
if [ -n "$runtime" ]; then
  [ -r "$runtime" ] || fail "the runtime $runtime can't be read"
  # "AI", 2: the mark of a runtime of type 2, at byte 8 of the program.
  [ "$(od -An -tx1 -j8 -N3 "$runtime" | tr -d ' ')" = 414902 ] || fail "$runtime is no AppImage runtime of type 2"
fi
archive=
for file in "$1"/neuroshard-*-linux-*.tar.gz; do
  [ -z "$archive" ] || fail "$1 holds more than one archive: ${archive##*/}, ${file##*/}"
  archive=$file
done
[ -e "$archive" ] || fail "$1 has no archive neuroshard-VERSION-linux-ARCH.tar.gz: make it with sh installers/package.sh $1"
name=$(basename "$archive" .tar.gz | sed 's/-linux-\([^-]*\)$/-\1/')

umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/AppDir"
tar -xzpf "$archive" -C "$work/AppDir" --strip-components=1 || fail "${archive##*/} is damaged"
for file in AppRun neuroshard.desktop neuroshard.svg; do
  [ -e "$work/AppDir/$file" ] || fail "${archive##*/} is no AppDir: $file is missing"
done
python3 -B "$(dirname "$0")/bundle.py" "$work/AppDir" || fail "the libraries could not be bundled"
# Folders, too, get the time of the commit, which the files have.
time=$(stat -c %Y "$work/AppDir/AppRun")
unset SOURCE_DATE_EPOCH
mksquashfs "$work/AppDir" "$work/image" -noappend -all-root -no-xattrs -no-progress -quiet -comp zstd -b 131072 -reproducible \
  -mkfs-time "$time" -all-time "$time" || fail "mksquashfs ended with $?"
mv "$work/image" "$1/$name.squashfs"
echo "$1/$name.squashfs"
if [ -n "$runtime" ]; then
  cat "$runtime" "$1/$name.squashfs" >"$work/whole"
  chmod 755 "$work/whole"
  mv "$work/whole" "$1/$name.AppImage"
  if [ -e "$1/SHA256SUMS" ]; then
    rm -f "$1/SHA256SUMS.minisig"  # of the sums without it
    grep -vF "  $name.AppImage" "$1/SHA256SUMS" >"$work/sums"
    (cd "$1" && sha256sum -- "$name.AppImage") >>"$work/sums"
    LC_ALL=C sort -k 2 "$work/sums" >"$1/SHA256SUMS"
  fi
  echo "$1/$name.AppImage"
fi
