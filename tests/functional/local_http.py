#!/usr/bin/env python3
"""The local HTTP server of a real node.    local_http.py SOURCE_TREE FOLDER_OF_PROGRAMS [COMMAND…]

Trains a small model, starts a node with http on at a free port, and asks it as other programs do: status, metrics, completions,
chats, streams, log-probabilities, errors. Also as programs must not: without the key, from a foreign web page, slowly, at length.
With COMMAND, that runs instead, with the node's address, key and model in NS_URL, NS_KEY, NS_MODEL.
"""
import base64
import http.client
import json
import math
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "golden"))
import export_oracle  # noqa: E402

PATIENCE_S = 60
# Small and dense, so that plain Python can compute the exported model.
SHAPE = ["--layers", "2", "--hidden", "64", "--head-dim", "32", "--sequence", "128", "--batch-tokens", "512", "--experts", "1",
         "--experts-per-token", "1"]
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
    asked = {"/health", "/openapi.json", "/metrics", "/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/v1/models"}
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
    assert client.json("GET", "/v1/engines", status=404)["error"]["code"] == "unknown_url"
    metrics = check_exposition(client.ask("GET", "/metrics")[2])
    assert metrics["neuroshard_training_steps"] == 12 and metrics["neuroshard_model_info"] == 1, metrics


def check_texts(client, model):
    body = {"model": model, "prompt": "the license", "max_tokens": 12, "seed": 5, "logit_bias": {"2": -100}}  # never the end of the text
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


EXACT = {"object", "type", "code", "param", "role"}  # fields whose value is the same for every model


