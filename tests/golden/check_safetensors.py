#!/usr/bin/env python3
"""Strict, independent reader of safetensors files: the oracle for ours. Standard library only.

Usage: check_safetensors.py FILE            prints one JSON object: metadata, and per tensor dtype, shape and SHA-256
       exit 1 and one line on standard error when anything breaks the format.
"""
import hashlib
import json
import struct
import sys

SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
         "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8}
MAX_HEADER = 100_000_000


class Broken(Exception):
    pass


def need(condition, message):
    if not condition:
        raise Broken(message)


def no_twins(pairs):
    keys = [key for key, _ in pairs]
    need(len(keys) == len(set(keys)), "a key stands twice")
    return dict(pairs)


def is_count(value):
    return type(value) is int and 0 <= value < 2**64


def read(path):
    with open(path, "rb") as file:
        raw = file.read()
    need(len(raw) >= 10, "too short")
    (length,) = struct.unpack("<Q", raw[:8])
    need(length <= MAX_HEADER and 8 + length <= len(raw), "header length is impossible")
    need((8 + length) % 8 == 0, "the data is not aligned to 8")
    text = raw[8:8 + length].decode("utf-8", errors="strict")
    need(text.startswith("{"), "the header does not begin with {")
    need(text.rstrip(" ").endswith("}"), "the header is padded with something else than spaces")
    header = json.loads(text, object_pairs_hook=no_twins)
    metadata = header.pop("__metadata__", {})
    need(type(metadata) is dict and all(type(v) is str for v in metadata.values()), "metadata is not text to text")
    data = raw[8 + length:]
    spans, tensors = [], {}
    for name, entry in header.items():
        need(type(entry) is dict and set(entry) == {"dtype", "shape", "data_offsets"}, f"{name}: wrong keys")
        need(entry["dtype"] in SIZES, f"{name}: unknown dtype")
        need(type(entry["shape"]) is list and all(map(is_count, entry["shape"])), f"{name}: bad shape")
        offsets = entry["data_offsets"]
        need(type(offsets) is list and len(offsets) == 2 and all(map(is_count, offsets)), f"{name}: bad offsets")
        begin, end = offsets
        count = 1
        for dim in entry["shape"]:
            count *= dim
        size = SIZES[entry["dtype"]]
        need(begin <= end <= len(data), f"{name}: beyond the end")
        need(end - begin == count * size, f"{name}: size does not fit its shape")
        need(begin % size == 0, f"{name}: not aligned")
        spans.append((begin, end, name))
        tensors[name] = {"dtype": entry["dtype"], "shape": entry["shape"],
                         "sha256": hashlib.sha256(data[begin:end]).hexdigest()}
    at = 0
    for begin, end, name in sorted(spans):
        need(begin == at, f"{name}: hole or overlap")
        at = end
    need(at == len(data), "bytes at the end belong to no tensor")
    return {"metadata": metadata, "tensors": tensors}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        print(json.dumps(read(sys.argv[1]), sort_keys=True))
    except (Broken, OSError, ValueError, RecursionError) as problem:
        print(f"{sys.argv[1]}: {problem}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
