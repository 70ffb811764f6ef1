#include "core/crypto/keystore.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/detail/sodium.h"
#include "core/crypto/hash.h"
#include "core/crypto/mnemonic.h"

namespace neuroshard::crypto {
namespace {

constexpr std::string_view magic{"NSKEYST\0", 8};
constexpr std::uint32_t format_version = 1;
constexpr std::size_t version_at = 8;
constexpr std::size_t length_at = 12;
constexpr std::size_t protection_at = 16;
constexpr std::size_t secret_kind_at = 17;
constexpr std::size_t created_at = 20;
constexpr std::size_t passes_at = 28;
constexpr std::size_t memory_at = 32;
constexpr std::size_t public_key_at = 40;
constexpr std::size_t salt_at = 72;
constexpr std::size_t salt_bytes = 16;
constexpr std::size_t nonce_at = 88;
constexpr std::size_t nonce_bytes = 24;
constexpr std::size_t header_bytes = 120;
constexpr std::size_t tag_bytes = 16;
constexpr std::size_t checksum_bytes = 32;
constexpr std::uint8_t kind_entropy = 1;
constexpr std::uint8_t kind_token = 2;

static_assert(salt_bytes == crypto_pwhash_SALTBYTES &&
              nonce_bytes == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES &&
              tag_bytes == crypto_aead_xchacha20poly1305_ietf_ABYTES &&
              keychain_key_bytes == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);

Error damaged(std::string_view what) {
  return make_error(ErrorCode::Corrupt,
                    fmt::format("the wallet file is damaged ({}): restore it from your backup", what));
}

bool cost_in_bounds(const PassphraseCost& cost) {
  return cost.passes >= 1 && cost.passes <= PassphraseCost::max_passes &&
         cost.memory_kib >= PassphraseCost::min_memory_kib &&
         cost.memory_kib <= PassphraseCost::max_memory_kib;
}

Expected<void> check_material(Protection protection, ByteSpan material) {
  if (protection == Protection::Passphrase && material.empty()) {
    return make_error(ErrorCode::InvalidArgument, "the passphrase is empty");
  }
  if (protection == Protection::Passphrase && material.size() > max_passphrase_bytes) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the passphrase is longer than {} bytes", max_passphrase_bytes));
  }
  if (protection == Protection::Keychain && material.size() != keychain_key_bytes) {
    return make_error(ErrorCode::InvalidArgument, "the key from the desktop's keychain has a wrong size");
  }
  return {};
}

// The key that seals the secret part.
Expected<Secret> sealing_key(Protection protection, ByteSpan material, const PassphraseCost& cost,
                             const std::uint8_t* salt) {
  NS_RETURN_IF_ERROR(check_material(protection, material));
  if (protection == Protection::Keychain) return Secret::copy_of(material);
  Secret key(crypto_aead_xchacha20poly1305_ietf_KEYBYTES);
  const int failed = crypto_pwhash(
      key.bytes().data(), key.size(), reinterpret_cast<const char*>(material.data()), material.size(), salt,
      cost.passes, std::size_t{cost.memory_kib} << 10, crypto_pwhash_ALG_ARGON2ID13);
  if (failed != 0) {
    return make_error(
        ErrorCode::Exhausted,
        fmt::format("not enough memory to check the passphrase: {} MiB are required", cost.memory_kib >> 10));
  }
  return key;
}

void write_checksum(MutableByteSpan file) {
  const std::size_t covered = file.size() - checksum_bytes;
  const Hash256 checksum = sha256(ByteSpan(file.data(), covered));
  std::copy(checksum.begin(), checksum.end(), file.data() + covered);
}

// Everything that can be known without a key. `bytes` holds at least a header.
Expected<void> check_structure(ByteSpan bytes) {
  const std::uint8_t protection = bytes[protection_at];
  const std::uint8_t kind = bytes[secret_kind_at];
  if (protection > static_cast<std::uint8_t>(Protection::Keychain)) return damaged("unknown protection");
  if (kind != kind_entropy && kind != kind_token) return damaged("unknown kind of secret");
  const std::size_t secret = kind == kind_entropy ? mnemonic_entropy_bytes : token_bytes;
  const std::size_t expected = header_bytes + secret + (protection == 0 ? 0 : tag_bytes) + checksum_bytes;
  if (bytes.size() != expected || load_le<std::uint32_t>(bytes.data() + length_at) != expected) {
    return damaged("wrong length");
  }
  const Hash256 checksum = sha256(bytes.first(bytes.size() - checksum_bytes));
  if (!std::equal(checksum.begin(), checksum.end(), bytes.end() - checksum_bytes))
    return damaged("wrong checksum");
  const PassphraseCost cost{load_le<std::uint32_t>(bytes.data() + passes_at),
                            load_le<std::uint32_t>(bytes.data() + memory_at)};
  if (protection == static_cast<std::uint8_t>(Protection::Passphrase) && !cost_in_bounds(cost)) {
    return damaged("unreasonable Argon2id parameters");
  }
  return {};
}

}  // namespace

std::string_view to_string(Protection protection) {
  switch (protection) {
    case Protection::None: return "none";
    case Protection::Passphrase: return "passphrase";
    case Protection::Keychain: return "keychain";
  }
  return "unknown";
}

