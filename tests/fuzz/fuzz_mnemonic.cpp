// The text that a person types to restore a wallet, and a delegation as a peer sends it.
#include "core/base/check.h"
#include "core/crypto/delegation.h"
#include "core/crypto/mnemonic.h"
#include "core/crypto/wallet_secret.h"

namespace crypto = neuroshard::crypto;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const neuroshard::ByteSpan input{data, size};
  const std::string_view text = neuroshard::as_text(input);
  if (const auto entropy = crypto::entropy_from_words(text)) {
    const crypto::Secret words = crypto::words_from_entropy(entropy->bytes());
    NS_CHECK(crypto::entropy_from_words(words.text()).ok());
    // The key of valid words costs 2048 rounds of PBKDF2 and nothing of the input reaches it: left out.
  } else if (const auto secret = crypto::WalletSecret::parse(text)) {
    const crypto::Secret backup = secret->backup_text();
    const auto again = crypto::WalletSecret::parse(backup.text());
    NS_CHECK(again.ok());
    NS_CHECK(again->key().public_key() == secret->key().public_key());
  }
  if (const auto delegation = crypto::decode_delegation(input)) {
    NS_CHECK(crypto::encode_delegation(*delegation) == neuroshard::Bytes(data, data + size));
  }
  return 0;
}
