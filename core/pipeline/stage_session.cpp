#include "core/pipeline/stage_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::pipeline {

StageSession::StageSession(const Surroundings& surroundings, SessionHost& host, const Route& route,
                           std::size_t position)
    : HopSession(surroundings, route, position), host_(host) {}

StageSession::~StageSession() {
  drop_unfinished();
  around().exchanges.ended(route().session);
}

Expected<void> StageSession::admit_work(const Work& work) const {
  if (work.index < finished_below_) return {};  // it is ignored
  if (work.index - work.finished_below >= route().window)
    return make_error(ErrorCode::InvalidArgument, "a micro-batch is outside of its session's window");
  return {};
}

Expected<void> StageSession::work(const Work& work, Bytes payload) {
  // A hop that was away keeps what went on through another one.
  if (work.index < finished_below_) return {};
  const std::uint64_t tokens = std::uint64_t{work.sequences} * route().length;
  const std::uint64_t targets = count_targets(payload, tokens);
  if (targets == 0)
    return make_error(ErrorCode::InvalidArgument, "a micro-batch without a target teaches nothing");
  around().exchanges.note({route().session, work.index, Direction::Work, earlier_node(), around().own},
                          payload);
  forget_below(work.finished_below);
  const auto [entry, is_new] = held_.try_emplace(work.index);
  Held& held = entry->second;
  held.asked_by = attachment();
  if (!is_new) {
    if (held.phase == Phase::Answered) answer(work.index);
    return {};
  }
  held.sequences = work.sequences;
  held.targets.assign(payload.begin(),
                      payload.begin() + static_cast<std::ptrdiff_t>(tokens * sizeof(std::int32_t)));
  held.payload = std::make_shared<const Bytes>(std::move(payload));
  host_.work_arrived(route().session, work.index, tokens, targets);
  return {};
}

bool StageSession::has_unfinished() const {
  return std::any_of(held_.begin(), held_.end(),
                     [](const auto& entry) { return entry.second.phase != Phase::Answered; });
}

void StageSession::forget_below(std::uint64_t index) {
  if (index <= finished_below_) return;
  finished_below_ = index;
  around().exchanges.finished_below(route().session, index);
  next().forget_below(index);
  for (auto held = held_.begin(); held != held_.end() && held->first < index; held = held_.erase(held))
    if (held->second.phase != Phase::Answered) host_.work_dropped(route().session, held->first);
}

void StageSession::drop_unfinished() {
  for (const auto& [index, held] : std::exchange(held_, {}))
    if (held.phase != Phase::Answered) host_.work_dropped(route().session, index);
}

void StageSession::close(std::uint64_t finished_below) {
  forget_below(finished_below);
  drop_unfinished();
  HopSession::close(finished_below);
}

StageSession::Held& StageSession::held(std::uint64_t index) {
  const auto found = held_.find(index);
  NS_CHECK(found != held_.end());
  return found->second;
}

const StageSession::Held& StageSession::held(std::uint64_t index, Phase phase) const {
  const auto found = held_.find(index);
  NS_CHECK(found != held_.end() && found->second.phase == phase);
  return found->second;
}

StageSession::Input StageSession::input_of(std::uint64_t index) const {
  const Held& one = held(index, Phase::Here);
  return {one.sequences, one.payload};
}

SharedBytes StageSession::gradient_of(std::uint64_t index) const {
  return held(index, Phase::Returned).payload;
}

const Sums& StageSession::sums_of(std::uint64_t index) const {
  return held(index, Phase::Returned).sums;
}

void StageSession::forward_done(std::uint64_t index, const Sums& sums, Bytes rows, Duration took) {
  Held& held = this->held(index);
  held.sums = sums;
  if (is_last()) return backward_done(index, std::move(rows), took);
  held.computing = took;
  held.sent_at = around().clock.monotonic_now();
  held.phase = Phase::AtNext;
  held.payload.reset();
  auto payload = std::make_shared<Bytes>(std::exchange(held.targets, {}));
  payload->insert(payload->end(), rows.begin(), rows.end());
  next().send({index, finished_below_, held.sequences}, std::move(payload));
}

void StageSession::returned(const Result& result, Bytes rows) {
  const auto found = held_.find(result.index);
  if (found == held_.end() || found->second.phase != Phase::AtNext) return;  // given up meanwhile
  Held& held = found->second;
  held.phase = Phase::Returned;
  held.payload = std::make_shared<const Bytes>(std::move(rows));
  held.sums.add_later(result.sums);
  held.times.push_back({0, to_microseconds(around().clock.monotonic_now() - held.sent_at)});
  held.times.insert(held.times.end(), result.times.begin(), result.times.end());
  host_.gradient_arrived(route().session, result.index);
}

void StageSession::backward_done(std::uint64_t index, Bytes rows, Duration took) {
  Held& held = this->held(index);
  if (is_last()) held.times.emplace_back();
  held.times.front().computing = to_microseconds(held.computing + took);
  held.phase = Phase::Answered;
  held.targets.clear();
  held.payload = std::make_shared<const Bytes>(std::move(rows));
  answer(index);
}

void StageSession::answer(std::uint64_t index) {
  const Held& held = this->held(index);
  if (earlier() == nullptr || held.asked_by != attachment()) return;  // it asks again when it is back
  around().exchanges.note({route().session, index, Direction::Result, around().own, earlier_node()},
                          *held.payload);
  earlier()->send(encode_message(Result{index, held.sums, held.times}), held.payload);
}

}  // namespace neuroshard::pipeline
