#!/usr/bin/env python3
"""All attacks of strangers at once on four real nodes in rounds, beside the same work without packets to them.

    strangers.py NODE FOLDER [--seconds 3600] [--seed 1] [--workers 4] [--share 0.25] [--only NAME,…] [--side control|attacked]

NODE is the neuroshardd to run, with protocol_fuzzer beside it. Two networks of the same age, one after the other: in the first,
the attackers send to a socket that swallows everything, in the second to the nodes, in turn. Each node and each attack has a computer
with a public address of its own, by network namespaces; with --loopback all share one, where no limit of addresses holds. All
attackers together have --share of one core, by a control group. Prints one JSON object with both sides and what they miss, or with
the one side asked for. Exit status 1: a gate is missed or a node has ended; 77: no control group or no namespaces.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import attacked_network
import internet
from control_group import Group

HERE = os.path.dirname(os.path.abspath(__file__))
BELOW = ("plain", "tls", "frames", "no-bodies", "slow-bodies")  # of stranger_attacks.py
SPOKEN = ("records", "punch", "joins", "fuzz")  # of protocol_fuzzer
FLOODS = ("ping", "settings", "continuation", "greetings", "header_bomb", "rapid_reset")  # of grpc_floods.py
PACE = 0.90  # of the control's rounds a minute
MEMORY = 1.10  # of the control's largest resident size


def floods(a, network, host, port):
    """Frames of HTTP/2 for gRPC, which the node cuts off, from an address of their own."""
    program = os.path.join(HERE, os.pardir, "functional", "grpc_floods.py")
    source = ["--from", "0.0.0.0"] if a.internet else []  # on one computer, another address of it
    return {f"flood-{name}": [sys.executable, program, "flood", name, host, port, *source, "--network", network.network_id, "--seconds", a.seconds]
            for name in FLOODS}


def attack_commands(a, network, number, at):
    """Name and command of each attack on the node `at`. A further one is a line here: a program that takes the address and the
    seconds, and whose last line is a JSON object with the key "calls" or "connections"."""
    _, _, address = at.partition("@")
    host, _, port = address.rpartition(":")
    fuzzer = os.path.join(os.path.dirname(a.node), "protocol_fuzzer")
    below = [sys.executable, os.path.join(HERE, "stranger_attacks.py")]
    about = ["--network", network.network_id, "--seconds", a.seconds, "--seed", a.seed + number]
    calls = ["--profile", network.profile, "--seconds", a.seconds, "--seed", a.seed + number]
    commands = {name: [*below, name, host, port, *about] for name in BELOW}
    commands |= {name: [fuzzer, name, "--at", at, "--victim", a.victim, "--clients", 2, *calls] for name in SPOKEN}
    return commands | floods(a, network, host, port)


def control_commands(a, network, sink, ports):
    fuzzer = os.path.join(os.path.dirname(a.node), "protocol_fuzzer")
    below = [sys.executable, os.path.join(HERE, "stranger_attacks.py")]
    about = ["--network", network.network_id, "--seconds", a.seconds, "--seed", a.seed]
    commands = {name: [*below, name, sink, ports["plain" if name == "plain" else "tls"], *about]
                for name in BELOW}
    commands |= floods(a, network, sink, ports["tls"])
    for number, name in enumerate(SPOKEN):
        commands[name] = [fuzzer, "sink", "--at", f"{sink}:{ports['plain']}", "--profile", network.profile, "--seconds", a.seconds,
                          "--seed", a.seed + number]
    return commands


class Side:
    """One network and its attackers."""

    def __init__(self, a, name):
        self.a, self.name = a, name
        self.folder = os.path.join(a.base, name)
        self.network = attacked_network.AttackedNetwork(argparse.Namespace(**{**vars(a), "folder": self.folder}), internet=a.internet)
        self.group, self.sink, self.attackers = None, None, {}

    def on(self, name, command):
        return self.a.internet.on(name, command) if self.a.internet else command

    def out(self, name):
        return os.path.join(self.folder, f"attack-{name}.out")

    def start_sink(self, group):
        with open(self.out("sink"), "w", encoding="utf-8") as out:
            self.sink = group.start(self.on("sink", [sys.executable, os.path.join(HERE, "stranger_attacks.py"), "sink", self.a.sink,
                                                     "--seconds", self.a.seconds + 900]), out)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with open(self.out("sink"), encoding="utf-8") as said:
                line = said.readline()
            if line.startswith("{"):
                return json.loads(line)
            time.sleep(0.2)
        raise RuntimeError("the sink does not begin")

    def attack(self, ports):
        names = self.network.honest()
        if self.name == "control":
            commands = control_commands(self.a, self.network, self.a.sink, ports)
        else:
            every = [attack_commands(self.a, self.network, number, self.network.at(node)) for number, node in enumerate(names)]
            # Each attack has one node; the fuzzer another one than the calls that take all places.
            commands = {name: every[number % len(names)][name] for number, name in enumerate(every[0])}
        for name in set(commands) & set(self.a.only.split(",")) if self.a.only else commands:
            command = commands[name]
            with open(self.out(name), "w", encoding="utf-8") as out:
                self.attackers[name] = self.group.start(self.on(f"attack-{name}", command), out)

    def said(self, name):
        with open(self.out(name), encoding="utf-8", errors="replace") as out:
            lines = out.read().splitlines()
        return next((json.loads(line) for line in reversed(lines) if line.startswith("{")), {"failed": lines[-3:]})

    def run(self):
        a, network = self.a, self.network
        self.group = Group("strangers", a.share)
        try:
            network.make_profile()
            shown = network.call("network", "show", network.profile, "--json")
            network.network_id = json.loads(shown.splitlines()[0])["network_id"]
            network.start_all()
            network.wait_for_rounds(2)
            ports = self.start_sink(self.group)
            a.victim = f"{a.sink}:{ports['plain']}"
            self.attack(ports)
            measured = network.measure(a.seconds)
            for attacker in self.attackers.values():
                try:
                    attacker.wait(60)
                except subprocess.TimeoutExpired:
                    attacker.kill()
            measured["attackers_processor_seconds"] = self.group.used_seconds()
            measured["attacks"] = {name: self.said(name) for name in self.attackers}
            if not measured["ended"]:
                ids = set(network.honest_ids().values())
                views = {name: network.bans(name) for name in network.honest()}
                measured["bans"] = {name: len(bans) for name, (bans, _) in views.items()}
                measured["refusals"] = {name: refusals for name, (_, refusals) in views.items()}
                measured["banned_honest"] = [(name, ban) for name, (bans, _) in views.items() for ban in bans if ban["id"] in ids]
        finally:
            for process in [*self.attackers.values(), *([self.sink] if self.sink else [])]:
                process.kill()
                process.wait()
            network.end()
            self.group.remove()
        measured["torn"] = [str(number) for number, of_round in network.anchors().items() if len(of_round) > 1]
        return measured


def judge(control, attacked):
    pace = attacked["rounds_per_minute"] / max(control["rounds_per_minute"], 1e-9)
    memory = max(one["most"] for one in attacked["mib"].values()) / max(one["most"] for one in control["mib"].values())
    idle = [name for name, said in attacked["attacks"].items() if said.get("calls", 0) + said.get("connections", 0) == 0]
    missed = []
    if pace < PACE:
        missed.append(f"{pace:.2f} of the pace")
    if memory > MEMORY:
        missed.append(f"{memory:.2f} of the memory")
    if attacked["ended"] or control["ended"]:
        missed.append("a node has ended")
    if attacked.get("banned_honest") or attacked["torn"]:
        missed.append("an honest node is banned, or a round has two anchors")
    if idle:
        missed.append("attacks that sent nothing: " + ", ".join(idle))
    return {"pace": round(pace, 3), "memory": round(memory, 3), "missed": missed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("node")
    parser.add_argument("folder", help="made by this run")
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--period", type=int, default=200)
    parser.add_argument("--share", type=float, default=0.25)
    parser.add_argument("--only", default="", help="names of attacks with commas between them, to see what each does")
    parser.add_argument("--side", choices=("control", "attacked"), help="only this one; tests/long.sh strangers compares them")
    parser.add_argument("--loopback", action="store_true", help="all on one computer")
    a = parser.parse_args()
    a.base, a.text = os.path.abspath(a.folder), os.path.join(os.path.abspath(a.folder), "text")
    try:
        if not a.loopback:
            internet.enter()
        Group("strangers", a.share).remove()
    except OSError as error:
        print(f"no control group or no namespaces: {error}")
        return 77
    a.internet = None if a.loopback else internet.Internet()
    a.sink = a.internet.address("sink") if a.internet else "127.0.0.1"
    os.makedirs(a.base)
    with open(a.text, "w", encoding="utf-8") as text:
        text.write(attacked_network.made_up_text())
    sides = {name: Side(a, name).run() for name in ([a.side] if a.side else ("control", "attacked"))}
    if not a.side:
        sides = {**judge(sides["control"], sides["attacked"]), **sides}
    print(json.dumps(sides))
    return 1 if sides.get("missed") or any(sides[name]["ended"] for name in ("control", "attacked") if name in sides) else 0


if __name__ == "__main__":
    sys.exit(main())
