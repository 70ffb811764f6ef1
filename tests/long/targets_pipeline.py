"""Training through a pipeline: the time of the stages that it uses, and what its wire formats cost."""
import os
import statistics

import builds
import reading
from facts import ROOT, has_bf16
from registry import target

BENCH = ROOT / "tests/bench"
PROBE = builds.BIN / "pipeline_node"


def text_file(run):
    """The pages of the project: English with tables and code, under 1 MB."""
    path = run.folder / "text"
    path.write_bytes(b"".join(page.read_bytes() for page in sorted((ROOT / "docs").rglob("*.md"))))
    return path


@target("pipeline-efficiency", "four stages with 0.4 of a core each over lines of 1 and 50 ms, beside the slowest stage alone (PIPELINE_REPEATS: runs, 3)")
def pipeline_efficiency(run):
    run.require(os.geteuid() == 0, "control groups and network namespaces take root")
    builds.packages("build", "test")
    builds.build(run, "ci", targets=["pipeline_node", "delay_wire"])
    gates, found = {1.0: 0.85, 50.0: 0.65}, {1.0: [], 50.0: []}
    for number in range(int(os.environ.get("PIPELINE_REPEATS", "3"))):
        part = run.part(f"run-{number}", ["python3", BENCH / "pipeline_efficiency.py", PROBE, builds.program("delay_wire"), text_file(run)],
                        reading.last_json, judge=lambda status, out: "skipped" if status == 77 else "failed" if status else "passed")
        run.figures[str(number)] = part.figures
        for measured in part.figures.get("runs", []) if part.ok else []:
            found[measured["delay_ms"]].append(measured["efficiency"])
    for delay, values in found.items():
        if values:
            middle = statistics.median(values)
            run.claim(f"Pipeline of 4 stages with 0.4 core each, {delay:g} ms each way: time of the slowest stage alone as a part of the pipeline's",
                      f"≥ {gates[delay]}", f"{middle:.3f} ({min(values):.3f} to {max(values):.3f})", middle >= gates[delay], f"{len(values)} runs")


@target("pipeline-kills", "100 random deaths of stages and drivers of a pipeline of real processes (5 minutes; PIPELINE_KILLS, PIPELINE_SEED)")
def pipeline_kills(run):
    builds.packages("build", "test")
    builds.build(run, "ci", targets=["pipeline_node"])
    kills, seed = os.environ.get("PIPELINE_KILLS", "100"), os.environ.get("PIPELINE_SEED", "1")
    part = run.part(f"kills-{kills}-{seed}", ["python3", BENCH / "pipeline_kills.py", PROBE, text_file(run), "--kills", kills, "--seed", seed],
                    reading.last_json, missed=(1,))
    run.figures = part.figures
    if "gaps" in part.figures:
        gaps = ", ".join(f"{kind} {by['median']} s, at most {by['most']} s (n {by['n']})" for kind, by in sorted(part.figures["gaps"].items()))
        ok = not part.figures["late"] and not part.figures["twice"]
        run.claim("Deaths in a pipeline of 3 parts with 2 processes each: time until training goes on; micro-batches that finish twice",
                  "≤ 5 s; 0", f"{gaps}; {part.figures['twice']}", ok, f"{kills} deaths, seed {seed}; {part.figures['finished']} micro-batches")


@target("pipeline-wire", "loss of 2,000 steps through four stages with bf16 and int8 between them, beside fp32, two seeds (20 minutes; PIPELINE_STEPS)")
def pipeline_wire(run):
    builds.packages("build", "test")
    builds.build(run, "ci", targets=["pipeline_node"])
    steps = int(os.environ.get("PIPELINE_STEPS", "2000"))
    losses = {}
    for seed in (1, 2):
        for wire in ("fp32", "bf16", "int8"):
            part = run.part(f"{wire}-{seed}-{steps}", ["python3", BENCH / "pipeline_wire.py", PROBE, text_file(run), "--steps", steps, "--seeds", seed,
                            "--formats", wire], reading.last_json)
            if part.ok:
                losses[wire, seed] = part.figures["losses"][wire][str(seed)]
    run.figures["losses"] = {f"{wire}, seed {seed}": loss for (wire, seed), loss in losses.items()}
    for wire, gate in (("bf16", None), ("int8", 0.001)):
        worse = [losses[wire, seed] / losses["fp32", seed] - 1 for seed in (1, 2) if (wire, seed) in losses and ("fp32", seed) in losses]
        if worse:
            run.claim(f"Pipeline of 4 stages, {steps} steps with warm-up and decay: loss with {wire} between them beside fp32", gate and "≤ +0.1 %",
                      ", ".join(f"{100 * one:+.3f} %" for one in worse), None if gate is None else max(worse) <= gate, f"{len(worse)} seeds")


