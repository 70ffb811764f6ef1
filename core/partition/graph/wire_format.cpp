#include "core/partition/graph/wire_format.h"

#include <cstring>

namespace neuroshard::partition {
namespace {

constexpr std::uint32_t max_field = (1u << 29) - 1;

}  // namespace

bool WireReader::varint(std::uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return false;
    const std::uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    *value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

bool WireReader::next() {
  if (damaged_ || rest_.empty()) return false;
  std::uint64_t key = 0;
  if (!varint(&key) || key >> 3 == 0 || key >> 3 > max_field) return fail();
  field_ = static_cast<std::uint32_t>(key >> 3);
  number_ = 0;
  bytes_ = {};
  switch (key & 7) {
    case 0: type_ = WireType::Varint; return varint(&number_) || fail();
    case 1:
      type_ = WireType::Fixed64;
      if (rest_.size() < 8) return fail();
      number_ = load_le<std::uint64_t>(rest_.data());
      rest_ = rest_.subspan(8);
      return true;
    case 2: {
      type_ = WireType::Bytes;
      std::uint64_t length = 0;
      if (!varint(&length) || length > rest_.size()) return fail();
      bytes_ = rest_.first(static_cast<std::size_t>(length));
      rest_ = rest_.subspan(static_cast<std::size_t>(length));
      return true;
    }
    case 5:
      type_ = WireType::Fixed32;
      if (rest_.size() < 4) return fail();
      number_ = load_le<std::uint32_t>(rest_.data());
      rest_ = rest_.subspan(4);
      return true;
    default: return fail();  // groups: nobody writes them any more
  }
}

double WireReader::real() const {
  if (type_ == WireType::Fixed64) {
    double value = 0;
    std::memcpy(&value, &number_, sizeof(value));
    return value;
  }
  if (type_ != WireType::Fixed32) return 0;
  const auto bits = static_cast<std::uint32_t>(number_);
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return static_cast<double>(value);
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto at = [&](std::size_t k) { return static_cast<std::uint8_t>(text[k]); };
    const std::uint8_t lead = at(i);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xc2 ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((at(i + k) & 0xc0) != 0x80) return false;
    }
    // Overlong forms, surrogates, beyond U+10FFFF.
    if ((lead == 0xe0 && at(i + 1) < 0xa0) || (lead == 0xed && at(i + 1) > 0x9f) ||
        (lead == 0xf0 && at(i + 1) < 0x90) || (lead == 0xf4 && at(i + 1) > 0x8f))
      return false;
    i += length;
  }
  return true;
}

void WireWriter::raw_varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) result_.push_back(static_cast<std::uint8_t>(value | 0x80));
  result_.push_back(static_cast<std::uint8_t>(value));
}

void WireWriter::varint(std::uint32_t field, std::uint64_t value) {
  if (value == 0) return;
  key(field, WireType::Varint);
  raw_varint(value);
}

void WireWriter::real(std::uint32_t field, double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  if (bits == 0) return;
  key(field, WireType::Fixed64);
  append_le(result_, bits);
}

void WireWriter::bytes(std::uint32_t field, ByteSpan value) {
  key(field, WireType::Bytes);
  raw_varint(value.size());
  result_.insert(result_.end(), value.begin(), value.end());
}

}  // namespace neuroshard::partition
