// The route of a session: which nodes its micro-batches pass, in which order, and the sizes that everybody can rely
// on (docs/protocol/pipeline.md#routes). The driver signs it, so nobody else can lead a session elsewhere.
//
// Bytes: session 16 · driver's public key 32 · revision u32 · kind u8 (2: a text with scores) · sequences u32 · length u32 ·
// window u16 · positions u32 · wire u8 · base 32 · of kind 2: top u8, vocabulary u32 · count u8 · each hop: node id 32, first layer u32, layers u32, flags u8 (1 embedding, 2 head) ·
// signature 64. Canonical.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/compute/model_shape.h"
#include "core/compute/stage_range.h"
#include "core/crypto/keys.h"
#include "core/net/node_id.h"
#include "core/pipeline/activation_codec.h"
#include "core/pipeline/text_scores.h"

namespace neuroshard::pipeline {

using SessionId = std::array<std::uint8_t, 16>;  // drawn by the driver; only nodes of its routes learn it

inline constexpr std::size_t max_hops = 64;
inline constexpr std::uint32_t max_window = 256;  // micro-batches under way
inline constexpr std::uint32_t max_micro_batch_tokens = 1u << 16;
inline constexpr std::size_t max_tensor_bytes = 256u << 20;  // of one micro-batch between two stages

inline constexpr std::uint32_t max_positions = 1u << 17;  // of a text
// Changes of a session's route that a stage lets pass: each has a signature to check, and may have a line to open.
inline constexpr double route_changes_per_second = 4, route_changes_at_once = 16;

enum class SessionKind : std::uint8_t {
  Training = 0,
  // With weights that do not train. Of positions: the stages keep caches of keys and values, the head answers with logits.
  // Without: each piece is sequences by themselves, nothing is kept, and the head answers with their loss.
  Text = 1,
};

using compute::StageRange;

struct RouteHop {
  net::NodeId node{};
  StageRange range;
  friend bool operator==(const RouteHop&, const RouteHop&) = default;
};

struct Route {
  SessionId session{};
  crypto::PublicKey driver{};
  std::uint32_t revision = 0;  // a route replaces those of the same session with a lower one
  SessionKind kind = SessionKind::Training;
  std::uint32_t sequences = 0;  // of a micro-batch, at most. Of a text with positions: those of a piece
  std::uint32_t length = 0;     // tokens of a sequence. Of a text with positions: 1
  std::uint32_t window = 0;     // unfinished micro-batches or pieces, at most
  std::uint32_t positions = 0;  // of a text, at most; 0 in training and where only losses are asked for
  WireFormat wire = WireFormat::Bf16;
  Hash256 base{};                    // the hash of the block that opened the round
  std::optional<TextScores> scores;  // of a text whose tokens are scored
  std::vector<RouteHop> hops;
  crypto::Signature signature{};

  // Of this node, which a route names once at most.
  std::optional<std::size_t> position_of(const net::NodeId& node) const;
  std::size_t tokens() const { return std::size_t{sequences} * length; }
  bool asks_for_losses() const { return kind == SessionKind::Text && positions == 0; }
  friend bool operator==(const Route&, const Route&) = default;
};

// Bounds, and that the hops hold the whole model of this shape once and in order. The message names what is wrong.
Expected<void> check_route(const Route& route, const compute::ModelShape& shape);

void sign_route(Route& route, const crypto::KeyPair& driver, ByteSpan network);
bool signature_holds(const Route& route, ByteSpan network);

Bytes encode_route(const Route& route);
// The form and the bounds only.
Expected<Route> decode_route(ByteSpan bytes);

}  // namespace neuroshard::pipeline
