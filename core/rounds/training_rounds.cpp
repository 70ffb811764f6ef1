#include "core/rounds/training_rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/chain/ascending.h"
#include "core/chain/rights.h"
#include "core/rounds/round_roles.h"

namespace neuroshard::rounds {
namespace {
constexpr Duration gather_before_look = std::chrono::milliseconds(200);
constexpr Duration retry_pause = std::chrono::seconds(5);       // after a contribution that could not be made
constexpr Duration most_piece_time = std::chrono::seconds(30);  // of a row that is checked, from one source

// Units and contributions that the close names.
RoundCounts counts_of(const chain::CloseSection& close, const chain::Committee& committee) {
  RoundCounts counts;
  counts.active_units = committee.units();
  counts.contributions = close.contributions.size();
  counts.contributed_units = chain::contributed_units(close, committee);
  return counts;
}

// With fragments nobody waits: a member trains on for the rows to come. And members that are ahead once, as after a start, would
// pull the boundary of one row to that of the row before, for good.
bool others_wait(const chain::ChainRules& rules, const RoundCounts& counts) {
  return rules.fragments == 1 && half_contributed(counts);
}

bool is_resized(const chain::ChainTip& tip, const TrainingOptions& options) {
  return tip.registry->size().size != options.size;
}

bool is_left_out(const ContributorLot& lot, const chain::MemberRecord* member) {
  return member != nullptr && !lot.takes(member->number);
}

Accusations::RowOf row_of(const RowStates& states) {
  return [&states](std::uint32_t row, std::uint64_t round) { return states.proof_row(row, round); };
}

// A check that gets no answer is made again later, and the next one waits for it.
FetchOptions for_checks(FetchOptions options) {
  options.failures_per_source = 1;
  return options;
}

// A step may still wait when the rounds end, so it holds its pool.
std::shared_ptr<StepPool> pool_of_steps(StepPool* given) {
  if (given == nullptr) return std::make_shared<StepPool>();
  return {std::shared_ptr<StepPool>(), given};  // outlives all rounds
}

TrainingOptions with_traces(TrainingOptions options) {
  options.outer.traced = options.chain.has_holders();
  return options;
}

}  // namespace

TrainingRounds::TrainingRounds(TrainingServices services, TrainingOptions options, NewAnchor new_anchor)
    : services_(std::move(services)),
      options_(with_traces(std::move(options))),
      on_new_anchor_(std::move(new_anchor)),
      self_(crypto::node_id(services_.key.public_key())),
      pool_(services_.pool != nullptr ? *services_.pool : own_pool_),
      fetcher_(services_.caller, services_.peers, services_.executor, services_.clock, services_.spool,
               options_.fetch),
      checks_fetcher_(services_.caller, services_.peers, services_.executor, services_.clock, services_.spool,
                      for_checks(options_.fetch)),
      clock_(options_.clock),
      book_(options_.chain, options_.shapes, options_.outer.codec, services_.checks, pool_, options_.rows),
      vectors_(options_.chain, services_.checks),
      exchange_(
          {services_.caller, services_.peers, fetcher_, book_, vectors_, services_.clock, services_.work},
          options_.chain, options_.fetch, self_,
          {[this] { look_soon(); }, [this](const chain::Evidence& evidence) { found(evidence); },
           [this](const Error& error) { cannot(error); }}),
      states_(
          {fetcher_, services_.work, services_.executor, services_.clock, services_.spool,
           pool_of_steps(services_.steps), services_.resize},
          options_.outer, options_.chain.network, options_.shapes, options_.bias_values,
          [this](std::uint32_t row) { on_held(row); }, options_.rows),
      computed_(options_.chain, book_, states_, services_.clock,
                {[this] { look_soon(); }, [this](const Error& error) { cannot(error); }}),
      outcomes_(options_.chain, services_.checks, computed_, options_.rows,
                [this](std::uint32_t row) { return row_is_late(row); }),
      accusations_({fetcher_, services_.work, services_.checks}, options_.chain, options_.outer,
                   row_of(states_), [this](const chain::Evidence& evidence) { found(evidence); }),
      checks_(
          {checks_fetcher_, services_.caller, services_.peers, services_.executor, services_.work},
          options_.chain, options_.outer, most_piece_time, self_, row_of(states_),
          [this]() -> std::optional<Hash256> {
            const auto reveal = port_->beacon_reveal(book_.round() + 1);  // nobody has seen it yet
            return reveal.ok() ? std::optional(*reveal) : std::nullopt;
          },
          [this](const chain::Evidence& evidence, const RowProof& proof) {
            accusations_.add(evidence, proof);
          },
          services_.logger),
      own_({services_.key, services_.learners, services_.store, services_.work, services_.logger,
            services_.batches, options_.rows},
           options_.chain, options_.inner_steps, options_.sync),
      own_vector_(
          {services_.key, services_.clock, services_.store}, options_.chain,
          [this](const chain::Vector& vector) { show_vector(vector); },
          [this](const Error& error) { cannot(error); }),
      admission_(services_.room, services_.logger) {
  fetcher_.check_with(services_.work);
  fetcher_.on_wrong_bytes([this](const net::NodeId& source, const PieceRequest& request) {
    services_.logger.warning(
        "rounds", fmt::format("{}… sent wrong bytes of row {}, so this node takes them from other members",
                              to_hex(source).substr(0, 12), request.row));
  });
}

TrainingRounds::~TrainingRounds() = default;

void TrainingRounds::start() {
  own_.load();
  own_vector_.load();
  tick();
}

void TrainingRounds::tick() {
  timer_ = services_.executor.post_after(options_.tick, [this] { tick(); });
  if (fetcher_.bytes_received() != moved_bytes_) {
    moved_bytes_ = fetcher_.bytes_received();
    moved_at_ = services_.clock.monotonic_now();
  }
  look();
}

// Once for all that arrives until then. In a large network something arrives all the time.
void TrainingRounds::look_soon() {
  if (tip_ && tip_->committee->is_collected()) {
    if (looking_) return;
    looking_ = services_.executor.post_after(gather_before_look, [this] {
      looking_.reset();
      look();
    });
    return;
  }
  if (std::exchange(look_posted_, true)) return;
  look_posted_ = services_.executor.post([this, life = lifetime_.token()] {
    if (!life.alive()) return;
    look_posted_ = false;
    look();
  });
  if (!look_posted_) services_.logger.warning("rounds", "the executor is full; the next tick looks again");
}

// Takes the steps that the time and the messages since the last look allow.
void TrainingRounds::look() {
  if (!tip_) return;
  // Of another size it takes what it computed, and no more.
  if (is_resized(*tip_, options_)) return settle_rows(false);
  const MonotonicTime now = services_.clock.monotonic_now();
  // Before the node does anything for the round.
  const bool room =
      admission_.admits(std::min(std::max(expected_, book_.all().size() + 1), most_contributors_));
  settle_rows(room);
  if (!room) return;
  const bool closed = tip_->registry->closed().has_value();
  if (!closed) {
    const RoundCounts seen = counts();
    see_progress(now, seen);
    contribute(seen);
    const auto position = tip_->committee->position(self_);
    const bool may_sign = own_vector_.kept() != nullptr || port_->may_sign(book_.round());
    if (position && may_sign && own_vector_.may_try() && clock_.wants_vector(now, counts())) {
      chain::Vector vector = book_.vector(tip_->committee->members()[*position].number);
      vector.withheld = checks_.withheld(*tip_->registry);
      own_vector_.sign(std::move(vector));
    }
  }
  if (computes_rows(*tip_->committee, self_)) {
    exchange_.ask(*tip_, own_.has_contributed(), !clock_.is_closing());
    if (closed) computed_.compute(*tip_);
  }
  if (closed) attest();
  if (closed) checks_.look(*tip_, outcomes_.attestations(), book_);
  review();
  train_on_alone(now);
  if (!is_due(*tip_)) return;
  if (making_) {
    const auto done = std::exchange(making_, nullptr);
    done({close_section(), outcomes_.section(*tip_)});
  } else {
    port_->advance();
  }
}

void TrainingRounds::see_progress(MonotonicTime now, const RoundCounts& counts) {
  clock_.look(now, counts);
  if (!clock_.is_closing() || closing_at_) return;
  closing_at_ = now;
  own_.closed();
}

void TrainingRounds::train_on_alone(MonotonicTime now) {
  if (provisional_ || !closing_at_ || now - *closing_at_ < options_.provisional_after) return;
  if (now - moved_at_ < clock_.grace()) return;  // over slow lines it takes so long until all is here
  provisional_ = true;
  const RoundCounts seen = counts();
  services_.logger.info(
      "rounds",
      fmt::format("round {}: no result in sight, so this node trains on by itself. {} of {} units have "
                  "contributed, {} of {} contributions are whole; vectors of {} units are here; this "
                  "node has {} a vector; the round is {}",
                  book_.round(), seen.contributed_units, seen.active_units, seen.complete, seen.contributions,
                  vectors_.units(*tip_->committee), own_vector_.is_signed() ? "signed" : "not signed",
                  tip_->registry->closed() ? "closed" : "open"));
  own_.go_on();
}

// ---- The chain goes on

void TrainingRounds::on_history(const chain::ChainTip& tip) {
  tip_ = tip;
  accusations_.on_block(tip);
  open_round(false);
}

void TrainingRounds::on_block(const chain::ChainTip& tip, const chain::CertifiedBlock& block, bool live) {
  const chain::BlockBody& body = block.block->body;
  making_ = nullptr;
  judging_.clear();
  accusations_.on_block(tip);
  if (body.result) {
    settle_own(*body.result);
    tip_ = tip;
    const auto& rows = body.result->rows;
    open_round(std::all_of(rows.begin(), rows.end(), [](const auto& row) { return row.carried; }));
    if (live) ++seen_.rounds;
  } else {
    const std::optional<chain::ChainTip> before = std::exchange(tip_, tip);
    vectors_.on_committee();
    if (body.close && before) {
      exchange_.compare(*before, *body.close);
      checks_.on_close(body.close->round);
      // A leader can leave vectors out.
      for (const auto& vectors : {body.close->vectors, vectors_.that_withhold()})
        checks_.call(before->registry->open_rows(), body.close->round, vectors);
    }
    if (body.close) {
      const MonotonicTime now = services_.clock.monotonic_now();
      // Others' contributions don't reach a member outside a large committee.
      if (before && !computes_rows(*before->committee, self_))
        see_progress(now, counts_of(*body.close, *before->committee));
      services_.logger.debug("rounds", fmt::format("round {} is closed", body.close->round));
      clock_.closed(now);
      posts_.closed();
    }
    look_soon();
  }
}

// Decides the fate of this node's work by the result; tip_ is still the one before.
void TrainingRounds::settle_own(const chain::ResultSection& result) {
  if (!tip_ || !tip_->registry->closed()) return;
  const chain::ClosedRound& closed = *tip_->registry->closed();
  const chain::MemberRecord* member = tip_->registry->find(self_);
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const chain::RowResult& row = result.rows[i];
    if (!own_.holds(row.row)) continue;
    WorkOutcome outcome = WorkOutcome::Absent;
    if (row.carried) {
      outcome = WorkOutcome::RowCarried;
      ++seen_.rows_carried;
    } else if (own_.gave(row.row) && member != nullptr) {
      const auto& in = closed.contributors[i];
      const bool counted = std::binary_search(in.begin(), in.end(), member->number);
      const bool heard =
          find_by(closed.contributions, &chain::ContributionEntry::member, member->number) != nullptr;
      outcome = counted ? WorkOutcome::Counted : heard ? WorkOutcome::Heard : WorkOutcome::LeftOut;
      ++(counted ? seen_.counted : seen_.left_out);
    }
    own_.end_row(row.row, outcome);
  }
  if (own_.has_contributed()) seen_.waiting += services_.clock.monotonic_now() - contributed_at_;
}

