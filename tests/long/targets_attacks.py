"""Programs that attack real nodes: changed messages under sanitizers, and all attacks of strangers at once."""
import os

import builds
import reading
from builds import NODE
from facts import ROOT
from registry import target

NO_GROUP = "no control group"  # what strangers.py says
PROGRAMS = ("neuroshardd", "neuroshard_network", "compute_cpu", "protocol_fuzzer", "lying_node")


def new_folder(folder, *command):
    """The command, with a folder that is new each time it runs."""
    return ["sh", "-c", 'rm -rf "$1" && shift && exec "$@"', "sh", folder, *command]


@target("protocol-fuzz", "an hour of changed messages to a real node in rounds, under ASan and UBSan: four networks one after the other; goes on "
        "where it was ended (PROTOCOL_FUZZ_SECONDS, PROTOCOL_FUZZ_NETWORKS, PROTOCOL_FUZZ_SEED)")
def protocol_fuzz(run):
    builds.packages("build", "test")
    builds.build(run, "asan-ubsan", "-DNS_BUILD_TESTS=ON", targets=PROGRAMS)
    seconds, networks = int(os.environ.get("PROTOCOL_FUZZ_SECONDS", "3600")), int(os.environ.get("PROTOCOL_FUZZ_NETWORKS", "4"))
    first, every = int(os.environ.get("PROTOCOL_FUZZ_SEED", "1")), []
    for seed in range(first, first + networks):
        folder = run.folder / f"nodes-{seed}"
        part = run.part(f"fuzz-{seconds // networks}-{seed}", new_folder(folder, "python3", "-B", ROOT / "tests/bench/protocol_fuzz.py",
                        ROOT / "build/asan-ubsan/bin/neuroshardd", folder, "--seconds", seconds // networks, "--seed", seed),
                        reading.last_json, missed=(1,))
        if not part.figures:
            return
        every.append(part.figures)
    run.figures = whole_of_fuzz(every)
    judge_fuzz(run, run.figures, seconds)


def whole_of_fuzz(every):
    """The networks one after the other, as one: sums, all that was found, and the rounds of the network that made fewest."""
    fuzzers = [figures["fuzzer"] for figures in every]
    answered = all(fuzzer.get("honest_failed") is not None for fuzzer in fuzzers)
    sums = {key: sum(fuzzer.get(key, 0) for fuzzer in fuzzers) for key in ("calls", "identities", "honest_calls")}
    kinds = sorted({kind for fuzzer in fuzzers for kind in fuzzer.get("kinds", {})})
    seeds = ", ".join(str(fuzzer.get("seed")) for fuzzer in fuzzers)
    nodes = [figures["nodes"] for figures in every]
    fewest = min(nodes, key=lambda each: min(each["rounds"].values()))
    return {"fuzzer": {**sums, "kinds": {kind: [] for kind in kinds}, "seed": seeds,
                       "honest_failed": sum(fuzzer["honest_failed"] for fuzzer in fuzzers) if answered else None},
            "nodes": {"ended": [one for each in nodes for one in each["ended"]], "rounds": fewest["rounds"],
                      "seconds": sum(each["seconds"] for each in nodes)},
            "banned_honest": {f"{number} {name}": bans for number, figures in enumerate(every) for name, bans in figures["banned_honest"].items()},
            **{key: [one for figures in every for one in figures[key]] for key in ("findings", "torn")}}


def judge_fuzz(run, figures, seconds):
    fuzzer, nodes = figures["fuzzer"], figures["nodes"]
    findings = len(figures["findings"]) + len(nodes["ended"]) + len(figures["torn"])
    value = (f"{fuzzer.get('calls', 0):,} calls of {len(fuzzer.get('kinds', {}))} kinds by {fuzzer.get('identities', 0):,} identities, {findings} findings; "
             f"{fuzzer.get('honest_failed')} of {fuzzer.get('honest_calls', 0):,} calls of an honest peer failed; {min(nodes['rounds'].values())} rounds")
    banned = any(figures["banned_honest"].values())
    ok = findings == 0 and fuzzer.get("honest_failed") == 0 and not banned and min(nodes["rounds"].values()) > 0
    if ok and nodes["seconds"] < 3600:
        ok = None  # less than the gate asks for
    run.claim("Changed messages to a node in rounds under ASan and UBSan", "an hour, 0 findings, honest peers answered", value, ok,
              f"{seconds} s, seeds {fuzzer.get('seed')}")


@target("strangers", "an hour of all attacks at once on four nodes in rounds: four networks one after the other, and between them one with the same "
        "work without packets; 78 minutes in all, goes on where it was ended (STRANGERS_SECONDS, STRANGERS_NETWORKS; root)")
def strangers(run):
    run.require(os.geteuid() == 0, "a control group and network namespaces for the attackers take root")
    builds.packages("build", "test")
    builds.build(run, "ci", "-DNS_BUILD_TESTS=ON", targets=PROGRAMS)
    seconds, networks = int(os.environ.get("STRANGERS_SECONDS", "3600")), int(os.environ.get("STRANGERS_NETWORKS", "4"))
    each, folder, sides = seconds // networks, run.folder / "nodes", {"control": [], "attacked": []}
    # The control in the middle: a machine that grows slower or faster with time changes the mean of the others as much as the control.
    order = ["attacked"] * (networks // 2) + ["control"] + ["attacked"] * (networks - networks // 2)
    for seed, side in enumerate(order, 1):
        part = run.part(f"{side}-{each}-{seed}", new_folder(folder, "python3", "-B", ROOT / "tests/bench/strangers.py", NODE, folder,
                                                            "--seconds", each, "--seed", seed, "--side", side),
                        lambda output: {} if NO_GROUP in output else reading.last_json(output), judge=outcome_of_strangers)
        if not part.figures:
            return
        sides[side].append(part.figures[side])
    run.figures = whole_of_strangers(sides)
    judge_strangers(run, run.figures, each, networks)


def largest(side):
    """The largest resident size of a node of a network, in MiB."""
    return max(one["most"] for one in side["mib"].values())


def whole_of_strangers(every):
    """The networks of each side, which are equally long: mean pace, largest memory, sums."""
    whole = {}
    for name, sides in every.items():
        nodes = {node for side in sides for node in side["mib"]}
        attacks = {}
        for side in sides:
            for attack, said in side.get("attacks", {}).items():
                sums = attacks.setdefault(attack, {})
                for key, value in said.items():
                    if isinstance(value, (int, float)):
                        sums[key] = sums.get(key, 0) + value
        paces = [side["rounds_per_minute"] for side in sides]
        whole[name] = {"rounds_per_minute": round(sum(paces) / len(paces), 2), "paces": paces,
                       "mib": {node: {"most": max(side["mib"][node]["most"] for side in sides if node in side["mib"])} for node in sorted(nodes)},
                       "largest": [largest(side) for side in sides], "attacks": attacks,
                       **{key: [one for side in sides for one in side.get(key, [])] for key in ("ended", "banned_honest", "torn")}}

    whole["pace"] = whole["attacked"]["rounds_per_minute"] / max(whole["control"]["rounds_per_minute"], 1e-9)
    whole["memory"] = max(whole["attacked"]["largest"]) / max(whole["control"]["largest"])
    return whole


def outcome_of_strangers(status, output):
    return "skipped" if NO_GROUP in output else {0: "passed", 1: "missed"}.get(status, "failed")


def judge_strangers(run, figures, seconds, networks):
    control, attacked = figures["control"], figures["attacked"]
    sizes = "; ".join(", ".join(f"{one:.0f}" for one in side["largest"]) for side in (attacked, control))
    sent = sum(said.get("calls", 0) + said.get("connections", 0) for said in attacked["attacks"].values())
    n = f"{networks} networks for {seconds} s each, control as long, {sent:,} calls and connections"
    run.claim("Four nodes under all attacks at once, rounds a minute", "≥ 0.90 of those without packets",
              f"{figures['pace']:.2f} ({', '.join(map(str, attacked['paces']))}; {', '.join(map(str, control['paces']))})", figures["pace"] >= 0.90, n)
    run.claim("Four nodes under all attacks at once, largest resident size", "≤ 1.10 of that without packets",
              f"{figures['memory']:.2f} ({sizes} MiB)", figures["memory"] <= 1.10, n)
    idle = [name for name, said in attacked["attacks"].items() if not said.get("calls") and not said.get("connections")]
    run.claim("Four nodes under all attacks at once: attacks that sent nothing", "none", ", ".join(idle) or "none", not idle, n)
    asked = [said for said in attacked["attacks"].values() if said.get("honest_calls")]
    run.claim("Four nodes under all attacks at once: calls of honest strangers at the attackers' addresses that were not answered", "",
              f"{sum(said['honest_failed'] for said in asked)} of {sum(said['honest_calls'] for said in asked):,}", None, n)
    gone, banned = len(attacked["ended"]) + len(control["ended"]), len(attacked.get("banned_honest", []))
    run.claim("Four nodes under all attacks at once: nodes that ended, honest nodes banned, rounds with two anchors", "0, 0, 0",
              f"{gone}, {banned}, {len(attacked['torn'])}", not gone and not banned and not attacked["torn"], n)
