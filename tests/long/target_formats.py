"""Exports in programs that nobody here wrote: the Hugging Face folder in Debian's PyTorch and in Hugging Face's tokenizers.js, the
TensorBoard files in npm's packages; and the folder back into a checkpoint."""
import csv
import shutil
import struct
import subprocess

import builds
from facts import ROOT
from registry import target
from run import Broken
from target_llama_cpp import SAMPLES, TEXT, Comparison, characters, differing, largest_difference, load, train, windows

PACKAGES = ("@huggingface/tokenizers@0.2.0", "@roboflow/tfrecords@1.0.4", "protobufjs@7.6.6")
PYTHON = "/usr/bin/python3"  # that of Debian's PyTorch
POSITIONS = 128


def install(run):
    folder = run.folder / "npm"
    if (folder / "node_modules/protobufjs/package.json").exists():
        return folder / "node_modules"
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_text('{"private": true}\n')
    if not run.part("npm", ["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", *PACKAGES], files=[folder / "node_modules"]).ok:
        raise Broken("npm can't install the packages")
    return folder / "node_modules"


def export(run, name, directory, *words):
    """An exported folder of the current or a named checkpoint."""
    folder = run.folder / name
    shutil.rmtree(folder, ignore_errors=True)
    if not run.part(f"export-{name}", [builds.NODE, "checkpoint", "export", *words, "--data-dir", directory, "--format", "huggingface", "--out", folder],
                    files=[folder]).ok:
        raise Broken(f"{name} was not exported")
    return folder


def logits(run, name, directory, folder, modules):
    comparison = Comparison(run, name, directory, None)
    with open(TEXT, encoding="utf-8") as file:
        text = file.read()[-40_000:]
    texts = [*SAMPLES, *characters(), text]
    ids = comparison.ours("ids", {"texts": [text], "tokens": [], "full": 0})["ids"][0]
    ours = comparison.ours("logits", {"texts": texts, "tokens": windows(ids), "full": 0, "logits": POSITIONS})
    answer = run.folder / f"{name}-torch.json"
    if not run.part(f"torch-{name}", [PYTHON, "-B", ROOT / "tests/long/torch_model.py", folder, comparison.request, answer], files=[answer]).ok:
        raise Broken(f"PyTorch gave no logits of {name}")
    torch = load(answer)
    worst = largest_difference(ours, torch, "logits")
    run.claim(f"Logits of the exported Hugging Face folder in PyTorch (float64) against ours (fp32), {name}", "≤ 1e-4", f"{worst:.1e}", worst <= 1e-4,
              sum(map(len, ours["logits"])))
    http = comparison.over_http()
    worst = largest_difference(http, torch, "scores")
    run.claim(f"Scores over local HTTP as lm-eval-harness asks for them against PyTorch's of the exported Hugging Face folder, {name}", "≤ 1e-3",
              f"{worst:.1e}", worst <= 1e-3, sum(map(len, http["scores"])))
    answer = run.folder / f"{name}-tokens.json"
    if not run.part(f"tokens-{name}", ["node", ROOT / "tests/long/formats.mjs", modules, "tokens", folder, comparison.request, answer], files=[answer]).ok:
        raise Broken(f"tokenizers.js read no tokens of {name}")
    # These libraries take the name of a special token for the token (docs/guide/use-elsewhere.md).
    plain = [i for i, sample in enumerate(texts) if "<|" not in sample]
    theirs = load(answer)
    pick = [{"ids": [side["ids"][i] for i in plain]} for side in (ours, theirs)]
    unequal = differing([texts[i] for i in plain], *pick)
    run.figures[f"{name}: texts that split differently"] = unequal[:20]
    run.claim(f"Hugging Face's tokenizers.js and NeuroShard give the same tokens, {name}", "all texts", f"{len(plain) - len(unequal)} of {len(plain)} texts",
              not unequal, len(plain))


def come_back(run, name, directory, folder):
    """The folder as a checkpoint of a new directory, and exported again."""
    other = run.folder / f"{name}-imported"
    shutil.rmtree(other, ignore_errors=True)
    done = run.part(f"import-{name}", [builds.NODE, "checkpoint", "import", folder, "--data-dir", other, "--profile", run.folder / f"{name}.json", "--json"],
                    files=[other])
    if not done.ok:
        raise Broken(f"{name} was not imported")
    again = export(run, f"{name}-again", other, "0")
    files = ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json")
    equal = [file for file in files if (folder / file).read_bytes() == (again / file).read_bytes()]
    run.claim(f"Exported, imported and exported again: equal files, {name}", "5 of 5", f"{len(equal)} of 5", len(equal) == 5, len(files))


def tensorboard(run, directory, modules):
    table, folder, answer = run.folder / "history.csv", run.folder / "runs", run.folder / "scalars.json"
    for kind, path in (("csv", table), ("tensorboard", folder)):
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        if not run.part(f"history-{kind}", [builds.NODE, "history", "export", "--data-dir", directory, "--format", kind, "--out", path], files=[path]).ok:
            raise Broken(f"the history was not exported as {kind}")
    events = next(folder.glob("events.out.tfevents.*"))
    if not run.part("events", ["node", ROOT / "tests/long/formats.mjs", modules, "events", events, answer], files=[answer]).ok:
        raise Broken("the event file can't be read")
    with open(table, encoding="utf-8", newline="") as file:
        rows = {(row["series"], int(row["step"])): struct.unpack("<f", struct.pack("<f", float(row["mean"])))[0] for row in csv.DictReader(file)}
    read = load(answer)
    equal = sum(rows.get((tag, step)) == value for tag, step, value in read["scalars"])
    ok = read["version"] == "brain.Event:2" and equal == len(rows) == len(read["scalars"])
    run.claim("TensorBoard events read by npm's TFRecord checksums and protobuf.js", "all values", f"{equal} of {len(rows)} values, {read['records']} records", ok, len(rows))


@target("formats", "exports elsewhere: Hugging Face folders in Debian's PyTorch (float64) and tokenizers.js, back again; TensorBoard events in npm's readers")
def formats(run):
    run.require(shutil.which("npm") is not None, "node and npm are not installed")
    run.require(subprocess.run([PYTHON, "-c", "import torch"], check=False).returncode == 0, "Debian's python3-torch is not installed")
    modules = install(run)
    builds.build(run, "ci", "-DNS_BUILD_TESTS=ON", targets=(*builds.PROGRAMS[:3], "model_probe"))
    for name, options in (("mixture", []), ("dense", ["--experts", 1, "--experts-per-token", 1])):
        directory = train(run, name, options)
        folder = export(run, f"{name}-folder", directory)
        logits(run, name, directory, folder, modules)
        come_back(run, name, directory, folder)
    tensorboard(run, run.folder / "mixture", modules)
    run.n = sum(int(claim["n"]) for claim in run.claims)
