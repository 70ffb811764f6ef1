"""The network and outer rounds: lookups, attacks, waiting, cost by size, real routers."""
import math
import os
import re

import builds
import reading
from builds import NODE
from facts import ROOT
from registry import target
from run import Broken


def qt_test(run, name, gate, **environment):
    """A test program at full length whose totals are the figures."""
    test = builds.test(name)
    return run.part(name, test.command, reading.totals, env={**test.environment, "NS_LONG": "1", "QTEST_FUNCTION_TIMEOUT": "7200000", **environment},
                    loud=gate)


@target("dht", "lookups in the hash table at 100 to 10,000 simulated members, with loss, churn and Byzantine members")
def dht(run):
    builds.release(run)
    measure = builds.program("measure_dht")
    settings = {"quiet": [], "loss": ["--loss", "0.2", "--churn", "0.3"]}
    settings.update({attack: ["--hostile", "0.2", "--attack", attack] for attack in ("poison", "stale", "invent")})
    settings["single-path"] = ["--hostile", "0.2", "--attack", "poison", "--single-path"]
    for members in (100, 1000, 10000):
        for name, words in settings.items():
            part = run.part(f"{name}-{members}", [measure, "--members", members, *words], reading.last_json)
            if part.ok:
                judge_lookups(run, name, part.figures)


def judge_lookups(run, name, row):
    lookup, members = row["lookup"], row["members"]
    limit = math.log2(members) / 2 + 2
    gate = 0.999 if row["hostile"] == 0 else 0.99
    value = (f"{100 * lookup['right']:.2f} % right, {lookup['messages']:.1f} messages, {lookup['hops']:.2f} hops, "
             f"{row['wall_seconds']:.0f} s, {row['peak_mib']} MiB")
    if row["single_path"]:
        run.claim(f"Hash table, {members:,} members, control with a single path", f"< {100 * gate:g} % right", value, lookup["right"] < gate, lookup["lookups"])
        return
    ok = lookup["right"] >= gate and lookup["hops"] <= limit and lookup["messages"] <= 30
    run.claim(f"Hash table, {members:,} members, {name}", f"≥ {100 * gate:g} % right, ≤ 30 messages, ≤ {limit:.1f} hops", value, ok, lookup["lookups"])


@target("chain-cost", "a round's cost to a node at 8, 100, 1000 and 10,000 simulated members; two rounds of 10,000 in 4 minutes and 4 GB")
def chain_cost(run):
    builds.release(run)
    measure = builds.program("measure_chain")
    for members in (8, 100, 1000, 10000):
        part = run.part(f"members-{members}", [measure, "--members", members], reading.last_json)
        if part.ok:
            judge_chain_cost(run, part.figures)


def judge_chain_cost(run, row):
    def cost(who):
        one = row[who]
        return f"{one['messages']:,} messages, {one['sent'] / 1e6:.2f} MB sent, {one['checks']:,} checks, {one['written'] / 1e6:.2f} MB written"

    members = row["members"]
    value = f"voter {cost('voter')}" + (f"; other member {cost('member')}" if row["member"]["nodes"] else "")
    run.claim(f"Cost of a round, {members:,} members", "no conflict, no row carried", value, row["done"] and not row["conflicts"] and not row["carried"], 2)
    if members == 10000:
        used = f"{row['cpu_seconds']:.0f} s of a core, {row['peak_mib']} MiB"
        run.claim("Two rounds of 10,000 simulated members", "≤ 240 s of a core, ≤ 4 GB", used, row["cpu_seconds"] <= 240 and row["peak_mib"] <= 4096, 1)


@target("grpc-floods", "floods of HTTP/2 frames against a real node, 20 s each, beside an honest caller: over IPv4 from another address, and over IPv6 from the caller's own (ten minutes)")
def grpc_floods(run):
    builds.release(run)
    seconds = 20
    for way, options in {"from another address": [], "over IPv6, from the honest caller's address": ["--at", "::1", "--from", "::1"]}.items():
        part = run.part("floods " + way, ["python3", "-B", os.path.join(ROOT, "tests", "functional", "grpc_floods.py"), str(NODE),
                                          "--seconds", seconds, *options], reading.last_json, missed=(1,))
        judge_floods(run, part.figures, f"Flood of a node's port for {seconds} s {way}")


def judge_floods(run, figures, claim):
    for row in figures.get("attacks", []):
        faults = [fault for fault in figures["faults"] if fault.startswith(row["attack"] + ":")]
        value = (f"{row['honest']} honest calls answered, {row['memory_mib']} MiB, {row['cpu']} s of a core, {row['sent_mib']} MiB sent, "
                 f"{row['cut']} connections cut")
        run.claim(f"{claim}: {row['attack']}", "the node lives, ≤ 64 MiB more, floods stop, 90 % of honest calls are answered", value, not faults, 1)


