// wallet.keystore, and the encrypted backup of a wallet, which is the same format with protection
// `Passphrase`. The public part is plain, so that showing, running and earning never decrypt; the secret part
// is sealed.
//
//   offset  size  content, little-endian
//   0       8     "NSKEYST" and a zero byte
//   8       4     version, 1
//   12      4     length of the file: 152, plus the secret (16 entropy or 32 token), plus 16 for the tag when sealed
//   16      1     protection: 0 none, 1 passphrase, 2 keychain
//   17      1     secret: 1 entropy of the words, 2 token
//   18      2     zero
//   20      8     created, milliseconds since 1970 UTC
//   28      4     Argon2id passes        (0 unless passphrase)
//   32      4     Argon2id memory, KiB   (0 unless passphrase)
//   36      4     zero
//   40      32    wallet public key
//   72      16    salt of Argon2id, or the keychain item's name
//   88      24    nonce of XChaCha20-Poly1305
//   112     8     zero
//   120     n     secret, plain or sealed; bytes 0 to 119 are the associated data
//   120+n   32    SHA-256 of everything before: tells a damaged file from a wrong passphrase
//
// This folder does no file I/O: the caller stores the bytes with mode 0600 and an atomic write.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/crypto/entropy.h"
#include "core/crypto/keys.h"
#include "core/crypto/secret.h"
#include "core/crypto/wallet_secret.h"

namespace neuroshard::crypto {

// Values are stored: never renumber.
enum class Protection : std::uint8_t {
  None = 0,        // readable by anyone who can read the file: say "not protected"
  Passphrase = 1,  // Argon2id of what a person types
  Keychain = 2,    // a random key that the desktop's keychain keeps
};
std::string_view to_string(Protection protection);  // "none", "passphrase", "keychain"
// InvalidArgument lists the three.
Expected<Protection> parse_protection(std::string_view text);

// No keystore is larger: callers refuse a larger file before reading it.
inline constexpr std::size_t max_keystore_bytes = 4096;
inline constexpr std::size_t keychain_key_bytes = 32;
inline constexpr std::size_t max_passphrase_bytes = 1024;

// Work of Argon2id for new keystores: 3 passes over 256 MiB, about a second. The bounds hold for a file being
// read too, so that a crafted one can't demand a terabyte or an hour.
struct PassphraseCost {
  std::uint32_t passes = 3;
  std::uint32_t memory_kib = 256u << 10;

  static constexpr std::uint32_t max_passes = 16;
  static constexpr std::uint32_t min_memory_kib = 8;
  static constexpr std::uint32_t max_memory_kib = 1u << 20;
};

// How to lock, with the key material: the passphrase's bytes, or keychain_key_bytes random ones, or nothing.
// A view: it must outlive the call.
struct KeystoreLock {
  Protection protection = Protection::None;
  ByteSpan material;
  PassphraseCost cost = {};
};

// Movable only.  Threads: one.
class Keystore {
 public:
  // InvalidArgument: empty or too long passphrase, keychain key of another size, cost outside its bounds.
  // Exhausted: not enough memory for the cost.
  static Expected<Keystore> seal(const WalletSecret& secret, const KeystoreLock& lock, WallTime created,
                                 Entropy& entropy);
  // True when the bytes start as this format does: to tell a backup file from words.
  static bool looks_like_one(ByteSpan bytes);
  // Checks structure, bounds and checksum, decrypts nothing. Corrupt; Unsupported for a later version.
  static Expected<Keystore> decode(ByteSpan bytes);
  // The file's bytes; wiped because with Protection::None they hold the secret.
  Secret encode() const { return Secret::copy_of(file_.bytes()); }

  const PublicKey& public_key() const { return public_key_; }
  // For display only.
  std::string wallet_id() const { return crypto::wallet_id(public_key_); }
  Protection protection() const { return protection_; }
  WallTime created() const { return created_; }
  // Whether unlocking will give the words, and not only the token.
  bool has_words() const { return has_words_; }
  // Name of the item in the desktop's keychain: 32 hexadecimal characters. Only for Protection::Keychain.
  std::string keychain_item() const;

  // Denied: wrong passphrase or keychain key. Corrupt: what is inside does not belong to the public key.
  // Exhausted: not enough memory for Argon2id. `material` as in KeystoreLock, ignored for Protection::None.
  Expected<WalletSecret> unlock(ByteSpan material) const;

 private:
  Keystore() = default;
  Secret file_;
  PublicKey public_key_{};
  WallTime created_{};
  Protection protection_ = Protection::None;
  bool has_words_ = false;
};

}  // namespace neuroshard::crypto
