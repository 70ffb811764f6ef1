#!/usr/bin/env python3
"""What a stranger sends below the protocol's messages, against one address, for so long; prints one JSON object.

    stranger_attacks.py ATTACK HOST PORT --network HEX [--seconds 60] [--seed 1]
    stranger_attacks.py sink --seconds 60      prints {"plain": PORT, "tls": PORT} and swallows what comes

plain        garbage, and the beginnings of other protocols, at the raw connection
tls          the beginnings of TLS, changed; garbage after a whole handshake
frames       HTTP/2 after the handshake of a valid node: frames of every kind, with wrong lengths and streams
no-bodies    calls with a valid head and no body, 32 a connection, each connection with a key of its own
slow-bodies  the same, with a byte of the body every second
"""
import argparse
import base64
import json
import os
import random
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
BEGINNINGS = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", PREFACE, b"SSH-2.0-x\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"CONNECT ", b"JOIN ",
              b"\x00\x01\x00\x00\x21\x12\xa4\x42" + bytes(12)]
CALLS = 32  # of one connection: as many as a node answers to one other
KEYS = 32  # certificates, made once


class Identities:
    """Certificates as a node makes them: self-signed, Ed25519."""

    def __init__(self, folder, rng):
        self.rng, self.pairs = rng, []
        for number in range(KEYS):
            key, certificate = os.path.join(folder, f"{number}.key"), os.path.join(folder, f"{number}.pem")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", key, "-out", certificate, "-days", "30",
                            "-subj", "/CN=neuroshard-node"], check=True, capture_output=True)
            self.pairs.append((certificate, key))

    def context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(*self.rng.choice(self.pairs))
        context.set_alpn_protocols(["h2"])
        return context


def field(number, kind, value):
    return bytes([number << 3 | kind]) + value


def hello(network):
    """proto/peer.proto, Hello."""
    return (field(1, 0, b"\x01") + field(3, 2, bytes([32]) + network) + field(4, 1, struct.pack("<Q", 3)) + field(6, 2, b"\x07strange"))


def header(name, value):
    name, value = name.encode(), value.encode()
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


