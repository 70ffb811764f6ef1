#!/usr/bin/env python3
"""Resident memory of a node beside its memory plan, alone or in rounds, per parameter of the model.

    rounds_memory.py NODE TEXT FOLDER [--workers 2] [--senders 0] [--rounds 3] [--codec int8] [--layers 9] …
    rounds_memory.py NODE TEXT FOLDER --workers 1 --alone …

NODE is the neuroshardd to run; payload_sender stands beside it. Of the members, --workers train, and --senders only send
payloads of full size (tests/support/payload_sender.cpp). The first three senders have the first node's wallet, so they
vote at once; the others stay candidates, and a round takes a quarter as many of them as there are voters. Waits until
all members give a round their payload, then until ROUNDS further rounds are certified. Alone, the node trains as many steps and saves. Samples the first node's resident
size five times a second. Prints one JSON object: what the plan expects, the peak of the process and the middle of the
samples, each also in bytes a parameter, and the speed of those that train.
Exit status 1 above --gate bytes a parameter, or when the plan is off by more than --plan-gate per cent of the peak.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import sys
import time

import rounds_throughput

PLANNED = re.compile(r"the memory plan expects (\d+) MiB")


def memory_of(process, field):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field + ":"))


class Nodes(rounds_throughput.Nodes):
    def senders(self):
        return [f"sender{i}" for i in range(self.arguments.senders)]

    def start_members(self):
        """First those that train: senders have no tokenizer before the network gives them one."""
        a = self.arguments
        tracker = self.start_tracker()
        for name in self.names():
            self.start_member(name, tracker, *self.training_words())
        self.contribute(self.names())
        if not a.senders:
            return
        # Meanwhile nobody trains: the anchor that they fetch would be an old one by the time they have it.
        self.wait(lambda now: now[1] >= 1)
        for name in self.names():
            self.call("contribute", "off", "--data-dir", self.path(name))
        sender = os.path.join(os.path.dirname(a.node), "payload_sender")
        # A wallet's units are shared by four nodes at most.
        for name in self.senders()[:3]:
            os.makedirs(self.path(name))
            shutil.copy(os.path.join(self.path(self.names()[0]), "wallet.keystore"), self.path(name))
        for name in self.senders():
            with open(self.path(name + ".out"), "a", encoding="utf-8") as log:
                self.launch(name, log, sender, str(a.sender_step_ms), self.path(name), self.profile, tracker)
        for name in self.senders():
            self.wait_for(name, "peers")
        while not all(self.status(name).get("agrees") for name in self.senders()):
            time.sleep(0.5)
        for name in self.names():
            self.call("contribute", "on", "--data-dir", self.path(name))

    def sent(self):
        """Members whose work the newest round of the first node has, and those whose work moved the weights."""
        said = self.call("status", "--json", "--rounds", "--data-dir", self.path(self.names()[0]), check=False).splitlines()
        rounds = json.loads(said[1])["rounds"] if len(said) > 1 else []
        newest = max(rounds, key=lambda one: one["round"], default={})
        return (sum(member["tokens"] > 0 for member in newest.get("who", [])), newest.get("contributors", 0))

    def everybody(self):
        return self.sent()[0] == self.arguments.workers + self.arguments.senders

    def planned(self):
        with open(os.path.join(self.path(self.names()[0]), "logs", "neuroshardd.log"), encoding="utf-8") as log:
            return int(PLANNED.findall(log.read())[-1]) << 20

    def sampled(self):
        """Resident sizes of the first node while the training goes on, tokens per second, parameters."""
        a, sizes = self.arguments, []
        first = self.processes[self.names()[0]]
        begin, before = self.wait(lambda now: now[0] >= 2 if a.alone else now[1] >= 2 and self.everybody())

        def reached(now):
            for _ in range(4):
                sizes.append(memory_of(first, "VmRSS"))
                time.sleep(0.2)
            return now[0] >= before[0] + a.rounds * a.period if a.alone else now[1] >= before[1] + a.rounds
        end, after = self.wait(reached)
        if a.alone:
            self.call("finish", "--data-dir", self.path(self.names()[0]))
        return {"parameters": after[2], "planned_bytes": self.planned(), "samples": len(sizes), "sent_and_counted": self.sent(),
                "peak_bytes": memory_of(first, "VmHWM"), "middle_bytes": statistics.median(sizes),
                "sender_bytes": max([memory_of(self.processes[name], "VmHWM") for name in self.senders()], default=0),
                "tokens_per_s": (after[0] - before[0]) * a.batch_tokens / (end - begin)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("node")
    parser.add_argument("text")
    parser.add_argument("folder", help="made by this run")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--senders", type=int, default=0)
    parser.add_argument("--sender-step-ms", type=int, default=500, help="that a sender takes for a step")
    parser.add_argument("--alone", action="store_true", help="no network")
    parser.add_argument("--period", type=int, default=4, help="inner steps of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=9)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--batch-tokens", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1, help="sequences of a micro-batch")
    parser.add_argument("--sync", default="plain")
    parser.add_argument("--codec", default="int8")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--memory-limit", help="of each node that trains, such as 2GiB")
    parser.add_argument("--gate", type=float, help="bytes a parameter")
    parser.add_argument("--plan-gate", type=float, help="per cent of the peak")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder)
    nodes = Nodes(argparse.Namespace(**{**vars(arguments), "liars": 0, "folder": os.path.join(arguments.folder, "nodes")}))
    try:
        nodes.make_profile()
        for name in nodes.names() if arguments.memory_limit else []:
            nodes.call("settings", "set", "memory_limit", arguments.memory_limit, "--data-dir", nodes.path(name),
                       "--profile", nodes.profile)
        nodes.start_alone() if arguments.alone else nodes.start_members()
        found = nodes.sampled()
    finally:
        nodes.end()
    for name in ("planned", "peak", "middle"):
        found[f"{name}_bytes_a_parameter"] = found[f"{name}_bytes"] / found["parameters"]
    found["plan_off_per_cent"] = 100 * (found["planned_bytes"] / found["peak_bytes"] - 1)
    json.dump(found, sys.stdout)
    print()
    missed = arguments.gate and found["peak_bytes_a_parameter"] > arguments.gate
    missed = missed or arguments.plan_gate and abs(found["plan_off_per_cent"]) > arguments.plan_gate
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
