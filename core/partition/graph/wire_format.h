// The wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding), read in place.
//
// By hand and not by libprotobuf, for three reasons: linking it makes every command start 2.5 ms later; a
// model's weights, of which only the sizes matter here, would be copied; and LibTorch brings its own ONNX
// messages into the process, which must not be registered twice. Tests hold both sides against libprotobuf
// and Python's.
//
// Any bytes are safe: nothing is read outside the span, nothing allocated on a length's word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"

namespace neuroshard::partition {

enum class WireType : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

// The fields of one message, in the order of the bytes. Threads: one. The span must outlive the reader.
class WireReader {
 public:
  explicit WireReader(ByteSpan message) : rest_(message) {}

  // Moves to the next field. False at the end, and after damage: look at damaged() then.
  bool next();
  bool damaged() const { return damaged_; }

  std::uint32_t field() const { return field_; }
  WireType type() const { return type_; }
  // Of the field that next() moved to. Varints (also as signed two's complement), fixed values as their bits.
  std::uint64_t number() const { return number_; }
  std::int64_t integer() const { return static_cast<std::int64_t>(number_); }
  double real() const;  // a double or a float field; 0 for the other types
  ByteSpan bytes() const { return bytes_; }
  std::string_view text() const { return as_text(bytes_); }
  // Whether it is that field with that type; another type is damage to every reader of ours.
  bool is(std::uint32_t field, WireType type) const { return field_ == field && type_ == type; }

 private:
  bool varint(std::uint64_t* value);
  bool fail() {
    damaged_ = true;
    return false;
  }

  ByteSpan rest_;
  std::uint32_t field_ = 0;
  WireType type_ = WireType::Varint;
  std::uint64_t number_ = 0;
  ByteSpan bytes_;
  bool damaged_ = false;
};

// Whether a string field holds what proto3 allows: well-formed UTF-8 without surrogates.
bool is_utf8(std::string_view text);

// Calls visit(value) for each number of a repeated varint field, packed or not. False when damaged.
template <class Visit>
bool for_each_varint(const WireReader& field, Visit visit) {
  if (field.type() == WireType::Varint) {
    visit(field.number());
    return true;
  }
  if (field.type() != WireType::Bytes) return false;
  const ByteSpan packed = field.bytes();
  std::uint64_t value = 0;
  int shift = 0;
  for (const std::uint8_t byte : packed) {
    if (shift > 63) return false;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    shift += 7;
    if ((byte & 0x80) != 0) continue;
    visit(value);
    value = 0;
    shift = 0;
  }
  return shift == 0;
}

// Appends fields to a message. Zeros and empty texts are left out, as proto3 does.
class WireWriter {
 public:
  void varint(std::uint32_t field, std::uint64_t value);
  void real(std::uint32_t field, double value);
  void bytes(std::uint32_t field, ByteSpan value);  // also when empty
  void text(std::uint32_t field, std::string_view value) {
    if (!value.empty()) bytes(field, as_bytes(value));
  }
  // A value of a packed field.
  void raw_varint(std::uint64_t value);
  const Bytes& result() const { return result_; }
  Bytes take() { return std::move(result_); }

 private:
  void key(std::uint32_t field, WireType type) {
    raw_varint(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(type));
  }
  Bytes result_;
};

}  // namespace neuroshard::partition
