// The checks that the beacon has drawn this node for: every result that holders attested of such a row, one after the other.
// A wrong one becomes evidence against each that attested it.
//
// Where fewer than three wallets can attest a row, all of its chunks are checked: two that agree could make any result. Else
// a few chunks, which nobody else can foresee.
//
// The first checkers of a row check at once. The others keep what a check needs, and begin when some of the first say that
// the result is withheld. A check that gets no answer is tried again until the row is settled.
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
  std::uint64_t right = 0, wrong = 0, withheld = 0;  // results
  friend bool operator==(const RowChecksSeen&, const RowChecksSeen&) = default;
};

class RowChecks {
 public:
  // secret: of this node, seen by nobody yet; nothing: there is none, and all chunks are checked.
  using Secret = std::function<std::optional<Hash256>()>;
  using Wrong = std::function<void(const chain::Evidence& evidence, const RowProof& proof)>;
  RowChecks(RowChecker::Services services, const chain::ChainRules& rules, OuterRules outer, Duration allowed,
            const net::NodeId& self, Accusations::RowOf row, Secret secret, Wrong wrong, Logger& logger);

  // Looks for new results. tip: with a closed round, whose attestations and contributions the books have.
  void look(const chain::ChainTip& tip, const AttestationBook& attestations,
            const ContributionBook& contributions);
  // A round closes: drops checks of earlier results that have not begun, because those of this round are worth more.
  void on_close(std::uint64_t round);
  // Vectors of that round: they may call this node's checks of the round before. open: of the registry before the close.
  void call(const std::vector<chain::OpenRow>& open, std::uint64_t round,
            const std::vector<chain::Vector>& vectors);
  // Of certified results: those that this node was drawn to check and can't. Ascending.
  std::vector<chain::RowRound> withheld(const chain::Registry& registry) const;
  const RowChecksSeen& seen() const { return seen_; }
  std::uint64_t bytes_received() const { return checker_.bytes_received(); }

 private:
  struct Accused {
    crypto::PublicKey key{};
    chain::AttestedRow attested;
  };
  enum class State : std::uint8_t { Reserved, Waiting, Withheld, Known };
  struct Result {
    RowCase about;
    State state = State::Reserved;
    bool whole = false;  // all chunks
    std::vector<Accused> attesters;
    std::size_t accused = 0;                // so many of them, the first ones
    std::shared_ptr<const RowProof> proof;  // once it is known to be wrong
  };
  void look_at(const chain::ChainTip& tip, const chain::OpenRow& open, bool first,
               const AttestationBook& attestations, const ContributionBook& contributions);
  std::optional<RowCase> case_of(const chain::ChainTip& tip, const chain::OpenRow& open,
                                 const chain::RowResult& result, const ContributionBook& contributions) const;
  std::vector<std::uint64_t> choose_chunks(const Result& result) const;
  void check_next();
  void checked(const Hash256& hash, CheckOutcome outcome, std::shared_ptr<const RowProof> proof);
  void check_again_later();
  void accuse(Result& result);

  RowChecker checker_;
  const chain::ChainRules& rules_;
  const OuterRules outer_;
  const net::NodeId self_;
  const Accusations::RowOf row_;
  const Secret secret_;
  const Wrong wrong_;
  Logger& logger_;
  Executor& executor_;
  std::map<Hash256, Result> results_;  // of open rows, by round and hash
  std::deque<Hash256> waiting_;        // of them
  std::unique_ptr<TimerHandle> again_;
  RowChecksSeen seen_;
};

}  // namespace neuroshard::rounds