@target("parts-memory", "a model that is too large for each of the six nodes that train it, in control groups (25 minutes; PARTS_STEPS)")
def parts_memory(run):
    builds.packages("build", "test")
    builds.build(run, "ci", targets=["neuroshardd", "compute_cpu", "neuroshard_network"])
    steps = os.environ.get("PARTS_STEPS", "60")
    part = run.part(f"parts-{steps}", ["python3", BENCH / "parts_memory.py", builds.BIN, "--steps", steps], reading.last_json, missed=(1,))
    run.figures = figures = part.figures
    if "group_peaks" not in figures:
        return
    mib = 1 << 20
    run.claim("Six nodes in control groups of 60 % of one copy's training state train a model together: largest resident size of each", "none killed",
              ", ".join(f"{peak / mib:.0f}" for peak in figures["resident_peaks"]) + f" MiB of {figures['limit_bytes'] / mib:.0f}; "
              f"state {figures['state_bytes'] / mib:.0f} MiB", "error" not in figures,
              f"{figures['parameters']} parameters, {figures['parts']} parts; the groups use the rest for files: {max(figures['group_peaks']) / mib:.0f} MiB")
    if "worse_by" in figures:
        run.claim(f"The same model after {steps} steps: loss beside that of one node with as many tokens", "within 2 %",
                  f"{100 * figures['worse_by']:+.2f} % ({figures['parts_loss']:.4f}, {figures['alone_loss']:.4f})", part.passed,
                  f"mean of the last 10 steps; {figures['parts_seconds']} s, alone {figures['alone_seconds']} s")


# By name: options of a part. A step has 8 micro-batches; "short" has 2 of them, "long" has 16.
SHORT, LARGER, BF16 = ["--batch-tokens", "2048", "--h", "4"], ["--hidden", "896"], ["--precision", "bf16"]
ESTIMATES = {
    "20m-fp32": [], "20m-bf16": BF16, "20m-fp32-short": SHORT, "20m-fp32-long": ["--batch-tokens", "16384", "--h", "1"],
    "60m-fp32": LARGER, "60m-bf16": [*LARGER, *BF16], "60m-fp32-short": [*LARGER, *SHORT],
}
ESTIMATE_GATE = 10  # per cent of the peak


@target("parts-estimate", "resident memory of nodes that hold one of three parts of a model, beside their memory plans: 20 and 60 million parameters, "
        "fp32 and bf16 (15 minutes; ESTIMATE_RUNS: some parts only)")
def parts_estimate(run):
    builds.packages("build", "test")
    builds.build(run, "ci", targets=["neuroshardd", "compute_cpu", "neuroshard_network"])
    for name in os.environ.get("ESTIMATE_RUNS", "").split() or ESTIMATES:
        if "bf16" in name and not has_bf16():
            run.reasons.append(f"{name}: this processor has no bf16 units")
            continue
        part = run.part(name, ["python3", "-B", BENCH / "parts_estimate.py", builds.BIN, *ESTIMATES[name], "--gate", ESTIMATE_GATE], reading.last_json,
                        judge=outcome_of_parts)
        run.figures[name] = figures = part.figures
        if figures:
            off = [node["off_per_cent"] for node in figures["nodes"]]
            run.claim(f"Peak resident memory of nodes with one of {len(off)} parts beside their memory plans, {figures['parameters'] / 1e6:.0f} million "
                      f"parameters, {figures['precision']}, {figures['batch_tokens']} tokens a step", f"within {ESTIMATE_GATE} %",
                      f"plan {', '.join(f'{one:+.1f}' for one in off)} % of "
                      f"{', '.join(format(node['peak_bytes'] / 2**20, '.0f') for node in figures['nodes'])} MiB",
                      max(map(abs, off)) <= ESTIMATE_GATE, f"1 run, {figures['rounds']} rounds")


