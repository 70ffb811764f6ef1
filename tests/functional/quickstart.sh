#!/bin/sh
# The README's first command as a person runs it, in the terminal, with a small text and a data folder of its own:
#   quickstart.sh SOURCE_TREE FOLDER_OF_PROGRAMS
# Two runs: the first makes a wallet and trains two steps, the second goes on from its checkpoint.
set -eu
SOURCE=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/text"
# Prose that is in the repository, with other words in each copy.
for copy in one two three four five six seven eight; do
  sed "s/License/$copy License/g; s/Work/Work $copy/g" "$SOURCE/LICENSE" >"$folder/text/$copy.txt"
done

run() {
  NEUROSHARD_DATA_DIR=$folder/data QUICKSTART_STEPS=$1 QUICKSTART_TERMINAL=1 QUICKSTART_PROGRAMS=$2 \
    sh "$SOURCE/installers/quickstart.sh" "$folder/text" </dev/null >"$folder/output" 2>&1 ||
    { cat "$folder/output"; echo "quickstart.sh failed"; exit 1; }
}
# expect TEXT: it stands in the output of the last run.
expect() { grep -qF -- "$1" "$folder/output" || { cat "$folder/output"; echo "not in the output: $1"; exit 1; }; }
# trained STEP: the newest checkpoint is of this step.
trained() {
  "$NODE" checkpoint list --json --data-dir "$folder/data" >"$folder/list"
  head -n 1 "$folder/list" | grep -q "\"step\": *$1[,}]" || { cat "$folder/list"; echo "no checkpoint of step $1"; exit 1; }
}

NODE=$2/neuroshardd
run 2 "$2"
expect "Creating a wallet (in $folder/data)"
expect "Training 2 steps"
expect "A sample of the model's text"
trained 2
run 1 "$2"
trained 3

# fake NAME LINES: a program of the test's own, in the folder $fakes.
fake() {
  mkdir -p "$fakes"
  printf '#!/bin/sh\n%s\n' "$2" >"$fakes/$1"
  chmod +x "$fakes/$1"
}

# With a display the window opens. Without one, without the app, or where the window fails, training runs in the terminal.
fakes=$folder/window-bin
fake neuroshardd "echo \"core \$*\" >>'$folder/calls'"
fake neuroshard "echo \"app \$*\" >>'$folder/calls'; test ! -e '$folder/no-window'"
mkdir "$folder/window"
touch "$folder/window/wallet.keystore"
# calls DISPLAY WAYLAND_DISPLAY QUICKSTART_TERMINAL LIST: the quickstart calls these programs, each with this first word.
calls() {
  : >"$folder/calls"
  DISPLAY=$1 WAYLAND_DISPLAY=$2 QUICKSTART_TERMINAL=$3 NEUROSHARD_DATA_DIR=$folder/window QUICKSTART_STEPS=1 QUICKSTART_PROGRAMS=$fakes \
    sh "$SOURCE/installers/quickstart.sh" "$folder/text" </dev/null >"$folder/output" 2>&1 ||
    { cat "$folder/output"; echo "quickstart.sh failed"; exit 1; }
  found=$(cut -d ' ' -f 1,2 "$folder/calls" | tr '\n' ',')
  [ "$found" = "$4" ] || { cat "$folder/output" "$folder/calls"; echo "called: '$found' instead of '$4'"; exit 1; }
}
# called WORDS: one of the calls was exactly this.
called() { grep -qxF -- "$1" "$folder/calls" || { cat "$folder/calls"; echo "not called: $1"; exit 1; }; }
in_window='core settings,app --data-dir,'
in_terminal='core train,core checkpoint,core generate,'
for display in ':9 ' ' wayland-9'; do
  calls "${display% *}" "${display#* }" 0 "$in_window"
  expect "Opening the window"
  called "core settings set contribute on --data-dir $folder/window --profile solo"
  called "app --data-dir $folder/window --text $folder/text"
done
calls '' '' 0 "$in_terminal"
called "core train --text $folder/text --data-dir $folder/window --profile solo --steps 1"
calls :9 '' 1 "$in_terminal"
touch "$folder/no-window"
calls :9 '' 0 "$in_window$in_terminal"
expect "The window could not be opened; training continues here."
rm "$fakes/neuroshard"
calls :9 '' 0 "$in_terminal"

# Packages at hand: the newest version, the app with the core of the same version, and none of another architecture.
ROOT=$SOURCE
. "$SOURCE/installers/debian.sh"
at_hand() {
  found=$(packages_at_hand "$folder/packages" | tr '\n' ' ') || true
  wanted=
  for name in "$@"; do wanted="$wanted$folder/packages/$name "; done
  [ "$found" = "$wanted" ] || { echo "packages at hand: '$found' instead of '$wanted'"; exit 1; }
}
architecture=$(dpkg --print-architecture)
mkdir "$folder/packages"
touch "$folder/packages/neuroshardd_9.0.0-1_other.deb"
at_hand
touch "$folder/packages/neuroshardd_0.10.0-1_$architecture.deb" "$folder/packages/neuroshardd_0.9.0-1_$architecture.deb" \
  "$folder/packages/neuroshard_0.9.0-1_$architecture.deb"
at_hand "neuroshardd_0.10.0-1_$architecture.deb"
touch "$folder/packages/neuroshard_0.10.0-1_$architecture.deb"
at_hand "neuroshardd_0.10.0-1_$architecture.deb" "neuroshard_0.10.0-1_$architecture.deb"

# Package files: with fresh lists where the present ones do not do, and not again. Programs of the test's own stand in for apt.
mkdir -p "$folder/tree/DEBIAN"
chmod 755 "$folder/tree/DEBIAN"
fakes=$folder/apt-bin
fake sudo 'exec "$@"'
fake sleep :
fake apt-get "echo \"\$*\" >>'$folder/apt'; case \" \$* \" in *' update '*) >'$folder/fresh' ;; *) test -e '$folder/fresh' ;; esac"
fake dpkg-query "test -e '$folder/version' && cat '$folder/version'"
printf '%s\n' 'Package: neuroshardd' 'Version: 0.10.0-1' 'Architecture: all' 'Maintainer: Test <test@neuroshard.example>' \
  'Description: test' >"$folder/tree/DEBIAN/control"
dpkg-deb -Znone --root-owner-group --build "$folder/tree" "$folder/own.deb" >/dev/null
# installs FILE STATUS CALLS: install_files ends so, after so many calls of apt-get.
installs() {
  : >"$folder/apt"
  status=0
  (PATH="$folder/apt-bin:$PATH"; install_files "$1") >"$folder/output" 2>&1 || status=$?
  [ "$status $(grep -c . "$folder/apt")" = "$2 $3" ] ||
    { cat "$folder/output" "$folder/apt"; echo "installing $1: status $status"; exit 1; }
}
installs "$folder/own.deb" 0 3
for version in 0.9.0-1 0.10.0~rc1-1; do
  echo "installed $version" >"$folder/version"
  installs "$folder/own.deb" 0 1
done
for version in 0.10.0-1 0.11.0-1; do
  echo "installed $version" >"$folder/version"
  installs "$folder/own.deb" 0 0
done
echo "config-files 0.10.0-1" >"$folder/version"
installs "$folder/own.deb" 0 1
head -c 100 "$folder/own.deb" >"$folder/cut.deb"
installs "$folder/cut.deb" 1 0
expect "$folder/cut.deb is damaged"
