// wallet.keystore and node.key, as they are and with their checksum put right, so that what lies behind it is
// reached too.
#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/crypto/keystore.h"
#include "core/crypto/node_key.h"

using neuroshard::Bytes;
using neuroshard::ByteSpan;
namespace crypto = neuroshard::crypto;

namespace {

void decode(ByteSpan file) {
  if (const auto keystore = crypto::Keystore::decode(file)) {
    const crypto::Secret encoded = keystore->encode();
    NS_CHECK(std::equal(encoded.bytes().begin(), encoded.bytes().end(), file.begin(), file.end()));
    // Other protections cost Argon2id; the wrong secret inside is what this must survive.
    if (keystore->protection() == crypto::Protection::None) (void)keystore->unlock({});
  }
  if (const auto key = crypto::decode_node_key(file)) {
    const crypto::Secret encoded = crypto::encode_node_key(*key);
    NS_CHECK(std::equal(encoded.bytes().begin(), encoded.bytes().end(), file.begin(), file.end()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  decode({data, size});
  constexpr std::size_t hash_bytes = 32;
  if (size < hash_bytes || size > crypto::max_keystore_bytes) return 0;
  Bytes fixed(data, data + size);
  const neuroshard::Hash256 hash = crypto::sha256({fixed.data(), size - hash_bytes});
  std::copy(hash.begin(), hash.end(), fixed.end() - hash_bytes);
  decode({fixed.data(), fixed.size()});
  return 0;
}
