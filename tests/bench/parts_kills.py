#!/usr/bin/env python3
"""Random kills of real nodes that hold parts of a model: how soon training goes on, and whether the holders of a part agree.

    parts_kills.py PROGRAMS [--kills 100] [--seed 1] [--patience 5]

Three parts with two nodes each. A node is killed (SIGKILL) and started again two seconds later, with its disk. Prints one JSON object: the
seconds until the other nodes' texts have three more micro-batches through the whole model, and whether both holders of each part certified the
same anchors. Exit status 1: training stood still for longer than --patience, or two holders differ.
"""
import json
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time

from parts_run import Holders, arguments, text


class Run(Holders):
    def __init__(self, a, folder):
        super().__init__(a.programs, folder, "kills", a.port, a.h)
        self.random = random.Random(a.seed)

    def one(self):
        time.sleep(self.random.random())
        victim = self.random.choice(self.network.nodes)
        others = [node for node in self.network.nodes if node is not victim]
        victim.process.kill()
        victim.process.wait()
        killed = time.monotonic()
        before = self.finished(others)
        self.wait_for(lambda: sum(self.part(node).get("finished", 0) - before[id(node)] for node in others) >= 3, "training does not go on", 60)
        gap = time.monotonic() - killed
        time.sleep(max(0, killed + 2 - time.monotonic()))
        self.network.again(victim)
        self.wait_for(self.all_train(), "not all nodes train again", 120)
        return gap


def main():
    a = arguments(__doc__, kills=100, seed=1, h=200, port=29400, patience=5.0).parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    figures = {"seed": a.seed}
    run, gaps = None, []
    try:
        (folder / "text").write_text(text(1, 60_000))
        run = Run(a, folder)
        run.wait_for(run.all_train(), "not all nodes train", 180)
        for _ in range(a.kills):
            gaps.append(run.one())
        figures["loss"] = min(run.network.status(node)["training"]["last_step"]["loss"] for node in run.network.nodes)
    except RuntimeError as error:
        figures["error"] = str(error)
    finally:
        if run:
            figures["differ"], figures["anchors"] = run.differing()
            run.network.end()
        shutil.rmtree(folder, ignore_errors=True)
    gaps.sort()
    figures |= {"kills": len(gaps), "late": sum(gap > a.patience for gap in gaps)}
    if gaps:
        figures |= {"median": round(statistics.median(gaps), 3), "most": round(gaps[-1], 3)}
    print(json.dumps(figures))
    return 0 if "error" not in figures and not figures["late"] and not figures.get("differ") else 1


if __name__ == "__main__":
    sys.exit(main())
