#!/usr/bin/env python3
"""A network of parts on computers of unequal speed: its throughput beside that of equal computers with the same cores together.

    parts_speeds.py PROGRAMS [--seconds 180] [--turns 2]

Two parts with two nodes each, in control groups. Unequal: of each part, one node has four times the share of a core of the other. Equal: all
have the mean of that. Each network runs until its nodes have measured and stated their speeds, then is measured. The two take turns, and which
comes first changes. Throughput is the micro-batches of all nodes' texts that have passed the whole model, in a second. Prints one JSON object.
"""
import json
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

from parts_run import NO_GROUPS, Holders, arguments, shares, text
from rounds_throughput import in_turn

PARTS, HOLDERS, STEPS = 2, 2, 40
EQUAL, SLOW, FAST = 0.25, 0.1, 0.4
UNEQUAL = [FAST, FAST, SLOW, SLOW]  # nodes 0 and 2 hold the first part
WARM_ROUNDS = 6  # after three the network knows the length of a round; speeds are stated within some blocks


def throughput(a, folder, name, of_nodes):
    groups = [group for number, share in enumerate(of_nodes) for group in shares(f"{name}-{number}", 1, share) or []]
    if len(groups) < len(of_nodes):
        raise OSError("control groups need root")
    run = Holders(a.programs, folder, name, a.port, STEPS, PARTS, HOLDERS, groups)
    try:
        run.warm(WARM_ROUNDS)
        nodes, began = run.network.nodes, time.monotonic()
        before = run.finished(nodes)
        time.sleep(a.seconds)
        after = run.finished(nodes)
        passed = [after[id(node)] - before[id(node)] for node in nodes]
        return {"micro_batches": passed, "a_second": round(sum(passed) / (time.monotonic() - began), 2), "round": run.rounds(nodes[0]).get("round")}
    finally:
        run.network.end()


def main():
    a = arguments(__doc__, seconds=180, turns=2, port=29800).parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    turns = []
    try:
        (folder / "text").write_text(text(1, 60_000))
        for turn in range(a.turns):
            sides = in_turn((("unequal", UNEQUAL), ("equal", [EQUAL] * 4)), turn)
            found = {side: throughput(a, folder, f"{side}{turn}", of_nodes) for side, of_nodes in sides}
            found["ratio"] = round(found["unequal"]["a_second"] / found["equal"]["a_second"], 3)
            print(json.dumps(found), file=sys.stderr, flush=True)
            turns.append(found)
    except OSError as error:
        print(error, file=sys.stderr)
        return NO_GROUPS
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ratios = [turn["ratio"] for turn in turns]
    print(json.dumps({"turns": turns, "ratio": round(statistics.median(ratios), 3), "least": min(ratios)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
