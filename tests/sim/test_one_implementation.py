#!/usr/bin/env python3
"""The simulator has no second implementation of the chain and its rounds:    test_one_implementation.py NM LIBSIM LIBCHAIN LIBROUNDS LIBOUTER

What libneuroshard_sim.a needs from outside is compared with what core/chain, core/rounds and core/outer define: it takes the nodes
from there, and never aggregates, steps, votes or certifies by itself.
"""
import re
import subprocess
import sys


def symbols(nm, archive, kinds):
    text = subprocess.run([nm, "-C", archive], check=True, capture_output=True, text=True).stdout
    found = set()
    for line in text.splitlines():
        match = re.match(r"^[0-9a-f]*\s+([A-Za-z])\s+(.*)$", line)
        if match and match.group(1) in kinds:
            found.add(match.group(2).split("(")[0])
    return found


def callers(nm, archive, name):
    """The object files of the archive that need it."""
    found, member = set(), None
    for line in subprocess.run([nm, "-C", archive], check=True, capture_output=True, text=True).stdout.splitlines():
        if line.endswith(".o:"):
            member = line[:-1]
        elif re.match(rf"^\s+U\s+{re.escape(name)}(\(|$)", line):
            found.add(member)
    return found


def main():
    nm, sim, chain, rounds, outer = sys.argv[1:6]
    needed, own = symbols(nm, sim, "U"), symbols(nm, sim, "T")
    failures = []
    for archive, node in ((chain, "neuroshard::chain::ChainNode::ChainNode"), (rounds, "neuroshard::rounds::TrainingRounds::TrainingRounds")):
        if node not in needed or node not in symbols(nm, archive, "T"):
            failures.append(f"the simulator does not run {node}")
    for name in ("neuroshard::outer::aggregate_encoded", "neuroshard::outer::outer_step"):
        if name not in symbols(nm, outer, "T") or name not in symbols(nm, rounds, "U"):
            failures.append(f"core/rounds does not use {name} of core/outer")
        if name in needed:
            failures.append(f"the simulator calls {name} itself")
    for name in ("neuroshard::outer::aggregate", "neuroshard::rounds::make_step", "neuroshard::chain::Agreement::Agreement"):
        if name in needed:
            failures.append(f"the simulator calls {name} itself")
    for member in callers(nm, sim, "neuroshard::chain::sign_vote"):
        # False votes have to be signed as well, and founders that agreed beforehand sign their genesis.
        if member not in ("byzantine_caller.cpp.o", "chain_world.cpp.o"):
            failures.append(f"{member} of the simulator signs votes itself")
    for name in own:
        if re.search(r"neuroshard::(chain|rounds|outer)::(?!.*~)", name) and "::sim::" not in name:
            failures.append(f"the simulator defines {name}")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
