#!/usr/bin/env python3
"""PyTorch's side of compare_codecs.py: torch.topk on the same values, selection and nothing else.

  codec_peer.py --threads N      exit 77 without PyTorch
"""
import argparse
import json
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(77)


def select(values, what, k):
    """Places and values of the largest magnitudes, as torch finds them fastest (unsorted)."""
    shaped = values.view(-1, 4096) if what == "chunks" else values
    count = k if what == "chunks" else k * (values.numel() // 4096)
    places = torch.topk(shaped.abs(), count, sorted=False).indices
    return places, torch.gather(shaped, -1, places)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    torch.set_num_threads(parser.parse_args().threads)
    values = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "hello":
            answer = {"name": "PyTorch " + torch.__version__, "details": f"{torch.get_num_threads()} threads"}
        elif request["do"] == "prepare":
            storage = torch.FloatStorage.from_file(request["path"], False, request["count"])
            values = torch.FloatTensor(storage).clone()
            answer = {}
        elif request["do"] == "turn":
            start = time.perf_counter()
            places, _ = select(values, request["what"], request["k"])
            answer = {"seconds": time.perf_counter() - start, "places": places.numel()}
        else:
            answer = {"error": "unknown request " + str(request["do"])}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
