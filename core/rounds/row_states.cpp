#include "core/rounds/row_states.h"

#include <algorithm>
#include <utility>

#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/net/peer_channel.h"

namespace neuroshard::rounds {
namespace {

constexpr Duration fetch_pause = std::chrono::seconds(2);
constexpr std::size_t steps_kept = 2;  // results hold a whole state each

Hash256 key_of(std::uint32_t row, std::uint64_t round, const Hash256& beacon, const RowInputs& inputs) {
  Bytes bytes(beacon.begin(), beacon.end());
  append_le(bytes, row);
  append_le(bytes, round);
  bytes.insert(bytes.end(), inputs.payloads.begin(), inputs.payloads.end());
  for (const StepInput& input : inputs.work) {
    bytes.insert(bytes.end(), input.id.begin(), input.id.end());
    append_le(bytes, input.tokens);
  }
  return crypto::sha256(bytes);
}

Hash256 resize_key(std::uint32_t row, std::uint64_t round, const Hash256& before, std::uint32_t to) {
  Bytes bytes(before.begin(), before.end());
  append_le(bytes, row);
  append_le(bytes, round);
  append_le(bytes, to);
  return crypto::Sha256().update("resize").update(bytes).finish();
}

}  // namespace

RowStates::RowStates(Services services, OuterRules rules, const Hash256& network,
                     std::vector<RowShape> shapes, std::uint64_t bias_values, Held held, chain::RowSet rows)
    : services_(std::move(services)),
      rules_(std::move(rules)),
      network_(network),
      shapes_(std::move(shapes)),
      bias_values_(bias_values),
      held_(std::move(held)),
      own_(std::move(rows)),
      rows_(shapes_.size()) {}

outer::AnchorIdentity RowStates::identity(std::uint32_t row, std::uint64_t round) const {
  return anchor_identity(network_, rules_, row, round);
}

void RowStates::offer(std::uint32_t row, std::uint64_t round, Anchor state) {
  rows_[row].offered.insert_or_assign(round, std::move(state));
}

bool RowStates::holds_all(const chain::Registry& registry) const {
  for (std::uint32_t row = 0; row < rows_.size(); ++row)
    if (own_.has(row) && !holds(row, registry.rows()[row].anchor)) return false;
  return true;
}

bool RowStates::fetches() const {
  return std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return !row.fetching.expired(); });
}

bool RowStates::computes(std::uint32_t row) const {
  const auto& all = rows_[row].computing;
  return std::any_of(all.begin(), all.end(), [](const auto& one) { return !one.second->result; });
}

void RowStates::settle(std::uint32_t row, const chain::RowRecord& wanted,
                       const std::vector<net::NodeId>& sources) {
  Row& own = rows_[row];
  if (holds(row, wanted.anchor)) return held_(row);
  for (const auto& [key, computing] : own.computing) {
    if (!computing->result || !computing->result->ok()) continue;
    const StepPtr step = **computing->result;
    if (step->hash == wanted.anchor) return take(row, step);
  }
  // It was taken back.
  for (const StepPtr& step : own.earlier)
    if (step->hash == wanted.anchor && step->state) return take(row, StepPtr(step));
  if (own.settling == wanted.anchor) return;  // being fetched
  // The payloads are here: the own result comes sooner than the anchor, which is larger.
  if (computes(row)) return;
  std::erase_if(own.offered, [&](const auto& each) {  // settled: their files go
    return each.first + chain::rounds_to_settle < wanted.changed_round;
  });
  if (own.offered.count(wanted.changed_round) != 0) return check_offered(row, wanted);
  if (services_.clock.monotonic_now() >= own.next_fetch) fetch(row, wanted, sources);
}

void RowStates::take(std::uint32_t row, StepPtr state) {
  Row& own = rows_[row];
  std::erase(own.earlier, state);
  own.earlier.push_front(std::exchange(own.held, std::move(state)));
  if (own.earlier.size() > (rules_.traced ? chain::rounds_to_settle : 1)) own.earlier.pop_back();
  own.settling = {};
  own.computing.clear();
  held_(row);
}

void RowStates::check_offered(std::uint32_t row, const chain::RowRecord& wanted) {
  Row& own = rows_[row];
  own.settling = wanted.anchor;
  const auto checked =
      std::make_shared<StepPtr>();  // the other thread's until the end; null: it can't be read
  services_.work.run(
      [checked, state = own.offered.extract(wanted.changed_round).mapped(),
       identity = identity(row, wanted.changed_round)] {
        if (auto hashed = hashed_state(identity, state); hashed.ok()) *checked = std::move(*hashed);
      },
      [this, life = lifetime_.token(), row, checked, anchor = wanted.anchor] {
        if (!life.alive() || rows_[row].settling != anchor) return;
        rows_[row].settling = {};
        if (*checked && (*checked)->hash == anchor) take(row, *checked);
      });
}

void RowStates::fetch(std::uint32_t row, const chain::RowRecord& wanted,
                      const std::vector<net::NodeId>& sources) {
  if (sources.empty()) return;
  Row& own = rows_[row];
  services_.fetcher.abandon(own.fetching);
  own.settling = wanted.anchor;
  own.fetching = services_.fetcher.anchor(
      row, wanted.anchor, identity(row, wanted.changed_round), shapes_[row].values, bias_values_, sources,
      [this, life = lifetime_.token(), row, anchor = wanted.anchor](Expected<StepPtr> state) {
        if (!life.alive() || rows_[row].settling != anchor) return;
        rows_[row].settling = {};
        rows_[row].next_fetch = services_.clock.monotonic_now() + fetch_pause;
        if (!state.ok()) return;
        ++fetched_;
        take(row, std::move(*state));
      });
}

