#!/usr/bin/env python3
"""Changed messages to a real node in rounds with three others, for so long; prints one JSON object.

    protocol_fuzz.py NODE FOLDER [--seconds 3600] [--seed 1] [--clients 4]

NODE is the neuroshardd to run, with lying_node and protocol_fuzzer beside it; a build with sanitizers, as a rule. One member
is honest and records what it says; the fuzzer changes that and signs half of it with that member's key. Exit status 1: a node
has ended, a sanitizer has found something, an honest peer was not answered, the rounds stopped, or two anchors of a round differ.
"""
import argparse
import json
import os
import re
import subprocess
import sys

import attacked_network

FINDING = re.compile(r"(?:ERROR: AddressSanitizer|runtime error|ERROR: LeakSanitizer|WARNING: ThreadSanitizer|check failed).*")


def findings_of(network):
    """The lines of sanitizers and checks in the output of the nodes."""
    found = []
    for name in network.names():
        with open(network.path(name + ".out"), encoding="utf-8", errors="replace") as said:
            found += [f"{name}: {line}" for line in FINDING.findall(said.read())]
    return found


def banned_honest(network):
    """The honest nodes that each honest node refuses; all must run."""
    ids = network.honest_ids()
    honest = {ids[name] for name in network.honest()}
    return {name: [ban for ban in network.bans(name)[0] if ban["id"] in honest] for name in network.honest()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("node")
    parser.add_argument("folder", help="made by this run")
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--period", type=int, default=100)
    parser.add_argument("--workers", type=int, default=3)
    a = parser.parse_args()
    a.text = os.path.abspath(a.folder) + ".txt"
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0:alloc_dealloc_mismatch=0")
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    with open(a.text, "w", encoding="utf-8") as text:
        text.write(attacked_network.made_up_text())
    network = attacked_network.AttackedNetwork(a, recorder=True)
    trace = network.path("trace")
    try:
        network.make_profile()
        network.start_all()
        network.wait_for_rounds(1, 600)
        fuzzer = os.path.join(os.path.dirname(a.node), "protocol_fuzzer")
        command = [fuzzer, "fuzz", "--profile", network.profile, "--at", network.at("node0"), "--seconds", str(a.seconds), "--seed", str(a.seed),
                   "--clients", str(a.clients), "--record", network.path("said"), "--key", network.key("recorder"), "--trace", trace]
        print("reproduce with: " + " ".join(command), flush=True)
        with open(network.path("fuzzer.out"), "w", encoding="utf-8") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as run:
            measured = network.measure(a.seconds)
            if network.ended():
                run.kill()
            run.wait()
        with open(network.path("fuzzer.out"), encoding="utf-8", errors="replace") as out:
            lines = out.read().splitlines()
        said = next((json.loads(line) for line in reversed(lines) if line.startswith("{")), {"honest_failed": None, "said": lines[-5:]})
        banned = {} if measured["ended"] else banned_honest(network)
    finally:
        network.end()
    torn = [number for number, of_round in network.anchors().items() if len(of_round) > 1]
    result = {"fuzzer": said, "nodes": measured, "findings": findings_of(network), "torn": torn, "banned_honest": banned, "trace": trace}
    good = (not result["findings"] and not measured["ended"] and not torn and said["honest_failed"] == 0 and min(measured["rounds"].values()) > 0
            and not any(banned.values()))
    print(json.dumps(result))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