class Stranger:
    def __init__(self, arguments, rng, folder):
        self.target, self.rng = (arguments.host, arguments.port), rng
        self.end = time.monotonic() + arguments.seconds
        self.counts = {"connections": 0, "handshakes": 0, "calls": 0, "refused": 0}
        self.identities = Identities(folder, rng) if arguments.attack != "plain" else None
        self.head = b"".join(header(*one) for one in (
            (":method", "POST"), (":scheme", "https"), (":path", "/neuroshard.peer.v1.Peer/Call"), (":authority", "neuroshard-node"),
            ("te", "trailers"), ("content-type", "application/grpc"),
            ("neuroshard-hello-bin", base64.b64encode(hello(bytes.fromhex(arguments.network))).decode().rstrip("="))))

    def connect(self):
        self.counts["connections"] += 1
        return socket.create_connection(self.target, timeout=2)

    def handshake(self):
        tls = self.identities.context().wrap_socket(self.connect(), server_hostname="neuroshard-node")
        self.counts["handshakes"] += 1
        return tls

    def garbage(self, most=4096):
        return self.rng.randbytes(self.rng.randrange(1, most))

    def changed(self, message):
        message = bytearray(message)
        for _ in range(self.rng.randrange(3)):
            message[self.rng.randrange(len(message))] = self.rng.randrange(256)
        return bytes(message[: self.rng.randrange(1, len(message) + 1)])

    def plain(self):
        with self.connect() as connection:
            begin = self.rng.choice([b"", self.changed(self.rng.choice(BEGINNINGS)), self.rng.choice(BEGINNINGS)])
            connection.sendall(begin + self.garbage())
            self.listen(connection)

    def tls(self):
        if self.rng.random() < 0.5:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            half = self.identities.context().wrap_bio(incoming, outgoing, server_hostname="neuroshard-node")
            try:
                half.do_handshake()
            except ssl.SSLWantReadError:
                pass
            with self.connect() as connection:
                connection.sendall(self.changed(outgoing.read()))
                self.listen(connection)
            return
        with self.handshake() as connection:
            connection.sendall(self.garbage(20_000))
            self.listen(connection)

    def frames(self):
        with self.handshake() as connection:
            connection.sendall(PREFACE)
            for _ in range(self.rng.randrange(1, 20)):
                payload = self.head if self.rng.random() < 0.3 else self.garbage(300)
                said = frame(self.rng.randrange(11), self.rng.randrange(256), self.rng.choice([0, 1, 3, 2, 2**31 - 1]), payload)
                connection.sendall(said if self.rng.random() < 0.7 else self.changed(said))
            self.listen(connection)

    def open_calls(self, connection):
        connection.sendall(PREFACE + b"".join(frame(1, 4, 1 + 2 * call, self.head) for call in range(CALLS)))
        self.counts["calls"] += CALLS

    def hold(self, connections, each):
        """Until a call without a body would have ended anyway."""
        until = min(self.end, time.monotonic() + 12)
        while time.monotonic() < until and connections:
            for connection in list(connections):
                try:
                    each(connection)
                except OSError:
                    connections.remove(connection)
            time.sleep(1)
        for connection in connections:
            connection.close()

    def many_calls(self, each):
        connections = []
        for _ in range(8):
            try:
                connections.append(self.handshake())
                self.open_calls(connections[-1])
            except OSError:
                self.counts["refused"] += 1
        self.hold(connections, each)

    def no_bodies(self):
        self.many_calls(lambda connection: None)

    def slow_bodies(self):
        begun = {}

        def say_one_byte(connection):
            first = connection not in begun
            begun[connection] = True
            byte = struct.pack(">BI", 0, 1000) if first else b"\x08"
            connection.sendall(b"".join(frame(0, 0, 1 + 2 * call, byte) for call in range(CALLS)))
        self.many_calls(say_one_byte)

    def listen(self, connection):
        connection.settimeout(0.2)
        try:
            connection.recv(65536)
        except OSError:
            pass

    def run(self, attack):
        step = getattr(self, attack.replace("-", "_"))
        while time.monotonic() < self.end:
            try:
                step()
            except OSError:
                self.counts["refused"] += 1
                time.sleep(0.01)


class Sink:
    """Swallows what comes, at a plain port and behind TLS: the control of an attack."""

    def __init__(self, folder):
        certificate, key = Identities(folder, random.Random(1)).pairs[0]
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.context.set_alpn_protocols(["h2"])

    def serve(self, host, seconds):
        ports = {}
        for name in ("plain", "tls"):
            listener = socket.create_server((host, 0), backlog=256)
            ports[name] = listener.getsockname()[1]
            threading.Thread(target=self.accept, args=(listener, name == "tls"), daemon=True).start()
        print(json.dumps(ports), flush=True)
        time.sleep(seconds)

    def accept(self, listener, with_tls):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.swallow, args=(connection, with_tls), daemon=True).start()

    def swallow(self, connection, with_tls):
        try:
            connection.settimeout(15)
            with self.context.wrap_socket(connection, server_side=True) if with_tls else connection as said:
                while said.recv(65536):
                    pass
        except OSError:
            connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attack", choices=["plain", "tls", "frames", "no-bodies", "slow-bodies", "sink"])
    parser.add_argument("host", nargs="?")
    parser.add_argument("port", type=int, nargs="?")
    parser.add_argument("--network", default="00" * 32)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.attack == "sink":
            return Sink(folder).serve(arguments.host or "127.0.0.1", arguments.seconds)
        stranger = Stranger(arguments, random.Random(arguments.seed), folder)
        stranger.run(arguments.attack)
        print(json.dumps({"attack": arguments.attack, "seed": arguments.seed, **stranger.counts}))
    return None


if __name__ == "__main__":
    main()
