#!/bin/sh
# Installs or builds NeuroShard and trains a first model, in one command:
#
#   sh installers/quickstart.sh [TEXT_FOLDER]
#
# If packages of NeuroShard (neuroshardd_*.deb, neuroshard_*.deb) are in the folder of this clone, it installs them. Else, on
# Debian 12, it installs missing packages and builds the Release programs into build/release/bin. Both as root, or through sudo.
# Then it creates a wallet, gathers English text from Debian's documentation packages (or uses TEXT_FOLDER), and trains the profile
# "solo". With a display, it trains in the window of the desktop app; without one, in the terminal, with a progress line, a
# checkpoint and a sample of text at the end. Run it again to continue.
#
#   NEUROSHARD_DATA_DIR   directory with all data    (default: ${XDG_DATA_HOME:-~/.local/share}/neuroshard)
#   QUICKSTART_STEPS      training steps of this run in the terminal (default: 100)
#   QUICKSTART_TERMINAL   1 = train in the terminal even if there is a display
#   QUICKSTART_PROGRAMS   a folder with the programs; then the script installs and builds no program
#   QUICKSTART_PACKAGES   the folder to look for packages in (default: that of this clone); "none" = build
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd)
case "${1:-}" in
  -h|--help) sed -n '2,/^set -eu/{s/^# \{0,1\}//;/^set/!p}' "$0"; exit 0 ;;
  -*) echo "error: unknown option $1; see --help" >&2; exit 64 ;;
esac
[ $# -le 1 ] || { echo "error: at most one text folder is allowed; see --help" >&2; exit 64; }
TEXT=
if [ $# = 1 ]; then
  [ -e "$1" ] || { echo "error: $1 not found; give a folder of text files" >&2; exit 66; }
  TEXT=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
fi
cd "$ROOT"
. installers/debian.sh

DATA=${NEUROSHARD_DATA_DIR:-${XDG_DATA_HOME:-${HOME:-/var/lib}/.local/share}/neuroshard}
STEPS=${QUICKSTART_STEPS:-100}
CORPUS=$DATA-corpus
PROGRAMS=${QUICKSTART_PROGRAMS:-$ROOT/build/release/bin}
NODE=$PROGRAMS/neuroshardd

# gather_corpus FOLDER: plain English text of the documentation packages, as .txt files.
gather_corpus() {
  rm -rf "$1.new"
  mkdir -p "$1.new"
  PATH=$PATH:/usr/games bible -l 72 gen1:1-rev22:21 </dev/null >"$1.new/bible-kjv.txt"
  for text in /usr/share/debian-reference/debian-reference.en.txt.gz /usr/share/developers-reference/developers-reference.txt.gz \
              /usr/share/doc/jargon-text/jargon.txt.gz; do
    # Minimal systems lack /usr/share/doc. The other text is then enough.
    [ ! -e "$text" ] || gzip -dc "$text" >"$1.new/$(basename "$text" .gz)"
  done
  # Tutorials, questions and answers, essays: the manuals that are prose. All text together fills one shard of the training
  # data, so that every batch is drawn from all of it.
  for name in perlfaq perlfaq1 perlfaq2 perlfaq3 perlfaq4 perlfaq5 perlfaq6 perlfaq7 perlfaq8 perlfaq9 perlglossary perlintro \
              perlrequick perlretut perlreftut perlootut perlopentut perlpacktut perlthrtut perlunitut perldebtut perlhacktut \
              perlhack perlhacktips perlport perlperf perlsec perlsecpolicy perlpolicy perlgov perlgit perldocstyle perlstyle \
              perlmodstyle perlnewmod perlcommunity perlsource; do
    for manual in /usr/share/perl/5.*/pod/"$name.pod"; do
      [ ! -e "$manual" ] || pod2text "$manual" >"$1.new/$name.txt" 2>/dev/null
    done
  done
  mv "$1.new" "$1"
}

packages=
if [ -z "${QUICKSTART_PROGRAMS:-}" ] && [ "${QUICKSTART_PACKAGES:-}" != none ]; then
  packages=$(packages_at_hand "${QUICKSTART_PACKAGES:-$ROOT}") || packages=
fi
if [ -n "$packages" ]; then
  # One path a line; paths may hold spaces.
  IFS='
'
  install_files $packages
  unset IFS
  PROGRAMS=/usr/bin
  NODE=$PROGRAMS/neuroshardd
elif [ -z "${QUICKSTART_PROGRAMS:-}" ]; then
  install_packages build
fi
if [ -z "$TEXT" ] && [ ! -d "$CORPUS" ]; then install_packages corpus; fi

wants_window() { [ "${QUICKSTART_TERMINAL:-0}" != 1 ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; }

# build: builds the programs. It includes the window if a display exists and the app is part of this build.
build() {
  say "Building the Release programs (build/release/bin)"
  mkdir -p build
  # On the system that CI uses, warnings are errors in both commands, so that they share every object file.
  strict=OFF
  if [ "$(. /etc/os-release 2>/dev/null && echo "$ID $VERSION_ID")" = "debian 12" ]; then strict=ON; fi
  tests=OFF
  if grep -qs '^NS_BUILD_TESTS:BOOL=ON' build/release/CMakeCache.txt; then tests=ON; fi
  cmake --preset release -DNS_WERROR=$strict -DNS_BUILD_TESTS=$tests >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
  targets="neuroshardd compute_cpu"
  if wants_window && cmake --build --preset release --target help | grep -q '^neuroshard:'; then targets="$targets neuroshard"; fi
  cmake --build --preset release --parallel "$(build_jobs)" --target $targets
}

[ -n "${QUICKSTART_PROGRAMS:-}$packages" ] || build
window=no
if wants_window && [ -x "$PROGRAMS/neuroshard" ]; then window=yes; fi

if [ ! -e "$DATA/wallet.keystore" ]; then
  say "Creating a wallet (in $DATA)"
  "$NODE" wallet create --data-dir "$DATA"
fi
if [ -z "$TEXT" ]; then
  if [ ! -d "$CORPUS" ]; then
    say "Gathering English text from Debian's documentation ($CORPUS)"
    gather_corpus "$CORPUS"
  fi
  TEXT=$CORPUS
  echo "$(ls "$TEXT" | wc -l) files, $(du -sm "$TEXT" | cut -f1) MB of text in $TEXT"
fi

if [ $window = yes ]; then
  say "Opening the window; Quit in its menu saves a checkpoint and stops"
  "$NODE" settings set contribute on --data-dir "$DATA" --profile solo >/dev/null
  if "$PROGRAMS/neuroshard" --data-dir "$DATA" --text "$TEXT"; then
    printf '\nRun the same command again to continue. Data: %s   App: %s\n' "$DATA" "$PROGRAMS/neuroshard"
    exit 0
  fi
  echo "The window could not be opened; training continues here." >&2
fi

say "Training $STEPS steps (Ctrl-C stops cleanly; run this command again to continue)"
status=0
"$NODE" train --text "$TEXT" --data-dir "$DATA" --profile solo --steps "$STEPS" || status=$?
if [ $status = 130 ]; then
  echo "Stopped. All work is in the checkpoint; run the same command again to continue."
  exit 130
fi
[ $status = 0 ] || exit $status

say "Checkpoints"
"$NODE" checkpoint list --data-dir "$DATA"
say "A sample of the model's text after this short training"
"$NODE" generate --data-dir "$DATA" --prompt "In the beginning" --max-tokens 60 --seed 1
printf '\n\nRun the same command again to continue. Data: %s   Program: %s --help\n' "$DATA" "$NODE"
