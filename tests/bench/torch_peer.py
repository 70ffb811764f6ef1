#!/usr/bin/python3
"""NeuroLLM as a good PyTorch 1.13 programmer writes it: what the speed of our training is compared with.

  torch_peer.py --precision fp32|bf16 --threads N

Serves the protocol of compare.py: one JSON object a line on standard input, one on standard output for each. bf16 is
torch.autocast with fp32 weights. Of two ways to write attention, and of the optimizer's two loops, it takes the one
that is faster here. Exit 77 if PyTorch is missing.
"""
import argparse
import contextlib
import json
import math
import sys
import time

try:
    import numpy
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch for Python is not installed: nothing to compare with", file=sys.stderr)
    sys.exit(77)

BETAS, EPSILON, DECAY = (0.9, 0.95), 1e-8, 0.1
BALANCE, Z = 0.01, 1e-3


class Weights:
    """The flat file of all slots in canonical order (core/compute/slot.h), cut into parameters."""

    def __init__(self, path):
        self.values = torch.from_numpy(numpy.fromfile(path, dtype=numpy.float32))
        self.at = 0

    def take(self, *dims):
        count = math.prod(dims)
        part = self.values[self.at:self.at + count].view(dims).clone()
        self.at += count
        return part

    def done(self):
        if self.at != len(self.values):
            raise ValueError(f"the weights have {len(self.values)} numbers, the model {self.at}")


def parameter(tensor):
    return torch.nn.Parameter(tensor)


class Layer:
    def __init__(self, shape, weights):
        h, d = shape["hidden"], shape["head_dim"]
        self.shape, self.heads, self.kv, self.d = shape, shape["heads"], shape["kv_heads"], d
        self.norm1 = parameter(weights.take(h))
        qkv = [weights.take(n * d, h) for n in (self.heads, self.kv, self.kv)]
        self.qkv = parameter(torch.cat(qkv))  # one product instead of three
        self.o = parameter(weights.take(h, self.heads * d))
        self.norm2 = parameter(weights.take(h))
        self.slots = [[self.norm1, self.qkv, self.o, self.norm2]]
        if shape["experts"] > 1:
            self.gate = parameter(weights.take(shape["experts"], h))
            self.slots[0].append(self.gate)
        f = shape["ffn"]
        self.experts = []
        for _ in range(shape["experts"]):
            expert = [parameter(weights.take(f, h)), parameter(weights.take(f, h)), parameter(weights.take(h, f))]
            self.experts.append(expert)
            self.slots.append(expert)

    def attention(self, x, tables, how):
        b, t, _ = x.shape
        group = self.heads // self.kv
        qkv = F.linear(x, self.qkv).view(b, t, self.heads + 2 * self.kv, self.d)
        cos, sin, mask = tables
        qk, v = qkv.split((self.heads + self.kv, self.kv), 2)
        first, second = qk.chunk(2, -1)
        qk = qk * cos + torch.cat((-second, first), -1) * sin
        q, k = qk.split((self.heads, self.kv), 2)
        # The query heads of a group stand below each other, so that keys and values need no copies.
        q = q.reshape(b, t, self.kv, group, self.d).permute(0, 2, 3, 1, 4).reshape(b * self.kv, group * t, self.d)
        k = k.transpose(1, 2).reshape(b * self.kv, t, self.d)
        v = v.transpose(1, 2).reshape(b * self.kv, t, self.d)
        if how == "baddbmm":
            scores = torch.baddbmm(mask.to(q.dtype), q, k.transpose(1, 2), alpha=1 / math.sqrt(self.d))
            out = torch.bmm(scores.softmax(-1), v.to(scores.dtype))
        else:
            out = F._scaled_dot_product_attention(q, k, v.to(q.dtype), mask.to(q.dtype))[0]
        out = out.view(b, self.kv, group, t, self.d).permute(0, 3, 1, 2, 4).reshape(b, t, self.heads * self.d)
        return F.linear(out, self.o)

    def mixture(self, x):
        if self.shape["experts"] == 1:
            return swiglu(x, *self.experts[0]), 0.0
        rows, k, experts = x.reshape(-1, x.shape[-1]), self.shape["experts_per_token"], self.shape["experts"]
        with torch.autocast("cpu", enabled=False):
            logits = F.linear(rows, self.gate)
        best, chosen = logits.topk(k, -1)
        weight = best.softmax(-1)
        fraction = torch.bincount(chosen.view(-1), minlength=experts) / chosen.numel()
        balance = experts * (fraction * logits.softmax(-1).mean(0)).sum()
        z = torch.logsumexp(logits, -1).square().mean()
        out = torch.zeros_like(rows)
        for expert, matrices in enumerate(self.experts):
            token, choice = (chosen == expert).nonzero(as_tuple=True)
            if len(token) == 0:
                continue
            part = swiglu(rows.index_select(0, token), *matrices) * weight[token, choice, None]
            out.index_add_(0, token, part)
        return out.view_as(x), BALANCE * balance + Z * z

    def forward(self, x, tables, how):
        eps = 1e-6
        x = x + self.attention(rms_norm(x, self.norm1, eps), tables, how)
        out, router = self.mixture(rms_norm(x, self.norm2, eps))
        return x + out, router


