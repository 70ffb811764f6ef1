"""Measurements of generation, ours and llama.cpp's, in turn:   generation_rounds.py SPEC.json RESULT.json

SPEC: {"rounds": n, "texts": n, "context": n, "tokens": n, "prompt": n, "contenders": {name: [command]}}. A contender answers one
request a line (tests/support/generation_probe.cpp). All are loaded before the first round; only one works at a time. Every other
round goes through them from the last to the first. RESULT has for each contender and measurement the seconds of every round, and
the memory's reading speed of every round.
"""
import json
import subprocess
import sys
import time

PAUSE = 0.1  # threads that spin after their work have stopped by then


class Contender:
    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.facts = self.read()

    def read(self):
        line = self.child.stdout.readline()
        if not line:
            raise SystemExit(f"{self.child.args[0]} ended with status {self.child.wait()}")
        return json.loads(line)

    def ask(self, **request):
        time.sleep(PAUSE)
        self.child.stdin.write(json.dumps(request) + "\n")
        self.child.stdin.flush()
        return self.read()

    def end(self):
        self.child.stdin.close()
        self.child.wait()


def measurements(spec, name):
    """(key, request) of one round."""
    stream = {"do": "stream", "texts": 1, "context": spec["context"], "tokens": spec["tokens"]}
    yield "stream", stream
    if name.startswith("ours"):
        yield "batch", {**stream, "texts": spec["texts"]}
    yield "prompt", {"do": "prompt", "tokens": spec["prompt"]}


def main(spec_path, result_path):
    with open(spec_path, encoding="utf-8") as file:
        spec = json.load(file)
    contenders = {name: Contender(command) for name, command in spec["contenders"].items()}
    reader = next(contenders[name] for name in contenders if name.startswith("ours"))
    result = {"facts": {name: contender.facts for name, contender in contenders.items()}, "read_gb_s": [], "seconds": {}}
    for round_number in range(-1, spec["rounds"]):  # the first one warms up
        read = reader.ask(do="read")
        if round_number >= 0:
            result["read_gb_s"].append(read["bytes"] / read["seconds"] / 1e9)
        order = list(contenders) if round_number % 2 == 0 else list(contenders)[::-1]
        for name in order:
            for key, request in measurements(spec, name):
                seconds = contenders[name].ask(**request)["seconds"]
                if round_number >= 0:
                    result["seconds"].setdefault(name, {}).setdefault(key, []).append(seconds)
    for contender in contenders.values():
        contender.end()
    with open(result_path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
