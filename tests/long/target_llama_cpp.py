"""An exported model in llama.cpp, which nobody here wrote: npm's prebuilt library and its wrapper, in the folder of the run."""
import json
import math
import os
import shutil

import builds
from facts import ROOT
from registry import target
from run import Broken

VERSION = "3.22.1"
PACKAGES = (f"node-llama-cpp@{VERSION}", f"@node-llama-cpp/linux-x64@{VERSION}")
TEXT = os.path.join(builds.DATA, "tinyshakespeare.txt")
STEPS = 60
SMALL = ["--layers", 4, "--hidden", 128, "--head-dim", 32, "--sequence", 256, "--batch-tokens", 1024]
WINDOW = 128  # tokens scored at a time
WINDOWS = 12
FULL = 8      # positions of each window of which the whole distribution is compared

# Texts in which splits, byte tokens and merges could differ.
SAMPLES = [
    "Once upon a time there was a king.", "it's we'll they'd I'm you've he're 'tis 'S 'LL ''s", "x = foo(bar[0], y=1e-6);\n\tif (!x) { return; }\n",
    "  two  three   four    \n\n\n  end   ", " ", "  ", "\n", "\t\t", "a\r\nb\r\n", "\u00a0\u2003\u3000x \u2028 y\u0085z", "\U0001F600 \U0001F468\u200d\U0001F469\u200d\U0001F467 \U0001F1E9\U0001F1EA",
    "\u4f60\u597d\uff0c\u4e16\u754c 123\u00b2 \u2167 \u0663\u0664", "na\u00efve caf\u00e9 e\u0301 \u0928\u092e\u0938\u094d\u0924\u0947 \u0627\u0644\u0633\u0644\u0627\u0645", "<|endoftext|> <|pad|> <s> </s> [INST]",
    "1234567890 3.14159 0xFF", "\u0000\u0001\u007f", "\ufffd", "a" * 300, " " * 300, "ab " * 100, "https://example.org/a?b=c&d=e#f", "",
]


def install(run):
    folder = run.folder / "npm"
    if (folder / "node_modules/node-llama-cpp/package.json").exists():
        return folder / "node_modules"
    run.require(shutil.which("npm") is not None, "npm is not installed")
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_text('{"private": true}\n')
    # Only the library for this machine, and no script of a package runs.
    part = run.part("npm", ["npm", "install", "--prefix", folder, "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", *PACKAGES],
                    files=[folder / "node_modules"])
    if not part.ok:
        raise Broken("npm can't install node-llama-cpp")
    return folder / "node_modules"


def characters():
    """Every character there is between two letters and digits, in texts of 4,096: how it splits shows its class."""
    points = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    return ["".join(f"a{chr(c)}1{chr(c)}{chr(c)} " for c in points[at:at + 4096]) for at in range(0, len(points), 4096)]


def train(run, name, options, steps=STEPS, shape=SMALL):
    """A data directory with a model that has learned a little."""
    directory, profile = run.folder / name, run.folder / f"{name}.json"
    made = run.part(f"profile-{name}", [builds.NODE, "network", "create", "--name", f"{name}-test", "--from", "solo", "--force", "--out", profile, *shape, *options],
                    files=[profile])
    if not made.ok or not run.part(f"train-{name}", [builds.NODE, "train", "--data-dir", directory, "--profile", profile, "--text", TEXT, "--steps", steps],
                                   files=[directory / "checkpoints"]).ok:
        raise Broken("training failed")
    return directory


