"""Interleaved rounds: which count, and what their medians and bests say (as core/base/interleaved.h)."""
import statistics

MAX_MOVE = 0.15


class Round:
    def __init__(self, before, after, speeds):
        self.before, self.after, self.speeds = before, after, speeds

    def yardstick(self):
        return (self.before + self.after) / 2


def summary(rounds):
    """The rounds during which the machine was steady, and how many were not."""
    middle = statistics.median(r.yardstick() for r in rounds)
    kept = [r for r in rounds if abs(r.after - r.before) <= MAX_MOVE * r.yardstick()
            and abs(r.yardstick() - middle) <= MAX_MOVE * middle]
    return kept, len(rounds) - len(kept)


def speed_of(kept, name):
    speeds = [r.speeds[name] for r in kept]
    return {"median": statistics.median(speeds), "best": max(speeds)}


def verdict(reached, first, goal):
    return "goal" if goal and reached >= goal else "first" if reached >= first else "missed"


def judge(row, kept):
    """Speeds of all contenders and the ratio of each of ours to each peer, with the row's targets."""
    if not kept:
        return {"speeds": {}, "ratios": [], "yardstick_gflops": 0, "unit_of_values": row["unit_of_values"]}
    speeds = {name: speed_of(kept, name) for name in kept[0].speeds}
    targets = {peer: (first, goal) for peer, first, goal in row["targets"] if first}
    ours = [name for name in speeds if name.startswith("ours")]
    ratios = []
    for peer in (name for name in speeds if name.startswith("PyTorch")):
        # The target is for the best that we offer; each precision is shown.
        best = max(ours, key=lambda name: speeds[name]["median"])
        for name in ours:
            ratio = {"ours": name, "peer": peer,
                     "of_medians": speeds[name]["median"] / speeds[peer]["median"],
                     "of_bests": speeds[name]["best"] / speeds[peer]["best"],
                     "of_rounds": [r.speeds[name] / r.speeds[peer] for r in kept]}
            target = targets.get(peer.split()[1])
            if target and name == best:
                reached = ratio["of_medians"]
                ratio.update(first=target[0], goal=target[1], verdict=verdict(reached, *target))
            ratios.append(ratio)
    return {"speeds": speeds, "ratios": ratios, "unit_of_values": row["unit_of_values"],
            "yardstick_gflops": statistics.median(r.yardstick() for r in kept) / 1e9}
