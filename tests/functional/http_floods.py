#!/usr/bin/env python3
"""Slow and hostile clients at the local HTTP server of a real node that trains.

    http_floods.py SOURCE_TREE FOLDER_OF_PROGRAMS [--clients N] [--seconds S] [--rounds R] [--report]

N clients at a time of each address: heads that come byte by byte, half bodies, readers that don't read, garbage, huge bodies, and,
with the key, half bodies, pages that nobody reads, and texts that are left after their first piece. They run at a lower
priority. In turn with each attack comes a control: the same processes use the processors as much, but send nothing. Meanwhile an
honest client on 127.0.0.1 asks for texts. Checks that the node lives, that training goes on as in the control, and that the honest
client's first token comes in time. Memory is held against a control before the first attack, as an attack may leave some behind,
and must not grow from attack to attack. The last line is a JSON object with all figures. --report fails only for a node that
ended, an honest client that was refused, and memory.
"""
import argparse
import asyncio
import json
import multiprocessing
import os
import pathlib
import random
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from local_http import Client, PATIENCE_S, SHAPE, check_exposition

PROCESSES = 2
NICENESS = 5  # lower, and on a busy machine they would not attack at all
AGAIN_S = 1.0  # a client that was cut off comes back after about so long
MOST_MEMORY_MIB = 48
MOST_GROWTH_MIB = 24  # from the first attack to the last
LEAST_TRAINING = 0.85
MOST_LATE = 2.0
STRANGERS = ("slow head", "half body", "no reader", "garbage", "huge body")
KEYED = ("half body with key", "no reader with key", "leaves its text")
KEYED_SHARE = 20  # one client in so many has the key


class Attack:
    """One client after another of one kind, on one address, until it is cancelled."""

    def __init__(self, kind, port, key, model):
        self.kind, self.port, self.key, self.model = kind, port, key, model
        self.address = f"127.0.0.{2 + (STRANGERS + KEYED).index(kind)}"
        self.connections = self.sent = 0

    def head(self, method, path, more=""):
        return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{more}"

    def with_key(self, more=""):
        return f"Authorization: Bearer {self.key}\r\n{more}"

    async def run(self):
        while True:
            writer = None
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(self.address, 0))
                self.connections += 1
                await self.attack(reader, writer)
            except OSError:
                pass
            finally:
                if writer:
                    writer.transport.abort()
            await asyncio.sleep(AGAIN_S * random.uniform(0.5, 1.5))

    async def send(self, writer, data):
        writer.write(data if isinstance(data, bytes) else data.encode())
        self.sent += len(data)
        await writer.drain()

    async def until_closed(self, reader):
        while await reader.read(1 << 16):
            pass

    async def attack(self, reader, writer):
        kind = self.kind
        if kind == "slow head":
            for byte in self.head("GET", "/health", "X-Slow: " + "a" * 4000):
                await self.send(writer, byte)
                await asyncio.sleep(0.5)
                if reader.at_eof():
                    return
        elif kind == "half body":
            await self.send(writer, self.head("POST", "/v1/completions", "Content-Length: 900000\r\n\r\n") + "x" * 10_000)
            await self.until_closed(reader)
        elif kind == "no reader":
            writer.transport.pause_reading()
            for _ in range(2000):
                await self.send(writer, self.head("GET", "/openapi.json", "\r\n"))
            await asyncio.sleep(10)
        elif kind == "garbage":
            await self.send(writer, random.randbytes(20_000))
            await self.until_closed(reader)
        elif kind == "huge body":
            await self.send(writer, self.head("POST", "/v1/completions", "Content-Length: 1000000000\r\n\r\n"))
            for _ in range(100):
                await self.send(writer, b"x" * 65_536)
        elif kind == "half body with key":
            await self.send(writer, self.head("POST", "/v1/completions", self.with_key("Content-Length: 900000\r\n\r\n")) + "x" * 800_000)
            await self.until_closed(reader)
        elif kind == "no reader with key":
            writer.transport.pause_reading()
            for _ in range(2000):
                await self.send(writer, self.head("GET", "/metrics", self.with_key("\r\n")))
            await asyncio.sleep(10)
        else:
            body = json.dumps({"model": self.model, "prompt": "x", "max_tokens": 64, "stream": True})
            await self.send(writer, self.head("POST", "/v1/completions", self.with_key(f"Content-Length: {len(body)}\r\n\r\n")) + body)
            await reader.read(300)  # the head, or the first piece


