#include "core/crypto/minisign.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/detail/sodium.h"

namespace neuroshard::crypto {
namespace {

constexpr std::string_view untrusted_head = "untrusted comment: ", trusted_head = "trusted comment: ";
constexpr std::size_t kind_bytes = 2, id_bytes = std::tuple_size_v<MinisignKeyId>;
constexpr std::size_t key_bytes = kind_bytes + id_bytes + std::tuple_size_v<PublicKey>;
constexpr std::size_t signature_bytes = kind_bytes + id_bytes + std::tuple_size_v<Signature>;

Error damaged(std::string_view what) {
  return make_error(ErrorCode::Corrupt, fmt::format("this is not a signature of minisign: {}", what));
}

// Exactly `size` bytes in base64 with its padding, as every implementation writes them.
bool decode(std::string_view text, MutableByteSpan into) {
  std::size_t length = 0;
  const char* end = nullptr;
  return sodium_base642bin(into.data(), into.size(), text.data(), text.size(), nullptr, &length, &end,
                           sodium_base64_VARIANT_ORIGINAL) == 0 &&
         length == into.size() && end == text.data() + text.size();
}

// The text up to the next end of line, which is taken away with it. The last line may lack its end.
std::string_view take_line(std::string_view* text) {
  const std::size_t end = text->find('\n');
  std::string_view line = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

template <std::size_t size>
void copy(const std::uint8_t* from, std::array<std::uint8_t, size>* into) {
  std::copy_n(from, size, into->begin());
}

}  // namespace

Expected<MinisignKey> parse_minisign_key(std::string_view text) {
  std::array<std::uint8_t, key_bytes> bytes{};
  if (!decode(text, bytes) || bytes[0] != 'E' || bytes[1] != 'd')
    return make_error(
        ErrorCode::InvalidArgument,
        "this is not a public key of minisign: its second line is wanted, which begins with RW");
  MinisignKey key;
  copy(bytes.data() + kind_bytes, &key.id);
  copy(bytes.data() + kind_bytes + id_bytes, &key.key);
  return key;
}

Expected<MinisignSignature> parse_minisign_signature(ByteSpan bytes) {
  if (bytes.size() > max_minisign_bytes) return damaged("it is too large");
  std::string_view text = as_text(bytes);
  if (text.find('\0') != std::string_view::npos) return damaged("it is not text");
  const std::string_view untrusted = take_line(&text), first = take_line(&text);
  const std::string_view trusted = take_line(&text), second = take_line(&text);
  if (untrusted.substr(0, untrusted_head.size()) != untrusted_head)
    return damaged("its first line is not an untrusted comment");
  std::array<std::uint8_t, signature_bytes> head{};
  if (!decode(first, head)) return damaged("its second line holds no signature");
  if (head[0] == 'E' && head[1] == 'd')
    return make_error(ErrorCode::Unsupported,
                      "the signature is of minisign's older kind, which is not accepted; sign without -l");
  if (head[0] != 'E' || head[1] != 'D') return damaged("its kind is unknown");
  if (trusted.substr(0, trusted_head.size()) != trusted_head)
    return damaged("its third line is not a trusted comment");
  MinisignSignature signature;
  if (!decode(second, signature.of_all)) return damaged("its fourth line holds no signature");
  if (!text.empty()) return damaged("more follows after its fourth line");
  copy(head.data() + kind_bytes, &signature.key_id);
  copy(head.data() + kind_bytes + id_bytes, &signature.of_hash);
  signature.trusted_comment = trusted.substr(trusted_head.size());
  return signature;
}

Expected<void> verify_minisign(const MinisignKey& key, ByteSpan file, const MinisignSignature& signature) {
  detail::require_sodium();
  if (signature.key_id != key.id)
    return make_error(ErrorCode::Denied, "the signature was made with another key");
  std::array<std::uint8_t, crypto_generichash_BYTES_MAX> hash{};
  static_assert(hash.size() == 64);
  crypto_generichash(hash.data(), hash.size(), file.data(), file.size(), nullptr, 0);
  if (crypto_sign_verify_detached(signature.of_hash.data(), hash.data(), hash.size(), key.key.data()) != 0)
    return make_error(ErrorCode::Denied, "the file is not the one that was signed");
  Bytes all(signature.of_hash.begin(), signature.of_hash.end());
  all.insert(all.end(), signature.trusted_comment.begin(), signature.trusted_comment.end());
  if (crypto_sign_verify_detached(signature.of_all.data(), all.data(), all.size(), key.key.data()) != 0)
    return make_error(ErrorCode::Denied, "the comment of the signature is not the one that was signed");
  return {};
}

}  // namespace neuroshard::crypto
