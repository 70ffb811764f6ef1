// The bytes of an invitation (invite_link.h): numbers as LEB128 varints, texts as a varint of length and UTF-8.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/config/network_profile.h"

namespace neuroshard::config::detail {

class LinkWriter {
 public:
  void byte(std::uint8_t value) { bytes_.push_back(value); }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<std::uint8_t>(value) | 0x80);
    byte(static_cast<std::uint8_t>(value));
  }
  void raw(ByteSpan bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void text(std::string_view value) {
    number(value.size());
    raw(as_bytes(value));
  }
  void texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
  }
  template <std::size_t N>
  void optional(const std::optional<std::array<std::uint8_t, N>>& value) {
    byte(value ? 1 : 0);
    if (value) raw({value->data(), N});
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

// Reads on after an error and says so at the end: every member gives something within its bounds.
class LinkReader {
 public:
  explicit LinkReader(ByteSpan bytes) : rest_(bytes) {}

  std::uint8_t byte() {
    if (rest_.empty()) return fail<std::uint8_t>();
    const std::uint8_t value = rest_[0];
    rest_ = rest_.subspan(1);
    return value;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t piece = byte();
      // Ten pieces hold 70 bits; and the shortest form is the only one.
      if ((shift == 63 && piece > 1) || (shift > 0 && piece == 0)) return fail<std::uint64_t>();
      value |= static_cast<std::uint64_t>(piece & 0x7f) << shift;
      if ((piece & 0x80) == 0) return value;
    }
    return fail<std::uint64_t>();
  }
  ByteSpan raw(std::size_t size) {
    if (size > rest_.size()) return fail<ByteSpan>();
    const ByteSpan bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  std::string text(std::size_t most) {
    const std::uint64_t size = number();
    if (size > most) return fail<std::string>();
    return std::string(as_text(raw(static_cast<std::size_t>(size))));
  }
  std::vector<std::string> texts(std::size_t most) {
    const std::uint64_t count = number();
    std::vector<std::string> values;
    if (count > most) return fail<std::vector<std::string>>();
    for (std::uint64_t i = 0; i < count && good_; ++i) values.push_back(text(max_profile_text));
    return values;
  }
  template <std::size_t N>
  std::optional<std::array<std::uint8_t, N>> optional() {
    const std::uint8_t there = byte();
    if (there > 1) return fail<std::nullopt_t>(std::nullopt);
    if (there == 0) return std::nullopt;
    const ByteSpan bytes = raw(N);
    if (bytes.size() != N) return std::nullopt;
    std::array<std::uint8_t, N> value{};
    std::copy(bytes.begin(), bytes.end(), value.begin());
    return value;
  }
  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  template <class T>
  T fail(T value = T()) {
    good_ = false;
    rest_ = {};
    return value;
  }
  ByteSpan rest_;
  bool good_ = true;
};

}  // namespace neuroshard::config::detail
