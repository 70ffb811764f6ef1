#!/usr/bin/env python3
"""Compares the skipped tests of the last ctest run with tests/allowed_skips.txt.    check_skips.py BUILD_FOLDER

Reads BUILD_FOLDER/Testing/Temporary/LastTest.log and, for tests that ctest itself calls skipped, BUILD_FOLDER/tests.xml
(ctest --output-junit). Exits 1 and says why if a test skipped something that the list does not allow, if
an entry "always" did not skip although its test ran, if an entry names a test that ctest does not know, or if a test's totals count
more skips than its output shows.
"""
import fnmatch
import pathlib
import re
import sys
from xml.etree import ElementTree

WHEN = ("always", "machine")


def entries(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 4 or fields[2] not in WHEN or not fields[3]:
            sys.exit(f"{path}:{number}: not an entry: TEST | FUNCTION | {' or '.join(WHEN)} | REASON")
        yield number, fields[0], fields[1], fields[2]


def runs(log):
    """Name and output of each test of the run."""
    for block in re.split(r"^\d+/\d+ Testing: ", log, flags=re.M)[1:]:
        yield block.split("\n", 1)[0].strip(), block


def skipped_whole(junit):
    if not junit.exists():
        return set()
    return {case.get("name") for case in ElementTree.parse(junit).iter("testcase") if case.find("skipped") is not None}


def main():
    build = pathlib.Path(sys.argv[1])
    allowed_file = pathlib.Path(__file__).with_name("allowed_skips.txt")
    allowed = list(entries(allowed_file))
    used, ran, findings, accepted = set(), set(), [], 0
    whole = skipped_whole(build / "tests.xml")
    for name, output in runs((build / "Testing/Temporary/LastTest.log").read_text(errors="replace")):
        ran.add(name)
        skips = re.findall(r"^SKIP   : \w+::(\w+)\(.*?\) ?(.*)$", output, flags=re.M)
        totals = re.search(r"^Totals: .* (\d+) skipped", output, flags=re.M)
        if totals and int(totals.group(1)) > len(skips):
            findings.append(f"{name}: {totals.group(1)} skips, {len(skips)} of them shown")
        if name in whole and not skips:
            skips = [("-", "the whole test")]
        for function, reason in skips:
            matching = [number for number, test, pattern, _ in allowed
                        if test == name and fnmatch.fnmatchcase(function, pattern)]
            used.update(matching)
            accepted += bool(matching)
            if not matching:
                findings.append(f"{name}: {function} was skipped: {reason or 'no reason given'}")
    for number, test, pattern, when in allowed:
        if when == "always" and test in ran and number not in used:
            findings.append(f"{allowed_file.name}:{number}: {test} {pattern} is not skipped any more; remove the entry")
    known = {line.split()[0] for line in (build / "tests/programs.txt").read_text().splitlines()}
    for number, test, _, _ in allowed:
        if test not in known | ran:
            findings.append(f"{allowed_file.name}:{number}: there is no test {test}")
    for finding in findings:
        print(finding)
    print(f"{len(ran)} tests, {accepted} allowed skips, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
