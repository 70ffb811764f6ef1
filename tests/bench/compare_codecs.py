#!/usr/bin/env python3
"""The delta codecs beside memcpy and torch.topk, in one interleaved run.

  compare_codecs.py --ours build/release/tests/bench_codec_server [--count 10240000] [--rounds 7] [--json FILE]

Ours is one thread and does everything (selection, levels, entropy coding, checksum, memory for the payload); PyTorch
only selects, with all threads. A round is memcpy of the values (the yardstick), every contender, memcpy again; rounds
whose yardstick moved by more than 15 % are dropped. Targets: top-k encode 20 times torch.topk, goal twice the time of
memcpy. Exit: 0 measured, 1 failed, 77 PyTorch is missing.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

from contenders import Child, Failed, settings_of
from rounds import Round, summary

HERE = os.path.dirname(os.path.abspath(__file__))
CODECS = ("fp32", "fp16", "int8", "int4", "topk", "seed-topk")
K = 64
FASTER_THAN_TORCH, GOAL_MEMCPY_TIMES = 20, 2


class Bench:
    def __init__(self, options):
        self.count, self.threads = options.count, options.threads
        self.bytes = {}
        self.ours = Child([options.ours], settings_of(1, {}))
        self.peer = Child(["/usr/bin/python3", os.path.join(HERE, "codec_peer.py"), "--threads", str(options.threads)],
                          settings_of(options.threads, {}))
        self.names = [child.ask({"do": "hello"}) for child in (self.ours, self.peer)]

    def prepare(self, folder):
        request = {"do": "prepare", "count": self.count, "seed": 1, "path": os.path.join(folder, "values")}
        self.ours.ask(request)
        self.peer.ask(request)

    def best_of(self, child, request, turns):
        """The speed of the fastest turn, in values per second: what else ran meanwhile is not the contender's."""
        answers = [child.ask({"do": "turn", **request}) for _ in range(turns)]
        if "codec" in request:
            self.bytes[request["codec"]] = answers[0]["bytes"] / self.count
        return self.count / min(a["seconds"] for a in answers)

    def memcpy(self):
        return self.best_of(self.ours, {"what": "memcpy"}, 5)

    def round(self, backwards):
        requests = {f"{what} {codec}": (self.ours, {"what": what, "codec": codec, "k": K}, 3)
                    for what in ("encode", "decode") for codec in CODECS}
        for what in ("chunks", "global"):
            requests["torch.topk " + what] = (self.peer, {"what": what, "k": K}, 2)
        before, speeds = self.memcpy(), {}
        for name in sorted(requests, reverse=backwards):
            speeds[name] = self.best_of(*requests[name])
        return Round(before, self.memcpy(), speeds)

    def close(self):
        self.ours.close()
        self.peer.close()


def judge(kept, count):
    """Per contender milliseconds, and times of memcpy's time within a round."""
    rows = {}
    for name in kept[0].speeds:
        rows[name] = {"ms": 1e3 * count / statistics.median(r.speeds[name] for r in kept),
                      "memcpy_times": statistics.median(r.yardstick() / r.speeds[name] for r in kept)}
    ratios = {peer: statistics.median(r.speeds["encode topk"] / r.speeds["torch.topk " + peer] for r in kept)
              for peer in ("chunks", "global")}
    return rows, ratios


def report(bench, used, total, dropped):
    rows, ratios = judge(used, bench.count)
    ours, peer = bench.names
    copying = 1e3 * bench.count / statistics.median(r.yardstick() for r in used)
    print(f"{bench.count} values; ours: kernels {ours['details']}, one thread; {peer['name']}, {peer['details']}; "
          f"{total} rounds, the yardstick moved in {dropped}; load {os.getloadavg()[0]:.1f}")
    print(f"memcpy of the values: {copying:.2f} ms, {4e-6 * bench.count / copying:.1f} GB/s")
    print("| codec | bytes a value | encode ms | of memcpy's time | GB/s of fp32 | decode ms | of memcpy's time | GB/s |")
    print("|---|---|---|---|---|---|---|---|")
    for codec in CODECS:
        cells = "".join(f" {row['ms']:.2f} | {row['memcpy_times']:.2f} | {4e-6 * bench.count / row['ms']:.2f} |"
                        for row in (rows["encode " + codec], rows["decode " + codec]))
        print(f"| {codec} | {bench.bytes[codec]:.5f} |{cells}")
    for name in ("chunks", "global"):
        reached = "reached" if ratios[name] >= FASTER_THAN_TORCH else "MISSED"
        print(f"torch.topk {name}: {rows['torch.topk ' + name]['ms']:.1f} ms; top-k encode is {ratios[name]:.1f} times as "
              f"fast (target {FASTER_THAN_TORCH}: {reached})")
    times = rows["encode topk"]["memcpy_times"]
    print(f"top-k encode takes {times:.2f} times as long as memcpy (goal {GOAL_MEMCPY_TIMES}: "
          f"{'reached' if times <= GOAL_MEMCPY_TIMES else 'MISSED'})")
    return {"rows": rows, "ratios": ratios, "bytes": bench.bytes, "rounds": total, "dropped": dropped}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--count", type=int, default=2500 * 4096, help="a multiple of 4096")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        bench = Bench(options)
        with tempfile.TemporaryDirectory() as folder:
            bench.prepare(folder)
            bench.round(False)
            rounds = [bench.round(number % 2 == 1) for number in range(options.rounds)]
        bench.close()
    except Failed as failed:
        print(failed, file=sys.stderr)
        return failed.exit_code
    kept, dropped = summary(rounds)
    steady = bool(kept)
    if not steady:
        print("The yardstick moved in every round; the figures are of all rounds: inconclusive.")
    result = report(bench, kept or rounds, len(rounds), dropped)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({**result, "steady": steady}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
