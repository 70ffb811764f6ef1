#!/usr/bin/env python3
"""Tokens per second of K nodes in rounds beside the same K nodes without a network, interleaved on one machine.

    rounds_throughput.py NODE TEXT FOLDER [--workers 4] [--period 50] [--rounds 3] [--turns 2] [--gate 0.97] …
    rounds_throughput.py NODE TEXT FOLDER --beside NODE …      beside K nodes in rounds of another build instead

NODE is the neuroshardd to run. A turn measures K nodes of one network, from the end of a round to the end of the last
of ROUNDS further ones, and K nodes that train alone over as many steps after as many, or the other build's. Which side
comes first changes from turn to turn. Steps that a round gives up are counted in neither. Prints one JSON object with
both speeds and the ratio of each turn, and the median ratio; exit status 1 below the gate.
"""
import argparse
import json
import os
import statistics
import sys
import time

import diloco_processes

WARM_ROUNDS = 2


class Nodes(diloco_processes.Network):
    """K nodes of one network, or with `alone` of none."""

    def make_profile(self):
        a = self.arguments
        rounds = ["--from", "solo"] if a.alone else [
            "--from", "devnet", "--h", str(a.period), "--sync", a.sync, "--codec", a.codec]
        self.call("network", "create", *rounds, "--name", "throughput", "--out", self.profile, "--grows", "0", "--layers",
                  str(a.layers), "--hidden", str(a.hidden), "--head-dim", "32", "--vocab", "1024", "--sequence", "128",
                  "--experts", "1", "--experts-per-token", "1", "--ffn-percent", "300", "--batch-tokens",
                  str(a.batch_tokens))

    def start_alone(self):
        for name in self.names():
            self.start(name, "run", "--json", "--data-dir", self.path(name), "--profile", self.profile, "--text",
                       self.arguments.text, "--cpu-threads", "1", "--precision", self.arguments.precision,
                       "--max-micro-batch", str(self.arguments.batch), "--eval-interval-steps", "0")

    def now(self):
        """Steps of all nodes, the least round of one, the model's parameters."""
        steps, rounds, parameters = 0, [], 0
        for name in self.names():
            said = self.call("status", "--json", "--data-dir", self.path(name), check=False)
            status = json.loads(said.splitlines()[0]) if said.startswith("{") else {}
            steps += (status.get("training") or {}).get("step", 0)
            parameters = (status.get("model") or {}).get("parameters", parameters)
            rounds.append((status.get("rounds") or {}).get("round", 0))
        return steps, min(rounds), parameters

    def wait(self, reached):
        while True:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} has ended: see {self.path(name)}.out")
            now = self.now()
            if reached(now):
                return time.monotonic(), now
            time.sleep(0.5)

    def speed(self):
        """Tokens per second, of all nodes together, after a warm-up. Nodes alone have the steps of as many rounds."""
        a = self.arguments
        counted, of_round = (0, a.period * a.workers) if a.alone else (1, 1)
        begin, before = self.wait(lambda now: now[counted] >= WARM_ROUNDS * of_round)
        end, after = self.wait(lambda now: now[counted] >= before[counted] + a.rounds * of_round)
        tokens = (after[0] - before[0]) * a.batch_tokens
        return {"seconds": end - begin, "tokens_per_s": tokens / (end - begin), "rounds": after[1] - before[1],
                "parameters": after[2]}


def in_turn(sides, number):
    """The sides in their order in turn `number`: a machine that grows slower or faster with time favours none."""
    return sides if number % 2 == 0 else sides[::-1]


def turn(arguments, number):
    """Of nodes in rounds and of those beside them."""
    beside = "beside" if arguments.beside else "alone"
    found = {}
    for side in in_turn(("rounds", beside), number):
        one = argparse.Namespace(**{**vars(arguments), "alone": side == "alone", "liars": 0,
                                    "folder": os.path.join(arguments.folder, f"{number}-{side}")})
        if side == "beside":
            one.node = arguments.beside
        nodes = Nodes(one)
        try:
            nodes.make_profile()
            nodes.start_alone() if one.alone else nodes.start_all()
            found[side] = nodes.speed()
        finally:
            nodes.end()
    found["ratio"] = found["rounds"]["tokens_per_s"] / found[beside]["tokens_per_s"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("node")
    parser.add_argument("text")
    parser.add_argument("folder", help="made by this run")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--period", type=int, default=50, help="inner steps of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=384)
    parser.add_argument("--batch-tokens", type=int, default=512)
    parser.add_argument("--batch", type=int, default=4, help="sequences of a micro-batch")
    parser.add_argument("--sync", default="plain")
    parser.add_argument("--codec", default="int8")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--beside", metavar="NODE", help="neuroshardd of another build")
    parser.add_argument("--gate", type=float, default=0.97)
    arguments = parser.parse_args()
    os.makedirs(arguments.folder)
    turns = [turn(arguments, number) for number in range(arguments.turns)]
    ratio = statistics.median(one["ratio"] for one in turns)
    json.dump({"turns": turns, "ratio": ratio, "flags": {key: value for key, value in vars(arguments).items()
                                                         if key not in ("node", "text", "folder", "beside")}}, sys.stdout)
    print()
    return 0 if ratio >= arguments.gate else 1


if __name__ == "__main__":
    sys.exit(main())