void TrainingRounds::open_round(bool carried_before) {
  exchange_.open();
  book_.open(*tip_);
  vectors_.open(*tip_);
  outcomes_.open(*tip_);
  // The close has moved the beacon on to the next round.
  own_.open(tip_->opening, book_.round(), tip_->registry->closed() ? Hash256{} : tip_->registry->beacon());
  clock_.open(services_.clock.monotonic_now(), carried_before, tip_->times.durations);
  if (tip_->registry->size().changing) clock_.closed(services_.clock.monotonic_now());
  expected_ = expected_members(*tip_->registry, book_.lot());
  most_contributors_ = std::max<std::size_t>(most_contributors(*tip_->registry), 1);
  computed_.clear();
  quorum_at_.reset();
  closing_at_.reset();
  own_vector_.open(book_.opening());
  provisional_ = false;
  admission_.open();
  next_try_ = {};
  posts_.open();
  if (own_.has_contributed()) show_own();
  look_soon();
}

// fetch: false: only with what this node has.
void TrainingRounds::settle_rows(bool fetch) {
  const auto& rows = tip_->registry->rows();
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    if (!own_.holds(row)) continue;
    if (!states_.holds(row, rows[row].anchor))
      states_.settle(row, rows[row],
                     fetch ? anchor_sources(*tip_->committee, self_, row) : std::vector<net::NodeId>());
    else if (!is_resized(*tip_, options_))
      own_.begin(row, rows[row].anchor, states_.state(row));
  }
}

