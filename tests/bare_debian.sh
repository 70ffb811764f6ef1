#!/bin/sh
# Both commands of the README, as written, in a bare Debian 12:   sh tests/bare_debian.sh STATE_FOLDER SOURCE_TREE
# Used by tests/long.sh bare-debian. The system is made by debootstrap under STATE_FOLDER and removed at the end; the
# machine's package sources, certificates and proxy settings are copied in, the tree is what git has committed.
set -eu
STATE=$1
SOURCE=$2
CHROOT=$STATE/chroot
TIMINGS=$STATE/timings

clean() {
  for point in proc dev; do ! mountpoint -q "$CHROOT/$point" || umount -l "$CHROOT/$point"; done
  rm -rf --one-file-system "$CHROOT"
}
inside() {
  chroot "$CHROOT" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
    http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" sh -c "$1" </dev/null
}
# timed NAME COMMAND: runs inside, keeps the output, notes the seconds.
timed() {
  start=$(date +%s)
  status=0
  inside "$2" >"$STATE/$1.log" 2>&1 || status=$?
  printf '%s: %s s, exit %s\n' "$1" "$(($(date +%s) - start))" "$status" >>"$TIMINGS"
  tail -n 25 "$STATE/$1.log"
  [ "$status" = 0 ] || { echo "error: $1 failed with $status; output in $STATE/$1.log" >&2; exit 1; }
}

trap clean EXIT
trap 'exit 1' INT TERM HUP
clean
: >"$TIMINGS"
debootstrap --variant=minbase bookworm "$CHROOT" >"$STATE/debootstrap.log" 2>&1 || { tail "$STATE/debootstrap.log"; exit 1; }
rm -f "$CHROOT/etc/apt/sources.list"
cp /etc/apt/sources.list.d/debian.sources "$CHROOT/etc/apt/sources.list.d/" 2>/dev/null || cp /etc/apt/sources.list "$CHROOT/etc/apt/"
for conf in /etc/apt/apt.conf.d/*proxy*; do [ ! -e "$conf" ] || cp "$conf" "$CHROOT/etc/apt/apt.conf.d/"; done
cp /etc/resolv.conf "$CHROOT/etc/resolv.conf"
mount --bind /proc "$CHROOT/proc"
mount --bind /dev "$CHROOT/dev"
mkdir -p "$CHROOT/opt/neuroshard"
git -C "$SOURCE" archive HEAD | tar -x -C "$CHROOT/opt/neuroshard"
timed quickstart 'cd /opt/neuroshard && sh installers/quickstart.sh'
timed quickstart-again 'cd /opt/neuroshard && QUICKSTART_STEPS=10 sh installers/quickstart.sh'
timed tests 'cd /opt/neuroshard && sh tests/run.sh'
