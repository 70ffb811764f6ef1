#!/usr/bin/env python3
"""A pipeline of real processes over gRPC: it learns, and goes on when a stage is killed.

    pipeline_processes.py SOURCE PIPELINE_NODE
"""
import pathlib
import random
import sys
import tempfile
import time

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tests/bench"))
import pipeline_run  # noqa: E402

LAYERS, STAGES, IN_STEP, SEQUENCES, LENGTH = 3, 3, 4, 4, 32
SHAPE = {"layers": LAYERS, "hidden": 32, "head_dim": 8, "ffn": 64, "sequence": LENGTH}
TOGETHER = 8  # unfinished micro-batches


def start(program, number, text, stage):
    config = {"key": number, "shape": SHAPE, "threads": 1, "batch_tokens": IN_STEP * SEQUENCES * LENGTH, "learning_rate": 3e-3}
    return pipeline_run.Node(program, config | ({"stage": stage} if stage else {"text": text}))


def finished(driver, count, results):
    """Waits until so many micro-batches are finished; the longest time between two of them."""
    longest, last = 0.0, time.monotonic()
    while len(results) < count:
        event = driver.next()
        assert "ended" not in event, driver.heard
        if "finished" in event:
            assert event["finished"] not in results, "a micro-batch finished twice"
            results[event["finished"]] = event["loss"]
            longest, last = max(longest, event["heard"] - last), event["heard"]
    return longest


def check_learning_and_kills(nodes, driver, seed):
    route, spare = nodes[:STAGES], nodes[STAGES:]
    total, results = 120, {}
    driver.tell({"do": "drive", "route": [node.id for node in route], "sequences": SEQUENCES, "window": TOGETHER, "wire": "int8",
                 "micro_batches": total})
    finished(driver, 40, results)
    victim = random.Random(seed).randrange(STAGES)
    route[victim].kill()
    gap = finished(driver, total, results)
    assert gap < 5, f"training stood still for {gap:.1f} s"
    assert sorted(results) == list(range(total))
    first, last = (sum(results[i] for i in part) / 20 for part in (range(20), range(total - 20, total)))
    assert last < 0.8 * first, (first, last)
    assert any("lost" in event and event["lost"] == victim for event in driver.heard), driver.heard
    for position, node in enumerate(route):
        if position == victim:
            continue
        report = node.report()
        assert report["steps"] * IN_STEP + report["counted"] == total and report["lost"] == 0, (position, report)
    taken_over = spare[victim].report()
    done = taken_over["steps"] * IN_STEP + taken_over["counted"]
    assert total - 40 - TOGETHER <= done <= total - 40 + TOGETHER, taken_over
    assert all(node.report()["steps"] == 0 for i, node in enumerate(spare) if i != victim)


def check_layers_that_it_does_not_hold(nodes, driver):
    """A driver with wrong ranges hears which layers the stage holds."""
    wrong = [dict(node.stage) for node in nodes[:2]]
    wrong[0] |= {"first": 0, "count": 2}
    wrong[1] |= {"first": 2, "count": 1, "head": True}
    told = [{"id": node.id, "address": node.address, "stage": stage} for node, stage in zip(nodes, wrong)]
    driver.tell({"do": "meet", "peers": told})
    driver.tell({"do": "drive", "route": [node.id for node in nodes[:2]], "sequences": SEQUENCES, "window": 2, "wire": "bf16",
                 "micro_batches": 1})
    lost = driver.wait("lost")
    assert "does not hold that: it holds embedding, layer 0" in lost["what"], lost


def main():
    program, seed = sys.argv[2], random.SystemRandom().randrange(1 << 30)
    print("seed", seed)
    nodes = []
    with tempfile.TemporaryDirectory() as folder:
        text = f"{folder}/text"
        pathlib.Path(text).write_bytes((SOURCE / "LICENSE").read_bytes())
        try:
            for number, stage in enumerate(2 * pipeline_run.ranges(LAYERS, STAGES)):
                nodes.append(start(program, number + 1, text, stage))
            driver, other = start(program, 90, text, None), start(program, 91, text, None)
            nodes += [driver, other]
            pipeline_run.introduce(nodes)
            check_layers_that_it_does_not_hold(nodes[STAGES:2 * STAGES], other)
            check_learning_and_kills(nodes[:2 * STAGES], driver, seed)
        finally:
            statuses = [node.stop() for node in nodes]
    assert sorted(statuses) == [-9] + [0] * (len(statuses) - 1), statuses
    print("all checks passed")


if __name__ == "__main__":
    main()