def rms_norm(x, gain, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain


def swiglu(x, gate, up, down):
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def make_tables(shape, precision):
    t, d = shape["sequence"], shape["head_dim"]
    angle = torch.outer(torch.arange(t).double(), 10000.0 ** (-torch.arange(0, d, 2).double() / d))
    angle = torch.cat((angle, angle), -1)[:, None, :]
    group = shape["heads"] // shape["kv_heads"]
    mask = torch.full((t, t), -math.inf).triu(1).repeat(group, 1)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    return angle.cos().to(dtype), angle.sin().to(dtype), mask.to(dtype)


class Model:
    """The whole model with its optimizer, or one layer alone without."""

    def __init__(self, spec, precision):
        shape = spec["shape"]
        self.spec, self.shape, self.precision = spec, shape, precision
        self.alone = spec["kind"] == "layer"
        weights = Weights(spec["weights"])
        slots = []
        if not self.alone:
            self.embed = parameter(weights.take(shape["vocab"], shape["hidden"]))
            slots.append([self.embed])
        self.layers = [Layer(shape, weights) for _ in range(shape["layers"])]
        slots += [slot for layer in self.layers for slot in layer.slots]
        if not self.alone:
            self.norm = parameter(weights.take(shape["hidden"]))
            self.head = parameter(weights.take(shape["vocab"], shape["hidden"]))
            slots.append([self.norm, self.head])
        weights.done()
        self.slots = slots
        self.parameters = [p for slot in slots for p in slot]
        self.tables = make_tables(shape, precision)
        self.how = "baddbmm"
        if self.alone:
            values = torch.from_numpy(numpy.fromfile(spec["activations"], dtype=numpy.float32))
            self.x, self.upstream = values.view(2, spec["batch"], shape["sequence"], shape["hidden"]).unbind(0)
            self.x = self.x.clone().requires_grad_()
        else:
            tokens = torch.from_numpy(numpy.fromfile(spec["tokens"], dtype=numpy.int32)).long()
            self.batches = tokens.view(-1, spec["batch"], shape["sequence"] + 1)
        total = sum(p.numel() for p in self.parameters)
        self.limits = [spec["clip"] * math.sqrt(sum(p.numel() for p in slot) / total) for slot in slots]
        self.optimizer = None
        self.done = 0
        self.choices = {"attention": self.faster_attention()}
        if not self.alone:
            self.choices["optimizer"] = "foreach" if faster_foreach(self.parameters) else "loop"
            self.optimizer = make_optimizer(self, spec["learning_rate"], self.choices["optimizer"] == "foreach")

    def autocast(self):
        return torch.autocast("cpu", torch.bfloat16) if self.precision == "bf16" else contextlib.nullcontext()

    def pass_model(self, step):
        """Forward and backward; the loss in nats per token."""
        batch = self.batches[step % len(self.batches)]
        with self.autocast():
            x = F.embedding(batch[:, :-1], self.embed)
            router = 0.0
            for layer in self.layers:
                x, extra = layer.forward(x, self.tables, self.how)
                router = router + extra
            logits = F.linear(rms_norm(x, self.norm, 1e-6), self.head)
        loss = F.cross_entropy(logits.float().view(-1, self.shape["vocab"]), batch[:, 1:].reshape(-1))
        (loss + router).backward()
        return loss.item()

    def pass_layer(self):
        """Forward and backward of one layer; the mean product of output and upstream gradient."""
        with self.autocast():
            y, router = self.layers[0].forward(self.x, self.tables, self.how)
        product = (y * self.upstream).sum()
        (product + self.upstream.shape[0] * self.upstream.shape[1] * router).backward()
        return product.item() / self.upstream.numel()

    def once(self):
        value = self.pass_layer() if self.alone else self.pass_model(self.done)
        return value

    def forget(self):
        for p in self.parameters:
            p.grad = None
        if self.alone:
            self.x.grad = None

    def faster_attention(self):
        seconds = {}
        for _ in range(3):
            for self.how in ("baddbmm", "_scaled_dot_product_attention"):
                start = time.perf_counter()
                self.once()
                spent = time.perf_counter() - start
                seconds[self.how] = min(spent, seconds.get(self.how, spent))
                self.forget()
        self.how = min(seconds, key=seconds.get)
        return self.how

    def clip(self):
        """Per slot, at clip * sqrt(parameters of the slot / of the model)."""
        for slot, limit in zip(self.slots, self.limits):
            gradients = [p.grad for p in slot if p.grad is not None]
            if not gradients:
                continue  # an expert that no token chose
            norm = math.sqrt(sum(n.item() ** 2 for n in torch._foreach_norm(gradients)))
            if norm > limit:
                torch._foreach_mul_(gradients, limit / norm)

    def steps(self, count):
        values = []
        start = time.perf_counter()
        for _ in range(count):
            values.append(self.once())
            if not self.alone:
                self.clip()
                self.optimizer.step()
                self.done += 1
            self.forget()
        return time.perf_counter() - start, values


def make_optimizer(model, learning_rate, foreach):
    plain = [p for p in model.parameters if p.dim() == 1 or p is model.embed]
    decayed = [p for p in model.parameters if p.dim() > 1 and p is not model.embed]
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=BETAS, eps=EPSILON, foreach=foreach)


