#!/usr/bin/env python3
"""Scores of token windows over local HTTP, as lm-eval-harness asks for them.

    http_scores.py NEUROSHARDD DATA_DIRECTORY REQUEST.json ANSWER.json    REQUEST: {tokens: [[id…]…]}; ANSWER: {scores: [[…]…]}
"""
import json
import pathlib
import signal
import subprocess
import sys
import urllib.request

BATCH = 4  # windows of one request


def main():
    program, directory, request, answer = sys.argv[1:]
    node = subprocess.Popen([program, "run", "--data-dir", directory, "--json", "--http", "on", "--http-port", "0", "--contribute", "off",
                             "--precision", "fp32"], stdout=subprocess.PIPE, text=True)
    try:
        url = next(json.loads(line)["http"] for line in node.stdout if '"http"' in line)
        key = pathlib.Path(directory, "http.key").read_text().strip()

        def ask(path, body=None):
            asked = urllib.request.Request(url + path, body and json.dumps(body).encode(), {"Authorization": f"Bearer {key}"})
            with urllib.request.urlopen(asked, timeout=300) as reply:
                return json.load(reply)
        model = ask("/v1/models")["data"][0]["id"]
        windows, scores = json.loads(pathlib.Path(request).read_text())["tokens"], []
        for at in range(0, len(windows), BATCH):
            body = {"model": model, "prompt": windows[at:at + BATCH], "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": True, "seed": 1234}
            scores += [choice["logprobs"]["token_logprobs"][1:-1] for choice in ask("/v1/completions", body)["choices"]]
        pathlib.Path(answer).write_text(json.dumps({"scores": scores}))
    finally:
        node.send_signal(signal.SIGTERM)
        node.stdout.read()
        node.wait(60)


if __name__ == "__main__":
    main()
