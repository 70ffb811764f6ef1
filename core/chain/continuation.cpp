#include "core/chain/continuation.h"

#include <algorithm>

#include "core/chain/keys.h"

namespace neuroshard::chain {

Continuation::Continuation(Services services, RecoveryOptions options)
    : services_(std::move(services)),
      recovery_(services_.rules, options, services_.key, services_.checks),
      begun_(services_.clock.monotonic_now()) {}

void Continuation::heard(const net::NodeId& id, std::optional<std::uint64_t> height) {
  const ChainTip* tip = services_.tip();
  if (tip == nullptr || tip->registry->find(id) == nullptr) return;
  Heard& heard = heard_[id];
  heard.at = services_.clock.monotonic_now();
  if (height) heard.height = *height;
}

bool Continuation::is_recent(MonotonicTime heard) const {
  return services_.clock.monotonic_now() - heard <= services_.rules.silent_after;
}

Continuation::Reach Continuation::reach(const Committee& committee) const {
  const net::NodeId self = crypto::node_id(services_.key.public_key());
  Reach reach;
  for (const CommitteeMember& member : committee.members()) {
    reach.active += member.units;
    const auto heard = heard_.find(member.id);
    if (member.id == self || is_recent(heard != heard_.end() ? heard->second.at : begun_))
      reach.heard += member.units;
    else
      reach.missing.push_back(member.number);
  }
  return reach;
}

Recovery::Situation Continuation::situation(const ChainTip& tip) {
  present_.clear();
  for (auto at = heard_.begin(); at != heard_.end();) {
    const MemberRecord* member = tip.registry->find(at->first);
    if (member == nullptr || !is_recent(at->second.at)) {
      at = heard_.erase(at);
      continue;
    }
    present_.insert(member->number);
    ++at;
  }
  return {tip, present_, services_.clock.monotonic_now(), services_.clock.wall_now()};
}

Expected<void> Continuation::continue_without(const std::vector<net::NodeId>& without) {
  const ChainTip* tip = services_.tip();
  if (tip == nullptr) return make_error(ErrorCode::NotFound, "this node has no history yet that could go on");
  NS_ASSIGN_OR_RETURN(const Recovery::Output output, recovery_.continue_without(without, situation(*tip)));
  act(output);
  return {};
}

bool Continuation::may_ask(const Block& succession) const {
  const ChainTip* tip = services_.tip();
  if (tip == nullptr || succession.header.height != tip->height() + 1) return false;
  if (asks() && asks()->hash == succession.hash) return false;
  const net::NodeId self = crypto::node_id(services_.key.public_key());
  const std::vector<std::uint32_t>& continuing = succession.body.succession->continuing;
  std::uint64_t units = 0;
  for (const CommitteeMember& member : tip->committee->members()) {
    const auto heard = heard_.find(member.id);
    const bool is_here = heard != heard_.end() && is_recent(heard->second.at) &&
                         heard->second.height <= tip->height() &&
                         !std::binary_search(continuing.begin(), continuing.end(), member.number);
    if (member.id == self || is_here) units += member.units;
  }
  return !tip->committee->is_stall_quorum(units);
}

void Continuation::others_adopted(const BlockPtr& succession) {
  if (const ChainTip* tip = services_.tip()) recovery_.others_adopted(succession, *tip->registry);
}

void Continuation::agree(const Hash256& block) {
  if (const ChainTip* tip = services_.tip()) act(recovery_.agree(block, situation(*tip)));
}

Verdict Continuation::take(const SuccessionProposal& proposal) {
  const ChainTip* tip = services_.tip();
  if (tip == nullptr) return Verdict::Busy;
  Recovery::Output output;
  const Verdict verdict = recovery_.take(proposal, situation(*tip), &output);
  act(output);
  return verdict;
}

void Continuation::tick() {
  act(recovery_.tick(services_.clock.monotonic_now()));
}

void Continuation::act(const Recovery::Output& output) {
  if (output.proposal) services_.outbox.put(outbox_key::succession, *output.proposal, output.to);
  if (output.complete) services_.adopt(*output.complete);
}

}  // namespace neuroshard::chain
