# Shell functions shared by quickstart.sh, tests/run.sh and tests/long.sh. POSIX sh; to be sourced with $ROOT set to the
# source tree. Nothing here asks a question or waits for one.

say() { printf '\n\033[1m==> %s\033[0m\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# packages_of SECTION: the names listed under [SECTION] in debian-packages.txt.
packages_of() {
  awk -v section="[$1]" '/^\[/ { inside = ($1 == section); next } inside && $1 !~ /^#/ && NF { print $1 }' \
    "$ROOT/installers/debian-packages.txt"
}

# missing_packages SECTION…: those of them that are not installed.
missing_packages() {
  for section in "$@"; do
    for package in $(packages_of "$section"); do
      dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || printf '%s ' "$package"
    done
  done
}

# Some packages start a server when they are installed. The tests start their own and do not require it.
keep_quiet() {
  case " $missing " in *" coturn "*) ;; *) return 0 ;; esac
  if command -v systemctl >/dev/null 2>&1; then $as_root systemctl disable --now coturn >/dev/null 2>&1 || true; fi
}

# become_root WHAT: sets $as_root, what commands of root begin with.
become_root() {
  as_root=
  [ "$(id -u)" != 0 ] || return 0
  command -v sudo >/dev/null 2>&1 || die "$1- run this script as root once, or install them and run it again"
  as_root=sudo
}

# packages_at_hand FOLDER: the packages of NeuroShard in it for this system, the newest version: the core and, if it is there,
# the app. Fails if there are none.
packages_at_hand() {
  command -v dpkg >/dev/null 2>&1 || return 1
  folder=$(cd "$1" 2>/dev/null && pwd) || return 1
  newest=$(ls "$folder"/neuroshardd_*_"$(dpkg --print-architecture)".deb 2>/dev/null | sort -V | tail -n 1)
  [ -n "$newest" ] || return 1
  echo "$newest"
  app=$folder/$(basename "$newest" | sed 's/^neuroshardd_/neuroshard_/')
  [ ! -e "$app" ] || echo "$app"
}

# as_apt ARGUMENT…: apt-get without questions, after become_root.
as_apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# update_and_install NAME_OR_FILE…: with fresh lists of packages, after become_root.
update_and_install() {
  # Mirrors drop connections now and then: four tries, a little later each time.
  for pause in 5 20 60 0; do
    if as_apt -qq update && as_apt -q -y install --no-install-recommends "$@"; then return 0; fi
    [ "$pause" != 0 ] || return 1
    echo "apt-get failed; retrying in $pause s" >&2
    sleep "$pause"
  done
}

# are_installed FILE…: the packages of all these files are installed, in the version of the file or a newer one.
are_installed() {
  for file in "$@"; do
    has=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$(dpkg-deb -f "$file" Package 2>/dev/null)" 2>/dev/null) || return 1
    case $has in "installed "*) ;; *) return 1 ;; esac
    dpkg --compare-versions "${has#installed }" ge "$(dpkg-deb -f "$file" Version)" || return 1
  done
}

# install_files FILE…: installs package files (absolute paths) with what they depend on. Where they are installed, it does
# nothing and needs neither root nor a network.
install_files() {
  if are_installed "$@"; then
    say "Installed already: $(basename -a "$@" | tr '\n' ' ')(to install these files again: apt-get install --reinstall FILE)"
    return 0
  fi
  for file in "$@"; do
    dpkg-deb --fsys-tarfile "$file" >/dev/null || die "$file is damaged: fetch it again"
  done
  become_root "packages are to be installed "
  say "Installing $(basename -a "$@" | tr '\n' ' ')"
  # The first try needs no network if all that they depend on is installed.
  as_apt -q -y install --no-install-recommends "$@" || update_and_install "$@" ||
    die "apt-get could not install the packages: check the network and the package sources, then run this script again"
}

# install_packages SECTION…: installs missing packages. Without any, it does nothing and requires no network.
install_packages() {
  command -v dpkg-query >/dev/null 2>&1 ||
    die "this script installs packages of Debian 12; on another system, install the libraries listed in installers/debian-packages.txt and build with: cmake --preset release && cmake --build --preset release"
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  become_root "these packages are missing: $missing"
  say "Installing packages: $missing"
  update_and_install $missing ||
    die "apt-get could not install: $missing- check the network and the package sources, then run this script again"
  still=$(missing_packages "$@")
  [ -z "$still" ] || die "apt-get succeeded but these packages are still missing: $still"
  keep_quiet
}

# build_jobs: number of parallel compilers. A unit that includes LibTorch takes about 1.2 GB.
build_jobs() {
  cores=$(nproc 2>/dev/null || echo 2)
  fit=$(awk '/^MemAvailable:/ { print int($2 / 1250000) }' /proc/meminfo 2>/dev/null || echo 2)
  [ "${fit:-0}" -ge 1 ] || fit=1
  if [ "$cores" -lt "$fit" ]; then echo "$cores"; else echo "$fit"; fi
}
