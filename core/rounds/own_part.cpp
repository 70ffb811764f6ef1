#include "core/rounds/own_part.h"

#include <algorithm>

#include "core/chain/reader.h"

namespace neuroshard::rounds {
namespace {

constexpr std::string_view kept_magic = "NSOW1";

Bytes encode_made(const OwnPart::Made& made) {
  Bytes bytes(kept_magic.begin(), kept_magic.end());
  chain::append_part(bytes, chain::encode_contribution(made.contribution));
  for (const PayloadBytes& payload : made.payloads) chain::append_part(bytes, *payload);
  return bytes;
}

std::optional<OwnPart::Made> decode_made(ByteSpan bytes, std::size_t most_rows) {
  if (bytes.size() < kept_magic.size() || as_text(bytes.first(kept_magic.size())) != kept_magic)
    return std::nullopt;
  chain::Reader reader(bytes.subspan(kept_magic.size()));
  auto contribution = chain::decode_contribution(reader.part(), most_rows);
  if (!contribution.ok()) return std::nullopt;
  OwnPart::Made made{std::move(*contribution), {}};
  for (std::size_t i = 0; i < made.contribution.rows.size(); ++i) {
    const ByteSpan payload = reader.part();
    made.payloads.push_back(std::make_shared<const Bytes>(payload.begin(), payload.end()));
  }
  return reader.at_end() ? std::optional(std::move(made)) : std::nullopt;
}

}  // namespace

WorkFate fate_of(WorkOutcome outcome, std::uint32_t rounds_left_out) {
  const bool too_often = rounds_left_out > most_rounds_left_out;
  switch (outcome) {
    case WorkOutcome::Counted: return {Carry::SinceBoundary, true};
    case WorkOutcome::RowCarried: return {Carry::Everything, false};
    case WorkOutcome::Heard: return {rounds_left_out > 1 ? Carry::SinceBoundary : Carry::Everything, false};
    case WorkOutcome::LeftOut: return {too_often ? Carry::Nothing : Carry::SinceBoundary, false};
    case WorkOutcome::Absent: return {too_often ? Carry::Nothing : Carry::Everything, false};
  }
  return {};
}

// Boundaries of the round's rows, one after the other or all at once.
struct OwnPart::Making {
  std::uint64_t round = 0;
  Hash256 opening{}, reveal{};
  std::vector<std::uint32_t> rows;
  std::vector<std::uint64_t> most_tokens;
  std::vector<std::optional<RoundLearner::Boundary>> boundaries;
  std::size_t waiting = 0;
  std::function<void()> made;
};

OwnPart::OwnPart(Services services, const chain::ChainRules& rules, std::uint32_t inner_steps, RoundSync sync)
    : services_(std::move(services)),
      rules_(rules),
      inner_steps_(inner_steps),
      after_(sync == RoundSync::Delayed ? AfterBoundary::TrainOn : AfterBoundary::Rest),
      rows_(services_.learners.size()) {}

void OwnPart::load() {
  if (const auto kept = services_.store.load(RoundStore::Record::Contribution); kept.ok())
    kept_ = decode_made(*kept, rules_.rows);
  const auto memory = services_.store.load(RoundStore::Record::Learners);
  if (!memory.ok()) return;
  chain::Reader reader(*memory);
  for (RoundLearner* learner : services_.learners) {
    const ByteSpan part = reader.part();
    if (!reader.good()) return;
    if (!part.empty()) learner->recall(Bytes(part.begin(), part.end()));
  }
}

void OwnPart::open(const Hash256& opening, std::uint64_t round) {
  opening_ = opening;
  round_ = round;
  making_ = false;
  made_.reset();
  for (const std::uint32_t row : rules_.rows_of(round)) rows_[row].gave = false;
  if (kept_ && kept_->contribution.opening == opening) {
    made_ = std::move(kept_);
    for (const chain::RowWork& work : made_->contribution.rows) rows_[work.row].gave = true;
  }
  kept_.reset();
}

void OwnPart::begin(std::uint32_t row, const Hash256& hash, const Anchor& anchor) {
  Row& own = rows_[row];
  if (own.anchor == hash) return;
  own.anchor = hash;
  services_.learners[row]->start({round_, anchor, own.fate.carry, own.fate.counted});
  own.fate = {};
}

void OwnPart::end_row(std::uint32_t row, WorkOutcome outcome) {
  Row& own = rows_[row];
  if (outcome == WorkOutcome::Counted)
    own.left_out = 0;
  else if (outcome != WorkOutcome::RowCarried)
    ++own.left_out;
  own.fate = fate_of(outcome, own.left_out);
  // A carried row's learner starts again from the anchor that it has.
  if (outcome == WorkOutcome::RowCarried) own.anchor = {};
}

// In the first rounds a fragment has had fewer of its turns.
std::uint32_t OwnPart::steps_to_make() const {
  const std::uint64_t turns = std::min<std::uint64_t>(std::max<std::uint64_t>(round_, 1), rules_.fragments);
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, inner_steps_ * turns / std::max(1u, rules_.fragments)));
}