def windows(ids):
    step = max(WINDOW, (len(ids) - WINDOW) // WINDOWS)
    return [ids[at:at + WINDOW] for at in range(0, len(ids) - WINDOW, step)][:WINDOWS]


def load(path):
    return json.loads(path.read_text())


def largest_difference(ours, theirs, key):
    worst = 0.0
    for a, b in zip(ours[key], theirs[key], strict=True):
        if len(a) != len(b):
            raise Broken(f"{key}: {len(a)} values against {len(b)}")
        worst = max(worst, *(abs(x - y) for x, y in zip(a, b)))
    return worst


def perplexity(scores):
    flat = [score for window in scores for score in window]
    return math.exp(-sum(flat) / len(flat))


def differing(texts, ours, theirs):
    """Texts that split differently, and for long ones the first token that differs."""
    found = []
    for text, a, b in zip(texts, ours["ids"], theirs["ids"], strict=True):
        if a != b:
            at = next((i for i, pair in enumerate(zip(a, b)) if pair[0] != pair[1]), min(len(a), len(b)))
            found.append((text[:40], at, a[at:at + 4], b[at:at + 4]))
    return found


class Comparison:
    def __init__(self, run, name, directory, modules):
        self.run, self.name, self.modules = run, name, modules
        self.checkpoint = max((directory / "checkpoints").glob("*-*"), key=lambda path: path.name)
        self.directory = directory
        self.request = None  # the newest one, for those that answer it after us

    def ours(self, step, request):
        """The answer to one request. Each step has files of its own: a second start finds the answers of all."""
        self.request = self.run.folder / f"{self.name}-{step}-request.json"
        self.request.write_text(json.dumps(request))
        answer = self.run.folder / f"{self.name}-{step}-ours.json"
        part = self.run.part(f"ours-{self.name}-{step}", [builds.BIN / "model_probe", self.checkpoint, self.directory / "data/tokenizer.json",
                                                          self.request, answer], files=[answer])
        if not part.ok:
            raise Broken("model_probe failed")
        return load(answer)

    def over_http(self):
        answer = self.run.folder / f"{self.name}-http.json"
        if not self.run.part(f"http-{self.name}", ["python3", "-B", ROOT / "tests/long/http_scores.py", builds.NODE, self.directory, self.request, answer],
                             files=[answer]).ok:
            raise Broken(f"{self.name}: no scores over HTTP")
        return load(answer)

    def theirs(self, kind):
        model, answer = self.run.folder / f"{self.name}-{kind}.gguf", self.run.folder / f"{self.name}-{kind}.json"
        exported = self.run.part(f"export-{self.name}-{kind}", [builds.NODE, "checkpoint", "export", "--data-dir", self.directory, "--format", "gguf",
                                                                "--type", kind, "--out", model, "--force"], files=[model])
        script = ROOT / "tests/long/llama_cpp.mjs"
        if not exported.ok or not self.run.part(f"llama-{self.name}-{kind}", ["node", script, self.modules, model, self.request, answer],
                                                    files=[answer]).ok:
            raise Broken(f"{self.name} as {kind}: llama.cpp gave no answer")
        return load(answer)


def compare(run, name, directory, modules):
    """Claims of one model. Returns the texts that llama.cpp splits differently."""
    comparison = Comparison(run, name, directory, modules)
    with open(TEXT, encoding="utf-8") as file:
        text = file.read()[-40_000:]
    texts = [*SAMPLES, *characters(), text]
    ids = comparison.ours("ids", {"texts": [text], "tokens": [], "full": 0})["ids"][0]
    ours = comparison.ours("scores", {"texts": texts, "tokens": windows(ids), "full": FULL})
    theirs = comparison.theirs("f32")
    unequal = differing(texts, ours, theirs)
    run.figures[f"{name}: texts that split differently"] = unequal[:20]
    run.claim(f"llama.cpp and NeuroShard give the same tokens, {name}", "all texts", f"{len(texts) - len(unequal)} of {len(texts)} texts", not unequal, len(texts))
    worst = max(largest_difference(ours, theirs, "scores"), largest_difference(ours, theirs, "full"))
    run.claim(f"Log-probabilities of the exported GGUF (F32) in llama.cpp against ours, {name}", "≤ 1e-3", f"{worst:.1e}", worst <= 1e-3,
              sum(map(len, ours["scores"])) + sum(map(len, ours["full"])))
    http = comparison.over_http()
    worst = largest_difference(http, theirs, "scores")
    run.claim(f"Scores over local HTTP as lm-eval-harness asks for them against llama.cpp's of the exported GGUF (F32), {name}", "≤ 1e-3", f"{worst:.1e}",
              worst <= 1e-3, sum(map(len, http["scores"])))
    mine = perplexity(ours["scores"])
    for kind in ("f32", "f16", "bf16", "q8_0"):
        answer = theirs if kind == "f32" else comparison.theirs(kind)
        change = 100 * (perplexity(answer["scores"]) / mine - 1)
        gated = kind == "f32"
        run.claim(f"Perplexity in llama.cpp against ours, {name}, {kind.upper()}", "within 0.1 %" if gated else "–", f"{mine:.3f}, {change:+.3f} %",
                  abs(change) <= 0.1 if gated else None, sum(map(len, ours["scores"])))


@target("llama-cpp", "exported GGUF in llama.cpp (npm's prebuilt node-llama-cpp): tokens, log-probabilities, perplexity")
def llama_cpp(run):
    run.require(shutil.which("node") is not None, "node is not installed")
    modules = install(run)
    builds.build(run, "ci", "-DNS_BUILD_TESTS=ON", targets=(*builds.PROGRAMS, "model_probe"))
    for name, options in (("mixture", []), ("dense", ["--experts", 1, "--experts-per-token", 1])):
        compare(run, name, train(run, name, options), modules)
    run.n = sum(int(claim["n"]) for claim in run.claims)
