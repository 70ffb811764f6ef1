"""The speed of generation: one stream and a prompt against llama.cpp with the same weights, eight streams against one, and the share
of the time that text and training have beside each other."""
import contextlib
import json
import shutil
import statistics
import subprocess
import threading
import time

import builds
from facts import ROOT
from reading import last_json
from registry import target
from run import Broken
from target_llama_cpp import TEXT, install, load, train

THREADS = 2
ROUNDS = 5
SPEC = {"rounds": ROUNDS, "texts": 8, "context": 32, "tokens": 32, "prompt": 1000}
# At least 100 million parameters each. The training sequence holds the prompt; one step makes a checkpoint.
LONG = ["--head-dim", 64, "--sequence", 1280, "--batch-tokens", 1280]
MODELS = {
    "dense": [*LONG, "--layers", 12, "--hidden", 1024, "--experts", 1, "--experts-per-token", 1],
    "mixture": [*LONG, "--layers", 8, "--hidden", 512, "--experts", 8, "--experts-per-token", 2],
}
LEAST_PARAMETERS = 100_000_000
BATCH_TOKENS = 2048
SHARED = ["--layers", 6, "--hidden", 256, "--sequence", 256, "--batch-tokens", BATCH_TOKENS]
SHARES = (25, 75)  # percent
SHARE_SECONDS = 40
SHARE_RUNS = 3


def exports(run, name, directory):
    """GGUF files of the newest checkpoint."""
    files = {}
    for kind in ("f32", "bf16", "q8_0"):
        files[kind] = run.folder / f"{name}-{kind}.gguf"
        if not run.part(f"export-{name}-{kind}", [builds.NODE, "checkpoint", "export", "--data-dir", directory, "--format", "gguf",
                                                  "--type", kind, "--out", files[kind], "--force"], files=[files[kind]]).ok:
            raise Broken("the export failed")
    return files


def measure(run, name, modules):
    directory = train(run, name, [], steps=1, shape=MODELS[name])
    files = exports(run, name, directory)
    checkpoint = max((directory / "checkpoints").glob("*-*"), key=lambda path: path.name)
    probe = [str(builds.BIN / "generation_probe"), str(checkpoint)]
    llama = ["node", str(ROOT / "tests/long/llama_speed.mjs"), str(modules)]
    contenders = {"ours f32": [*probe, "fp32", str(THREADS)], "ours bf16": [*probe, "bf16", str(THREADS)]}
    contenders |= {f"llama.cpp {kind}": [*llama, str(path), str(THREADS), "1280"] for kind, path in files.items()}
    request, answer = run.folder / f"{name}-spec.json", run.folder / f"{name}-speed.json"
    request.write_text(json.dumps({**SPEC, "contenders": contenders}))
    if not run.part(f"speed-{name}", ["python3", "-B", ROOT / "tests/long/generation_rounds.py", request, answer], files=[answer]).ok:
        raise Broken("the measurement failed")
    return load(answer)


def spread(values):
    return f"{min(values):.2f} to {max(values):.2f}"


def faster(theirs, ours):
    """How much faster ours is: by the best round of each, which other programs disturbed least, and by the medians. llama.cpp's threads
    wait for each other at every operation, so that a busy machine slows it down more: the smaller figure counts."""
    return min(theirs) / min(ours), statistics.median(theirs) / statistics.median(ours)


def claims(run, name, result):
    seconds, facts = result["seconds"], result["facts"]
    reading = statistics.median(result["read_gb_s"])
    run.figures[f"{name}: memory is read at"] = f"{reading:.1f} GB/s, {spread(result['read_gb_s'])}"

    parameters = facts["ours f32"]["parameters"]
    if parameters < LEAST_PARAMETERS:
        raise Broken(f"{name}: {parameters} parameters are too few")

    def compare(text, gate, ours, theirs, key, least):
        """least: of the ratio; None = no gate."""
        best, median = faster(seconds[theirs][key], seconds[ours][key])
        run.claim(text, gate, f"{best:.2f} by the best round of each, {median:.2f} by the medians", None if least is None else min(best, median) >= least, ROUNDS)

    for kind in ("f32", "bf16"):
        ours, stream = f"ours {kind}", seconds[f"ours {kind}"]["stream"]
        rate = SPEC["tokens"] / statistics.median(stream)
        bound = rate * facts[ours]["weight_bytes"] / 1e9 / reading
        run.figures[f"{name} {kind}: one stream"] = f"{rate:.1f} tokens/s, {100 * bound:.0f} % of the memory's reading speed"
        compare(f"Tokens/s of one stream against llama.cpp, {name}, {kind.upper()}", "≥ 1.0", ours, f"llama.cpp {kind}", "stream", 1.0)
        compare(f"Time to the first token after a prompt of 1,000: llama.cpp's as a multiple of ours, {name}, {kind.upper()}", "–", ours,
                f"llama.cpp {kind}", "prompt", None)
        together = [SPEC["texts"] * one / all_of_them for one, all_of_them in zip(stream, seconds[ours]["batch"], strict=True)]
        value = statistics.median(together)
        run.claim(f"Tokens/s of 8 texts at once against one, {name}, {kind.upper()}", "≥ 3", f"{value:.2f} ({spread(together)})", value >= 3, ROUNDS)
    # There are no 8-bit weights in the program: it reads no GGUF, and generates from the bf16 copies of its own weights.
    compare(f"Tokens/s of one stream, ours in BF16 against llama.cpp's Q8_0 of the same weights, {name}", "≥ 0.8", "ours bf16", "llama.cpp q8_0",
            "stream", 0.8)
    for contender, values in seconds.items():
        run.figures[f"{name} {contender}: seconds (median)"] = {key: round(statistics.median(rounds), 4) for key, rounds in values.items()}


