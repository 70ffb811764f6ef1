// This node's vector of a round: signed once, on the disk before anybody sees it, and the same one after a restart. A second,
// different one would be equivocation.
//
// All services outlive it. Threads: the executor's.
#pragma once

#include <functional>
#include <optional>

#include "core/base/clock.h"
#include "core/base/lifetime.h"
#include "core/chain/contribution.h"
#include "core/chain/rules.h"
#include "core/rounds/learner.h"

namespace neuroshard::rounds {

class OwnVector {
 public:
  struct Services {
    const crypto::KeyPair& key;
    const Clock& clock;
    RoundStore& store;
  };
  // saved: the vector may be shown. failed: it was not saved, and is not signed; the caller asks again later.
  using Saved = std::function<void(const chain::Vector&)>;
  using Failed = std::function<void(const Error&)>;
  OwnVector(Services services, const chain::ChainRules& rules, Saved saved, Failed failed);

  // Before the first round: what this node signed before its restart.
  void load();
  void open(const Hash256& opening);
  // Signed in this round, or being saved.
  bool is_signed() const { return signed_; }
  // This round's, also of before a restart. Null: none.
  const chain::Vector* kept() const;
  // Not signed yet; after a failure not at once.
  bool may_try() const { return !signed_ && services_.clock.monotonic_now() >= next_try_; }
  // Once a round: of made, which is unsigned, or of the kept one.
  void sign(chain::Vector made);

 private:
  const Services services_;
  const chain::ChainRules& rules_;
  const Saved saved_;
  const Failed failed_;
  Hash256 opening_{};
  bool signed_ = false;
  MonotonicTime next_try_{};
  std::optional<chain::Vector> kept_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::rounds
