#!/bin/sh
# The packages as people meet them, in bare systems:
#   sh tests/package_debian.sh STATE_FOLDER PACKAGES NEWER_PACKAGES SOURCE_TREE
# Used by tests/long.sh package. Makes a bare Debian 12 by debootstrap under STATE_FOLDER and works in copies of it, which are
# removed at the end. The machine's package sources and proxy settings are copied in. The X server is outside.
set -eu
STATE=$1
PACKAGES=$2
NEWER=$3
SOURCE=$4
. "$(dirname "$0")/package_system.sh"

begin_check
debootstrap --variant=minbase bookworm "$BASE" >"$STATE/debootstrap.log" 2>&1 || { tail "$STATE/debootstrap.log"; exit 1; }
rm -f "$BASE/etc/apt/sources.list"
cp /etc/apt/sources.list.d/debian.sources "$BASE/etc/apt/sources.list.d/" 2>/dev/null || cp /etc/apt/sources.list "$BASE/etc/apt/"
prepare_base

start_display

# ---- Damaged packages are refused ------------------------------------------------------------------------------------------
enter
for file in "$CHROOT"/opt/packages/neuroshardd_*.deb; do package=$file; done
size=$(stat -c %s "$package")
head -c $((size / 2)) "$package" >"$CHROOT/opt/truncated.deb"
cp "$package" "$CHROOT/opt/damaged.deb"
printf 'damage' | dd of="$CHROOT/opt/damaged.deb" bs=1 seek=$((size / 2)) conv=notrunc status=none
for kind in truncated damaged; do
  if inside "dpkg --install --force-depends /opt/$kind.deb" >"$STATE/$kind.log" 2>&1; then fail "a $kind package was installed"; fi
  grep -q 'error' "$STATE/$kind.log" || fail "no error was named for a $kind package"
  [ ! -e "$CHROOT/usr/bin/neuroshardd" ] || fail "a $kind package left its program"
  if inside "cd /opt/packages && cp /opt/$kind.deb ${package##*/} && sha256sum --check --strict --quiet SHA256SUMS" >"$STATE/$kind-sum.log" 2>&1
  then fail "the sum of a $kind package holds"; fi
  figure "$kind package" "refused: $(grep -m 1 error "$STATE/$kind.log")"
done

# ---- Install, train, upgrade, remove, purge ------------------------------------------------------------------------------------
enter
inside 'find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /srv -o -path /run/person \) -prune -o -print | sort' >"$STATE/before"
used=$(du -sxm "$CHROOT" | cut -f1)
start=$(date +%s)
install_apt '/opt/packages/*.deb' || { tail -n 30 "$STATE/apt.log"; fail "apt can't install the packages"; }
figure "seconds to install" "$(($(date +%s) - start))"
figure "MB with all dependencies" "$(($(du -sxm "$CHROOT" | cut -f1) - used))"
figure "MB of the two packages" "$(cat "$PACKAGES"/*.deb | wc -c | awk '{ printf "%.1f", $1 / 1e6 }')"
inside 'ldd /usr/bin/neuroshard /usr/bin/neuroshardd /usr/lib/neuroshard/*.so' | grep 'not found' && fail "libraries are missing"
old=$(inside "dpkg-query -W -f '\${Version}' neuroshardd")

# The services where they are installed.
install_apt systemd || { tail -n 30 "$STATE/apt.log"; fail "apt can't install systemd"; }
for kind in system user; do
  inside "XDG_RUNTIME_DIR=/run SYSTEMD_LOG_LEVEL=warning systemd-analyze --$kind --man=no verify /usr/lib/systemd/$kind/neuroshardd.service" \
    >"$STATE/verify-$kind.log" 2>&1 || { cat "$STATE/verify-$kind.log"; fail "systemd-analyze verify of the $kind service"; }
  ! grep -i neuroshard "$STATE/verify-$kind.log" || fail "systemd-analyze verify of the $kind service has findings"
done
figure "systemd-analyze verify" "no finding in the system and the user service"

# The wallet and the consent of the assistant, whose pages have a test of their own. Then the app as after it.
as_user 'neuroshardd wallet create && neuroshardd settings set contribute on --profile solo' >"$STATE/wallet.log" 2>&1
start=$(date +%s)
as_user 'neuroshard --text /usr/share/neuroshardd/sample-text --data-dir $HOME/.local/share/neuroshard >app.log 2>&1' &
reach 2 180
figure "seconds from the start of the app to step 2" "$(($(date +%s) - start))"
first=$(value training.loss)
reach 12 300
figure "seconds from the start of the app to step 12" "$(($(date +%s) - start))"
second=$(value training.loss)
figure "smoothed loss at steps 2 and 12" "$first $second"
awk -v a="$first" -v b="$second" 'BEGIN { exit !(b + 0 > 0 && b + 0 < a + 0) }' || fail "the loss did not fall"

