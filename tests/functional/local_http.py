#!/usr/bin/env python3
"""The local HTTP server of a real node.    local_http.py SOURCE_TREE FOLDER_OF_PROGRAMS [COMMAND…]

Trains a small model, starts a node with http on at a free port, and asks it as other programs do: status, metrics, completions,
chats, streams, log-probabilities, errors. Also as programs must not: without the key, from a foreign web page, slowly, at length.
With COMMAND, that runs instead, with the node's address, key and model in NS_URL, NS_KEY, NS_MODEL.
"""
import http.client
import json
import math
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60
SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*",?)*\})? (\S+)$')


class Client:
    def __init__(self, port, key):
        self.port, self.key = port, key

    def ask(self, method, path, body=None, headers=None, key=True):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        sent = dict(headers or {})
        if key:
            sent.setdefault("Authorization", f"Bearer {self.key}")
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.getheader("Content-Type"), text

    def json(self, method, path, body=None, status=200, **more):
        code, kind, text = self.ask(method, path, body, **more)
        assert code == status, (path, code, text)
        assert kind == "application/json", kind
        return json.loads(text)

    def refused(self, status, code, body, path="/v1/completions"):
        error = self.json("POST", path, body, status=status)["error"]
        assert error["code"] == code and error["message"] and error["type"], error
        return error

    def events(self, path, body):
        status, kind, text = self.ask("POST", path, dict(body, stream=True))
        assert status == 200 and kind.startswith("text/event-stream"), (status, text)
        parts = [part.removeprefix("data: ") for part in text.split("\n\n") if part]
        assert parts[-1] == "[DONE]", parts[-1]
        return [json.loads(part) for part in parts[:-1]]


def check_exposition(text):
    """The rules of Prometheus' text format 0.0.4: one HELP and TYPE before the samples of a family, no family twice."""
    seen, family = {}, None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split(" ", 3)[2]
            assert family not in seen, f"{family} comes twice"
            seen[family] = None
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family and kind in ("counter", "gauge"), line
        else:
            match = SAMPLE.match(line)
            assert match and match.group(1) == family, line
            seen[family] = float(match.group(3))
            assert math.isfinite(seen[family])
    return seen


def check_status(client):
    assert client.json("GET", "/health", key=False)["status"] == "ok"
    described = client.json("GET", "/openapi.json", key=False)["paths"]
    asked = {"/health", "/openapi.json", "/metrics", "/v1/completions", "/v1/chat/completions", "/v1/models"}
    for path in ("stats", "training/global", "training/history", "network", "layers", "experts", "checkpoints"):
        page = client.json("GET", f"/api/{path}")
        asked.add(f"/api/{path}")
        assert page, path
    assert set(described) == asked, set(described) ^ asked
    for path, methods in described.items():
        other = "POST" if "get" in methods else "GET"
        assert client.json(other, path, status=405)["error"]["code"] == "method_not_allowed"
    assert client.json("GET", "/api/training/history")["loss_checkpoints"]
    assert client.json("GET", "/api/checkpoints")["checkpoints"][0]["step"] == 12
    assert client.json("GET", "/v1/embeddings", status=404)["error"]["code"] == "unknown_url"
    metrics = check_exposition(client.ask("GET", "/metrics")[2])
    assert metrics["neuroshard_training_steps"] == 12 and metrics["neuroshard_model_info"] == 1, metrics


def check_texts(client, model):
    body = {"model": model, "prompt": "the license", "max_tokens": 12, "seed": 5}
    whole = client.json("POST", "/v1/completions", body)
    choice = whole["choices"][0]
    assert whole["model"] == model and "-" in whole["system_fingerprint"], whole
    assert choice["finish_reason"] == "length" and whole["usage"]["completion_tokens"] == 12, whole
    assert client.json("POST", "/v1/completions", body)["choices"][0]["text"] == choice["text"], "the seed repeats the text"
    events = client.events("/v1/completions", dict(body, stream_options={"include_usage": True}))
    assert "".join(event["choices"][0]["text"] for event in events[:-1]) == choice["text"]
    assert events[-2]["choices"][0]["finish_reason"] == "length"
    assert events[-1]["choices"] == [] and events[-1]["usage"] == whole["usage"]
    # A stop sequence from the middle of the text.
    stop = choice["text"][4:7]
    cut = client.json("POST", "/v1/completions", dict(body, stop=[stop]))["choices"][0]
    assert cut["text"] == choice["text"].split(stop)[0] and cut["finish_reason"] == "stop", (cut, choice)
    streamed = client.events("/v1/completions", dict(body, stop=[stop]))
    assert "".join(event["choices"][0]["text"] for event in streamed) == cut["text"]
    messages = [{"role": "user", "content": "Who are you?"}]
    chat = client.json("POST", "/v1/chat/completions", {"model": model, "messages": messages, "max_tokens": 5, "seed": 5})
    assert chat["object"] == "chat.completion" and chat["choices"][0]["message"]["role"] == "assistant", chat
    parts = client.events("/v1/chat/completions", {"model": model, "messages": messages, "max_tokens": 5, "seed": 5})
    said = "".join(part["choices"][0]["delta"].get("content", "") for part in parts)
    assert parts[0]["choices"][0]["delta"]["role"] == "assistant" and said == chat["choices"][0]["message"]["content"]


