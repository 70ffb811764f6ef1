#!/usr/bin/env python3
"""What failures of nodes that hold parts of a model cost: throughput of two segments of one network, one clean and one with a failure in each
--every seconds.

    parts_failures.py PROGRAMS [--seconds 600] [--clean-seconds 0] [--every 60] [--away 5] [--share 0.25] [--seed 1] [--failures-first]

Three parts with two nodes each. Each node has --share of one core by a control group, so that no node uses what a dead one leaves. In the
segment with failures a random node is killed (SIGKILL) at a random time in the middle half of each --every seconds, and started again
--away seconds later, with its disk. Throughput: tokens of text in certified anchors, in one second. What a node trained and never
contributed does not count. A segment is measured from its first result block to the first one after --seconds, the clean one after
--clean-seconds (0: as long). Prints one JSON object. Exit status 1: something failed, or two holders of a part certified different anchors;
77: no control groups.
"""
import json
import random
import sys
import time

from parts_run import NO_GROUPS, Holders, arguments, with_shares


def counted_tokens(blocks, part_of, contributors):
    """(time in ms, round, tokens) of each result block. Tokens: of text, the mean over the parts, because each part trains all of it. Of
    a part whose row is carried: none, because that work is in the next contribution, too.

    part_of: by number of a member; contributors: by (part, round). A block lists contributions that are not in the row, and not
    which; so the smallest ones count."""
    parts, given, results = set(part_of.values()), {}, []
    for block in blocks:
        if "close" in block:
            given = {}
            for one in block["close"]["contributions"]:
                given.setdefault(part_of.get(one["member"]), []).append(one["tokens"])
        if "result" in block:
            number, sums = block["result"]["round"], 0
            for row in block["result"]["rows"]:
                part = row["row"] + 1
                if not row["carried"]:
                    sums += sum(sorted(given.get(part, []))[:contributors.get((part, number), 1)])
            results.append((block["time_ms"], number, sums / len(parts)))
    return results


def measured(results, begin, end):
    """Of the results after the first one since begin, up to the first one since end; both in ms."""
    first = next(result for result in results if result[0] >= begin)
    last = next(result for result in results if result[0] >= end)
    seconds = (last[0] - first[0]) / 1000
    tokens = sum(tokens for at, _, tokens in results if first[0] < at <= last[0])
    return {"seconds": round(seconds, 1), "rounds": last[1] - first[1], "tokens": round(tokens), "tokens_per_second": round(tokens / seconds, 1)}


class Run(Holders):
    def __init__(self, a, folder, groups):
        super().__init__(a.programs, folder, "failures", a.port, a.h, groups=groups)
        self.a, self.random = a, random.Random(a.seed)
        self.before = {}  # micro-batches of the earlier processes of a node
        self.part_of = {}

    def know_members(self):
        ids = {self.network.status(node)["node_id"]: number % self.parts + 1 for number, node in enumerate(self.network.nodes)}
        tip = json.loads(self.network.call("chain", "show", "--json", "--data-dir", self.network.nodes[0].data).splitlines()[0])
        self.part_of = {member["number"]: ids[member["id"]] for member in tip["members"] if member["id"] in ids}
        if len(self.part_of) != len(ids):
            raise RuntimeError("not all nodes are members")

    def micro_batches(self):
        return sum(self.finished(self.network.nodes).values()) + sum(self.before.values())

    def fail(self, began):
        """Kills a node and starts it again; waits until its text passes the whole model again."""
        victim = self.random.choice(self.network.nodes)
        self.before[id(victim)] = self.before.get(id(victim), 0) + self.part(victim).get("finished", 0)
        killed = time.monotonic()
        victim.process.kill()
        victim.process.wait()
        time.sleep(self.a.away)
        self.network.again(victim)
        self.wait_for(lambda: self.part(victim).get("finished", 0) > 0, "a node does not train again", 120)
        return {"node": self.network.nodes.index(victim), "second": round(killed - began, 1), "back": round(time.monotonic() - killed, 1)}

    def failures(self, began):
        done = []
        for number in range(int(self.a.seconds / self.a.every)):
            self.sleep_until(began + self.a.every * (number + self.random.uniform(0.25, 0.75)))
            done.append(self.fail(began))
            print(f"failure {json.dumps(done[-1])}", file=sys.stderr, flush=True)
        return done

    @staticmethod
    def sleep_until(moment):
        time.sleep(max(0, moment - time.monotonic()))

    def newest(self):
        return max(self.rounds(node).get("round", 0) for node in self.network.nodes[:2])

    def segment(self, with_failures):
        lasts = self.a.seconds if with_failures else self.a.clean_seconds or self.a.seconds
        self.wait_for(self.all_train(), "not all nodes train", 180)
        began, begin, finished = time.monotonic(), time.time() * 1000, self.micro_batches()
        failed = self.failures(began) if with_failures else []
        self.sleep_until(began + lasts)
        seconds, finished = time.monotonic() - began, self.micro_batches() - finished
        end, number = time.time() * 1000, self.newest()
        self.wait_for(lambda: self.newest() > number, "no round ends", 600)
        if why := self.network.dead():
            raise RuntimeError(why)
        return {"begin": begin, "end": end, "micro_batches_per_second": round(finished / seconds, 2), "failures": failed}

    def results(self):
        contributors = {(part, number): count for node in self.network.nodes for part, number, _, count in self.certified(node)}
        return counted_tokens(self.blocks(self.network.nodes[0]), self.part_of, contributors)


def measure(a, folder, groups):
    figures, run = {"seed": a.seed, "every": a.every, "away": a.away, "share": a.share}, None
    try:
        run = Run(a, folder, groups)
        run.warm(a.warm_rounds)
        run.know_members()
        kinds = ["failures", "clean"] if a.failures_first else ["clean", "failures"]
        segments = {kind: run.segment(kind == "failures") for kind in kinds}
        results = run.results()
        for kind, segment in segments.items():
            figures[kind] = measured(results, segment.pop("begin"), segment.pop("end")) | segment
        for what, of in (("tokens_per_second", "ratio"), ("micro_batches_per_second", "micro_batch_ratio")):
            figures[of] = round(figures["failures"][what] / figures["clean"][what], 4)
    except (RuntimeError, StopIteration, ZeroDivisionError) as error:
        figures["error"] = f"{type(error).__name__}: {error}"
    finally:
        if run:
            figures["differ"], figures["anchors"] = run.differing()
            run.network.end()
    return figures


def main():
    parser = arguments(__doc__, seed=1, h=200, warm_rounds=4, port=29450, seconds=600.0, clean_seconds=0.0, every=60.0, away=5.0,
                       share=0.25)
    parser.add_argument("--failures-first", action="store_true")
    a = parser.parse_args()
    figures = with_shares("failures", 6, a.share, lambda folder, groups: measure(a, folder, groups))
    if figures is None:
        return NO_GROUPS
    return 0 if "error" not in figures and not figures["differ"] else 1


if __name__ == "__main__":
    sys.exit(main())
