#!/usr/bin/env python3
"""Model checking of the chain's agreement: agreement.pml with Spin (docs/protocol/safety.md).

  check.py              the configurations of the ci tests, half a minute of one core and 200 MB
  check.py --full       all of them: some minutes and 1 GB
  check.py NAME…        these
  check.py --trace NAME the shortest counterexample, step by step
  check.py --table …    as rows of Markdown

Prints for each configuration the number of states and the verdict, and exits 1 when one is not the expected verdict.
Verdicts: holds (every reachable state was visited), agreement (two certificates of one height), progress (honest voters
that are a stall quorum and hear each other reach no decision).
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MODEL = "agreement.pml"
LIMIT_MIB = 2000
DEPTH = 20000

EQUAL_4 = "H=3 WB=1"
EQUAL_5 = "H=4 WB=1"
EQUAL_6 = "H=5 WB=1"
WEIGHTED_4 = "H=3 W0=2 W1=2 W2=1 WB=1"  # two wallets with a node each, one with two: units 12, 12, 6, 6
CRASHES_3 = "H=3 WB=0"
OVER_QUARTER = "H=4 W0=2 W1=2 W2=2 W3=2 WB=3"  # 3/11: above a quarter, below 7/24
OVER_7_24 = "H=2 W0=13 W1=11 WB=11"  # 11/35: above 7/24, below a third
HALF = "SN=1 SD=2"
HOLDS, AGREEMENT, PROGRESS = "holds", "agreement", "progress"


class Configuration:
    def __init__(self, name, text, defines, expected, full=False):
        self.name, self.text, self.expected, self.full = name, text, expected, full
        self.defines = ["-D" + word for word in defines.split()]


def stepwise(name, text, defines, expected):
    return Configuration(name, text, "LOCKSTEP " + defines, expected)


def extensive(name, text, defines, expected):
    return Configuration(name, text, defines, expected, full=True)


CONFIGURATIONS = [
    # The rules as they are.
    stepwise("equal-4", "4 voters, 1 Byzantine", EQUAL_4 + " PROGRESS", HOLDS),
    stepwise("equal-5", "5 voters, 1 Byzantine", EQUAL_5 + " PROGRESS", HOLDS),
    stepwise("equal-6", "6 voters, 1 Byzantine: stall quorum 4, full quorum 5", EQUAL_6, HOLDS),
    stepwise("weighted-4", "4 voters of 2, 2, 1, 1 units, one of the latter Byzantine", WEIGHTED_4 + " PROGRESS", HOLDS),
    stepwise("crashes-3", "3 voters, none Byzantine: stall quorum 2, full quorum 3", CRASHES_3 + " PROGRESS", HOLDS),
    stepwise("invited-5", "5 voters, none Byzantine, stall quorum more than half", f"H=5 WB=0 {HALF} PROGRESS", HOLDS),
    stepwise("heights-4", "2 heights, 4 voters; the Byzantine one is made dormant", EQUAL_4 + " HEIGHTS=2 MARKS_BYZANTINE PROGRESS", HOLDS),
    stepwise("heights-5", "2 heights, 5 voters, 1 Byzantine; an honest one is made dormant", EQUAL_5 + " HEIGHTS=2 PROGRESS", HOLDS),
    # Beyond the assumptions.
    stepwise("heights-4-honest", "2 heights, 4 voters, 1 Byzantine; an honest one is made dormant, so a third is Byzantine",
             EQUAL_4 + " HEIGHTS=2", AGREEMENT),
    stepwise("heights-4-full", "heights-4-honest without the stall rule", EQUAL_4 + " HEIGHTS=2 SN=0", HOLDS),
    stepwise("heights-4-seen", "heights-4-honest; stall quorum: half of the active units and an eighth of all", EQUAL_4 + " HEIGHTS=2 SEEN_UNITS", HOLDS),
    stepwise("invited-5-byzantine", "5 voters, 1 Byzantine, stall quorum more than half", f"{EQUAL_5} {HALF}", AGREEMENT),
    stepwise("over-quarter", "3 of 11 units Byzantine", OVER_QUARTER, AGREEMENT),
    stepwise("over-quarter-calm", "over-quarter; no honest voter is in a stall", OVER_QUARTER + " NOBODY_STALLED", HOLDS),
    stepwise("over-7-24-calm", "11 of 35 units Byzantine; no honest voter is in a stall", OVER_7_24 + " NOBODY_STALLED", AGREEMENT),
    stepwise("over-7-24-full", "over-7-24-calm; certificates of full quorums only", OVER_7_24 + " SN=0", HOLDS),
    stepwise("any-at-stall", "any block passes with the stall quorum", WEIGHTED_4 + " ANY_AT_STALL", HOLDS),
    # Planted bugs.
    stepwise("no-locks", "a voter prepares a block though it has a lock of another one", EQUAL_4 + " NO_LOCKS", AGREEMENT),
    stepwise("old-unlock", "a voter exchanges its lock for an older one", EQUAL_4 + " OLD_UNLOCK", AGREEMENT),
    stepwise("one-vote", "a quorum of prepares is a certificate", EQUAL_4 + " ONE_VOTE", AGREEMENT),
    stepwise("amnesia", "one voter restarts without its votes", EQUAL_4 + " AMNESIA", AGREEMENT),
    stepwise("presence-over-lock", "a presence block passes though a voter has a lock of another block", EQUAL_4 + " PRESENCE_OVER_LOCK", AGREEMENT),
    stepwise("no-stall-lock", "a lock of arbitrary content does not pass with the stall quorum", WEIGHTED_4 + " PROGRESS NO_STALL_LOCK", PROGRESS),
    stepwise("arbitrary-first", "an older lock of arbitrary content goes before a newer presence lock",
             WEIGHTED_4 + " PROGRESS ARBITRARY_LOCKS_FIRST", PROGRESS),
    stepwise("silence-binds-locks", "a voter refuses even a lock, if it makes a voter dormant that it has heard",
             EQUAL_4 + " PROGRESS SILENCE_BINDS_LOCKS", PROGRESS),
    stepwise("late-locks-bind", "a voter takes the lock of an earlier view in the middle of a view", EQUAL_4 + " PROGRESS LATE_LOCKS_BIND", PROGRESS),
    stepwise("first-quorum", "a leader proposes at the first quorum of NewViews, without one of the honest voters",
             EQUAL_4 + " PROGRESS FIRST_QUORUM", PROGRESS),
    # Voters in different views, all votes kept; more voters.
    extensive("free-4", "equal-4, each voter changes views by itself", EQUAL_4, HOLDS),
    extensive("free-weighted-4", "weighted-4, each voter changes views by itself", WEIGHTED_4, HOLDS),
    extensive("free-5", "equal-5 with two blocks, each voter changes views by itself", EQUAL_5 + " NX=1 NB=2", HOLDS),
    extensive("free-heights-4", "heights-4, each voter changes views by itself", EQUAL_4 + " HEIGHTS=2 MARKS_BYZANTINE", HOLDS),
    extensive("equal-6-progress", "equal-6 with progress", "LOCKSTEP PROGRESS " + EQUAL_6, HOLDS),
    extensive("equal-8", "8 voters, 2 Byzantine: stall quorum and full quorum 6", "LOCKSTEP H=6 WB=2", HOLDS),
    extensive("equal-9", "9 voters, 2 Byzantine: stall quorum 6, full quorum 7", "LOCKSTEP H=7 WB=2", HOLDS),
]


class Incomplete(Exception):
    """Spin, the compiler or the search did not finish; the text says why."""


def call(folder, command, limit=None):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit, check=False)
    return done.returncode, done.stdout + done.stderr


def compile_model(folder, configuration, *options):
    shutil.copy(HERE / MODEL, folder)
    for command in (["spin", *configuration.defines, "-a", MODEL],
                    ["gcc", "-O2" if configuration.full else "-O1", "-w", "-DSAFETY", "-DNOREDUCE", "-DNOFAIR", f"-DMEMLIM={LIMIT_MIB}", *options, "-o", "pan", "pan.c"]):
        status, output = call(folder, command)
        if status or not (folder / "pan.c").exists():
            raise Incomplete(f"{command[0]}: {output}")


def verdict_of(output):
    """(verdict, states) of a verifier's report."""
    states = re.search(r"^ *(\d+) states, stored", output, re.MULTILINE)
    violated = re.search(r"assertion violated \((.*)\) \(at depth", output)
    if violated:
        verdict = AGREEMENT if "certified" in violated.group(1) else PROGRESS
    elif re.search(r"errors: 0$", output, re.MULTILINE) and not re.search(r"out of memory|depth too small|not completed", output):
        verdict = HOLDS
    else:
        raise Incomplete(output)
    if not states:
        raise Incomplete(output)
    return verdict, int(states.group(1))


