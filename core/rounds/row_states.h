// The outer state of each row as this node holds it: the anchor that the registry names, the one before it for
// peers that are a step behind (where rows can be taken back, all that a row can return to), and steps that were computed and may be certified. It fetches
// anchors that this node lacks from peers and checks them leaf by leaf.
//
// A state of another size is kept and given to peers like any other; the owner makes these objects anew to train with it.
//
// All services outlive it. Threads: the executor's; computations run in RoundWork.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/lifetime.h"
#include "core/chain/registry.h"
#include "core/rounds/contribution_book.h"
#include "core/rounds/fetch.h"
#include "core/rounds/learner.h"
#include "core/rounds/row_proof.h"
#include "core/rounds/step.h"

namespace neuroshard::rounds {

// Makes the steps. A simulation of thousands of nodes in one process makes equal steps once.
class StepPool {
 public:
  virtual ~StepPool() = default;
  // key: of all that the step is made of but the anchor before it, which the key's round and row have once.
  virtual Expected<StepPtr> make(const Hash256& key, const std::function<Expected<StepPtr>()>& step) {
    (void)key;
    return step();
  }
};

// The contributors' work in a row, in their order.
struct RowInputs {
  std::vector<StepInput> work;
  Hash256 payloads{};  // Merkle root over the roots of the payloads
};

// The state of a row of the model of another size, from that of the present one. `to`: a neighbour. Threads: any.
using ResizeRow = std::function<Expected<Anchor>(std::uint32_t row, std::uint32_t to, const OuterState& state,
                                                 Spool& spool)>;

class RowStates {
 public:
  struct Services {
    RoundFetcher& fetcher;
    RoundWork& work;
    Executor& executor;
    const Clock& clock;
    Spool& spool;  // of new states
    std::shared_ptr<StepPool> steps;
    ResizeRow resize;  // null: the model keeps its size
  };
  // A row's state is the one that the registry names.
  using Held = std::function<void(std::uint32_t row)>;
  RowStates(Services services, OuterRules rules, const Hash256& network, std::vector<RowShape> shapes,
            std::uint64_t bias_values, Held held, chain::RowSet rows = {});

  outer::AnchorIdentity identity(std::uint32_t row, std::uint64_t round) const;
  // The same with the row's size, for those that check it.
  ProofRow proof_row(std::uint32_t row, std::uint64_t round) const {
    return {identity(row, round), shapes_[row].values, bias_values_};
  }
  // From this node's disk, or the initial weights: believed once it has the anchor's hash. One of each round.
  void offer(std::uint32_t row, std::uint64_t round, Anchor state);
  // Brings a row to the anchor of the registry: by a step that was computed, by what was offered, or from
  // these peers. Calls `held` later or at once.
  void settle(std::uint32_t row, const chain::RowRecord& wanted, const std::vector<net::NodeId>& sources);
  bool holds(std::uint32_t row, const Hash256& anchor) const {
    return rows_[row].held->hash == anchor && state(row);
  }
  // The anchors of all rows of this node.
  bool holds_all(const chain::Registry& registry) const;
  const Anchor& state(std::uint32_t row) const { return rows_[row].held->state; }
  const Hash256& hash(std::uint32_t row) const { return rows_[row].held->hash; }
  // The judgement of the contributions to the state held; null: this node did not compute the step.
  const outer::AggregateReport* report(std::uint32_t row) const {
    const auto& report = rows_[row].held->report;
    return report ? &*report : nullptr;
  }
  bool fetches() const;
  // A step of this row is being computed.
  bool computes(std::uint32_t row) const;
  std::uint64_t fetched() const { return fetched_; }

  // The step of a round from the state held. beacon: after the close. Equal inputs are computed once; `done` later, once.
  using Computed = std::function<void(const Expected<StepPtr>& step)>;
  void compute(std::uint32_t row, std::uint64_t round, RowInputs inputs, const RowLimits& limits,
               const Hash256& beacon, Computed done);
  // The same for a round that changes the size of the model, which is `from` here.
  void resize(std::uint32_t row, std::uint64_t round, std::uint32_t from, std::uint32_t to, Computed done);
  // Leaves and chunks of the states held, and traces of steps that were made here. NotFound.
  Expected<Bytes> piece(const PieceRequest& request) const;

 private:
  struct Computing {
    std::optional<Expected<StepPtr>> result;
    std::vector<Computed> waiting;
  };
  struct Row {
    StepPtr held = std::make_shared<const StepResult>();  // without a state: none yet
    std::deque<StepPtr> earlier;                          // newest first
    std::map<std::uint64_t, Anchor> offered;              // by round
    Hash256 settling{};                                   // the anchor that is checked or fetched
    MonotonicTime next_fetch{};
    RoundFetcher::Ticket fetching;
    std::map<Hash256, std::shared_ptr<Computing>> computing;  // by inputs
  };
  using Job = std::function<Expected<StepPtr>()>;
  // key: of all that it is made of.
  void run(std::uint32_t row, const Hash256& key, Job job, Computed done);
  void take(std::uint32_t row, StepPtr state);
  // Every step that this node has of the row: held, earlier, computed. Null: none of them is like this.
  StepPtr find(std::uint32_t row, const std::function<bool(const StepResult&)>& is_wanted) const;
  void check_offered(std::uint32_t row, const chain::RowRecord& wanted);
  void fetch(std::uint32_t row, const chain::RowRecord& wanted, const std::vector<net::NodeId>& sources);

  Services services_;
  const OuterRules rules_;
  const Hash256 network_;
  const std::vector<RowShape> shapes_;
  const std::uint64_t bias_values_;
  const Held held_;
  const chain::RowSet own_;  // the rows that this node holds
  std::vector<Row> rows_;
  std::uint64_t fetched_ = 0;
  Lifetime lifetime_;
};

}  // namespace neuroshard::rounds
