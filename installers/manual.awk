# One --help as manual page source; see manual.sh. `level` 0: the program, 1: a command called `title`.
function escaped(text) {
  gsub(/\\/, "\\e", text)
  gsub(/-/, "\\-", text)
  sub(/^\./, "\\\\\\&.", text)
  sub(/^'/, "\\\\\\&'", text)
  return text
}
function heading(text) {
  if (level == 0) return ".SH " toupper(text)
  return ".PP\n.B " escaped(text) ":"
}
BEGIN {
  if (level > 0) print ".SS \"" escaped(title) "\""
  verbatim = 0
  seen = 0
}
/^Usage: / {
  usage = substr($0, 8)
  if (level == 0) print ".SH SYNOPSIS"
  else print ".PP"
  print ".B " escaped(usage)
  if (level == 0) print ".SH DESCRIPTION\n" description
  seen = 1
  next
}
/^[A-Z].*:$/ {
  if (verbatim) { print ".fi"; verbatim = 0 }
  name = substr($0, 1, length($0) - 1)
  print heading(name)
  if (name == "Examples") { print ".nf"; verbatim = 1 }
  next
}
verbatim && NF { print escaped(substr($0, 3)); next }
verbatim { print ".fi"; verbatim = 0; next }
# "  left            right": the columns are two spaces apart.
/^ +[^ ]/ && !/^         / {
  line = $0
  sub(/^ +/, "", line)
  at = match(line, /  +/)
  print ".TP"
  if (at) {
    print ".B " escaped(substr(line, 1, at - 1))
    print escaped(substr(line, at + RLENGTH))
  } else {
    print ".B " escaped(line)
  }
  next
}
/^ / { line = $0; sub(/^ +/, "", line); print escaped(line); next }
NF {
  if (level == 0 && !seen) { description = description escaped($0) "\n"; next }
  if (gap) print ".PP"
  gap = 0
  print escaped($0)
  next
}
{ gap = 1 }
END { if (verbatim) print ".fi" }
