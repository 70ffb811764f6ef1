#include "core/chain/presence.h"

#include <algorithm>

namespace neuroshard::chain {

PresenceWatch::PresenceWatch(const ChainRules& rules) : rules_(rules) {}

void PresenceWatch::on_block(const Committee& committee, std::optional<std::uint32_t> self,
                             MonotonicTime now) {
  std::map<std::uint32_t, Voter> voters;
  for (const CommitteeMember& member : committee.members()) {
    const auto before = voters_.find(member.number);
    const bool is_new = before == voters_.end();
    voters[member.number] = {member.units, is_new ? now : before->second.last_heard,
                             is_new ? 0 : before->second.said_ms};
  }
  voters_ = std::move(voters);
  self_ = self;
  due_since_.reset();
}

void PresenceWatch::heard(std::uint32_t number, MonotonicTime now) {
  const auto voter = voters_.find(number);
  if (voter != voters_.end()) voter->second.last_heard = now;
}

bool PresenceWatch::is_newer(std::uint32_t number, std::uint64_t time_ms) const {
  const auto voter = voters_.find(number);
  return voter != voters_.end() && time_ms > voter->second.said_ms;
}

void PresenceWatch::said(std::uint32_t number, std::uint64_t time_ms) {
  const auto voter = voters_.find(number);
  if (voter != voters_.end()) voter->second.said_ms = std::max(voter->second.said_ms, time_ms);
}

void PresenceWatch::block_is_due(MonotonicTime now) {
  if (!due_since_) due_since_ = now;
}

Duration PresenceWatch::silent_after() const {
  return std::max(rules_.silent_after, 3 * rules_.block_time);
}

bool PresenceWatch::is_silent(std::uint32_t number, MonotonicTime now) const {
  if (number == self_) return false;
  const auto voter = voters_.find(number);
  return voter != voters_.end() && now - voter->second.last_heard >= silent_after();
}

std::vector<std::uint32_t> PresenceWatch::silent(MonotonicTime now) const {
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, voter] : voters_)
    if (is_silent(number, now)) numbers.push_back(number);
  if (numbers.empty() || numbers.size() < voters_.size()) return numbers;
  numbers.erase(std::max_element(numbers.begin(), numbers.end(), [this](std::uint32_t a, std::uint32_t b) {
    return voters_.at(a).last_heard < voters_.at(b).last_heard;
  }));
  return numbers;
}

bool PresenceWatch::agrees_with(const std::vector<std::uint32_t>& marked, MonotonicTime now) const {
  return (marked.empty() || marked.size() < voters_.size()) &&
         std::all_of(marked.begin(), marked.end(),
                     [&](std::uint32_t number) { return is_silent(number, now); });
}

bool PresenceWatch::is_stalled(MonotonicTime now, Duration deadline) const {
  return due_since_ && now - *due_since_ >= std::max(rules_.stall_after, 2 * deadline);
}

std::optional<Duration> PresenceWatch::due_for(MonotonicTime now) const {
  if (!due_since_) return std::nullopt;
  return now - *due_since_;
}

PresenceWatch::Reach PresenceWatch::reach(MonotonicTime now) const {
  Reach reach;
  for (const auto& [number, voter] : voters_) {
    reach.active += voter.units;
    if (is_silent(number, now))
      reach.missing.push_back(number);
    else
      reach.heard += voter.units;
  }
  return reach;
}

}  // namespace neuroshard::chain
