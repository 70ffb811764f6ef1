#!/usr/bin/env python3
"""The page of measurements, docs/measurements.md, and the result files that its rows come from.

  measurements.py RESULT…            prints the rows that result files (build/long/NAME/result.json) give
  measurements.py --update RESULT…   writes them into the page: a row of the same claim is replaced, others are added
  measurements.py --check            the page is whole: columns, verdicts, machines, commits, names of long checks and tests

A row is | claim | gate | value | n and spread | commit | machine | verdict | command |. Rows that are met or measured
stand by topic, all others in the table of what is missed, open, inconclusive or never run; --update moves a row when its
verdict changes. A result of sources that are no commit is refused, as is one that failed.
Commits are checked where the whole history is there; in a shallow clone or without history that is said and left out.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "docs/measurements.md"
COLUMNS = ["claim", "gate", "value", "n and spread", "commit", "machine", "verdict", "command"]
HEADER = "| " + " | ".join(COLUMNS) + " |"
OPEN_HEADING = "## Missed, open and never run"
OTHER_HEADING = "### Other"
SETTLED, UNSETTLED = ("met", "measured"), ("missed", "open", "inconclusive", "never run")
NONE = "–"


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []


def full_stop(cell):
    """Cells of more than four words end like a sentence."""
    return cell + "." if len(cell.split()) > 4 and cell[-1] not in ".!?" else cell


class Page:
    """The lines of the page; rows and machines are found by their tables' headers."""

    def __init__(self, text):
        self.lines = text.splitlines()

    def text(self):
        return "\n".join(self.lines) + "\n"

    def rows(self):
        """(index of the line, whether it stands among the open ones, cells) of each row of a claim."""
        inside, is_open = False, False
        for index, line in enumerate(self.lines):
            if line.startswith("## "):
                is_open = line == OPEN_HEADING
            if line == HEADER:
                inside = True
            elif not line.startswith("|"):
                inside = False
            elif inside and not re.fullmatch(r"[|\-\s:]+", line):
                yield index, is_open, cells(line)

    def machines(self):
        """Key → the cells of its row in the table of machines."""
        found, inside = {}, False
        for line in self.lines:
            row = cells(line)
            if row[:2] == ["machine", "processor"]:
                inside = True
            elif not row:
                inside = False
            elif inside and not re.fullmatch(r"[|\-\s:]+", line):
                found[row[0]] = row
        return found

    def machine(self, machine):
        """The key of a machine, which gets a row where it has none."""
        row = [machine["processor"], str(machine["cores"]), f"{machine['memory_gib']:.0f} GiB", machine["system"]]
        known = self.machines()
        for key, words in known.items():
            if words[1:] == row:
                return key
        key = f"M{len(known) + 1}"
        last = max(index for index, line in enumerate(self.lines) if cells(line)[:1] and cells(line)[0] in known)
        self.lines.insert(last + 1, "| " + " | ".join([key, *row]) + " |")
        return key

    def put(self, row):
        """Replaces the row of this claim, or adds one, in the table that its verdict belongs to."""
        row = [full_stop(cell) for cell in row[:4]] + row[4:]
        line = "| " + " | ".join(row) + " |"
        wants_open = row[6] not in SETTLED
        for index, is_open, old in self.rows():
            if old and old[0].rstrip(".") == row[0].rstrip("."):
                if is_open == wants_open:
                    self.lines[index] = line
                    return
                del self.lines[index]
                break
        self.lines.insert(self.end_of_table(OPEN_HEADING if wants_open else OTHER_HEADING), line)

    def end_of_table(self, heading):
        if heading not in self.lines:
            at = self.lines.index(OPEN_HEADING)
            self.lines[at:at] = [heading, "", HEADER, "|---" * len(COLUMNS) + "|", ""]
        at = self.lines.index(HEADER, self.lines.index(heading))
        while at < len(self.lines) and self.lines[at].startswith("|"):
            at += 1
        return at


def refusal(result):
    if result["verdict"] in ("failed", "skipped"):
        return result["verdict"]
    if result["dirty"] or not result["commit"] or result["sources_changed_meanwhile"]:
        return "made with local changes, so it stands for no commit"
    if result["kept_from_commits"]:
        return "has parts of other commits: " + " ".join(commit[:7] for commit in result["kept_from_commits"])
    return None


def result_rows(result, machine):
    for claim in result["claims"]:
        verdict = "inconclusive" if result["verdict"] == "inconclusive" else claim["verdict"]
        yield [text.replace("|", "/") for text in (
            claim["claim"], claim["gate"] or "none", claim["value"] or NONE, f"{claim['n'] or 1}; load {result['load_at_start']}",
            result["commit"][:7], machine, verdict, f"`{result['command']}`")]


def git(*words):
    try:
        return subprocess.run(["git", "-C", str(HERE), *words], capture_output=True, text=True, check=False)
    except OSError:
        return None