void RowStates::compute(std::uint32_t row, std::uint64_t round, RowInputs inputs, const RowLimits& limits,
                        const Hash256& beacon, Computed done) {
  const Hash256 key = key_of(row, round, beacon, inputs);
  run(
      row, key,
      [key, inputs = std::move(inputs.work), rules = rules_, before = state(row),
       identity = identity(row, round), limits, draw = RowDraw{beacon, row}, &spool = services_.spool,
       steps = services_.steps] {
        return steps->make(key,
                           [&] { return make_step(rules, identity, *before, inputs, limits, spool, draw); });
      },
      std::move(done));
}

void RowStates::resize(std::uint32_t row, std::uint64_t round, std::uint32_t from, std::uint32_t to,
                       Computed done) {
  outer::AnchorIdentity identity = this->identity(row, round);
  identity.architecture_version = identity.architecture_version + to - from;
  run(
      row, resize_key(row, round, hash(row), to),
      [identity, row, to, before = state(row), &spool = services_.spool,
       resize = services_.resize]() -> Expected<StepPtr> {
        if (!resize) return make_error(ErrorCode::Unsupported, "this node's model keeps its size");
        NS_ASSIGN_OR_RETURN(Anchor resized, resize(row, to, *before, spool));
        return hashed_state(identity, std::move(resized));
      },
      std::move(done));
}

void RowStates::run(std::uint32_t row, const Hash256& key, Job job, Computed done) {
  Row& own = rows_[row];
  for (auto at = own.computing.begin(); own.computing.size() >= steps_kept && at != own.computing.end();)
    at = at->first != key && at->second->result ? own.computing.erase(at) : std::next(at);
  std::shared_ptr<Computing>& entry = own.computing[key];
  if (entry && entry->result) {
    static_cast<void>(
        services_.executor.post([held = entry, done = std::move(done)] { done(*held->result); }));
    return;
  }
  const bool fresh = entry == nullptr;
  if (fresh) entry = std::make_shared<Computing>();
  entry->waiting.push_back(std::move(done));
  if (!fresh) return;
  const auto made = std::make_shared<std::optional<Expected<StepPtr>>>();  // the other thread's until the end
  services_.work.run([made, job = std::move(job)] { made->emplace(job()); },
                     [this, row, key, made, entry = entry, life = lifetime_.token()] {
                       if (!life.alive()) return;
                       entry->result = std::move(*made);
                       // It may succeed when there is room again.
                       if (!entry->result->ok() && is_own_failure(entry->result->error())) {
                         const auto at = rows_[row].computing.find(key);
                         if (at != rows_[row].computing.end() && at->second == entry)
                           rows_[row].computing.erase(at);
                       }
                       const std::vector<Computed> waiting = std::move(entry->waiting);
                       for (const Computed& one : waiting) one(*entry->result);
                     });
}

StepPtr RowStates::find(std::uint32_t row, const std::function<bool(const StepResult&)>& is_wanted) const {
  const Row& own = rows_[row];
  if (is_wanted(*own.held)) return own.held;
  for (const StepPtr& step : own.earlier)
    if (is_wanted(*step)) return step;
  for (const auto& [key, computing] : own.computing)
    if (computing->result && computing->result->ok() && is_wanted(***computing->result))
      return **computing->result;
  return nullptr;
}

namespace {

Expected<Bytes> piece_of_trace(const StepTrace& trace, const PieceRequest& request) {
  if (request.what == PieceRequest::What::TraceLeaves) {
    const ByteSpan leaves(trace.leaves.front().data(), trace.leaves.size() * sizeof(Hash256));
    return answer_from(leaves, request.place);
  }
  if (request.place >= trace.leaves.size()) return piece_not_held();
  const std::uint64_t bytes = trace.sums * sizeof(double);
  return answer_from(*trace.bytes, request.place * bytes, bytes, 0);
}

}  // namespace

Expected<Bytes> RowStates::piece(const PieceRequest& request) const {
  if (request.row >= rows_.size()) return piece_not_held();
  const bool of_trace =
      request.what == PieceRequest::What::TraceLeaves || request.what == PieceRequest::What::TraceSums;
  const StepPtr at = find(request.row, [&](const StepResult& step) {
    return of_trace ? step.trace && step.trace->root == request.hash
                    : step.state && step.hash == request.hash;
  });
  if (at == nullptr) return piece_not_held();
  if (of_trace) return piece_of_trace(*at->trace, request);
  if (request.what == PieceRequest::What::Leaves) {
    const ByteSpan leaves(at->leaves.front().data(), at->leaves.size() * sizeof(Hash256));
    return answer_from(leaves, request.place);
  }
  if (request.place == 0) return piece_not_held();  // the header: everybody makes it
  const OuterState& state = *at->state;
  std::uint64_t leaf = request.place - 1, begin = 0;
  for (const std::uint64_t count : {state.counts.weights, state.counts.momentum, state.counts.bias}) {
    const std::uint64_t bytes = count * sizeof(float);
    const std::uint64_t chunks = (bytes + outer::anchor_chunk_bytes - 1) / outer::anchor_chunk_bytes;
    if (leaf < chunks) {
      const std::uint64_t from = leaf * outer::anchor_chunk_bytes;
      const std::uint64_t size = std::min<std::uint64_t>(bytes - from, outer::anchor_chunk_bytes);
      return answer_from(*state.bytes, begin + from, size, 0);
    }
    leaf -= chunks;
    begin += bytes;
  }
  return piece_not_held();
}

}  // namespace neuroshard::rounds