def faster_foreach(parameters):
    """Whether the optimizer's foreach form is the faster one for tensors of these sizes."""
    copies = [parameter(p.detach().clone()) for p in parameters]
    for p in copies:
        p.grad = torch.full_like(p, 1e-3)
    both = {f: torch.optim.AdamW(copies, lr=1e-9, betas=BETAS, eps=EPSILON, foreach=f) for f in (False, True)}
    seconds = {}
    for turn in range(4):
        for foreach, optimizer in both.items():
            start = time.perf_counter()
            optimizer.step()
            if turn > 0:
                spent = time.perf_counter() - start
                seconds[foreach] = min(spent, seconds.get(foreach, spent))
    return seconds[True] < seconds[False]


class Optimizer:
    """AdamW and clip_grad_norm_ over tensors of equal size, nothing else."""

    def __init__(self, spec):
        generator = torch.Generator().manual_seed(1)
        size = spec["parameters"] // spec["tensors"]
        self.parameters = [parameter(torch.randn(size, generator=generator) * 0.02) for _ in range(spec["tensors"])]
        self.gradients = [torch.randn(size, generator=generator) * 1e-3 for _ in self.parameters]
        foreach = faster_foreach(self.parameters)
        self.choices = {"optimizer": "foreach" if foreach else "loop"}
        self.optimizer = torch.optim.AdamW(self.parameters, lr=spec["learning_rate"], betas=BETAS, eps=EPSILON,
                                           weight_decay=DECAY, foreach=foreach)
        for p in self.parameters:
            p.grad = torch.empty_like(p)

    def steps(self, count):
        seconds, norms = 0.0, []
        for _ in range(count):
            for p, gradient in zip(self.parameters, self.gradients):
                p.grad.copy_(gradient)
            start = time.perf_counter()
            norms.append(torch.nn.utils.clip_grad_norm_(self.parameters, 1.0).item())
            self.optimizer.step()
            seconds += time.perf_counter() - start
        return seconds, norms


def gemm(side, repeats, precision):
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    a = torch.full((side, side), 0.5, dtype=dtype)
    b = torch.full((side, side), 0.25, dtype=dtype)
    c = torch.empty((side, side), dtype=dtype)
    torch.mm(a, b, out=c)
    start = time.perf_counter()
    for _ in range(repeats):
        torch.mm(a, b, out=c)
    return {"seconds": time.perf_counter() - start, "operations": 2 * side**3 * repeats}


def elementwise(repeats):
    """The work of a step besides products, forward and backward, to choose the vector kernels by."""
    x = torch.full((1024, 512), 0.5, requires_grad=True)
    gain = torch.ones(512)
    upstream = torch.ones_like(x)
    for pass_ in range(repeats + 1):
        if pass_ == 1:
            start = time.perf_counter()
        y = rms_norm(x, gain, 1e-6)
        (F.silu(y) * y).softmax(-1).backward(upstream)
        x.grad = None
    return {"seconds": time.perf_counter() - start, "operations": repeats * x.numel()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", choices=("fp32", "bf16"), required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)
    subject = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "hello":
            capability = [l.split(":")[1].strip() for l in torch.__config__.show().split("\n") if "capability" in l]
            answer = {"name": "PyTorch " + torch.__version__, "precision": arguments.precision,
                      "threads": torch.get_num_threads(), "details": "kernels " + "".join(capability)}
        elif request["do"] == "gemm":
            answer = gemm(request["side"], request["repeats"], request["precision"])
        elif request["do"] == "elementwise":
            answer = elementwise(request["repeats"])
        elif request["do"] == "prepare":
            subject = Optimizer(request) if request["kind"] == "optimizer" else Model(request, arguments.precision)
            answer = {"choices": subject.choices}
        elif request["do"] == "steps":
            seconds, values = subject.steps(request["count"])
            answer = {"seconds": seconds, "values": values}
        else:
            answer = {"error": "unknown request " + str(request["do"])}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
