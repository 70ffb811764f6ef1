#!/usr/bin/python3
"""The oracle for `.pt` shards: Python's own torch reads what we wrote and writes what we must read or refuse.

    check_pt.py both DIRECTORY   reads every ours_*.pt: dtype, number of values, SHA-256 of them as little-endian int64;
                                 writes one file of each kind below; prints one JSON object
Exit code 77: this Python has no torch.
"""
import hashlib
import json
import os
import sys
import zipfile
from collections import OrderedDict

try:
    import numpy
    import torch
except ImportError as error:
    print(f"no torch here: {error}")
    sys.exit(77)


def read(path):
    plain = torch.load(path)
    safe = torch.load(path, weights_only=True)
    assert torch.equal(plain, safe), "the two ways of loading differ"
    values = safe.numpy().astype("<i8").tobytes()
    return {"dtype": str(safe.dtype), "items": safe.numel(), "dimensions": safe.dim(),
            "sha256": hashlib.sha256(values).hexdigest()}


def write(directory):
    def save(name, value, **options):
        torch.save(value, os.path.join(directory, name), **options)

    tokens = torch.arange(1000, dtype=torch.int64) * 7 % 4096
    save("int64.pt", tokens)
    save("int32.pt", tokens.to(torch.int32))
    save("empty.pt", torch.empty(0, dtype=torch.int64))
    save("view.pt", torch.arange(100, dtype=torch.int64)[10:20])
    save("large.pt", torch.arange(300000, dtype=torch.int64))
    save("float.pt", torch.ones(10))
    save("two_dimensions.pt", torch.zeros(4, 5, dtype=torch.int64))
    save("strided.pt", torch.arange(100, dtype=torch.int64)[::2])
    save("dictionary.pt", {"tokens": tokens})
    save("list.pt", [tokens, tokens])
    save("state.pt", OrderedDict(a=tokens))
    save("number.pt", 5)
    save("module.pt", torch.nn.Linear(2, 2))
    save("negative.pt", torch.tensor([1, -1, 2]))
    save("huge_value.pt", torch.tensor([1, 1 << 40]))
    save("protocol4.pt", tokens, pickle_protocol=4)
    save("legacy.pt", tokens, _use_new_zipfile_serialization=False)

    class Command:
        def __reduce__(self):
            return os.system, ("touch %s" % os.path.join(directory, "executed"),)
    save("command.pt", Command())

    # The same archive, but compressed: torch itself never writes that.
    with zipfile.ZipFile(os.path.join(directory, "int64.pt")) as source, \
            zipfile.ZipFile(os.path.join(directory, "deflated.pt"), "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    values = numpy.arange(1000, dtype="<i8") * 7 % 4096
    return {"items": 1000, "sha256": hashlib.sha256(values.tobytes()).hexdigest()}


def both(directory):
    ours = {name: read(os.path.join(directory, name)) for name in sorted(os.listdir(directory))
            if name.startswith("ours_")}
    print(json.dumps({"ours": ours, "theirs": write(directory)}))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "both":
        sys.exit(__doc__)
    both(sys.argv[2])
