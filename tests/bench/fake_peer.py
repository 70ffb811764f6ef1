#!/usr/bin/env python3
"""A contender that knows the protocol of compare.py and multiplies matrices at one operation a second: for its test."""
import json
import sys

ANSWERS = {"hello": {"name": "slow", "precision": "fp32", "threads": 1, "details": ""},
           "gemm": {"seconds": 1.0, "operations": 1.0}}
for line in sys.stdin:
    print(json.dumps(ANSWERS.get(json.loads(line)["do"], {"error": "only products here"})), flush=True)
