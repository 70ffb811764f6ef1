// The checks that the beacon has drawn this node for: every result that holders attested of such a row, one after the other.
// A wrong one becomes evidence against each that attested it.
//
// Where fewer than three wallets can attest a row, all of its chunks are checked: two that agree could make any result. Else
// a few chunks, which nobody else can foresee.
//
// All services outlive it. Threads: the executor's.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/base/log.h"
#include "core/rounds/accusations.h"
#include "core/rounds/attestation_book.h"
#include "core/rounds/contribution_book.h"
#include "core/rounds/row_checker.h"

namespace neuroshard::rounds {

inline constexpr std::size_t checked_chunks = 8;

struct RowChecksSeen {
  std::uint64_t right = 0, wrong = 0, unavailable = 0;  // results
  friend bool operator==(const RowChecksSeen&, const RowChecksSeen&) = default;
};

class RowChecks {
 public:
  // secret: of this node in the round; nothing: there is none, and all chunks are checked.
  using Secret = std::function<std::optional<Hash256>(std::uint64_t round)>;
  using Wrong = std::function<void(const chain::Evidence& evidence, const RowProof& proof)>;
  RowChecks(RowChecker::Services services, const chain::ChainRules& rules, OuterRules outer, Duration allowed,
            const net::NodeId& self, Accusations::RowOf row, Secret secret, Wrong wrong, Logger& logger);

  // Looks for new results. tip: with a closed round, whose attestations and contributions the books have.
  void look(const chain::ChainTip& tip, const AttestationBook& attestations,
            const ContributionBook& contributions);
  const RowChecksSeen& seen() const { return seen_; }

 private:
  struct Accused {
    crypto::PublicKey key{};
    chain::AttestedRow attested;
  };
  struct Result {
    std::uint64_t round = 0;
    std::vector<Accused> attesters;
    std::size_t accused = 0;                // so many of them, the first ones
    std::shared_ptr<const RowProof> proof;  // once it is known to be wrong
  };
  void look_at(const chain::ChainTip& tip, const chain::OpenRow& open, const AttestationBook& attestations,
               const ContributionBook& contributions);
  std::optional<RowCase> case_of(const chain::ChainTip& tip, const chain::OpenRow& open,
                                 const chain::RowResult& result, const ContributionBook& contributions) const;
  std::vector<std::uint64_t> choose_chunks(const chain::ChainTip& tip, const chain::OpenRow& open,
                                           std::uint64_t chunks) const;
  void check_next();
  void accuse(Result& result);

  RowChecker checker_;
  const chain::ChainRules& rules_;
  const OuterRules outer_;
  const net::NodeId self_;
  const Accusations::RowOf row_;
  const Secret secret_;
  const Wrong wrong_;
  Logger& logger_;
  std::uint64_t round_ = 0;
  std::map<Hash256, Result> results_;  // of the round and the one before, by their hash
  std::deque<std::pair<Hash256, RowCase>> waiting_;
  RowChecksSeen seen_;
};

}  // namespace neuroshard::rounds
