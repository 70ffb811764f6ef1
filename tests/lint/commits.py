#!/usr/bin/env python3
"""Commit subjects read as "area: imperative subject", 72 characters at most.    commits.py [ROOT]

Checks the commits after START that lead to HEAD. In a shallow clone that does not hold START it checks the commits
that are there. It says how many it checked. Exit status: 0 all right, 1 findings, 77 no history here.
"""
import os
import re
import subprocess
import sys

START = "09e49f9396a77449e5a52894faad0eed4fa28cfe"
LENGTH = 72
SUBJECT = re.compile(r"^[a-z][a-z0-9_.+-]*(?:(?:, |/| )[a-z0-9][a-z0-9_.+-]*){0,3}: \S")
# The first word of an imperative is none of these.
NOT_IMPERATIVE = re.compile(r"^(?!(?:bring|string|ring|ping|embed|feed|seed|shed|need|speed|bleed|proceed|exceed|wed|fed)$)\w{2,}(?:ing|ed)$", re.IGNORECASE)


def fault(subject, parents=1):
    """The fault of a subject, or None."""
    if parents > 1 and subject.startswith("Merge "):
        return None
    if len(subject) > LENGTH:
        return f"{len(subject)} characters; {LENGTH} at most"
    if not SUBJECT.match(subject):
        return 'begins with no area; write "area: imperative subject"'
    text = subject.split(": ", 1)[1]
    if NOT_IMPERATIVE.match(text.split()[0]):
        return f'"{text.split()[0]}" is no imperative'
    if text.endswith("."):
        return "ends with a full stop"
    return None


def git(root, *words):
    try:
        return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, errors="replace", check=False)
    except OSError:
        return None


def main():
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../.."))
    top = git(root, "rev-parse", "--show-toplevel", "--verify", "HEAD")
    if top is None or top.returncode != 0 or os.path.realpath(top.stdout.splitlines()[0]) != os.path.realpath(root):
        print("no history here, so no commit was checked: " + ((top.stderr.strip() or "another repository") if top else "git is missing"))
        return 77
    known = git(root, "cat-file", "-e", START + "^{commit}").returncode == 0
    shallow = git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == "true"
    if not known and not shallow:
        print(f"{START[:7]} is not in this history, though it is not a shallow clone")
        return 1
    listed = git(root, "log", "--format=%h%x09%P%x09%s", START + "..HEAD" if known else "HEAD")
    if listed.returncode != 0:
        print(listed.stderr.strip())
        return 1
    commits = [line.split("\t", 2) for line in listed.stdout.splitlines()]
    findings = 0
    for short, parents, subject in commits:
        wrong = fault(subject, len(parents.split()))
        if wrong:
            findings += 1
            print(f"{short}: commit: {wrong}: {subject}")
    print(f"{len(commits)} commits{'' if known else ' of a shallow clone'}, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
