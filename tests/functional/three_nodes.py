#!/usr/bin/env python3
"""The lines of the guide that start three nodes at once.    three_nodes.py SOURCE_TREE FOLDER_OF_PROGRAMS BLOCK

Runs the block that follows "<!-- test: BLOCK -->" in docs/guide/train-together.md as it stands, in an empty folder with a text
books.txt, and waits until all three nodes hold the anchors of a round that all of them contributed to.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

PATIENCE_S = 220
BETWEEN_S = 0.5  # each question is a process of its own


def block_of(page, mark):
    text = page.read_text()
    if text.count(mark) != 1:
        sys.exit(f"{page} has {text.count(mark)} lines {mark} instead of one")
    match = re.match(r"\s*```sh\n(.*?)\n```", text.split(mark, 1)[1], flags=re.S)
    if not match:
        sys.exit(f"{page}: no sh block follows {mark}")
    return match.group(1)


def status(data):
    answer = subprocess.run(["neuroshardd", "status", "--json", "--data-dir", data], capture_output=True, text=True)
    try:
        return json.loads(answer.stdout.splitlines()[0])["rounds"]
    except (IndexError, KeyError, ValueError):
        return {}


def shared_round(nodes):
    """The anchor that all nodes hold after a round of all of them, or None."""
    seen = [status(data) for data in nodes]
    for rounds in seen:
        if rounds.get("members") != len(nodes) or rounds.get("contributors") != len(nodes) or not rounds.get("agrees"):
            return None
    anchors = {(rounds.get("round"), rounds.get("anchor")) for rounds in seen}
    return anchors.pop() if len(anchors) == 1 else None


def main():
    source, programs = map(pathlib.Path, sys.argv[1:3])
    block = block_of(source / "docs/guide/train-together.md", f"<!-- test: {sys.argv[3]} -->")
    nodes = re.findall(r"neuroshardd run --data-dir (\S+)", block)
    if len(nodes) != 3:
        sys.exit(f"the block starts {len(nodes)} nodes instead of three")
    os.environ["PATH"] = f"{programs.resolve()}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        # English prose that is in the repository.
        pathlib.Path("books.txt").write_text("".join((source / "LICENSE").read_text().replace("Work", word) + "\n"
                                                     for word in "Work Book Poem Tale Song Play Essay Letter".split()))
        with open("output", "wb") as output:
            shell = subprocess.Popen(["sh", "-e", "-c", block + "\nwait"], stdout=output, stderr=output,
                                     stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            found, waiting = None, threading.Event()
            for _ in range(int(PATIENCE_S / BETWEEN_S)):
                found = shared_round(nodes)
                if found or shell.poll() is not None:
                    break
                waiting.wait(BETWEEN_S)
            if not found:
                print(pathlib.Path("output").read_text(errors="replace")[-4000:])
                for data in nodes:
                    print(data, json.dumps(status(data)))
                sys.exit("the three nodes do not share a round")
            print(f"all three hold anchor {found[1]} of round {found[0]}")
            for data in nodes:
                subprocess.run(["neuroshardd", "stop", "--data-dir", data], check=True, stdout=subprocess.DEVNULL)
            shell.wait(timeout=60)
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
                shell.wait()


if __name__ == "__main__":
    main()
