#!/bin/sh
# The AppImage's file system as people on Ubuntu 24.04 meet it:
#   sh tests/package_ubuntu.sh STATE_FOLDER PACKAGES
# Used by tests/long.sh ubuntu. PACKAGES holds the .squashfs. Makes a bare Ubuntu 24.04 by debootstrap under STATE_FOLDER, which is
# removed at the end. Signatures of its package archive are not checked: Debian 12 has no key of Ubuntu. The X server is outside.
set -eu
STATE=$1
PACKAGES=$2
. "$(dirname "$0")/package_system.sh"
MIRROR=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
# Every desktop has these: X11, the graphics driver's libraries, fonts.
DESKTOP="libx11-6 libxcb1 libgl1 libegl1 libopengl0 libfontconfig1 libharfbuzz0b fonts-dejavu-core dbus ca-certificates"

begin_check
# The script of an earlier Ubuntu makes a later one as well, of which this debootstrap does not know.
debootstrap --no-check-gpg --variant=minbase noble "$BASE" "$MIRROR" /usr/share/debootstrap/scripts/jammy >"$STATE/debootstrap.log" 2>&1 ||
  { tail "$STATE/debootstrap.log"; exit 1; }
echo "deb [trusted=yes] $MIRROR noble main universe" >"$BASE/etc/apt/sources.list"
prepare_base
start_display
enter
figure "system" "$(inside '. /etc/os-release; echo "$PRETTY_NAME, $(ldd --version | head -n 1)"')"
install_apt "$DESKTOP" || { tail -n 30 "$STATE/apt.log"; fail "apt can't install what a desktop has"; }
figure "MB of the file system" "$(cat "$PACKAGES"/*.squashfs | wc -c | awk '{ printf "%.0f", $1 / 1e6 }')"
unsquashfs -quiet -no-progress -dest "$CHROOT/opt/Neuro Shard" "$PACKAGES"/*.squashfs
figure "MB unpacked" "$(du -sm "$CHROOT/opt/Neuro Shard" | cut -f1)"
rm -r "$CHROOT/opt/packages"

# Each file finds its libraries, and none is taken from outside but those of the desktop.
inside 'find "/opt/Neuro Shard" -type f \( -name "*.so*" -o -path "*/bin/neuroshard*" \) -exec ldd {} \;' >"$STATE/ldd" 2>&1
! grep 'not found' "$STATE/ldd" || fail "libraries are missing"
figure "libraries taken from the system" "$(sed -n 's/^\t\(\S*\) => \/\(usr\/\)\{0,1\}lib.*/\1/p' "$STATE/ldd" | sort -u | tr '\n' ' ')"

CORE='"/opt/Neuro Shard/AppRun" neuroshardd'
as_user "$CORE wallet create && $CORE settings set contribute on --profile solo" >"$STATE/wallet.log" 2>&1 || { cat "$STATE/wallet.log"; fail "no wallet"; }
start=$(date +%s)
as_user '"/opt/Neuro Shard/AppRun" --text "/opt/Neuro Shard/share/neuroshardd/sample-text" --data-dir $HOME/.local/share/neuroshard >app.log 2>&1' &
reach 2 180
first=$(value training.loss)
reach 12 300
figure "seconds from the start of the app to step 12" "$(($(date +%s) - start))"
second=$(value training.loss)
figure "smoothed loss at steps 2 and 12" "$first $second"
awk -v a="$first" -v b="$second" 'BEGIN { exit !(b + 0 > 0 && b + 0 < a + 0) }' || fail "the loss did not fall"
DISPLAY=$DISPLAY_OUTSIDE import -window root "$STATE/app.png"
as_user '"/opt/Neuro Shard/AppRun" --quit --data-dir $HOME/.local/share/neuroshard' || fail "the app can't be asked to quit"
limit=$(($(date +%s) + 60))
while as_user "$CORE status --json" >/dev/null 2>&1; do [ "$(date +%s)" -lt "$limit" ] || fail "the core did not end"; sleep 1; done
figure "the app, on its way out" "the core ended as well"
