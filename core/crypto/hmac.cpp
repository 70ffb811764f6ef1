#include "core/crypto/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace neuroshard::crypto {
namespace {

template <std::size_t N>
std::array<std::uint8_t, N> hmac(const EVP_MD* digest, ByteSpan key, ByteSpan bytes) {
  std::array<std::uint8_t, N> code{};
  unsigned int size = 0;
  // An empty key is a key; OpenSSL takes a null pointer for "the last one".
  static constexpr std::uint8_t nothing = 0;
  const std::uint8_t* key_bytes = key.empty() ? &nothing : key.data();
  NS_CHECK(HMAC(digest, key_bytes, static_cast<int>(key.size()), bytes.data(), bytes.size(), code.data(),
                &size) != nullptr);
  NS_CHECK(size == N);
  return code;
}

}  // namespace

std::array<std::uint8_t, 20> hmac_sha1(ByteSpan key, ByteSpan bytes) {
  return hmac<20>(EVP_sha1(), key, bytes);
}

Hash256 hmac_sha256(ByteSpan key, ByteSpan bytes) {
  return hmac<32>(EVP_sha256(), key, bytes);
}

std::array<std::uint8_t, 16> md5(ByteSpan bytes) {
  std::array<std::uint8_t, 16> hash{};
  NS_CHECK(EVP_Digest(bytes.data(), bytes.size(), hash.data(), nullptr, EVP_md5(), nullptr) == 1);
  return hash;
}

bool equal_in_constant_time(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && (a.empty() || CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace neuroshard::crypto