void TrainingRounds::on_held(std::uint32_t row) {
  if (!tip_ || !states_.holds(row, tip_->registry->rows()[row].anchor)) return;
  seen_.trouble.clear();
  services_.logger.debug("rounds", fmt::format("row {}: the anchor of round {} is here", row,
                                               tip_->registry->rows()[row].changed_round));
  if (on_new_anchor_) on_new_anchor_(tip_->registry->rows()[row].changed_round, row, states_.state(row));
  if (is_resized(*tip_, options_)) return;
  own_.begin(row, states_.hash(row), states_.state(row));
  if (states_.holds_all(*tip_->registry)) port_->set_ready(true);
  look_soon();
}

// ---- Own contribution and vector

void TrainingRounds::contribute(const RoundCounts& seen) {
  if (own_.has_contributed() || own_.is_making() || !states_.holds_all(*tip_->registry)) return;
  const MonotonicTime now = services_.clock.monotonic_now();
  // A member outside the committee can only tell by the time.
  const bool ends =
      !tip_->committee->position(self_) && clock_.closes_before_all_steps(now, own_.share_trained());
  const bool waited_for = clock_.is_closing() || others_wait(options_.chain, seen) || ends;
  if (!own_.has_trained() && !(own_.has_enough_to_contribute() && waited_for)) return;
  const chain::MemberRecord* member = tip_->registry->find(self_);
  if (member == nullptr || member->registered_height > tip_->registry->opening_height()) return;
  if (now < next_try_ || is_left_out(book_.lot(), member)) return;
  const auto reveal = port_->beacon_reveal(book_.round());
  if (!reveal.ok()) return;
  next_try_ = now + retry_pause;
  std::vector<std::uint64_t> most_tokens;
  for (const std::uint32_t row : own_.rows())
    most_tokens.push_back(chain::most_row_tokens(options_.chain, *tip_->registry, row, book_.round()));
  services_.logger.debug("rounds", fmt::format("round {}: this node makes its contribution", book_.round()));
  own_.contribute(*reveal, std::move(most_tokens), [this] { show_own(); });
}