bool OwnPart::has_trained() const {
  for (const std::uint32_t row : rules_.rows_of(round_)) {
    const RoundLearner& learner = *services_.learners[row];
    const bool enough = learner.progress().steps >= steps_to_make() + learner.extra_steps();
    if (!enough && !learner.ends_early()) return false;
  }
  return true;
}

void OwnPart::contribute(const Hash256& reveal, std::vector<std::uint64_t> most_tokens,
                         std::function<void()> made) {
  if (making_ || made_) return;
  making_ = true;
  auto making = std::make_shared<Making>();
  making->round = round_;
  making->opening = opening_;
  making->reveal = reveal;
  making->rows = rules_.rows_of(round_);
  making->most_tokens = std::move(most_tokens);
  making->boundaries.resize(making->rows.size());
  making->waiting = making->rows.size();
  making->made = std::move(made);
  for (std::size_t i = 0; i < making->rows.size(); ++i)
    services_.learners[making->rows[i]]->boundary(
        after_, [this, life = lifetime_.token(), making, i](Expected<RoundLearner::Boundary> boundary) {
          if (life.alive()) got(making, i, std::move(boundary));
        });
}

void OwnPart::got(const std::shared_ptr<Making>& making, std::size_t which,
                  Expected<RoundLearner::Boundary> boundary) {
  if (!boundary.ok())
    services_.logger.warning("rounds", boundary.error().describe());
  else if (boundary->work.steps >= least_steps(steps_to_make()) && boundary->work.tokens > 0)
    making->boundaries[which] = std::move(*boundary);
  if (--making->waiting > 0 || making->opening != opening_) return;
  sign(*making);
}

void OwnPart::sign(Making& making) {
  const net::NodeId self = crypto::node_id(services_.key.public_key());
  Made made;
  made.contribution.opening = making.opening;
  made.contribution.round = making.round;
  made.contribution.reveal = making.reveal;
  Bytes memory;
  for (std::size_t i = 0; i < making.rows.size(); ++i) {
    if (!making.boundaries[i]) continue;
    RoundLearner::Boundary& boundary = *making.boundaries[i];
    chain::RowWork work;
    work.row = making.rows[i];
    work.tokens = std::min(boundary.work.tokens, making.most_tokens[i]);
    work.payload_bytes = boundary.payload.size();
    work.payload = payload_root(self, boundary.payload);
    made.contribution.rows.push_back(work);
    made.payloads.push_back(std::make_shared<const Bytes>(std::move(boundary.payload)));
    rows_[work.row].gave = true;
  }
  if (made.contribution.rows.empty()) return;
  for (std::uint32_t row = 0; row < rows_.size(); ++row) {
    const auto at = std::find(making.rows.begin(), making.rows.end(), row);
    const auto& boundary = at == making.rows.end()
                               ? std::optional<RoundLearner::Boundary>()
                               : making.boundaries[static_cast<std::size_t>(at - making.rows.begin())];
    chain::append_part(memory, boundary ? ByteSpan(boundary->memory) : ByteSpan());
  }
  chain::sign_contribution(made.contribution, services_.key, rules_.network);
  services_.store.save(RoundStore::Record::Learners, std::move(memory), [](Expected<void>) {});
  // On the disk before anybody can see it: after a restart there must not be another one.
  Bytes kept = encode_made(made);
  services_.store.save(RoundStore::Record::Contribution, std::move(kept),
                       [this, life = lifetime_.token(), made = std::move(made),
                        then = std::move(making.made)](Expected<void> saved) mutable {
                         if (!life.alive() || made.contribution.opening != opening_) return;
                         if (!saved.ok()) return services_.logger.error("rounds", saved.error().describe());
                         made_ = std::move(made);
                         then();
                       });
}

void OwnPart::closed() {
  for (const std::uint32_t row : rules_.rows_of(round_)) services_.learners[row]->closed();
}

void OwnPart::go_on() {
  for (RoundLearner* learner : services_.learners) learner->go_on();
}

}  // namespace neuroshard::rounds
