#include "core/history/event_file.h"

#include <array>

namespace neuroshard::history {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = value;
  }
  return table;
}

// A message of protobuf's wire format: fields in the order in which they are added.
class Message {
 public:
  void real(std::uint32_t field, double value) {
    tag(field, 1);
    std::uint64_t bits = 0;
    static_assert(sizeof bits == sizeof value);
    std::memcpy(&bits, &value, sizeof bits);
    append_le(bytes_, bits);
  }
  void real(std::uint32_t field, float value) {
    tag(field, 5);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    append_le(bytes_, bits);
  }
  void number(std::uint32_t field, std::int64_t value) {
    tag(field, 0);
    varint(static_cast<std::uint64_t>(value));
  }
  void text(std::uint32_t field, std::string_view value) { bytes(field, as_bytes(value)); }
  void message(std::uint32_t field, const Message& inner) { bytes(field, inner.bytes_); }
  const Bytes& encoded() const { return bytes_; }

 private:
  void tag(std::uint32_t field, std::uint32_t kind) { varint(field << 3 | kind); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::uint8_t>(value | 0x80));
    bytes_.push_back(static_cast<std::uint8_t>(value));
  }
  void bytes(std::uint32_t field, ByteSpan value) {
    tag(field, 2);
    varint(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }

  Bytes bytes_;
};

void append_record(const Bytes& data, Bytes* file) {
  const std::size_t begin = file->size();
  append_le(*file, static_cast<std::uint64_t>(data.size()));
  append_le(*file, masked_crc32c({file->data() + begin, 8}));
  file->insert(file->end(), data.begin(), data.end());
  append_le(*file, masked_crc32c(data));
}

}  // namespace

std::uint32_t crc32c(ByteSpan bytes) {
  static constexpr std::array<std::uint32_t, 256> table = make_table();
  std::uint32_t value = 0xffffffffu;
  for (const std::uint8_t byte : bytes) value = (value >> 8) ^ table[(value ^ byte) & 0xff];
  return ~value;
}

std::uint32_t masked_crc32c(ByteSpan bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

void append_file_version(double wall_time, Bytes* file) {
  Message event;
  event.real(1, wall_time);
  event.text(3, "brain.Event:2");
  append_record(event.encoded(), file);
}

void append_scalars(double wall_time, std::int64_t step, const std::vector<Scalar>& scalars, Bytes* file) {
  Message summary;
  for (const Scalar& scalar : scalars) {
    Message value;
    value.text(1, scalar.tag);
    value.real(2, scalar.value);
    summary.message(1, value);
  }
  Message event;
  event.real(1, wall_time);
  event.number(2, step);
  event.message(5, summary);
  append_record(event.encoded(), file);
}

}  // namespace neuroshard::history
