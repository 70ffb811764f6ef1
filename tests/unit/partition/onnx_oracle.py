#!/usr/bin/env python3
"""Makes ONNX models with other programs and says what they contain.    onnx_oracle.py FOLDER

Writes FOLDER/*.onnx and prints a JSON object: per model the shapes that ONNX's own shape inference finds (by tensor), the
operations of its products and the bytes of its weights, counted here from those shapes. Exit code 77 when the Python of this
machine has no onnx; models of PyTorch are left out where it is missing.
"""
import json
import sys
import warnings

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper, shape_inference
except ImportError:
    sys.exit(77)
import numpy as np

warnings.filterwarnings("ignore")
folder = sys.argv[1]
result = {}


def attribute(node, name, otherwise):
    for a in node.attribute:
        if a.name == name:
            return helper.get_attribute_value(a)
    return otherwise


def describe(name, model, **more):
    """Shapes by ONNX's inference; operations of products by the definitions of the operators."""
    inferred = shape_inference.infer_shapes(model, data_prop=True)
    shapes = {t.name: list(t.dims) for t in inferred.graph.initializer}
    weights = dict(shapes)
    bytes_of = {t.name: int(np.prod(t.dims)) * helper.mapping.TENSOR_TYPE_TO_NP_TYPE[t.data_type].itemsize
                for t in inferred.graph.initializer}
    for v in list(inferred.graph.value_info) + list(inferred.graph.input) + list(inferred.graph.output):
        if v.type.tensor_type.HasField("shape"):
            dims = [d.dim_value if d.HasField("dim_value") else None for d in v.type.tensor_type.shape.dim]
            if None not in dims:
                shapes.setdefault(v.name, dims)
    flops = 0
    for node in inferred.graph.node:
        have = lambda i: len(node.input) > i and node.input[i] != ""
        if any(n not in shapes for n in [x for x in node.input if x][:2] + list(node.output)[:1]):
            continue
        size = lambda n: int(np.prod(shapes[n]))
        if node.op_type == "MatMul":
            flops += 2 * size(node.output[0]) * shapes[node.input[0]][-1]
        elif node.op_type == "Gemm":
            k = shapes[node.input[0]][0 if attribute(node, "transA", 0) else 1]
            flops += size(node.output[0]) * (2 * k + (1 if have(2) else 0))
        elif node.op_type == "Conv":
            w = shapes[node.input[1]]
            flops += size(node.output[0]) * (2 * int(np.prod(w[1:])) + (1 if have(2) else 0))
        elif node.op_type == "ConvTranspose":
            w = shapes[node.input[1]]
            flops += 2 * size(node.input[0]) * int(np.prod(w[1:])) + (size(node.output[0]) if have(2) else 0)
    onnx.save(model, f"{folder}/{name}.onnx")
    result[name] = {"shapes": shapes, "product_flops": flops, "weight_bytes": sum(bytes_of.values()),
                    "nodes": len(model.graph.node), **more}
    del weights


def tensor(name, *dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(dims))