def check(configuration):
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        compile_model(folder, configuration)
        _, output = call(folder, ["./pan", "-E", f"-m{DEPTH}", f"-w{24 if configuration.full else 20}"])
        verdict, states = verdict_of(output)
    return verdict, states, time.monotonic() - began


def trace(configuration):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        compile_model(folder, configuration, "-DREACH")
        _, output = call(folder, ["./pan", "-E", "-i", f"-m{DEPTH}", "-w20"])  # searches on for a shorter one
        verdict, _ = verdict_of(output)
        print(f"{configuration.name}: {configuration.text}: {verdict}")
        if verdict == HOLDS:
            return
        _, output = call(folder, ["./pan", "-r"])
        for line in output.splitlines():
            if re.match(r"(a voter|all voters|block) ", line):
                print("  " + line)


def show(configuration, verdict, states, seconds, table):
    if table:
        found = verdict if verdict == HOLDS else verdict + " violated"
        print(f"| {configuration.name} | {configuration.text} | {states:,} | {found} |", flush=True)
        return
    note = "" if verdict == configuration.expected else f", expected: {configuration.expected}"
    print(f"{configuration.name:20} {states:>11,} states  {verdict}{note}  ({seconds:.1f} s)  {configuration.text}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    for option in ("--full", "--trace", "--table"):
        parser.add_argument(option, action="store_true")
    options = parser.parse_args()
    known = {configuration.name: configuration for configuration in CONFIGURATIONS}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no configuration {' '.join(unknown)}; there are: {' '.join(known)}")
    for program in ("spin", "gcc"):
        if shutil.which(program) is None:
            sys.exit(f"{program} is missing; see [test] in installers/debian-packages.txt")
    chosen = [known[name] for name in options.names] or [c for c in CONFIGURATIONS if options.full or not c.full]
    wrong = []
    for configuration in chosen:
        try:
            if options.trace:
                trace(configuration)
                continue
            verdict, states, seconds = check(configuration)
        except Incomplete as error:
            print(f"{configuration.name}: no verdict\n{error}")
            wrong.append(configuration.name)
            continue
        show(configuration, verdict, states, seconds, options.table)
        if verdict != configuration.expected:
            wrong.append(configuration.name)
    if wrong:
        print("not as expected: " + " ".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
