#!/usr/bin/python3
"""An independent NeuroLLM in plain PyTorch, in double precision, and the golden values that the C++ model must meet.

  model_oracle.py --write DIR   computes the values and writes them as JSON
  model_oracle.py --check DIR   computes them and compares with what stands there; exit 77 if PyTorch is missing

Nothing here is shared with the C++ code except the numbers below that fill weights and inputs: value i of a stream is
(x_i / 2^32 - 1/2) * 2 * amplitude, rounded to float32, with x_{i+1} = (1664525 x_i + 1013904223) mod 2^32, x_0 = seed.
Matrices get amplitude 0.3, norms 1 + a stream of amplitude 0.2. Streams are seeded by 1000 + the slot's index.
"""
import json
import math
import os
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch for Python is not installed: nothing to compare with")
    sys.exit(77)

torch.set_default_dtype(torch.float64)


def stream(seed, count, amplitude):
    values, x = [], seed
    for _ in range(count):
        x = (1664525 * x + 1013904223) % 2**32
        values.append((x / 2**32 - 0.5) * 2 * amplitude)
    return torch.tensor(values).float().double()


class Shape:
    def __init__(self, **fields):
        self.__dict__.update(dict(layers=2, hidden=16, head_dim=4, heads=4, kv_heads=2, ffn=12, experts=4, k=2,
                                  vocab=29, theta=10000.0, eps=1e-6))
        self.__dict__.update(fields)


def slots(shape):
    """Slot name -> list of (parameter name, dims), in canonical order."""
    h, q, kv = shape.hidden, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    result = {"embed": [("model.embed_tokens.weight", (shape.vocab, h))]}
    for layer in range(shape.layers):
        p = f"model.layers.{layer}."
        parameters = [(p + "input_layernorm.weight", (h,)), (p + "self_attn.q_proj.weight", (q, h)),
                      (p + "self_attn.k_proj.weight", (kv, h)), (p + "self_attn.v_proj.weight", (kv, h)),
                      (p + "self_attn.o_proj.weight", (h, q)), (p + "post_attention_layernorm.weight", (h,))]
        if shape.experts > 1:
            parameters.append((p + "block_sparse_moe.gate.weight", (shape.experts, h)))
        result[f"layer {layer}"] = parameters
        for e in range(shape.experts):
            if shape.experts > 1:
                x, names = p + f"block_sparse_moe.experts.{e}.", ("w1", "w3", "w2")
            else:
                x, names = p + "mlp.", ("gate_proj", "up_proj", "down_proj")
            dims = ((shape.ffn, h), (shape.ffn, h), (h, shape.ffn))
            result[f"expert {layer}.{e}"] = [(f"{x}{n}.weight", d) for n, d in zip(names, dims)]
    result["head"] = [("model.norm.weight", (h,)), ("lm_head.weight", (shape.vocab, h))]
    return result


def make_weights(shape):
    """Slot name -> {parameter name: leaf tensor}."""
    weights = {}
    for index, (slot, parameters) in enumerate(slots(shape).items()):
        total = sum(math.prod(d) for _, d in parameters)
        values, at = stream(1000 + index, total, 1.0), 0
        weights[slot] = {}
        for name, dims in parameters:
            count = math.prod(dims)
            part = values[at:at + count]
            part = (1 + 0.2 * part) if len(dims) == 1 else 0.3 * part
            weights[slot][name] = part.float().double().reshape(dims).requires_grad_()
            at += count
    return weights


