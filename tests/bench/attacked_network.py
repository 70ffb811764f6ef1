"""Real nodes of one small network in rounds, which somebody attacks: start, pace, memory, bans, ends."""
import argparse
import json
import os
import re
import subprocess
import threading
import time

import diloco_processes

CERTIFIED = re.compile(r"round (\d+) is certified with anchor ([0-9a-f]+)")


def made_up_text(words=60_000):
    """Sentences of few words, the same each time."""
    state, out = 7, []
    names = "stone river night bread child house light water field song wind road tree fire hand door star rain".split()
    for _ in range(words):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(names[(state >> 33) % len(names)] + (".\n" if state >> 60 == 0 else ""))
    return " ".join(out)


class AttackedNetwork(diloco_processes.Network):
    """arguments: node (the program), folder, text, workers, period.
    recorder: a further member that is honest, but writes what it says to the file `said` of its folder.
    internet: where each node is a host; without it they are on one computer, where all attackers may greet."""

    def __init__(self, arguments, recorder=False, internet=None):
        super().__init__(argparse.Namespace(**{**vars(arguments), "liars": 0, "batch": 16, "alone": False, "precision": "fp32"}))
        self.recorder, self.internet = recorder, internet
        if internet:
            self.lan = []
        self.watched = {}
        self.peaks = {}

    def make_profile(self):
        a = self.arguments
        self.call("network", "create", "--from", "devnet", "--name", "attacked", "--out", self.profile, "--grows", "0", "--h", str(a.period),
                  "--layers", "1", "--hidden", "32", "--head-dim", "16", "--vocab", "300", "--experts", "2", "--sequence", "32",
                  "--batch-tokens", "512")

    def names(self):
        return self.honest() + (["recorder"] if self.recorder else [])

    def start(self, name, *words):
        if name != "recorder":
            return super().start(name, *words)
        with open(self.path(name + ".out"), "a", encoding="utf-8") as log:
            program = os.path.join(os.path.dirname(self.arguments.node), "lying_node")
            self.processes[name] = subprocess.Popen([program, "record", self.path("said"), *words], stdout=log, stderr=log)
        return None

    def address(self, name):
        return self.internet.address(name) if self.internet else super().address(name)

    def launch(self, name, log, *command):
        super().launch(name, log, *(self.internet.on(name, command) if self.internet else command))

    def call(self, *words, check=True):
        if not self.internet or "--data-dir" not in words:
            return super().call(*words, check=check)
        name = os.path.basename(words[words.index("--data-dir") + 1])
        done = subprocess.run(self.internet.on(name, [self.arguments.node, *words]), capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"neuroshardd {words[0]} of {name}: {done.stdout}{done.stderr}")
        return done.stdout

    def at(self, name):
        """ID@HOST:PORT of a node."""
        said = self.call("status", "--json", "--data-dir", self.path(name))
        with open(os.path.join(self.path(name), "peers.port"), encoding="utf-8") as port:
            return json.loads(said.splitlines()[0])["node_id"] + f"@{self.address(name)}:" + port.read().split()[-1]

    def key(self, name):
        return os.path.join(self.path(name), "node.key")

    def wait_for_rounds(self, rounds, seconds=240):
        """Until all are members and hold so many rounds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check_alive()
            said = [self.status(name) for name in self.names()]
            if all(one.get("members") == len(self.names()) and one.get("round", 0) >= rounds for one in said):
                return
            time.sleep(1)
        raise RuntimeError(f"the nodes do not train together after {seconds} s: {said}")

    def ended(self):
        """Nodes that are gone, each with its exit status and the end of what it said."""
        found = []
        for name in self.names():
            status = self.processes[name].poll()
            if status is not None:
                with open(self.path(name + ".out"), encoding="utf-8", errors="replace") as said:
                    found.append({"node": name, "exit": status, "said": said.read()[-4000:]})
        return found

    def check_alive(self):
        if self.ended():
            raise RuntimeError(f"a node has ended: {self.ended()}")

    def round_of(self, name):
        """The last round of a node's log, which costs it nothing."""
        try:
            with open(os.path.join(self.path(name), "logs", "neuroshardd.log"), encoding="utf-8") as log:
                return max((int(number) for number, _ in CERTIFIED.findall(log.read())), default=0)
        except FileNotFoundError:
            return 0

    def resident_mib(self, name):
        try:
            with open(f"/proc/{self.processes[name].pid}/status", encoding="utf-8") as status:
                for line in status:
                    if line.startswith("VmRSS:"):
                        return int(line.split()[1]) / 1024
        except OSError:
            pass
        return 0.0

    def bans(self, name):
        """The nodes that this one refuses now, and its refusals by reason."""
        said = self.call("peers", "--json", "--data-dir", self.path(name), check=False)
        view = json.loads(said.splitlines()[0])
        return view["bans"], {one["reason"]: one["count"] for one in view["refusals"]}

    def measure(self, seconds, beat=1.0):
        """Pace and memory of the honest nodes for so long; ends early where a node has ended."""
        begun, first = time.monotonic(), {name: self.round_of(name) for name in self.honest()}
        resident = {name: [] for name in self.honest()}
        waiting = threading.Event()
        while time.monotonic() - begun < seconds and not self.ended():
            for name in self.honest():
                resident[name].append(self.resident_mib(name))
            waiting.wait(beat)
        passed = time.monotonic() - begun
        made = {name: self.round_of(name) - first[name] for name in self.honest()}
        return {"seconds": round(passed, 1), "rounds": made,
                "rounds_per_minute": round(60 * min(made.values()) / passed, 2),
                "mib": {name: {"mean": round(sum(one) / len(one), 1), "most": round(max(one), 1)} for name, one in resident.items() if one},
                "ended": self.ended()}

    def honest_ids(self):
        return {name: self.at(name).split("@")[0] for name in self.names()}
