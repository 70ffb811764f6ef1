// The rounds of a network as its chain's content (chain/content.h): members train, contribute and hold each
// other's payloads; voters sign what they have; the close says who contributes, the result has the new anchors.
//
// Composed of: RoundClock (when), OwnPart (this node's work), OwnVector (what it has), OwnPosts (what it sends),
// ContributionBook and VectorBook (what arrived), RoundExchange (what is missing), RowStates (anchors and steps),
// ClosedRows (the new rows of a closed round), RowOutcomes (by these and by attestations of others), RowChecks (of rows
// that this node does not hold), Accusations (of those that attested wrong results), RoundFetcher (pieces from peers).
// docs/protocol/chain.md has the rules.
//
// All services outlive it. Threads: the executor's, all members.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/chain/outbox.h"
#include "core/rounds/accusations.h"
#include "core/rounds/closed_rows.h"
#include "core/rounds/own_part.h"
#include "core/rounds/own_posts.h"
#include "core/rounds/own_vector.h"
#include "core/rounds/round_clock.h"
#include "core/rounds/round_exchange.h"
#include "core/rounds/round_room.h"
#include "core/rounds/row_checks.h"
#include "core/rounds/row_outcomes.h"
#include "core/rounds/row_states.h"

namespace neuroshard::rounds {

struct TrainingOptions {
  chain::ChainRules chain;
  OuterRules outer;
  RoundClockRules clock;
  std::vector<RowShape> shapes;  // by row
  chain::RowSet rows;            // that this node holds, as it is registered
  std::uint32_t size = 0;        // of the model: shapes and learners are of it
  std::uint64_t bias_values = 0;
  std::uint32_t inner_steps = 500;  // H
  RoundSync sync = RoundSync::Plain;
  FetchOptions fetch;
  Duration tick = std::chrono::milliseconds(500);
  Duration provisional_after = std::chrono::seconds(60);  // closing for so long without a result: train on
};

struct TrainingServices {
  const crypto::KeyPair& key;
  net::PeerCaller& caller;
  chain::Peers& peers;
  Executor& executor;
  const Clock& clock;
  std::vector<RoundLearner*> learners;  // by row; null: of a row that this node does not hold
  RoundStore& store;
  RoundWork& work;
  Spool& spool;  // of payloads and states
  chain::SignatureChecks& checks;
  Logger& logger;
  RoundPool* pool = nullptr;  // null: this node's own
  StepPool* steps = nullptr;
  BatchKeeper* batches = nullptr;  // null: contributions name no batches
  RoundRoom* room = nullptr;       // null: there always is
  ResizeRow resize = nullptr;      // null: the model keeps its size
};

struct TrainingView {
  std::uint64_t round = 0;  // in progress
  bool holds = false;       // the anchors of all its rows
  bool fetches = false;
  bool computes = false;  // new states of its rows
  bool contributed = false, closing = false, provisional = false;
  std::size_t contributions = 0, complete = 0, vectors = 0;
  std::uint64_t counted = 0, left_out = 0, rows_carried = 0;  // of this node's contributions
  std::uint64_t rounds = 0;                                   // results seen live
  std::uint64_t fetched_anchors = 0, evidence = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // pieces of payloads and anchors
  bool other_identity =
      false;             // peers hold the anchors with another tokenizer or model version in their names
  std::string trouble;   // why this node can't keep payloads, make a step or contribute now; empty: it can
  std::string no_room;   // why this node takes no part in the round; empty: it does
  RowChecksSeen checks;  // of rows that this node does not hold
  Duration waiting{};    // between own contribution and next anchor, in all
  std::map<chain::Verdict, std::uint64_t> refused;
};

class TrainingRounds final : public chain::BlockContent {
 public:
  // The anchor may be of another size of the model than the options say. Then this object takes no further part in the rounds: it
  // gives peers that anchor, and waits for its owner to make the model again.
  using NewAnchor = std::function<void(std::uint64_t round, std::uint32_t row, const Anchor& anchor)>;
  TrainingRounds(TrainingServices services, TrainingOptions options, NewAnchor new_anchor);
  ~TrainingRounds() override;

