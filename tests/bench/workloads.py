"""The compared workloads: shapes, batches, targets (peer's precision, for now, later), and the inputs both sides read."""
import array
import os
import random


def shape(layers, hidden, heads, kv_heads, ffn, vocab, sequence, experts=1, k=1):
    return {"layers": layers, "hidden": hidden, "head_dim": hidden // heads, "heads": heads, "kv_heads": kv_heads,
            "ffn": ffn, "experts": experts, "experts_per_token": k, "vocab": vocab, "sequence": sequence}


def model(description, shape, batch, targets, learning_rate, steps, rounds):
    return {"kind": "model", "description": description, "shape": shape, "batch": batch, "targets": targets,
            "learning_rate": learning_rate, "clip": 1.0, "steps": steps, "rounds": rounds, "unit": "tokens/s",
            "units_per_step": batch * shape["sequence"], "unit_of_values": "loss", "compared": min(10, steps)}


ROWS = {
    # 100 steps of training for the comparison of losses: the untimed round, and nine of ten steps.
    "nanogpt": model("0.83 M parameters, 4 x 128, 12 x 64 tokens a step", shape(4, 128, 4, 4, 352, 96, 64), 12,
                     [("fp32", 1.5, 2.5), ("bf16", None, None)], 1e-3, 10, 9),
    "dense25m": model("25.4 M parameters, 8 x 512, 4 x 256 tokens a step", shape(8, 512, 8, 8, 1344, 512, 256), 4,
                      [("fp32", 2.0, 3.5), ("bf16", 1.0, 1.5)], 3e-4, 10, 9),
    "solo": model("the profile solo, 6 x 256, 8 experts, 8 x 256 tokens a step",
                  shape(6, 256, 4, 1, 512, 4096, 256, 8, 2), 8, [("fp32", None, None), ("bf16", None, None)], 6e-4, 5, 7),
    "moe-layer": {"kind": "layer", "description": "one layer, 8 experts top-2, 512/2048, 4 x 512 tokens, forward and "
                  "backward; ours packs its weights again for every pass", "repack": True,
                  "shape": shape(1, 512, 8, 2, 2048, 16, 512, 8, 2), "batch": 4, "targets": [("bf16", 1.3, 1.9)],
                  "steps": 5, "rounds": 9, "unit": "tokens/s", "units_per_step": 2048,
                  "unit_of_values": "mean product", "compared": 1, "scale": 0.02},
    "adamw": {"kind": "optimizer", "description": "AdamW and clipping of 10 M parameters; the peer's in 100 tensors",
              "shape": shape(3, 512, 8, 8, 1344, 640, 16), "tensors": 100, "learning_rate": 1e-4, "clip": 1.0,
              "targets": [("fp32", 4.0, None)], "steps": 10, "rounds": 9, "unit": "10^6 parameters/s",
              "units_per_step": 9.997824, "parameters": 9997824, "unit_of_values": "gradient norm", "compared": 0},
    "tiny": model("for the test of this program", shape(2, 32, 4, 2, 48, 96, 16), 2, [("fp32", None, None)], 1e-3, 5, 3),
}


def prose(letters, number=1):
    """Words of syllables with Zipf's frequencies in sentences: easy to begin to learn. A number is always one text."""
    rng = random.Random(number)
    syllables = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(400)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    text = []
    while sum(map(len, text)) < letters:
        sentence = " ".join(rng.choices(words, weights, k=rng.randint(4, 12)))
        text.append(sentence.capitalize() + rng.choice(". . . ? !".split()) + " ")
    return "".join(text)


def write_tokens(row, path):
    """Enough windows of [sequence + 1] tokens for 100 steps: printable characters, space = 0."""
    length = row["shape"]["sequence"] + 1
    count = 100 * row["batch"]
    tokens = array.array("i", (ord(c) - 32 for c in prose(count * length, row.get("text", 1))))
    with open(path, "wb") as file:
        tokens[:count * length].tofile(file)


def write_activations(row, path):
    """Input and upstream gradient of a layer, [2, batch, sequence, hidden]."""
    rng = random.Random(2)
    count = 2 * row["batch"] * row["shape"]["sequence"] * row["shape"]["hidden"]
    with open(path, "wb") as file:
        array.array("f", (rng.gauss(0, 1) for _ in range(count))).tofile(file)


def make_inputs(row, folder, ours):
    """Writes weights (ours: the same initial values as in training) and batches; returns the request to prepare."""
    request = {key: row[key] for key in ("kind", "shape", "batch", "learning_rate", "clip", "repack", "parameters",
                                         "tensors") if key in row}
    request["weights"] = os.path.join(folder, "weights")
    ours.ask({"do": "weights", "shape": row["shape"], "alone": row["kind"] == "layer", "path": request["weights"],
              "seed": row.get("seed", 7)})
    if row["kind"] == "layer":
        request.update(activations=os.path.join(folder, "activations"), clip=1.0)
        write_activations(row, request["activations"])
    if row["kind"] == "model":
        request["tokens"] = os.path.join(folder, "tokens")
        write_tokens(row, request["tokens"])
    return request