def missing_commits(commits):
    """Those that the history before HEAD does not have, and why nothing is said about them where that is so."""
    head = git("rev-parse", "--verify", "HEAD")
    if head is None or head.returncode != 0:
        return [], "there is no history here: commits were not checked"
    if git("rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        return [], "this is a shallow clone: commits were not checked"
    return [c for c in commits if git("merge-base", "--is-ancestor", c, "HEAD").returncode != 0], None


def long_checks():
    listed = subprocess.run([sys.executable, "-B", str(HERE / "long/main.py"), "--list"], capture_output=True, text=True, check=False)
    return {line.split()[0] for line in listed.stdout.splitlines() if line}


def ctest_names():
    """The tests that the CMakeLists.txt of tests add, with the loops around them."""
    found = set()
    for path in HERE.rglob("CMakeLists.txt"):
        loops = []
        for line in path.read_text(encoding="utf-8").splitlines():
            loop = re.match(r"\s*foreach\((\w+) ([^)]*)\)", line)
            added = re.match(r"\s*(?:ns_add_(?:ui_)?test\(|add_test\(NAME )([^\s)]+)", line)
            if loop:
                loops.append((loop.group(1), loop.group(2).split()))
            elif re.match(r"\s*endforeach", line):
                loops.pop()
            elif added:
                names = [added.group(1)]
                for variable, values in loops:
                    names = [name.replace(f"${{{variable}}}", value) for name in names for value in values]
                found.update(names)
    return found


def test_classes():
    """Class of Qt Test → its source."""
    found = {}
    for path in HERE.rglob("test_*.cpp"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^NS_(?:UI_)?TEST\((\w+)\)", text, re.MULTILINE):
            found[name] = text
    return found


def unknown_test(command, names, classes):
    """The test that a command names and nobody has; None if it names none, or one that there is."""
    words = [word for word in command.strip("`").split() if not re.match(r"[A-Z_]+=", word)]
    if words[:2] == ["ctest", "-R"]:
        return None if any(re.search(words[2], name) for name in names) else words[2]
    if re.fullmatch(r"test_\w+", words[0]):
        return None if words[0] in names else words[0]
    if re.fullmatch(r"unit_\w+|\w+_tests", words[0]) and len(words) > 1:
        if words[1] not in classes:
            return words[1]
        function = words[2].strip('"').split(":")[0] if len(words) > 2 else ""
        return None if re.search(rf"\bvoid {function}\b", classes[words[1]]) else f"{words[1]} {function}"
    return None


def check(page):
    """The faults of the page with their lines, the number of rows, and a note on commits that could not be checked."""
    wrong, seen, commits = [], {}, {}
    machines, names, tests, classes = page.machines(), long_checks(), ctest_names(), test_classes()
    rows = list(page.rows())
    if not rows or not any(is_open for _, is_open, _ in rows) or all(is_open for _, is_open, _ in rows):
        wrong.append((1, "a table of claims is missing"))
    for index, is_open, row in rows:
        number = index + 1
        if len(row) != len(COLUMNS) or not all(row):
            wrong.append((number, f"a row has {len(COLUMNS)} filled columns: {', '.join(COLUMNS)}"))
            continue
        claim, _, _, _, commit, machine, verdict, command = row
        if claim in seen:
            wrong.append((number, f"the claim stands in line {seen[claim]} as well: {claim}"))
        seen[claim] = number
        if verdict not in (UNSETTLED if is_open else SETTLED):
            wrong.append((number, f'the verdict "{verdict}" belongs to another table'))
        empty = is_open and commit == machine == NONE
        if not empty and not re.fullmatch(r"[0-9a-f]{7,40}", commit):
            wrong.append((number, f'"{commit}" is no commit'))
        if not empty and machine not in machines:
            wrong.append((number, f'the machine "{machine}" is not in the table of machines'))
        if not empty:
            commits.setdefault(commit, number)
        if not re.fullmatch(r"`[^`]+`", command):
            wrong.append((number, "the command stands in backquotes"))
        target = re.match(r"`sh tests/long\.sh (\S+?)[ `]", command)
        if target and target.group(1) not in names:
            wrong.append((number, f"tests/long.sh has no {target.group(1)}"))
        unknown = unknown_test(command, tests, classes)
        if unknown:
            wrong.append((number, f"there is no test {unknown}"))
    missing, note = missing_commits(commits)
    wrong += [(commits[commit], f"commit {commit} is not in this history") for commit in missing]
    return sorted(wrong), len(rows), note


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    parser.add_argument("results", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    if not options.check and not options.results:
        parser.error("name result files, or --check")
    page = Page(options.page.read_text(encoding="utf-8"))
    status = 0
    for path in options.results:
        result = json.loads(path.read_text())
        reason = refusal(result)
        if reason:
            print(f"{path}: left out: {reason}", file=sys.stderr)
            status = 1
            continue
        for row in result_rows(result, page.machine(result["machine"])):
            page.put(row)
            print("| " + " | ".join(row) + " |")
    if options.update:
        temporary = options.page.with_suffix(".md.part")
        temporary.write_text(page.text(), encoding="utf-8")
        os.replace(temporary, options.page)
    if options.check:
        wrong, count, note = check(page)
        for number, text in wrong:
            print(f"{options.page.name}:{number}: {text}")
        print(f"{count} rows, {len(wrong)} findings" + (f"; {note}" if note else ""))
        status = status or int(bool(wrong))
    return status


if __name__ == "__main__":
    sys.exit(main())
