#!/usr/bin/env python3
"""Reads /metrics of a node (NS_URL, NS_KEY) with prometheus_client's parser, whose last line gives what it found as JSON."""
import json
import math
import os
import urllib.request

from prometheus_client.parser import text_string_to_metric_families


def main():
    url = os.environ["NS_URL"].removesuffix("/v1") + "/metrics"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {os.environ['NS_KEY']}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", answer.headers
        text = answer.read().decode()
    families = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(set(names)) == len(names), names
    samples = [sample for family in families for sample in family.samples]
    # Each line that is no comment is one sample, and all are numbers.
    assert len(samples) == sum(1 for line in text.splitlines() if line and not line.startswith("#"))
    for family in families:
        assert family.type in ("counter", "gauge") and family.documentation, family
    assert all(math.isfinite(sample.value) for sample in samples)
    assert {"neuroshard_training_steps", "neuroshard_resident_bytes", "neuroshard_http_requests"} <= set(names), names
    print(json.dumps({"families": len(families), "samples": len(samples)}))


if __name__ == "__main__":
    main()
