#!/usr/bin/env python3
"""Processes of a pipeline (tests/support/pipeline_node.cpp), started, connected and heard."""
import json
import os
import queue
import subprocess
import threading
import time

PATIENCE_S = 60


class Node:
    """One process. Its events come in the order in which it printed them, each with the time of its arrival here."""

    def __init__(self, program, config, before=()):
        self.stage = config.get("stage")
        self.process = subprocess.Popen([*map(str, before), str(program), "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.events = queue.Queue()
        self.heard = []
        threading.Thread(target=self.read, daemon=True).start()
        self.tell(config)
        ready = self.wait("ready")
        self.id, self.address = ready["id"], ready["address"]

    def read(self):
        for line in self.process.stdout:
            self.events.put({**json.loads(line), "heard": time.monotonic()})
        self.events.put({"ended": True, "heard": time.monotonic()})

    def tell(self, words):
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def next(self, patience=PATIENCE_S):
        event = self.events.get(timeout=patience)
        self.heard.append(event)
        return event

    def wait(self, name, patience=PATIENCE_S):
        """The next event with that key; those before it are heard, too."""
        deadline = time.monotonic() + patience
        while name not in (event := self.next(max(0.1, deadline - time.monotonic()))):
            if "ended" in event:
                raise RuntimeError(f"the process ended: {self.process.wait()}")
        return event

    def report(self):
        self.tell({"do": "report"})
        return self.wait("report")["report"]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            try:
                self.tell({"do": "stop"})
                return self.process.wait(PATIENCE_S)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                self.process.kill()
        return self.process.wait()


def introduce(nodes):
    everybody = [{"id": node.id, "address": node.address, **({"stage": node.stage} if node.stage else {})} for node in nodes]
    for node in nodes:
        if node.process.poll() is None:
            node.tell({"do": "meet", "peers": everybody})


def ranges(layers, stages):
    """Contiguous parts of about the same size, embedding first, head last."""
    cuts = [layers * i // stages for i in range(stages + 1)]
    return [{"first": cuts[i], "count": cuts[i + 1] - cuts[i], "embed": i == 0, "head": i + 1 == stages} for i in range(stages)]


class Star:
    """Namespaces that reach each other through one in the middle, so that a packet takes `delay_ms` one way."""

    def __init__(self, wire_program, count, delay_ms):
        self.middle, self.ends, self.wires = f"nsp{os.getpid()}", [], []
        try:
            self.make(wire_program, count, delay_ms)
        except BaseException:
            self.remove()
            raise

    def make(self, wire_program, count, delay_ms):
        self.ip("netns", "add", self.middle)
        self.inside(self.middle, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for i in range(count):
            end = f"{self.middle}-{i}"
            self.ip("netns", "add", end)
            self.ends.append(end)
            self.inside(end, "ip", "link", "set", "lo", "up")
            wire = subprocess.Popen([str(wire_program), "join", self.middle, f"10.77.{i}.1/24", end, f"10.77.{i}.2/24", str(delay_ms / 2), "0"],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.wires.append(wire)
            if wire.stdout.readline() != "ready\n":
                raise RuntimeError("delay_wire did not start")
            self.inside(end, "ip", "route", "add", "default", "via", f"10.77.{i}.1")

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    @staticmethod
    def inside(namespace, *words):
        subprocess.run(["ip", "netns", "exec", namespace, *words], check=True)

    def command(self, i):
        return ["ip", "netns", "exec", self.ends[i]]

    @staticmethod
    def host(i):
        return f"10.77.{i}.2"

    def remove(self):
        for wire in self.wires:
            wire.stdin.close()
            try:
                wire.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                wire.kill()
                wire.wait()
        for namespace in [*self.ends, self.middle]:
            subprocess.run(["ip", "netns", "del", namespace], check=False)
