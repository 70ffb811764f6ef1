"""A contender whose losses are made up: what the first weights say, plus a shift. For the test of loss_study.py.

  fake_trainer.py SHIFT
"""
import json
import struct
import sys

seed = 0
for line in sys.stdin:
    request, answer = json.loads(line), {}
    if request["do"] == "weights":
        with open(request["path"], "wb") as file:
            file.write(struct.pack("<i", request["seed"]))
    elif request["do"] == "prepare":
        with open(request["weights"], "rb") as file:
            seed = struct.unpack("<i", file.read())[0]
    elif request["do"] == "steps":
        answer = {"seconds": 1, "values": [3 + seed + float(sys.argv[1])] * request["count"]}
    print(json.dumps(answer), flush=True)
