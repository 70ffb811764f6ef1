#!/usr/bin/env python3
"""A model that is too large for any of the nodes that train it: memory of real nodes that hold parts, and their loss beside that of one node
that holds all.

    parts_memory.py PROGRAMS [--parts 6] [--layers 6] [--hidden 640] [--experts 8] [--share 0.6] [--steps 60] [--tokens 2048] [--base /tmp]

Starts a network with sync "parts=P" and one node for each part, each in a control group whose memory is --share of one copy's training
state (weights, gradients and two moments: 16 bytes a parameter). Over the limit means killed. When the node of the last part has made the steps,
the same network with sync "delayed-1" and one node without a limit makes as many. Prints one JSON object: limit and state in bytes, the largest
use of each control group and resident size of each process, and the mean loss over the last ten steps of both. Exit status 1: a node was
killed, or the losses differ by more than --within (2 %). Needs root and control groups with the memory controller.
"""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

from parts_run import Group, Network, text

LAST = 10  # steps that the compared loss is the mean of


def losses(network, node, steps):
    while network.status(node).get("training", {}).get("step", 0) < steps:
        if why := network.dead() or network.refused():
            raise RuntimeError(why)
        time.sleep(2)
    return network.losses(node)[:steps]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    for name, value in {"parts": 6, "layers": 6, "hidden": 640, "experts": 8, "vocab": 2048, "steps": 60, "tokens": 2048, "h": 20, "port": 29300}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--share", type=float, default=0.6)
    parser.add_argument("--within", type=float, default=0.02)
    parser.add_argument("--base", default=None)
    a = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(dir=a.base))
    profile = ["--layers", a.layers, "--hidden", a.hidden, "--head-dim", 64, "--experts", a.experts, "--vocab", a.vocab, "--sequence", 128,
               "--batch-tokens", a.tokens, "--h", a.h, "--warmup", 20, "--sync"]
    figures = {"parts": a.parts, "steps": a.steps}
    ok = False
    try:
        (folder / "text").write_text(text(1, 400_000))
        parts = Network(a.programs.resolve(), folder, "parts", a.port, [*profile, f"parts={a.parts}"])
        state = 16 * parts.parameters
        limit = int(a.share * state)
        figures |= {"parameters": parts.parameters, "state_bytes": state, "limit_bytes": limit}
        began = time.monotonic()
        try:
            for part in range(a.parts):
                parts.start(["--cpu-threads", 1, "--part", part + 1, "--memory-limit", f"{limit >> 20}MiB"],
                            Group(f"neuroshard-parts-{os.getpid()}-{part}", limit))
            seen = losses(parts, parts.nodes[-1], a.steps)
            figures |= {"parts_seconds": round(time.monotonic() - began), "first_loss": seen[0], "parts_loss": sum(seen[-LAST:]) / LAST,
                        "group_peaks": [node.group.peak() for node in parts.nodes], "resident_peaks": parts.resident()}
        finally:
            parts.end()
        began = time.monotonic()
        alone = Network(a.programs.resolve(), folder, "alone", a.port, [*profile, "delayed-1"])
        try:
            seen = losses(alone, alone.start(["--cpu-threads", 2]), a.steps)
            figures |= {"alone_loss": sum(seen[-LAST:]) / LAST, "alone_seconds": round(time.monotonic() - began), "alone_resident": alone.resident()[0]}
        finally:
            alone.end()
        figures["worse_by"] = figures["parts_loss"] / figures["alone_loss"] - 1
        ok = abs(figures["worse_by"]) <= a.within
    except RuntimeError as error:
        figures["error"] = str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(figures))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