# ---- beside training -------------------------------------------------------------------------------------------------
class Node:
    """A node that trains, and its commands."""

    def __init__(self, directory, profile, share):
        self.directory = directory
        self.child = subprocess.Popen([builds.NODE, "run", "--data-dir", directory, "--profile", profile, "--generation-share", str(share),
                                       "--pause-on-battery", "never"], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def ask(self, *words):
        done = subprocess.run([builds.NODE, *words, "--data-dir", self.directory, "--json"], capture_output=True, text=True, check=False)
        return last_json(done.stdout) if done.returncode == 0 else None

    def training(self):
        return (self.ask("status") or {}).get("training") or {}

    def wait_for_steps(self, step):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if (self.training().get("step") or 0) >= step:
                return
            time.sleep(0.5)
        raise Broken("the node does not train")

    def stop(self):
        self.ask("stop")
        try:
            self.child.wait(60)
        except subprocess.TimeoutExpired:
            self.child.kill()


@contextlib.contextmanager
def step_seconds(node):
    """Seconds of each step, by its number, from the speed that the status tells while the block runs."""
    stop, found = threading.Event(), {}

    def watch():
        while not stop.wait(1):
            last = node.training().get("last_step")
            if last and last.get("tokens_per_s"):
                found[last["step"]] = BATCH_TOKENS / last["tokens_per_s"]
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        stop.set()
        watcher.join(60)


def seconds_of(call):
    began = time.monotonic()
    call()
    return time.monotonic() - began


def share_of(run, directory, profile, share):
    """Shares of the time of text and training, from what each says that it worked."""
    node = Node(directory, profile, share)
    try:
        node.wait_for_steps((node.training().get("step") or 0) + 3)
        # A command takes so long before it asks, and after its answer. Then no text waits, and the training has all of the time.
        around = statistics.median(seconds_of(lambda: node.ask("status")) for _ in range(9))
        text, waiting = 0.0, 0.0
        with step_seconds(node) as steps:
            first, began = node.training()["step"], time.monotonic()
            while time.monotonic() - began < SHARE_SECONDS:
                asked = time.monotonic()
                answer = node.ask("generate", "--prompt", "The", "--max-tokens", "4000", "--logit-bias", "2", "-100")
                if not answer:
                    raise Broken("the node generates no text")
                waiting += time.monotonic() - asked - around
                text += answer["tokens"] / answer["tokens_per_s"]
            wall, done = time.monotonic() - began, node.training()["step"] - first
        training = done * statistics.mean(steps.values()) - (wall - waiting)
        run.figures[f"share {share} %"] = {"text": round(text / waiting, 3), "training": round(training / waiting, 3), "steps": done,
                                           "seconds": round(wall, 1), "without a text": round(wall - waiting, 1)}
        return text / waiting, training / waiting
    finally:
        node.stop()


def beside_training(run):
    directory = train(run, "shared", [], shape=SHARED)
    for share in SHARES:
        runs = [share_of(run, directory, run.folder / "shared.json", share) for _ in range(SHARE_RUNS)]
        text, training = (statistics.median(side) for side in zip(*runs))
        # Of the time in which a text waited; a part of it belongs to neither (status, checkpoints, other programs).
        wrong = max(abs(text / (share / 100) - 1), abs(training / (1 - share / 100) - 1))
        run.claim(f"Shares of text and training beside each other, generation_share = {share}", "each within 10 % of its share",
                  f"{100 * text:.0f} % and {100 * training:.0f} % of the time in which a text waited "
                  f"({', '.join(f'{100 * one:.0f}/{100 * other:.0f}' for one, other in runs)})", wrong <= 0.1, SHARE_RUNS)


@target("generation-speed", "tokens/s and time to the first token against llama.cpp, 8 texts at once, share beside training")
def generation_speed(run):
    run.require(shutil.which("node") is not None, "node is not installed")
    modules = install(run)
    builds.build(run, "ci", "-DNS_BUILD_TESTS=ON", targets=("neuroshardd", "neuroshard_network", "compute_cpu", "generation_probe"))
    for name in [run.argument] if run.argument in MODELS else [] if run.argument == "share" else MODELS:
        claims(run, name, measure(run, name, modules))
    if run.argument not in MODELS:
        beside_training(run)
    run.n = len(run.claims)