void TrainingRounds::show_own() {
  const OwnPart::Made& made = *own_.made();
  contributed_at_ = services_.clock.monotonic_now();
  const auto taken = book_.take(std::make_shared<const HeldContribution>(made.contribution), *tip_);
  if (taken.verdict != chain::Verdict::Taken) {
    services_.logger.warning("rounds", fmt::format("this node's own contribution is refused: {}",
                                                   chain::to_string(taken.verdict)));
    return;
  }
  exchange_.take_own(taken.member, made.payloads, made.readings);
  services_.logger.debug("rounds", fmt::format("round {}: this node has contributed", book_.round()));
  posts_.contribution(made.contribution, made.payloads);
  for (const std::uint32_t member : book_.members()) show_to_candidate(member);
  look_soon();
}

// A contributor gives its payload before the close only to those whose contribution it has, and a voter's goes to
// the other voters. So a voter sends its contribution, without payloads, to each other contributor, too. Members
// outside a large committee fetch no payloads, so it is for those only that have to give theirs.
void TrainingRounds::show_to_candidate(std::uint32_t member) {
  const ContributionBook::Entry& entry = *book_.find(member);
  const bool shows = own_.made() && tip_->committee->position(self_) && entry.held->id() != self_ &&
                     tip_->committee->units_of(member) == 0 &&
                     !(tip_->committee->is_collected() && book_.is_complete(entry));
  if (shows) posts_.contribution_to(member, entry.held->id(), own_.made()->contribution);
}