@target("partition", "the partitioner: 10,000 graphs against brute force, public and generated graphs, cost by size")
def partition(run):
    builds.release(run)
    measure = builds.program("measure_partition")
    oracle = qt_test(run, "test_partition_oracle", False)
    parts = {"families": ["families", "0.9"], "layered-models": ["layered-models", "0.9"], "curve": ["curve"]}
    public = os.path.join(builds.DATA, "mtpp")
    if os.path.isdir(public):
        parts["public"] = ["public", public]
    else:
        run.reasons.append(f"{public} is not here: no public graphs")
    run.figures["brute force"] = oracle.figures
    for name, words in parts.items():
        part = run.part(name, [measure, *words], lambda out: {**reading.marked("SUMMARY")(out), **reading.table(out)})
        run.figures[name] = part.figures.get("lines")
    run.claim("Partitions equal brute force on random graphs", "all equal", f"{oracle.figures.get('failed', '?')} failed", oracle.passed, "10,000 graphs")


ATTACK = re.compile(r"^(dense|top-k), (2 of 8|4 of 10, f=4), ([\w-]+): (?:ours )?(diverges|[+-][\d.]+ %).*?(MISSED \((?!plain mean).*)?$")


def judge_attacks(run, lines):
    """One claim a codec and strength, which the worst attack and seed decide."""
    worst, broken = {}, set()
    for line in lines:
        found = ATTACK.match(line)
        if found:
            key = found.group(1, 2)
            loss = math.inf if found.group(4) == "diverges" else float(found.group(4).split()[0])
            worst[key] = max(worst.get(key, (-math.inf, "")), (loss, found.group(3)))
            broken |= {key} if found.group(5) or loss == math.inf else set()
        elif re.search(r"\b\d+ of \d+\b", line):
            raise Broken(f"a line about an attack can't be read: {line}")
    for (codec, strength), (loss, attack) in sorted(worst.items()):
        gate = "≤ +5 %, every seed" if strength == "2 of 8" else "loss finite and falling"
        run.claim(f"Byzantine members, {strength}, {codec} deltas, all attacks", gate,
                  ("diverges" if loss == math.inf else f"{loss:+.1f} %") + f" ({attack}) is the worst",
                  (codec, strength) not in broken, "3 seeds")


@target("attacks", "Byzantine nodes in outer rounds: every attack, dense and top-k deltas, three seeds, all rules (half an hour)")
def attacks(run):
    builds.release(run)
    measure = builds.program("measure_attacks")
    for codec in ("dense", "top-k"):
        for seed in (1, 2, 3):  # each is a part: a second start goes on
            part = run.part(f"{codec}-{seed}", [measure, codec, "--rules", seed], reading.marked("SUMMARY"), missed=(1,))
            run.figures[f"{codec}, seed {seed}"] = part.figures.get("lines")
    judge_attacks(run, [line for lines in run.figures.values() for line in lines or []])


OWN_TARGETS = ("test_chain_nights", "test_partition_oracle")
NAME_OF = {"test_agreement_stall": "test_chain_agreement_stall"}  # where ctest knows another name than that of the file


def of_many_seeds():
    """The simulations that have more seeds with NS_LONG, in their own source or in a header of tests/sim."""
    texts = {path: path.read_text() for folder in ("tests/sim", "tests/unit") for path in sorted((ROOT / folder).rglob("*.[ch]*"))}
    marked = {path for path, text in texts.items() if "NS_LONG" in text}
    headers = [f'#include "{path.relative_to(ROOT)}"' for path in marked if path.suffix == ".h"]
    files = [path.stem for path, text in texts.items() if path.suffix == ".cpp" and (path in marked or any(header in text for header in headers))]
    return [NAME_OF.get(name, name) for name in files if name not in OWN_TARGETS]


@target("rounds", "the chain and its rounds on the simulated network: every fault and scenario with ten and twenty times the seeds")
def rounds(run):
    builds.release(run)
    for name in of_many_seeds():
        part = qt_test(run, name, False)
        run.figures[name] = part.figures
        run.claim(f"Simulated rounds of the chain with many seeds: {name}", "all pass",
                  f"{part.figures.get('passed', '?')} passed, {part.figures.get('failed', '?')} failed", part.passed, 1)


@target("audit-batches", "three real nodes train on published text; 1,000 random batches of the other two are rebuilt, also after kills (a few minutes)")
def audit_batches(run):
    builds.release(run)
    part = qt_test(run, "test_audit_batches", False, NS_AUDIT_BATCHES="1000")
    run.figures["audit"] = part.figures
    run.claim("`audit batch` rebuilds 1,000 random batches of other nodes", "all equal, bit for bit",
              f"{part.figures.get('passed', '?')} tests passed, {part.figures.get('failed', '?')} failed", part.passed, "1,000 batches")


@target("torn", "50 kill -9 of real nodes in the middle of a round's large writes (a quarter of an hour)")
def torn(run):
    builds.release(run)
    part = qt_test(run, "test_rounds_torn", True)
    run.figures = part.figures
    run.claim("kill -9 of real nodes in the middle of a round's large writes: torn anchors", "none",
              "; ".join(part.figures.get("lines", [])), part.passed, "50 kills")