  // Before start(): the chain, and what this node has of the rows.
  void attach(chain::ChainPort& port) {
    port_ = &port;
    posts_.attach(port);
  }
  void offer(std::uint32_t row, std::uint64_t round, Anchor anchor) {
    states_.offer(row, round, std::move(anchor));
  }
  void start();
  // A learner made progress: look now, not at the next tick.
  void progressed() { look(); }
  // net::Method::RoundPiece: payloads, contributions, leaves and chunks of anchors.
  void on_call(const net::Caller& from, ByteSpan request, const net::Respond& respond);
  TrainingView view() const;
  const RowStates& states() const { return states_; }

  // ---- BlockContent
  bool is_due(const chain::ChainTip& tip) override;
  void make(const chain::ChainTip& tip, std::function<void(chain::Sections)> done) override;
  void judge(const chain::ChainTip& tip, const chain::BlockPtr& block, bool binding,
             std::function<void(bool)> done) override;
  void on_block(const chain::ChainTip& tip, const chain::CertifiedBlock& block, bool live) override;
  void on_history(const chain::ChainTip& tip) override;
  chain::Verdict on_post(const net::NodeId& from, const chain::RoundsPost& post,
                         const chain::ChainTip& tip) override;
  chain::Verdict on_accusation(const net::NodeId& from, const chain::Evidence& evidence,
                               const chain::ChainTip& tip) override;
  chain::SignedByMember signed_by(const net::NodeId& member) const override;
  Duration deadline() const override { return clock_.deadline(); }

 private:
  struct Judging {
    chain::BlockPtr block;
    bool binding = true;
    std::function<void(bool)> done;
  };
  using Finding = RowOutcomes::Finding;

  // ---- training_rounds.cpp: the round's course
  void tick();
  void look();
  void look_soon();
  void see_progress(MonotonicTime now, const RoundCounts& counts);
  void train_on_alone(MonotonicTime now);
  void on_held(std::uint32_t row);
  void open_round(bool carried_before);
  void settle_rows(bool fetch);
  void contribute(const RoundCounts& seen);
  void show_own();
  void show_to_candidate(std::uint32_t member);
  void show_vector(const chain::Vector& vector);
  void attest();
  RoundCounts counts() const;
  bool payloads_move() const;
  bool row_is_late(std::uint32_t row) const;
  void settle_own(const chain::ResultSection& result);

  // ---- training_blocks.cpp: sections, made and judged
  std::optional<chain::CloseSection> close_section() const;
  void review();

  // ---- training_exchange.cpp: what comes from others
  chain::Verdict on_contribution(ByteSpan bytes);
  chain::Verdict on_vector(ByteSpan bytes);
  void found(const chain::Evidence& evidence);
  void cannot(const Error& error);

  TrainingServices services_;
  const TrainingOptions options_;
  const NewAnchor on_new_anchor_;
  const net::NodeId self_;
  RoundPool own_pool_;
  RoundPool& pool_;
  RoundFetcher fetcher_;
  RoundFetcher checks_fetcher_;
  RoundClock clock_;
  std::size_t expected_ = 0;           // members in this round; see RoundCounts
  std::size_t most_contributors_ = 1;  // whose deltas the round can take
  ContributionBook book_;
  VectorBook vectors_;
  RoundExchange exchange_;
  RowStates states_;
  ClosedRows computed_;
  RowOutcomes outcomes_;
  Accusations accusations_;
  RowChecks checks_;
  OwnPart own_;
  OwnVector own_vector_;
  OwnPosts posts_;
  chain::ChainPort* port_ = nullptr;
  std::optional<chain::ChainTip> tip_;

  std::vector<Judging> judging_;
  std::unique_ptr<TimerHandle> looking_;  // soon
  bool look_posted_ = false;
  std::function<void(chain::Sections)> making_;
  std::optional<MonotonicTime> quorum_at_;  // vectors of more than two thirds
  std::optional<MonotonicTime> closing_at_;
  MonotonicTime contributed_at_{}, moved_at_{}, next_try_{};
  std::uint64_t moved_bytes_ = 0;
  bool provisional_ = false;
  RoundAdmission admission_;
  TrainingView seen_;
  std::unique_ptr<TimerHandle> timer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::rounds
