"""Networks of real nodes that hold parts of a model, for measurements."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import control_group

CERTIFIED = re.compile(r"part (\d+) of \d+: round (\d+) is certified with anchor ([0-9a-f]+): (\d+) of \d+ members contributed")
BETWEEN = 0.1       # seconds between two questions to a node
PERIOD_US = 10_000  # short, so that a node that has used its share waits for milliseconds only
NO_GROUPS = 77      # the exit status that says so


class Group:
    """A control group with a limit of memory, of version 1 or 2."""

    def __init__(self, name, limit):
        v1 = pathlib.Path("/sys/fs/cgroup/memory")
        self.v1 = v1.is_dir()
        self.path = (v1 if self.v1 else pathlib.Path("/sys/fs/cgroup")) / name
        self.path.mkdir()
        (self.path / ("memory.limit_in_bytes" if self.v1 else "memory.max")).write_text(str(limit))

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self):
        return int((self.path / ("memory.max_usage_in_bytes" if self.v1 else "memory.peak")).read_text())

    def remove(self):
        self.path.rmdir()


def shares(name, count, share):
    """Control groups with a share of one core each, so that no node uses what another one leaves. None: there are none that we may make."""
    groups = []
    try:
        for number in range(count):
            groups.append(control_group.Group(f"{name}{number}", share, PERIOD_US))
    except OSError:
        for group in groups:
            group.remove()
        return None
    return groups


def text(seed, words):
    """Words with an order that can be learned."""
    draw = random.Random(seed)
    vocabulary = ["".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(draw.randint(2, 9))) for _ in range(800)]
    follow = {word: draw.sample(vocabulary, 6) for word in vocabulary}
    word, out = vocabulary[0], []
    for _ in range(words):
        out.append(word)
        word = draw.choice(follow[word]) if draw.random() < 0.9 else draw.choice(vocabulary)
    return "\n".join(" ".join(out[i:i + 12]) for i in range(0, len(out), 12))


class Node:
    def __init__(self, process, words, data, output, group):
        self.process, self.words, self.data, self.output, self.group = process, words, data, output, group


class Network:
    """Starts nodes on loopback. folder has a file `text`."""

    def __init__(self, programs, folder, name, port, profile):
        self.program, self.folder, self.port, self.nodes = programs / "neuroshardd", folder, port, []
        self.profile = folder / f"{name}.json"
        self.call("network", "create", "--from", "devnet", "--name", name, "--grows", 0, *profile, "--out", self.profile)
        self.parameters = json.loads(self.call("network", "show", self.profile, "--json").splitlines()[0])["parameters"]

    def call(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"neuroshardd {words[0]}: {done.stderr or done.stdout}")
        return done.stdout

    def start(self, words, group=None):
        number = len(self.nodes)
        data = self.folder / f"{self.profile.stem}-{number}"
        words = [self.program, "run", "--json", "--data-dir", data, "--profile", self.profile, "--lan", "--text", self.folder / "text", "--p2p-address",
                 "127.0.0.1", "--p2p-port", self.port + number, "--eval-interval-steps", 0, "--checkpoint-min-interval", "1d", *words]
        if number > 0:
            words += ["--peer", f"127.0.0.1:{self.port}"]
        node = Node(None, list(map(str, words)), data, self.folder / f"{self.profile.stem}-{number}.out", group)
        self.nodes.append(node)
        self.again(node)
        return node

    def again(self, node):
        with open(node.output, "ab") as output:
            node.process = subprocess.Popen(node.words, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                                            preexec_fn=node.group.enter if node.group else None)

    def status(self, node):
        """Empty while the node does not answer."""
        done = subprocess.run([self.program, "status", "--json", "--data-dir", node.data], capture_output=True, text=True)
        try:
            return json.loads(done.stdout.splitlines()[0]) if done.returncode == 0 else {}
        except (IndexError, ValueError):
            return {}

    def dead(self):
        """Why a node has ended; empty: none has."""
        for number, node in enumerate(self.nodes):
            if node.process.poll() is not None:
                return f"node {number} ended with {node.process.returncode}: {node.output.read_text(errors='replace')[-1500:]}"
        return ""

    def refused(self):
        """Why a node does not train; empty: all do, or begin to."""
        for number, node in enumerate(self.nodes):
            status = self.status(node)
            if status.get("state") == "failed":
                return f"node {number} does not train: {json.dumps(status.get('pause_reasons'))} {node.output.read_text(errors='replace')[-1500:]}"
        return ""

    def losses(self, node):
        """Of its steps, in their order."""
        out = node.data.with_suffix(".jsonl")
        out.unlink(missing_ok=True)
        self.call("history", "export", "--format", "jsonl", "--out", out, "--data-dir", node.data)
        entries = [json.loads(line) for line in out.read_text().splitlines()]
        return [one["mean"] for one in sorted((e for e in entries if e["series"] == "loss"), key=lambda e: e["step"])]

    def resident(self):
        """The largest resident size of each process so far, in bytes."""
        peaks = []
        for node in self.nodes:
            status = pathlib.Path(f"/proc/{node.process.pid}/status").read_text()
            peaks.append(int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) << 10)
        return peaks

    def end(self):
        for node in self.nodes:
            if node.process.poll() is None:
                node.process.send_signal(signal.SIGTERM)
        for node in self.nodes:
            try:
                node.process.wait(60)
            except subprocess.TimeoutExpired:
                node.process.kill()
                node.process.wait()
        for group in {node.group for node in self.nodes if node.group}:
            group.remove()


def arguments(description, **numbers):
    """A parser for the folder of the programs and these numbers."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    for name, value in numbers.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    return parser


