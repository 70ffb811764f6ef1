"""Speed: one node beside the limits of the machine and beside PyTorch, codecs, the window's budgets."""
import json
import os
import re
import subprocess

import builds
import reading
from builds import DATA, NODE
from facts import ROOT
from registry import target
from run import Broken

TEXT = os.path.join(DATA, "tinyshakespeare.txt")
NO_PYTORCH = 77  # what compare.py and compare_codecs.py exit with
UNSTEADY = re.compile(r"inconclusive|unsteady|NOT STEADY")


def unless_unsteady(status, output):
    if status:
        return "skipped" if status == NO_PYTORCH else "failed"
    return "inconclusive" if UNSTEADY.search(output) else "passed"


def peer_versions():
    """PyTorch's version and BLAS, without which a comparison with it says nothing."""
    script = "import torch; print(torch.__version__); print(torch.__config__.show())"
    done = subprocess.run(["/usr/bin/python3", "-c", script], capture_output=True, text=True, check=False)
    version, _, config = done.stdout.partition("\n")
    blas = re.search(r"BLAS_INFO=(\w+)", config)
    package = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "python3-torch"], capture_output=True, text=True, check=False)
    return {"torch": package.stdout or version or "missing", "says": version, "built with BLAS": blas.group(1) if blas else "unknown"}


