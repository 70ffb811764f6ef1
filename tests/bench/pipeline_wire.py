#!/usr/bin/env python3
"""What the wire format of a pipeline costs in loss: the same text, weights and batches with bf16 and int8 as with fp32.

    pipeline_wire.py NODE TEXT [--stages 4] [--steps 2000] [--seeds 1,2] [--formats fp32,bf16,int8] [--warmup 100] [--constant]

NODE: pipeline_node. The rate follows the product's schedule: it rises for the first steps and falls to a tenth until the last one. With a
constant rate, rounding in another place alone moves the loss by up to 0.7 % in 2,000 steps. The loss is the mean of the last tenth of the
steps, over the same batches in each format. One run is one session of processes on this machine. Prints one JSON object.
"""
import argparse
import json
import sys

import pipeline_run


def train(a, seed, wire):
    shape = {"layers": a.layers, "hidden": a.hidden, "head_dim": 32, "ffn": 2 * a.hidden, "sequence": a.length}
    config = {"shape": shape, "threads": 1, "batch_tokens": a.in_step * a.sequences * a.length, "learning_rate": a.rate, "init_seed": seed,
              "warmup_steps": a.warmup, "decay_steps": 0 if a.constant else a.steps}
    nodes = []
    try:
        for number, stage in enumerate(pipeline_run.ranges(a.layers, a.stages)):
            nodes.append(pipeline_run.Node(a.node, config | {"key": number + 1, "stage": stage}))
        driver = pipeline_run.Node(a.node, config | {"key": 99, "text": a.text})
        nodes.append(driver)
        pipeline_run.introduce(nodes)
        total = a.steps * a.in_step
        driver.tell({"do": "drive", "route": [node.id for node in nodes[:-1]], "sequences": a.sequences, "window": 2 * a.in_step, "wire": wire,
                     "micro_batches": total, "seed": seed})
        losses = {}
        while len(losses) < total:
            event = driver.wait("finished")
            losses[event["finished"]] = event["loss"]
            driver.heard.clear()
        last = [losses[i] for i in range(total - total // 10, total)]
        return sum(last) / len(last)
    finally:
        for node in nodes:
            node.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("node")
    parser.add_argument("text")
    for name, default in (("stages", 4), ("layers", 4), ("hidden", 128), ("length", 64), ("sequences", 3), ("in-step", 4), ("steps", 2000), ("warmup", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--constant", action="store_true")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--formats", default="fp32,bf16,int8")
    a = parser.parse_args()
    losses = {wire: {seed: train(a, int(seed), wire) for seed in a.seeds.split(",")} for wire in a.formats.split(",")}
    print(json.dumps({"stages": a.stages, "steps": a.steps, "tokens_a_step": a.in_step * a.sequences * a.length, "losses": losses}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
