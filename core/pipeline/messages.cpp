#include "core/pipeline/messages.h"

#include <algorithm>
#include <bit>

#include "core/base/byte_reader.h"

namespace neuroshard::pipeline {
namespace {

void append_double(Bytes& bytes, double value) {
  append_le(bytes, std::bit_cast<std::uint64_t>(value));
}

constexpr double most_other_sum = 1e9;  // of a token

// A sum over so many tokens.
double read_sum(ByteReader& reader, double most, std::uint64_t tokens) {
  const auto value = std::bit_cast<double>(reader.number<std::uint64_t>());
  const bool fits = value >= 0 && value <= most * static_cast<double>(tokens);  // false for what is no number
  if (!fits) reader.fail();
  return value;
}

struct Writer {
  Bytes& bytes;
  void operator()(const Alive&) const {}
  void operator()(const Follow& follow) const {
    const Bytes route = encode_route(follow.route);
    bytes.insert(bytes.end(), route.begin(), route.end());
  }
  void operator()(const Work& work) const {
    append_le(bytes, work.index);
    append_le(bytes, work.finished_below);
    append_le(bytes, work.sequences);
  }
  void operator()(const Close& close) const { append_le(bytes, close.finished_below); }
  void operator()(const Result& result) const {
    append_le(bytes, result.index);
    append_le(bytes, result.sums.tokens);
    append_le(bytes, result.sums.target_tokens);
    append_double(bytes, result.sums.loss);
    append_double(bytes, result.sums.balance);
    append_double(bytes, result.sums.z);
    append_le(bytes, static_cast<std::uint8_t>(result.times.size()));
    for (const HopTime& time : result.times) {
      append_le(bytes, time.computing);
      append_le(bytes, time.later);
    }
  }
  void operator()(const Lost& lost) const {
    append_le(bytes, lost.position);
    append_array(bytes, lost.node);
    const std::string_view text = std::string_view(lost.what).substr(0, max_lost_text);
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  void operator()(const Ready& ready) const { append_le(bytes, ready.revision); }
};

Work read_work(ByteReader& reader) {
  Work work;
  work.index = reader.number<std::uint64_t>();
  work.finished_below = reader.number<std::uint64_t>();
  work.sequences = reader.number<std::uint32_t>();
  if (work.sequences == 0 || work.finished_below > work.index + 1) reader.fail();
  return work;
}

Result read_result(ByteReader& reader) {
  Result result;
  result.index = reader.number<std::uint64_t>();
  result.sums.tokens = reader.number<std::uint64_t>();
  result.sums.target_tokens = reader.number<std::uint64_t>();
  result.sums.loss = read_sum(reader, most_loss, result.sums.target_tokens);
  result.sums.balance = read_sum(reader, most_other_sum, result.sums.tokens);
  result.sums.z = read_sum(reader, most_other_sum, result.sums.tokens);
  if (result.sums.target_tokens > result.sums.tokens) reader.fail();
  const auto hops = reader.number<std::uint8_t>();
  if (hops > max_hops) reader.fail();
  for (std::uint8_t i = 0; i < hops && reader.good(); ++i) {
    const auto computing = reader.number<std::uint32_t>();
    result.times.push_back({computing, reader.number<std::uint32_t>()});
  }
  if (!result.times.empty() && result.times.back().later != 0) reader.fail();
  return result;
}

Lost read_lost(ByteReader& reader) {
  Lost lost;
  lost.position = reader.number<std::uint8_t>();
  lost.node = reader.array<net::NodeId>();
  const ByteSpan text = reader.rest();
  if (lost.position >= max_hops || text.size() > max_lost_text) reader.fail();
  lost.what.assign(text.begin(), text.end());
  return lost;
}

}  // namespace

std::uint32_t to_microseconds(Duration duration) {
  const auto count = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 0, UINT32_MAX));
}

Bytes encode_message(const Message& message) {
  Bytes bytes;
  append_le<std::uint8_t>(bytes, static_cast<std::uint8_t>(message.index()));
  std::visit(Writer{bytes}, message);
  return bytes;
}

Expected<Message> decode_message(ByteSpan bytes) {
  ByteReader reader(bytes);
  const auto kind = reader.number<std::uint8_t>();
  Message message;
  switch (kind) {
    case 0: message = Alive{}; break;
    case 1: {
      auto route = decode_route(reader.rest());
      if (!route.ok()) return route.error();
      message = Follow{std::move(route).value()};
      break;
    }
    case 2: message = read_work(reader); break;
    case 3: message = Close{reader.number<std::uint64_t>()}; break;
    case 4: message = read_result(reader); break;
    case 5: message = read_lost(reader); break;
    case 6: message = Ready{reader.number<std::uint32_t>()}; break;
    default: reader.fail();
  }
  if (!reader.at_end())
    return make_error(ErrorCode::InvalidArgument,
                      "a message of a pipeline is too short, too long or of an unknown kind");
  return message;
}

std::optional<std::size_t> payload_bytes(const Message& message, const Route& route, const RouteHop& later,
                                         const compute::ModelShape& shape) {
  const bool training = route.kind == SessionKind::Training;
  if (const auto* work = std::get_if<Work>(&message)) {
    const bool targets = training || route.asks_for_losses() || route.scores;
    if (work->sequences > route.sequences || (route.positions == 0 && !work->result_wanted()))
      return std::nullopt;
    const std::size_t tokens = std::size_t{work->sequences} * route.length;
    const std::size_t ids = tokens * sizeof(std::int32_t);
    return (targets ? ids : 0) + (later.range.embed ? ids : encoded_bytes(route.wire, tokens, shape.hidden));
  }
  if (const auto* result = std::get_if<Result>(&message)) {
    const Sums& sums = result->sums;
    if (sums.tokens == 0 || sums.tokens > route.tokens() || sums.tokens % route.length != 0)
      return std::nullopt;
    if (route.asks_for_losses()) return 0;
    if (!training)
      return shape.vocab * sizeof(float) + (route.scores ? scores_bytes(sums.tokens, *route.scores) : 0);
    return later.range.embed ? 0 : encoded_bytes(route.wire, sums.tokens, shape.hidden);
  }
  return 0;
}

std::uint64_t count_targets(ByteSpan payload, std::size_t tokens) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < tokens; ++i)
    if (load_le<std::int32_t>(payload.data() + i * sizeof(std::int32_t)) >= 0) ++count;
  return count;
}

}  // namespace neuroshard::pipeline
