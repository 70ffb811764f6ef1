#!/usr/bin/env python3
"""Random deaths in a pipeline of real processes: how soon training goes on, and whether anything is lost or counted twice.

    pipeline_kills.py NODE TEXT [--kills 100] [--seed 1]

Three parts of a model with two processes each, and a driver. A victim is any of them: killed, or stopped without a word as when a machine
loses its network. Another process takes its place, with the first weights: weights are not fetched here. Prints one JSON object; exit
status 1: after a death it took longer than --patience until three more micro-batches were finished, or one finished twice.
"""
import argparse
import json
import random
import signal
import statistics
import sys
import time

import pipeline_run

STAGES, HOLDERS, IN_STEP, SEQUENCES, LENGTH, TOGETHER = 3, 2, 4, 4, 32, 8
SHAPE = {"layers": 3, "hidden": 64, "head_dim": 16, "ffn": 128, "sequence": LENGTH}


class Run:
    def __init__(self, a):
        self.a, self.random, self.keys, self.sessions = a, random.Random(a.seed), 0, 0
        self.parts = pipeline_run.ranges(SHAPE["layers"], STAGES)
        self.alive = [self.start(part) for part in self.parts * HOLDERS]
        self.finished, self.seen, self.twice = 0, set(), 0
        self.driver = None
        self.drive()

    def start(self, stage):
        self.keys += 1
        config = {"key": self.keys, "shape": SHAPE, "threads": 1, "batch_tokens": IN_STEP * SEQUENCES * LENGTH}
        return pipeline_run.Node(self.a.node, config | ({"stage": stage} if stage else {"text": self.a.text}))

    def introduce(self):
        pipeline_run.introduce([*self.alive, self.driver])

    def drive(self):
        self.driver = self.start(None)
        self.introduce()
        route = [next(node for node in self.alive if node.stage == part) for part in self.parts]
        self.sessions += 1
        self.driver.tell({"do": "drive", "route": [node.id for node in route], "sequences": SEQUENCES, "window": TOGETHER, "wire": "int8",
                          "micro_batches": 1 << 40, "seed": self.sessions})

    def hear(self, seconds=0.0, more=0):
        """Listens for so long, or until so many more micro-batches are finished; the seconds that it took."""
        began, wanted = time.monotonic(), self.finished + more
        while time.monotonic() - began < seconds if not more else self.finished < wanted:
            if time.monotonic() - began > 60:
                raise RuntimeError(f"training stands still: {self.driver.heard[-5:]}")
            try:
                event = self.driver.next(0.05)
            except pipeline_run.queue.Empty:
                continue
            if "ended" in event:
                raise RuntimeError("the driver ended")
            if "finished" in event:
                self.finished += 1
                self.twice += (self.sessions, event["finished"]) in self.seen
                self.seen.add((self.sessions, event["finished"]))
        return time.monotonic() - began

    def one(self):
        """A death, and the time until three more micro-batches that were not under way are finished."""
        self.hear(0.2 + self.random.random())
        kind = self.random.choice(["killed", "killed", "killed", "stopped", "driver"])
        if kind == "driver":
            self.driver.kill()
            began = time.monotonic()
            self.drive()
            self.hear(more=3)
            return kind, time.monotonic() - began
        victim = self.alive.pop(self.random.randrange(len(self.alive)))
        try:
            if kind == "killed":
                victim.kill()
            else:
                victim.process.send_signal(signal.SIGSTOP)
            gap = self.hear(more=TOGETHER + 3)
        finally:
            victim.kill()  # one that is stopped does not end with its pipe
        self.alive.append(self.start(victim.stage))
        self.introduce()
        return kind, gap

    def stop(self):
        for node in [*self.alive, self.driver]:
            node.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("node")
    parser.add_argument("text")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=5.0)
    a = parser.parse_args()
    run = Run(a)
    try:
        run.hear(more=20)
        gaps = {}
        for _ in range(a.kills):
            kind, gap = run.one()
            gaps.setdefault(kind, []).append(gap)
    finally:
        run.stop()
    late = sum(gap > a.patience for by_kind in gaps.values() for gap in by_kind)
    print(json.dumps({"kills": a.kills, "seed": a.seed, "late": late, "finished": run.finished, "twice": run.twice,
                      "gaps": {kind: {"n": len(by_kind), "median": round(statistics.median(by_kind), 3), "most": round(max(by_kind), 3)}
                               for kind, by_kind in gaps.items()}}))
    return 1 if late or run.twice else 0


if __name__ == "__main__":
    sys.exit(main())
