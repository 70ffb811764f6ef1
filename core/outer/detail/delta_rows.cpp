#include "core/outer/detail/delta_rows.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/outer/detail/codec_bodies.h"

namespace neuroshard::outer::detail {

PayloadRows::PayloadRows(const CodecOptions& codec, std::vector<ByteSpan> payloads, std::size_t count)
    : codec_(codec), payloads_(std::move(payloads)), count_(count), readable_(payloads_.size(), true) {}

PayloadRows::~PayloadRows() = default;

void PayloadRows::begin(const std::vector<std::size_t>& which) {
  which_ = which;
  at_ = 0;
  readers_.clear();
  readers_.resize(which_.size());
  for (std::size_t i = 0; i < which_.size(); ++i) {
    auto opened = open_payload(best_codec_kernels(), codec_, payloads_[which_[i]], count_);
    if (opened.ok())
      readers_[i] = std::move(*opened);
    else
      readable_[which_[i]] = false;
  }
}

std::size_t PayloadRows::next(std::size_t slice, const float** rows) {
  NS_CHECK(at_ < count_ && slice % codec_chunk == 0);
  const std::size_t values = std::min(slice, count_ - at_), needed = std::min(slice, count_) * which_.size();
  if (room_values_ < needed) {
    room_ = room_for<float>(needed);
    room_values_ = needed;
  }
  const bool last = at_ + values == count_;
  for (std::size_t i = 0; i < which_.size(); ++i) {
    const Span<float> out(room_.get() + i * values, values);
    rows[i] = out.data();
    if (readers_[i] && read(i, out, last)) continue;
    readers_[i].reset();
    readable_[which_[i]] = false;
    std::fill(out.begin(), out.end(), 0.0f);
  }
  at_ += values;
  return values;
}

bool PayloadRows::read(std::size_t i, Span<float> out, bool last) {
  for (std::size_t at = 0; at < out.size(); at += codec_chunk)
    if (!readers_[i]->next(out.subspan(at, std::min(codec_chunk, out.size() - at))).ok()) return false;
  return !last || readers_[i]->finish().ok();
}

}  // namespace neuroshard::outer::detail
