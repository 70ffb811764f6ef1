// Contributions and vectors as a node holds them. Everything that follows from their bytes is computed once, and
// not before somebody asks for it: checks that cost nothing come first.
//
// Immutable, shared. Threads: one.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/base/byte_source.h"
#include "core/chain/contribution.h"
#include "core/net/node_id.h"

namespace neuroshard::rounds {

// A row's delta as its contributor encoded it; in the spool, unless it is small.
using Payload = ByteSourcePtr;

// The commitment to a payload: a Merkle root over slices of 64 KiB, the contributor's node id in each leaf, so
// that the same bytes under another name have another root.  Errors: those of reading it.
Expected<std::vector<Hash256>> payload_leaves(const net::NodeId& contributor, const ByteSource& payload);
Hash256 payload_root(const net::NodeId& contributor, ByteSpan payload);
inline constexpr std::size_t payload_slice_bytes = 64u << 10;

// Null: of a payload of one slice, whose leaf is the root; or nobody needs them. They have 1/2048 of its bytes.
using PayloadLeaves = std::shared_ptr<const std::vector<Hash256>>;
// The findings of one reading of a whole payload, which has up to some gigabytes.
struct PayloadReading {
  Hash256 root{};
  PayloadLeaves leaves = nullptr;
  bool readable = true;  // false: nobody can decode it
};
// Root and leaves.  Threads: any. Errors: those of reading it.
Expected<PayloadReading> read_payload(const net::NodeId& contributor, const ByteSource& payload);

class HeldContribution {
 public:
  // payloads: what came with it, in the order of its rows; empty: none.
  explicit HeldContribution(chain::Contribution contribution, std::vector<Payload> payloads = {});
  const chain::Contribution& get() const { return contribution_; }
  const net::NodeId& id() const { return id_; }  // of its node
  // As a block carries it, but for the member's number, which is 0.
  const chain::ContributionEntry& entry() const;
  chain::ContributionEntry entry_of(std::uint32_t member) const;
  const Hash256& contribution_id() const;
  // In the order of its rows, each with the root that the row names; null: it did not come. Empty: none came.
  const std::vector<Payload>& payloads() const;

 private:
  const chain::Contribution contribution_;
  const net::NodeId id_;
  mutable std::optional<chain::ContributionEntry> entry_;
  mutable std::optional<Hash256> contribution_id_;
  mutable std::vector<Payload> payloads_;
  mutable bool payloads_checked_ = false;
};
using HeldContributionPtr = std::shared_ptr<const HeldContribution>;
// Whether the entry names this contribution. Its signature may be another one: a member can sign the same content again.
bool is_entry_of(const chain::ContributionEntry& entry, const HeldContribution& held);

class HeldVector {
 public:
  explicit HeldVector(chain::Vector vector) : vector_(std::move(vector)) {}
  const chain::Vector& get() const { return vector_; }
  const chain::VectorClaim& claim() const;

 private:
  const chain::Vector vector_;
  mutable std::optional<chain::VectorClaim> claim_;
};
using HeldVectorPtr = std::shared_ptr<const HeldVector>;

// Reads what other members send. A simulation of thousands of nodes in one process reads and holds equal bytes
// once.
class RoundPool {
 public:
  virtual ~RoundPool() = default;
  // Null: the post is malformed (round_posts.h).
  virtual HeldContributionPtr read_contribution(ByteSpan post, std::size_t most_rows);
  virtual HeldVectorPtr read_vector(ByteSpan bytes, std::size_t most_members, std::size_t rows);
  virtual Payload hold(Payload payload) { return payload; }
};

}  // namespace neuroshard::rounds
