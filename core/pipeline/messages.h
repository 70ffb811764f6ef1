// Messages on the stream between two hops of a session (docs/protocol/pipeline.md#messages). A message is a
// header of the kinds below and, of two kinds, a payload.
//
//   kind  from        header                                                    payload
//   0     both        Alive: nothing else was sent for a while                  –
//   1     earlier     Follow: a route; the first message of a stream            –
//   2     earlier     Work: index u64 · finished below u64 · sequences u32      targets i32 (but of texts without
//                                                                               scores) · tokens i32 or rows
//   3     earlier     Close: the session is over; finished below u64            –
//   4     later       Result: index u64 · tokens u64 · target tokens u64 ·      training: rows, none of the stage with
//                     loss, balance, z fp64 · count u8 · each hop:              the embedding. Text: of losses none, else
//                     computing µs u32, later µs u32                            logits fp32 of the last position, then
//                                                                               scores if its route asks for them
//   5     later       Lost: position u8 · node id 32 · what happened, UTF-8     –
//   6     later       Ready: all hops from here on follow the route; revision   –
//                     u32
//
// "Earlier" is the end nearer to the driver. N tokens of a micro-batch: sequences · length of the route.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/compute/stage.h"
#include "core/pipeline/route.h"

namespace neuroshard::pipeline {

struct Alive {
  friend bool operator==(const Alive&, const Alive&) = default;
};
struct Follow {
  Route route;
  friend bool operator==(const Follow&, const Follow&) = default;
};
struct Work {
  std::uint64_t index = 0;  // of the micro-batch or piece in its session, from 0
  // All of a lower index are finished at the driver. index + 1: this one is, too; it is sent again for the caches of a
  // new stage, and nobody waits for its result.
  std::uint64_t finished_below = 0;
  std::uint32_t sequences = 0;
  bool result_wanted() const { return finished_below <= index; }
  friend bool operator==(const Work&, const Work&) = default;
};
struct Close {
  std::uint64_t finished_below = 0;
  friend bool operator==(const Close&, const Close&) = default;
};
// Of a micro-batch, over the stages from one to the head.
struct Sums {
  std::uint64_t tokens = 0, target_tokens = 0;  // the head counts the latter
  double loss = 0;                              // over tokens, in nats
  double balance = 0, z = 0;                    // over tokens and layers, without coefficients
  // The same micro-batch at later stages.
  void add_later(const Sums& later) {
    target_tokens += later.target_tokens;
    loss += later.loss;
    balance += later.balance;
    z += later.z;
  }
  // Another micro-batch.
  void add(const Sums& other) {
    tokens += other.tokens;
    add_later(other);
  }
  friend bool operator==(const Sums&, const Sums&) = default;
};
// Of a micro-batch at one hop, as that hop measured it.
struct HopTime {
  std::uint32_t computing = 0;  // µs: forward pass and gradient of the input; not what waited for its turn
  std::uint32_t later = 0;  // µs, from sending it to the next hop to having the result; 0 at the last hop
  friend bool operator==(const HopTime&, const HopTime&) = default;
};
// In whole µs; UINT32_MAX if it is longer than that (71 minutes).
std::uint32_t to_microseconds(Duration duration);

struct Result {
  std::uint64_t index = 0;
  Sums sums;
  // Of training: of each hop from the sender to the last one. Of a text: none. max_hops at most.
  std::vector<HopTime> times{};
  friend bool operator==(const Result&, const Result&) = default;
};
struct Lost {
  std::uint8_t position = 0;  // of the hop that does not answer
  net::NodeId node{};         // that was there
  std::string what;
  friend bool operator==(const Lost&, const Lost&) = default;
};

struct Ready {
  std::uint32_t revision = 0;  // of the route
  friend bool operator==(const Ready&, const Ready&) = default;
};

using Message = std::variant<Alive, Follow, Work, Close, Result, Lost, Ready>;

inline constexpr std::size_t max_lost_text = 300;
inline constexpr double most_loss = 1e4;  // nats of a token

Bytes encode_message(const Message& message);
// InvalidArgument for anything else: bounds are those of the format, not of a session. Sums are 0 or more and have bounds, so
// that those of many micro-batches are finite.
Expected<Message> decode_message(ByteSpan bytes);

// The size of the payload that belongs to a message between two hops of this route: `later` is the one that is
// further from the driver. Nothing: the message does not belong to this session's sizes.
std::optional<std::size_t> payload_bytes(const Message& message, const Route& route, const RouteHop& later,
                                         const compute::ModelShape& shape);

// The tokens that have a target. payload: of Work with targets, which are first.
std::uint64_t count_targets(ByteSpan payload, std::size_t tokens);

}  // namespace neuroshard::pipeline