def check_scores(client, model):
    """The requests of lm-eval-harness: prompts of tokens, echoed with their log-probabilities."""
    prompts = [[76, 114, 111], [76, 114, 111, 42]]
    body = {"model": model, "prompt": prompts, "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True, "seed": 1}
    choices = client.json("POST", "/v1/completions", body)["choices"]
    for prompt, choice in zip(prompts, choices):
        scores = choice["logprobs"]
        assert len(scores["token_logprobs"]) == len(prompt) + 1 and scores["token_logprobs"][0] is None, scores
        assert all(value <= 0 for value in scores["token_logprobs"][1:])
        # Greedy: the generated token is the likeliest.
        assert scores["token_logprobs"][-1] == max(scores["top_logprobs"][-1].values())
    first, second = (choice["logprobs"]["token_logprobs"] for choice in choices)
    assert all(abs(a - b) < 1e-4 for a, b in zip(first[1:3], second[1:3])), (first, second)
    only = client.json("POST", "/v1/completions", dict(body, prompt=prompts[1], max_tokens=0))
    assert len(only["choices"][0]["logprobs"]["tokens"]) == 4 and only["usage"]["completion_tokens"] == 0
    # The second prompt goes on with a token that the first one predicts: the same probability from both sides.
    likeliest = client.json("POST", "/v1/completions", dict(body, prompt=prompts[0], logprobs=20))
    top = likeliest["choices"][0]["logprobs"]["top_logprobs"][-1]
    assert len(top) == 20 and sum(math.exp(value) for value in top.values()) <= 1 + 1e-6
    if " " in top:
        assert abs(top[" "] - second[3]) < 1e-4


def check_errors(client, model):
    body = {"model": model, "prompt": "x"}
    assert client.refused(404, "model_not_found", dict(body, model="gpt-4"))["param"] == "model"
    client.refused(400, "context_length_exceeded", dict(body, prompt=[76] * 5000))
    client.refused(400, "unknown_parameter", dict(body, tools=[]))
    client.refused(400, "unsupported_parameter", dict(body, n=2))
    client.refused(400, None, "{")
    client.refused(413, "body_too_large", "x" * (1 << 20) + "y")
    assert client.json("GET", "/v1/models", key=False, status=401)["error"]["code"] == "invalid_api_key"
    wrong = {"Authorization": "Bearer " + "x" * len(client.key)}
    assert client.json("GET", "/v1/models", headers=wrong, status=401)
    for headers in ({"Host": "evil.example"}, {"Host": f"127.0.0.1:{client.port + 1}"}, {"Origin": "http://evil.example"},
                    {"Origin": "null"}):
        assert client.json("GET", "/health", headers=headers, status=403)


def raw(client, data):
    connection = socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE_S)
    connection.sendall(data)
    return connection


def check_disconnect(client, model):
    body = json.dumps({"model": model, "prompt": "x", "max_tokens": 4096, "stream": True, "logit_bias": {"2": -100}})
    head = (f"POST /v1/completions HTTP/1.1\r\nHost: localhost:{client.port}\r\nAuthorization: Bearer {client.key}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    gone = [raw(client, (head + body).encode()) for _ in range(2)]
    for connection in gone:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        connection.close()
    # Both places are free again long before 4096 tokens are there.
    deadline = time.monotonic() + PATIENCE_S
    while check_exposition(client.ask("GET", "/metrics")[2])["neuroshard_texts_running"] != 0:
        assert time.monotonic() < deadline, "a text goes on for a client that is gone"
        time.sleep(0.02)
    assert check_exposition(client.ask("GET", "/metrics")[2])["neuroshard_generated_texts_total"] > 0


def check_crowd(client):
    """Clients that send half a request take all places: one that has the key still gets in."""
    crowd = [raw(client, b"GET /health HTTP/1.1\r\nHost: loc") for _ in range(200)]
    assert client.json("GET", "/v1/models")["data"]
    for connection in crowd:
        connection.close()


def main():
    source, programs = map(pathlib.Path, sys.argv[1:3])
    program = str(programs.resolve() / "neuroshardd")
    with tempfile.TemporaryDirectory() as folder:
        text, data = f"{folder}/text.txt", f"{folder}/d"
        pathlib.Path(text).write_text((source / "LICENSE").read_text() * 4)
        subprocess.run([program, "train", "--data-dir", data, "--text", text, "--steps", "12"], check=True,
                       stdout=subprocess.DEVNULL)
        node = subprocess.Popen([program, "run", "--data-dir", data, "--json", "--http", "on", "--http-port", "0",
                                 "--contribute", "off"], stdout=subprocess.PIPE, text=True)
        try:
            url = next(json.loads(line)["http"] for line in node.stdout if '"http"' in line)
            key = pathlib.Path(data, "http.key")
            assert key.stat().st_mode & 0o777 == 0o600, oct(key.stat().st_mode)
            client = Client(int(url.rsplit(":", 1)[1]), key.read_text().strip())
            model = client.json("GET", "/v1/models")["data"][0]["id"]
            if sys.argv[3:]:
                env = {**os.environ, "NS_URL": f"{url}/v1", "NS_KEY": client.key, "NS_MODEL": model}
                subprocess.run(sys.argv[3:], check=True, env=env)
                return
            for check in (lambda: check_status(client), lambda: check_texts(client, model),
                          lambda: check_scores(client, model), lambda: check_errors(client, model),
                          lambda: check_disconnect(client, model), lambda: check_crowd(client)):
                check()
        finally:
            node.send_signal(signal.SIGTERM)
            node.stdout.read()
            assert node.wait(PATIENCE_S) == 0
    print("all checks passed")


if __name__ == "__main__":
    os.environ.pop("http_proxy", None)
    main()
