#!/usr/bin/env python3
"""TorchScript models for the tests of the partitioner, with what PyTorch itself computes.    make_script_models.py FOLDER [--large]

For each model: NAME.pt; NAME.json with "shapes" (as --input-shape takes them) and, per input and result, dtype and sizes;
NAME.in and NAME.out with their values, dense, one after the other. Also files that are no TorchScript. With --large instead: three
models of a size at which the speed of a pipeline means something (docs/measurements.md). Exit code 77: there is no PyTorch.
"""
import json
import os
import sys

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    sys.exit(77)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 128),
                                    nn.Tanh(), nn.Linear(128, 10))

    def forward(self, x):
        return self.layers(x)


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = functional.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        y += x
        return functional.relu(y, inplace=True)


class Convolutional(nn.Module):
    """Skips within and across blocks, results in a tuple."""

    def __init__(self, channels=16, blocks=3):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList([Residual(channels) for _ in range(blocks)])
        self.head = nn.Linear(2 * channels, 10)

    def forward(self, x):
        x = first = self.stem(x)
        for block in self.blocks:
            x = block(x)
        x = torch.cat([x, first], 1)
        pooled = functional.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.head(pooled), pooled


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5 + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))


class Encoder(nn.Module):
    """Tokens and a mask in; pre-norm layers, tied output."""

    def __init__(self, layers=3, width=64, heads=4, vocabulary=100, length=16):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.randn(length, width) * 0.1)
        self.attention = nn.ModuleList([Attention(width, heads) for _ in range(layers)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * layers)])
        self.up = nn.ModuleList([nn.Linear(width, 4 * width) for _ in range(layers)])
        self.down = nn.ModuleList([nn.Linear(4 * width, width) for _ in range(layers)])

    def forward(self, tokens, mask):
        x = self.embed(tokens) + self.position[: tokens.size(1)]
        i = 0
        for attention, up, down in zip(self.attention, self.up, self.down):
            x = x + attention(self.norms[i](x), mask)
            x = x + down(functional.gelu(up(self.norms[i + 1](x))))
            i += 2
        return functional.linear(x, self.embed.weight)


class ScriptedEncoder(Encoder):
    """The same with code that TorchScript can read as it is."""

    def forward(self, tokens, mask):
        x = self.embed(tokens) + self.position[: tokens.size(1)]
        for attention, norm in zip(self.attention, self.norms):
            x = x + attention(norm(x), mask)
        return {"logits": functional.linear(x, self.embed.weight), "state": x}


class Control(nn.Module):
    """Branches and loops on values, a list that grows, views that are written through, a number as a result."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 32)
        self.b = nn.Linear(32, 32)
        self.c = nn.Linear(64, 8)

    def forward(self, x, scale: float = 0.5):
        x = x * scale
        y = self.a(x)
        if bool(y.sum() > 0):
            y = self.b(y)
        else:
            y = y.relu() + x
        for _ in range(3):
            y = torch.tanh(self.b(y)) + y
        view = y[:, 4:8]
        before = y.mean()
        view.mul_(2.0)
        y[0].zero_()
        parts = [y]
        parts.append(x + before)
        out = self.c(torch.cat(parts, 1))
        left, right = out.chunk(2, dim=1)
        return left.contiguous(), right + left, int(x.size(0))


class Checked(nn.Module):
    """Checks of sizes and of values: operations that yield nothing."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(32, 64)
        self.down = nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 8)])

    def forward(self, x):
        assert x.size(0) > 1, "one row is too few"
        x = torch.relu(self.up(x))
        assert bool(x.abs().max() < 1e6), "too large"
        for layer in self.down:
            x = layer(x)
        return x


class Lists(nn.Module):
    """Modules of one type and number in two lists."""

    def __init__(self):
        super().__init__()
        self.first = nn.ModuleList([Residual(4)])
        self.second = nn.ModuleList([Residual(4)])

    def forward(self, x):
        for block in self.first:
            x = block(x)
        for block in self.second:
            x = block(x)
        return x


class Sourceless(nn.Module):
    """Most of the work reads no input. It adds zero to the result."""

    def __init__(self):
        super().__init__()
        self.layers = Perceptron()

    def forward(self, x):
        noise = torch.rand(512, 512)
        return self.layers(x + (noise @ noise).sum() * 0.0)


