#!/usr/bin/env python3
"""A network that chooses who holds which part of a model: how soon its nodes cover the parts, and how soon a part that lost a holder has two
again, because another node moved to it.

    parts_moves.py PROGRAMS [--moves 12] [--seed 1] [--patience 180]

Three parts and seven nodes that name none. When each part has two holders or more, a node of a part that has two leaves, and another one has to move
there. The first node that leaves is stopped (SIGTERM), the second killed (SIGKILL), and so on; in every third move the node that moves is
killed, too, while it moves, and started again two seconds later. Then the one that left comes back. Prints one JSON object. Exit status 1: a part
had no two holders within --patience seconds, or two holders of a part certified different anchors.
"""
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

from parts_run import Holders, arguments, text

NODES = 7


class Run(Holders):
    def __init__(self, a, folder):
        super().__init__(a.programs, folder, "moves", a.port, a.h, holders=0)
        self.random = random.Random(a.seed)
        self.patience = a.patience
        for number in range(NODES):
            self.network.start(["--cpu-threads", 1])
            if number == 0:
                time.sleep(1)

    def alive(self):
        return [node for node in self.network.nodes if node.process.poll() is None]

    def numbers(self, nodes):
        return {id(node): self.part(node).get("number", 0) for node in nodes}

    def covered(self):
        """Every node knows of two holders of each part, and all that run hold one."""
        nodes = self.alive()
        views = [self.part(node).get("holders") or [0] for node in nodes]
        return all(len(view) == self.parts and min(view) >= 2 and sum(view) == len(nodes) for view in views)

    def kill_mover(self, nodes):
        """Once it says that it moves."""
        moving = []

        def moves():
            moving[:] = [node for node in nodes if self.part(node).get("moves_to")]
            return moving
        self.wait_for(moves, "no node moves", self.patience)
        moving[0].process.kill()
        moving[0].process.wait()
        time.sleep(2)
        self.network.again(moving[0])

    def one(self, number):
        self.wait_for(self.covered, "the parts have no two holders", self.patience)
        before = self.numbers(self.alive())
        counts = list(before.values())
        leaver = self.random.choice([node for node in self.alive() if counts.count(before[id(node)]) == 2])
        others = [node for node in self.alive() if node is not leaver]
        left, round_before = time.monotonic(), self.rounds(others[0]).get("round", 0)
        killed, mover_killed = number % 2 == 1, number % 3 == 2
        leaver.process.send_signal(signal.SIGKILL if killed else signal.SIGTERM)
        leaver.process.wait(60)
        if mover_killed:
            self.kill_mover(others)
        self.wait_for(self.covered, "a part has no two holders again", self.patience)
        after = self.numbers(others)
        figures = {"part": before[id(leaver)], "killed": killed, "mover_killed": mover_killed, "seconds": round(time.monotonic() - left, 1),
                   "rounds": self.rounds(others[0]).get("round", 0) - round_before, "moved": sum(after[id(node)] != before[id(node)] for node in others)}
        self.network.again(leaver)
        return figures


def main():
    a = arguments(__doc__, moves=12, seed=1, h=200, port=29430, patience=180.0).parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    figures, run = {"seed": a.seed, "moves": []}, None
    try:
        (folder / "text").write_text(text(1, 60_000))
        began = time.monotonic()
        run = Run(a, folder)
        run.wait_for(run.covered, "the parts have no two holders", a.patience)
        figures["covered_seconds"] = round(time.monotonic() - began, 1)
        for number in range(a.moves):
            figures["moves"].append(run.one(number))
            print(f"move {json.dumps(figures['moves'][-1])}", file=sys.stderr, flush=True)
        run.wait_for(run.covered, "the last node is not back", a.patience)
        steps = [(run.network.status(node).get("training") or {}).get("last_step") for node in run.alive()]
        figures["loss"] = min(step["loss"] for step in steps if step)
    except RuntimeError as error:
        figures["error"] = str(error)
    finally:
        if run:
            figures["differ"], figures["anchors"] = run.differing()
            run.network.end()
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(figures))
    return 0 if "error" not in figures and not figures["differ"] else 1


if __name__ == "__main__":
    sys.exit(main())
