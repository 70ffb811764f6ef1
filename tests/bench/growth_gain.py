#!/usr/bin/env python3
"""A model that grows in a live network beside one that keeps its size: held-out loss after as many tokens.

    growth_gain.py PROGRAMS TEXT FOLDER [--to 4x128] [--grow-at 24] [--rounds 60]

Two networks, one after the other, with one profile, and so with the same first weights. Three nodes train a model of two layers of width 64.
When the network has --grow-at rounds, a fourth node comes. In the first network it offers 3 GiB, and the model grows; training goes on for
--rounds rounds. In the other network it offers 1 GiB, so the model keeps its size; training goes on until its members have trained as many
tokens. Checkpoints of anchors on the way are measured at the end. FOLDER keeps the courses, so a second start does not train a finished
network again. Prints one JSON object. Exit status 1: the model that grew has no lower loss at the end.
"""
import json
import pathlib
import shutil
import sys
import time

from growth_run import BYTES, KINDS, LARGE_OFFER, SMALL_OFFER, Growing, split_text
from parts_run import arguments

H, BATCH, POINTS = 25, 768, 6


class Course:
    """A network on its way."""

    def __init__(self, a, name):
        steps = (a.grow_at + a.rounds + 20) * H
        model = ["--layers", 2, "--hidden", 64, *BYTES, *KINDS["dense"], "--batch-tokens", BATCH, "--h", H, "--decay-steps", steps]
        self.network = Growing(a.programs, a.folder, name, a.port, model, f"{a.to}@1GB/3.5GB", ["--checkpoint-keep-last", 1000, "--daily-write-budget", 0])
        self.rounds, self.grow_at, self.layers = a.rounds, a.grow_at, int(a.to.split("x")[0])

    def begin(self, offer):
        self.network.start_all(3, SMALL_OFFER)
        self.wait_for_round(self.grow_at)
        self.network.start(offer)
        self.network.wait_for(self.network.together, "the four don't train together")

    def wait_for_round(self, number):
        self.network.wait_for(lambda: self.network.rounds(self.network.nodes[0]).get("round", 0) >= number, "too few rounds", 3600)

    def grow(self):
        """The number of the round that changed the size."""
        self.network.wait_for(lambda: self.network.all_have(self.layers), "the model does not grow", 600)
        changed = [number for number, _, count in self.network.certified(self.network.nodes[0]) if count == 0]
        if len(changed) != 1:
            raise RuntimeError(f"rounds {changed} are without contributions, not one")
        return changed[0]

    def trained(self):
        """By round: tokens of all members until then."""
        tokens, by_round = 0, {}
        for number, _, count in self.network.certified(self.network.nodes[0]):
            tokens += count * H * BATCH
            by_round[number] = tokens
        return by_round

    def anchors(self):
        """(round, name) of checkpoints that were saved with a new anchor, of that round."""
        found = []
        for one in self.network.checkpoints(self.network.nodes[0]):
            manifest = json.loads((self.network.nodes[0].data / "checkpoints" / one["name"] / "manifest.json").read_text())["manifest"]
            if not manifest["inner_step"]:
                found.append((manifest["round"] - 1, one["name"]))
        return sorted(found)

    def losses(self, wanted):
        """[(tokens, loss)] of the first anchors with so many tokens or more."""
        trained, anchors, points = self.trained(), self.anchors(), []
        for tokens in wanted:
            number, name = next((number, name) for number, name in anchors if trained.get(number, 0) >= tokens)
            points.append([trained[number], round(self.network.held_out_loss(self.network.nodes[0], name), 4)])
        return points

    def end(self):
        self.network.end()
        for number in range(len(self.network.nodes)):
            shutil.rmtree(self.network.data(number), ignore_errors=True)


def grown(a):
    course = Course(a, "grown")
    try:
        course.begin(LARGE_OFFER)
        changed = course.grow()
        course.wait_for_round(changed + a.rounds)
        trained = course.trained()
        course.network.end()
        ends = sorted({changed - 1, *(changed + a.rounds * point // POINTS for point in range(1, POINTS + 1))})
        last = course.anchors()[-1][0]
        return {"changed": changed, "points": course.losses([trained[min(end, last)] for end in ends]), "differ": course.network.differing()[0]}
    finally:
        course.end()


def kept(a, wanted):
    course = Course(a, "kept")
    try:
        course.begin(SMALL_OFFER)
        course.network.wait_for(lambda: max(course.trained().values()) >= wanted[-1] + 2 * 4 * H * BATCH, "too few tokens", 3600)
        if not course.network.all_have(2):
            raise RuntimeError("the model grew, but it should not")
        course.network.end()
        return {"points": course.losses(wanted), "differ": course.network.differing()[0]}
    finally:
        course.end()


def once(folder, name, measure):
    path = folder / f"{name}-course.json"
    if not path.exists():
        began = time.monotonic()
        figures = measure()
        path.write_text(json.dumps({**figures, "seconds": round(time.monotonic() - began)}))
    return json.loads(path.read_text())


def main():
    parser = arguments(__doc__, to="4x128", grow_at=24, rounds=60, port=29710)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    a = parser.parse_args()
    a.folder.mkdir(parents=True, exist_ok=True)
    split_text(a.text, a.folder)
    figures = {"from": "2x64", "to": a.to}
    for leftover in [*a.folder.glob("grown-?"), *a.folder.glob("kept-?")]:
        shutil.rmtree(leftover)
    try:
        figures["grown"] = once(a.folder, "grown", lambda: grown(a))
        print(json.dumps(figures["grown"]), file=sys.stderr, flush=True)
        figures["kept"] = once(a.folder, "kept", lambda: kept(a, [tokens for tokens, _ in figures["grown"]["points"]]))
        figures["lower_by"] = figures["kept"]["points"][-1][1] - figures["grown"]["points"][-1][1]
    except RuntimeError as error:
        figures["error"] = str(error)
    print(json.dumps(figures))
    return 0 if "error" not in figures and figures["lower_by"] > 0 and not figures["grown"]["differ"] and not figures["kept"]["differ"] else 1


if __name__ == "__main__":
    sys.exit(main())
