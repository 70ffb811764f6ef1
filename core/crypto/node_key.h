// The file node.key: the machine's own Ed25519 key, random, without a passphrase, so that a node starts
// unattended.
//
//   offset  size  content, little-endian
//   0       8     "NSNODEK" and a zero byte
//   8       4     version, 1
//   12      4     length of the file, 80
//   16      32    seed
//   48      32    SHA-256 of everything before
#pragma once

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"
#include "core/crypto/secret.h"

namespace neuroshard::crypto {

inline constexpr std::size_t node_key_file_bytes = 80;

Secret encode_node_key(const KeyPair& key);
// Corrupt: not such a file, damaged or cut short. Unsupported: a later version.
Expected<KeyPair> decode_node_key(ByteSpan bytes);

}  // namespace neuroshard::crypto
