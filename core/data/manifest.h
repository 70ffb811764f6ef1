// manifest.json of a genesis dataset (docs/protocol/data.md): which shards there are, where, how large, with
// which hash; signed by the publisher's key. The same format lists the shards that a node holds locally,
// signed by its node key.
//
// The signature stands beside it in manifest.json.sig and covers the exact bytes of manifest.json, so fields
// that this build does not know survive being checked and copied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"

namespace neuroshard::data {

inline constexpr const char* manifest_file_name = "manifest.json";
inline constexpr const char* manifest_signature_file_name = "manifest.json.sig";
inline constexpr const char* tokenizer_file_name = "tokenizer.json";

// Bounds of what a manifest may say; larger documents are refused before anything is allocated for them.
inline constexpr std::uint64_t max_manifest_bytes = 256u << 20;
inline constexpr std::uint64_t max_manifest_shards = 1'000'000;
inline constexpr std::uint64_t max_shard_tokens = 16'000'000;
inline constexpr std::uint64_t max_shard_bytes = max_shard_tokens * 8 + (1u << 20);
inline constexpr std::size_t max_source_name = 128;
inline constexpr std::size_t max_url_length = 2048;

using ShardId = std::uint32_t;
// In a network a node's own shards have ids from here on. No node gives them to another.
inline constexpr ShardId first_own_shard = 0x80000000u;
constexpr bool is_own_shard(ShardId id) {
  return id >= first_own_shard;
}
// For people: "12", or "12 of the own text".
std::string shard_label(ShardId id);

enum class Split : std::uint8_t { Train, HeldOut };
std::string_view to_string(Split split);  // "train", "held-out"

struct ShardEntry {
  ShardId id = 0;
  std::string url;         // relative to the manifest ("shard_0.pt"), or absolute http(s)
  std::uint64_t size = 0;  // bytes of the file
  Hash256 sha256{};        // of the file
  std::uint64_t tokens = 0;
  std::string source;  // "FineWeb-Edu", "user", …
  Split split = Split::Train;
};

// The source of text that a person imports.
inline constexpr const char* own_source = "user";

struct Manifest {
  std::uint32_t format_version = 1;
  Bytes network_id;             // 32 bytes, or empty for data that no network owns
  Hash256 tokenizer_hash{};     // SHA-256 of tokenizer.json
  std::int64_t created_ms = 0;  // Unix time, milliseconds
  std::int64_t updated_ms = 0;
  std::vector<ShardEntry> shards;  // by ascending id
  std::string extra;  // unknown top-level fields as one JSON object, kept when written again; "" if none

  std::uint64_t total_tokens() const;
  std::uint64_t total_bytes() const;
  const ShardEntry* find(ShardId id) const;
  // Entries of one split, by ascending id.
  std::vector<ShardEntry> of(Split split) const;
};

// Strict: unknown fields are kept, but a missing or mistyped one, a duplicate id, an unsafe URL, a negative
// or excessive size, or totals that don't add up is Corrupt with the field named. Safe on any bytes.
Expected<Manifest> parse_manifest(ByteSpan bytes);
// The bytes that are stored and signed: sorted keys, indented, one trailing newline; equal values give equal
// bytes.
Bytes encode_manifest(const Manifest& manifest);

struct ManifestSignature {
  crypto::PublicKey key{};
  crypto::Signature signature{};
};
Expected<ManifestSignature> parse_manifest_signature(ByteSpan bytes);
Bytes encode_manifest_signature(const ManifestSignature& signature);
ManifestSignature sign_manifest(const crypto::KeyPair& publisher, const Manifest& manifest,
                                ByteSpan manifest_bytes);

// Requirements of a reader; an empty optional is not checked.
struct ManifestTrust {
  std::optional<crypto::PublicKey> publisher;  // Denied when another key signed
  std::optional<Bytes> network_id;             // Denied when the manifest is for another network
};
// Checks the signature over manifest_bytes, then parses. Denied: wrong key, bad signature, other network.
Expected<Manifest> open_manifest(ByteSpan manifest_bytes, ByteSpan signature_bytes,
                                 const ManifestTrust& trust);

}  // namespace neuroshard::data
