#!/usr/bin/env python3
"""Resident memory of the nodes of one network in rounds, per parameter of the model.

    rounds_memory.py NODE TEXT FOLDER [--workers 2] [--rounds 3] [--layers 9] [--hidden 1024] …

NODE is the neuroshardd to run. Waits for the second round, then samples the first node's resident size five times a
second until ROUNDS further rounds are certified. Prints one JSON object: parameters, bytes a parameter at the peak of
the process and in the middle of the samples, and the speed of all nodes together.
Exit status 1 above --gate bytes a parameter.
"""
import argparse
import json
import os
import statistics
import sys
import time

import rounds_throughput


def memory_of(process, field):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field + ":"))


class Nodes(rounds_throughput.Nodes):
    def sampled(self):
        """Resident sizes of the first node while the rounds go on, tokens per second, parameters."""
        a, sizes = self.arguments, []
        first = self.processes[self.names()[0]]
        begin, before = self.wait(lambda now: now[1] >= 2)

        def reached(now):
            for _ in range(4):
                sizes.append(memory_of(first, "VmRSS"))
                time.sleep(0.2)
            return now[1] >= before[1] + a.rounds
        end, after = self.wait(reached)
        return {"parameters": after[2], "samples": len(sizes), "peak_bytes": memory_of(first, "VmHWM"),
                "middle_bytes": statistics.median(sizes), "largest_sample_bytes": max(sizes),
                "tokens_per_s": (after[0] - before[0]) * a.batch_tokens / (end - begin)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("node")
    parser.add_argument("text")
    parser.add_argument("folder", help="made by this run")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--period", type=int, default=4, help="inner steps of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=9)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--batch-tokens", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1, help="sequences of a micro-batch")
    parser.add_argument("--sync", default="plain")
    parser.add_argument("--memory-limit", help="of each node, such as 2GiB")
    parser.add_argument("--gate", type=float, help="bytes a parameter")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder)
    nodes = Nodes(argparse.Namespace(**{**vars(arguments), "alone": False, "liars": 0,
                                        "folder": os.path.join(arguments.folder, "nodes")}))
    try:
        nodes.make_profile()
        for name in nodes.names() if arguments.memory_limit else []:
            nodes.call("settings", "set", "memory_limit", arguments.memory_limit, "--data-dir", nodes.path(name),
                       "--profile", nodes.profile)
        nodes.start_all()
        found = nodes.sampled()
    finally:
        nodes.end()
    for name in ("peak", "middle"):
        found[f"{name}_bytes_a_parameter"] = found[f"{name}_bytes"] / found["parameters"]
    json.dump(found, sys.stdout)
    print()
    return 1 if arguments.gate and found["peak_bytes_a_parameter"] > arguments.gate else 0


if __name__ == "__main__":
    sys.exit(main())
