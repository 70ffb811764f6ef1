#include "core/crypto/wallet_secret.h"

#include <algorithm>

#include "core/crypto/detail/sodium.h"
#include "core/crypto/mnemonic.h"

namespace neuroshard::crypto {
namespace {

// Inputs of libsodium's crypto_kdf (BLAKE2b, keyed by the token); fixed for ever.
constexpr char kdf_context[crypto_kdf_CONTEXTBYTES + 1] = "NSwallet";
constexpr std::uint64_t kdf_signing_key = 1;

std::string_view trimmed(std::string_view text) {
  static constexpr std::string_view space = " \t\r\n";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

}  // namespace

WalletSecret WalletSecret::generate(Entropy& entropy) {
  Secret bytes(mnemonic_entropy_bytes);
  entropy.fill(bytes.bytes());
  return from_entropy(bytes.bytes()).value();
}

Expected<WalletSecret> WalletSecret::from_entropy(ByteSpan entropy) {
  if (entropy.size() != mnemonic_entropy_bytes) {
    return make_error(ErrorCode::InvalidArgument, "the entropy of a wallet has 16 bytes");
  }
  WalletSecret wallet;
  wallet.entropy_ = Secret::copy_of(entropy);
  const Secret seed = seed_from_words(words_from_entropy(entropy).text());
  wallet.token_ = Secret::copy_of(seed.bytes().first(token_bytes));
  return wallet;
}

Expected<WalletSecret> WalletSecret::from_token(ByteSpan token) {
  if (token.size() != token_bytes) {
    return make_error(ErrorCode::InvalidArgument, "the token of a wallet has 32 bytes");
  }
  WalletSecret wallet;
  wallet.token_ = Secret::copy_of(token);
  return wallet;
}

Expected<WalletSecret> WalletSecret::parse(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) {
    return make_error(ErrorCode::InvalidArgument,
                      "expected 12 words or a token of 64 hexadecimal characters, got nothing");
  }
  if (text.find_first_of(" \t\r\n") != std::string_view::npos) {
    NS_ASSIGN_OR_RETURN(const Secret entropy, entropy_from_words(text));
    return from_entropy(entropy.bytes());
  }
  auto token = hash_from_hex(text);
  if (!token.ok()) {
    return make_error(ErrorCode::InvalidArgument,
                      "neither 12 words nor a token: a token has exactly 64 characters, 0-9 and a-f");
  }
  auto wallet = from_token(*token);
  wipe(*token);
  return wallet;
}

Secret WalletSecret::backup_text() const {
  if (entropy_) return words_from_entropy(entropy_->bytes());
  std::string hex = to_hex(token_.bytes());
  Secret text = Secret::copy_of(hex);
  wipe({reinterpret_cast<std::uint8_t*>(hex.data()), hex.size()});
  return text;
}

KeyPair WalletSecret::key() const {
  static_assert(token_bytes == crypto_kdf_KEYBYTES);
  Hash256 seed;
  crypto_kdf_derive_from_key(seed.data(), seed.size(), kdf_signing_key, kdf_context, token_.bytes().data());
  KeyPair pair = KeyPair::from_seed(seed);
  wipe(seed);
  return pair;
}

}  // namespace neuroshard::crypto