@target("parts-kills", "100 random kills of real nodes that hold parts of a model, three parts with two nodes each (20 minutes; PARTS_KILLS, PARTS_SEED)")
def parts_kills(run):
    builds.packages("build", "test")
    builds.build(run, "ci", targets=["neuroshardd", "compute_cpu", "neuroshard_network"])
    kills, seed = os.environ.get("PARTS_KILLS", "100"), os.environ.get("PARTS_SEED", "1")
    part = run.part(f"kills-{kills}-{seed}", ["python3", BENCH / "parts_kills.py", builds.BIN, "--kills", kills, "--seed", seed], reading.last_json, missed=(1,))
    run.figures = figures = part.figures
    if "most" in figures:
        run.claim("Kills of nodes in a network of 3 parts with 2 nodes each: time until the others' training goes on; rounds in which holders of a "
                  "part certified different anchors", "≤ 5 s; 0", f"{figures['median']} s, at most {figures['most']} s; {figures['differ']}", part.passed,
                  f"{figures['kills']} kills, seed {seed}; {figures['anchors']} anchors; last loss {figures.get('loss', 0):.3f}")


@target("parts-moves", "a network that chooses its nodes' parts: a holder leaves or dies, and another node moves to its part, 24 times; in every third the "
        "one that moves is killed, too (30 minutes; PARTS_MOVES, PARTS_SEED)")
def parts_moves(run):
    builds.packages("build", "test")
    builds.build(run, "ci", targets=["neuroshardd", "compute_cpu", "neuroshard_network"])
    moves, seed = os.environ.get("PARTS_MOVES", "24"), os.environ.get("PARTS_SEED", "1")
    part = run.part(f"moves-{moves}-{seed}", ["python3", "-B", BENCH / "parts_moves.py", builds.BIN, "--moves", moves, "--seed", seed], reading.last_json,
                    judge=outcome_of_parts)
    run.figures = figures = part.figures
    if not figures.get("moves"):
        return
    what = "Seven nodes, three parts, no node names one"

    def times(choose):
        seconds = sorted(one["seconds"] for one in figures["moves"] if choose(one))
        return f"{statistics.median(seconds):.0f} s, at most {seconds[-1]:.0f} s" if seconds else "none"

    run.claim(f"{what}: time from their start until each part has two holders", "≤ 180 s", f"{figures['covered_seconds']:.0f} s", part.passed, f"seed {seed}")
    run.claim(f"{what}: time until a part that lost one of two holders has two again. The holder said that it leaves; it was killed; the node that moves was "
              "killed, too", "≤ 180 s each",
              "; ".join((times(lambda one: not one["killed"] and not one["mover_killed"]), times(lambda one: one["killed"] and not one["mover_killed"]),
                         times(lambda one: one["mover_killed"]))), part.passed, f"{len(figures['moves'])} moves, seed {seed}")
    run.claim(f"{what}: rounds in which holders of a part certified different anchors", "0", f"{figures['differ']} of {figures['anchors']}",
              not figures["differ"], f"{len(figures['moves'])} moves; last loss {figures.get('loss', 0):.3f}")


@target("parts-speeds", "throughput of four nodes with two parts, of which two have four times the speed of the others, beside four equal ones with the same "
        "cores together, in turn (20 minutes; SPEEDS_TURNS, SPEEDS_SECONDS; root)")
def parts_speeds(run):
    run.require(os.geteuid() == 0, "a control group for each node takes root")
    builds.packages("build", "test")
    builds.build(run, "ci", targets=["neuroshardd", "compute_cpu", "neuroshard_network"])
    turns, seconds = os.environ.get("SPEEDS_TURNS", "2"), os.environ.get("SPEEDS_SECONDS", "180")
    part = run.part(f"speeds-{turns}-{seconds}", ["python3", "-B", BENCH / "parts_speeds.py", builds.BIN, "--turns", turns, "--seconds", seconds],
                    reading.last_json, judge=outcome_of_parts)
    run.figures = figures = part.figures
    if "ratio" not in figures:
        return
    run.claim("Throughput of two parts with two nodes each, of which one has four times the share of a core, beside nodes with equal shares", "≥ 0.85 ×",
              f"{figures['ratio']:.2f} ×, at least {figures['least']:.2f} ×", figures["ratio"] >= 0.85, f"{len(figures['turns'])} turns")


def outcome_of_parts(status, output):
    if status not in (0, 1):
        return "skipped" if status == 77 else "failed"
    try:
        return "failed" if "error" in reading.last_json(output) else "missed" if status else "passed"
    except ValueError:
        return "failed"


def figures_of_parts(output):
    return reading.last_json(output) if "{" in output else {}


