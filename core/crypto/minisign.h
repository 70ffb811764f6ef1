// Signatures of files as the program minisign makes them (https://jedisct1.github.io/minisign/): a file of four
// lines beside the signed one.
//
//   untrusted comment: anything; nobody signs it
//   base64("ED" ‖ key id [8] ‖ Ed25519 signature of BLAKE2b-512(file) [64])
//   trusted comment: text that is signed too
//   base64(Ed25519 signature of (signature ‖ trusted comment) [64])
//
// Signatures of the older kind "Ed", over the file itself, are refused. Keys are the text that `minisign -G`
// prints: base64("Ed" ‖ key id [8] ‖ public key [32]).
#pragma once

#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"

namespace neuroshard::crypto {

// Larger ones are refused before they are read; minisign itself keeps comments below 8 KiB.
inline constexpr std::size_t max_minisign_bytes = 16 << 10;

using MinisignKeyId = std::array<std::uint8_t, 8>;

struct MinisignKey {
  MinisignKeyId id{};
  PublicKey key{};
};

struct MinisignSignature {
  MinisignKeyId key_id{};
  Signature of_hash{};          // of BLAKE2b-512(file)
  std::string trusted_comment;  // one line, not checked by parse()
  Signature of_all{};           // of the signature and the trusted comment
};

// InvalidArgument: not the base64 text of a key.
Expected<MinisignKey> parse_minisign_key(std::string_view text);

// Corrupt: not four lines of that form, or too large. Unsupported: a signature of the older kind.
Expected<MinisignSignature> parse_minisign_signature(ByteSpan bytes);

// Whether the key's owner signed this file with this trusted comment. Denied: another key made the signature, or
// file, signature or trusted comment were changed since; the message says which.
Expected<void> verify_minisign(const MinisignKey& key, ByteSpan file, const MinisignSignature& signature);

}  // namespace neuroshard::crypto
