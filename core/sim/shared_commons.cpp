#include "core/sim/shared_commons.h"

#include <algorithm>

#include "core/sim/sampled_key.h"

namespace neuroshard::sim {
namespace {

constexpr std::size_t newest = 8;
constexpr std::size_t most_signatures = 1u << 18;

// The first of a cache that `is` holds for, or null.
template <class Cache, class Is>
const typename Cache::value_type* find(const Cache& cache, Is is) {
  const auto at = std::find_if(cache.begin(), cache.end(), is);
  return at == cache.end() ? nullptr : &*at;
}
template <class Cache>
const typename Cache::value_type& add(Cache& cache, typename Cache::value_type value) {
  cache.push_front(std::move(value));
  if (cache.size() > newest) cache.pop_back();
  return cache.front();
}

}  // namespace

std::shared_ptr<const rounds::Deal> SharedCommons::deal(const Hash256& previous, std::uint64_t round,
                                                        const rounds::RoundSlot& slot,
                                                        const rounds::RosterPtr& roster) {
  const auto* known = find(deals_, [&](const auto& deal) {
    return deal->previous == previous && deal->round == round && deal->slot == slot &&
           deal->roster->hash == roster->hash;
  });
  return known ? *known : add(deals_, GroupedCommons::deal(previous, round, slot, roster));
}

bool SharedCommons::holds(const rounds::RoundVote& vote, const crypto::PublicKey& key,
                          const crypto::Signature& signature, const Hash256& network) {
  if (!share_signatures_) return GroupedCommons::holds(vote, key, signature, network);
  const std::uint64_t place = load_le<std::uint64_t>(signature.data());
  const auto [from, to] = votes_.equal_range(place);
  for (auto at = from; at != to; ++at) {
    const CheckedVote& known = at->second;
    if (known.signature == signature && known.key == key && known.vote == vote) return known.holds;
  }
  if (votes_.size() >= most_signatures) votes_.clear();
  const bool holds = GroupedCommons::holds(vote, key, signature, network);
  votes_.emplace(place, CheckedVote{vote, key, signature, holds});
  return holds;
}

bool SharedCommons::holds(const rounds::Contribution& contribution, const Hash256& network) {
  if (!share_signatures_) return GroupedCommons::holds(contribution, network);
  const std::uint64_t place = load_le<std::uint64_t>(contribution.signature.data());
  const auto [from, to] = contributions_.equal_range(place);
  for (auto at = from; at != to; ++at)
    if (at->second.first == contribution) return at->second.second;
  if (contributions_.size() >= most_signatures) contributions_.clear();
  const bool holds = GroupedCommons::holds(contribution, network);
  contributions_.emplace(place, std::pair(contribution, holds));
  return holds;
}

rounds::Payload SharedCommons::keep(Bytes bytes) {
  const std::size_t key = sampled_key(bytes);
  const auto [from, to] = kept_.equal_range(key);
  for (auto at = from; at != to; ++at)
    if (auto held = at->second.lock(); held && *held == bytes) return held;
  if (kept_.size() >= sweep_at_) {
    std::erase_if(kept_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<std::size_t>(1024, 2 * kept_.size());
  }
  auto held = std::make_shared<const Bytes>(std::move(bytes));
  kept_.emplace(key, held);
  return held;
}

Hash256 SharedCommons::hash(const Bytes& bytes) {
  const auto* known = find(hashes_, [&](const auto& entry) { return *entry.first == bytes; });
  return known ? known->second : add(hashes_, {keep(Bytes(bytes)), GroupedCommons::hash(bytes)}).second;
}

Expected<std::shared_ptr<const rounds::GroupedBody>> SharedCommons::body(const Bytes& content,
                                                                         const rounds::Deal& deal) {
  const auto* known = find(
      bodies_, [&](const Body& body) { return body.previous == deal.previous && *body.content == content; });
  return known ? known->result
               : add(bodies_, {keep(Bytes(content)), deal.previous, GroupedCommons::body(content, deal)})
                     .result;
}

Expected<rounds::QuorumPtr> SharedCommons::check(const rounds::RoundQuorum& quorum, rounds::VoteStep step,
                                                 const rounds::Deal& deal) {
  const auto* known = find(checked_, [&](const Checked& checked) {
    return checked.step == step && checked.previous == deal.previous &&
           (checked.result.ok() ? **checked.result : checked.refused) == quorum;
  });
  if (known) return known->result;
  auto result = GroupedCommons::check(quorum, step, deal);
  rounds::RoundQuorum refused = result.ok() ? rounds::RoundQuorum() : quorum;
  return add(checked_, {std::move(refused), step, deal.previous, std::move(result)}).result;
}

Expected<rounds::GroupedLinkPtr> SharedCommons::link(const rounds::RoundQuorum& certificate,
                                                     const rounds::Payload& content,
                                                     const rounds::Deal& deal) {
  const auto* known = find(links_, [&](const Link& link) {
    return link.certificate == certificate && (link.content == content || *link.content == *content);
  });
  return known ? known->result
               : add(links_, {certificate, content, GroupedCommons::link(certificate, content, deal)}).result;
}

rounds::SharedStep SharedCommons::step(const Hash256& key,
                                       const std::function<Expected<rounds::StepResult>()>& job) {
  const auto* known = find(steps_, [&](const auto& entry) { return entry.first == key; });
  return known ? known->second : add(steps_, {key, GroupedCommons::step(key, job)}).second;
}

}  // namespace neuroshard::sim
