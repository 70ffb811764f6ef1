#include "core/outer/error_feedback.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/outer/detail/codec_bodies.h"
#include "core/outer/detail/value_parts.h"

namespace neuroshard::outer {
namespace {

// beta·e + delta, part by part. Both stay the caller's.
ValueSource wanted_of(float beta, const ValueSource& buffer, const ValueSource& delta) {
  return {delta.count, [beta, &buffer, &delta](std::uint64_t first, Span<float> out) -> Expected<void> {
            NS_RETURN_IF_ERROR(delta.read(first, out));
            std::vector<float> kept(std::min(out.size(), codec_chunk));
            for (std::size_t at = 0; at < out.size(); at += codec_chunk) {
              const Span<float> part = out.subspan(at, std::min(codec_chunk, out.size() - at));
              const Span<float> before(kept.data(), part.size());
              NS_RETURN_IF_ERROR(buffer.read(first + at, before));
              for (std::size_t i = 0; i < part.size(); ++i) part[i] = beta * before[i] + part[i];
            }
            return {};
          }};
}

ValueSource zeros(std::uint64_t count) {
  return {count, [](std::uint64_t, Span<float> out) -> Expected<void> {
            std::fill(out.begin(), out.end(), 0.0f);
            return {};
          }};
}

// values + sign · what the payload carries, in a new item.
Expected<ByteSourcePtr> add_decoded(Spool& spool, const CodecOptions& options, const ByteSourcePtr& payload,
                                    float sign, const ValueSource& values) {
  NS_ASSIGN_OR_RETURN(const auto reader, open_delta(options, payload, values.count));
  NS_ASSIGN_OR_RETURN(const auto item, spool.create(values.count * sizeof(float)));
  const WriteValues write = write_to(*item, 0);
  std::vector<float> decoded(codec_chunk);
  const auto add = [&](std::uint64_t first, Span<float> part) -> Expected<void> {
    for (std::size_t at = 0; at < part.size(); at += codec_chunk) {
      const std::size_t count = std::min(codec_chunk, part.size() - at);
      NS_RETURN_IF_ERROR(reader->next({decoded.data(), count}));
      for (std::size_t i = 0; i < count; ++i) part[at + i] += sign * decoded[i];
    }
    return write(first, part);
  };
  NS_RETURN_IF_ERROR(detail::each_part(values, add));
  NS_RETURN_IF_ERROR(reader->finish());
  return item->finish(values.count * sizeof(float));
}

}  // namespace

ErrorFeedback::ErrorFeedback(std::uint64_t count, float beta, Spool& spool)
    : count_(count), beta_(beta), spool_(&spool) {
  NS_CHECK(beta >= 0 && beta <= 1);
}

ValueSource ErrorFeedback::kept() const {
  return buffer_ == nullptr ? zeros(count_) : values_of(buffer_, 0, count_);
}

Expected<ByteSourcePtr> ErrorFeedback::encode(const CodecOptions& options, const ValueSource& delta) {
  if (delta.count != count_)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("A delta of {} values does not fit an error-feedback buffer of {}.",
                                  delta.count, count_));
  NS_RETURN_IF_ERROR(detail::check_encodable(options, count_));
  const ValueSource before = kept();
  const ValueSource wanted = wanted_of(beta_, before, delta);
  NS_ASSIGN_OR_RETURN(const auto item, spool_->create(max_payload_bytes(options, count_)));
  NS_ASSIGN_OR_RETURN(const std::uint64_t bytes, outer::encode(options, wanted, *item));
  NS_ASSIGN_OR_RETURN(ByteSourcePtr payload, item->finish(bytes));
  NS_ASSIGN_OR_RETURN(buffer_, add_decoded(*spool_, options, payload, -1.0f, wanted));
  return payload;
}

Expected<void> ErrorFeedback::roll_back(const CodecOptions& options, const ByteSourcePtr& payload) {
  NS_ASSIGN_OR_RETURN(buffer_, add_decoded(*spool_, options, payload, 1.0f, kept()));
  return {};
}

Expected<void> ErrorFeedback::restore(ByteSourcePtr buffer) {
  bool finite = true;
  if (buffer != nullptr && buffer->size() == count_ * sizeof(float)) {
    const auto look = [&](std::uint64_t, Span<float> part) -> Expected<void> {
      for (const float value : part) finite &= std::isfinite(value);
      return {};
    };
    NS_RETURN_IF_ERROR(detail::each_part(values_of(buffer, 0, count_), look));
  } else if (buffer != nullptr) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("An error-feedback buffer of {} values is needed; this one has {} bytes.",
                                  count_, buffer->size()));
  }
  if (!finite)
    return make_error(ErrorCode::InvalidArgument,
                      "An error-feedback buffer of finite values is needed; some of these are not.");
  buffer_ = std::move(buffer);
  return {};
}

}  // namespace neuroshard::outer
