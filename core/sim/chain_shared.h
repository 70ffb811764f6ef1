// Things that the nodes of one simulated chain hold together, so that thousands of them fit one process: blocks,
// registries, contributions, vectors and the results of signature checks. Each node still asks for all of them.
//
// Threads: one.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/chain/history.h"
#include "core/rounds/row_states.h"

namespace neuroshard::sim {

// Equal bytes once, as long as anybody holds them.
class BytesPool {
 public:
  std::shared_ptr<const Bytes> hold(Bytes bytes);

 private:
  std::unordered_multimap<std::size_t, std::weak_ptr<const Bytes>> held_;
};

// All nodes apply the same blocks: the registry after each is computed once, and a block is read once.
class SharedChain final : public chain::RegistryCache {
 public:
  std::optional<chain::ChainTip> find(const Hash256& block) override;
  void put(const chain::ChainTip& tip) override;
  Expected<chain::BlockPtr> read(ByteSpan bytes, const Hash256& network) override;
  Expected<chain::CertifiedBlock> read_certified(ByteSpan bytes, const Hash256& network) override;
  Bytes write(const chain::Block& block) override;

 private:
  struct Known {
    std::shared_ptr<const Bytes> bytes;
    chain::BlockPtr block;
  };
  void know(Known known);

  std::map<Hash256, chain::ChainTip> tips_;
  std::deque<Hash256> order_;
  std::deque<Known> blocks_;                     // the newest
  std::deque<chain::CertifiedBlock> certified_;  // the newest
};

// Equal steps of a row are made once.
class SharedSteps final : public rounds::StepPool {
 public:
  Expected<rounds::StepPtr> make(const Hash256& key,
                                 const std::function<Expected<rounds::StepPtr>()>& step) override;

 private:
  std::map<Hash256, Expected<rounds::StepPtr>> made_;
  std::deque<Hash256> order_;
};

// Posts of contributions and vectors: equal bytes are read once, as long as anybody holds what was read.
class SharedRounds final : public rounds::RoundPool {
 public:
  rounds::HeldContributionPtr read_contribution(ByteSpan post, std::size_t most_rows) override;
  rounds::HeldVectorPtr read_vector(ByteSpan bytes, std::size_t most_members, std::size_t rows) override;
  rounds::Payload hold(rounds::Payload payload) override;

 private:
  struct Key {  // the bytes and the limits that they were read with
    std::shared_ptr<const Bytes> bytes;
    std::size_t most = 0, rows = 0;
  };
  template <class T>
  struct Read {
    Key key;
    std::weak_ptr<const T> item;
    bool expired() const { return item.expired(); }
  };
  template <class T>
  using Held = std::unordered_multimap<std::size_t, Read<T>>;
  template <class T, class Decode>
  static std::shared_ptr<const T> read_once(Held<T>& held, ByteSpan bytes, std::size_t most, std::size_t rows,
                                            const Decode& decode);

  Held<rounds::HeldContribution> contributions_;
  Held<rounds::HeldVector> vectors_;
  std::unordered_multimap<std::size_t, std::weak_ptr<const ByteSource>> payloads_;
};

// A signature is verified once, however many nodes check it.
class SharedChecks {
 public:
  bool holds(ByteSpan what, const std::function<bool()>& check);

 private:
  // By a hash of 64 bits: half a million different checks have equal ones with a chance of 1 in 10^8.
  std::unordered_map<std::size_t, bool> known_;
};

// One node's checks: counted, and answered by what all nodes know.
class CountedChecks final : public chain::SignatureChecks {
 public:
  explicit CountedChecks(SharedChecks& shared) : shared_(shared) {}
  std::uint64_t count() const { return count_; }
  void add(std::uint64_t checks) { count_ += checks; }

  bool vote(const chain::SignedVote& vote, const crypto::PublicKey& node, const Hash256& network) override;
  bool quorum(const chain::Quorum& quorum, Span<const crypto::PublicKey> nodes,
              const Hash256& network) override;
  bool statement(const chain::Statement& statement, const Hash256& network) override;
  bool entry(const chain::ContributionEntry& entry, const Hash256& opening, std::uint64_t round,
             const crypto::PublicKey& node, const Hash256& network) override;
  bool vector(const chain::VectorClaim& claim, const crypto::PublicKey& node,
              const Hash256& network) override;
  bool evidence(const chain::Evidence& evidence, const Hash256& network) override;
  bool heartbeat(const chain::Heartbeat& heartbeat, const Hash256& network) override;

 private:
  // All that a check depends on; the memory is used again.
  template <class... Arrays>
  Bytes& joined(char kind, const Arrays&... arrays);

  SharedChecks& shared_;
  Bytes what_;
  std::uint64_t count_ = 0;
};

}  // namespace neuroshard::sim
