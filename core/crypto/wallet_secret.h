// The secret behind a wallet: twelve words, or a wallet token (docs/protocol/identity.md).
//
//   words ⇄ 16 bytes of entropy → BIP39 seed → token = its first 32 bytes → wallet key
//
// Each arrow → is one-way. The wallet key is derived from the token by a keyed, domain-separated function, so
// nothing public (key, wallet_id) is a plain hash of anything secret.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/crypto/entropy.h"
#include "core/crypto/keys.h"
#include "core/crypto/secret.h"

namespace neuroshard::crypto {

inline constexpr std::size_t token_bytes = 32;

// Movable only; its contents are wiped.  Threads: one.
class WalletSecret {
 public:
  // A new wallet that knows its words.
  static WalletSecret generate(Entropy& entropy);
  // Exactly mnemonic_entropy_bytes; InvalidArgument otherwise.
  static Expected<WalletSecret> from_entropy(ByteSpan entropy);
  // Exactly token_bytes; InvalidArgument otherwise. Such a wallet has no words.
  static Expected<WalletSecret> from_token(ByteSpan token);
  // Parses a person's input: twelve words or a token of 64 hexadecimal characters, with white space around.
  // InvalidArgument says which of the two is meant and what is wrong with it, and does not repeat the text.
  static Expected<WalletSecret> parse(std::string_view text);

  bool has_words() const { return entropy_.has_value(); }
  // Nothing when only the token is known: words can't be found from it.
  const std::optional<Secret>& entropy() const { return entropy_; }
  const Secret& token() const { return token_; }
  // The text of a backup: the words when known, else the token as 64 hexadecimal characters.
  Secret backup_text() const;
  KeyPair key() const;

 private:
  WalletSecret() = default;
  std::optional<Secret> entropy_;
  Secret token_;
};

}  // namespace neuroshard::crypto
