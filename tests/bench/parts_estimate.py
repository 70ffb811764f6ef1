#!/usr/bin/env python3
"""Resident memory of nodes that hold one part of a model each, beside what their memory plans expect.

    parts_estimate.py PROGRAMS [--parts 3] [--layers 6] [--hidden 512] [--batch-tokens 8192] [--precision fp32] [--rounds 3] [--gate 10] …

Starts a network with sync "parts=P" and one node for each part. Waits until all nodes train and each has --rounds certified rounds, after each of
which a node writes a checkpoint. Then reads the largest resident size of each process so far, and from its log the peak that the memory plan expects,
with its terms. Prints one JSON object. Exit status 1: a plan is off by more than --gate per cent of the peak.
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile

from parts_run import Holders, arguments, text
from rounds_memory import PLANNED

TERMS = re.compile(PLANNED.pattern + r" at the peak: (.*?)\. ")


def planned(node):
    """The expectation of the newest plan in its log, in bytes, and its terms."""
    expected, terms = TERMS.findall((node.data / "logs/neuroshardd.log").read_text(errors="replace"))[-1]
    return {"planned_bytes": int(expected) << 20, "terms": terms}


def least_round(run):
    return min(run.rounds(node).get("round", 0) for node in run.network.nodes)


def measure(a, folder):
    run = Holders(a.programs, folder, "estimate", a.port, a.h, a.parts, holders=1, layers=a.layers, words=["--precision", a.precision], model=[
        "--hidden", a.hidden, "--head-dim", 32, "--vocab", 1024, "--experts", 1, "--experts-per-token", 1, "--ffn-percent", 300, "--sequence", 128,
        "--batch-tokens", a.batch_tokens])
    try:
        run.wait_for(run.all_train(), "not all nodes train", a.patience)
        run.wait_for(lambda: least_round(run) >= a.rounds, "too few rounds", a.patience)
        nodes = [{"part": number, "peak_bytes": peak, **planned(node)}
                 for number, (node, peak) in enumerate(zip(run.network.nodes, run.network.resident()), 1)]
        for node in nodes:
            node["off_per_cent"] = 100 * (node["planned_bytes"] / node["peak_bytes"] - 1)
        return {"parameters": run.network.parameters, "precision": a.precision, "batch_tokens": a.batch_tokens, "rounds": least_round(run), "nodes": nodes}
    finally:
        run.network.end()


def main():
    a = arguments(__doc__, parts=3, layers=6, hidden=512, batch_tokens=8192, precision="fp32", rounds=3, h=2, port=29500, patience=1200,
                  gate=10.0).parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        (folder / "text").write_text(text(1, 400_000))
        found = measure(a, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found))
    return 1 if max(abs(node["off_per_cent"]) for node in found["nodes"]) > a.gate else 0


if __name__ == "__main__":
    sys.exit(main())