def weight(name, *dims):
    return numpy_helper.from_array(np.zeros(dims, np.float32), name)


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(nodes, inputs, outputs, initializers, opset=13):
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def convolutions():
    n = helper.make_node
    nodes = [
        n("Conv", ["x", "w1", "b1"], ["c1"], "conv1", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        n("Relu", ["c1"], ["r1"], "relu1"),
        n("Conv", ["r1", "w2"], ["c2"], "depthwise", kernel_shape=[3, 3], group=8, auto_pad="SAME_UPPER", strides=[2, 2]),
        n("MaxPool", ["c2"], ["p"], "pool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        n("Conv", ["p", "w3"], ["c3"], "dilated", kernel_shape=[3, 3], dilations=[2, 2], pads=[2, 2, 2, 2]),
        n("ConvTranspose", ["c3", "w4", "b4"], ["t"], "up", kernel_shape=[2, 2], strides=[2, 2], output_padding=[1, 0]),
        n("GlobalAveragePool", ["t"], ["g"], "mean"),
        n("Flatten", ["g"], ["f"], "flat"),
        n("Gemm", ["f", "w5", "b5"], ["y"], "fc", transB=1),
    ]
    describe("convolutions", model(nodes, [tensor("x", 2, 3, 33, 47)], [tensor("y", 2, 10)],
             [weight("w1", 8, 3, 3, 3), weight("b1", 8), weight("w2", 8, 1, 3, 3), weight("w3", 16, 8, 3, 3),
              weight("w4", 16, 4, 2, 2), weight("b4", 4), weight("w5", 10, 4), weight("b5", 10)]))


def shape_arithmetic():
    """Reshape by computed sizes, splits, slices with negative steps, gathers, reductions, tiles."""
    n = helper.make_node
    nodes = [
        n("Shape", ["x"], ["s"]), n("Gather", ["s", "zero"], ["batch"], axis=0), n("Gather", ["s", "two"], ["wide"], axis=0),
        n("Div", ["wide", "four"], ["quarter"]), n("Concat", ["batch", "minus", "four", "quarter"], ["target"], axis=0),
        n("Reshape", ["x", "target"], ["h"], "heads"), n("Transpose", ["h"], ["ht"], "turn", perm=[0, 2, 1, 3]),
        n("Transpose", ["h"], ["hk"], "turn keys", perm=[0, 2, 3, 1]), n("MatMul", ["ht", "hk"], ["scores"], "scores"),
        n("Softmax", ["scores"], ["prob"], "softmax", axis=-1), n("MatMul", ["prob", "ht"], ["mix"], "mix"),
        n("Split", ["mix", "parts"], ["left", "right"], "split", axis=3), n("Slice", ["left", "from", "to", "ax", "step"], ["back"], "slice"),
        n("Concat", ["back", "right"], ["joined"], "join", axis=3), n("ReduceMean", ["joined"], ["m"], "mean", axes=[-1], keepdims=0),
        n("Unsqueeze", ["m", "zero"], ["u"], "unsqueeze"), n("Tile", ["u", "reps"], ["tiled"], "tile"),
        n("Pad", ["tiled", "pads"], ["y"], "pad"),
    ]
    # ONNX's inference does not follow computed sizes: numpy says what comes out.
    h = np.zeros((3, 10, 64)).reshape(3, -1, 4, 16)
    ht, hk = h.transpose(0, 2, 1, 3), h.transpose(0, 2, 3, 1)
    mix = (ht @ hk) @ ht
    joined = np.concatenate([mix[..., :5][..., -1:-100:-2], mix[..., 5:]], axis=3)
    y = np.pad(np.tile(joined.mean(-1)[None], (2, 1, 1, 1)), [(0, 0), (1, 2), (0, 0), (0, 3)])
    flops = 2 * (ht @ hk).size * 16 + 2 * mix.size * 10
    describe("shape_arithmetic", model(nodes, [tensor("x", 3, 10, 64)], [tensor("y", None, None, None, None)],
             [ints("zero", 0), ints("two", 2), ints("four", 4), ints("minus", -1), ints("parts", 5, 11), ints("from", -1),
              ints("to", -100), ints("ax", 3), ints("step", -2), ints("reps", 2, 1, 1, 1), ints("pads", 0, 1, 0, 0, 0, 2, 0, 3)]),
             product_flops=flops, output=list(y.shape))


def external():
    """Weights in another file whose path leads elsewhere; it does not exist and must not be looked for."""
    w = TensorProto(name="w", dims=[64, 128], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    w.external_data.add(key="location", value="../../../nowhere/weights.bin")
    m = model([helper.make_node("MatMul", ["x", "w"], ["y"], "mm")], [tensor("x", "batch", 64)], [tensor("y", "batch", 128)], [w])
    with open(f"{folder}/external.onnx", "wb") as f:
        f.write(m.SerializeToString())
    result["external"] = {"weight_bytes": 64 * 128 * 4, "product_flops": 2 * 5 * 64 * 128}


def from_torch():
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = [p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in self.qkv(x).split(c, dim=2)]
            a = torch.softmax(q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5, dim=-1)
            return self.out((a @ v).transpose(1, 2).reshape(b, t, c))

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.n1, self.n2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
            self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

        def forward(self, x):
            x = x + self.attention(self.n1(x))
            return x + self.down(nn.functional.gelu(self.up(self.n2(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(100, 64)
            self.blocks = nn.Sequential(Block(64, 4), Block(64, 4))
            self.head = nn.Linear(64, 100, bias=False)

        def forward(self, tokens):
            return self.head(self.blocks(self.embed(tokens)))

    class Pictures(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.n = nn.Conv2d(3, 16, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(16)
            self.b, self.c = nn.Conv2d(16, 32, 3, padding=1, groups=4, bias=False), nn.Conv2d(32, 16, 1, bias=False)
            self.d = nn.Linear(16, 10, bias=False)

        def forward(self, x):
            x = torch.relu(self.n(self.a(x)))
            x = nn.functional.max_pool2d(x, 3, 2, 1)
            y = nn.functional.interpolate(self.c(torch.relu(self.b(x))), scale_factor=2.0)
            return self.d(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1))

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.out = nn.LSTM(24, 32, batch_first=True, bidirectional=True), nn.Linear(64, 5)

        def forward(self, x):
            return self.out(self.cells(x)[0][:, -1])

    def profiled(net, x):
        """Operations by PyTorch's profiler: products and convolutions only, without their biases."""
        from torch.profiler import ProfilerActivity, profile
        with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], with_flops=True) as p:
            net(x)
        return sum(e.flops for e in p.key_averages() if e.key in ("aten::mm", "aten::addmm", "aten::bmm", "aten::conv2d"))

    for name, net, x in (("torch_transformer", Net(), torch.zeros(2, 16, dtype=torch.long)),
                         ("torch_pictures", Pictures(), torch.zeros(2, 3, 65, 50)),
                         ("torch_recurrent", Recurrent(), torch.zeros(2, 9, 24))):
        net.eval()
        path = f"{folder}/{name}.onnx"
        torch.onnx.export(net, x, path, opset_version=13, do_constant_folding=True, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "batch"}} if name == "torch_recurrent" else None)
        with torch.no_grad():
            y = net(x)
        parameters = sum(p.numel() for p in net.parameters()) * 4
        if name == "torch_recurrent":
            result[name] = {"parameter_bytes": parameters, "output": list(y.shape)}
            continue
        describe(name, onnx.load(path), parameter_bytes=parameters, output=list(y.shape), profiler_flops=profiled(net, x))


convolutions()
shape_arithmetic()
external()
try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from_torch()
print(json.dumps(result))
