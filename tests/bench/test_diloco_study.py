#!/usr/bin/env python3
"""The study's program with the real compute module on a small text: what its rows mean, and that a stopped study goes on.

    test_diloco_study.py PROGRAM
"""
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from workloads import prose  # noqa: E402

SMALL = ["--layers", "1", "--hidden", "32", "--sequence", "16", "--batch", "4", "--steps", "20", "--period", "5",
         "--lr", "0.01", "--evaluations", "1"]


def check(condition, what):
    if not condition:
        sys.exit("FAILED: " + what)
    print("ok: " + what)


def run(program, text, *flags):
    done = subprocess.run([program, "--text", text, *SMALL, *flags], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("FAILED: " + done.stderr)
    return json.loads(done.stdout)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "text")
        with open(text, "w", encoding="utf-8") as file:
            file.write(prose(20000))
        alone = run(program, text, "--mode", "data-parallel", "--workers", "1")
        check(alone["loss"] < 0.9 * math.log(len(set(prose(20000)))), "training lowers the loss")
        # Outer step with lr 1 and mu 0 of one worker: its own weights, up to the rounding of the delta.
        itself = run(program, text, "--workers", "1", "--outer-lr", "1", "--outer-mu", "0")
        check(abs(itself["loss"] - alone["loss"]) < 1e-4, "one worker with lr 1 and mu 0 reproduces itself")
        fp32 = run(program, text, "--workers", "2", "--outer-lr", "0.7", "--outer-mu", "0.8")
        check(fp32["rounds"] == 4 and fp32["tokens"] == 2 * alone["tokens"], "two workers train twice the tokens")
        check(abs(fp32["bytes_per_parameter"] - 4) < 0.01, "fp32 sends four bytes for each parameter")
        int4 = run(program, text, "--workers", "2", "--outer-lr", "0.7", "--outer-mu", "0.8", "--codec", "int4")
        check(int4["bytes_per_parameter"] < 0.53 and 0 < abs(int4["loss"] - fp32["loss"]) < 0.1,
              "int4 sends half a byte and changes the run a little")
        slow = run(program, text, "--workers", "2", "--slow", "1")
        check(slow["tokens"] == fp32["tokens"] * 5 // 8, "a slow worker does a quarter of the steps")
        # An anchor that comes at once is a plain round; later it is another run, and in parts it is as many bytes.
        pair = ["--workers", "2", "--outer-lr", "0.7", "--outer-mu", "0.8"]
        at_once = run(program, text, *pair, "--sync", "delayed-1", "--delay", "0")
        check(abs(at_once["loss"] - fp32["loss"]) < 1e-4, "delayed by nothing is a plain round")
        late = run(program, text, *pair, "--sync", "delayed-1", "--delay", "2")
        parts = run(program, text, *pair, "--sync", "fragments=2", "--delay", "2")
        check(len({round(one["loss"], 6) for one in (fp32, late, parts)}) == 3, "a delay and fragments change the run")
        check(parts["rounds"] == 4 and abs(parts["bytes_per_parameter"] - 4) < 0.02, "fragments send as many bytes")
        check(parts["anchor_loss"] != parts["loss"] and fp32["anchor_loss"] == fp32["loss"],
              "the anchors are measured apart from the worker's own weights")
        again = run(program, text, "--workers", "2", "--outer-lr", "0.7", "--outer-mu", "0.8")
        check(again == fp32, "the same flags give the same run")

        # The driver: its runs stand in files, and one that is there is not made again.
        command = [sys.executable, os.path.join(HERE, "diloco_study.py"), program, text, os.path.join(folder, "out"),
                   "--steps", "2", "--period", "1", "--part", "codecs"]
        first = subprocess.run(command, capture_output=True, text=True, check=True)
        check(first.stdout.count("\n| ") == 5 and "| int8 |" in first.stdout, "the table has a row for each codec")
        second = subprocess.run(command, capture_output=True, text=True, check=True)
        check(second.stdout == first.stdout and not second.stderr, "a second start makes nothing again")


main()
