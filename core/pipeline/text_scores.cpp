#include "core/pipeline/text_scores.h"

#include <algorithm>
#include <cstring>

#include "core/base/byte_reader.h"
#include "core/base/check.h"

namespace neuroshard::pipeline {
namespace {

void append_double(Bytes& bytes, double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  append_le(bytes, bits);
}

double read_logprob(ByteReader& reader) {
  const auto bits = reader.number<std::uint64_t>();
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  if (!(value <= 0)) reader.fail();
  return value;
}

}  // namespace

compute::TokenScores PositionScores::view(const std::int32_t* targets, const TextScores& asked) {
  return {targets, logprobs.data(), asked.top, asked.vocabulary, top_tokens.data(), top_logprobs.data()};
}

void PositionScores::copy_to(std::size_t position, PositionScores& all) const {
  const std::size_t top = logprobs.empty() ? 0 : top_tokens.size() / logprobs.size();
  NS_CHECK(position + logprobs.size() <= all.logprobs.size());
  std::copy(logprobs.begin(), logprobs.end(), all.logprobs.begin() + static_cast<std::ptrdiff_t>(position));
  const auto at = static_cast<std::ptrdiff_t>(position * top);
  std::copy(top_tokens.begin(), top_tokens.end(), all.top_tokens.begin() + at);
  std::copy(top_logprobs.begin(), top_logprobs.end(), all.top_logprobs.begin() + at);
}

std::size_t scores_bytes(std::size_t positions, const TextScores& asked) {
  return positions * (sizeof(double) + asked.top * (sizeof(std::int32_t) + sizeof(double)));
}

void append_scores(const PositionScores& scores, Bytes& bytes) {
  for (const double value : scores.logprobs) append_double(bytes, value);
  for (std::size_t i = 0; i < scores.top_tokens.size(); ++i) {
    append_le(bytes, scores.top_tokens[i]);
    append_double(bytes, scores.top_logprobs[i]);
  }
}

Expected<PositionScores> read_scores(ByteSpan bytes, std::size_t positions, const TextScores& asked) {
  NS_CHECK(bytes.size() == scores_bytes(positions, asked));
  PositionScores scores(positions, asked);
  ByteReader reader(bytes);
  for (double& value : scores.logprobs) value = read_logprob(reader);
  for (std::size_t i = 0; i < scores.top_tokens.size(); ++i) {
    scores.top_tokens[i] = reader.number<std::int32_t>();
    scores.top_logprobs[i] = read_logprob(reader);
    if (scores.top_tokens[i] < -1 || scores.top_tokens[i] >= static_cast<std::int64_t>(asked.vocabulary))
      reader.fail();
  }
  if (!reader.at_end())
    return make_error(ErrorCode::Corrupt, "the scores of a text are no log-probabilities of its tokens");
  return scores;
}

}  // namespace neuroshard::pipeline
