#include "core/pipeline/stage_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::pipeline {
namespace {

std::uint64_t count_targets(const std::uint8_t* bytes, std::size_t tokens) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < tokens; ++i)
    if (load_le<std::int32_t>(bytes + i * sizeof(std::int32_t)) >= 0) ++count;
  return count;
}

void add(Sums& sums, const Sums& later) {
  sums.target_tokens += later.target_tokens;
  sums.loss += later.loss;
  sums.balance += later.balance;
  sums.z += later.z;
}

}  // namespace

StageSession::StageSession(const Surroundings& surroundings, SessionHost& host, const Route& route,
                           std::size_t position)
    : around_(surroundings),
      host_(host),
      route_(route),
      position_(position),
      next_(surroundings, {[this](const Result& result, Bytes rows) { returned(result, std::move(rows)); },
                           [this](const Lost& lost) {
                             if (earlier_ != nullptr && !closed_) earlier_->send(encode_message(lost));
                           }}),
      detached_at_(surroundings.clock.monotonic_now()) {
  if (!is_last()) next_.follow(route_, position_ + 1);
}

StageSession::~StageSession() {
  drop_unfinished();
  around_.exchanges.ended(route_.session);
}

void StageSession::attach(FrameStream* earlier) {
  earlier_ = earlier;
  ++attachment_;
  if (earlier == nullptr) detached_at_ = around_.clock.monotonic_now();
}

void StageSession::follow(const Route& route) {
  route_ = route;
  position_ = route.position_of(around_.own).value();
  if (!is_last()) next_.follow(route_, position_ + 1);
}

Expected<std::size_t> StageSession::admit(const Message& message) const {
  const auto refuse = [](const char* text) { return make_error(ErrorCode::InvalidArgument, text); };
  const auto size = payload_bytes(message, route_, own(), around_.hidden);
  if (const auto* work = std::get_if<Work>(&message)) {
    if (!size) return refuse("a micro-batch is larger than its session's");
    if (work->index < finished_below_ || work->index - work->finished_below >= route_.window)
      return refuse("a micro-batch is outside of its session's window");
    return *size;
  }
  if (std::holds_alternative<Result>(message) || std::holds_alternative<Lost>(message))
    return refuse("an earlier hop sends work, not results");
  return std::size_t{0};
}

Expected<void> StageSession::work(const Work& work, Bytes payload) {
  const std::uint64_t tokens = std::uint64_t{work.sequences} * route_.length;
  const std::uint64_t targets = count_targets(payload.data(), tokens);
  if (targets == 0)
    return make_error(ErrorCode::InvalidArgument, "a micro-batch without a target teaches nothing");
  around_.exchanges.note({route_.session, work.index, Direction::Work, earlier_node(), around_.own}, payload);
  forget_below(work.finished_below);
  const auto [entry, is_new] = held_.try_emplace(work.index);
  Held& held = entry->second;
  held.asked_by = attachment_;
  if (!is_new) {
    if (held.phase == Phase::Answered) answer(work.index);
    return {};
  }
  held.sequences = work.sequences;
  held.targets.assign(payload.begin(),
                      payload.begin() + static_cast<std::ptrdiff_t>(tokens * sizeof(std::int32_t)));
  held.payload = std::make_shared<const Bytes>(std::move(payload));
  host_.work_arrived(route_.session, work.index, tokens, targets);
  return {};
}

net::NodeId StageSession::earlier_node() const {
  return position_ == 0 ? crypto::node_id(route_.driver) : route_.hops[position_ - 1].node;
}

void StageSession::forget_below(std::uint64_t index) {
  if (index <= finished_below_) return;
  finished_below_ = index;
  around_.exchanges.finished_below(route_.session, index);
  for (auto held = held_.begin(); held != held_.end() && held->first < index; held = held_.erase(held))
    if (held->second.phase != Phase::Answered) host_.work_dropped(route_.session, held->first);
}

void StageSession::drop_unfinished() {
  for (const auto& [index, held] : std::exchange(held_, {}))
    if (held.phase != Phase::Answered) host_.work_dropped(route_.session, index);
}

void StageSession::close(std::uint64_t finished_below) {
  forget_below(finished_below);
  closed_ = true;
  drop_unfinished();
  if (!is_last()) next_.close(finished_below);
}

StageSession::Held& StageSession::held(std::uint64_t index) {
  const auto found = held_.find(index);
  NS_CHECK(found != held_.end());
  return found->second;
}

StageSession::Input StageSession::input_of(std::uint64_t index) const {
  const auto found = held_.find(index);
  NS_CHECK(found != held_.end() && found->second.phase == Phase::Here);
  return {found->second.sequences, found->second.payload};
}

std::shared_ptr<const Bytes> StageSession::gradient_of(std::uint64_t index) const {
  const auto found = held_.find(index);
  NS_CHECK(found != held_.end() && found->second.phase == Phase::Returned);
  return found->second.payload;
}

void StageSession::forward_done(std::uint64_t index, const Sums& sums, Bytes rows) {
  Held& held = this->held(index);
  held.sums = sums;
  if (is_last()) return backward_done(index, std::move(rows));
  held.phase = Phase::AtNext;
  held.payload.reset();
  auto payload = std::make_shared<Bytes>(std::exchange(held.targets, {}));
  payload->insert(payload->end(), rows.begin(), rows.end());
  next_.send({index, finished_below_, held.sequences}, std::move(payload));
}

void StageSession::returned(const Result& result, Bytes rows) {
  const auto found = held_.find(result.index);
  if (found == held_.end() || found->second.phase != Phase::AtNext) return;  // given up meanwhile
  Held& held = found->second;
  held.phase = Phase::Returned;
  held.payload = std::make_shared<const Bytes>(std::move(rows));
  add(held.sums, result.sums);
  host_.gradient_arrived(route_.session, result.index);
}

void StageSession::backward_done(std::uint64_t index, Bytes rows) {
  Held& held = this->held(index);
  held.phase = Phase::Answered;
  held.targets.clear();
  held.payload = std::make_shared<const Bytes>(std::move(rows));
  answer(index);
}

void StageSession::answer(std::uint64_t index) {
  const Held& held = this->held(index);
  if (earlier_ == nullptr || held.asked_by != attachment_) return;  // it asks again when it is back
  around_.exchanges.note({route_.session, index, Direction::Result, around_.own, earlier_node()},
                         *held.payload);
  earlier_->send(encode_message(Result{index, held.sums}), held.payload);
}

std::size_t StageSession::unfinished() const {
  return static_cast<std::size_t>(std::count_if(
      held_.begin(), held_.end(), [](const auto& entry) { return entry.second.phase != Phase::Answered; }));
}

}  // namespace neuroshard::pipeline
