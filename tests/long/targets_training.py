"""Training: what a kill and a memory limit do, what a model learns, low-communication training."""
import math
import os
import re
import statistics

import builds
import reading
from builds import NODE
from facts import ROOT, has_bf16
from registry import target

TEXT = os.path.join(builds.DATA, "tinyshakespeare.txt")


def functional(run, name, **environment):
    """A test of tests/functional at full length. It prints a line "MEASURED …" for each figure."""
    builds.release(run)
    test = builds.test(name)
    env = {**test.environment, "NS_LONG": "1", "QTEST_FUNCTION_TIMEOUT": "7200000", **environment}
    part = run.part(name, [*test.command, "-maxwarnings", "0"], reading.totals, env=env, loud=True)
    run.figures = part.figures
    return part


@target("kill", "50 kill -9 at random moments; the losses must equal an uninterrupted run's")
def kill(run):
    part = functional(run, "test_kill_resume")
    run.claim("Losses after kill -9 equal the uninterrupted run's, digit for digit", "all equal", "; ".join(part.figures.get("lines", [])), part.passed,
              "50 kills")


@target("memory", "the memory limit at three values, under a watchdog and, where possible, in a cgroup")
def memory(run):
    judge_limits(run, functional(run, "test_memory_limit"))


def judge_limits(run, part):
    """The test itself allows 5 % more, so that it holds on every machine."""
    lines = part.figures.get("lines", [])
    shares = [float(share) for line in lines for share in re.findall(r"\(([\d.]+) % of the limit\)", line)]
    run.claim("A memory limit holds for the whole process", "peak at most the limit", "; ".join(lines),
              part.passed and len(shares) == 3 and max(shares) <= 100, "3 limits")


def study(run, name, *options):
    """A profile, its run and the last evaluation over the whole held-out split. An interrupted run goes on from its checkpoint."""
    folder = run.folder / name
    folder.mkdir(exist_ok=True)
    run.part(f"{name}-profile", [NODE, "network", "create", "--from", "solo", "--name", name, "--layers", "4", "--hidden", "128",
             "--head-dim", "32", "--vocab", "266", "--sequence", "64", "--batch-tokens", "768", "--peak-lr", "1e-3", "--warmup", "100",
             "--decay-steps", "2000", "--force", "--out", folder / "profile.json", *options], files=[folder / "profile.json"])

    def read(output):
        rows = reading.all_json(output)
        steps = [row for row in rows if "loss" in row]
        evaluated = [row for row in rows if row.get("val_loss") is not None]
        best = min(evaluated, key=lambda row: row["val_loss"])
        return {"held_out": evaluated[-1]["val_loss"], "step": evaluated[-1]["step"], "bits_per_byte": evaluated[-1]["val_loss"] / math.log(2),
                "best": best["val_loss"], "best_step": best["step"], "training_loss": steps[-1]["loss"],
                "tokens_per_s": statistics.median(row["tokens_per_s"] for row in steps)}
    return run.part(name, [NODE, "train", "--text", TEXT, "--data-dir", folder / "data", "--profile", folder / "profile.json",
                    "--until-step", "2000", "--json", "--eval-interval-steps", "250", "--eval-tokens", "1000000000"], read, append=True)


@target("shakespeare", "the small nanoGPT setting on Tiny Shakespeare, dense and mixture of experts, 2000 steps")
def shakespeare(run):
    run.require(os.path.exists(TEXT), f"{TEXT} is not here")
    builds.release(run)
    # Vocabulary 266: the ten reserved ids and the bytes, so nats per token are nats per character.
    dense = study(run, "dense", "--experts", "1", "--experts-per-token", "1", "--ffn-percent", "300")
    moe = study(run, "moe", "--experts", "8", "--experts-per-token", "2", "--ffn-percent", "150")
    run.figures = {"dense": dense.figures, "moe": moe.figures}
    if dense.ok and moe.ok:
        d, m = dense.figures["held_out"], moe.figures["held_out"]
        run.claim("Tiny Shakespeare, dense, held-out loss after 2000 steps", "≤1.88 nats a character", f"{d:.4f}", d <= 1.88, 1)
        run.claim("Tiny Shakespeare, mixture of experts at equal active parameters", "≤ dense", f"{m:.4f}", m <= d, 1)


