// Reads a peer's bytes from front to back. Past the end it gives zeros and remembers that, so a decoder checks
// once.
//
// The fields of a record are a tuple of references (std::tie) in their order in its bytes: integers, arrays of
// bytes, and flags (u8, 0 or 1). The record's writer and its reader use the same tuple.
#pragma once

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "core/base/bytes.h"

namespace neuroshard {

class ByteReader {
 public:
  explicit ByteReader(ByteSpan bytes) : rest_(bytes) {}

  template <class T>
  T number() {
    const ByteSpan bytes = take(sizeof(T));
    return bytes.empty() ? T{} : load_le<T>(bytes.data());
  }
  template <class Array>
  Array array() {
    Array value{};
    const ByteSpan bytes = take(value.size());
    std::copy(bytes.begin(), bytes.end(), value.begin());
    return value;
  }
  bool flag() {
    const auto value = number<std::uint8_t>();
    if (value > 1) good_ = false;
    return value == 1;
  }
  template <class... Fields>
  void read(const std::tuple<Fields&...>& record) {
    std::apply([this](Fields&... fields) { (read_field(fields), ...); }, record);
  }
  // A count of things of at least `least_bytes` each: never more than the rest of the bytes can hold.
  std::size_t count(std::size_t least_bytes, std::size_t most) {
    const auto value = number<std::uint32_t>();
    if (value > most || value > rest_.size() / std::max<std::size_t>(1, least_bytes)) good_ = false;
    return good_ ? value : 0;
  }
  // A length u32, and as many bytes.
  ByteSpan part() { return take(number<std::uint32_t>()); }
  ByteSpan bytes(std::size_t count) { return take(count); }
  ByteSpan rest() { return take(rest_.size()); }
  void fail() { good_ = false; }
  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  template <class Field>
  void read_field(Field& field) {
    if constexpr (std::is_same_v<Field, bool>)
      field = flag();
    else if constexpr (std::is_integral_v<Field>)
      field = number<Field>();
    else
      field = array<Field>();
  }
  ByteSpan take(std::size_t count) {
    good_ = good_ && count <= rest_.size();
    if (!good_) return {};
    const ByteSpan bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }
  ByteSpan rest_;
  bool good_ = true;
};

template <class Array>
void append_array(Bytes& bytes, const Array& array) {
  bytes.insert(bytes.end(), array.begin(), array.end());
}
inline void append_flag(Bytes& bytes, bool flag) {
  bytes.push_back(flag ? 1 : 0);
}
template <class Field>
void append_field(Bytes& bytes, const Field& field) {
  if constexpr (std::is_same_v<Field, bool>)
    append_flag(bytes, field);
  else if constexpr (std::is_integral_v<Field>)
    append_le(bytes, field);
  else
    append_array(bytes, field);
}
template <class... Fields>
void append_record(Bytes& bytes, const std::tuple<Fields&...>& record) {
  std::apply([&bytes](const Fields&... fields) { (append_field(bytes, fields), ...); }, record);
}
template <class... Fields>
Bytes bytes_of(const std::tuple<Fields&...>& record) {
  Bytes bytes;
  append_record(bytes, record);
  return bytes;
}
inline void append_part(Bytes& bytes, ByteSpan part) {
  append_le(bytes, static_cast<std::uint32_t>(part.size()));
  bytes.insert(bytes.end(), part.begin(), part.end());
}

}  // namespace neuroshard
