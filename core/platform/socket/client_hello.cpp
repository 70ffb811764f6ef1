#include "core/platform/socket/client_hello.h"

#include <optional>

namespace neuroshard::platform {
namespace {

constexpr std::size_t record_head = 5;
constexpr std::uint8_t client_hello = 1;
constexpr std::size_t version_and_random = 2 + 32;
constexpr std::size_t supported_versions = 43;
constexpr std::size_t tls13 = 0x0304;

class Cursor {
 public:
  explicit Cursor(ByteSpan left) : left_(left) {}
  std::optional<ByteSpan> take(std::size_t count) {
    if (count > left_.size()) return std::nullopt;
    const ByteSpan taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  std::optional<std::size_t> number(std::size_t bytes) {
    const auto taken = take(bytes);
    if (!taken) return std::nullopt;
    std::size_t value = 0;
    for (const std::uint8_t byte : *taken) value = value << 8 | byte;
    return value;
  }
  // The bytes behind a length field of so many bytes.
  std::optional<ByteSpan> counted(std::size_t bytes) {
    const auto length = number(bytes);
    return length ? take(*length) : std::nullopt;
  }
  bool done() const { return left_.empty(); }

 private:
  ByteSpan left_;
};

OfferedTls offered_in(ByteSpan versions) {
  const auto list = Cursor(versions).counted(1);
  if (!list) return OfferedTls::Unknown;
  for (Cursor each(*list); !each.done();) {
    const auto version = each.number(2);
    if (!version) return OfferedTls::Unknown;
    if (*version == tls13) return OfferedTls::Tls13;
  }
  return OfferedTls::Older;
}

}  // namespace

OfferedTls offered_tls(ByteSpan record) {
  Cursor outer(record);
  if (!outer.take(record_head) || outer.number(1) != client_hello) return OfferedTls::Unknown;
  const auto body = outer.counted(3);
  if (!body) return OfferedTls::Unknown;
  Cursor hello(*body);
  // Session, cipher suites, compression.
  if (!hello.take(version_and_random) || !hello.counted(1) || !hello.counted(2) || !hello.counted(1))
    return OfferedTls::Unknown;
  if (hello.done()) return OfferedTls::Older;  // without extensions, as before TLS 1.2
  const auto extensions = hello.counted(2);
  if (!extensions) return OfferedTls::Unknown;
  for (Cursor each(*extensions); !each.done();) {
    const auto type = each.number(2);
    const auto data = each.counted(2);
    if (!type || !data) return OfferedTls::Unknown;
    if (*type == supported_versions) return offered_in(*data);
  }
  return OfferedTls::Older;
}

}  // namespace neuroshard::platform
