#include "core/outer/error_feedback.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/outer/detail/codec_bodies.h"

namespace neuroshard::outer {
namespace {

// target += sign · what the payload carries. The payload is known to be good, or `target` may be spoilt.
Expected<void> add_decoded(ByteSpan payload, float sign, Span<float> target) {
  NS_ASSIGN_OR_RETURN(const auto reader,
                      detail::open_payload(detail::best_codec_kernels(), payload, target.size()));
  std::vector<float> chunk(codec_chunk);
  for (std::size_t at = 0; at < target.size(); at += codec_chunk) {
    const Span<float> part = target.subspan(at, std::min(codec_chunk, target.size() - at));
    NS_RETURN_IF_ERROR(reader->next({chunk.data(), part.size()}));
    for (std::size_t i = 0; i < part.size(); ++i) part[i] += sign * chunk[i];
  }
  return reader->finish();
}

// Whether a payload is good from end to end.
Expected<void> check_payload(ByteSpan payload, std::size_t count) {
  NS_ASSIGN_OR_RETURN(const auto reader, detail::open_payload(detail::best_codec_kernels(), payload, count));
  std::vector<float> chunk(codec_chunk);
  for (std::size_t at = 0; at < count; at += codec_chunk)
    NS_RETURN_IF_ERROR(reader->next({chunk.data(), std::min(codec_chunk, count - at)}));
  return reader->finish();
}

}  // namespace

ErrorFeedback::ErrorFeedback(std::size_t count, float beta) : beta_(beta), buffer_(count) {
  NS_CHECK(beta >= 0 && beta <= 1);
}

Expected<Bytes> ErrorFeedback::encode(const CodecOptions& options, Span<const float> delta) {
  if (delta.size() != buffer_.size())
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("A delta of {} values does not fit an error-feedback buffer of {}.",
                                  delta.size(), buffer_.size()));
  std::vector<float> wanted(delta.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = beta_ * buffer_[i] + delta[i];
  NS_ASSIGN_OR_RETURN(Bytes payload, outer::encode(options, wanted));
  const auto subtracted = add_decoded(payload, -1.0f, wanted);
  NS_CHECK(subtracted.ok());
  buffer_.swap(wanted);
  return payload;
}

Expected<void> ErrorFeedback::roll_back(ByteSpan payload) {
  NS_RETURN_IF_ERROR(check_payload(payload, buffer_.size()));
  return add_decoded(payload, 1.0f, buffer_);
}

Expected<void> ErrorFeedback::restore(Span<const float> buffer) {
  const bool finite =
      std::all_of(buffer.begin(), buffer.end(), [](float value) { return std::isfinite(value); });
  if (buffer.size() != buffer_.size() || !finite)
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("An error-feedback buffer of {} finite values is needed; this one has {}{}.",
                    buffer_.size(), buffer.size(), finite ? "" : ", some of them not finite"));
  std::copy(buffer.begin(), buffer.end(), buffer_.begin());
  return {};
}

}  // namespace neuroshard::outer
