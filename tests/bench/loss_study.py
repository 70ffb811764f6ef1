#!/usr/bin/env python3
"""Whether bf16 moves the loss after 100 steps to one side, or only scatters it: several texts and first weights.

  loss_study.py --ours build/release/tests/bench_ours_server --state FOLDER [--rows nanogpt dense25m] [--texts 6] [--seeds 2]

Trains the same model from the same weights on the same batches in each way of computing, and compares the mean loss of
the last ten steps with that of the same side in fp32. Every finished run is a file in FOLDER and is not done again, so
the study may be stopped at any time. A difference of chance has a mean within about two standard errors of zero.
Exit: 0 done, 1 failed, 69 this processor has no bf16 units, 77 PyTorch is missing.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

from contenders import Child, Failed, has_bf16_units, peer_environment, settings_of
from workloads import ROWS, make_inputs

HERE = os.path.dirname(os.path.abspath(__file__))
TOLERANCE = 0.005
STEPS = 100
LAST = 10
# Name, and what its losses are compared with.
COMPARED = (("ours bf16", "ours fp32"), ("ours bf16, attention widened", "ours fp32"),
            ("PyTorch bf16", "PyTorch fp32"), ("ours fp32", "PyTorch fp32"))


def contenders(options):
    threads = str(options.threads)
    plain, peer = settings_of(options.threads, {}), peer_environment(options, options.coretype, None)
    return {"ours fp32": ([options.ours, "fp32", threads], plain),
            "ours bf16": ([options.ours, "bf16", threads], plain),
            "ours bf16, attention widened": ([options.ours, "bf16", threads, "bf16-widened"], plain),
            "PyTorch fp32": (options.peer + ["--precision", "fp32", "--threads", threads], peer),
            "PyTorch bf16": (options.peer + ["--precision", "bf16", "--threads", threads], peer)}


def result_path(folder, row, text, seed, name):
    return os.path.join(folder, f"{row}-text{text}-seed{seed}-{name.replace(', ', '-').replace(' ', '-')}.json")


def write_result(path, value):
    with open(path + ".new", "w") as file:
        json.dump(value, file)
    os.replace(path + ".new", path)


def train(command, environment, request, steps):
    child = Child(command, environment)
    try:
        child.ask({"do": "hello"})
        child.ask({"do": "prepare", **request})
        return child.ask({"do": "steps", "count": steps})["values"]
    finally:
        child.close()


def run_all(options, who, say=print):
    """Every run that is not done yet."""
    os.makedirs(options.state, exist_ok=True)
    for name in options.rows:
        for text in range(1, options.texts + 1):
            for seed in range(1, options.seeds + 1):
                missing = [n for n in who if not os.path.exists(result_path(options.state, name, text, seed, n))]
                if not missing:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    writer = Child(*who["ours fp32"])
                    try:
                        request = make_inputs({**ROWS[name], "text": text, "seed": seed}, folder, writer)
                    finally:
                        writer.close()
                    for contender in missing:
                        losses = train(*who[contender], request, options.steps)
                        write_result(result_path(options.state, name, text, seed, contender), losses)
                        say(f"{name}, text {text}, weights {seed}, {contender}: {sum(losses[-LAST:]) / LAST:.4f}")


def differences(options, row, name, base):
    """Of the mean loss of the last steps, one for each text and first weights that both have finished."""
    result = []
    for text in range(1, options.texts + 1):
        for seed in range(1, options.seeds + 1):
            paths = [result_path(options.state, row, text, seed, n) for n in (name, base)]
            if all(map(os.path.exists, paths)):
                mine, theirs = (json.load(open(path)) for path in paths)
                result.append((sum(mine[-LAST:]) - sum(theirs[-LAST:])) / LAST)
    return result


def line(name, base, values):
    if len(values) < 2:
        return f"{name} - {base}: {len(values)} runs, too few"
    mean, deviation = statistics.mean(values), statistics.stdev(values)
    error = deviation / len(values) ** 0.5
    within = sum(abs(v) <= TOLERANCE for v in values)
    bias = "no bias seen" if abs(mean) <= 2 * error or abs(mean) < 1e-6 else "A BIAS"
    return (f"{name} - {base}: mean {mean:+.4f}, SD {deviation:.4f}, standard error {error:.4f}, largest "
            f"{max(values, key=abs):+.4f}, {within} of {len(values)} within {TOLERANCE}; {bias}")


def report(options, say=print):
    for row in options.rows:
        say(f"{row}: {ROWS[row]['description']}; loss after {options.steps} steps")
        for name, base in COMPARED:
            say("  " + line(name, base, differences(options, row, name, base)))


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="the program bench_ours_server")
    parser.add_argument("--state", required=True, help="a folder for what is finished")
    parser.add_argument("--peer", nargs="+", default=["/usr/bin/python3", os.path.join(HERE, "torch_peer.py")])
    parser.add_argument("--rows", nargs="+", choices=sorted(n for n in ROWS if ROWS[n]["kind"] == "model"),
                        default=["nanogpt", "dense25m"])
    parser.add_argument("--texts", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=2, help="first weights for each text")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--blas", default="openblas", help="of the peer: openblas, system, or a library's path")
    parser.add_argument("--coretype", help="OPENBLAS_CORETYPE")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if not has_bf16_units():
        print("This processor has no bf16 units: the study can't run here. It needs AVX512_BF16 or AMX.",
              file=sys.stderr)
        return 69
    try:
        run_all(options, contenders(options), lambda text: print(text, flush=True))
    except Failed as failed:
        print(f"error: {failed}", file=sys.stderr)
        return failed.exit_code
    report(options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
