// Where the values of one aggregation's deltas are: in memory, or in payloads that are decoded as they are
// read. A pass over them reads slice after slice, so that encoded deltas never stand in memory as a whole.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/span.h"
#include "core/outer/codec.h"

namespace neuroshard::outer::detail {

// Threads: one.
class DeltaRows {
 public:
  virtual ~DeltaRows() = default;
  virtual std::size_t count() const = 0;  // values of a row
  // Begins a pass over these rows.  Errors, as of next(): those of the disk that the rows are on.
  virtual Expected<void> begin(const std::vector<std::size_t>& which) = 0;
  // The next values of each of them: their number, which is a multiple of `slice` (itself one of codec_chunk)
  // except at the end of the rows. Sets rows [which.size()], good until the next call. Not called at the end.
  virtual Expected<std::size_t> next(std::size_t slice, const float** rows) = 0;
  // Known after a whole pass over the row. The values of a row that is not readable mean nothing, but are
  // finite.
  virtual bool readable(std::size_t) const { return true; }
};

// Rows that stay the caller's, `count` values each; a slice is all of them.
class MemoryRows final : public DeltaRows {
 public:
  MemoryRows(std::vector<const float*> rows, std::size_t count) : rows_(std::move(rows)), count_(count) {}
  std::size_t count() const override { return count_; }
  Expected<void> begin(const std::vector<std::size_t>& which) override {
    which_ = which;
    return {};
  }
  Expected<std::size_t> next(std::size_t, const float** rows) override {
    for (std::size_t i = 0; i < which_.size(); ++i) rows[i] = rows_[which_[i]];
    return count_;
  }

 private:
  std::vector<const float*> rows_;
  std::size_t count_;
  std::vector<std::size_t> which_;
};

// Room for kernels, from the start of a cache line on: a vector that lies across two lines costs twice.
struct DeleteAligned {
  static constexpr std::align_val_t line{64};
  template <class T>
  void operator()(T* values) const {
    ::operator delete[](values, line);
  }
};
template <class T>
using AlignedRoom = std::unique_ptr<T[], DeleteAligned>;
template <class T>
AlignedRoom<T> room_for(std::size_t values) {
  return AlignedRoom<T>(new (DeleteAligned::line) T[values]);
}

class WatchedSource;

// Payloads of one codec; one slice of each row is in memory. A payload whose source fails is not judged: others
// may read theirs, and all have to judge equally.
class PayloadRows final : public DeltaRows {
 public:
  PayloadRows(const CodecOptions& codec, const std::vector<ByteSourcePtr>& payloads, std::size_t count);
  ~PayloadRows() override;
  std::size_t count() const override { return count_; }
  Expected<void> begin(const std::vector<std::size_t>& which) override;
  Expected<std::size_t> next(std::size_t slice, const float** rows) override;
  bool readable(std::size_t row) const override { return readable_[row]; }

 private:
  // Corrupt: it can't be decoded from here on, unless its source has an error.
  Expected<void> read(std::size_t i, Span<float> out, bool last);
  // The error of the row's source, or nothing: then the row is not readable.
  Expected<void> give_up(std::size_t i);

  const CodecOptions codec_;
  std::vector<std::shared_ptr<const WatchedSource>> payloads_;
  const std::size_t count_;
  std::vector<bool> readable_;  // as far as is known
  std::vector<std::size_t> which_;
  std::vector<std::unique_ptr<DeltaReader>> readers_;  // of which_; null: not readable
  std::size_t at_ = 0;
  AlignedRoom<float> room_;
  std::size_t room_values_ = 0;
};

}  // namespace neuroshard::outer::detail