def rms_norm(x, gain, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * gain


def rope(x, theta):  # [B, heads, T, D]
    t, d = x.shape[-2], x.shape[-1]
    frequency = theta ** (-torch.arange(0, d, 2) / d)
    angle = torch.outer(torch.arange(t).double(), frequency)
    angle = torch.cat([angle, angle], -1)
    rotated = torch.cat([-x[..., d // 2:], x[..., :d // 2]], -1)
    return x * angle.cos() + rotated * angle.sin()


def attention(x, w, prefix, shape):
    b, t, _ = x.shape

    def split(name, heads):
        return F.linear(x, w[prefix + f"self_attn.{name}.weight"]).view(b, t, heads, shape.head_dim).transpose(1, 2)

    group = shape.heads // shape.kv_heads
    q = rope(split("q_proj", shape.heads), shape.theta)
    k = rope(split("k_proj", shape.kv_heads), shape.theta).repeat_interleave(group, 1)
    v = split("v_proj", shape.kv_heads).repeat_interleave(group, 1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(shape.head_dim)
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -math.inf)
    out = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1)
    return F.linear(out, w[prefix + "self_attn.o_proj.weight"])


def swiglu(x, gate, up, down):
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def mixture(x, weights, layer, shape, options):
    """Returns (output, balance loss, z loss, tokens per expert)."""
    p = f"model.layers.{layer}."
    if shape.experts == 1:
        w = weights[f"expert {layer}.0"]
        out = swiglu(x, *(w[p + f"mlp.{n}.weight"] for n in ("gate_proj", "up_proj", "down_proj")))
        return out, torch.zeros(()), torch.zeros(()), [0]
    rows = x.reshape(-1, shape.hidden)
    n = rows.shape[0]
    logits = F.linear(rows, weights[f"layer {layer}"][p + "block_sparse_moe.gate.weight"])
    bias = options.get("bias")
    chosen = (logits + torch.tensor(bias) if bias else logits).topk(shape.k, -1).indices
    weight = logits.gather(1, chosen).softmax(-1)
    counts = torch.bincount(chosen.flatten(), minlength=shape.experts)
    capacity = math.inf
    if options.get("capacity_factor"):
        capacity = math.ceil(options["capacity_factor"] * n * shape.k / shape.experts)
    out = torch.zeros_like(rows)
    for e in range(shape.experts):
        w = weights[f"expert {layer}.{e}"]
        matrices = [w[p + f"block_sparse_moe.experts.{e}.{m}.weight"] for m in ("w1", "w3", "w2")]
        token, choice = (chosen == e).nonzero(as_tuple=True)
        if len(token) > capacity:
            token, choice = token[:capacity], choice[:capacity]
        out = out.index_add(0, token, weight[token, choice, None] * swiglu(rows[token], *matrices))
    fraction = counts.double() / (shape.k * n)
    balance = shape.experts * (fraction * logits.softmax(-1).mean(0)).sum()
    z = torch.logsumexp(logits, -1).pow(2).mean()
    return out.view_as(x), balance, z, counts.tolist()


def block(x, weights, layer, shape, options):
    p = f"model.layers.{layer}."
    w = weights[f"layer {layer}"]
    a = x + attention(rms_norm(x, w[p + "input_layernorm.weight"], shape.eps), w, p, shape)
    out, balance, z, counts = mixture(rms_norm(a, w[p + "post_attention_layernorm.weight"], shape.eps), weights, layer,
                                      shape, options)
    return a + out, balance, z, counts


def head_loss(x, weights, shape, targets):
    w = weights["head"]
    logits = F.linear(rms_norm(x, w["model.norm.weight"], shape.eps), w["lm_head.weight"])
    return F.cross_entropy(logits.reshape(-1, shape.vocab), targets.reshape(-1), ignore_index=-1, reduction="sum")


def model_loss(weights, shape, tokens, targets, options):
    """Sum over tokens of cross-entropy, and of it with the router losses."""
    x = F.embedding(tokens, weights["embed"]["model.embed_tokens.weight"])
    router, n = torch.zeros(()), tokens.numel()
    for layer in range(shape.layers):
        x, balance, z, _ = block(x, weights, layer, shape, options)
        router = router + n * (options["balance"] * balance + options["z"] * z)
    loss = head_loss(x, weights, shape, targets)
    return loss, loss + router


def flat(weights, slot, which=lambda p: p):
    return torch.cat([which(p).detach().reshape(-1) for p in weights[slot].values()])


def gradient(p):
    return p.grad if p.grad is not None else torch.zeros_like(p)


def token_ids(seed, count, vocab):
    return ((stream(seed, count, 0.5) + 0.5) * vocab).floor().long().clamp(0, vocab - 1)


def numbers(tensor):
    return [float(f"{v:.9g}") for v in tensor.detach().reshape(-1).tolist()]


DEFAULTS = {"balance": 0.01, "z": 1e-3}


def layer_case(name, shape, zero=(), b=2, t=7, **options):
    """One decoder layer alone: forward, and backward from a given output gradient plus the router losses."""
    options = {**DEFAULTS, **options}
    weights = make_weights(shape)
    for slot in weights.values():
        for parameter, value in slot.items():
            if any(parameter.endswith(z) for z in zero):
                value.data.zero_()
    x = stream(1, b * t * shape.hidden, 1.0).view(b, t, -1).requires_grad_()
    upstream = stream(2, b * t * shape.hidden, 1.0).view(b, t, -1)
    y, balance, z, counts = block(x, weights, 0, shape, options)
    n = b * t
    use_balance = 0.0 if options.get("bias") else options["balance"]
    ((y * upstream).sum() + n * (use_balance * balance + options["z"] * z)).backward()
    held = [s for s in weights if s == "layer 0" or s.startswith("expert 0.")]
    return {"name": name, "shape": shape.__dict__, "options": options, "zero": list(zero), "batch": b, "sequence": t,
            "output": numbers(y), "balance": balance.item(), "z": z.item(), "counts": counts,
            "gradient_input": numbers(x.grad), "gradients": {s: numbers(flat(weights, s, gradient)) for s in held}}


def ends_case(shape):
    """Embedding and head alone."""
    weights = make_weights(shape)
    b, t = 2, 7
    tokens = token_ids(3, b * t, shape.vocab).view(b, t)
    targets = token_ids(4, b * t, shape.vocab).view(b, t)
    targets[0, 2] = targets[1, 6] = -1
    upstream = stream(2, b * t * shape.hidden, 1.0).view(b, t, -1)
    embedded = F.embedding(tokens, weights["embed"]["model.embed_tokens.weight"])
    (embedded * upstream).sum().backward()
    x = stream(1, b * t * shape.hidden, 1.0).view(b, t, -1).requires_grad_()
    loss = head_loss(x, weights, shape, targets)
    loss.backward()
    return {"name": "ends", "shape": shape.__dict__, "batch": b, "sequence": t, "tokens": tokens.flatten().tolist(),
            "targets": targets.flatten().tolist(), "embedded": numbers(embedded), "loss": loss.item(),
            "gradient_input": numbers(x.grad),
            "gradients": {s: numbers(flat(weights, s, gradient)) for s in ("embed", "head")}}


def is_decayed(name):
    return not (name.endswith("norm.weight") or name == "model.embed_tokens.weight")


def make_optimizer(weights, lr):
    named = [(n, p) for slot in weights.values() for n, p in slot.items()]
    return torch.optim.AdamW([{"params": [p for n, p in named if is_decayed(n)], "weight_decay": 0.1},
                              {"params": [p for n, p in named if not is_decayed(n)], "weight_decay": 0.0}],
                             lr=lr, betas=(0.9, 0.95), eps=1e-8)


def clip_per_slot(weights, clip):
    """Returns (norm of the whole gradient, number of slots clipped)."""
    count = lambda slot: sum(p.numel() for p in slot.values())
    total = sum(count(slot) for slot in weights.values())
    clipped, squares = 0, 0.0
    for slot in weights.values():
        norm = math.sqrt(sum(gradient(p).pow(2).sum().item() for p in slot.values()))
        squares += norm * norm
        limit = clip * math.sqrt(count(slot) / total)
        if norm > limit:
            clipped += 1
            for p in slot.values():
                if p.grad is not None:
                    p.grad.mul_(limit / norm)
    return math.sqrt(squares), clipped


def training_case(name, shape, clip, **options):
    """Ten steps of two micro-batches each, on batches that change every step."""
    options = {**DEFAULTS, **options}
    weights = make_weights(shape)
    b, t, steps = 2, 8, 10
    optimizer = None
    losses, norms, clips = [], [], []
    for step in range(1, steps + 1):
        lr = 3e-3 * step / steps
        if optimizer is None:
            optimizer = make_optimizer(weights, lr)
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.zero_grad()
        total = 0.0
        for micro in range(2):
            tokens = token_ids(100 + 10 * step + micro, b * t, shape.vocab).view(b, t)
            targets = token_ids(500 + 10 * step + micro, b * t, shape.vocab).view(b, t)
            loss, full = model_loss(weights, shape, tokens, targets, options)
            full.backward()
            total += loss.item()
        for slot in weights.values():
            for p in slot.values():
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                p.grad.div_(2 * b * t)
        norm, clipped = clip_per_slot(weights, clip)
        optimizer.step()
        losses.append(total / (2 * b * t))
        norms.append(norm)
        clips.append(clipped)
    return {"name": name, "shape": shape.__dict__, "options": options, "batch": b, "sequence": t, "clip": clip,
            "losses": losses, "norms": norms, "clipped": clips,
            "every_seventh_parameter": {s: numbers(flat(weights, s)[::7]) for s in weights}}


def adamw_case(shape, clip):
    """Three steps with given gradients (sums over 10 tokens), no forward pass."""
    weights = make_weights(shape)
    optimizer = make_optimizer(weights, 1e-2)
    norms, clips = [], []
    for step in range(1, 4):
        for index, slot in enumerate(weights.values()):
            count = sum(p.numel() for p in slot.values())
            values, at = stream(7000 + 100 * step + index, count, 0.4 * (1 + index % 3)), 0
            for p in slot.values():
                p.grad = values[at:at + p.numel()].view_as(p).clone() / 10
                at += p.numel()
        norm, clipped = clip_per_slot(weights, clip)
        norms.append(norm)
        clips.append(clipped)
        optimizer.step()
    state = lambda key: {s: numbers(flat(weights, s, lambda p: optimizer.state[p][key])) for s in weights}
    return {"name": "adamw", "shape": shape.__dict__, "clip": clip, "norms": norms, "clipped": clips,
            "parameters": {s: numbers(flat(weights, s)) for s in weights}, "moment1": state("exp_avg"),
            "moment2": state("exp_avg_sq")}


def all_cases():
    one = dict(layers=1)
    yield layer_case("layer_moe", Shape(**one))
    yield layer_case("layer_moe_without_sharing", Shape(**one, kv_heads=4))
    yield layer_case("layer_dense", Shape(**one, experts=1, k=1))
    yield layer_case("attention_only", Shape(**one), zero=("w2.weight",))
    yield layer_case("mixture_only", Shape(**one), zero=("o_proj.weight",))
    yield layer_case("layer_capacity", Shape(**one), capacity_factor=0.9)
    yield layer_case("layer_bias", Shape(**one), bias=[0.5, -0.25, 0.0, 0.75])
    yield layer_case("layer_long", Shape(**one, hidden=8, heads=2, kv_heads=1), b=1, t=150)
    yield ends_case(Shape(**one))
    yield adamw_case(Shape(layers=1, hidden=8, head_dim=4, heads=2, kv_heads=1, ffn=6, vocab=11), clip=1.0)
    yield training_case("training_moe", Shape(), clip=1.0)
    yield training_case("training_dense", Shape(experts=1, k=1), clip=1.0)


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, float) or isinstance(b, float):
        return abs(a - b) <= 1e-7 * max(1.0, abs(a))
    return a == b


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("--write", "--check"):
        print(__doc__)
        return 2
    wrong = 0
    for case in all_cases():
        path = os.path.join(sys.argv[2], case["name"] + ".json")
        case = json.loads(json.dumps(case))
        if sys.argv[1] == "--write":
            with open(path, "w") as file:
                json.dump(case, file, separators=(",", ":"))
                file.write("\n")
            continue
        with open(path) as file:
            ok = same(json.load(file), case)
        wrong += not ok
        print(("same       " if ok else "DIFFERENT  ") + path)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
