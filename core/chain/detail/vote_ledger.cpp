#include "core/chain/detail/vote_ledger.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::chain {

const VoteLedger::Votes* VoteLedger::votes(VoteStep step, std::uint32_t view) const {
  const auto at = views_.find(view);
  if (at == views_.end()) return nullptr;
  return step == VoteStep::Prepare ? &at->second.prepares : &at->second.commits;
}

const SignedVote* VoteLedger::find(std::size_t position, VoteStep step, std::uint32_t view) const {
  const Votes* in = votes(step, view);
  if (in == nullptr) return nullptr;
  const auto at = in->of.find(position);
  return at == in->of.end() ? nullptr : &at->second;
}

const SignedVote* VoteLedger::newest(std::size_t position) const {
  for (auto view = views_.rbegin(); view != views_.rend(); ++view)
    for (const VoteStep step : {VoteStep::Commit, VoteStep::Prepare})
      if (const SignedVote* vote = find(position, step, view->first)) return vote;
  return nullptr;
}

void VoteLedger::add(std::size_t position, const SignedVote& vote) {
  View& view = views_[vote.vote.view];
  Votes& to = vote.vote.step == VoteStep::Prepare ? view.prepares : view.commits;
  const bool first = to.of.emplace(position, vote).second;
  NS_CHECK(first);
  to.units[vote.vote.block] += committee_->members()[position].units;
}

std::optional<VoteLedger::Leading> VoteLedger::leading(VoteStep step, std::uint32_t view) const {
  const Votes* in = votes(step, view);
  if (in == nullptr || in->units.empty()) return std::nullopt;
  const auto most = std::max_element(in->units.begin(), in->units.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return Leading{most->first, most->second};
}

Quorum VoteLedger::quorum(VoteStep step, std::uint32_t view, const Hash256& block) const {
  Quorum quorum;
  quorum.step = step;
  quorum.view = view;
  quorum.block = block;
  const Votes* in = votes(step, view);
  NS_CHECK(in != nullptr);
  for (const auto& [position, vote] : in->of) {
    if (vote.vote.block != block) continue;
    quorum.height = vote.vote.height;
    quorum.previous = vote.vote.previous;
    quorum.signatures.push_back({vote.voter, vote.signature});
  }
  return quorum;
}

std::vector<Evidence> VoteLedger::contradictions(const Quorum& quorum) const {
  std::vector<Evidence> found;
  for (const VoterSignature& one : quorum.signatures) {
    const auto position = committee_->position(one.voter);
    const SignedVote* known = position ? find(*position, quorum.step, quorum.view) : nullptr;
    if (known == nullptr || is_convicted(*position)) continue;
    if (auto both = contradiction(committee_->members()[*position].key, *known, quorum))
      found.push_back(std::move(*both));
  }
  return found;
}

std::vector<std::uint32_t> VoteLedger::views() const {
  std::vector<std::uint32_t> views;
  for (const auto& [view, votes] : views_) views.push_back(view);
  return views;
}

}  // namespace neuroshard::chain
