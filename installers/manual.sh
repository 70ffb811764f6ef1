#!/bin/sh
# Prints the manual page of a program of this project, made from its --help and that of its commands:
#   sh installers/manual.sh PROGRAM
set -eu
export LC_ALL=C
program=$1
name=$(basename "$program")
HERE=$(cd "$(dirname "$0")" && pwd)
version=$("$program" --version | sed 's/.* //')

# The layout of --help: headings at the margin with a colon at the end, rows of two columns, everything else is prose.
# Above `level` 0 (the program itself) headings are those of a part of the page.
page() {
  awk -v level="$1" -v title="$2" -f "$HERE/manual.awk"
}
commands_of() { awk '/^Commands:$/ { inside = 1; next } /^$/ { inside = 0 } inside && /^  [a-z]/ { print $1 }'; }

# walk COMMAND…: the page of a command, then those of the commands below.
walk() {
  "$program" "$@" --help | awk '/^Global options:$/ { skip = 1; next } /^[A-Z]/ { skip = 0 } !skip' | page 1 "$*"
  for command in $("$program" "$@" --help | commands_of); do walk "$@" "$command"; done
}

summary=$("$program" --help | sed 's/-/\\-/g; s/\.$//; q')
case $summary in *": "*) summary=${summary#*: } ;; esac
printf '.\\" Made from "%s --help".\n.TH %s 1 "" "%s %s" "User commands"\n' "$name" "$(echo "$name" | tr a-z A-Z)" "$name" "$version"
printf '.SH NAME\n%s \\- %s\n' "$name" "$summary"
"$program" --help | page 0 "$name"
commands=$("$program" --help | commands_of)
if [ -n "$commands" ]; then
  printf '.SH COMMANDS IN DETAIL\n'
  for command in $commands; do walk "$command"; done
fi
