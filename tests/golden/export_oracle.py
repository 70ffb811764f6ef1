#!/usr/bin/python3
"""Reads an exported Hugging Face folder and an exported GGUF file, computes both models in double precision, splits texts with the
exported tokenizer, and compares with what NeuroShard computes. Written from the published formats; standard library only.

  export_oracle.py FOLDER FILE.gguf EXPECTED.json    EXPECTED: {tokens, logits (all positions, flat), texts: [{text, ids}]}
"""
import json
import math
import struct
import sys
import unicodedata
from array import array

TOLERANCE = 1e-4


class Wrong(Exception):
    pass


def need(condition, message):
    if not condition:
        raise Wrong(message)


# ---- files ----------------------------------------------------------------------------------------------------------------
def read_safetensors(path):
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        need(entry["dtype"] == "F32", f"{name} is {entry['dtype']}")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = (entry["shape"], array("f", raw[begin:end]))
    return tensors


class Gguf:
    """https://github.com/ggml-org/ggml, docs/gguf.md, version 3."""
    NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}

    def __init__(self, path):
        with open(path, "rb") as file:
            self.raw = file.read()
        self.at = 0
        need(self.raw[:4] == b"GGUF", "no GGUF")
        self.at = 4
        version, tensors, keys = self.number(4), self.number(10), self.number(10)
        need(version == 3, f"version {version}")
        self.keys = {}
        for _ in range(keys):
            key = self.text()
            need(key not in self.keys, f"the key {key} twice")
            self.keys[key] = self.value(self.number(4))
        infos = []
        for _ in range(tensors):
            name = self.text()
            dims = [self.number(10) for _ in range(self.number(4))]
            infos.append((name, dims, self.number(4), self.number(10)))
        alignment = self.keys.get("general.alignment", 32)
        start = -(-self.at // alignment) * alignment
        self.tensors = {}
        for name, dims, kind, offset in infos:
            need(kind == 0, f"{name} has the type {kind}")
            need(offset % alignment == 0, f"{name} is not aligned")
            count = math.prod(dims)
            data = self.raw[start + offset:start + offset + 4 * count]
            need(len(data) == 4 * count, f"{name} is beyond the end")
            need(name not in self.tensors, f"{name} twice")
            self.tensors[name] = (dims[::-1], array("f", data))

    def number(self, kind):
        (value,) = struct.unpack_from(self.NUMBERS[kind], self.raw, self.at)
        self.at += struct.calcsize(self.NUMBERS[kind])
        return value

    def text(self):
        size = self.number(10)
        self.at += size
        return self.raw[self.at - size:self.at].decode("utf-8", errors="strict")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            item, count = self.number(4), self.number(10)
            return [self.value(item) for _ in range(count)]
        return self.number(kind)


# ---- the model --------------------------------------------------------------------------------------------------------------
def product(matrix, x):
    """matrix: (shape [out, in], flat values)."""
    (rows, width), values = matrix
    return [sum(values[r * width + i] * x[i] for i in range(width)) for r in range(rows)]


def rms_norm(x, gain, eps):
    scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + eps)
    return [v * scale * g for v, g in zip(x, gain[1])]


def swiglu(x, gate, up, down):
    hidden = [g / (1 + math.exp(-g)) * u for g, u in zip(product(gate, x), product(up, x))]
    return product(down, hidden)


def softmax(values):
    top = max(values)
    parts = [math.exp(v - top) for v in values]
    return [p / sum(parts) for p in parts]


