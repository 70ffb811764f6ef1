#!/usr/bin/env python3
"""Processor time and wake-ups of nodes that are members of a network and do not train.

    idle_nodes.py NODE TEXT FOLDER [--workers 4] [--seconds 60] [--beside NODE]

NODE is the neuroshardd to run. K nodes and a tracker make two rounds of a small model on one computer. Then the owners switch
contributing off, and after --settle seconds the processor time and the voluntary context switches of each node's threads are
counted for --seconds. With --beside both builds are measured twice: before and after the other one. Prints one JSON object: of the
median node the share of one core in percent, its wake-ups a second, and both by thread; with --beside also the ratio. Exit status 1: at
--gate percent or above.
"""
import argparse
import json
import os
import statistics
import sys
import time

import rounds_throughput

TICKS = os.sysconf("SC_CLK_TCK")


def threads(pid):
    """By thread: its name, seconds of processor time, voluntary context switches."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8") as stat:
                head, _, tail = stat.read().rpartition(")")
            with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as status:
                switches = next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        fields = tail.split()
        found[thread] = (head.partition("(")[2], (int(fields[11]) + int(fields[12])) / TICKS, switches)
    return found


def between(before, after, seconds):
    """Percent of a core and wake-ups a second, by name of the thread."""
    names = {}
    for thread, (name, used, switches) in after.items():
        _, used_before, switches_before = before.get(thread, (name, 0.0, 0))
        sums = names.setdefault(name, [0.0, 0.0])
        sums[0] += 100 * (used - used_before) / seconds
        sums[1] += (switches - switches_before) / seconds
    return {name: {"percent": round(percent, 3), "wakeups": round(wakeups, 1)}
            for name, (percent, wakeups) in sorted(names.items(), key=lambda one: -one[1][0]) if wakeups > 0}


def measure(a, node, folder):
    """By node, percent of a core and wake-ups of its threads."""
    one = argparse.Namespace(**{**vars(a), "node": node, "folder": folder, "alone": False, "liars": 0, "period": 5, "layers": 1, "hidden": 32,
                                "batch_tokens": 512, "batch": 4, "sync": "plain", "codec": "int8", "precision": "fp32"})
    nodes = rounds_throughput.Nodes(one)
    try:
        nodes.make_profile()
        nodes.start_all()
        nodes.wait(lambda now: now[1] >= 2)
        for name in nodes.names():
            nodes.call("contribute", "off", "--data-dir", nodes.path(name))
        time.sleep(a.settle)
        pids = [nodes.processes[name].pid for name in nodes.names()]
        begun, before = time.monotonic(), [threads(pid) for pid in pids]
        time.sleep(a.seconds)
        passed, after = time.monotonic() - begun, [threads(pid) for pid in pids]
    finally:
        nodes.end()
    return [between(*pair, passed) for pair in zip(before, after)]


def summary(by_node):
    sums = [{key: sum(thread[key] for thread in one.values()) for key in ("percent", "wakeups")} for one in by_node]
    percents = [one["percent"] for one in sums]
    percent = statistics.median(percents)
    middle = min(range(len(percents)), key=lambda number: abs(percents[number] - percent))
    return {"percent": round(percent, 3), "percents": [round(one, 3) for one in percents],
            "wakeups": round(statistics.median(one["wakeups"] for one in sums), 1), "threads": by_node[middle]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("node")
    parser.add_argument("text")
    parser.add_argument("folder", help="made by this run")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=30)
    parser.add_argument("--beside", metavar="NODE", help="neuroshardd of another build")
    parser.add_argument("--gate", type=float, default=1.0)
    a = parser.parse_args()
    os.makedirs(a.folder)
    sides = (("node", a.node), ("beside", a.beside)) if a.beside else (("node", a.node),)
    by_node = {side: [] for side, _ in sides}
    for number in range(len(sides)):
        for side, program in rounds_throughput.in_turn(sides, number):
            by_node[side] += measure(a, program, os.path.join(a.folder, f"{side}{number}"))
    found = {side: summary(nodes) for side, nodes in by_node.items()}
    if a.beside:
        found["ratio"] = round(found["node"]["percent"] / found["beside"]["percent"], 3)
    print(json.dumps(found))
    return 0 if found["node"]["percent"] < a.gate else 1


if __name__ == "__main__":
    sys.exit(main())