def shape(value, name=""):
    """The form of a JSON value: its fields and the kinds of their values, and the values that never vary."""
    by_token = name == "top_logprobs" and isinstance(value, dict) and all(isinstance(one, float) for one in value.values())
    if by_token:  # of completions; a chat's entries have named fields
        return {"*": ["number"]}
    if name == "bytes":  # a token without text, such as the end of a text, has none
        assert all(isinstance(one, int) and 0 <= one < 256 for one in value), value
        return "bytes"
    if isinstance(value, dict):
        return {key: shape(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [json.loads(one) for one in sorted({json.dumps(shape(one, name), sort_keys=True) for one in value})]
    if name in EXACT:
        return value
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def answer_shape(kind, text):
    if kind == "application/json":
        return shape(json.loads(text))
    parts = [part.removeprefix("data: ") for part in text.split("\n\n") if part]
    assert parts[-1] == "[DONE]", parts[-1]
    return shape([json.loads(part) for part in parts[:-1]])


def check_recorded(client, model):
    """Recorded requests of npm's OpenAI client get answers of the form that satisfied it (sh tests/long.sh openai-client)."""
    exchanges = json.loads((HERE / "openai_exchanges.json").read_text())
    assert {one["check"] for one in exchanges} >= {"list", "complete", "chat", "stream", "chat_stream", "stop", "logprobs", "embeddings", "errors"}
    for one in exchanges:
        body = one["body"]
        assert body is None or body.get("model", model) in (model, "gpt-4"), body
        status, kind, text = client.ask(one["method"], one["path"], body, headers=one["headers"])
        if one["status"] == 401:
            status, kind, text = client.ask(one["method"], one["path"], body, headers={**one["headers"], "Authorization": "Bearer wrong"})
        assert (status, kind) == (one["status"], one["type"]), (one, status, kind, text)
        ours, recorded = answer_shape(kind, text), answer_shape(kind, one["answer"])
        assert ours == recorded, (one["check"], one["body"], ours, recorded)


def log_probabilities(logits, vocabulary):
    rows = [logits[at:at + vocabulary] for at in range(0, len(logits), vocabulary)]
    for row in rows:
        most = max(row)
        total = most + math.log(sum(math.exp(value - most) for value in row))
        yield [value - total for value in row]


def sayable(folder):
    """Ids that the node generates: tokens of text and the end of a text, no other special ones, no unused rows."""
    tokenizer, config = (json.loads(pathlib.Path(folder, f"{name}.json").read_text()) for name in ("tokenizer", "config"))
    special = {token["id"] for token in tokenizer["added_tokens"]} - {config["eos_token_id"]}
    known = {token for name, token in tokenizer["model"]["vocab"].items() if not name.startswith(("<|unused_", "<|reserved_"))}
    return (known | {config["eos_token_id"]}) - special


def check_harness(client, model, folder):
    """The requests of lm-eval-harness, context and continuation as token ids in one batch, get the scores that the exported
    Hugging Face folder gives: plain Python computes that model in double precision."""
    network = export_oracle.hugging_face_model(str(folder))
    vocabulary = network.tensor("head")[0][0]
    words = sayable(folder)
    requests = [([76, 114, 111, 42], [35, 99]), ([12], [13, 14, 15]), ([200, 7, 7], [7])]
    body = {"model": model, "prompt": [context + continuation for context, continuation in requests], "max_tokens": 1, "temperature": 0,
            "logprobs": 1, "echo": True, "seed": 1234}
    scored = client.json("POST", "/v1/completions", body)["choices"]
    no_answer = client.json("POST", "/v1/completions", dict(body, max_tokens=0))["choices"]
    assert [choice["index"] for choice in scored] == list(range(len(requests)))
    for (context, continuation), choice, bare in zip(requests, scored, no_answer):
        tokens = context + continuation
        rows = list(log_probabilities(network.logits(tokens), vocabulary))
        scores, tops = (choice["logprobs"][name] for name in ("token_logprobs", "top_logprobs"))
        assert len(scores) == len(tokens) + 1 and len(bare["logprobs"]["token_logprobs"]) == len(tokens)
        assert all(abs(a - b) < 1e-5 for a, b in zip(scores[1:-1], bare["logprobs"]["token_logprobs"][1:]))
        for at in range(1, len(tokens)):
            assert abs(scores[at] - rows[at - 1][tokens[at]]) < 1e-4, (at, scores[at], rows[at - 1][tokens[at]])
            # As the harness finds out whether the continuation is what the model would have said.
            likeliest = max(tops[at].values())
            most = max(words, key=lambda token, row=rows[at - 1]: row[token])
            assert abs(likeliest - rows[at - 1][most]) < 1e-4, (at, likeliest, rows[at - 1][most], most, tokens[at], tops[at])
        ours = sum(scores[len(context):len(tokens)])
        assert abs(ours - sum(rows[at - 1][tokens[at]] for at in range(len(context), len(tokens)))) < 1e-4
        assert abs(scores[-1] - max(rows[-1][token] for token in words)) < 1e-4  # greedy


def check_embeddings(client, model, folder):
    """An embedding is the mean of the exported model's last hidden states over the tokens, with length 1."""
    network = export_oracle.hugging_face_model(str(folder))
    inputs = [[76, 114, 111, 42, 35], [12], [200, 7, 7]]
    body = {"model": model, "input": inputs}
    answer = client.json("POST", "/v1/embeddings", body)
    assert answer["object"] == "list" and answer["model"] == model and "-" in answer["system_fingerprint"], answer
    assert answer["usage"] == {"prompt_tokens": 9, "total_tokens": 9}, answer["usage"]
    assert [one["index"] for one in answer["data"]] == [0, 1, 2] and all(one["object"] == "embedding" for one in answer["data"])
    for tokens, one in zip(inputs, answer["data"]):
        sums = [sum(column) for column in zip(*network.hidden_states(tokens))]
        length = math.sqrt(sum(value * value for value in sums))
        assert len(one["embedding"]) == len(sums) == 64
        worst = max(abs(a - b / length) for a, b in zip(one["embedding"], sums))
        assert worst < 1e-4, (tokens, worst)
    coded = client.json("POST", "/v1/embeddings", dict(body, encoding_format="base64"))["data"]
    for one, same in zip(answer["data"], coded):
        values = struct.unpack("<64f", base64.b64decode(same["embedding"], validate=True))
        assert all(abs(a - b) < 1e-7 for a, b in zip(one["embedding"], values))
    # A text has the embedding of its tokens, alone or in a list.
    text = client.json("POST", "/v1/embeddings", {"model": model, "input": "the license"})
    again = client.json("POST", "/v1/embeddings", {"model": model, "input": ["x", "the license"]})
    assert text["data"][0]["embedding"] == again["data"][1]["embedding"]
    assert text["usage"]["prompt_tokens"] > 0
    refused = lambda code, **more: client.refused(400, code, dict(body, **more), path="/v1/embeddings")["param"]
    client.refused(400, "context_length_exceeded", dict(body, input=[[1], [76] * 129]), path="/v1/embeddings")
    refused("context_length_exceeded", input=[76] * 5000)
    assert refused(None, input="") == refused(None, input=["x", ""]) == refused(None, input=["x"] * 129) == "input"
    assert refused("unsupported_parameter", dimensions=8) == "dimensions"
    assert len(client.json("POST", "/v1/embeddings", dict(body, input=["x"] * 128))["data"]) == 128


EMBEDDED = ["the license", "a copy of the Program"]


def embed(program, data):
    done = subprocess.run([program, "embed", "--data-dir", data, "--json", "--input", EMBEDDED[0], "--input", EMBEDDED[1]], check=True,
                          stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_embed_command(client, model, node, alone):
    """The command line gives what HTTP gives, with a running node and without one (alone)."""
    answer = client.json("POST", "/v1/embeddings", {"model": model, "input": EMBEDDED})
    for shown in (alone, embed(node.program, node.data)):
        for line, one in zip(shown, answer["data"], strict=True):
            assert line["index"] == one["index"] and line["step"] == 12
            assert all(abs(a - b) < 1e-6 for a, b in zip(line["embedding"], one["embedding"], strict=True))
        assert sum(line["tokens"] for line in shown) == answer["usage"]["prompt_tokens"]


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


class Node:
    """The node's own command line."""

    def __init__(self, program, data):
        self.program, self.data = program, data

    def ask(self, *words):
        done = subprocess.run([self.program, *words, "--data-dir", self.data, "--json"], check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout.splitlines()[0])

    def http(self, until=lambda http: True):
        """The server's part of the status, once it is as expected: a taken port is tried again within seconds."""
        deadline = time.monotonic() + PATIENCE_S
        while not until(http := self.ask("status")["http"]):
            assert time.monotonic() < deadline, http
            time.sleep(0.1)
        return http


def check_settings(client, node):
    """Switch, port and key change while the node runs; a port that is taken is named, and tried again."""
    pid = node.ask("status")["pid"]
    assert node.http() == {"address": f"http://127.0.0.1:{client.port}", "trouble": None}
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        node.ask("set", "http_port", str(taken))
        http = node.http()
        assert http["address"] is None and str(taken) in http["trouble"], http
        assert any(alert["key"] == "http" for alert in node.ask("status")["alerts"])
    node.http(lambda http: http["address"] == f"http://127.0.0.1:{taken}" and http["trouble"] is None)
    moved = Client(taken, client.key)
    assert moved.json("GET", "/v1/models")["data"]
    assert not any(alert["key"] == "http" for alert in node.ask("status")["alerts"])
    shown = node.ask("http", "--show-key")
    assert shown["key"] == client.key and shown["address"].endswith(str(taken)), shown
    renewed = node.ask("http", "--new-key")["key"]
    assert renewed != client.key and "key" not in node.ask("http")
    moved.json("GET", "/v1/models", status=401)
    assert Client(taken, renewed).json("GET", "/v1/models")["data"]
    refused = subprocess.run([node.program, "http", "--remove-key", "--data-dir", node.data], stderr=subprocess.PIPE, text=True)
    assert refused.returncode != 0 and "switch it off" in refused.stderr, refused
    node.ask("set", "http", "off")
    assert node.http() == {"address": None, "trouble": None}
    assert not node.ask("http", "--remove-key")["has_key"] and not pathlib.Path(node.data, "http.key").exists()
    try:
        moved.ask("GET", "/health")
        raise AssertionError("it still listens")
    except ConnectionRefusedError:
        pass
    node.ask("set", "http", "on")
    again = Client(taken, node.ask("http", "--show-key")["key"])
    assert again.key not in (client.key, renewed) and again.json("GET", "/v1/models")["data"]
    assert node.ask("status")["pid"] == pid


def main():
    source, programs = map(pathlib.Path, sys.argv[1:3])
    program = str(programs.resolve() / "neuroshardd")
    with tempfile.TemporaryDirectory() as folder:
        text, data = f"{folder}/text.txt", f"{folder}/d"
        pathlib.Path(text).write_text((source / "LICENSE").read_text() * 4)
        quietly = {"check": True, "stdout": subprocess.DEVNULL}
        subprocess.run([program, "network", "create", "--name", "small", "--from", "solo", "--out", f"{folder}/small.json", *SHAPE], **quietly)
        subprocess.run([program, "train", "--data-dir", data, "--profile", f"{folder}/small.json", "--text", text, "--steps", "12",
                        "--precision", "fp32"], **quietly)
        subprocess.run([program, "checkpoint", "export", "--data-dir", data, "--format", "huggingface", "--out", f"{folder}/hf"], **quietly)
        for name, value in (("http", "on"), ("http_port", "0"), ("precision", "fp32")):
            Node(program, data).ask("set", name, value)
        alone = embed(program, data)
        node = subprocess.Popen([program, "run", "--data-dir", data, "--json", "--contribute", "off"], stdout=subprocess.PIPE,
                                text=True)
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
                          lambda: check_scores(client, model), lambda: check_recorded(client, model),
                          lambda: check_harness(client, model, f"{folder}/hf"), lambda: check_embeddings(client, model, f"{folder}/hf"),
                          lambda: check_embed_command(client, model, Node(program, data), alone), lambda: check_errors(client, model),
                          lambda: check_disconnect(client, model), lambda: check_crowd(client),
                          lambda: check_settings(client, Node(program, data))):
                check()
        finally:
            node.send_signal(signal.SIGTERM)
            node.stdout.read()
            assert node.wait(PATIENCE_S) == 0
    print("all checks passed")


if __name__ == "__main__":
    os.environ.pop("http_proxy", None)
    main()
