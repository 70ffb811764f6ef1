#include "core/chain/presence.h"

#include <algorithm>

#include "core/chain/ascending.h"

namespace neuroshard::chain {

PresenceWatch::PresenceWatch(const ChainRules& rules) : rules_(rules) {}

void PresenceWatch::on_block(const Committee& committee, std::optional<std::uint32_t> self,
                             MonotonicTime now) {
  std::vector<Voter> voters;
  for (const CommitteeMember& member : committee.members()) {
    Voter voter{member.number, member.units, now, 0};
    if (const Voter* before = find(member.number)) {
      voter.last_heard = before->last_heard;
      voter.said_ms = before->said_ms;
    }
    voters.push_back(voter);
  }
  voters_ = std::move(voters);
  self_ = self;
  due_since_.reset();
}

PresenceWatch::Voter* PresenceWatch::find(std::uint32_t number) {
  return find_by(voters_, &Voter::number, number);
}

void PresenceWatch::heard(std::uint32_t number, MonotonicTime now) {
  if (Voter* voter = find(number)) voter->last_heard = now;
}

bool PresenceWatch::is_newer(std::uint32_t number, std::uint64_t time_ms) const {
  const Voter* voter = find(number);
  return voter != nullptr && time_ms > voter->said_ms;
}

void PresenceWatch::said(std::uint32_t number, std::uint64_t time_ms) {
  if (Voter* voter = find(number)) voter->said_ms = std::max(voter->said_ms, time_ms);
}

void PresenceWatch::block_is_due(MonotonicTime now) {
  if (!due_since_) due_since_ = now;
}

Duration PresenceWatch::silent_after() const {
  return std::max(rules_.silent_after, 3 * rules_.block_time);
}

bool PresenceWatch::is_silent(const Voter& voter, MonotonicTime now) const {
  return voter.number != self_ && now - voter.last_heard >= silent_after();
}

std::vector<std::uint32_t> PresenceWatch::silent(MonotonicTime now) const {
  std::vector<std::uint32_t> numbers;
  for (const Voter& voter : voters_)
    if (is_silent(voter, now)) numbers.push_back(voter.number);
  if (numbers.empty() || numbers.size() < voters_.size()) return numbers;
  numbers.erase(std::max_element(numbers.begin(), numbers.end(), [this](std::uint32_t a, std::uint32_t b) {
    return find(a)->last_heard < find(b)->last_heard;
  }));
  return numbers;
}

bool PresenceWatch::agrees_with(const std::vector<std::uint32_t>& marked, MonotonicTime now) const {
  return (marked.empty() || marked.size() < voters_.size()) &&
         std::all_of(marked.begin(), marked.end(), [&](std::uint32_t number) {
           const Voter* voter = find(number);
           return voter != nullptr && is_silent(*voter, now);
         });
}

bool PresenceWatch::is_stalled(MonotonicTime now, Duration deadline) const {
  return due_since_ && now - *due_since_ >= std::max(rules_.stall_after, 2 * deadline);
}

}  // namespace neuroshard::chain
