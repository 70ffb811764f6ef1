// Hashes of the payloads that this node exchanged with the nodes beside it in a session: both sides of a hop commit to the
// same bytes, so an audit can ask either for them (docs/protocol/pipeline.md#commitments).
//
// A leaf: crypto::merkle_leaf of session · index u64 · direction u8 (0 work, 1 result) · sender's node id · receiver's
// · SHA-256 of the payload. The root is the Merkle root of the leaves in ascending order of (session, index,
// direction, sender, receiver). Only exchanges of finished micro-batches count: both sides know of those. A repeated
// message, which follows the failure of a node, counts once for each pair of nodes.
//
// Memory: 180 bytes an entry, at most max_entries; later ones are counted only. Threads: as a value.
#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include "core/base/bytes.h"
#include "core/net/node_id.h"
#include "core/pipeline/route.h"

namespace neuroshard::pipeline {

enum class Direction : std::uint8_t { Work = 0, Result = 1 };

struct Exchange {
  SessionId session{};
  std::uint64_t index = 0;  // of the micro-batch
  Direction direction = Direction::Work;
  net::NodeId sender{}, receiver{};
  friend auto operator<=>(const Exchange&, const Exchange&) = default;
};

class ExchangeLog {
 public:
  static constexpr std::size_t max_entries = 1u << 18;

  // It waits until its micro-batch is finished. The first bytes of an exchange count: a repetition has the same.
  void note(const Exchange& exchange, ByteSpan payload);
  // The micro-batches of a lower index are finished.
  void finished_below(const SessionId& session, std::uint64_t index);
  // The rest of a session never finishes.
  void ended(const SessionId& session);

  std::size_t size() const { return finished_.size(); }
  std::uint64_t left_out() const { return left_out_; }
  // Of what was exchanged with one other node: both compute the same. Zeros: nothing was.
  Hash256 root_with(const net::NodeId& other) const;
  Hash256 root() const;
  void clear();  // at the end of a round; what is unfinished stays

 private:
  using Hashes = std::map<Exchange, Hash256>;  // of the payloads
  Hash256 root_if(const net::NodeId* other) const;

  Hashes unfinished_, finished_;
  std::uint64_t left_out_ = 0;
};

}  // namespace neuroshard::pipeline
