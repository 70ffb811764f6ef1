#!/usr/bin/env python3
"""An independent writer of the chain's formats (docs/protocol/chain.md), with hashlib only, and the values that core/chain must meet.

  chain_oracle.py --write DIR   computes the values and writes DIR/values.json
  chain_oracle.py --check DIR   computes them and compares with what stands there

Nothing here is shared with the C++ code except the fixed inputs, which tests/unit/chain/test_golden.cpp builds too: fill(n) is 32
bytes n, sign(n) is 64 bytes n. A signature enters a hash as bytes, so no key is needed.
"""
import hashlib
import json
import os
import struct
import sys


def fill(n):
    return bytes([n]) * 32


def sign(n):
    return bytes([n]) * 64


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def u8(n):
    return struct.pack("<B", n)


def u16(n):
    return struct.pack("<H", n)


def u32(n):
    return struct.pack("<I", n)


def u64(n):
    return struct.pack("<Q", n)


def merkle(chunks):
    """RFC 6962, section 2.1, by its recursive definition."""
    if not chunks:
        return sha()
    if len(chunks) == 1:
        return sha(b"\0", chunks[0])
    half = 1
    while 2 * half < len(chunks):
        half *= 2
    return sha(b"\1", merkle(chunks[:half]), merkle(chunks[half:]))


def part(data):
    return u32(len(data)) + data


