#include "core/crypto/hash.h"

#include <openssl/evp.h>

namespace neuroshard::crypto {
namespace {

// EVP_sha256() looks the algorithm up anew in each call, which takes as long as to hash 200 bytes. The object
// that is fetched is constant, and OpenSSL's own until the process ends.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return fetched != nullptr ? fetched : EVP_sha256();
}

EVP_MD_CTX* digest(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

}  // namespace

Hash256 sha256(ByteSpan bytes) {
  Hash256 hash;
  NS_CHECK(EVP_Digest(bytes.data(), bytes.size(), hash.data(), nullptr, sha256_algorithm(), nullptr) == 1);
  return hash;
}

// OpenSSL's digest calls fail only without memory or on misuse: neither is a caller's to handle.
Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  NS_CHECK(context_ != nullptr && EVP_DigestInit_ex(digest(context_), sha256_algorithm(), nullptr) == 1);
}

Sha256::~Sha256() {
  EVP_MD_CTX_free(digest(context_));
}

Sha256& Sha256::update(ByteSpan bytes) {
  NS_CHECK(EVP_DigestUpdate(digest(context_), bytes.data(), bytes.size()) == 1);
  return *this;
}

Hash256 Sha256::finish() {
  Hash256 hash;
  NS_CHECK(EVP_DigestFinal_ex(digest(context_), hash.data(), nullptr) == 1);
  return hash;
}

}  // namespace neuroshard::crypto