async def attack_all(kinds, port, key, model, counts):
    attacks = [Attack(kind, port, key, model) for kind in kinds]
    tasks = [asyncio.create_task(one.run()) for one in attacks]
    while True:
        await asyncio.sleep(0.2)
        counts[0] = sum(one.connections for one in attacks)
        counts[1] = sum(one.sent for one in attacks)
        assert not any(task.done() for task in tasks), [task for task in tasks if task.done()]


def attacker(kinds, port, key, model, counts):
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    asyncio.run(attack_all(kinds, port, key, model, counts))


def spinner(share):
    """As much of a processor as an attacker, without a packet. Counted in its own time, as others may have the processor meanwhile."""
    os.nice(NICENESS)
    began = time.monotonic() - time.process_time() / max(share, 0.01)
    while True:
        end = time.monotonic() + 0.002
        while time.monotonic() < end and time.process_time() < share * (time.monotonic() - began):
            pass
        time.sleep(0.002)


class Honest:
    """Asks for a text, again and again, and notes when its first token came."""

    def __init__(self, port, key, model):
        self.port, self.model, self.late, self.refused, self.stop = port, model, [], [], threading.Event()
        body = json.dumps({"model": model, "prompt": "the license", "max_tokens": 4, "stream": True})
        self.request = (f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop.is_set():
            began = time.monotonic()
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
                    connection.sendall(self.request)
                    answer = b""
                    while b'"text"' not in answer and (piece := connection.recv(1 << 16)):
                        answer += piece
                    if b'"text"' in answer:
                        self.late.append(time.monotonic() - began)
                    else:
                        self.refused.append(answer[:200].decode(errors="replace"))
                    while connection.recv(1 << 16):
                        pass
            except OSError as error:
                self.refused.append(repr(error))
            self.stop.wait(0.2)

    def end(self):
        self.stop.set()
        self.thread.join()


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    line = next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def kinds_of(clients):
    keyed = [KEYED[i % len(KEYED)] for i in range(clients // KEYED_SHARE)]
    return keyed + [STRANGERS[i % len(STRANGERS)] for i in range(clients - len(keyed))]


class Flood:
    def __init__(self, node, client, model, options):
        self.node, self.client, self.model, self.options = node, client, model, options
        self.share = 0.1  # of a processor that each attacker used in the attack before

    def trained(self):
        return check_exposition(self.client.ask("GET", "/metrics")[2])["neuroshard_training_tokens"]

    def phase(self, attacks):
        kinds = kinds_of(self.options.clients)
        counts = [multiprocessing.Array("q", 2) for _ in range(PROCESSES)]
        jobs = [multiprocessing.Process(target=attacker, daemon=True,
                                        args=(kinds[i::PROCESSES], self.client.port, self.client.key, self.model, counts[i]))
                if attacks else multiprocessing.Process(target=spinner, daemon=True, args=(self.share,)) for i in range(PROCESSES)]
        for job in jobs:
            job.start()
        time.sleep(1)
        honest = Honest(self.client.port, self.client.key, self.model)
        try:
            tokens, began, used = self.trained(), time.monotonic(), sum(processor_seconds(job.pid) for job in jobs)
            memory = 0.0
            while time.monotonic() < began + self.options.seconds:
                time.sleep(0.05)
                memory = max(memory, resident_mib(self.node.pid))
            took = time.monotonic() - began
            tokens = (self.trained() - tokens) / took
            used = sum(processor_seconds(job.pid) for job in jobs) - used
            assert all(job.is_alive() for job in jobs), "an attacker ended"
        finally:
            honest.end()
            for job in jobs:
                job.kill()
                job.join()
        if attacks:
            self.share = min(1.0, used / took / PROCESSES)
        assert self.node.poll() is None, "the node has ended"
        assert honest.late, honest.refused[:3]
        return {"tokens_per_s": tokens, "first_token_s": statistics.median(honest.late), "answers": len(honest.late),
                "refused": honest.refused, "memory_mib": memory, "attackers_cpu": used / took,
                "connections": sum(count[0] for count in counts), "sent_mib": sum(count[1] for count in counts) / (1 << 20)}

    def run(self):
        baseline = self.phase(False)["memory_mib"]
        first = self.phase(True)  # warms up, and says how much the attackers use
        pairs = [(self.phase(False), self.phase(True)) for _ in range(self.options.rounds)]
        middle = lambda side, name: statistics.median(pair[side][name] for pair in pairs)
        return {"clients": self.options.clients, "seconds": self.options.seconds, "rounds": self.options.rounds,
                "training_share": middle(1, "tokens_per_s") / middle(0, "tokens_per_s"),
                "first_token_ratio": middle(1, "first_token_s") / middle(0, "first_token_s"),
                "memory_more_mib": max(side["memory_mib"] for side in (first, *(pair[1] for pair in pairs))) - baseline,
                "memory_growth_mib": pairs[-1][1]["memory_mib"] - pairs[0][1]["memory_mib"],
                "refused": [text for pair in pairs for side in pair for text in side["refused"]],
                "control": [pair[0] for pair in pairs], "attack": [pair[1] for pair in pairs]}


def judge(figures, report):
    faults = [f"the honest client was refused: {text}" for text in figures["refused"][:3]]
    if not report:
        if figures["training_share"] < LEAST_TRAINING:
            faults.append(f"training runs at {figures['training_share']:.2f} of the control; {LEAST_TRAINING} is the least")
        if figures["first_token_ratio"] > MOST_LATE:
            faults.append(f"the first token comes {figures['first_token_ratio']:.2f} times as late; {MOST_LATE} is the most")
    if figures["memory_more_mib"] > MOST_MEMORY_MIB:
        faults.append(f"the node takes {figures['memory_more_mib']:.0f} MiB more than before the attacks; {MOST_MEMORY_MIB} is the most")
    if figures["memory_growth_mib"] > MOST_GROWTH_MIB:
        faults.append(f"the node takes {figures['memory_growth_mib']:.0f} MiB more in the last attack than in the first; {MOST_GROWTH_MIB} is the most")
    return faults


def is_weak(figures):
    """Not every client has connected even once: the machine had no time for the attackers."""
    return min(side["connections"] for side in figures["attack"]) < figures["clients"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    program = str(options.programs.resolve() / "neuroshardd")
    with tempfile.TemporaryDirectory() as folder:
        text, data = f"{folder}/text.txt", f"{folder}/d"
        pathlib.Path(text).write_text((options.source / "LICENSE").read_text() * 4)
        quietly = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([program, "network", "create", "--name", "small", "--from", "solo", "--out", f"{folder}/small.json", *SHAPE], **quietly)
        subprocess.run([program, "train", "--data-dir", data, "--profile", f"{folder}/small.json", "--text", text, "--steps", "2"], **quietly)
        node = subprocess.Popen([program, "run", "--data-dir", data, "--json", "--http", "on", "--http-port", "0", "--cpu-threads", "1",
                                 "--checkpoint-every-steps", "1000000"], stdout=subprocess.PIPE, text=True)
        try:
            url = next(json.loads(line)["http"] for line in node.stdout if '"http"' in line)
            threading.Thread(target=node.stdout.read, daemon=True).start()
            client = Client(int(url.rsplit(":", 1)[1]), pathlib.Path(data, "http.key").read_text().strip())
            while check_exposition(client.ask("GET", "/metrics")[2])["neuroshard_training_active"] != 1 or \
                    "neuroshard_training_tokens" not in check_exposition(client.ask("GET", "/metrics")[2]):
                time.sleep(0.1)
            model = client.json("GET", "/v1/models")["data"][0]["id"]
            figures = Flood(node, client, model, options).run()
        finally:
            node.send_signal(signal.SIGTERM)
            try:
                node.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                node.kill()
                raise
    figures["faults"] = judge(figures, options.report)
    print("\n".join(figures["faults"]) or "all checks passed")
    print(json.dumps(figures))
    if not options.report and is_weak(figures):
        print("inconclusive: the machine is too busy for the attackers", file=sys.stderr)
        return 3
    return 1 if figures["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