@target("bench", "neuroshardd bench, row by row (half an hour, most of it the row checkpoint; BENCH_ROWS: some rows only)")
def bench(run):
    builds.release(run)
    listed = subprocess.run([NODE, "bench", "--list"], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        raise Broken("neuroshardd bench --list failed")
    rows = os.environ.get("BENCH_ROWS", "").split() or [line.split()[0] for line in listed.stdout.splitlines() if line.strip()]
    for name in rows:
        seconds = 1200 if name == "checkpoint" else 30  # a round of that row is two minutes
        part = run.part(f"row-{name}", [NODE, "bench", "--rows", name, "--seconds", seconds, "--json"], reading.last_json, loud=True,
                        judge=lambda status, out: "failed" if status else "passed" if reading.last_json(out)["steady"] else "inconclusive")
        run.figures[name] = part.figures
        for held in part.figures.get("targets", []) if part.ok else []:
            speed = next((c for c in part.figures["contenders"] if c["name"] == held["contender"]), None)
            if speed:
                value = f"{speed['ratio_median']:.3f} of the yardstick, {speed['median']:.4g} (best {speed['best']:.4g}) {speed['unit']}"
                run.claim(f"bench {name}: {held['contender']}", f"≥ {held['first']:g} {held['unit']}, goal {held['goal']:g}", value,
                          held["reached"] != "missed", f"{part.figures['rounds_kept']} rounds")


@target("bench-peers", "training beside a well-configured PyTorch, interleaved, with the losses of both (BENCH_ROWS: some rows; BENCH_OPTIONS: of compare.py)")
def bench_peers(run):
    builds.release(run, "long")
    run.figures["PyTorch"] = peer_versions()
    for name in os.environ.get("BENCH_ROWS", "nanogpt dense25m solo moe-layer adamw").split():
        file = run.folder / f"{name}.json"
        part = run.part(f"row-{name}", ["python3", ROOT / "tests/bench/compare.py", "--ours", builds.program("bench_ours_server"), "--json", file,
                        "--rows", name, "--alone", *os.environ.get("BENCH_OPTIONS", "").split()], loud=True, judge=unless_unsteady,
                        read=lambda out, file=file: json.loads(file.read_text()))
        run.figures[name] = part.figures
        for row in part.figures.get("rows", []) if part.ok else []:
            for ratio in row.get("ratios", []):
                if "verdict" in ratio:
                    run.claim(f"Beside PyTorch, {name}: {ratio['ours']} against {ratio['peer']}", f"≥ {ratio['first']:g}, goal {ratio['goal']}",
                              f"{ratio['of_medians']:.2f} (of bests {ratio['of_bests']:.2f}); PyTorch {run.figures['PyTorch']['torch']}, {part.figures['peer']}",
                              ratio["verdict"] != "missed", f"{row['kept']} rounds kept")
                if "of_alone" in ratio:
                    run.claim(f"Beside PyTorch running alone, {name}: {ratio['ours']} against {ratio['peer']}", None, f"{ratio['of_alone']:.2f}, ours taking turns; "
                              f"PyTorch {run.figures['PyTorch']['torch']}", None, f"{row['kept']} rounds kept")


@target("codecs", "delta codecs beside memcpy and torch.topk, interleaved: time and bytes per value")
def codecs(run):
    builds.release(run)
    file = run.folder / "codecs.json"
    part = run.part("codecs", ["python3", ROOT / "tests/bench/compare_codecs.py", "--ours", builds.program("bench_codec_server"), "--json", file],
                    lambda out: json.loads(file.read_text()), loud=True, judge=unless_unsteady)
    run.figures = part.figures
    for name, limit in (("fp16", 2.001), ("int8", 1.01), ("int4", 0.51), ("topk", 0.0195)):
        size = part.figures.get("bytes", {}).get(name)
        if size:
            run.claim(f"Codec {name}, bytes a value", f"≤ {limit:g}", f"{size:.5f}", size <= limit, "10,240,000 values")


@target("peers", "peer channels beside bare gRPC: small calls, streams, idle and hostile connections")
def peers(run):
    builds.release(run)
    measure = builds.program("measure_peers")
    for name, words in {"rounds": ["2"], "idle": ["idle", "200", "10"], "hostile": ["connections", "10000"], "limit": ["limit", "4194304"]}.items():
        part = run.part(name, [measure, *words], reading.table, loud=True)
        run.figures[name] = part.figures.get("table")


@target("gui", "the window's budgets under Xvfb: start, page switch, longest event, idle, memory, 10,000 log lines/s")
def gui(run):
    builds.release(run)
    file = run.folder / "gui.json"
    clean = "unset DBUS_SESSION_BUS_ADDRESS; exec \"$@\""
    part = run.part("gui", ["sh", "-c", clean, "sh", "xvfb-run", "-a", "-s", "-screen 0 1600x1000x24", builds.program("bench_gui"), "--json", file],
                    lambda out: {"report": json.loads(file.read_text()), **reading.table(out)}, env={"QT_QPA_PLATFORM": "xcb"}, loud=True)
    run.figures = part.figures
    run.claim("The window keeps its budgets (16 ms an event, 100 ms a page, 150 MB, 1 % idle)", "all kept", "all kept" if part.ok else "not all kept", part.passed, 1)


@target("idle", "processor time of four members of a network that do not train (three minutes; IDLE_BESIDE: neuroshardd of another build, four times as long)")
def idle(run):
    run.require(os.path.exists(TEXT), f"{TEXT} is not here")
    builds.release(run)
    beside = os.environ.get("IDLE_BESIDE")
    command = ["python3", "-B", ROOT / "tests/bench/idle_nodes.py", NODE, TEXT, run.folder / "nodes", *(["--beside", beside] if beside else [])]
    part = run.part("idle", ["sh", "-c", 'rm -rf "$1" && shift && exec "$@"', "sh", run.folder / "nodes", *command], reading.last_json, missed=(1,))
    run.figures = part.figures
    if part.figures:
        node = part.figures["node"]
        value = f"{node['percent']:.2f} % ({min(node['percents']):.2f} to {max(node['percents']):.2f}), {node['wakeups']:.0f} wake-ups a second"
        if beside:
            value += f"; {part.figures['ratio']:.2f} of the build beside it"
        run.claim("A member of a network of four that does not train, share of one core", "< 1 %", value, node["percent"] < 1,
                  "4 nodes" + (", 2 turns" if beside else ""))
