#include "core/nat/stun_message.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/hmac.h"
#include "core/nat/detail/big_endian.h"

namespace neuroshard::nat::stun {
namespace {

using detail::load_be16;
using detail::load_be32;
using detail::store_be16;
using detail::store_be32;
using platform::Endpoint;
using platform::IpAddress;

constexpr std::size_t attribute_header = 4;
constexpr std::uint32_t fingerprint_xor = 0x5354554e;  // "STUN"
constexpr std::uint8_t family_v4 = 1, family_v6 = 2;
constexpr std::size_t v4_size = 8, v6_size = 20;  // of an address attribute

std::size_t padded(std::size_t size) {
  return (size + 3) & ~std::size_t{3};
}

// CRC-32 of ITU V.42 (RFC 8489 §14.7). Messages are short and few: no table.
std::uint32_t crc32(ByteSpan bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0xedb88320u : crc >> 1;
  }
  return ~crc;
}

// Methods are spread around the two class bits: M11…M7 C1 M6 M5 M4 C0 M3…M0.
std::uint16_t type_of(Class message_class, Method method) {
  const auto m = static_cast<std::uint16_t>(method);
  const auto c = static_cast<std::uint16_t>(message_class);
  return static_cast<std::uint16_t>((m & 0xf) | (m & 0x70) << 1 | (m & 0xf80) << 2 | (c & 1) << 4 |
                                    (c & 2) << 7);
}

Error corrupt(std::string what) {
  return make_error(ErrorCode::Corrupt, "this is not a STUN message: " + std::move(what));
}

// An address attribute; `mask` is all zeros for MAPPED-ADDRESS.
std::optional<Endpoint> read_address(ByteSpan value, const std::array<std::uint8_t, 16>& mask) {
  if (value.size() != v4_size && value.size() != v6_size) return std::nullopt;
  const bool six = value.size() == v6_size;
  if (value[1] != (six ? family_v6 : family_v4)) return std::nullopt;
  Endpoint endpoint;
  endpoint.port = static_cast<std::uint16_t>(load_be16(value.data() + 2) ^ load_be16(mask.data()));
  if (!six) endpoint.ip = IpAddress::v4(0, 0, 0, 0);
  const std::size_t first = six ? 0 : 12;
  for (std::size_t i = first; i < 16; ++i)
    endpoint.ip.bytes[i] = static_cast<std::uint8_t>(value[4 + i - first] ^ mask[i - first]);
  return endpoint;
}

std::array<std::uint8_t, 16> xor_mask(const TransactionId& transaction) {
  std::array<std::uint8_t, 16> mask{};
  store_be32(mask.data(), magic_cookie);
  std::copy(transaction.begin(), transaction.end(), mask.begin() + 4);
  return mask;
}

}  // namespace

Expected<std::size_t> message_size(ByteSpan beginning) {
  NS_CHECK(beginning.size() >= 4);
  if ((beginning[0] & 0xc0) != 0) return corrupt("its first two bits are not 0");
  const std::size_t length = load_be16(beginning.data() + 2);
  if (length % 4 != 0) return corrupt("its length is not a multiple of 4");
  if (header_bytes + length > max_message_bytes) {
    return corrupt(fmt::format("it claims {} bytes, more than {}", header_bytes + length, max_message_bytes));
  }
  return header_bytes + length;
}

Expected<Message> Message::parse(ByteSpan bytes) {
  if (bytes.size() < header_bytes) return corrupt("it is shorter than a header");
  NS_ASSIGN_OR_RETURN(const std::size_t size, message_size(bytes));
  if (size != bytes.size()) return corrupt("its length is not that of what arrived");
  if (load_be32(bytes.data() + 4) != magic_cookie) return corrupt("the magic cookie is wrong");
  Message message;
  message.bytes_ = bytes;
  const std::uint16_t type = load_be16(bytes.data());
  message.class_ = static_cast<Class>((type >> 4 & 1) | (type >> 7 & 2));
  message.method_ = static_cast<Method>((type & 0xf) | (type >> 1 & 0x70) | (type >> 2 & 0xf80));
  std::copy_n(bytes.data() + 8, message.transaction_.size(), message.transaction_.begin());
  NS_RETURN_IF_ERROR(message.walk());
  return message;
}

