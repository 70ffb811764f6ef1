"""A client of a node's peer service that frames HTTP/2 itself, over TLS with identities of its own, so that it can send
what a library would not. RFC 9113 has the frames, RFC 7541 the headers.
"""
import base64
import os
import socket
import ssl
import struct
import subprocess
import threading

DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CALL = "/neuroshard.peer.v1.Peer/Call"
GREETING = "/neuroshard.peer.v1.Peer/Hello"
PING_METHOD = 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def integer(value, bits, first=0):
    """RFC 7541 §5.1."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((first | value,))
    out, value = [first | most], value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + [value])


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return integer(len(value), 7) + value


def literal(name, value, indexed=False):
    return (b"\x40" if indexed else b"\x00") + text(name) + text(value)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value):
    out = []
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + [value])


class Target:
    def __init__(self, endpoint, network, folder):
        host, port = endpoint.rsplit(":", 1)
        self.at, self.folder, self.made = (host.strip("[]"), int(port)), folder, 0
        hello = field(1, 1) + field(3, network) + field(6, b"flood")
        self.hello = base64.b64encode(hello).decode().rstrip("=")
        self.lock = threading.Lock()

    def context(self):
        """TLS with a new identity."""
        with self.lock:
            self.made += 1
            stem = os.path.join(self.folder, f"identity{self.made}")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", stem + ".key", "-out", stem + ".pem",
                        "-subj", "/CN=flood", "-days", "1"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["h2"])
        context.load_cert_chain(stem + ".pem", stem + ".key")
        return context

    def headers(self, path, indexed=False):
        parts = [(":method", "POST"), (":scheme", "https"), (":path", path), (":authority", "node"), ("te", "trailers"),
                 ("content-type", "application/grpc"), ("neuroshard-hello-bin", self.hello)]
        return b"".join(literal(name, value, indexed) for name, value in parts)


class Connection:
    def __init__(self, target, context, source):
        self.target, self.stream, self.sent = target, 1, 0
        plain = socket.create_connection(target.at, timeout=5, source_address=(source, 0))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tls = context.wrap_socket(plain)
        self.send(PREFACE + frame(SETTINGS, 0, 0) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))

    def send(self, data):
        self.tls.sendall(data)
        self.sent += len(data)

    def next_stream(self):
        self.stream += 2
        return self.stream - 2

    def drain(self):
        """Reads what is there, so that the node is never the one that waits."""
        self.tls.settimeout(0)
        try:
            while self.tls.recv(1 << 16):
                pass
        except (ssl.SSLWantReadError, BlockingIOError):
            pass
        finally:
            self.tls.settimeout(5)

    def read_frame(self):
        head = self.exactly(9)
        return head[3], head[4], struct.unpack(">I", head[5:])[0], self.exactly(int.from_bytes(head[:3], "big"))

    def exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.tls.recv(count - len(data))
            if not more:
                raise ConnectionError("the node has closed the connection")
            data += more
        return data

    def call(self, path=CALL, body=b"honest"):
        """Whether the answer has the body, which Ping returns."""
        request = b"" if path == GREETING else field(1, PING_METHOD) + field(2, body)
        stream = self.next_stream()
        self.send(frame(HEADERS, END_HEADERS, stream, self.target.headers(path)) +
                  frame(DATA, END_STREAM, stream, b"\0" + struct.pack(">I", len(request)) + request))
        answer = b""
        while True:
            kind, flags, of, payload = self.read_frame()
            if kind == SETTINGS and not flags & ACK:
                self.send(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                self.send(frame(PING, ACK, 0, payload))
            elif of == stream and kind == RST_STREAM:
                return False
            elif of == stream:
                answer += payload if kind == DATA else b""
                if flags & END_STREAM:
                    return bool(answer) if path == GREETING else body in answer

    def close(self):
        try:
            self.tls.close()
        except OSError:
            pass
