#!/usr/bin/python3
"""Reads a TensorBoard event file: both checksums of each record, then Event and Summary. Written from the published formats
(TFRecord, event.proto, summary.proto, RFC 3720 for CRC-32C); standard library only.

  tfevents.py FILE    "version TEXT" and then "STEP TAG VALUE WALL_TIME", one scalar a line
"""
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        head = data[at:at + 8]
        (length,), (check,) = struct.unpack("<Q", head), struct.unpack_from("<I", data, at + 8)
        assert masked(head) == check, f"the checksum of the length at {at}"
        body = data[at + 12:at + 12 + length]
        assert len(body) == length, f"the record at {at} ends early"
        (check,) = struct.unpack_from("<I", data, at + 12 + length)
        assert masked(body) == check, f"the checksum of the record at {at}"
        yield body
        at += 16 + length


def fields(message):
    """(number, value) of each field: an int, bytes, or raw 4 or 8 bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
            continue
        length = {1: 8, 5: 4}.get(tag & 7)
        if length is None:
            assert tag & 7 == 2, "an unknown wire type"
            length = varint()
        assert at + length <= len(message), "a field ends early"
        yield tag >> 3, message[at:at + length]
        at += length


def main():
    assert crc32c(b"123456789") == 0xE3069283
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    for body in records(data):
        event = dict(fields(body))
        (wall,) = struct.unpack("<d", event[1])
        if 3 in event:
            print("version", event[3].decode())
        for number, value in fields(event.get(5, b"")):
            assert number == 1, "not a value of the summary"
            scalar = dict(fields(value))
            print(event.get(2, 0), scalar[1].decode(), repr(struct.unpack("<f", scalar[2])[0]), repr(wall))


if __name__ == "__main__":
    main()
