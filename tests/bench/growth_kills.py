#!/usr/bin/env python3
"""Kills of nodes while their network's model changes its size.

    growth_kills.py PROGRAMS [--changes 40] [--seed 1] [--patience 180]

Four nodes change a model of two layers of width 64 into one of four layers of width 128 and back: the fourth one starts anew with more memory, and
lowers its limit while it runs. In each change a random node is killed (SIGKILL) at a random moment and started again up to two seconds later.
Then all nodes have to get to the size that the offers ask for, and to train together. Prints one JSON object: for each kill, what the node was at by
its own log. Exit status 1: a node had neither size, did not come back, found a corrupt state, or certified another anchor than the others.
"""
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

from growth_run import ASKED, BYTES, KINDS, SMALL_OFFER, Growing
from parts_run import arguments, text

# Layers, and limits of the fourth node with which the members ask for them. The others offer 3 GB together; the larger model needs 4 GB, and 6 GB to grow.
SMALL, LARGE = 2, 4
LIMITS = {SMALL: "900MB", LARGE: "3GiB"}
SIZES = {SMALL: "0", LARGE: "1"}  # as a node keeps them
LOOK = 0.01                       # seconds between two looks at a log
AT_ONCE, SOON, EARLY = 0.5, 5.0, 15.0  # seconds in which a kill comes after the chain asks for the change, twice, and after the limits change
PHASES = ("before", "computes", "starts", "after")


def phase(log):
    """The state of a node in the change, by its log since the limits changed."""
    if ASKED not in log:
        return "before"
    of_start = log.partition("starts anew with it")
    if not of_start[1]:
        return "computes"
    return "after" if " is certified with anchor " in of_start[2] else "starts"


class Run:
    def __init__(self, a, folder):
        model = ["--layers", SMALL, "--hidden", 64, *BYTES, *KINDS["dense"], "--batch-tokens", 256, "--h", 10, "--decay-steps", 100_000]
        self.network = Growing(a.programs, folder, "kills", a.port, model, f"{LARGE}x128@1GB/4GB")
        self.random, self.patience, self.other_sizes = random.Random(a.seed), a.patience, []
        self.network.start_all(3, SMALL_OFFER)
        self.network.start(LIMITS[SMALL])
        self.network.wait_for(self.network.together, "the four don't train together")

    def since(self, node, begin):
        with open(node.data / "logs/neuroshardd.log", "rb") as log:
            log.seek(begin[node.data])
            return log.read().decode(errors="replace")

    def one(self, to):
        nodes = self.network.nodes
        begin = {node.data: (node.data / "logs/neuroshardd.log").stat().st_size for node in nodes}
        began = time.monotonic()
        self.offer(nodes[-1], to)
        victim, late = self.random.choice(nodes), self.wait_for_moment(begin)
        time.sleep(late)
        victim.process.kill()
        victim.process.wait()
        killed = time.monotonic()
        figures = {"to": to, "victim": nodes.index(victim), "phase": phase(self.since(victim, begin)), "size": self.size(victim)}
        time.sleep(self.random.uniform(0, 2))
        self.network.again(victim)
        self.network.wait_for(lambda: self.arrived(to), f"not all nodes have {to} layers", self.patience)
        round_then = max(self.network.rounds(node).get("round", 0) for node in nodes)
        self.network.wait_for(lambda: self.network.together() and self.network.rounds(nodes[0]).get("round", 0) > round_then, "the nodes don't train together",
                              self.patience)
        seen = [self.network.rounds(node) for node in nodes]
        figures |= {"seconds": round(time.monotonic() - began, 1), "since_kill": round(time.monotonic() - killed, 1),
                    "corruptions": sum(one["corruptions"] for one in seen), "sizes": [self.size(node) for node in nodes]}
        return figures

    def offer(self, node, to):
        """A node offers less at once, but more only after a new start."""
        self.network.set_memory(node, LIMITS[to])
        if to == LARGE:
            node.process.send_signal(signal.SIGTERM)
            node.process.wait(60)
            self.network.again(node)

    def wait_for_moment(self, begin):
        """Seconds to the kill, from the return on."""
        kind = self.random.choice([AT_ONCE, AT_ONCE, SOON, EARLY])
        if kind != EARLY:
            deadline = time.monotonic() + self.patience
            while not any(ASKED in self.since(node, begin) for node in self.network.nodes):
                if time.monotonic() > deadline:
                    raise RuntimeError("the members' memory asks for no other size: " + json.dumps(self.network.rounds(self.network.nodes[0])))
                time.sleep(LOOK)
        return self.random.uniform(0, kind)

    @staticmethod
    def size(node):
        """As the node keeps it."""
        path = node.data / "size"
        return path.read_text().strip() if path.exists() else "0"

    def arrived(self, to):
        layers = [self.network.layers_in(self.network.rounds(node)) for node in self.network.nodes]
        self.other_sizes += [one for one in layers if one not in (None, SMALL, LARGE)]
        return all(one == to for one in layers)


def good(change):
    return not change["corruptions"] and change["size"] in SIZES.values() and set(change["sizes"]) == {SIZES[change["to"]]}


def main():
    a = arguments(__doc__, changes=40, seed=1, port=29720, patience=180.0).parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    figures, run = {"seed": a.seed, "changes": []}, None
    try:
        (folder / "text").write_text(text(1, 60_000))
        run = Run(a, folder)
        for number in range(a.changes):
            figures["changes"].append(run.one(LARGE if number % 2 == 0 else SMALL))
            print(f"change {json.dumps(figures['changes'][-1])}", file=sys.stderr, flush=True)
        figures["other_sizes"] = run.other_sizes
    except RuntimeError as error:
        figures["error"] = str(error)
        figures["logs"] = {node.data.name: run.network.log(node)[-4000:] for node in run.network.nodes} if run else {}
    finally:
        if run:
            figures["differ"], figures["anchors"] = run.network.differing()
            run.network.end()
            logs = [run.network.log(node) for node in run.network.nodes]
            figures["errors"] = [line for log in logs for line in log.splitlines() if " error [" in line]
        shutil.rmtree(folder, ignore_errors=True)
    figures["phases"] = {name: sum(one["phase"] == name for one in figures["changes"]) for name in PHASES}
    print(json.dumps(figures))
    return 0 if "error" not in figures and all(map(good, figures["changes"])) and not figures["differ"] and not figures["other_sizes"] else 1


if __name__ == "__main__":
    sys.exit(main())