class Model:
    """Sizes, tensors by part, and which elements of a head rotate together: pairs(i) gives two positions."""

    def __init__(self, sizes, tensor, pairs):
        self.__dict__.update(sizes)
        self.tensor, self.pairs = tensor, pairs

    def rotated(self, vector, position):
        out = list(vector)
        for head in range(len(vector) // self.dim):
            for i in range(self.dim // 2):
                angle = position * self.theta ** (-2 * i / self.dim)
                a, b = (head * self.dim + p for p in self.pairs(i, self.dim))
                out[a] = vector[a] * math.cos(angle) - vector[b] * math.sin(angle)
                out[b] = vector[b] * math.cos(angle) + vector[a] * math.sin(angle)
        return out

    def attention(self, layer, rows):
        queries, keys, values = [], [], []
        for position, x in enumerate(rows):
            queries.append(self.rotated(product(self.tensor("q", layer), x), position))
            keys.append(self.rotated(product(self.tensor("k", layer), x), position))
            values.append(product(self.tensor("v", layer), x))
        out = []
        for position, query in enumerate(queries):
            joined = []
            for head in range(self.heads):
                shared = head // (self.heads // self.kv_heads) * self.dim
                q = query[head * self.dim:(head + 1) * self.dim]
                scores = [sum(a * b for a, b in zip(q, keys[p][shared:shared + self.dim])) / math.sqrt(self.dim)
                          for p in range(position + 1)]
                weights = softmax(scores)
                joined += [sum(w * values[p][shared + i] for p, w in enumerate(weights)) for i in range(self.dim)]
            out.append(product(self.tensor("o", layer), joined))
        return out

    def feed_forward(self, layer, x):
        if self.experts == 0:
            return swiglu(x, *(self.tensor(part, layer) for part in ("gate", "up", "down")))
        scores = product(self.tensor("router", layer), x)
        chosen = sorted(range(self.experts), key=lambda e: -scores[e])[:self.used]
        weights = softmax([scores[e] for e in chosen])
        out = [0.0] * self.hidden
        for expert, weight in zip(chosen, weights):
            for i, v in enumerate(swiglu(x, *(self.tensor(part, layer, expert) for part in ("gate", "up", "down")))):
                out[i] += weight * v
        return out

    def hidden_states(self, tokens):
        """After the final norm, by position."""
        table = self.tensor("embed")[1]
        rows = [list(table[t * self.hidden:(t + 1) * self.hidden]) for t in tokens]
        for layer in range(self.layers):
            normed = [rms_norm(x, self.tensor("norm1", layer), self.eps) for x in rows]
            rows = [[a + b for a, b in zip(x, y)] for x, y in zip(rows, self.attention(layer, normed))]
            rows = [[a + b for a, b in zip(x, self.feed_forward(layer, rms_norm(x, self.tensor("norm2", layer), self.eps)))]
                    for x in rows]
        return [rms_norm(x, self.tensor("norm"), self.eps) for x in rows]

    def logits(self, tokens):
        return [v for x in self.hidden_states(tokens) for v in product(self.tensor("head"), x)]


def hugging_face_model(folder):
    with open(folder + "/config.json", encoding="utf-8") as file:
        config = json.load(file)
    tensors = read_safetensors(folder + "/model.safetensors")
    sparse = config["architectures"] == ["MixtralForCausalLM"]
    need(sparse or config["architectures"] == ["LlamaForCausalLM"], "unknown architecture")
    need(config["hidden_act"] == "silu" and not config["tie_word_embeddings"], "another model")
    sizes = {"layers": config["num_hidden_layers"], "hidden": config["hidden_size"], "heads": config["num_attention_heads"],
             "kv_heads": config["num_key_value_heads"], "dim": config["head_dim"], "theta": config["rope_theta"],
             "eps": config["rms_norm_eps"], "experts": config["num_local_experts"] if sparse else 0,
             "used": config["num_experts_per_tok"] if sparse else 0}
    whole = {"embed": "model.embed_tokens", "norm": "model.norm", "head": "lm_head"}
    own = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
           "norm1": "input_layernorm", "norm2": "post_attention_layernorm", "router": "block_sparse_moe.gate",
           "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj"}
    of_expert = {"gate": "w1", "up": "w3", "down": "w2"}

    def tensor(part, layer=None, expert=None):
        if layer is None:
            return tensors[whole[part] + ".weight"]
        if expert is not None:
            return tensors[f"model.layers.{layer}.block_sparse_moe.experts.{expert}.{of_expert[part]}.weight"]
        return tensors[f"model.layers.{layer}.{own[part]}.weight"]
    # rotate_half: element i with element i + dim/2.
    return Model(sizes, tensor, lambda i, dim: (i, i + dim // 2))


def gguf_model(file):
    keys = file.keys
    need(keys["general.architecture"] == "llama", "not llama")
    sizes = {"layers": keys["llama.block_count"], "hidden": keys["llama.embedding_length"],
             "heads": keys["llama.attention.head_count"], "kv_heads": keys["llama.attention.head_count_kv"],
             "dim": keys["llama.attention.key_length"], "theta": keys["llama.rope.freq_base"],
             "eps": keys["llama.attention.layer_norm_rms_epsilon"], "experts": keys.get("llama.expert_count", 0),
             "used": keys.get("llama.expert_used_count", 0)}
    need(keys["llama.rope.dimension_count"] == sizes["dim"] == keys["llama.attention.value_length"], "sizes of heads differ")
    whole = {"embed": "token_embd", "norm": "output_norm", "head": "output"}
    own = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "norm1": "attn_norm", "norm2": "ffn_norm",
           "router": "ffn_gate_inp", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}

    def tensor(part, layer=None, expert=None):
        if layer is None:
            return file.tensors[whole[part] + ".weight"]
        if expert is None:
            return file.tensors[f"blk.{layer}.{own[part]}.weight"]
        (count, rows, width), values = file.tensors[f"blk.{layer}.{own[part]}_exps.weight"]
        need(count == sizes["experts"], "not all experts are stacked")
        return (rows, width), values[expert * rows * width:(expert + 1) * rows * width]
    # llama.cpp's own rotation: neighbours.
    return Model(sizes, tensor, lambda i, dim: (2 * i, 2 * i + 1))


# ---- the tokenizer ------------------------------------------------------------------------------------------------------------
def byte_characters():
    """GPT-2's alphabet of bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def kind_of(character):
    if character.isspace() and character not in "\x1c\x1d\x1e\x1f":
        return "space"
    return {"L": "letter", "N": "number"}.get(unicodedata.category(character)[0], "other")


def words_of(text):
    """'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"""
    at = 0
    while at < len(text):
        end = at
        short = next((s for s in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d") if text.startswith(s, at)), None)
        body = at + 1 if text[at] == " " and at + 1 < len(text) else at
        if short:
            end = at + len(short)
        elif kind_of(text[body]) != "space":
            end = body
            while end < len(text) and kind_of(text[end]) == kind_of(text[body]):
                end += 1
        else:
            end = at
            while end < len(text) and kind_of(text[end]) == "space":
                end += 1
            if end < len(text) and end - at > 1:
                end -= 1
        yield text[at:end]
        at = end


def encode(text, vocabulary, ranks):
    characters = byte_characters()
    ids = []
    for word in words_of(text):
        parts = [characters[b] for b in word.encode()]
        while len(parts) > 1:
            rank, at = min((ranks.get((parts[i], parts[i + 1]), math.inf), i) for i in range(len(parts) - 1))
            if rank == math.inf:
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        ids += [vocabulary[part] for part in parts]
    return ids


def check_tokenizers(folder, file, texts):
    with open(folder + "/tokenizer.json", encoding="utf-8") as source:
        tokenizer = json.load(source)
    model, before = tokenizer["model"], tokenizer["pre_tokenizer"]
    need(model["type"] == "BPE" and not model["byte_fallback"], "not BPE")
    need(before == {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}, "another split")
    need((file.keys["tokenizer.ggml.model"], file.keys["tokenizer.ggml.pre"]) == ("gpt2", "gpt-2"), "another split")
    tokens = file.keys["tokenizer.ggml.tokens"]
    need(model["vocab"] == {token: i for i, token in enumerate(tokens)}, "the formats have different vocabularies")
    need(model["merges"] == file.keys["tokenizer.ggml.merges"], "the formats have different merges")
    need(len(file.keys["tokenizer.ggml.token_type"]) == len(tokens), "types are missing")
    ranks = {tuple(merge.split(" ")): i for i, merge in enumerate(model["merges"])}
    for sample in texts:
        ids = encode(sample["text"], model["vocab"], ranks)
        need(ids == sample["ids"], f"{sample['text']!r}: {ids} instead of {sample['ids']}")
    need(any(max(sample["ids"], default=0) >= 266 for sample in texts), "no text uses a merge")


def main(folder, gguf, expected_path):
    with open(expected_path, encoding="utf-8") as source:
        expected = json.load(source)
    file = Gguf(gguf)
    check_tokenizers(folder, file, expected["texts"])
    need(max(map(abs, expected["logits"])) > 0.5, "the logits are nearly zero: a comparison says little")
    worst = {}
    for name, model in (("Hugging Face", hugging_face_model(folder)), ("GGUF", gguf_model(file))):
        logits = model.logits(expected["tokens"])
        need(len(logits) == len(expected["logits"]), f"{name}: {len(logits)} logits")
        worst[name] = max(abs(a - b) for a, b in zip(logits, expected["logits"]))
        need(worst[name] <= TOLERANCE, f"{name}: logits differ by {worst[name]}")
    print("agrees within", worst)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (Wrong, OSError, ValueError, KeyError, IndexError, struct.error) as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
        sys.exit(1)
