#!/usr/bin/env python3
"""Our training beside PyTorch's, in one interleaved run.

  compare.py --ours build/release/tests/bench_ours_server [--rows nanogpt dense25m moe-layer adamw] [--alone] [--json FILE]

Each contender is a process that lives through the run and takes turns: a request on its standard input is a batch of
steps, the answer seconds and losses. The first step of a turn is not timed. All start from the same weights and see the same batches. A round is the matrix
product of ours (the yardstick), every contender, the yardstick again; rounds whose yardstick moved by more than 15 %
are dropped; ratios are those of medians and of bests. The losses after the run must agree.

The peer is PyTorch as somebody sets it up who wants speed: OpenBLAS with OpenMP (package libopenblas0-openmp), the
core type and the vector kernels that are fastest here, as many threads as ours. A row whose peer multiplies matrices
at less than 70 % of our rate is refused: such a peer is badly configured.
A PyTorch process is faster when it runs alone than when it takes turns. --alone ends all contenders after the rounds and
lets each PyTorch train as many rounds without the others; ours, which took turns, is then compared with that as well.
Exit: 0 measured, 1 failed or refused or losses that differ, 77 PyTorch is missing.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

from contenders import Child, Failed, has_bf16_units, peer_environment, settings_of, tune
from rounds import Round, judge, summary
from workloads import ROWS, make_inputs

GEMM_FLOOR = 0.70
LOSS_TOLERANCE = 0.005
HERE = os.path.dirname(os.path.abspath(__file__))


def gemm_rate(child, precision, side, tries=6):
    """Best of some tries, in operations per second; 0 where it has no such product. The threads of a process need a
    moment until each has a core of its own."""
    best = 0.0
    for _ in range(tries):
        answer = child.ask({"do": "gemm", "precision": precision, "side": side, "repeats": 24}, may_fail=True)
        if answer is None:
            return 0.0
        best = max(best, answer["operations"] / answer["seconds"])
    return best


def gemm_check(ours, peer, precision, side, floor):
    """Whether the peer multiplies matrices well enough to be compared with, and how to say it."""
    mine, theirs = gemm_rate(ours, precision, side), gemm_rate(peer, precision, side)
    note = f"{precision} product of side {side}: peer {theirs / 1e9:.0f} GFLOP/s, ours {mine / 1e9:.0f}"
    if mine == 0:
        return True, f"{note}; ours has no {precision} product here to compare with"
    if theirs < floor * mine and precision == "bf16":
        # PyTorch packs the weights again for each product. That is the library, not its configuration.
        plain = gemm_rate(ours, "bf16-plain", side)
        note += f"; oneDNN without packing beforehand {plain / 1e9:.0f}, which is the measure of the peer here"
        mine = plain
    if theirs < floor * mine:
        return False, f"{note}: below {floor:.0%}, so the peer is badly configured and nothing is compared"
    return True, note


class Row:
    """One workload with its contenders."""

    def __init__(self, name, row, options, folder, environment):
        self.name, self.row, self.options, self.folder, self.environment = name, row, options, folder, environment
        self.children, self.values, self.notes, self.request = {}, {}, [], None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for child in self.children.values():
            child.close()

    def start(self):
        o = self.options
        for precision in o.precisions:
            self.children["ours " + precision] = Child([o.ours, precision, str(o.threads)], settings_of(o.threads, {}))
        for precision in sorted({peer for peer, _, _ in self.row["targets"]}):
            self.children["PyTorch " + precision] = Child(
                o.peer + ["--precision", precision, "--threads", str(o.threads)], self.environment)
        usable = {}
        for name, child in self.children.items():
            try:
                hello = child.ask({"do": "hello"})
            except Failed as failed:
                if name == "ours " + self.reference():
                    raise
                self.notes.append(f"{name} is left out: {failed}")
                continue
            usable[name] = child
            self.notes.append(f"{name}: {hello['name']}, {hello['precision']}, {hello['threads']} threads, "
                              f"{hello['details']}")
        self.children = usable

    def reference(self):
        return self.options.precisions[0]

    def ours(self):
        return self.children["ours " + self.reference()]

    def check_gemm(self):
        ok = True
        for name, child in self.children.items():
            if name.startswith("PyTorch"):
                precision = name.split()[1]
                mine = self.children.get("ours " + precision, self.ours())
                good, note = gemm_check(mine, child, precision, self.options.gemm_side, self.options.gemm_floor)
                self.notes.append(note)
                ok = ok and good
        return ok

    def prepare(self):
        self.request = make_inputs(self.row, self.folder, self.ours())
        for name, child in self.children.items():
            choices = child.ask({"do": "prepare", **self.request})["choices"]
            if choices:
                self.notes.append(f"{name} chose " + ", ".join(f"{k} {v}" for k, v in choices.items()))
        self.values = {name: [] for name in self.children}

    def yardstick(self):
        o = self.options
        answer = self.ours().ask({"do": "gemm", "precision": "fp32", "side": o.gemm_side, "repeats": o.gemm_repeats})
        return answer["operations"] / answer["seconds"]

    def turn(self, name):
        # While the others had their turns, the caches and, on some systems, pages of this process went to them: the
        # first step brings them back and is not timed.
        child, timed = self.children[name], self.row["steps"] - 1
        self.values[name] += child.ask({"do": "steps", "count": 1})["values"]
        answer = child.ask({"do": "steps", "count": timed})
        self.values[name] += answer["values"]
        return self.row["units_per_step"] * timed / answer["seconds"]

    def run(self):
        rounds = []
        for number in range(self.row["rounds"] + 1):
            before = self.yardstick()
            order = list(self.children) if number % 2 == 0 else list(self.children)[::-1]
            speeds = {name: self.turn(name) for name in order}
            rounds.append(Round(before, self.yardstick(), speeds))
        return rounds[1:]  # the first one warms caches and clocks

    def alone(self):
        """Speeds of each PyTorch as the only contender that is alive. Ends all contenders."""
        peers = [name for name in self.children if name.startswith("PyTorch")]
        for child in self.children.values():
            child.close()
        self.children, found = {}, {}
        o, timed = self.options, self.row["steps"] - 1
        for name in peers:
            child = Child(o.peer + ["--precision", name.split()[1], "--threads", str(o.threads)], self.environment)
            self.children = {name: child}
            child.ask({"do": "hello"})
            child.ask({"do": "prepare", **self.request})
            speeds = []
            for _ in range(self.row["rounds"] + 1):
                child.ask({"do": "steps", "count": 1})
                speeds.append(self.row["units_per_step"] * timed / child.ask({"do": "steps", "count": timed})["seconds"])
            child.close()
            self.children = {}
            found[name] = {"median": statistics.median(speeds[1:]), "best": max(speeds[1:])}
        return found


def compare_values(row, values):
    """Differences of what all contenders computed, against PyTorch in fp32 where it takes part."""
    base = "PyTorch fp32" if "PyTorch fp32" in values else next(n for n in values if n.startswith("PyTorch"))
    last = row["compared"]
    result = {}
    for name, series in values.items():
        if name != base and last:
            mine, theirs = series[-last:], values[base][-last:]
            result[name] = {"first": series[0], "first_of_peer": values[base][0], "last": sum(mine) / last,
                            "last_of_peer": sum(theirs) / last, "peer": base, "steps": len(series),
                            "difference": abs(sum(mine) - sum(theirs)) / last}
    return result


def losses_agree(row, differences):
    """Ours within the tolerance of PyTorch in fp32, in each precision."""
    tolerance = LOSS_TOLERANCE * row.get("scale", 1.0)
    return all(value["difference"] <= tolerance for name, value in differences.items() if name.startswith("ours"))


def measure(name, row, options, environment):
    with tempfile.TemporaryDirectory() as folder, Row(name, row, options, folder, environment) as running:
        running.start()
        if not running.check_gemm():
            return {"row": name, "refused": running.notes[-1], "notes": running.notes}
        running.prepare()
        kept, dropped = summary(running.run())
        speeds = judge(row, kept)
        values = compare_values(row, running.values)
        ok = losses_agree(row, values)
        if options.alone and kept:
            speeds["alone"] = running.alone()
            for ratio in speeds["ratios"]:
                ratio["of_alone"] = speeds["speeds"][ratio["ours"]]["median"] / speeds["alone"][ratio["peer"]]["median"]
        return {"row": name, "description": row["description"], "unit": row["unit"], "kept": len(kept),
                "dropped": dropped, "steady": len(kept) >= min(5, row["rounds"]), **speeds, "values": values,
                "values_agree": ok, "notes": running.notes}


def print_row(result):
    print(f"\n{result['row']}: {result.get('description', '')}")
    if "refused" in result:
        print("  REFUSED: " + result["refused"])
    else:
        print(f"  {'':<16} {'median':>12} {'best':>12}  {result['unit']}")
        for name, speed in sorted(result["speeds"].items()):
            print(f"  {name:<16} {speed['median']:>12.0f} {speed['best']:>12.0f}")
        for ratio in result["ratios"]:
            line = (f"  {ratio['ours']} / {ratio['peer']}: {ratio['of_medians']:.2f} of medians, "
                    f"{ratio['of_bests']:.2f} of bests")
            if "of_alone" in ratio:
                line += f", {ratio['of_alone']:.2f} of the peer alone"
            if ratio.get("verdict"):
                line += f"; target {ratio['first']}, later {ratio['goal'] or 'the memory limit'}: {ratio['verdict']}"
            print(line)
        for name, value in result["values"].items():
            print(f"  {result['unit_of_values']} of {name} and {value['peer']}: {value['first']:.4f} and "
                  f"{value['first_of_peer']:.4f} at first, {value['last']:.4f} and {value['last_of_peer']:.4f} after "
                  f"{value['steps']} steps; difference {value['difference']:.5f}")
        if not result["values_agree"]:
            print("  THE LOSSES DIFFER: the contenders do not compute the same")
        print(f"  {result['kept']} rounds kept, {result['dropped']} dropped"
              + ("" if result["steady"] else "; too few steady rounds: inconclusive"))
    for note in result["notes"]:
        print("    " + note)
    sys.stdout.flush()


def in_precisions(row, precisions):
    """The row with the peers of these precisions; a row whose peer is bf16 alone is held to its fp32 without."""
    targets = [t for t in row["targets"] if t[0] in precisions] or [("fp32", *t[1:]) for t in row["targets"]]
    return {**row, "targets": targets}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="the program bench_ours_server")
    parser.add_argument("--peer", nargs="+", default=["/usr/bin/python3", os.path.join(HERE, "torch_peer.py")])
    parser.add_argument("--rows", nargs="+", choices=sorted(ROWS), default=[n for n in ROWS if n != "tiny"])
    parser.add_argument("--precisions", nargs="+", choices=("fp32", "bf16"), default=["fp32", "bf16"], help="of ours")
    parser.add_argument("--rounds", type=int, help="timed rounds of each row")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--blas", default="openblas", help="openblas, system, or the path of a library to preload")
    parser.add_argument("--coretype", help="OPENBLAS_CORETYPE; by default the fastest of those that exist")
    parser.add_argument("--capability", choices=("default", "avx2", "avx512"), help="ATEN_CPU_CAPABILITY; ditto")
    parser.add_argument("--gemm-floor", type=float, default=GEMM_FLOOR)
    parser.add_argument("--gemm-side", type=int, default=1024)
    parser.add_argument("--gemm-repeats", type=int, default=16)
    parser.add_argument("--alone", action="store_true", help="measure each PyTorch alone as well")
    parser.add_argument("--json", help="a file for the results")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if "bf16" in options.precisions and not has_bf16_units():
        print("no bf16 units in this processor: fp32 only")
        options.precisions = ["fp32"]
    results = []
    try:
        environment, chosen = tune(options) if options.blas == "openblas" else (
            peer_environment(options, options.coretype, options.capability), "BLAS: " + options.blas)
        print(chosen)
        for name in options.rows:
            row = in_precisions(ROWS[name], options.precisions)
            row["rounds"] = options.rounds or row["rounds"]
            try:
                results.append(measure(name, row, options, environment))
            except Failed as failed:
                if failed.exit_code == 77:
                    raise
                results.append({"row": name, "refused": str(failed), "notes": []})
            print_row(results[-1])
    except Failed as failed:
        print(f"error: {failed}", file=sys.stderr)
        return failed.exit_code
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"peer": chosen, "rows": results}, file, indent=1)
            file.write("\n")
    return 0 if all(r.get("values_agree") for r in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