Expected<Protection> parse_protection(std::string_view text) {
  for (const Protection p : {Protection::None, Protection::Passphrase, Protection::Keychain}) {
    if (text == to_string(p)) return p;
  }
  return make_error(ErrorCode::InvalidArgument, "protection is one of none, passphrase and keychain");
}

Expected<Keystore> Keystore::seal(const WalletSecret& secret, const KeystoreLock& lock, WallTime created,
                                  Entropy& entropy) {
  const Protection protection = lock.protection;
  if (protection == Protection::Passphrase && !cost_in_bounds(lock.cost)) {
    return make_error(ErrorCode::InvalidArgument, "the cost of the passphrase is out of bounds");
  }
  const ByteSpan plain = secret.has_words() ? secret.entropy()->bytes() : secret.token().bytes();
  const std::size_t sealed_bytes = plain.size() + (protection == Protection::None ? 0 : tag_bytes);
  Secret file(header_bytes + sealed_bytes + checksum_bytes);
  std::uint8_t* bytes = file.bytes().data();
  std::copy(magic.begin(), magic.end(), bytes);
  store_le(bytes + version_at, format_version);
  store_le(bytes + length_at, static_cast<std::uint32_t>(file.size()));
  bytes[protection_at] = static_cast<std::uint8_t>(protection);
  bytes[secret_kind_at] = secret.has_words() ? kind_entropy : kind_token;
  store_le(bytes + created_at, std::int64_t{to_unix_ms(created)});
  if (protection == Protection::Passphrase) {
    store_le(bytes + passes_at, lock.cost.passes);
    store_le(bytes + memory_at, lock.cost.memory_kib);
  }
  const PublicKey key = secret.key().public_key();
  std::copy(key.begin(), key.end(), bytes + public_key_at);
  if (protection == Protection::None) {
    std::copy(plain.begin(), plain.end(), bytes + header_bytes);
  } else {
    entropy.fill({bytes + salt_at, salt_bytes});
    entropy.fill({bytes + nonce_at, nonce_bytes});
    NS_ASSIGN_OR_RETURN(const Secret sealing,
                        sealing_key(protection, lock.material, lock.cost, bytes + salt_at));
    crypto_aead_xchacha20poly1305_ietf_encrypt(bytes + header_bytes, nullptr, plain.data(), plain.size(),
                                               bytes, header_bytes, nullptr, bytes + nonce_at,
                                               sealing.bytes().data());
  }
  write_checksum(file.bytes());
  return decode(file.bytes());
}

bool Keystore::looks_like_one(ByteSpan bytes) {
  return bytes.size() >= magic.size() && as_text(bytes.first(magic.size())) == magic;
}

Expected<Keystore> Keystore::decode(ByteSpan bytes) {
  if (bytes.size() < header_bytes || !looks_like_one(bytes)) {
    return make_error(ErrorCode::Corrupt,
                      "this is not a wallet file or backup of NeuroShard, or it is truncated");
  }
  const auto version = load_le<std::uint32_t>(bytes.data() + version_at);
  if (version > format_version) {
    return make_error(ErrorCode::Unsupported,
                      "the wallet file was written by a newer version; update this program");
  }
  if (version != format_version) return damaged("impossible version");
  NS_RETURN_IF_ERROR(check_structure(bytes));
  Keystore keystore;
  keystore.file_ = Secret::copy_of(bytes);
  std::copy_n(bytes.data() + public_key_at, keystore.public_key_.size(), keystore.public_key_.begin());
  keystore.created_ = WallTime(std::chrono::milliseconds(load_le<std::int64_t>(bytes.data() + created_at)));
  keystore.protection_ = static_cast<Protection>(bytes[protection_at]);
  keystore.has_words_ = bytes[secret_kind_at] == kind_entropy;
  return keystore;
}

std::string Keystore::keychain_item() const {
  return to_hex(file_.bytes().subspan(salt_at, salt_bytes));
}

Expected<WalletSecret> Keystore::unlock(ByteSpan material) const {
  const ByteSpan file = file_.bytes();
  const ByteSpan sealed = file.subspan(header_bytes, file.size() - header_bytes - checksum_bytes);
  Secret plain;
  if (protection_ == Protection::None) {
    plain = Secret::copy_of(sealed);
  } else {
    const PassphraseCost cost{load_le<std::uint32_t>(file.data() + passes_at),
                              load_le<std::uint32_t>(file.data() + memory_at)};
    NS_ASSIGN_OR_RETURN(const Secret key, sealing_key(protection_, material, cost, file.data() + salt_at));
    plain = Secret(sealed.size() - tag_bytes);
    const int failed = crypto_aead_xchacha20poly1305_ietf_decrypt(
        plain.bytes().data(), nullptr, nullptr, sealed.data(), sealed.size(), file.data(), header_bytes,
        file.data() + nonce_at, key.bytes().data());
    if (failed != 0) {
      return make_error(ErrorCode::Denied,
                        protection_ == Protection::Passphrase
                            ? "wrong passphrase"
                            : "the key in the desktop's keychain does not open this wallet");
    }
  }
  NS_ASSIGN_OR_RETURN(WalletSecret secret, has_words_ ? WalletSecret::from_entropy(plain.bytes())
                                                      : WalletSecret::from_token(plain.bytes()));
  if (secret.key().public_key() != public_key_) return damaged("the secret belongs to another wallet");
  return secret;
}

}  // namespace neuroshard::crypto
