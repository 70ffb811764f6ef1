#include "core/outer/detail/delta_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::outer::detail {

// Remembers the first error of a source: a reader's Corrupt can be that of the source, whose file is too short,
// or say that the payload is not canonical.  Threads: one.
class WatchedSource final : public ByteSource {
 public:
  explicit WatchedSource(ByteSourcePtr source) : source_(std::move(source)) { NS_CHECK(source_ != nullptr); }
  std::uint64_t size() const override { return source_->size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    auto read = source_->read_at(offset, target);
    if (!read.ok() && !error_) error_ = read.error();
    return read;
  }
  ByteSpan view() const override { return source_->view(); }
  const std::optional<Error>& error() const { return error_; }

 private:
  const ByteSourcePtr source_;
  mutable std::optional<Error> error_;
};

PayloadRows::PayloadRows(const CodecOptions& codec, const std::vector<ByteSourcePtr>& payloads,
                         std::size_t count)
    : codec_(codec), count_(count), readable_(payloads.size(), true) {
  for (const ByteSourcePtr& payload : payloads)
    payloads_.push_back(std::make_shared<const WatchedSource>(payload));
}

PayloadRows::~PayloadRows() = default;

Expected<void> PayloadRows::begin(const std::vector<std::size_t>& which) {
  which_ = which;
  at_ = 0;
  readers_.clear();
  readers_.resize(which_.size());
  for (std::size_t i = 0; i < which_.size(); ++i) {
    auto opened = open_delta(codec_, payloads_[which_[i]], count_);
    if (opened.ok())
      readers_[i] = std::move(*opened);
    else
      NS_RETURN_IF_ERROR(give_up(i));
  }
  return {};
}

Expected<std::size_t> PayloadRows::next(std::size_t slice, const float** rows) {
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
    if (readers_[i]) {
      if (read(i, out, last).ok()) continue;
      NS_RETURN_IF_ERROR(give_up(i));
    }
    std::fill(out.begin(), out.end(), 0.0f);
  }
  at_ += values;
  return values;
}

Expected<void> PayloadRows::read(std::size_t i, Span<float> out, bool last) {
  for (std::size_t at = 0; at < out.size(); at += codec_chunk)
    NS_RETURN_IF_ERROR(readers_[i]->next(out.subspan(at, std::min(codec_chunk, out.size() - at))));
  if (last) return readers_[i]->finish();
  return {};
}

Expected<void> PayloadRows::give_up(std::size_t i) {
  readers_[i].reset();
  const std::optional<Error>& error = payloads_[which_[i]]->error();
  if (error) return *error;
  readable_[which_[i]] = false;
  return {};
}

}  // namespace neuroshard::outer::detail
