#!/usr/bin/env python3
"""Compares two builds: same seeds, same results?

  same_results.py OLD_BIN NEW_BIN FOLDER [--quick]

OLD_BIN and NEW_BIN are folders with neuroshardd, FOLDER is new or is replaced. Each check asks both programs the same
and compares what must not depend on the build, digit for digit:
  training     losses, held-out losses and gradient norms of each step; the tensors of the exported weights; text
               generated from a seed; dense and mixture of experts, one thread; bf16 where the processor has it
  rounds       anchors of a real node that trains rounds by itself beside a tracker (all over loopback)
  simulation   losses of each certified anchor, contributions, messages, bytes, events: scenarios, seeds, kinds of sync
  partition    cost, bound and blocks of models and of generated graphs; only answers that are proved count, since the
               others depend on how fast the machine is
Both sides get the same wallet and node keys, which OLD_BIN makes. Prints a table. Exit status: 0 all equal, 1 a
difference or a command that failed.
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

IDENTITY = ["FORMAT", "delegation", "instance", "node.key", "wallet.keystore"]
SHAPE = ["--layers", "2", "--hidden", "64", "--head-dim", "32", "--vocab", "512", "--sequence", "32", "--batch-tokens", "256"]
MODELS = {"dense": ["--experts", "1", "--experts-per-token", "1"], "mixture": ["--experts", "4", "--experts-per-token", "2"]}
ROUNDS = 5
TIMES = {"wall_seconds", "peak_mib", "seconds", "tokens_per_s", "saved_at_ms"}
ANCHOR = re.compile(r"round (\d+)\b.*?\banchor ([0-9a-f]{8,})")


class Failed(Exception):
    pass


class Build:
    """One of the two programs, with a home of its own."""

    def __init__(self, label, folder, home):
        self.label, self.program, self.home = label, pathlib.Path(folder).resolve() / "neuroshardd", home
        if not self.program.exists():
            raise Failed(f"{self.program} is not there")
        runtime = home / "runtime"
        runtime.mkdir(parents=True)
        runtime.chmod(0o700)
        self.environment = {**{k: v for k, v in os.environ.items() if not k.startswith("NEUROSHARD_")}, "XDG_RUNTIME_DIR": str(runtime)}

    def call(self, *words):
        done = subprocess.run([str(self.program), *map(str, words)], capture_output=True, text=True, env=self.environment,
                              stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise Failed(f"{self.label}: {' '.join(map(str, words))} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def start(self, name, *words):
        log = open(self.home / f"{name}.log", "wb")
        return subprocess.Popen([str(self.program), *map(str, words)], stdout=log, stderr=subprocess.STDOUT, env=self.environment,
                                stdin=subprocess.DEVNULL)


def stop(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def write_text(path):
    rng = random.Random(7)
    words = ["".join(rng.choice("etaoinshrdlu") for _ in range(rng.randint(2, 8))) for _ in range(400)]
    path.write_text("\n".join(" ".join(rng.choice(words) for _ in range(12)) + "." for _ in range(6000)))


def tensors_digest(path):
    """Of the tensors of a safetensors file; its header also names the checkpoint, which is a new one each time."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode() + data[8 + length:]).hexdigest()


