"""The local HTTP server: slow and hostile clients, and its figures in Prometheus' own parser."""
import subprocess

import builds
import reading
from facts import ROOT
from registry import target
from run import Broken

HOSTILE = 1000
SECONDS = 15
ROUNDS = 3
PYTHON = "/usr/bin/python3"  # that of Debian's python3-prometheus-client


def span(pairs, name, digits):
    values = sorted(pair[name] for pair in pairs)
    return f"{values[0]:.{digits}f} to {values[-1]:.{digits}f}"


@target("http-floods", "1,000 slow or hostile clients of the local HTTP server of a node that trains, beside an honest one (three minutes)")
def http_floods(run):
    builds.build(run, "ci", targets=("neuroshardd", "neuroshard_network", "compute_cpu"))
    part = run.part("floods", ["python3", "-B", ROOT / "tests/functional/http_floods.py", ROOT, builds.BIN, "--clients", HOSTILE, "--seconds", SECONDS,
                               "--rounds", ROUNDS], reading.last_json, limit=1200,
                    judge=lambda status, output: {0: "passed", 1: "missed", 3: "inconclusive"}.get(status, "failed"))
    run.figures = figures = part.figures
    if part.record["outcome"] == "inconclusive":
        run.reasons.append("the machine is too busy for the attackers")
        return
    if not figures:
        raise Broken("no figures")
    made = [side["connections"] for side in figures["attack"]]
    n = f"{ROUNDS} pairs of {SECONDS} s in turn, attackers niced: {min(made):,} to {max(made):,} connections in each"
    what = f"{HOSTILE:,} slow or hostile clients of the local HTTP server"
    attack, control = figures["attack"], figures["control"]
    run.claim(f"{what}: training tokens/s against the same load without packets", "≥ 0.85",
              f"{figures['training_share']:.2f} ({span(attack, 'tokens_per_s', 0)} against {span(control, 'tokens_per_s', 0)})",
              figures["training_share"] >= 0.85, n)
    run.claim(f"{what}: first token of an honest client", "≤ 2 × as late",
              f"{figures['first_token_ratio']:.2f} × ({span(attack, 'first_token_s', 3)} s against {span(control, 'first_token_s', 3)} s)",
              figures["first_token_ratio"] <= 2, n)
    run.claim(f"{what}: memory of the node", "≤ 48 MiB more than before", f"{figures['memory_more_mib']:.0f} MiB more", figures["memory_more_mib"] <= 48, n)
    run.claim(f"{what}: memory of the node from the first attack to the last", "≤ 24 MiB more", f"{round(figures['memory_growth_mib'])} MiB more",
              figures["memory_growth_mib"] <= 24, n)
    run.claim(f"{what}: honest requests refused", "0", f"{len(figures['refused'])} of {sum(side['answers'] for side in attack + control)}",
              not figures["refused"], n)


@target("http-metrics", "the figures of the local HTTP server in Prometheus' own parser for Python")
def http_metrics(run):
    builds.build(run, "ci", targets=("neuroshardd", "neuroshard_network", "compute_cpu"))
    version = subprocess.run([PYTHON, "-c", "from importlib.metadata import version; print(version('prometheus_client'))"], capture_output=True,
                             text=True, check=False)
    run.require(version.returncode == 0, "Debian's python3-prometheus-client is not installed")
    part = run.part("parse", [PYTHON, "-B", ROOT / "tests/functional/local_http.py", ROOT, builds.BIN, PYTHON, "-B",
                              ROOT / "tests/long/parse_metrics.py"], reading.last_json, limit=300)
    run.figures = part.figures
    run.claim("Prometheus' own parser reads all figures of /metrics", "all lines, names once, types known",
              f"{part.figures.get('samples', 0)} samples of {part.figures.get('families', 0)} families", part.passed,
              f"prometheus_client {version.stdout.strip()}")