class Watched(nn.Module):
    """Most of the work is a check of the second input. It yields nothing."""

    def __init__(self):
        super().__init__()
        self.layers = Perceptron()

    def forward(self, x, z):
        y = self.layers(x)
        assert bool(z.max() < 1e6), "too large"
        return y


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        return x + self.count


def raw(tensor):
    return tensor.detach().contiguous().numpy().tobytes()


def leaves(value):
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value if isinstance(value, torch.Tensor) else torch.tensor(value)]


def describe(tensors):
    return [{"dtype": str(t.dtype).split(".")[1], "sizes": list(t.shape)} for t in tensors]


def write(folder, name, script, inputs, shapes):
    path = os.path.join(folder, name)
    script.save(path + ".pt")
    with torch.no_grad():
        results = leaves(script(*[t.clone() for t in inputs]))
    with open(path + ".in", "wb") as file:
        file.write(b"".join(raw(t) for t in inputs))
    with open(path + ".out", "wb") as file:
        file.write(b"".join(raw(t) for t in results))
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump({"shapes": shapes, "inputs": describe(inputs), "results": describe(results)}, file)


def large(folder):
    torch.manual_seed(7)
    wide = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(2048, 2048), nn.ReLU())])
    torch.jit.script(wide.eval()).save(os.path.join(folder, "wide.pt"))
    torch.jit.script(Convolutional(64, 8).eval()).save(os.path.join(folder, "deep_convolutional.pt"))
    encoder = Encoder(layers=6, width=512, heads=8, vocabulary=8000, length=128).eval()
    example = (torch.zeros(4, 128, dtype=torch.int64), torch.zeros(128, 128))
    torch.jit.trace(encoder, example).save(os.path.join(folder, "large_encoder.pt"))


def main(folder):
    torch.manual_seed(7)
    torch.set_num_threads(1)
    mask = torch.zeros(16, 16).masked_fill(torch.ones(16, 16).tril() == 0, -1e9)
    tokens = torch.randint(0, 100, (2, 16))
    image, rows = torch.randn(2, 3, 32, 32), torch.randn(8, 64)
    language = ["2x16:int64:100", "16x16"]
    write(folder, "perceptron", torch.jit.script(Perceptron().eval()), [rows], ["8x64"])
    write(folder, "convolutional", torch.jit.script(Convolutional().eval()), [image], ["2x3x32x32"])
    write(folder, "encoder", torch.jit.trace(Encoder().eval(), (tokens, mask)), [tokens, mask], language)
    write(folder, "scripted", torch.jit.script(ScriptedEncoder(layers=2).eval()), [tokens, mask], language)
    write(folder, "control", torch.jit.script(Control().eval()), [torch.randn(4, 32)], ["4x32"])
    write(folder, "checked", torch.jit.script(Checked().eval()), [torch.randn(4, 32)], ["4x32"])
    write(folder, "lists", torch.jit.script(Lists().eval()), [torch.randn(1, 4, 8, 8)], ["1x4x8x8"])
    write(folder, "sourceless", torch.jit.script(Sourceless().eval()), [rows], ["8x64"])
    write(folder, "watched", torch.jit.script(Watched().eval()), [rows, torch.randn(2048, 1024)], ["8x64", "2048x1024"])
    frozen = torch.jit.freeze(torch.jit.script(Perceptron().eval()))
    write(folder, "frozen", frozen, [rows], ["8x64"])
    torch.jit.script(Stateful().eval()).save(os.path.join(folder, "stateful.pt"))
    torch.save(Perceptron().state_dict(), os.path.join(folder, "weights.pt"))
    with open(os.path.join(folder, "perceptron.pt"), "rb") as file:
        whole = file.read()
    with open(os.path.join(folder, "cut_off.pt"), "wb") as file:
        file.write(whole[: len(whole) // 2])
    damaged = bytearray(whole)
    for i in range(len(whole) // 3, len(whole) // 3 + 64):
        damaged[i] ^= 0x5A
    with open(os.path.join(folder, "damaged.pt"), "wb") as file:
        file.write(damaged)


if __name__ == "__main__":
    (large if "--large" in sys.argv[2:] else main)(sys.argv[1])