@target("parts-failures", "six nodes that hold three parts of a model: throughput with a random node killed in each minute beside clean, six times ten "
        "minutes of each, then three newcomers, 2.75 hours in all; goes on where it was ended (PARTS_SECONDS, PARTS_CLEAN_SECONDS, PARTS_SEGMENTS, "
        "PARTS_EVERY, PARTS_H, PARTS_NEWCOMERS; root)")
def parts_failures(run):
    run.require(os.geteuid() == 0, "a control group for each node takes root")
    builds.packages("build", "test")
    builds.build(run, "ci", targets=["neuroshardd", "compute_cpu", "neuroshard_network"])
    seconds, clean, segments, every, steps, newcomers = (int(os.environ.get(f"PARTS_{name}", value)) for name, value in (
        ("SECONDS", 600), ("CLEAN_SECONDS", 0), ("SEGMENTS", 6), ("EVERY", 60), ("H", 200), ("NEWCOMERS", 3)))
    pairs = []
    for seed in range(1, segments + 1):
        part = run.part(f"failures-{seconds}-{clean or seconds}-{every}-{steps}-{seed}", ["python3", "-B", BENCH / "parts_failures.py", builds.BIN,
                        "--seconds", seconds, "--clean-seconds", clean, "--every", every, "--h", steps, "--seed", seed,
                        *(["--failures-first"] if seed % 2 == 0 else [])],
                        figures_of_parts, judge=outcome_of_parts)
        if part.ok:
            pairs.append(part.figures)
    if pairs:
        run.figures["failures"] = [pair["ratio"] for pair in pairs]
        judge_failures(run, pairs, seconds, clean or seconds, every)
    part = run.part(f"newcomer-{steps}-{newcomers}", ["python3", "-B", BENCH / "parts_newcomer.py", builds.BIN, "--h", steps, "--newcomers", newcomers],
                    figures_of_parts, judge=outcome_of_parts)
    if part.ok:
        judge_newcomers(run, part.figures)


def judge_failures(run, pairs, seconds, clean_seconds, every):
    def spread(values, digits):
        return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"

    ratios, failed = [pair["ratio"] for pair in pairs], [one for pair in pairs for one in pair["failures"]["failures"]]
    clean = [pair["clean"] for pair in pairs]
    of_round = sum(one["seconds"] for one in clean) / sum(one["rounds"] for one in clean)
    n = (f"{len(pairs)} pairs of {seconds} s with failures and {clean_seconds} s without, {len(failed)} kills, started again after "
         f"{pairs[0]['away']:g} s; rounds of {of_round:.0f} s; {pairs[0]['share']:g} of a core each")
    ok = statistics.median(ratios) >= 0.85
    if every > 60 or seconds * len(pairs) < 3600:
        ok = ok and None  # less than the gate asks for
    what = f"Six nodes that hold three parts, a random one killed in each {every} s"
    run.claim(f"{what}: tokens a second in certified anchors beside a clean segment", "≥ 0.85, for an hour", spread(ratios, 3), ok, n)
    run.claim(f"{what}: micro-batches that pass the whole model beside a clean segment", "", spread([pair["micro_batch_ratio"] for pair in pairs], 3), None, n)
    run.claim(f"{what}: time from the kill until its own text passes the whole model again", "", spread([one["back"] for one in failed], 1) + " s", None, n)
    differ = sum(pair["differ"] for pair in pairs)
    run.claim(f"{what}: rounds in which holders of a part certified different anchors", "0", f"{differ} of {sum(pair['anchors'] for pair in pairs)}",
              not differ, n)


def judge_newcomers(run, figures):
    newcomers = figures["newcomers"]
    run.claim("A seventh node joins six that hold three parts: rounds from the end of its fetch until its work is in a certified row", "≤ 2",
              ", ".join(str(one["rounds"]) for one in newcomers), max(one["rounds"] for one in newcomers) <= 2,
              f"{len(newcomers)} newcomers; {', '.join(str(one['counted_seconds']) for one in newcomers)} s after their start")
    wrong = sum(one["corruptions"] for one in newcomers) + figures["differ"]
    run.claim("A seventh node joins six that hold three parts: anchors that it computes itself, and those that differ from the other holders'", "0 differ",
              f"{sum(len(one['computed_in']) for one in newcomers)}; {wrong}", not wrong, f"{len(newcomers)} newcomers; their files of the row equal a holder's")
