#!/usr/bin/python3
"""Interpolated Kneser-Ney probabilities, computed from the definition with exact fractions and nothing clever; standard library only.

  ngram_oracle.py REQUEST.json    {vocabulary, tokens, queries: [{before, token}]} → the natural logarithms, one a line
"""
import json
import math
import sys
from collections import Counter
from fractions import Fraction


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    tokens = request["tokens"]
    triples = Counter(zip(tokens, tokens[1:], tokens[2:]))
    # Lower orders count the different tokens before, among all that stand in the text.
    pairs = Counter(triple[1:] for triple in set(triples))
    singles = Counter((pair[1],) for pair in set(zip(tokens, tokens[1:])))
    counts = {1: singles, 2: pairs, 3: triples}

    def discount(order):
        once = sum(1 for count in counts[order].values() if count == 1)
        twice = sum(1 for count in counts[order].values() if count == 2)
        return Fraction(once, once + 2 * twice) if once and twice else Fraction(1, 2)

    def probability(order, history, token):
        if order == 0:
            return Fraction(1, request["vocabulary"])
        lower = probability(order - 1, history[1:], token)
        followers = {gram[-1]: count for gram, count in counts[order].items() if gram[:-1] == history}
        if not followers:
            return lower
        total = sum(followers.values())
        kept = max(followers.get(token, 0) - discount(order), Fraction(0))
        return (kept + discount(order) * len(followers) * lower) / total

    for query in request["queries"]:
        before = tuple(query["before"][-2:])
        print(repr(math.log(probability(len(before) + 1, before, query["token"]))))


if __name__ == "__main__":
    main()
