// A node's own part in the rounds: it drives the learners of the rows, makes the contribution, keeps it before
// anybody sees it, and decides what becomes of work that is not in a certified row.
//
//   what happened to the work for a row        what goes along with the next start
//   it is in the certified row                 what came after the boundary
//   the row was carried (the anchor stays)     everything; error feedback takes back what was sent
//   a new row without it; a voter had it       everything, once
//   a new row without it; nobody had it        what came after the boundary
//   nothing was contributed                    everything, for two new rows of this kind
//
// All services outlive it. Threads: the executor's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/lifetime.h"
#include "core/base/log.h"
#include "core/chain/content.h"
#include "core/rounds/contribution_book.h"
#include "core/rounds/learner.h"
#include "core/rounds/sync.h"

namespace neuroshard::rounds {

enum class WorkOutcome : std::uint8_t {
  Counted,     // in the new row
  RowCarried,  // the row has its old anchor
  Heard,       // not in the new row, but in a voter's vector
  LeftOut,     // contributed, and nobody had it
  Absent,      // nothing contributed
};
inline constexpr std::uint32_t most_rounds_left_out = 2;
struct WorkFate {
  Carry carry = Carry::Nothing;
  bool counted = false;
};
// rounds_left_out: new rows in a row that this node's work is not in, this one included.
WorkFate fate_of(WorkOutcome outcome, std::uint32_t rounds_left_out);

class OwnPart {
 public:
  struct Services {
    const crypto::KeyPair& key;
    std::vector<RoundLearner*> learners;  // by row
    RoundStore& store;
    RoundWork& work;
    Logger& logger;
    BatchKeeper* batches = nullptr;  // null: no contribution names its batches
    chain::RowSet rows = {};         // that this node holds; the other rows' learners are null
  };
  struct Made {
    chain::Contribution contribution;
    std::vector<Payload> payloads;  // per row of the contribution
    // Of the payloads. Empty: they were made before a restart, and the disk may have changed them.
    std::vector<PayloadReading> readings = {};
  };
  OwnPart(Services services, const chain::ChainRules& rules, std::uint32_t inner_steps, RoundSync sync);

  // Loads the state from before a restart; once.
  void load();
  // A round begins at this opening block; the learners of rows that have a fate start from their anchors.
  // beacon: after that block; zeros: not known.
  void open(const Hash256& opening, std::uint64_t round, const Hash256& beacon);
  // The row's anchor is held. Does nothing while its learner already trains from it.
  void begin(std::uint32_t row, const Hash256& hash, const Anchor& anchor);
  void end_row(std::uint32_t row, WorkOutcome outcome);

  bool has_trained() const;               // all steps of the round
  bool has_enough_to_contribute() const;  // of a row, the fewest that count
  double share_trained() const;           // steps made by steps of the round, of the row with the fewest
  bool has_contributed() const { return made_.has_value(); }
  bool holds(std::uint32_t row) const { return services_.rows.has(row); }
  // Of the round in progress, ascending.
  std::vector<std::uint32_t> rows() const { return services_.rows.among(rules_.rows_of(round_)); }
  bool gave(std::uint32_t row) const { return rows_[row].gave; }
  bool is_making() const { return making_; }
  // Why this node can't contribute to the round for now; contribute() tries again. Empty: it can.
  const std::string& trouble() const { return trouble_; }
  const std::optional<Made>& made() const { return made_; }
  // Takes the boundaries and signs; `made` when it is on the disk, not at all when there is too little work.
  // most_tokens: that may be claimed, per row of rows(); a node that trained on alone has more.
  void contribute(const Hash256& reveal, std::vector<std::uint64_t> most_tokens, std::function<void()> made);
  // The others have done their part, too.
  void closed();
  // No result in sight: train on.
  void go_on();
  std::uint32_t steps_to_make() const;

 private:
  struct Row {
    Hash256 anchor{};  // that the learner trains from; zeros: none yet
    WorkFate fate;     // of the next start
    bool gave = false;
    std::uint32_t left_out = 0;
  };
  struct Making;
  void got(const std::shared_ptr<Making>& making, std::size_t which,
           Expected<RoundLearner::Boundary> boundary);
  void finish(const std::shared_ptr<Making>& making);
  void hashed(const std::shared_ptr<Making>& shared, Made made);
  void sign(Making& making, Made made);
  ByteSourcePtr memory_of(const Making& making) const;
  void failed(const Error& error);

  Services services_;
  const chain::ChainRules& rules_;
  const std::uint32_t inner_steps_;
  const AfterBoundary after_;
  Hash256 opening_{}, beacon_{};
  std::uint64_t round_ = 0;
  std::vector<Row> rows_;
  bool making_ = false;
  std::string trouble_;
  std::optional<Made> made_, kept_;  // kept_: of before a restart
  Lifetime lifetime_;
};

}  // namespace neuroshard::rounds