@target("diloco", "low-communication training on Tiny Shakespeare: workers, outer steps, codecs (hours; DILOCO_STEPS, DILOCO_PERIOD)")
def diloco(run):
    run.require(os.path.exists(TEXT), f"{TEXT} is not here")
    builds.release(run)
    # 160 rounds: what rounds cost is time, and the gates are not reached after 80 (docs/measurements.md).
    steps, period = os.environ.get("DILOCO_STEPS", "4000"), os.environ.get("DILOCO_PERIOD", "25")
    # Each finished run is a file of the folder: a second start goes on.
    part = run.part(f"study-{steps}-{period}", ["python3", ROOT / "tests/bench/diloco_study.py", builds.program("diloco_study"), TEXT,
                    run.folder / f"{steps}-{period}", "--steps", steps, "--period", period, "--jobs", str(os.cpu_count())], reading.table)
    run.figures = part.figures


PROCESS_RUNS = {
    "alone-4": ["--workers", "4", "--alone", "--lr", "2e-3"], "rounds-4": ["--workers", "4"],
    "rounds-4-slow": ["--workers", "4", "--slow", "1"], "rounds-4-killed": ["--workers", "4", "--kill", "10"],
    "rounds-8": ["--workers", "8", "--batch", "6"],
    "byzantine-ipm": ["--workers", "8", "--batch", "6", "--liars", "2", "--attack", "inner-product"],
    "byzantine-alie": ["--workers", "8", "--batch", "6", "--liars", "2", "--attack", "alie"],
}
# Claim, run, the run it is compared with, per cent of loss that it may cost.
PROCESS_GATES = [
    ("Four nodes against one process with their batch, 160 rounds", "rounds-4", "alone-4", 2.0),
    ("Eight nodes against one process with their batch, 160 rounds", "rounds-8", "alone-4", 4.0),
    ("Four nodes, one four times slower, against one process", "rounds-4-slow", "alone-4", 2.0),
    ("Four nodes, one killed every ten rounds, against four without kills", "rounds-4-killed", "rounds-4", 1.5),
    ("Two Byzantine nodes of eight, inner product, against eight honest ones", "byzantine-ipm", "rounds-8", 5.0),
    ("Two Byzantine nodes of eight, ALIE, against eight honest ones", "byzantine-alie", "rounds-8", 5.0),
]


@target("diloco-processes", "the same with real processes over loopback: 4 and 8 nodes, a slow one, a killed one, two Byzantine of 8 (an hour; DILOCO_ROUNDS)")
def diloco_processes(run):
    run.require(os.path.exists(TEXT), f"{TEXT} is not here")
    builds.release(run)
    losses = {}
    for name, words in PROCESS_RUNS.items():
        folder = run.folder / name
        # The outer rate 0.7 itself, not the table by contributors. The folder has to be new.
        command = ["python3", ROOT / "tests/bench/diloco_processes.py", NODE, TEXT, folder, *words, "--rounds",
                   os.environ.get("DILOCO_ROUNDS", "160"), "--outer-lr", "0.7001"]
        part = run.part(name, ["sh", "-c", 'rm -rf "$1" && shift && exec "$@"', "sh", folder, *command], reading.last_json)
        run.figures[name] = part.figures
        losses[name] = part.figures.get("loss")
    for claim, name, base, limit in PROCESS_GATES:
        if losses.get(name) and losses.get(base):
            more = 100 * (losses[name] / losses[base] - 1)
            run.claim(claim, f"≤ +{limit:g} %", f"{more:+.2f} % ({losses[name]:.4f}, {losses[base]:.4f})", more <= limit, 1)


@target("throughput", "tokens/s of four nodes in rounds beside the same four without a network, at 11 M parameters and 50 steps a round")
def throughput(run):
    run.require(os.path.exists(TEXT), f"{TEXT} is not here")
    builds.release(run)
    folder = run.folder / "nodes"
    part = run.part("throughput", ["sh", "-c", 'rm -rf "$1" && shift && exec "$@"', "sh", folder, "python3",
                    ROOT / "tests/bench/rounds_throughput.py", NODE, TEXT, folder], reading.last_json, missed=(1,))
    run.figures = part.figures
    if part.figures:
        turns = part.figures["turns"]
        run.claim("Four nodes in rounds beside the same four without a network, tokens/s", "≥ 0.97",
                  f"{part.figures['ratio']:.3f} ({', '.join(format(one['ratio'], '.3f') for one in turns)}); "
                  f"{turns[0]['rounds']['parameters'] / 1e6:.1f} M parameters", part.figures["ratio"] >= 0.97, f"{len(turns)} turns, interleaved")