void TrainingRounds::show_vector(const chain::Vector& vector) {
  services_.logger.debug(
      "rounds", fmt::format("round {}: this node has signed its vector of {} of {} whole contributions",
                            book_.round(), book_.complete(), book_.all().size()));
  vectors_.take(std::make_shared<const HeldVector>(vector), *tip_);
  posts_.vector(vector);
  look_soon();
}

// To the voters that do not hold the rows.
void TrainingRounds::attest() {
  const auto attestation = outcomes_.attest(*tip_, services_.key);
  if (!attestation) return;
  posts_.attestation(*attestation);
  look_soon();
}

RoundCounts TrainingRounds::counts() const {
  RoundCounts counts;
  counts.active_units = tip_->committee->units();
  counts.contributed_units = book_.units(tip_->committee);
  counts.contributions = book_.all().size();
  counts.complete = book_.complete();
  counts.expected = expected_;
  counts.payloads_move = payloads_move();
  return counts;
}

bool TrainingRounds::payloads_move() const {
  if (fetcher_.checks() || exchange_.checks()) return true;
  return services_.clock.monotonic_now() - moved_at_ < std::max(clock_.grace(), 2 * fetcher_.piece_took());
}

TrainingView TrainingRounds::view() const {
  TrainingView view = seen_;
  view.round = book_.round();
  if (view.trouble.empty()) view.trouble = own_.trouble();
  if (view.trouble.empty() && tip_ && is_left_out(book_.lot(), tip_->registry->find(self_)))
    view.trouble = fmt::format(
        "so many nodes without a vote registered that the round draws {} of them, and not this one",
        options_.chain.most_candidates);
  view.no_room = admission_.why_not();
  view.holds = tip_ && states_.holds_all(*tip_->registry);
  view.fetches = states_.fetches();
  for (const std::uint32_t row : own_.rows()) view.computes = view.computes || states_.computes(row);
  view.other_identity = fetcher_.other_identity();
  view.contributed = own_.has_contributed();
  view.closing = clock_.is_closing();
  view.provisional = provisional_;
  view.contributions = book_.all().size();
  view.complete = book_.complete();
  view.vectors = vectors_.count();
  view.checks = checks_.seen();
  view.fetched_anchors = states_.fetched();
  view.bytes_received =
      fetcher_.bytes_received() + checks_fetcher_.bytes_received() + checks_.bytes_received();
  return view;
}

}  // namespace neuroshard::rounds
