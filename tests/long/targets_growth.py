"""A network's model that grows with its members' memory."""
import os
import statistics

import builds
import reading
from facts import ROOT
from registry import target
from targets_pipeline import figures_of_parts, outcome_of_parts
from targets_training import TEXT

BENCH = ROOT / "tests/bench"
LOSS_GATE = 1e-3  # nats a character
KINDS = {"dense": "dense", "experts": "mixture of experts"}
WHAT = "Four nodes, a model of 2 layers of width 64 grows to 4 of width 128"


@target("model-growth", "four nodes whose model grows because one offers more memory: loss before and after, loss beside a network that keeps its size, and "
        "kills in 40 changes (35 minutes; GROWTH_ROUNDS, GROWTH_CHANGES, GROWTH_SEED)")
def model_growth(run):
    run.require(os.path.exists(TEXT), f"{TEXT} is not here")
    builds.packages("build", "test")
    builds.build(run, "ci", targets=["neuroshardd", "compute_cpu", "neuroshard_network"])
    rounds, changes, seed = (os.environ.get(f"GROWTH_{name}", value) for name, value in (("ROUNDS", "60"), ("CHANGES", "40"), ("SEED", "1")))

    def part(name, script, *words):
        done = run.part(name, ["python3", "-B", BENCH / script, builds.BIN, *words], figures_of_parts, judge=outcome_of_parts)
        run.figures[name] = done.figures
        return done

    for kind in KINDS:
        if (done := part(f"loss-{kind}", "growth_loss.py", TEXT, "--kind", kind, "--within", LOSS_GATE)).ok:
            judge_loss(run, done.figures)
    # The folder keeps the course of each network that is finished.
    if (done := part(f"gain-{rounds}", "growth_gain.py", TEXT, run.folder / f"gain-{rounds}", "--rounds", rounds)).ok:
        judge_gain(run, done.figures)
    if (done := part(f"kills-{changes}-{seed}", "growth_kills.py", "--changes", changes, "--seed", seed)).ok:
        judge_kills(run, done.figures, done.passed)


def judge_loss(run, figures):
    run.claim(f"{WHAT}, {KINDS[figures['kind']]}: held-out loss right after the change beside right before, nats a character", f"within {LOSS_GATE:g}",
              f"{figures['difference']:+.1e} ({figures['before']:.4f})", abs(figures["difference"]) <= LOSS_GATE,
              "1 run; the learning rate is zero then, so both checkpoints are of one anchor")


def judge_gain(run, figures):
    course = [(tokens, loss, other) for (tokens, loss), (_, other) in zip(figures["grown"]["points"], figures["kept"]["points"])]
    tokens, loss, other = course[-1]
    run.claim(f"{WHAT}: held-out loss later, beside the network whose model keeps its size, after as many tokens", "lower",
              f"{loss:.3f}; {other:.3f}", loss < other,
              f"1 run, {(tokens - course[0][0]) / 1e6:.1f} million tokens after the change. Before and on the way: "
              + ", ".join(f"{one:.3f} beside {beside:.3f}" for _, one, beside in course[:-1]))


def judge_kills(run, figures, passed):
    phases, seconds = figures["phases"], sorted(one["since_kill"] for one in figures["changes"])
    came = [one for one in figures["changes"] if set(one["sizes"]) == {"1" if one["to"] == 4 else "0"}]
    run.claim("Four nodes whose model grows and shrinks in turns, a random one killed in each change. Changes after which all train together with the new "
              "size; corrupt states; rounds with different anchors", "all; 0; 0",
              f"{len(came)} of {len(figures['changes'])}; {sum(one['corruptions'] for one in figures['changes'])}; {figures['differ']} of {figures['anchors']}",
              passed,
              f"seed {figures['seed']}; killed {phases['before']} before the change, {phases['computes']} while they computed the weights, {phases['starts']} while "
              f"they started with them, {phases['after']} after; back after {statistics.median(seconds):.0f} s, at most {seconds[-1]:.0f} s")