LARGE = ["--layers", "9", "--hidden", "1024"]    # 111 million parameters
LARGER = ["--layers", "13", "--hidden", "1024"]   # 159 million
MIDDLE = ["--layers", "6", "--hidden", "512"]     # 19 million
SEVEN = ["--workers", "1", "--senders", "7"]
LONG_ROUNDS = ["--period", "48"]  # many senders need up to a minute for a round's payloads and anchor on one core
ALONE = ["--workers", "1", "--alone"]
BF16 = ["--precision", "bf16"]
# The options of a part, and its gate in bytes a parameter.
MEMORY_RUNS = {
    "alone-fp32": ([*LARGE, *ALONE], 18), "alone-bf16": ([*LARGE, *ALONE, *BF16], None),
    "alone-larger-fp32": ([*LARGER, *ALONE], 18),
    "seven-senders-fp32": ([*LARGE, *SEVEN, *LONG_ROUNDS], 20), "seven-senders-bf16": ([*LARGE, *SEVEN, *LONG_ROUNDS, *BF16], None),
    "delayed-8": ([*MIDDLE, *SEVEN, "--sync", "delayed-1"], None),
    "fragments-8": ([*MIDDLE, *SEVEN, "--sync", "fragments=2"], None),
    **{f"{codec}-{members}": ([*MIDDLE, "--workers", "1", "--senders", str(members - 1), "--codec", codec, *(LONG_ROUNDS if members == 16 else [])], None)
       for members in (2, 8, 16) for codec in ("fp32", "fp16", "int8", "int4", "topk")},
}
PLAN_GATE = 10  # per cent of the peak


@target("rounds-memory", "resident memory beside the memory plan: alone, in rounds of 2, 8 and 16, with every codec (an hour; MEMORY_RUNS: some parts only)")
def rounds_memory(run):
    run.require(os.path.exists(TEXT), f"{TEXT} is not here")
    builds.release(run)
    wanted = os.environ.get("MEMORY_RUNS", "").split() or MEMORY_RUNS
    for name in wanted:
        words, gate = MEMORY_RUNS[name]
        folder = run.folder / f"{name}-nodes"
        command = ["python3", ROOT / "tests/bench/rounds_memory.py", NODE, TEXT, folder, *words, "--plan-gate", PLAN_GATE,
                   *(["--gate", gate] if gate else [])]
        # Data directories take tens of gigabytes.
        part = run.part(name, ["sh", "-c", 'rm -rf "$1"; at=$1; shift; "$@"; status=$?; rm -rf "$at"; exit $status', "sh", folder, *command],
                        reading.last_json, missed=(1,))
        run.figures[name] = part.figures
        if part.figures:
            judge_memory(run, name, part.figures, gate)


def judge_memory(run, name, found, gate):
    peak, off = found["peak_bytes_a_parameter"], found["plan_off_per_cent"]
    run.claim(f"Peak resident memory beside the memory plan, {name}", f"within {PLAN_GATE} %", f"plan {off:+.1f} % of {found['peak_bytes'] / 2**20:.0f} MiB",
              abs(off) <= PLAN_GATE, 1)
    if gate:
        run.claim(f"Peak resident memory, {name}, {found['parameters'] / 1e6:.0f} M parameters", f"≤ {gate} bytes a parameter", f"{peak:.1f}", peak <= gate, 1)


@target("bf16-loss", "what bf16 does to the loss after 100 steps: several texts and first weights, ours and PyTorch (needs bf16 units)")
def bf16_loss(run):
    run.require(has_bf16(), "this processor has no bf16 units (AVX512_BF16 or AMX)")
    builds.release(run, "long")
    # Each finished run is a file of the folder: a second start goes on.
    part = run.part("study", ["python3", ROOT / "tests/bench/loss_study.py", "--ours", builds.program("bench_ours_server"), "--state",
                    run.folder / "runs"], lambda out: {"lines": [line for line in out.splitlines() if re.match(r"[a-z0-9]*: ", line)]}, loud=True)
    run.figures = part.figures