def without_times(row):
    return {key: value for key, value in row.items() if key not in TIMES}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Comparison:
    def __init__(self, old, new, folder, quick):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.folder, self.quick = folder, quick
        self.builds = [Build("old", old, folder / "old"), Build("new", new, folder / "new")]
        self.rows = []
        self.text = folder / "text.txt"
        write_text(self.text)
        self.profiles = {}
        for name, words in MODELS.items():
            self.profiles[name] = self.profile(name, "solo", *words)
        self.profiles["rounds"] = self.profile("rounds", "devnet", *MODELS["mixture"], "--inner-steps", "20")

    def profile(self, name, base, *words):
        path = self.folder / f"{name}.json"
        self.builds[0].call("network", "create", "--from", base, "--name", name, *SHAPE, *words, "--out", path)
        return path

    def compare(self, name, ask):
        """ask(build) gives a value; a failure on either side is a difference."""
        values, trouble = [], ""
        for build in self.builds:
            try:
                values.append(ask(build))
            except (Failed, OSError, KeyError, IndexError, ValueError) as error:
                trouble = f"{build.label}: {error!r}" if not isinstance(error, Failed) else str(error)
                break
        if not trouble and not values[0]:
            trouble = "nothing to compare"
        count = len(values[0]) if not trouble and hasattr(values[0], "__len__") else 1
        equal = not trouble and values[0] == values[1]
        if not equal and not trouble:
            trouble = first_difference(*values)
        self.rows.append({"check": name, "equal": equal, "values": 0 if trouble else count, "difference": trouble})
        print(f"| {name} | {count} | {'equal' if equal else 'DIFFERENT: ' + trouble} |", flush=True)

    # ---- the checks ------------------------------------------------------------------------------------------------
    def make_identity(self):
        """A wallet and a node's keys, made by the old program as it begins to train in a network."""
        home, self.identity = self.builds[0].home / "identity", self.folder / "identity"
        self.node_of_rounds(self.builds[0], home, 1)
        self.identity.mkdir()
        for name in IDENTITY:
            shutil.copy(home / name, self.identity / name)

    def data_directory(self, build, name):
        path = build.home / name
        shutil.copytree(self.identity, path)
        return path

    def training(self, model, precision):
        def ask(build):
            data = self.data_directory(build, f"{model}-{precision}")
            common = ["--data-dir", data, "--profile", self.profiles[model], "--cpu-threads", 1, "--precision", precision]
            rows = build.call("train", "--text", self.text, *common, "--steps", 40, "--eval-interval-steps", 20, "--checkpoint-every-steps", 20, "--json")
            steps = [without_times(row) for row in rows if "loss" in row]
            out = build.home / f"{model}-{precision}.safetensors"
            where = ["--data-dir", data, "--profile", self.profiles[model], "--json"]
            build.call("checkpoint", "export", "latest", *where, "--out", out)
            text = [row["text"] for row in build.call("generate", "--prompt", "the", "--max-tokens", 40, "--seed", 3, *where)]
            return steps + [tensors_digest(out)] + text
        self.compare(f"training, {model}, {precision}", ask)

    def node_of_rounds(self, build, data, rounds):
        """The anchors of the first rounds of a node that is alone beside a tracker."""
        port, tracker_data = free_port(), build.home / f"tracker-{data.name}"
        profile = self.profiles["rounds"]
        tracker = build.start(f"tracker-{data.name}", "tracker", "--data-dir", tracker_data, "--profile", profile, "--address", "127.0.0.1",
                              "--port", port, "--lan")
        node = None
        try:
            node = build.start(data.name, "run", "--data-dir", data, "--profile", profile, "--text", self.text, "--tracker", f"127.0.0.1:{port}",
                               "--p2p-address", "127.0.0.1", "--p2p-port", 0, "--lan", "--cpu-threads", 1, "--precision", "fp32")
            deadline = time.monotonic() + 180
            while time.monotonic() < deadline:
                logs = [build.home / f"{data.name}.log", *(data / "logs").glob("*")]
                text = "\n".join(path.read_text(errors="replace") for path in logs if path.is_file())
                anchors = {int(number): anchor for number, anchor in ANCHOR.findall(text)}
                if all(number in anchors for number in range(1, rounds + 1)):
                    return [anchors[number] for number in range(1, rounds + 1)]
                if node.poll() is not None:
                    raise Failed(f"{build.label}: run ended with {node.returncode}")
                time.sleep(0.3)
            raise Failed(f"{build.label}: no {rounds} rounds in three minutes, or its log names anchors in other words")
        finally:
            for process in (node, tracker):
                if process and process.poll() is None:
                    stop(process)

    def rounds(self):
        self.compare("rounds, anchors of a real node", lambda build: self.node_of_rounds(build, self.data_directory(build, "rounds"), ROUNDS))

    def simulation(self, scenario, sync, seed, nodes):
        def ask(build):
            row = without_times(build.call("simulate", "--scenario", scenario, "--sync", sync, "--seed", seed, "--nodes", nodes, "--rounds", 5,
                                           "--inner-steps", 8, "--json")[0])
            return sorted(row.items())
        self.compare(f"simulation, {scenario}, {sync}, {nodes} nodes, seed {seed}", ask)

    def partition(self, name, words):
        def ask(build):
            row = build.call("partition", *words, "--bandwidth", "1e8", "--flops", "5e10", "--memory-bandwidth", "1e10", "--seed", 1, "--json")[0]
            if not row["proved"]:
                raise Failed("not proved, so it can't be compared")
            return sorted((key, value) for key, value in row.items() if key in ("bottleneck", "lower_bound", "simple_bound", "blocks", "nodes", "edges", "k"))
        self.compare(f"partition, {name}", ask)

    def graph(self, seed):
        rng = random.Random(seed)
        nodes = []
        for i in range(12):
            inputs = sorted(rng.sample([n["id"] for n in nodes], min(len(nodes), rng.randint(1, 2)))) if nodes else []
            nodes.append({"id": f"n{i}", "op": "matmul", "work": round(rng.uniform(0.1, 5), 3), "param_bytes": rng.randint(0, 10**6),
                          "output_bytes": rng.randint(10**3, 10**6), "inputs": inputs})
        path = self.folder / f"graph-{seed}.json"
        path.write_text(json.dumps({"unit": "ms", "nodes": nodes}))
        return path

    def run(self):
        print("| check | values | result |\n|---|---|---|", flush=True)
        self.make_identity()
        flags = open("/proc/cpuinfo", encoding="utf-8").read()
        precisions = ["fp32"] + (["bf16"] if re.search(r"avx512_bf16|amx_bf16", flags) and not self.quick else [])
        for model in MODELS:
            for precision in precisions:
                self.training(model, precision)
        self.rounds()
        scenarios = ["clean"] if self.quick else ["clean", "churn", "lossy", "partition", "leader-killed", "late-joiner", "sign-flip", "alie", "two-payloads"]
        for scenario in scenarios:
            for sync in ("plain", "delayed-1"):
                for seed in (1, 2) if self.quick else (1, 2, 3):
                    self.simulation(scenario, sync, seed, 8)
        if not self.quick:
            for scenario in ("clean", "two-payloads"):  # from 17 on leaders collect the votes
                self.simulation(scenario, "plain", 1, 24)
        for model in ("solo", "devnet"):
            for level in ("layer", "slot"):
                for k in (2, 4):
                    self.partition(f"model:{model} by {level}, k = {k}", ["--graph", f"model:{model}", "--level", level, "--k", k])
        for seed in range(2 if self.quick else 12):
            self.partition(f"generated graph {seed}, k = 3", ["--graph", self.graph(seed), "--k", 3])
        different = [row for row in self.rows if not row["equal"]]
        print(json.dumps({"checks": len(self.rows), "values": sum(row["values"] for row in self.rows), "different": [row["check"] for row in different]}))
        return 1 if different or not self.rows else 0


def first_difference(old, new):
    for index, (a, b) in enumerate(zip(old, new)):
        if a != b:
            return f"value {index}: {str(a)[:90]} and {str(b)[:90]}"
    return f"{len(old)} and {len(new)} values"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="fewer seeds and scenarios")
    options = parser.parse_args()
    try:
        return Comparison(options.old, options.new, options.folder.resolve(), options.quick).run()
    except Failed as failed:
        print(f"error: {failed}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