pid=$(value pid)
at=$(value training.step)
wallet=$(value wallet_id)
mkdir "$CHROOT/opt/newer"
cp "$NEWER"/*.deb "$CHROOT/opt/newer/"
install_apt '/opt/newer/*.deb' || { tail -n 30 "$STATE/apt.log"; fail "apt can't upgrade"; }
new=$(inside "dpkg-query -W -f '\${Version}' neuroshardd")
[ "$old" != "$new" ] || fail "the newer package has the same version"
# Restarted: the process is the same, its program is the new file.
limit=$(($(date +%s) + 120))
inode=$(stat -Lc %i "$CHROOT/usr/bin/neuroshardd")
until [ "$(stat -Lc %i "/proc/$pid/exe" 2>/dev/null)" = "$inode" ]; do
  [ "$(date +%s)" -lt "$limit" ] || fail "the core does not go on as the new program"
  sleep 1
done
reach $((at + 2)) 300
[ "$(value pid)" = "$pid" ] || fail "the core is another process"
[ "$(value wallet_id)" = "$wallet" ] || fail "another wallet"
figure "upgrade while it trained" "$old to $new, step $at, then $(value training.step), same process and wallet"

as_user 'neuroshard --quit --data-dir $HOME/.local/share/neuroshard' || fail "the app can't be asked to quit"
limit=$(($(date +%s) + 60))
while [ -d "/proc/$pid" ]; do [ "$(date +%s)" -lt "$limit" ] || fail "the core did not end"; sleep 1; done
inside 'apt-get -q -y -o Dpkg::Use-Pty=0 remove neuroshard neuroshardd' >>"$STATE/apt.log" 2>&1
inside 'test ! -e /usr/bin/neuroshard && test ! -e /usr/bin/neuroshardd && test ! -e /usr/lib/neuroshard'
inside 'dpkg --purge neuroshard neuroshardd && apt-get -q -y -o Dpkg::Use-Pty=0 autoremove --purge' >>"$STATE/apt.log" 2>&1
[ -e "$CHROOT/srv/person/.local/share/neuroshard/wallet.keystore" ] || fail "the wallet is gone"
inside 'find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /srv -o -path /run/person \) -prune -o -print | sort' >"$STATE/after"
comm -13 "$STATE/before" "$STATE/after" | grep -i neuroshard | grep -v '^/opt/' >"$STATE/left" || true
[ ! -s "$STATE/left" ] || { cat "$STATE/left"; fail "the purge left files"; }
figure "after purge" "no file of the packages; the user's data stays"

# ---- The portable archive ----------------------------------------------------------------------------------------------------
enter
inside 'mkdir /opt/portable && tar -xzf /opt/packages/*.tar.gz -C /opt/portable --strip-components=1'
command=$(sed -n 's/^ *\(apt-get install .*\)/\1/p' "$CHROOT/opt/portable/README.txt")
[ -n "$command" ] || fail "README.txt names no command"
inside "DEBIAN_FRONTEND=noninteractive $(echo "$command" | sed 's/install/-q -y install/')" >>"$STATE/apt.log" 2>&1 || { tail "$STATE/apt.log"; fail "$command"; }
as_user 'cp -a /opt/portable "Neuro Shard" && "Neuro Shard/bin/neuroshard" --version &&
  "Neuro Shard/bin/neuroshardd" train --text "Neuro Shard/share/neuroshardd/sample-text" --steps 3' >"$STATE/portable.log" 2>&1 ||
  { tail "$STATE/portable.log"; fail "the portable archive does not train"; }
as_user '"Neuro Shard/bin/neuroshard" >portable.log 2>&1 & app=$!; sleep 5; kill -0 $app && "Neuro Shard/bin/neuroshard" --quit; wait $app' ||
  fail "the app of the portable archive does not start"
figure "portable archive" "trains in a folder with a space in its name, with the packages that its README names"

# ---- The README's command with packages at hand --------------------------------------------------------------------------------
enter
mkdir -p "$CHROOT/opt/clone/text"
cp -R "$SOURCE/installers" "$CHROOT/opt/clone/"
cp "$PACKAGES"/neuroshard*_*.deb "$CHROOT/opt/clone/"
cp "$SOURCE/resources/sample-text/richard-iii.txt" "$CHROOT/opt/clone/text/"
inside 'cd /opt/clone && QUICKSTART_STEPS=3 sh installers/quickstart.sh text' >"$STATE/quickstart.log" 2>&1 ||
  { tail "$STATE/quickstart.log"; fail "the quickstart with packages at hand"; }
inside 'dpkg-query -W neuroshard neuroshardd && test ! -e /opt/clone/build && /usr/bin/neuroshardd checkpoint list' >>"$STATE/quickstart.log" 2>&1 ||
  { tail "$STATE/quickstart.log"; fail "the quickstart did not install the packages"; }
figure "quickstart with packages at hand" "installs them and trains"

# ---- piuparts ------------------------------------------------------------------------------------------------------------------
leave
mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\(http[^ ]*\).*/\2/p' "$BASE"/etc/apt/sources.list "$BASE"/etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
# The upgrade is tested above: this tool knows only versions that a package archive has.
piuparts --existing-chroot "$BASE" --keep-sources-list --mirror "$mirror main" --distribution bookworm --no-upgrade-test \
  --log-file "$STATE/piuparts.log" "$PACKAGES"/*.deb >/dev/null 2>&1 || { grep -E 'FAIL|ERROR' -A 20 "$STATE/piuparts.log" | tail -n 60; fail "piuparts; see $STATE/piuparts.log"; }
grep -q 'PASS: All tests' "$STATE/piuparts.log" || { tail "$STATE/piuparts.log"; fail "piuparts did not pass"; }
figure "piuparts" "no finding: installed and purged together"