Expected<void> Message::walk() {
  covered_end_ = bytes_.size();
  std::size_t count = 0;
  bool sealed = false;
  for (std::size_t at = header_bytes; at < bytes_.size();) {
    if (++count > max_attributes)
      return corrupt(fmt::format("it has more than {} attributes", max_attributes));
    if (fingerprint_) return corrupt("something follows its fingerprint");
    if (bytes_.size() - at < attribute_header) return corrupt("an attribute is cut off");
    const auto type = static_cast<Attribute>(load_be16(bytes_.data() + at));
    const std::size_t size = load_be16(bytes_.data() + at + 2);
    if (padded(size) > bytes_.size() - at - attribute_header) return corrupt("an attribute is cut off");
    if (type == Attribute::MessageIntegrity || type == Attribute::MessageIntegritySha256) {
      if (!sealed) covered_end_ = at;
      sealed = true;
    } else if (type == Attribute::Fingerprint) {
      if (size != 4) return corrupt("its fingerprint is not 4 bytes long");
      if (load_be32(bytes_.data() + at + 4) != (crc32(bytes_.first(at)) ^ fingerprint_xor))
        return corrupt("its fingerprint does not match");
      fingerprint_ = true;
      if (!sealed) covered_end_ = at;
    }
    at += attribute_header + padded(size);
  }
  return {};
}

std::optional<Message::Place> Message::place(Attribute attribute, std::size_t end) const {
  for (std::size_t at = header_bytes; at < end;) {
    const std::size_t size = load_be16(bytes_.data() + at + 2);
    if (load_be16(bytes_.data() + at) == static_cast<std::uint16_t>(attribute)) return Place{at, size};
    at += attribute_header + padded(size);
  }
  return std::nullopt;
}

std::optional<ByteSpan> Message::find(Attribute attribute) const {
  const auto found = place(attribute, covered_end_);
  if (!found) return std::nullopt;
  return bytes_.subspan(found->at + attribute_header, found->size);
}

std::optional<std::uint32_t> Message::number(Attribute attribute) const {
  const auto value = find(attribute);
  if (!value || value->size() != 4) return std::nullopt;
  return load_be32(value->data());
}

std::optional<std::string_view> Message::text(Attribute attribute) const {
  const auto value = find(attribute);
  if (!value) return std::nullopt;
  return as_text(*value);
}

std::optional<Endpoint> Message::xor_address(Attribute attribute) const {
  const auto value = find(attribute);
  if (!value) return std::nullopt;
  return read_address(*value, xor_mask(transaction_));
}

std::optional<Endpoint> Message::mapped_address() const {
  if (const auto endpoint = xor_address(Attribute::XorMappedAddress)) return endpoint;
  const auto value = find(Attribute::MappedAddress);
  if (!value) return std::nullopt;
  return read_address(*value, {});
}

std::optional<FailureCode> Message::failure() const {
  const auto value = find(Attribute::ErrorCode);
  if (!value || value->size() < 4) return std::nullopt;
  const int hundreds = (*value)[2] & 7, rest = (*value)[3];
  if (hundreds < 3 || hundreds > 6 || rest > 99) return std::nullopt;
  return FailureCode{hundreds * 100 + rest, as_text(value->subspan(4))};
}

bool Message::authentic(ByteSpan key) const {
  // The code covers everything before it, with a length that ends right after it (RFC 8489 §14.5, §14.6).
  const auto matches = [&](const Place& place, auto hmac) {
    std::array<std::uint8_t, max_message_bytes> copy;
    std::copy_n(bytes_.data(), place.at, copy.begin());
    store_be16(copy.data() + 2,
               static_cast<std::uint16_t>(place.at + attribute_header + padded(place.size) - header_bytes));
    const auto code = hmac(key, ByteSpan(copy.data(), place.at));
    // RFC 8489 allows SHA-256 codes that are cut to 16 bytes; this accepts whole ones only.
    return crypto::equal_in_constant_time(bytes_.subspan(place.at + attribute_header, place.size), code);
  };
  if (const auto sha256 = place(Attribute::MessageIntegritySha256, bytes_.size()))
    return matches(*sha256, crypto::hmac_sha256);
  if (const auto sha1 = place(Attribute::MessageIntegrity, bytes_.size()))
    return matches(*sha1, crypto::hmac_sha1);
  return false;
}

