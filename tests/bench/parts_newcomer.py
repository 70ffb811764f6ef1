#!/usr/bin/env python3
"""Newcomers to a running network whose members hold parts of a model: how many rounds after the end of its fetch the work of each one is in a
certified row, and whether its anchors are those of the other holders, bit for bit.

    parts_newcomer.py PROGRAMS [--newcomers 3] [--share 0.25] [--rounds 2]

Three parts with two nodes each, with --share of one core by control groups. When they have --warm-rounds rounds, a seventh node joins
with a new data directory; the newcomers hold part 1, 2, 3, 1 and so on, and each one leaves before the next one comes. The fetch has ended
when the newcomer holds the anchor of its part that the newest block names. Then it has to compute the next anchors itself, and its
file of the row has to equal a holder's. Prints one JSON object. Exit status 1: something failed, a newcomer's work is in no row within --rounds
rounds, or two holders of a part certified different anchors; 77: no control groups.
"""
import json
import signal
import subprocess
import sys
import time

from parts_run import NO_GROUPS, Holders, arguments, with_shares

OWN_ANCHORS = 2  # that a newcomer computes before it leaves


def stated_in(blocks, node_id):
    """By kind of its statement: the round that was in progress when a block took the newcomer's first one."""
    running, found = 1, {}
    for block in blocks:
        for one in block["statements"]:
            if one["node"] == node_id:
                found.setdefault(one["kind"], running)
        if "result" in block:
            running = block["result"]["round"] + 1
    return found


class Run(Holders):
    def __init__(self, a, folder, groups):
        super().__init__(a.programs, folder, "newcomer", a.port, a.h, groups=groups)
        self.group = groups[-1]  # of each newcomer

    def report(self, node):
        """The newest rounds of a node's part, by their numbers."""
        done = subprocess.run([self.network.program, "status", "--json", "--rounds", "--data-dir", node.data], capture_output=True, text=True)
        lines = done.stdout.splitlines()
        return {one["round"]: one for one in json.loads(lines[1])["rounds"]} if done.returncode == 0 and len(lines) > 1 else {}

    def counts_in(self, node_id, holder):
        """The first round whose row has work of this node."""
        return min((number for number, one in self.report(holder).items() for member in one["who"]
                    if member["id"] == node_id and member["contributed"]), default=None)

    def computed(self, node):
        """Rounds whose certified anchors this node did not fetch."""
        return sorted(number for number, one in self.report(node).items() if not one["fetched"])

    def same_row(self, part, *nodes):
        """Not while one of them is a round ahead."""
        rows = [node.data / f"chain/row-{part - 1}" for node in nodes]
        return all(row.exists() for row in rows) and len({row.read_bytes() for row in rows}) == 1

    def one(self, part):
        holder, began = self.network.nodes[part - 1], time.monotonic()
        node = self.start(part, self.group)
        seen = {}

        def holds_anchor():
            seen.update(self.network.status(node))
            rounds = seen.get("rounds") or {}
            return rounds.get("agrees") and rounds.get("anchor")
        figures = {"part": part, "fetch_seconds": round(self.wait_for(holds_anchor, "a newcomer has no anchor", 300), 1)}
        fetched_in = seen["rounds"]["round"]
        if not seen["rounds"]["fetched"]:
            raise RuntimeError(f"a newcomer fetched no anchor: {json.dumps(seen['rounds'])}")
        self.wait_for(lambda: self.counts_in(seen["node_id"], holder), "a newcomer's work does not count", 900)
        figures |= {"rounds": self.counts_in(seen["node_id"], holder) - fetched_in, "counted_seconds": round(time.monotonic() - began, 1)}
        self.wait_for(lambda: len(self.computed(node)) >= OWN_ANCHORS, "a newcomer computes no anchors", 600)
        self.wait_for(lambda: self.same_row(part, node, holder), "a newcomer never has the row of a holder", 300)
        holds_anchor()
        figures |= {"fetched_in": fetched_in, "computed_in": self.computed(node), "fetched_anchors": seen["rounds"]["fetched"],
                    "corruptions": seen["rounds"]["corruptions"], "stated_in": stated_in(self.blocks(holder), seen["node_id"])}
        node.process.send_signal(signal.SIGTERM)
        node.process.wait(60)
        return figures


def measure(a, folder, groups):
    figures, run = {"newcomers": []}, None
    try:
        run = Run(a, folder, groups)
        run.warm(a.warm_rounds)
        for number in range(a.newcomers):
            figures["newcomers"].append(run.one(number % run.parts + 1))
            print(f"newcomer {json.dumps(figures['newcomers'][-1])}", file=sys.stderr, flush=True)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        figures["error"] = str(error)
    finally:
        if run:
            figures["differ"], figures["anchors"] = run.differing()
            run.network.end()
    return figures


def main():
    a = arguments(__doc__, newcomers=3, rounds=2, h=200, warm_rounds=4, port=29470, share=0.25).parse_args()
    figures = with_shares("newcomer", 7, a.share, lambda folder, groups: measure(a, folder, groups))
    if figures is None:
        return NO_GROUPS
    right = "error" not in figures and not figures["differ"]
    return 0 if right and all(one["rounds"] <= a.rounds and not one["corruptions"] for one in figures["newcomers"]) else 1


if __name__ == "__main__":
    sys.exit(main())
