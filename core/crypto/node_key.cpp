#include "core/crypto/node_key.h"

#include <algorithm>

#include "core/crypto/hash.h"

namespace neuroshard::crypto {
namespace {

constexpr std::string_view magic{"NSNODEK\0", 8};
constexpr std::uint32_t version = 1;
constexpr std::size_t seed_at = 16;
constexpr std::size_t checksum_at = 48;

}  // namespace

Secret encode_node_key(const KeyPair& key) {
  Secret file(node_key_file_bytes);
  std::uint8_t* bytes = file.bytes().data();
  std::copy(magic.begin(), magic.end(), bytes);
  store_le(bytes + 8, version);
  store_le(bytes + 12, static_cast<std::uint32_t>(node_key_file_bytes));
  Hash256 seed = key.seed();
  std::copy(seed.begin(), seed.end(), bytes + seed_at);
  wipe(seed);
  const Hash256 checksum = sha256(ByteSpan(bytes, checksum_at));
  std::copy(checksum.begin(), checksum.end(), bytes + checksum_at);
  return file;
}

Expected<KeyPair> decode_node_key(ByteSpan bytes) {
  if (bytes.size() < seed_at || as_text(bytes.first(magic.size())) != magic) {
    return make_error(ErrorCode::Corrupt, "this is not a node key file");
  }
  if (load_le<std::uint32_t>(bytes.data() + 8) > version) {
    return make_error(ErrorCode::Unsupported,
                      "the node key was written by a newer version; update this program");
  }
  const bool whole = bytes.size() == node_key_file_bytes &&
                     load_le<std::uint32_t>(bytes.data() + 8) == version &&
                     load_le<std::uint32_t>(bytes.data() + 12) == node_key_file_bytes;
  if (!whole) return make_error(ErrorCode::Corrupt, "the node key file is damaged or truncated");
  const Hash256 checksum = sha256(bytes.first(checksum_at));
  if (!std::equal(checksum.begin(), checksum.end(), bytes.data() + checksum_at)) {
    return make_error(ErrorCode::Corrupt, "the node key file is damaged (wrong checksum)");
  }
  Hash256 seed;
  std::copy_n(bytes.data() + seed_at, seed.size(), seed.begin());
  KeyPair key = KeyPair::from_seed(seed);
  wipe(seed);
  return key;
}

}  // namespace neuroshard::crypto