MessageWriter::MessageWriter(Class message_class, Method method, const TransactionId& transaction)
    : bytes_(header_bytes) {
  store_be16(bytes_.data(), type_of(message_class, method));
  store_be32(bytes_.data() + 4, magic_cookie);
  std::copy(transaction.begin(), transaction.end(), bytes_.begin() + 8);
}

void MessageWriter::set_length(std::size_t length) {
  NS_CHECK(header_bytes + length <= max_message_bytes);
  store_be16(bytes_.data() + 2, static_cast<std::uint16_t>(length));
}

MessageWriter& MessageWriter::add(Attribute attribute, ByteSpan value) {
  const std::size_t at = bytes_.size();
  bytes_.resize(at + attribute_header + padded(value.size()));
  store_be16(bytes_.data() + at, static_cast<std::uint16_t>(attribute));
  store_be16(bytes_.data() + at + 2, static_cast<std::uint16_t>(value.size()));
  std::copy(value.begin(), value.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at + attribute_header));
  set_length(bytes_.size() - header_bytes);
  return *this;
}

MessageWriter& MessageWriter::add_number(Attribute attribute, std::uint32_t value) {
  std::array<std::uint8_t, 4> bytes{};
  store_be32(bytes.data(), value);
  return add(attribute, bytes);
}

MessageWriter& MessageWriter::add_xor_address(Attribute attribute, const Endpoint& endpoint) {
  TransactionId transaction{};
  std::copy_n(bytes_.begin() + 8, transaction.size(), transaction.begin());
  const auto mask = xor_mask(transaction);
  const bool six = !endpoint.ip.is_v4();
  std::array<std::uint8_t, v6_size> value{};
  value[1] = six ? family_v6 : family_v4;
  store_be16(value.data() + 2, static_cast<std::uint16_t>(endpoint.port ^ load_be16(mask.data())));
  const std::size_t first = six ? 0 : 12;
  for (std::size_t i = first; i < 16; ++i)
    value[4 + i - first] = static_cast<std::uint8_t>(endpoint.ip.bytes[i] ^ mask[i - first]);
  return add(attribute, ByteSpan(value.data(), six ? v6_size : v4_size));
}

MessageWriter& MessageWriter::add_failure(int code, std::string_view reason) {
  Bytes value = {0, 0, static_cast<std::uint8_t>(code / 100), static_cast<std::uint8_t>(code % 100)};
  value.insert(value.end(), reason.begin(), reason.end());
  return add(Attribute::ErrorCode, value);
}

MessageWriter& MessageWriter::sign_sha1(ByteSpan key) {
  set_length(bytes_.size() + attribute_header + 20 - header_bytes);
  return add(Attribute::MessageIntegrity, crypto::hmac_sha1(key, bytes_));
}

MessageWriter& MessageWriter::sign_sha256(ByteSpan key) {
  set_length(bytes_.size() + attribute_header + 32 - header_bytes);
  return add(Attribute::MessageIntegritySha256, crypto::hmac_sha256(key, bytes_));
}

MessageWriter& MessageWriter::add_fingerprint() {
  set_length(bytes_.size() + attribute_header + 4 - header_bytes);
  return add_number(Attribute::Fingerprint, crc32(bytes_) ^ fingerprint_xor);
}

std::array<std::uint8_t, 16> long_term_key(std::string_view username, std::string_view realm,
                                           std::string_view password) {
  return crypto::md5(as_bytes(fmt::format("{}:{}:{}", username, realm, password)));
}

}  // namespace neuroshard::nat::stun
