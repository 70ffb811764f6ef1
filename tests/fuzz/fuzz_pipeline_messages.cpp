// Messages and rows of a pipeline: an accepted message encodes to the same bytes, a payload is never larger than its
// route allows, accepted rows are finite numbers, and accepted scores are log-probabilities. The first byte chooses the reader.
#include <cmath>
#include <vector>

#include "core/pipeline/messages.h"
#include "tests/fuzz/chosen_reader.h"

using namespace neuroshard;            // NOLINT
using namespace neuroshard::pipeline;  // NOLINT

namespace {

constexpr std::size_t hidden = 8;

compute::ModelShape small_shape() {
  compute::ModelShape shape;
  shape.layers = 2;
  shape.hidden = hidden;
  shape.vocab = 32;
  return shape;
}

void read_message(ByteSpan input) {
  const auto message = decode_message(input);
  if (!message.ok()) return;
  NS_CHECK(fuzz::same(encode_message(*message), input));
  const compute::ModelShape shape = small_shape();
  if (const auto* follow = std::get_if<Follow>(&*message)) {
    const Route& route = follow->route;
    NS_CHECK(!route.hops.empty() && route.hops.size() <= max_hops &&
             route.tokens() <= max_micro_batch_tokens);
    if (check_route(route, shape).ok())
      NS_CHECK(route.hops.front().range.embed && route.hops.back().range.head);
  }
  Route route;
  route.sequences = 4;
  route.length = 16;
  for (const bool embed : {true, false}) {
    const auto size = payload_bytes(*message, route, {{}, {0, 1, embed, false}}, shape);
    NS_CHECK(!size || *size <= 4 * 16 * (4 + std::max(sizeof(std::int32_t), 4 * hidden)));
  }
}

void read_values(WireFormat format, ByteSpan input) {
  const std::size_t rows = input.size() / encoded_bytes(format, 1, hidden);
  const ByteSpan bytes = input.first(encoded_bytes(format, rows, hidden));
  std::vector<float> values(rows * hidden);
  if (!read_rows(format, bytes, hidden, {values.data(), values.size()}).ok()) return;
  for (const float value : values) NS_CHECK(std::isfinite(value));
  Bytes again;
  const bool written = append_rows(format, {values.data(), values.size()}, hidden, again).ok();
  NS_CHECK(written && (format == WireFormat::Int8 || fuzz::same(again, bytes)));
}

void read_text_scores(ByteSpan input) {
  const TextScores asked{2, 32};
  const std::size_t positions = input.size() / scores_bytes(1, asked);
  const ByteSpan bytes = input.first(scores_bytes(positions, asked));
  const auto scores = read_scores(bytes, positions, asked);
  if (!scores.ok()) return;
  for (const double value : scores->logprobs) NS_CHECK(value <= 0);
  for (const std::int32_t token : scores->top_tokens) NS_CHECK(token >= -1 && token < 32);
  Bytes again;
  append_scores(*scores, again);
  NS_CHECK(fuzz::same(again, bytes));
}

void read_chosen(std::uint8_t choice, ByteSpan input) {
  if (choice == 255) return read_text_scores(input);
  if (choice % 4 == 3) return read_message(input);
  read_values(static_cast<WireFormat>(choice % 4), input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::read_chosen(data, size, read_chosen);
}
