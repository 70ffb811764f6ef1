#!/usr/bin/env python3
"""What outer rounds cost by the number of nodes: runs `neuroshardd simulate` for each and prints a table.

rounds_scale.py NEUROSHARDD FOLDER [SIZE…]      one JSON file per run in FOLDER; what is there is not run again
"""
import json
import pathlib
import subprocess
import sys

ROUNDS, STEPS = 2, 5


def run(node, folder, size):
    path = folder / f"{size}.json"
    if not path.exists():
        command = [node, "simulate", "--nodes", str(size), "--rounds", str(ROUNDS), "--inner-steps", str(STEPS), "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        lines = done.stdout.strip().splitlines()
        if done.returncode != 0 or not lines:
            sys.exit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
        path.write_text(lines[-1])
    return json.loads(path.read_text())


def main():
    node, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    sizes = [int(size) for size in sys.argv[3:]] or [8, 16, 32, 64, 128, 256, 512, 1000, 2000, 5000, 10000]
    folder.mkdir(parents=True, exist_ok=True)
    print("| nodes | wall s a round | peak MiB | messages of a node and round | kB of a node and round | virtual s a round | broken |")
    print("|---|---|---|---|---|---|---|")
    for size in sizes:
        r = run(node, folder, size)
        rounds = max(r["rounds"], 1)
        print(f"| {size} | {r['wall_seconds'] / rounds:.2f} | {r['peak_mib']:.0f} | {r['messages_per_node_round']:.0f} "
              f"| {r['bytes_per_node_round'] / 1e3:.1f} | {r['virtual_seconds'] / rounds:.1f} | {len(r['broken'])} |", flush=True)


if __name__ == "__main__":
    main()
