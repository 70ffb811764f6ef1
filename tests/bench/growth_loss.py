#!/usr/bin/env python3
"""A model that grows in a live network: its held-out loss right before the change and right after it.

    growth_loss.py PROGRAMS TEXT [--kind dense|experts] [--to 4x128] [--rounds 30]

Three nodes train a model of two layers of width 64 until the learning rate, which ends at zero, is there after --rounds rounds. Then a fourth one
offers more memory, and the model grows. So steps that a node makes between an anchor and a checkpoint change nothing, and the two
checkpoints have what the network made of one anchor. The one before is what the node pins; the one after is saved before the first round of
the larger model ends. Prints one JSON object. Exit status 1: the losses differ by more than --within (1e-3).
"""
import json
import pathlib
import shutil
import sys
import tempfile
import time

from growth_run import BYTES, KINDS, LARGE_OFFER, SMALL_OFFER, Growing, split_text
from parts_run import arguments

STEPS = 50  # of a round, so that a checkpoint is saved before the first one of the larger model ends


def measure(a, folder, figures):
    split_text(a.text, folder)
    model = ["--layers", 2, "--hidden", 64, *BYTES, *KINDS[a.kind], "--batch-tokens", 768, "--h", STEPS,
             "--decay-steps", a.rounds * STEPS, "--final-learning-rate-percent", 0]
    network = Growing(a.programs, folder, a.kind, a.port, model, f"{a.to}@1GB/3.5GB", ["--checkpoint-min-interval", "1d"])
    try:
        network.start_all(3, SMALL_OFFER)
        node, layers = network.nodes[0], int(a.to.split("x")[0])
        network.wait_for(lambda: network.rounds(node).get("round", 0) > a.rounds, "too few rounds", 1200)
        network.start(LARGE_OFFER)
        network.wait_for(lambda: network.all_have(layers), "the model does not grow", 600)
        # Its own computation, or the anchor from another node.
        network.wait_for(lambda: network.rounds(node).get("agrees") and (network.status(node).get("training") or {}).get("last_step"),
                         "the node does not go on with the larger model")
        after = network.save(node)
        rounds_since = network.log(node).rpartition("starts anew with it")[2].count(" is certified with anchor ")
        if rounds_since:
            raise RuntimeError("the first round of the larger model ended before the checkpoint was saved")
        before = next(one["name"] for one in network.checkpoints(node) if one["pinned"])
        figures["before"], figures["after"] = (network.held_out_loss(node, name) for name in (before, after))
        figures["difference"] = figures["after"] - figures["before"]
        network.wait_for(network.together, "the four don't train together")
        figures["corruptions"] = sum(network.rounds(one)["corruptions"] for one in network.nodes)
        figures["differ"], figures["anchors"] = network.differing()
    finally:
        network.end()


def main():
    parser = arguments(__doc__, to="4x128", rounds=30, port=29700, within=1e-3)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--kind", choices=KINDS, default="dense")
    parser.add_argument("--keep-folder", action="store_true")
    a = parser.parse_args()
    folder, began = pathlib.Path(tempfile.mkdtemp()), time.monotonic()
    figures = {"kind": a.kind, "from": "2x64", "to": a.to}
    try:
        measure(a, folder, figures)
    except RuntimeError as error:
        figures["error"] = str(error)
    finally:
        if a.keep_folder:
            print(folder, file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    figures["seconds"] = round(time.monotonic() - began)
    print(json.dumps(figures))
    return 0 if "error" not in figures and abs(figures["difference"]) <= a.within and not figures["differ"] else 1


if __name__ == "__main__":
    sys.exit(main())
