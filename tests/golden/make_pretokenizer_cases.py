#!/usr/bin/env python3
"""Writes pretokenizer_cases.txt: texts and how the GPT-2 pattern splits them, by Debian's python3-regex (Unicode 15, as
our utf8proc). One case a line: the words as hexadecimal UTF-8, separated by spaces. Run with /usr/bin/python3."""

import os
import random

import regex

PATTERN = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")

WRITTEN = [
    "Hello world", " Hello  world ", "it's we're I've I'm you'll he'd don't", "IT'S We'RE 'S 'Re 'vE", "'s't're've'm'll'd",
    "'", "''", "'l", "'r", "'v", "' s", "!'s", " 's", "a's's", "x'", "3.14159 1,000,000", "abc123def", "\t", "\t\t",
    " \t x", "a\n\nb", "a \n b", "\n\n\n", "a\r\nb\r\n", "   ", "a   ", "   a", "a  1", "a  !", "!!! ???", "foo_bar-baz",
    "\x00\x01\x02", "\x1c\x1d\x1e\x1f", "\x7f", "\x85", "a\x85\x85b", "\xa0", "a\xa0\xa0b", " \xa0b", "\u1680", "\u2003x",
    "\u2028\u2029y", "\u3000\u3000\u4f60\u597d", "\u200b\u200b", "\ufeffBOM", "\u00e9t\u00e9", "e\u0301t", "\u4f60\u597d\uff0c\u4e16\u754c",
    "\u3053\u3093\u306b\u3061\u306f \u4e16\u754c", "\u0645\u0631\u062d\u0628\u0627", "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0660\u0661\u0662", "\u00bd\u00b2\u2167\u3007", "\u2460\u2461 \u2462",
    "\U0001f600\U0001f601 \U0001f602", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001d400\U0001d401\U0001d7ce",
    "\U00020000\U0002a6d6", "\u02b0\u01c5\u00aa\u00ba", "\u0345\u20dd", "$100 \u20ac5 \u00a33", "(\u201cquoted\u201d)\u2026",
    "\ue000\U000f0000\U0010ffff", "\u0378\u0379", "\u180e\u2060\u00ad", "a\u2007\u2007b \u2008c", "\u0130\u0131\ufb01",
]

# Code points at the edges of blocks and of UTF-8's lengths, and of every category that matters.
ALPHABET = [ord(c) for c in "  \n\t'sstrevmlld.,!aZ09"] + [
    0x7F, 0x80, 0x85, 0xA0, 0xAA, 0xB2, 0xB5, 0xBC, 0xD7, 0xE9, 0x2B0, 0x300, 0x37E, 0x3C9, 0x660, 0x7FF, 0x800, 0x93E,
    0x1680, 0x180E, 0x2000, 0x2007, 0x200B, 0x200D, 0x2028, 0x202F, 0x205F, 0x2167, 0x2460, 0x3000, 0x3007, 0x3042,
    0x4E00, 0x9FFF, 0xAC00, 0xD7A3, 0xE000, 0xFB01, 0xFE0F, 0xFEFF, 0xFFFD, 0xFFFF, 0x10000, 0x10107, 0x1D400, 0x1D7CE,
    0x1F600, 0x20000, 0xE0001, 0x10FFFF,
]


def main():
    rng = random.Random(20260101)
    texts = list(WRITTEN)
    for _ in range(300):
        texts.append("".join(chr(rng.choice(ALPHABET)) for _ in range(rng.randrange(1, 24))))
    # One text per stretch of the code space: every 61st code point between two letters.
    points = [p for p in range(0x80, 0x110000, 61) if not 0xD800 <= p <= 0xDFFF]
    points = [p for p in points if p < 0x3400 or p % 1009 < 20]
    for start in range(0, len(points), 12):
        texts.append("".join("a" + chr(p) for p in points[start : start + 12]))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pretokenizer_cases.txt")
    with open(path, "w", encoding="ascii") as out:
        for text in texts:
            words = PATTERN.findall(text)
            assert "".join(words) == text
            out.write(" ".join(word.encode("utf-8").hex() for word in words) + "\n")


if __name__ == "__main__":
    main()
