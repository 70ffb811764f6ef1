# Bare systems for the checks of packages: read by package_debian.sh and package_ubuntu.sh, which set STATE and PACKAGES.
# BASE is the bare system, CHROOT the copy of it that a part of the check works in, FIGURES what was measured.
BASE=$STATE/base
CHROOT=$STATE/chroot
FIGURES=$STATE/figures
XSERVER=
CORE=neuroshardd  # what a person types for the core

fail() { echo "error: $*" >&2; exit 1; }
figure() { printf '%s: %s\n' "$1" "$2" | tee -a "$FIGURES"; }
# Programs that still run inside, such as a core whose app has ended.
end_inside() {
  [ -d "$CHROOT" ] || return 0
  inner=$(readlink -f "$CHROOT")
  for process in /proc/[0-9]*; do
    [ "$(readlink "$process/root" 2>/dev/null)" != "$inner" ] || kill -9 "${process#/proc/}" 2>/dev/null || true
  done
}
leave() {
  end_inside
  for point in proc dev tmp/.X11-unix; do ! mountpoint -q "$CHROOT/$point" || umount -l "$CHROOT/$point"; done
  rm -rf --one-file-system "$CHROOT"
}
clean() {
  [ -z "$XSERVER" ] || kill "$XSERVER" 2>/dev/null || true
  leave
  rm -rf --one-file-system "$BASE"
}
# Nothing of an earlier check is left, and nothing of this one stays.
begin_check() {
  trap clean EXIT
  trap 'exit 1' INT TERM HUP
  mkdir -p "$STATE" /tmp/.X11-unix
  clean
  : >"$FIGURES"
  : >"$STATE/apt.log"
}
# A bare system of its own, with the packages in /opt.
enter() {
  leave
  cp -a "$BASE" "$CHROOT"
  mount --bind /proc "$CHROOT/proc"
  mount --bind /dev "$CHROOT/dev"
  mkdir -p "$CHROOT/opt/packages" "$CHROOT/tmp/.X11-unix"
  mount --bind /tmp/.X11-unix "$CHROOT/tmp/.X11-unix"
  cp "$PACKAGES"/* "$CHROOT/opt/packages/"
}
# After debootstrap and the choice of package sources: a person with a home.
prepare_base() {
  for conf in /etc/apt/apt.conf.d/*proxy*; do [ ! -e "$conf" ] || cp "$conf" "$BASE/etc/apt/apt.conf.d/"; done
  cp /etc/resolv.conf "$BASE/etc/resolv.conf"
  chroot "$BASE" sh -c 'apt-get -qq update && useradd --create-home --home-dir /srv/person --uid 1000 person && install -d -m 700 -o person -g person /run/person'
}
# A display for the app, outside.
start_display() {
  exec 3>"$STATE/display"
  Xvfb -displayfd 3 -screen 0 1280x800x24 -nolisten tcp >"$STATE/xvfb.log" 2>&1 &
  XSERVER=$!
  exec 3>&-
  for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s "$STATE/display" ] && break; sleep 1; done
  DISPLAY_OUTSIDE=:$(cat "$STATE/display")
  [ "$DISPLAY_OUTSIDE" != : ] || fail "Xvfb does not start; see $STATE/xvfb.log"
}
# inside COMMAND: as root; as_user COMMAND: as a person with a home.
inside() {
  chroot "$CHROOT" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C \
    DEBIAN_FRONTEND=noninteractive http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" sh -euc "$1" </dev/null
}
as_user() {
  chroot --userspec=1000:1000 "$CHROOT" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/srv/person LC_ALL=C.UTF-8 DISPLAY="${DISPLAY_OUTSIDE:-}" \
    QT_QPA_PLATFORM=xcb XDG_RUNTIME_DIR=/run/person sh -euc "cd; $1" </dev/null
}
install_apt() { inside "apt-get -q -y --no-install-recommends -o Dpkg::Use-Pty=0 install $1" >>"$STATE/apt.log" 2>&1; }
status() { as_user "$CORE status --json" 2>/dev/null || true; }
# value KEY.KEY: of the status; nothing while the node does not answer.
value() {
  status | python3 -c '
import json, sys
for line in sys.stdin:
    found = json.loads(line)
    for key in sys.argv[1].split("."):
        found = (found or {}).get(key)
    print("" if found is None else found)
    break' "$1"
}
# reach STEP SECONDS: waits until the node has made this step.
reach() {
  limit=$(($(date +%s) + $2))
  while [ "$(date +%s)" -lt "$limit" ]; do
    seen=$(value training.step)
    [ "${seen:-0}" -lt "$1" ] || return 0
    sleep 1
  done
  status >&2
  fail "no step $1 within $2 s"
}
