#!/usr/bin/env python3
"""Makes the fixtures of wallet.keystore and node.key, format 1, from fixed bytes: an oracle that shares no code with ours.

Usage: make_key_files.py [--check] FOLDER    FOLDER is tests/golden/formats; --check compares instead of writing
Prints what a reader must find in them. The secrets are counted bytes and belong to nobody.

BIP39 and SHA-256 by hashlib; Argon2id (RFC 9106), ChaCha20-Poly1305 (RFC 8439) and Ed25519 (RFC 8032) by the package
"cryptography", version 44 or later; the key of XChaCha20 (draft-irtf-cfrg-xchacha, section 2.2) is derived here.
"""
import hashlib
import os
import struct
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ENTROPY = bytes(range(16))
NODE_SEED = bytes(range(64, 96))
SALT, NONCE = bytes(range(16)), bytes(range(16, 40))
PASSPHRASE = "correct horse battery staple — ü".encode()
KEYCHAIN_KEY = bytes([0x5A]) * 32
PASSES, MEMORY_KIB = 2, 64
CREATED_MS = 1_700_000_000_123
NONE, BY_PASSPHRASE, BY_KEYCHAIN = 0, 1, 2
KIND_ENTROPY, KIND_TOKEN = 1, 2


def words_of(entropy):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../resources/bip39_english.txt")
    with open(path, encoding="ascii") as file:
        words = file.read().split()
    bits = int.from_bytes(entropy + hashlib.sha256(entropy).digest()[:1], "big") >> 4
    return " ".join(words[bits >> 11 * (11 - i) & 2047] for i in range(12))


def token_of(entropy):
    return hashlib.pbkdf2_hmac("sha512", words_of(entropy).encode(), b"mnemonic", 2048)[:32]


def wallet_public_key(token):
    # BLAKE2b keyed by the token; the salt is the number of the subkey, the personal string its context.
    seed = hashlib.blake2b(b"", digest_size=32, key=token, salt=struct.pack("<QQ", 1, 0), person=b"NSwallet" + bytes(8))
    return public_key(seed.digest())


def public_key(seed):
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def hchacha20(key, nonce):
    x = list(struct.unpack("<16I", b"expand 32-byte k" + key + nonce))

    def quarter(a, b, c, d):
        for into, other, mixed, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[into] = (x[into] + x[other]) & 0xFFFFFFFF
            x[mixed] ^= x[into]
            x[mixed] = (x[mixed] << turn | x[mixed] >> (32 - turn)) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<8I", *x[:4], *x[12:])


def seal(key, plain, associated):
    return ChaCha20Poly1305(hchacha20(key, NONCE[:16])).encrypt(bytes(4) + NONCE[16:], plain, associated)


def keystore(protection, kind):
    token = token_of(ENTROPY)
    plain = ENTROPY if kind == KIND_ENTROPY else token
    length = 120 + len(plain) + (0 if protection == NONE else 16) + 32
    passes, memory = (PASSES, MEMORY_KIB) if protection == BY_PASSPHRASE else (0, 0)
    salt, nonce = (bytes(16), bytes(24)) if protection == NONE else (SALT, NONCE)
    header = b"NSKEYST\0" + struct.pack("<IIBBHqIII", 1, length, protection, kind, 0, CREATED_MS, passes, memory, 0)
    header += wallet_public_key(token) + salt + nonce + bytes(8)
    secret = plain
    if protection == BY_PASSPHRASE:
        key = Argon2id(salt=SALT, length=32, iterations=PASSES, lanes=1, memory_cost=MEMORY_KIB).derive(PASSPHRASE)
        secret = seal(key, plain, header)
    elif protection == BY_KEYCHAIN:
        secret = seal(KEYCHAIN_KEY, plain, header)
    body = header + secret
    return body + hashlib.sha256(body).digest()


def node_key():
    body = b"NSNODEK\0" + struct.pack("<II", 1, 80) + NODE_SEED
    return body + hashlib.sha256(body).digest()


def check_hchacha20():
    # The example of draft-irtf-cfrg-xchacha-03, section 2.2.1.
    got = hchacha20(bytes(range(32)), bytes.fromhex("000000090000004a0000000031415927"))
    if got.hex() != "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc":
        sys.exit("hchacha20 is wrong")


def main(arguments):
    check = "--check" in arguments
    folders = [a for a in arguments if a != "--check"]
    if len(folders) != 1:
        sys.exit(__doc__)
    check_hchacha20()
    files = {"node-key-v1.key": node_key()}
    for protection, name in ((NONE, "none"), (BY_PASSPHRASE, "passphrase"), (BY_KEYCHAIN, "keychain")):
        files[f"keystore-v1/{name}-words.keystore"] = keystore(protection, KIND_ENTROPY)
        files[f"keystore-v1/{name}-token.keystore"] = keystore(protection, KIND_TOKEN)
    for name, content in files.items():
        path = os.path.join(folders[0], name)
        if check:
            with open(path, "rb") as file:
                if file.read() != content:
                    sys.exit(f"{name} differs from what this program makes")
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    wallet, node = wallet_public_key(token_of(ENTROPY)), public_key(NODE_SEED)
    print("words            ", words_of(ENTROPY))
    print("token            ", token_of(ENTROPY).hex())
    print("wallet public key", wallet.hex())
    print("wallet id        ", hashlib.sha256(wallet).hexdigest()[:16])
    print("node public key  ", node.hex())
    print("node id          ", hashlib.sha256(node).hexdigest())


if __name__ == "__main__":
    main(sys.argv[1:])
