#!/usr/bin/env python3
"""compare.py end to end at a tiny size: the protocol, the losses, the refusal of a bad peer, the rules for rounds.

  test_compare.py OURS      exit 77 if PyTorch is missing; no speed is asserted
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from compare import LOSS_TOLERANCE, compare_values, in_precisions, losses_agree  # noqa: E402
from rounds import Round, judge, summary  # noqa: E402

PYTHON = "/usr/bin/python3"


def compare(ours, *more):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        done = subprocess.run([PYTHON, os.path.join(HERE, "compare.py"), "--ours", ours, "--rows", "tiny", "--blas", "system",
                               "--precisions", "fp32", "--rounds", "3", "--gemm-side", "64", "--gemm-repeats", "1",
                               "--threads", "1", "--json", path, *more], capture_output=True, text=True)
        if done.returncode == 77:
            print(done.stderr)
            sys.exit(77)
        if not os.path.exists(path):
            sys.exit(f"no result: exit {done.returncode}\n{done.stdout}{done.stderr}")
        with open(path) as file:
            return done.returncode, json.load(file), done.stdout


def check(condition, what):
    if not condition:
        sys.exit("FAILED: " + what)
    print("ok: " + what)


def test_rounds():
    steady = [Round(100, 102, {"ours fp32": 4, "PyTorch fp32": 2}), Round(98, 100, {"ours fp32": 6, "PyTorch fp32": 2}),
              Round(100, 100, {"ours fp32": 6, "PyTorch fp32": 2})]
    moved = [Round(100, 150, {"ours fp32": 99, "PyTorch fp32": 1}), Round(60, 60, {"ours fp32": 99, "PyTorch fp32": 1})]
    kept, dropped = summary(steady + moved)
    check(len(kept) == 3 and dropped == 2, "rounds in which the yardstick moved are dropped")
    row = {"targets": [("fp32", 1.5, 3.5)], "unit_of_values": "loss"}
    ratio = judge(row, kept)["ratios"][0]
    check(ratio["of_medians"] == 3 and ratio["of_bests"] == 3 and ratio["verdict"] == "first", "ratios and verdict")
    row["targets"] = [("fp32", 3.5, 4)]
    check(judge(row, kept)["ratios"][0]["verdict"] == "missed", "a missed target is said to be missed")


def test_losses():
    row = {"compared": 2}
    values = {"PyTorch fp32": [9.0, 4.0, 2.0], "PyTorch bf16": [9.0, 4.5, 2.5], "ours fp32": [9.0, 4.001, 2.001],
              "ours bf16": [9.0, 4.5, 2.5]}
    differences = compare_values(row, values)
    check(abs(differences["ours fp32"]["difference"] - 0.001) < 1e-9, "the difference is that of the last steps' means")
    check(not losses_agree(row, differences), "agreeing with the peer's bf16 alone does not count")
    values["ours bf16"] = [9.0, 4.004, 2.004]
    check(losses_agree(row, compare_values(row, values)), "the peer's own bf16 is not judged")
    check(LOSS_TOLERANCE == 0.005 and not losses_agree({"compared": 2, "scale": 0.1}, compare_values(row, values)),
          "a row may ask for more")


def test_precisions():
    row = {"targets": [("fp32", 2, 3), ("bf16", 1, 1.5)]}
    check(in_precisions(row, ["fp32", "bf16"])["targets"] == row["targets"], "each peer where bf16 can be computed")
    check(in_precisions(row, ["fp32"])["targets"] == [("fp32", 2, 3)], "no bf16 peer without bf16")
    row = {"targets": [("bf16", 1.3, 1.9)]}
    check(in_precisions(row, ["fp32"])["targets"] == [("fp32", 1.3, 1.9)], "then fp32 is held to the row's target")


def main(ours):
    test_rounds()
    test_precisions()
    test_losses()
    code, result, text = compare(ours, "--peer", PYTHON, os.path.join(HERE, "fake_peer.py"))
    refused = result["rows"][0].get("refused", "")
    check(code == 1 and "badly configured" in refused and "speeds" not in result["rows"][0], "a slow peer is refused")
    check("REFUSED" in text, "the table says so")
    code, result, text = compare(ours, "--gemm-floor", "0", "--alone")
    row = result["rows"][0]
    value = row["values"].get("ours fp32") or sys.exit("no losses in " + json.dumps(row))
    check(value["steps"] == 20 and value["difference"] < 0.005, f"losses agree to {value['difference']:.6f}")
    check(value["last"] < value["first"] - 0.02, f"the loss falls: {value['first']:.4f} to {value['last']:.4f}")
    check(code == 0 and row["values_agree"], "exit code 0")
    check(row["kept"] + row["dropped"] == 3, "every round is accounted for")
    check(not row["kept"] or row["alone"]["PyTorch fp32"]["median"] > 0 and row["ratios"][0]["of_alone"] > 0, "the peer also trains alone")
    check("PyTorch fp32" in text and "tokens/s" in text, "the table names the peer")


if __name__ == "__main__":
    main(sys.argv[1])
