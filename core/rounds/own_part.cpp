#include "core/rounds/own_part.h"

#include <algorithm>

#include "core/base/byte_source.h"

namespace neuroshard::rounds {
namespace {

// A record is a magic and parts, each with its length in 8 bytes. Contributions of before have lengths of 4.
constexpr std::string_view kept_magic = "NSOW2", former_magic = "NSOW1", memory_magic = "NSLM2";

ByteSourcePtr text(std::string_view text) {
  return in_memory(Bytes(text.begin(), text.end()));
}

void append_part(std::vector<ByteSourcePtr>& record, ByteSourcePtr part) {
  Bytes size;
  append_le(size, part->size());
  record.push_back(in_memory(std::move(size)));
  record.push_back(std::move(part));
}

// Nothing: not such a record.
std::optional<std::vector<ByteSourcePtr>> parts_of(const ByteSourcePtr& record, std::string_view magic,
                                                   std::size_t size_bytes = sizeof(std::uint64_t)) {
  Bytes head(magic.size());
  if (record->size() < head.size() || !record->read_at(0, head).ok() || as_text(head) != magic)
    return std::nullopt;
  std::vector<ByteSourcePtr> parts;
  for (std::uint64_t at = head.size(), left = record->size() - at; left > 0; left = record->size() - at) {
    std::uint8_t size[sizeof(std::uint64_t)] = {};
    if (left < size_bytes || !record->read_at(at, {size, size_bytes}).ok()) return std::nullopt;
    const auto bytes = load_le<std::uint64_t>(size);
    if (bytes > left - size_bytes) return std::nullopt;
    parts.push_back(part_of(record, at + size_bytes, bytes));
    at += size_bytes + bytes;
  }
  return parts;
}

ByteSourcePtr encode_made(const OwnPart::Made& made) {
  std::vector<ByteSourcePtr> record = {text(kept_magic)};
  append_part(record, in_memory(chain::encode_contribution(made.contribution)));
  for (const Payload& payload : made.payloads) append_part(record, payload);
  return joined(std::move(record));
}

std::optional<OwnPart::Made> decode_made(const ByteSourcePtr& record, std::size_t most_rows) {
  constexpr std::uint64_t longest_contribution = 1u << 20;
  auto parts = parts_of(record, kept_magic);
  if (!parts) parts = parts_of(record, former_magic, sizeof(std::uint32_t));
  if (!parts || parts->empty() || parts->front()->size() > longest_contribution) return std::nullopt;
  const auto bytes = read_all(*parts->front());
  if (!bytes.ok()) return std::nullopt;
  auto contribution = chain::decode_contribution(*bytes, most_rows);
  if (!contribution.ok() || contribution->rows.size() != parts->size() - 1) return std::nullopt;
  return OwnPart::Made{std::move(*contribution), {parts->begin() + 1, parts->end()}};
}

Expected<std::vector<PayloadReading>> read_payloads(const net::NodeId& self,
                                                    const std::vector<Payload>& payloads) {
  std::vector<PayloadReading> readings;
  for (const Payload& payload : payloads) {
    NS_ASSIGN_OR_RETURN(PayloadReading reading, read_payload(self, *payload));
    readings.push_back(std::move(reading));
  }
  return readings;
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
  std::optional<Error> failed;
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
  // Of a part of the model that this node has given up since.
  const auto is_held = [this](const chain::RowWork& work) { return holds(work.row); };
  if (kept_ && !std::all_of(kept_->contribution.rows.begin(), kept_->contribution.rows.end(), is_held))
    kept_.reset();
  const auto memory = services_.store.load(RoundStore::Record::Learners);
  if (!memory.ok()) return;
  const auto parts = parts_of(*memory, memory_magic);
  if (!parts || parts->size() != services_.learners.size()) return;
  for (std::size_t row = 0; row < parts->size(); ++row)
    if ((*parts)[row]->size() > 0 && holds(static_cast<std::uint32_t>(row)))
      services_.learners[row]->recall((*parts)[row]);
}

void OwnPart::open(const Hash256& opening, std::uint64_t round, const Hash256& beacon) {
  // The same round again, as after a succession that another block replaced. A member signs one contribution in it, so
  // the one that is made stays, and one that is being made goes on.
  const bool is_again = opening == opening_;
  if (is_again && made_) kept_ = std::move(made_);
  if (!is_again) making_ = false;
  opening_ = opening;
  beacon_ = beacon;
  round_ = round;
  trouble_.clear();
  made_.reset();
  if (!making_)
    for (const std::uint32_t row : rows()) rows_[row].gave = false;
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
  services_.learners[row]->start({round_, anchor, own.fate.carry, own.fate.counted, beacon_});
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
  return share_trained() >= 1;
}

double OwnPart::share_trained() const {
  double least = 1;
  for (const std::uint32_t row : rows()) {
    const RoundLearner& learner = *services_.learners[row];
    if (learner.ends_early()) continue;
    const double steps = steps_to_make() + learner.extra_steps();
    least = std::min(least, learner.progress().steps / steps);
  }
  return least;
}

bool OwnPart::has_enough_to_contribute() const {
  const std::vector<std::uint32_t> own = rows();
  return std::any_of(own.begin(), own.end(), [this](std::uint32_t row) {
    return services_.learners[row]->progress().steps >= least_steps(steps_to_make());
  });
}

void OwnPart::contribute(const Hash256& reveal, std::vector<std::uint64_t> most_tokens,
                         std::function<void()> made) {
  if (making_ || made_) return;
  making_ = true;
  auto making = std::make_shared<Making>();
  making->round = round_;
  making->opening = opening_;
  making->reveal = reveal;
  making->rows = rows();
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
  if (!boundary.ok() && is_own_failure(boundary.error()))
    making->failed = boundary.error();
  else if (!boundary.ok())
    services_.logger.warning("rounds", boundary.error().describe());
  else if (boundary->work.steps >= least_steps(steps_to_make()) && boundary->work.tokens > 0)
    making->boundaries[which] = std::move(*boundary);
  if (--making->waiting > 0 || making->opening != opening_) return;
  if (making->failed) return failed(*making->failed);
  finish(making);
}

// Nothing has left: what was made is made again.
void OwnPart::failed(const Error& error) {
  making_ = false;
  for (const std::uint32_t row : rows()) rows_[row].gave = false;
  std::string why = error.describe();
  if (why != trouble_) services_.logger.warning("rounds", "this node does not contribute yet: " + why);
  trouble_ = std::move(why);
}

// Of all learners, in the order of rows; empty without one.
ByteSourcePtr OwnPart::memory_of(const Making& making) const {
  std::vector<ByteSourcePtr> memories(rows_.size(), in_memory({}));
  for (std::size_t i = 0; i < making.rows.size(); ++i)
    if (making.boundaries[i] && making.boundaries[i]->memory)
      memories[making.rows[i]] = making.boundaries[i]->memory;
  std::vector<ByteSourcePtr> record = {text(memory_magic)};
  for (ByteSourcePtr& memory : memories) append_part(record, std::move(memory));
  return joined(std::move(record));
}

void OwnPart::finish(const std::shared_ptr<Making>& making) {
  Made made;
  made.contribution.opening = making->opening;
  made.contribution.round = making->round;
  made.contribution.reveal = making->reveal;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < making->rows.size(); ++i) {
    if (!making->boundaries[i]) continue;
    const RoundLearner::Boundary& boundary = *making->boundaries[i];
    chain::RowWork work;
    work.row = making->rows[i];
    work.tokens = std::min(boundary.work.tokens, making->most_tokens[i]);
    work.payload_bytes = boundary.payload->size();
    bytes += work.payload_bytes;
    made.contribution.rows.push_back(work);
    made.payloads.push_back(boundary.payload);
  }
  if (made.payloads.empty()) return;
  // The job's until it is done.
  const auto readings =
      std::make_shared<Expected<std::vector<PayloadReading>>>(std::vector<PayloadReading>());
  std::function<void()> job = [readings, self = crypto::node_id(services_.key.public_key()),
                               payloads = made.payloads] { *readings = read_payloads(self, payloads); };
  run_reading(services_.work, bytes, std::move(job),
              [this, life = lifetime_.token(), making, made = std::move(made), readings]() mutable {
                if (!life.alive() || making->opening != opening_) return;
                if (!readings->ok()) return failed(readings->error());
                made.readings = std::move(**readings);
                hashed(making, std::move(made));
              });
}

void OwnPart::hashed(const std::shared_ptr<Making>& shared, Made made) {
  Making& making = *shared;
  for (std::size_t i = 0; i < made.payloads.size(); ++i) {
    chain::RowWork& work = made.contribution.rows[i];
    work.payload = made.readings[i].root;
    rows_[work.row].gave = true;
  }
  RoundLearner::Boundary* most = nullptr;  // its batches are those of the contribution
  for (std::optional<RoundLearner::Boundary>& boundary : making.boundaries)
    if (boundary && (most == nullptr || boundary->work.tokens > most->work.tokens)) most = &*boundary;
  if (services_.batches == nullptr || most->batches.empty()) return sign(making, std::move(made));
  services_.batches->keep(
      making.round, making.opening, std::move(most->batches),
      [this, life = lifetime_.token(), shared, made = std::move(made)](const Hash256& hash) {
        if (!life.alive() || shared->opening != opening_) return;
        Made named = made;
        named.contribution.batches = hash;
        sign(*shared, std::move(named));
      });
}

void OwnPart::sign(Making& making, Made made) {
  chain::sign_contribution(made.contribution, services_.key, rules_.network);
  services_.store.save(RoundStore::Record::Learners, memory_of(making), [](Expected<void>) {});
  // On the disk before anybody can see it: after a restart there must not be another one.
  ByteSourcePtr record = encode_made(made);
  services_.store.save(RoundStore::Record::Contribution, std::move(record),
                       [this, life = lifetime_.token(), made = std::move(made),
                        then = std::move(making.made)](Expected<void> saved) mutable {
                         if (!life.alive() || made.contribution.opening != opening_) return;
                         if (!saved.ok()) return failed(saved.error());
                         trouble_.clear();
                         made_ = std::move(made);
                         then();
                       });
}

void OwnPart::closed() {
  for (const std::uint32_t row : rows()) services_.learners[row]->closed();
}

void OwnPart::go_on() {
  for (RoundLearner* learner : services_.learners)
    if (learner != nullptr) learner->go_on();
}

}  // namespace neuroshard::rounds
