#!/usr/bin/env python3
"""The study of low-communication training with real processes: K nodes train one model over loopback sockets.

    diloco_processes.py NODE TEXT FOLDER [--workers 4] [--rounds 80] [--period 25] [--batch 12] [--lr 4e-3] …

NODE is the neuroshardd to run. A tracker and K nodes of a network of their own (dense, four layers of width 128,
bytes as tokens, as in the study `shakespeare`) join each other, begin when all know the tracker (the first rounds may be of one node) and train until every node has
certified the last round. Then they are killed, and the newest checkpoint, which a node writes after each outer
round, is evaluated over the whole held-out tenth of the text (`neuroshardd train --until-step`, which trains nothing
where the steps are done). Prints one JSON object: that loss, and what each node says of its rounds; FOLDER keeps everything.
With --alone it is data-parallel training instead: one node without rounds, with the batch of all K.
With --liars N so many of the K nodes are lying_node (beside NODE) and tell --attack: they train honestly, show each
other what they trained, and contribute what hurts most, as far as they can tell from that. The loss is an honest node's.
With --kill N the first node is killed (SIGKILL) after every N rounds and started again --away seconds later.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

CERTIFIED = re.compile(
    r"(?:fragment (\d+) of \d+: )?round (\d+) is certified with anchor ([0-9a-f]+): (\d+) of (\d+) members")


class Network:
    lan = ["--lan"]

    def __init__(self, arguments):
        self.arguments = arguments
        self.processes = {}
        self.commands = {}
        self.kills = 0
        os.makedirs(arguments.folder)
        self.profile = os.path.join(arguments.folder, "profile.json")

    def call(self, *words, check=True):
        done = subprocess.run([self.arguments.node, *words], capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"neuroshardd {words[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def make_profile(self):
        a = self.arguments
        batch = a.batch * (a.workers if a.alone else 1)
        rounds = ["--from", "solo"] if a.alone else [
            "--from", "devnet", "--grows", "0", "--h", str(a.period), "--outer-lr", str(a.outer_lr),
            "--outer-momentum", str(a.outer_mu), "--sync", a.sync, "--codec", a.codec]
        self.call("network", "create", *rounds, "--name", "study", "--out", self.profile, "--layers", "4",
                  "--hidden", "128", "--head-dim", "32", "--vocab", "266", "--sequence", "64", "--experts", "1",
                  "--experts-per-token", "1", "--ffn-percent", "300", "--batch-tokens", str(batch * 64),
                  "--peak-lr", str(a.lr), "--warmup", "20", "--decay-steps", str(a.rounds * a.period))

    def address(self, name):
        """Of the computer of a node or the tracker."""
        return "127.0.0.1"

    def path(self, name):
        return os.path.join(self.arguments.folder, name)

    def start(self, name, *words):
        self.commands[name] = words
        log = open(self.path(name + ".out"), "a", encoding="utf-8")
        program = [self.arguments.node]
        if name in self.liars():
            program = [os.path.join(os.path.dirname(self.arguments.node), "lying_node"), self.arguments.attack,
                       str(len(self.liars())), str(len(self.honest())), self.path("lies"), name]
        self.launch(name, log, *program, *words)

    def launch(self, name, log, *command):
        self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def wait_for(self, name, event, seconds=120):
        """The first line of `name` that tells of `event`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with open(self.path(name + ".out"), encoding="utf-8") as lines:
                for line in lines:
                    if line.startswith("{") and event in line:
                        said = json.loads(line)
                        if said.get("event") == event or event in said:
                            return said
            if self.processes[name].poll() is not None:
                break
            time.sleep(0.2)
        with open(self.path(name + ".out"), encoding="utf-8") as said:
            raise RuntimeError(f"{name} does not say {event}: {said.read()[-2000:]}")

    def honest(self):
        return [f"node{i}" for i in range(self.arguments.workers - self.arguments.liars)]

    def liars(self):
        return [f"liar{i}" for i in range(self.arguments.liars)]

    def names(self):
        return self.liars() + self.honest()

    def lies(self):
        """How many honest deltas each attacker knew."""
        found = []
        for name in self.liars():
            with open(self.path(name + ".out"), encoding="utf-8") as lines:
                found += [json.loads(line)["knows"] for line in lines if line.startswith('{"lied"')]
        return found

    def start_tracker(self):
        """Where it listens."""
        self.start("tracker", "tracker", "--json", "--profile", self.profile, "--address", self.address("tracker"), "--port",
                   "0", *self.lan)
        ready = self.wait_for("tracker", "ready")
        return ready["id"] + "@" + ready["address"]

    def start_member(self, name, tracker, *words):
        """It contributes from contribute() on."""
        self.call("settings", "set", "contribute", "off", "--data-dir", self.path(name), "--profile", self.profile)
        self.start(name, "run", "--json", "--data-dir", self.path(name), "--profile", self.profile, *self.lan, "--p2p-port",
                   "0", "--p2p-address", self.address(name), "--tracker", tracker, *words)

    def training_words(self):
        a = self.arguments
        return ["--text", a.text, "--cpu-threads", "1", "--precision", a.precision, "--eval-interval-steps", "0",
                "--max-micro-batch", str(a.batch), "--checkpoint-keep-last", "3"]

    def start_all(self):
        os.makedirs(self.path("lies"))
        tracker = self.start_tracker()
        for name in self.names():
            self.start_member(name, tracker, *self.training_words())
        self.contribute(self.names())

    def contribute(self, names):
        """Once they have joined."""
        for name in names:
            self.wait_for(name, "peers")
        for name in names:
            self.call("contribute", "on", "--data-dir", self.path(name))

    def status(self, name):
        said = self.call("status", "--json", "--data-dir", self.path(name), check=False)
        return json.loads(said.splitlines()[0]).get("rounds", {}) if said.startswith("{") else {}

    def train(self):
        """Until every node has certified the last round; what each says then."""
        a = self.arguments
        paused = together = False
        next_kill = a.kill
        while True:
            # A slow node gets a quarter of the time: stopped for three parts of four, once all are members.
            for _ in range(4):
                for name in self.honest()[:a.slow] if together else []:
                    os.kill(self.processes[name].pid, signal.SIGCONT if paused else signal.SIGSTOP)
                time.sleep(0.3 if paused else 0.9)
                paused = not paused
            for name in self.names():
                if self.processes[name].poll() is not None:
                    self.wait_for(name, "an end that was not asked for", 0)
            said = [self.status(name) for name in self.honest()[a.slow:]]
            together = together or all(one.get("members") == a.workers for one in said)
            if said and all(one.get("round", 0) >= a.rounds for one in said):
                return said
            # Not in the last rounds: who has just come back is no end to be measured.
            reached = max(one.get("round", 0) for one in said)
            if a.kill and together and next_kill <= reached < a.rounds - 5:
                self.kill_and_restart(self.honest()[a.slow])
                next_kill = reached + a.kill

    def kill_and_restart(self, name):
        self.processes[name].kill()
        self.processes[name].wait()
        time.sleep(self.arguments.away)
        self.start(name, *self.commands[name])
        self.kills += 1

    def anchors(self):
        """{(fragment, round): {anchor: [contributors, …]}} of all logs, without what a node made alone and gave up for
        the others'."""
        found = {}
        for name in self.names():
            with open(os.path.join(self.path(name), "logs", "neuroshardd.log"), encoding="utf-8") as log:
                for fragment, number, anchor, contributors, members in CERTIFIED.findall(log.read()):
                    if int(members) > 1:
                        of_round = found.setdefault((fragment, int(number)), {})
                        of_round.setdefault(anchor, []).append(int(contributors))
        return found

    def end(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()

    def held_out_loss(self, name):
        said = self.call("train", "--json", "--data-dir", self.path(name), "--until-step", "1", "--eval-tokens",
                         "1000000000", "--precision", "fp32")
        rows = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        measured = [row for row in rows if row.get("val_loss") is not None]
        if not measured:
            raise RuntimeError(f"{name} measures no held-out loss: {said}")
        return measured[-1]


def with_rounds(network):
    begun = time.monotonic()
    try:
        network.make_profile()
        network.start_all()
        said = network.train()
    finally:
        network.end()
    seconds = time.monotonic() - begun
    anchors = network.anchors()
    torn = [number for number, of_round in anchors.items() if len(of_round) > 1]
    if torn:
        raise RuntimeError(f"rounds with two anchors: {torn}")
    last = network.honest()[-1]
    measured = network.held_out_loss(last)
    expected = network.arguments.rounds * network.arguments.period
    if measured["step"] < expected * 3 // 4:
        raise RuntimeError(f"{last} has trained {measured['step']} of {expected} steps: it joined too late to be measured; "
                           "rounds have to take longer than joining does")
    contributors = [max(of) for one in anchors.values() for of in one.values()]
    keys = ("round", "contributed", "waiting_share", "bytes_sent", "bytes_received", "corruptions")
    result = {"loss": measured["val_loss"], "step": measured["step"], "rounds": len(anchors),
              "contributors": sum(contributors) / max(1, len(contributors)), "seconds": round(seconds),
              "nodes": [{key: one.get(key) for key in keys} for one in said]}
    if network.arguments.kill:
        result["kills"] = network.kills
    if network.liars():
        lies = network.lies()
        result["lies"] = {"told": len(lies), "knowing_all_liars": sum(one == len(network.liars()) for one in lies)}
    return result


def alone(network):
    a = network.arguments
    network.make_profile()
    begun = time.monotonic()
    network.call("train", "--json", "--data-dir", network.path("node0"), "--profile", network.profile, "--text", a.text,
                 "--until-step", str(a.rounds * a.period), "--cpu-threads", "1", "--precision", "fp32",
                 "--eval-interval-steps", "0", "--max-micro-batch", str(a.batch))
    measured = network.held_out_loss("node0")
    return {"loss": measured["val_loss"], "step": measured["step"], "seconds": round(time.monotonic() - begun)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("node")
    parser.add_argument("text")
    parser.add_argument("folder", help="made by this run")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--period", type=int, default=25)
    parser.add_argument("--batch", type=int, default=12, help="sequences of 64 tokens of a node and step")
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--outer-lr", type=float, default=0.7)
    parser.add_argument("--outer-mu", type=float, default=0.8)
    parser.add_argument("--sync", default="plain", help="plain, delayed-1, or fragments=P (docs/guide/train-together.md)")
    parser.add_argument("--codec", default="int8")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--liars", type=int, default=0, help="so many of the workers lie")
    parser.add_argument("--attack", default="inner-product", help="what they tell, as core/outer/attack.h names it")
    parser.add_argument("--slow", type=int, default=0, help="so many nodes get a quarter of the time")
    parser.add_argument("--kill", type=int, default=0, help="kill the first node after every so many rounds; 0 = never")
    parser.add_argument("--away", type=float, default=3, help="seconds until a killed node is started again")
    parser.add_argument("--alone", action="store_true", help="data-parallel: one process with the whole batch")
    arguments = parser.parse_args()
    if arguments.liars + arguments.slow >= arguments.workers:
        parser.error("at least one of the workers has to be honest and as fast as the machine")
    network = Network(arguments)
    result = alone(network) if arguments.alone else with_rounds(network)
    result["flags"] = {key: value for key, value in vars(arguments).items() if key not in ("node", "text", "folder")}
    json.dump(result, sys.stdout)
    print()


if __name__ == "__main__":
    main()
