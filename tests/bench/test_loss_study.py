#!/usr/bin/env python3
"""loss_study.py with contenders that make their losses up: what is run, what is kept, what is said."""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import loss_study  # noqa: E402
from workloads import prose  # noqa: E402

FAKE = [sys.executable, os.path.join(HERE, "fake_trainer.py")]
SHIFTS = {"ours fp32": 0, "ours bf16": 0.004, "ours bf16, attention widened": 0.02, "PyTorch fp32": 0.001,
          "PyTorch bf16": 0.001}


def check(condition, what):
    if not condition:
        sys.exit("FAILED: " + what)
    print("ok: " + what)


def main():
    check(prose(1000, 1) == prose(1000) and prose(1000, 2) != prose(1000), "texts differ by their number")
    who = {name: (FAKE + [str(shift)], dict(os.environ)) for name, shift in SHIFTS.items()}
    with tempfile.TemporaryDirectory() as state:
        options = loss_study.parse(["--ours", "-", "--state", state, "--rows", "tiny", "--texts", "2", "--seeds", "2"])
        said = []
        loss_study.run_all(options, who, said.append)
        check(len(said) == 20 and len(os.listdir(state)) == 20, "every text, first weights and contender is run")
        os.remove(loss_study.result_path(state, "tiny", 2, 1, "ours bf16"))
        again = []
        loss_study.run_all(options, who, again.append)
        check(len(again) == 1 and "text 2, weights 1, ours bf16: 4.0040" in again[0], "only what is missing is run again")
        found = loss_study.differences(options, "tiny", "ours bf16", "ours fp32")
        check(len(found) == 4 and all(abs(d - 0.004) < 1e-9 for d in found), "differences are those of the same run")
        lines = []
        loss_study.report(options, lines.append)
        check("mean +0.0040, SD 0.0000" in lines[1] and "4 of 4 within 0.005; A BIAS" in lines[1], "a bias is said")
        check("0 of 4 within" in lines[2], "what is beyond the tolerance is counted")
        check("no bias seen" in lines[3], "no difference is no bias")
    check("no bias seen" in loss_study.line("a", "b", [0.01, -0.012, 0.003]), "scatter about zero is no bias")
    check("too few" in loss_study.line("a", "b", [0.01]), "one run is inconclusive")


if __name__ == "__main__":
    main()
