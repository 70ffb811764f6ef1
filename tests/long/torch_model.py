"""LlamaForCausalLM and MixtralForCausalLM from a Hugging Face folder in PyTorch and float64, written from the published
configuration and tensor names. Nothing of NeuroShard is in it.

  torch_model.py FOLDER REQUEST.json ANSWER.json    REQUEST: {tokens: [[id]], logits: n} → {logits: [[first n positions, flat]], scores: [[…]]}
"""
import json
import struct
import sys

import torch
import torch.nn.functional as F

TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def read_weights(path):
    with open(path, "rb") as file:
        raw = bytearray(file.read())
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    weights = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        weights[name] = torch.frombuffer(raw[begin:end], dtype=TYPES[entry["dtype"]]).reshape(entry["shape"]).double()
    return weights


def rms_norm(x, gain, epsilon):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * gain


def rotate(x, theta):
    """x: [positions, heads, dim]. Element i turns with element i + dim/2."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[0]).double()[:, None] * theta ** (-torch.arange(half).double() / half)
    cos, sin = angles.cos()[:, None, :], angles.sin()[:, None, :]
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class Model:
    def __init__(self, folder):
        with open(folder + "/config.json", encoding="utf-8") as file:
            self.config = json.load(file)
        self.weights = read_weights(folder + "/model.safetensors")

    def product(self, name, x):
        return x @ self.weights[name + ".weight"].T

    def attention(self, name, x):
        c = self.config
        heads, shared, dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        q = rotate(self.product(name + ".q_proj", x).reshape(-1, heads, dim), c["rope_theta"])
        k = rotate(self.product(name + ".k_proj", x).reshape(-1, shared, dim), c["rope_theta"])
        v = self.product(name + ".v_proj", x).reshape(-1, shared, dim)
        k, v = (t.repeat_interleave(heads // shared, 1) for t in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q, k) / dim ** 0.5
        future = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
        mixed = torch.einsum("hqk,khd->qhd", scores.masked_fill(future, -torch.inf).softmax(-1), v)
        return self.product(name + ".o_proj", mixed.reshape(len(x), -1))

    def gated(self, gate, up, down, x):
        return self.product(down, F.silu(self.product(gate, x)) * self.product(up, x))

    def feed_forward(self, layer, x):
        if self.config["model_type"] == "llama":
            return self.gated(*(f"{layer}.mlp.{part}_proj" for part in ("gate", "up", "down")), x)
        name = layer + ".block_sparse_moe"
        best, chosen = self.product(name + ".gate", x).softmax(-1).topk(self.config["num_experts_per_tok"], -1)
        shares = best / best.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for expert in range(self.config["num_local_experts"]):
            rows, places = (chosen == expert).nonzero(as_tuple=True)
            result = self.gated(*(f"{name}.experts.{expert}.{part}" for part in ("w1", "w3", "w2")), x[rows])
            out.index_add_(0, rows, result * shares[rows, places][:, None])
        return out

    def logits(self, tokens):
        c, w = self.config, self.weights
        x = w["model.embed_tokens.weight"][tokens]
        for index in range(c["num_hidden_layers"]):
            layer = f"model.layers.{index}"
            x = x + self.attention(layer + ".self_attn", rms_norm(x, w[layer + ".input_layernorm.weight"], c["rms_norm_eps"]))
            x = x + self.feed_forward(layer, rms_norm(x, w[layer + ".post_attention_layernorm.weight"], c["rms_norm_eps"]))
        return self.product("lm_head", rms_norm(x, w["model.norm.weight"], c["rms_norm_eps"]))


def main():
    folder, request, answer = sys.argv[1:]
    with open(request, encoding="utf-8") as file:
        asked = json.load(file)
    model = Model(folder)
    found, scores = [], []
    with torch.no_grad():
        for tokens in map(torch.tensor, asked["tokens"]):
            logits = model.logits(tokens)
            found.append(logits[:asked["logits"]].flatten().tolist())
            scores.append(logits[:-1].log_softmax(-1).gather(1, tokens[1:, None]).flatten().tolist())
    with open(answer, "w", encoding="utf-8") as file:
        json.dump({"logits": found, "scores": scores}, file)


if __name__ == "__main__":
    main()