def bits(flags):
    out = bytearray((len(flags) + 7) // 8)
    for i, flag in enumerate(flags):
        if flag:
            out[i // 8] |= 1 << (i % 8)
    return bytes(out)


NETWORK, OPENING = fill(7), fill(50)
MEMBERS = [1, 5, 9, 12, 13, 14, 15, 16, 300]


def entry(member):
    tokens = 900 + member % 100
    rest = u64(tokens) + fill(10 + member % 100) + fill(110 + member % 100) + fill(130 + member % 100) + sign(40 + member % 100)
    return u32(member) + rest, sha(b"neuroshard/chain/contribution/1", rest)


# voter, members, and who of them lacks the payload of the second row
VECTORS = [(1, MEMBERS, {9}), (2, [1, 9, 300], set()), (5, [], set())]


def lists(members, lacks):
    return [bits([1] * len(members)), bits([m not in lacks for m in members])]


def contributions_root(members):
    return merkle([entry(m)[1] for m in members])


# Results that voters say are withheld: by voter, of rows and rounds.
WITHHELD = {2: [(1, 4)], 5: [(1, 4), (1, 5), (300, 4)]}


def withheld_list(places):
    return u32(len(places)) + b"".join(u32(row) + u64(round) for row, round in places)


def withheld():
    return u32(len(WITHHELD)) + b"".join(u32(voter) + withheld_list(places) for voter, places in WITHHELD.items())


def close_section():
    data = u64(6) + u32(len(MEMBERS)) + b"".join(entry(m)[0] for m in MEMBERS)
    data += u32(len(MEMBERS)) + b"".join(u32(m) for m in MEMBERS) + u32(2) + u32(len(VECTORS))
    for voter, members, lacks in VECTORS:
        data += u32(voter) + contributions_root(members) + bits([m in members for m in MEMBERS])
        data += b"".join(lists(members, lacks)) + sign(200 + voter)
    return data


def vector_content(members, lacks, *more):
    return sha(b"neuroshard/chain/vector/1", contributions_root(members), u32(len(members)), b"".join(u32(m) for m in members),
               *lists(members, lacks), *more)


def statement():  # Away
    return fill(60) + u64(8) + fill(61) + u8(3) + sign(62)


def revocation():  # by wallet fill(69)
    return fill(60) + u64(8) + fill(61) + u8(7) + fill(69) + sign(62)


def move():  # to rows 0 and 9, as the plan says
    return fill(60) + u64(8) + fill(61) + u8(8) + u8(2 | 4) + row_set([0, 9]) + sign(62)


def offer():  # of 33 tiers
    return fill(60) + u64(8) + fill(61) + u8(9) + u32(33) + sign(62)


def offer_with_speed():  # and of 1,500 million FLOP/s
    return fill(60) + u64(8) + fill(61) + u8(10) + u32(33) + u32(1500) + sign(62)


def evidence():  # two prepares of height 9, view 3, voter 4
    return (fill(63) + u8(1) + u8(1) + u64(9) + fill(64) + u32(3) + u32(4) + fill(65) + sign(66) + fill(67) + sign(68))


def body_sections():
    empty = b""
    return [empty, empty, close_section(), empty, u32(2) + u32(2) + u32(11), u32(1) + part(statement()), u32(1) + part(evidence()),
            empty, empty, empty]


def row_results():
    return [u32(1) + u8(0) + fill(81) + fill(82) + u64(0x3ff0000000000000), u32(4) + u8(1)]


def result_sections():
    result = u64(6) + u32(2) + b"".join(row_results())
    return [b"", b"", b"", result] + [b""] * 6


def attestation():
    return fill(50) + u64(6) + u32(11) + u32(2) + b"".join(row_results()) + sign(83)


def false_result():  # of the first row of that attestation
    path = sha(b"\0", row_results()[1])
    return (fill(84) + u8(4) + fill(50) + u64(6) + u32(11) + u32(0) + u32(2) + row_results()[0] + u8(1) + path + sign(83) + fill(85) + u32(70000))


def row_set(rows):
    numbers = sum(1 << row for row in rows)
    length = max(rows) // 8 + 1
    return u8(length) + numbers.to_bytes(length, "little")


def body_root(sections):
    return merkle([OPENING] + sections)


def header(root):
    return b"NSBK" + u16(1) + u64(9) + fill(1) + u64(1790000000000) + root + fill(2)


def beacon_chain(seed, length):
    values = [seed]
    for _ in range(length):
        values.append(sha(b"neuroshard/beacon/1", values[-1]))
    return values


def work(rows):
    return merkle([u32(row) + u64(tokens) + u64(size) + payload for row, tokens, size, payload in rows])


def lot(purpose, beacon, node):
    return sha(b"neuroshard/chain/lot/1", part(purpose), beacon, node)


def values():
    rows = [(1, 900, 4096, fill(3)), (4, 450, 2048, fill(4)), (6, 1, 7, fill(5))]
    chain = beacon_chain(fill(9), 1000)  # rounds 4 to 1003
    reveals = fill(1) + fill(11) + fill(2) + fill(12)
    out = {
        "work_root": work(rows), "work_root_of_two": work(rows[:2]), "work_root_of_none": work([]),
        "contribution_id": entry(5)[1],
        "contributions_root": contributions_root(MEMBERS),
        "vector_content": vector_content(*VECTORS[0][1:]), "vector_content_of_none": vector_content(*VECTORS[2][1:]),
        "vector_content_withheld": vector_content(*VECTORS[2][1:], withheld_list(WITHHELD[5])), "close_withheld": close_section() + withheld(),
        "statement": sha(statement()), "revocation": sha(revocation()), "move": sha(move()), "offer": sha(offer()), "offer_with_speed": sha(offer_with_speed()), "evidence": sha(evidence()),
        "false_result": false_result(), "row_contributors": sha(b"neuroshard/chain/row-contributors/1", fill(86), fill(87), fill(88), fill(89)),
        "attestation": attestation(), "results_root": merkle(row_results()), "row_set": row_set([0, 9, 23, 64]),
        "beacon_tip": chain[1000], "beacon_first": chain[999], "beacon_middle": chain[1000 - 1 - (500 - 4)],
        "beacon_last": chain[0],
        "next_beacon": sha(b"neuroshard/chain/next-beacon/1", fill(5), u64(7), u32(2), reveals),
        "next_beacon_without_reveals": sha(b"neuroshard/chain/next-beacon/1", fill(5), u64(7), u32(0)),
        "lot": lot(b"leader", fill(5), fill(6)),
    }
    for name, sections in (("close", body_sections()), ("result", result_sections()), ("empty", [b""] * 10)):
        root = body_root(sections)
        out[name + "_body"] = b"".join(part(section) for section in sections)
        out[name + "_root"] = root
        out[name + "_hash"] = sha(b"neuroshard/chain/block/1", NETWORK, header(root))
    return {name: value.hex() for name, value in sorted(out.items())}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("--write", "--check"):
        print(__doc__)
        return 2
    path = os.path.join(sys.argv[2], "values.json")
    if sys.argv[1] == "--write":
        with open(path, "w") as file:
            json.dump(values(), file, indent=1)
            file.write("\n")
        return 0
    with open(path) as file:
        kept = json.load(file)
    wrong = [name for name in sorted({**kept, **values()}) if kept.get(name) != values().get(name)]
    for name in wrong:
        print("DIFFERENT  " + name)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
