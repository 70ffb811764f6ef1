#include "core/pipeline/route.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/byte_reader.h"
#include "core/compute/sampling.h"

namespace neuroshard::pipeline {
namespace {

constexpr std::uint8_t embed_flag = 1, head_flag = 2;
constexpr std::uint8_t scored_text = 2;  // a kind on the wire

Error wrong(std::string text) {
  return make_error(ErrorCode::InvalidArgument, std::move(text));
}

Bytes unsigned_bytes(const Route& route) {
  Bytes bytes;
  append_array(bytes, route.session);
  append_array(bytes, route.driver);
  append_le<std::uint32_t>(bytes, route.revision);
  append_le<std::uint8_t>(bytes, route.scores ? scored_text : static_cast<std::uint8_t>(route.kind));
  append_le<std::uint32_t>(bytes, route.sequences);
  append_le<std::uint32_t>(bytes, route.length);
  append_le<std::uint16_t>(bytes, static_cast<std::uint16_t>(route.window));
  append_le<std::uint32_t>(bytes, route.positions);
  append_le<std::uint8_t>(bytes, static_cast<std::uint8_t>(route.wire));
  append_array(bytes, route.base);
  if (route.scores) {
    append_le<std::uint8_t>(bytes, static_cast<std::uint8_t>(route.scores->top));
    append_le<std::uint32_t>(bytes, route.scores->vocabulary);
  }
  append_le<std::uint8_t>(bytes, static_cast<std::uint8_t>(route.hops.size()));
  for (const RouteHop& hop : route.hops) {
    append_array(bytes, hop.node);
    append_le<std::uint32_t>(bytes, hop.range.first_layer);
    append_le<std::uint32_t>(bytes, hop.range.layer_count);
    append_le<std::uint8_t>(bytes, static_cast<std::uint8_t>((hop.range.embed ? embed_flag : 0) |
                                                             (hop.range.head ? head_flag : 0)));
  }
  return bytes;
}

Expected<void> check_bounds(const Route& route) {
  if (route.hops.empty() || route.hops.size() > max_hops)
    return wrong(fmt::format("a route has 1 to {} hops", max_hops));
  if (route.window == 0 || route.window > max_window)
    return wrong(fmt::format("a session has 1 to {} micro-batches under way", max_window));
  if (route.sequences == 0 || route.length == 0 || route.sequences > max_micro_batch_tokens ||
      route.length > max_micro_batch_tokens || route.tokens() > max_micro_batch_tokens)
    return wrong(fmt::format("a micro-batch has 1 to {} tokens", max_micro_batch_tokens));
  const bool has_positions = route.positions != 0;
  if (has_positions &&
      (route.kind != SessionKind::Text || route.length != 1 || route.positions > max_positions))
    return wrong(fmt::format("a text has pieces of single tokens and at most {} positions, training has none",
                             max_positions));
  if (route.scores &&
      (!has_positions || route.scores->vocabulary == 0 || route.scores->top > compute::max_top_logprobs))
    return wrong(fmt::format("scores are those of a text, with at most {} of the likeliest tokens",
                             compute::max_top_logprobs));
  std::set<net::NodeId> nodes;
  for (const RouteHop& hop : route.hops) nodes.insert(hop.node);
  if (nodes.size() != route.hops.size()) return wrong("a route names a node twice");
  return {};
}

}  // namespace

std::optional<std::size_t> Route::position_of(const net::NodeId& node) const {
  const auto found =
      std::find_if(hops.begin(), hops.end(), [&](const RouteHop& hop) { return hop.node == node; });
  if (found == hops.end()) return std::nullopt;
  return static_cast<std::size_t>(found - hops.begin());
}

Expected<void> check_route(const Route& route, const compute::ModelShape& shape) {
  if (const auto checked = check_bounds(route); !checked.ok()) return checked;
  if (encoded_bytes(route.wire, route.tokens(), shape.hidden) > max_tensor_bytes)
    return wrong(fmt::format("a micro-batch of {} tokens has more than {} MiB between two stages",
                             route.tokens(), max_tensor_bytes >> 20));
  if (route.scores && route.scores->vocabulary > shape.vocab)
    return wrong(
        fmt::format("scores are of {} tokens, and the model has {}", route.scores->vocabulary, shape.vocab));
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < route.hops.size(); ++i) {
    const StageRange& range = route.hops[i].range;
    if (range.first_layer != next)
      return wrong(fmt::format("hop {} does not begin with layer {}", i + 1, next));
    next += range.layer_count;
    if (range.embed != (i == 0)) return wrong("the first hop, and no other, has the embedding");
    if (range.head != (i + 1 == route.hops.size())) return wrong("the last hop, and no other, has the head");
    if (range.layer_count == 0 && !range.embed && !range.head)
      return wrong(fmt::format("hop {} holds nothing", i + 1));
  }
  if (next != shape.layers) return wrong(fmt::format("the hops hold {} of {} layers", next, shape.layers));
  return {};
}

void sign_route(Route& route, const crypto::KeyPair& driver, ByteSpan network) {
  route.driver = driver.public_key();
  route.signature = driver.sign(crypto::Purpose::PipelineRoute, network, unsigned_bytes(route));
}

bool signature_holds(const Route& route, ByteSpan network) {
  return crypto::verify(route.driver, crypto::Purpose::PipelineRoute, network, unsigned_bytes(route),
                        route.signature);
}

Bytes encode_route(const Route& route) {
  Bytes bytes = unsigned_bytes(route);
  append_array(bytes, route.signature);
  return bytes;
}

Expected<Route> decode_route(ByteSpan bytes) {
  ByteReader reader(bytes);
  Route route;
  route.session = reader.array<SessionId>();
  route.driver = reader.array<crypto::PublicKey>();
  route.revision = reader.number<std::uint32_t>();
  const auto kind = reader.number<std::uint8_t>();
  if (kind > scored_text) reader.fail();
  route.kind = kind == scored_text ? SessionKind::Text : static_cast<SessionKind>(kind);
  route.sequences = reader.number<std::uint32_t>();
  route.length = reader.number<std::uint32_t>();
  route.window = reader.number<std::uint16_t>();
  route.positions = reader.number<std::uint32_t>();
  const auto wire = reader.number<std::uint8_t>();
  if (wire >= wire_formats) reader.fail();
  route.wire = static_cast<WireFormat>(wire);
  route.base = reader.array<Hash256>();
  if (kind == scored_text) {
    route.scores.emplace();
    route.scores->top = reader.number<std::uint8_t>();
    route.scores->vocabulary = reader.number<std::uint32_t>();
  }
  const auto hops = reader.number<std::uint8_t>();
  if (hops > max_hops) reader.fail();
  for (std::size_t i = 0; reader.good() && i < hops; ++i) {
    RouteHop hop;
    hop.node = reader.array<net::NodeId>();
    hop.range.first_layer = reader.number<std::uint32_t>();
    hop.range.layer_count = reader.number<std::uint32_t>();
    const auto flags = reader.number<std::uint8_t>();
    if (flags > (embed_flag | head_flag)) reader.fail();
    hop.range.embed = (flags & embed_flag) != 0;
    hop.range.head = (flags & head_flag) != 0;
    route.hops.push_back(hop);
  }
  route.signature = reader.array<crypto::Signature>();
  if (!reader.at_end()) return wrong("the route is no valid one: too short, too long, or an unknown value");
  if (auto checked = check_bounds(route); !checked.ok()) return checked.error();
  return route;
}

}  // namespace neuroshard::pipeline
