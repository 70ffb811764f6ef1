"""Networks that decide who holds which slots, on virtual time."""
import os

import builds
import reading
from registry import target

NODE = builds.BIN / "neuroshardd"


def of_bound(figures):
    return f"{100 * figures['of_bound']:.0f} %"


@target("plans", "simulated networks that decide who holds which slots: a day of 1,000 nodes with 20 % churn an hour, 200 nodes beside planners that know "
        "when nodes leave, unequal homes, growth, false declarations (40 minutes; PLANS_NODES, PLANS_HOURS, PLANS_SEEDS)")
def plans(run):
    builds.packages("build", "test")
    builds.build(run, "ci", targets=["neuroshardd"])
    nodes, hours, seeds = (os.environ.get(f"PLANS_{name}", value) for name, value in (("NODES", "1000"), ("HOURS", "24"), ("SEEDS", "3")))

    def simulate(name, *words):
        part = run.part(name, [NODE, "--json", "simulate", "--scenario", *words], reading.last_json, missed=(1,))
        run.figures[name] = part.figures
        return part.figures if "run" not in part.figures and "broken" in part.figures else None

    churn = f"{nodes} nodes for {hours} h, 20 % leave in an hour"
    if figures := simulate(f"churn-{nodes}-{hours}", "plan-churn", "--nodes", nodes, "--hours", hours):
        n = f"1 seed; {figures['departures']} left, {figures['arrivals']} came; slowest plan {figures['slowest_plan_seconds']:.2f} s"
        run.claim(f"{churn}: lost slots; stalls", "0; none", f"{figures['lost']}; {figures['stalls']}", figures["lost"] == 0, n)
        run.claim(f"{churn}: owners of a slot; part of the time with fewer than five", "", f"{figures['least_owners']} or more; {100 * figures['short_share']:.1f} %", None, n)
        run.claim(f"{churn}: tokens beside a bound that no plan of the nodes exceeds", "", of_bound(figures), None, n)
    if figures := simulate("compared-200-12", "plan-churn", "--nodes", "200", "--hours", "12", "--compare"):
        alike = [other for other in figures["foreseen"] if other["tokens"] >= 0.98 and other["lost"] == 0]
        least = min((other["bytes"] for other in alike), default=1)
        others = "; ".join(f"knows {other['hours']:g} h: {other['bytes']:.2f} of the bytes, {other['tokens']:.2f} of the tokens" for other in figures["foreseen"])
        run.claim("200 nodes for 12 h, 20 % leave in an hour: bytes beside the best planner that knows when nodes leave and trains 98 % as much", "≤ 1.5",
                  f"{1 / least:.2f}", least >= 1 / 1.5, others)
    for kind, what in (("plan-homes", "Very unequal homes, three nodes of each owner"), ("plan-growth", "A network grows twentyfold")):
        if figures := simulate(f"{kind}-300", kind, "--nodes", "300", "--hours", "12"):
            changes = f", {len(figures['changes'])} changes of the model" if figures["changes"] else ""
            run.claim(f"{what}, 300 nodes for 12 h, 20 % leave in an hour: lost slots; tokens beside the bound", "0",
                      f"{figures['lost']}; {of_bound(figures)}{changes}", figures["lost"] == 0, f"1 seed; {figures['departures']} left, {figures['arrivals']} came")
    false = [figures for seed in range(1, int(seeds) + 1)
             if (figures := simulate(f"false-{seed}", "plan-false", "--nodes", "100", "--hours", "4", "--seed", seed))]
    if false:
        settled = [figures.get("settled_round") for figures in false]
        run.claim("A fifth of 100 nodes declare ten times their memory and speed: round of ten minutes from which on the throughput is 0.95 of that with true "
                  "declarations or more; throughput at the end", "3; ≥ 0.95", f"{', '.join(str(one) for one in settled)}; "
                  + ", ".join(f"{figures['of_honest']:.3f}" for figures in false), all(one is not None and one <= 3 for one in settled),
                  f"{len(false)} seeds; nodes fetch what they are given over their lines")
