// Reads a peer's bytes from front to back; past the end it gives zeros and remembers that.
#pragma once

#include <algorithm>

#include "core/base/bytes.h"
#include "core/rounds/certificate.h"

namespace neuroshard::rounds {

class Reader {
 public:
  explicit Reader(ByteSpan bytes) : rest_(bytes) {}
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
  RoundSlot slot() {
    const auto kind = number<std::uint8_t>();
    if (kind > static_cast<std::uint8_t>(RoundSlot::Kind::Head)) good_ = false;
    RoundSlot slot;
    slot.kind = static_cast<RoundSlot::Kind>(kind);
    slot.layer = number<std::uint16_t>();
    slot.expert = number<std::uint16_t>();
    return slot;
  }
  // A length, and as many bytes.
  ByteSpan part() { return take(number<std::uint32_t>()); }
  ByteSpan rest() { return take(rest_.size()); }
  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
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
inline void append_slot(Bytes& bytes, const RoundSlot& slot) {
  bytes.push_back(static_cast<std::uint8_t>(slot.kind));
  append_le(bytes, slot.layer);
  append_le(bytes, slot.expert);
}
inline void append_part(Bytes& bytes, ByteSpan part) {
  append_le(bytes, static_cast<std::uint32_t>(part.size()));
  bytes.insert(bytes.end(), part.begin(), part.end());
}

}  // namespace neuroshard::rounds