@target("nights", "a month of twelve desktops with nights, weekends and reboots, three seeds; a cut of three nodes, twenty seeds (ten minutes)")
def nights(run):
    builds.release(run)
    test = builds.test("test_chain_nights")
    # Each seed is a part: a second start goes on.
    wanted = [("cut", "a_cut_without_a_word_costs_the_stall_time", "0")] + [(f"month-{seed}", "weeks_of_nights", str(seed)) for seed in (1, 2, 3)]
    for name, function, seed in wanted:
        part = run.part(name, [*test.command, function], reading.totals, loud=True, missed=(1,),
                        env={**test.environment, "NS_LONG": "1", "NS_SEED": seed, "QTEST_FUNCTION_TIMEOUT": "14400000"})
        run.figures[name] = part.figures
        run.claim(f"Simulated desktops that sleep at night: {name}", "no pause longer than the stall rule says",
                  "; ".join(part.figures.get("lines", [])) or f"{part.figures.get('passed', '?')} passed", part.passed, 1)


@target("rounds-scale", "what rounds of the chain cost by the number of nodes (SIZES: some only)")
def rounds_scale(run):
    builds.release(run)
    sizes = os.environ.get("SIZES", "8 16 32 64 128 256 512 1000 2000 5000 10000").split()
    rows = []
    for size in sizes:
        part = run.part(f"nodes-{size}", ["python3", ROOT / "tests/bench/rounds_scale.py", NODE, run.folder / "runs", size], reading.table, loud=True)
        lines = part.figures.get("table", [])
        rows += [line for line in lines if line.startswith(f"| {size} |")]
        if part.ok and lines:
            cells = [cell.strip() for cell in rows[-1].strip("|").split("|")]
            run.claim(f"Outer rounds of {int(size):,} simulated nodes", "no invariant breaks", f"{cells[2]} MiB, {part.record['processor_seconds']:.0f} s of a "
                      f"processor, {cells[3]} messages and {cells[4]} kB a node and round", cells[6] == "0", "1 seed, 2 rounds")
    run.figures["table"] = rows


@target("waiting", "share of time that training waits for rounds at 100 and 10 Mbit/s, plain and delayed-1 (ten minutes)")
def waiting(run):
    builds.release(run)
    for members in (4, 8):
        part = run.part(f"members-{members}", [builds.program("measure_waiting"), "--members", members], reading.table)
        run.figures[f"{members} members"] = part.figures.get("table")


@target("aggregation", "robust aggregation of 8 deltas of 10M values beside the plain mean and memcpy, interleaved")
def aggregation(run):
    builds.release(run)
    bench = run.part("rules", [builds.program("bench_aggregation")], reading.table, missed=(2,), loud=True)
    run.figures["rules"] = bench.figures.get("table")
    for line in bench.figures.get("table", []):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        held = re.match(r"([\d.]+) × (.*) \(≤ ([\d.]+)", cells[-1])
        if held:
            run.claim(f"Aggregation: {cells[0]} beside {held.group(2)}", f"≤ {held.group(3)} ×", f"{held.group(1)} ×; {cells[1]} GB/s of deltas",
                      "MISSED" not in cells[-1], "7 rounds")
    for codec in ("int8", "topk"):
        part = run.part(f"outer-step-{codec}", [builds.program("bench_outer_step"), "8", "10", "5", codec], reading.table, loud=True)
        run.figures[codec] = part.figures.get("table")


@target("nat-product", "real nodes in eight kinds of home behind real routers, and routers that restart (root)")
def nat_product(run):
    run.require(os.geteuid() == 0, "needs root: network namespaces")
    builds.release(run)
    test = builds.test("test_nat_product")
    part = run.part("test_nat_product", test.command, reading.totals,
                    env={**test.environment, "NS_NAT_FULL": "1", "QTEST_FUNCTION_TIMEOUT": "1200000"}, loud=True)
    run.figures = part.figures
    run.require(not part.figures.get("skipped"), "the test skipped a part of itself")
    run.claim("Real nodes in eight homes of seven kinds meet", "28 of 28 pairs", "; ".join(part.figures.get("lines", [])), part.passed, 1)


@target("kills", "100 kill -9 of real nodes of a chain at random moments, two cuts of their network, a lost disk, a late joiner (root; a quarter of an hour)")
def kills(run):
    run.require(os.geteuid() == 0, "needs root: network namespaces")
    builds.release(run)
    part = qt_test(run, "test_rounds_kills", True)
    run.figures = part.figures
    run.claim("Real nodes of a chain through kill -9, cuts of the network, a lost disk and a late joiner",
              "one block of a height, no work twice, equal anchors, at most one round lost a kill", "; ".join(part.figures.get("lines", [])), part.passed,
              "100 kills")
