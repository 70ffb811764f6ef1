#!/usr/bin/env python3
"""How much of its stages' time a pipeline uses, in processes with a line of some delay between them.

    pipeline_efficiency.py NODE WIRE TEXT [--stages 4] [--delays 1,50] [--share 0.4] [--in-step 16] [--steps 4] …

NODE: pipeline_node. WIRE: delay_wire. Each stage has --share of one core by a control group, so that none uses what another leaves.
Efficiency: the time of the slowest stage alone for the same micro-batches, without network and without waiting, as a part of the
time that the pipeline takes. Prints one JSON object; exit status 77: no control groups or no namespaces.
"""
import argparse
import json
import os
import sys

import pipeline_run
from control_group import Group

PERIOD_US = 10_000  # short, so that a stage that has used its share waits for milliseconds only


def config(a, number, stage, host):
    shape = {"layers": a.layers, "hidden": a.hidden, "head_dim": 32, "ffn": a.ffn, "sequence": a.length}
    tokens = a.in_step * a.sequences * a.length
    return {"key": number, "host": host, "shape": shape, "threads": 1, "batch_tokens": tokens, "most_due": a.most_due,
            "most_held": a.in_step, **({"stage": stage} if stage else {"text": a.text})}


def finish_times(driver, count):
    times = {}
    while len(times) < count:
        event = driver.wait("finished", 600)
        times[event["finished"]] = event["at"]
    return [times[index] for index in sorted(times)]


def measure(a, delay):
    stages = pipeline_run.ranges(a.layers, a.stages)
    star = pipeline_run.Star(a.wire, a.stages + 1, delay)
    groups, nodes = [], []
    try:
        for i, stage in enumerate(stages):
            groups.append(Group(f"stage{i}", a.share, PERIOD_US))
            nodes.append(pipeline_run.Node(a.node, config(a, i + 1, stage, star.host(i)), groups[-1].command(star.command(i))))
        driver = pipeline_run.Node(a.node, config(a, 99, None, star.host(a.stages)), star.command(a.stages))
        nodes.append(driver)
        pipeline_run.introduce(nodes)
        alone = []
        for node in nodes[:-1]:  # one after the other: the machine has less than a core for each
            node.tell({"do": "compute", "sequences": a.sequences, "wire": a.codec, "micro_batches": 2})  # warm
            node.wait("computed", 300)
            node.tell({"do": "compute", "sequences": a.sequences, "wire": a.codec, "micro_batches": a.in_step})
            alone.append(node.wait("computed", 300)["computed"] / a.in_step)
        total = (a.steps + 1) * a.in_step
        driver.tell({"do": "drive", "route": [node.id for node in nodes[:-1]], "sequences": a.sequences, "window": 2 * a.in_step,
                     "wire": a.codec, "micro_batches": total})
        times = finish_times(driver, total)
        # The first step fills the pipeline and warms everything up.
        took = (times[-1] - times[a.in_step - 1]) / (a.steps * a.in_step)
        reports = [node.report() for node in nodes[:-1]]
        return {"delay_ms": delay, "efficiency": round(max(alone) / took, 4), "micro_batch_s": round(took, 4),
                "alone_s": [round(seconds, 4) for seconds in alone], "peak_mib": [report["peak_bytes"] >> 20 for report in reports],
                "steps": [report["steps"] for report in reports]}
    finally:
        for node in nodes:
            node.stop()
        for group in groups:
            group.remove()
        star.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("node", "wire", "text"):
        parser.add_argument(name)
    for name, default in (("stages", 4), ("layers", 8), ("hidden", 256), ("ffn", 1024), ("length", 256), ("sequences", 2), ("in-step", 16),
                          ("steps", 4), ("most-due", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--share", type=float, default=0.4)
    parser.add_argument("--codec", default="bf16")
    parser.add_argument("--delays", default="1,50")
    a = parser.parse_args()
    if os.geteuid() != 0:
        print("control groups and namespaces need root", file=sys.stderr)
        return 77
    print(json.dumps({"stages": a.stages, "share": a.share, "in_step": a.in_step, "runs": [measure(a, float(d)) for d in a.delays.split(",")]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