def with_shares(name, nodes, share, measure):
    """Prints the figures that measure(folder, groups) returns, of nodes with a share of a core each. Nothing: there are no control groups."""
    groups = shares(name, nodes, share)
    if groups is None:
        print("control groups need root", file=sys.stderr)
        return None
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        (folder / "text").write_text(text(1, 60_000))
        figures = measure(folder, groups)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(figures))
    return figures


SMALL = ["--hidden", 64, "--head-dim", 16, "--vocab", 400, "--experts", 2, "--sequence", 32, "--batch-tokens", 1024]


class Holders:
    """Parts of a model with some nodes each. model, words: of `network create` and of each node. groups: a control group for each node, or none."""

    def __init__(self, programs, folder, name, port, h, parts=3, holders=2, groups=(), layers=0, model=SMALL, words=()):
        self.parts, self.words = parts, words
        self.network = Network(programs.resolve(), folder, name, port, ["--layers", layers or parts, *model, "--h", h, "--sync", f"parts={parts}"])
        for number in range(parts * holders):
            self.start(number % parts + 1, groups[number] if groups else None)
            if number == 0:
                time.sleep(1)

    def start(self, part, group=None):
        return self.network.start(["--cpu-threads", 1, "--part", part, *self.words], group)

    def rounds(self, node):
        return self.network.status(node).get("rounds") or {}

    def part(self, node):
        return self.rounds(node).get("part") or {}

    def finished(self, nodes):
        return {id(node): self.part(node).get("finished", 0) for node in nodes}

    def wait_for(self, done, what, seconds):
        began = time.monotonic()
        while not done():
            if time.monotonic() - began > seconds:
                raise RuntimeError(f"{what} within {seconds} s: " + json.dumps([self.part(node) for node in self.network.nodes]))
            time.sleep(BETWEEN)
        return time.monotonic() - began

    def all_train(self):
        before = self.finished(self.network.nodes)
        return lambda: all(self.part(node).get("finished", 0) > before[id(node)] for node in self.network.nodes)

    def warm(self, rounds):
        """Until all nodes train and the network has so many rounds: it knows the length of a round after three."""
        self.wait_for(self.all_train(), "not all nodes train", 180)
        self.wait_for(lambda: self.rounds(self.network.nodes[0]).get("round", 0) >= rounds, "too few rounds", 600)

    def blocks(self, node):
        """Of the chain on its disk."""
        out = self.network.folder / "blocks.jsonl"
        self.network.call("chain", "export", "--force", out, "--data-dir", node.data)
        return list(map(json.loads, out.read_text().splitlines()))

    @staticmethod
    def certified(node):
        """(part, round, anchor, contributors) of each line of its log that says so."""
        log = (node.data / "logs/neuroshardd.log").read_text(errors="replace")
        return [(int(part), int(number), anchor, int(count)) for part, number, anchor, count in CERTIFIED.findall(log)]

    def differing(self):
        """Rounds of which two nodes certified different anchors, and the anchors in all."""
        anchors, differ = {}, 0
        for node in self.network.nodes:
            for part, number, anchor, _ in self.certified(node):
                differ += anchors.setdefault((part, number), anchor) != anchor
        return differ, len(anchors)
