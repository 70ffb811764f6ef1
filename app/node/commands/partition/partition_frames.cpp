#include "app/node/commands/partition/partition_frames.h"

#include <fmt/format.h>

#include <cstring>

#include "core/base/check.h"

namespace neuroshard::app {
namespace {

constexpr std::uint32_t magic = 0x4650534e;  // "NSPF"
constexpr auto last_kind = static_cast<std::uint32_t>(FrameKind::Failed);

// Distinguishes a header from other bytes in its place.
std::uint64_t mixed(std::uint32_t kind, std::uint64_t batch, std::uint64_t length) {
  std::uint64_t value = 0x9e3779b97f4a7c15u;
  for (const std::uint64_t part : {std::uint64_t{kind}, batch, length}) {
    value = (value ^ part) * 0xff51afd7ed558ccdu;
    value ^= value >> 32;
  }
  return value;
}

}  // namespace

Expected<void> FrameChannel::begin_payload() {
  const auto kind = load_le<std::uint32_t>(head_in_ + 4);
  const auto batch = load_le<std::uint64_t>(head_in_ + 8);
  const auto length = load_le<std::uint64_t>(head_in_ + 16);
  if (load_le<std::uint32_t>(head_in_) != magic || kind > last_kind ||
      load_le<std::uint64_t>(head_in_ + 24) != mixed(kind, batch, length)) {
    return make_error(ErrorCode::Corrupt, "another process sent an invalid frame");
  }
  if (length > limit_) {
    return make_error(
        ErrorCode::Exhausted,
        fmt::format("another process sent a frame of {} bytes; the limit is {}", length, limit_));
  }
  frame_.kind = static_cast<FrameKind>(kind);
  frame_.batch = batch;
  frame_.payload.resize(static_cast<std::size_t>(length));
  return {};
}

Expected<bool> FrameChannel::read() {
  while (!whole_) {
    const bool header = received_ < frame_header_bytes;
    const std::size_t at = header ? received_ : received_ - frame_header_bytes;
    const MutableByteSpan target = header ? MutableByteSpan(head_in_, frame_header_bytes).subspan(at)
                                          : MutableByteSpan(frame_.payload).subspan(at);
    if (!target.empty()) {
      NS_ASSIGN_OR_RETURN(const std::size_t count, socket_.read_some(target));
      if (count == 0) return false;
      received_ += count;
    }
    if (header && received_ == frame_header_bytes) NS_RETURN_IF_ERROR(begin_payload());
    whole_ = received_ >= frame_header_bytes && received_ == frame_header_bytes + frame_.payload.size();
  }
  return true;
}

void FrameChannel::drop_frame() {
  whole_ = false;
  received_ = 0;
}

Bytes FrameChannel::take_payload() {
  drop_frame();
  return std::move(frame_.payload);
}

void FrameChannel::swap_payload(Bytes& memory) {
  drop_frame();
  frame_.payload.swap(memory);
}

void FrameChannel::put(FrameKind kind, std::uint64_t batch, ByteSpan payload) {
  NS_CHECK(!sending());
  store_le<std::uint32_t>(head_out_, magic);
  store_le<std::uint32_t>(head_out_ + 4, static_cast<std::uint32_t>(kind));
  store_le<std::uint64_t>(head_out_ + 8, batch);
  store_le<std::uint64_t>(head_out_ + 16, payload.size());
  store_le<std::uint64_t>(head_out_ + 24, mixed(static_cast<std::uint32_t>(kind), batch, payload.size()));
  payload_ = payload;
  sent_ = 0;
}

Expected<void> FrameChannel::write() {
  while (sending()) {
    const bool header = sent_ < frame_header_bytes;
    const ByteSpan rest = header ? ByteSpan(head_out_, frame_header_bytes).subspan(sent_)
                                 : payload_.subspan(sent_ - frame_header_bytes);
    NS_ASSIGN_OR_RETURN(const std::size_t count, socket_.write_some(rest));
    if (count == 0) return {};
    sent_ += count;
  }
  return {};
}

}  // namespace neuroshard::app
