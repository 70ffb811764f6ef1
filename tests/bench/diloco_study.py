#!/usr/bin/env python3
"""The study of low-communication training: one command, a table out.

    diloco_study.py PROGRAM TEXT FOLDER [--steps 2000] [--period 25] [--jobs 2] [--part PART]...

PROGRAM is build/release/tests/diloco_study. Each run's result is a file of FOLDER, so a stopped study goes on
where it was. Both sides get the best of a small grid of learning rates before anything is compared:

    base     data-parallel at the same global batch, one worker with a Kth of the tokens, plain averaging,
             DiLoCo, and DiLoCo with a worker that is four times slower; K = 4
    eight    DiLoCo with K = 8 at half of the batch each, so that the same data-parallel run stands beside it
    codecs   DiLoCo at its best setting through each dense codec
    sparse   the top-k codec with error feedback: density, beta, first rounds dense; without error feedback; the
             scheme of the first design; loss against bytes
    drop     DiLoCo where 30 % of all contributions miss their round, dense and with top-k
    sync     plain, delayed-1 and four fragments, by how many steps an anchor comes late, and by what share of its own
             weights a worker keeps then
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys

INNER = [1e-3, 2e-3, 4e-3, 8e-3]
OUTER = [(0.7, 0.8), (0.8, 0.7), (0.7, 0.9)]


class Study:
    def __init__(self, arguments):
        self.arguments = arguments
        os.makedirs(arguments.folder, exist_ok=True)

    def run(self, name, **flags):
        """The result of one run, made now or earlier."""
        a = self.arguments
        path = os.path.join(a.folder, name + ".json")
        if os.path.exists(path):
            with open(path) as file:
                return json.load(file)
        command = [a.program, "--text", a.text, "--steps", str(a.steps), "--period", str(a.period),
                   "--seed", str(a.seed)]
        for key, value in flags.items():
            command += ["--" + key.replace("_", "-"), str(value)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):  # 1: the program says what went wrong; else it crashed
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
        if done.returncode != 0:
            # A learning rate that is too high diverges: the program says so, and that is a result too.
            result = {"loss": float("inf"), "error": done.stderr.strip()}
        else:
            result = json.loads(done.stdout)
        result["flags"] = flags
        with open(path + ".part", "w") as file:
            json.dump(result, file)
        os.replace(path + ".part", path)
        print(f"  {name}: {result['loss']:.4f}", file=sys.stderr, flush=True)
        return result

    def all(self, runs):
        """{name: flags} → {name: result}, some of them at the same time."""
        with concurrent.futures.ThreadPoolExecutor(self.arguments.jobs) as pool:
            made = {name: pool.submit(self.run, name, **flags) for name, flags in runs.items()}
            return {name: future.result() for name, future in made.items()}

    def best(self, runs):
        results = self.all(runs)
        best = min(results.values(), key=lambda result: result["loss"])
        if "error" in best:
            raise SystemExit("all of these runs failed: " + ", ".join(results) + "; the last error: " + best["error"])
        return best

    def data_parallel(self, workers):
        return self.best({f"dp-k{workers}-lr{lr:g}": dict(mode="data-parallel", workers=workers, lr=lr)
                          for lr in INNER})

    def diloco(self, workers, **more):
        # The inner rate at one outer setting, then the outer setting at the best inner rate.
        lr0, mu0 = OUTER[0]
        inner = self.best({f"diloco-k{workers}-lr{lr:g}-o{lr0:g}-m{mu0:g}":
                           dict(workers=workers, lr=lr, outer_lr=lr0, outer_mu=mu0, **more) for lr in INNER[1:]})
        rate = inner["flags"]["lr"]
        return self.best({f"diloco-k{workers}-lr{rate:g}-o{lr:g}-m{mu:g}":
                          dict(workers=workers, lr=rate, outer_lr=lr, outer_mu=mu, **more) for lr, mu in OUTER})


class Table:
    def __init__(self, reference):
        self.reference = reference
        print("| run | setting | loss | against the first row | bytes per parameter and round |\n|---|---|---|---|---|")

    def row(self, name, result):
        flags = result["flags"]
        parts = [f"{key} {flags[key]:g}" if isinstance(flags[key], float) else f"{key} {flags[key]}"
                 for key in flags if key not in ("mode",)]
        difference = 100 * (result["loss"] / self.reference["loss"] - 1)
        size = result.get("bytes_per_parameter", 0)
        print(f"| {name} | {', '.join(parts)} | {result['loss']:.4f} | {difference:+.2f} % | "
              f"{f'{size:.4f}' if size else ''} |", flush=True)


def base(study):
    reference = study.data_parallel(4)
    table = Table(reference)
    table.row("data-parallel, the same global batch", reference)
    ours = study.diloco(4)
    table.row("DiLoCo", ours)
    flags = dict(ours["flags"])
    table.row("DiLoCo, one worker four times slower", study.run("diloco-k4-slow", **{**flags, "slow": 1}))
    averaging = study.best({f"average-k4-lr{lr:g}": {**flags, "lr": lr, "outer_lr": 1.0, "outer_mu": 0.0}
                            for lr in sorted({flags["lr"], 2e-3})})
    table.row("plain averaging", averaging)
    table.row("one worker, a quarter of the tokens",
              study.best({f"dp-k1-lr{lr:g}": dict(mode="data-parallel", workers=1, lr=lr) for lr in INNER[1:]}))


def eight(study):
    reference = study.data_parallel(4)
    table = Table(reference)
    table.row("data-parallel, the same global batch", reference)
    table.row("DiLoCo", study.diloco(8, batch=6))


def codecs(study):
    reference = study.diloco(4)
    table = Table(reference)
    table.row("fp32", reference)
    for codec in ("fp16", "int8", "int4"):
        table.row(codec, study.run(f"codec-{codec}", **{**reference["flags"], "codec": codec}))


def sparse(study):
    dense = study.diloco(4)
    table = Table(dense)
    table.row("dense fp32", dense)
    lr = dense["flags"]["lr"]
    plain = dict(workers=4, lr=lr, outer_lr=1.0, outer_mu=0.0, codec="topk")
    runs = {f"topk-k{k}": {**plain, "k": k} for k in (64, 128, 256, 512)}
    runs.update({
        "topk-k64-no-feedback": {**plain, "k": 64, "beta": 0.0},
        "topk-k64-beta0.99": {**plain, "k": 64, "beta": 0.99},
        "topk-k64-beta0.9": {**plain, "k": 64, "beta": 0.9},
        "topk-k256-beta0.99": {**plain, "k": 256, "beta": 0.99},
        "topk-k64-dense8": {**plain, "k": 64, "dense_rounds": 8},
        "topk-k256-dense8": {**plain, "k": 256, "dense_rounds": 8},
        "topk-k256-momentum": {**plain, "k": 256, "outer_lr": 0.7, "outer_mu": 0.6},
        "seed-topk": {**plain, "codec": "seed-topk"},
    })
    for name, result in study.all(runs).items():
        table.row(name, result)


def drop(study):
    ours = study.diloco(4)
    table = Table(ours)
    table.row("DiLoCo", ours)
    table.row("30 % dropped", study.run("drop", **{**ours["flags"], "drop": 0.3}))
    table.row("30 % dropped, int8", study.run("drop-int8", **{**ours["flags"], "drop": 0.3, "codec": "int8"}))
    sparse = {**ours["flags"], "outer_lr": 1.0, "outer_mu": 0.0, "codec": "topk", "k": 512}
    table = Table(study.run("topk-k512", **sparse))
    table.row("top-k 512, 30 % dropped", study.run("drop-topk", **{**sparse, "drop": 0.3}))


def sync(study):
    plain = study.diloco(4)
    table = Table(plain)
    table.row("plain", plain)
    late = study.arguments.period // 5
    for name in ("delayed-1", "fragments=4"):
        for delay, mix in ((1, 0.0), (late, 0.0), (late, 0.5)):
            flags = {**plain["flags"], "sync": name, "delay": delay, "mix": mix}
            table.row(name, study.run(f"sync-{name}-{delay}-{mix:g}", **flags))


def main():
    parts = dict(base=base, eight=eight, codecs=codecs, sparse=sparse, drop=drop, sync=sync)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("text")
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=2000, help="inner steps of each worker")
    parser.add_argument("--period", type=int, default=25, help="inner steps between two rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    parser.add_argument("--part", action="append", choices=list(parts), help="more than once; default all")
    arguments = parser.parse_args()
    study = Study(arguments)
    for name in arguments.part or parts:
        print(f"\n{name}: {arguments.steps} steps, {arguments.period} a round\n")
        parts[name](study)


if __name__ == "__main__":
    main()
