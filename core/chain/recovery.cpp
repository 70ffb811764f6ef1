#include "core/chain/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/chain/ascending.h"

namespace neuroshard::chain {
namespace {

Error not_continued(std::string why) {
  return make_error(ErrorCode::Denied, std::move(why));
}

bool is_named(const Block& block, std::uint32_t number) {
  const std::vector<std::uint32_t>& continuing = block.body.succession->continuing;
  return std::binary_search(continuing.begin(), continuing.end(), number);
}

// Of the active committee.
std::uint64_t active_units(const Committee& committee, const std::vector<std::uint32_t>& numbers) {
  std::uint64_t units = 0;
  for (const std::uint32_t number : numbers) units += committee.units_of(number);
  return units;
}

Vote vote_for(const Block& block) {
  return {VoteStep::Succession, block.header.height, block.header.previous, 0, block.hash};
}

bool is_quorum_for(const Vote& quorum, const Block& block) {
  return quorum == vote_for(block);
}

bool add_signature(Quorum* quorum, const VoterSignature& signature) {
  const auto at =
      std::lower_bound(quorum->signatures.begin(), quorum->signatures.end(), signature.voter,
                       [](const VoterSignature& each, std::uint32_t number) { return each.voter < number; });
  if (at != quorum->signatures.end() && at->voter == signature.voter) return false;
  quorum->signatures.insert(at, signature);
  return true;
}

}  // namespace

Outlook outlook(const Committee& committee, std::uint64_t heard_units) {
  if (committee.is_quorum(heard_units)) return Outlook::Certifies;
  return committee.is_stall_quorum(heard_units) ? Outlook::AfterStall : Outlook::NeedsAPerson;
}

bool may_continue(const Registry& registry, const MemberRecord& member) {
  const WalletRecord* wallet = registry.wallet(member.wallet);
  if (!wallet || wallet->expelled || !registry.is_voter(member)) return false;
  return member.presence == Presence::Active || registry.time_ms() < member.dormant_ms + return_right_ms;
}

std::uint64_t continuing_units(const Registry& registry, const std::vector<std::uint32_t>& continuing) {
  std::set<std::uint32_t> wallets;
  for (const std::uint32_t number : continuing)
    if (const MemberRecord* member = registry.find(number)) wallets.insert(member->wallet);
  return units_per_wallet * wallets.size();
}

bool beats_succession(const Block& other, const Block& own, const Registry& before) {
  if (!other.body.succession) return true;
  const std::uint64_t units = continuing_units(before, own.body.succession->continuing);
  const std::uint64_t other_units = continuing_units(before, other.body.succession->continuing);
  return other_units != units ? other_units > units : other.hash < own.hash;
}

Recovery::Recovery(const ChainRules& rules, RecoveryOptions options, const crypto::KeyPair& key,
                   SignatureChecks& checks)
    : rules_(rules),
      options_(options),
      key_(key),
      self_(crypto::node_id(key.public_key())),
      checks_(checks) {}

Expected<std::vector<std::uint32_t>> Recovery::continuing(const std::set<std::uint32_t>& without,
                                                          const Situation& situation) const {
  const Registry& registry = *situation.tip.registry;
  std::vector<std::uint32_t> numbers;
  std::map<std::uint32_t, std::size_t> of_wallet;
  const MemberRecord* self = registry.find(self_);
  if (!self || !may_continue(registry, *self))
    return not_continued("This node has no vote with which it could continue the network.");
  for (const MemberRecord& member : registry.members()) {
    if (without.count(member.number) > 0 || !may_continue(registry, member)) continue;
    if (member.number == self->number || situation.heard.count(member.number) > 0) {
      // Only nodes that have units then: the longest-registered ones of a wallet.
      if (member.can_share() && ++of_wallet[member.wallet] <= voting_nodes_per_wallet)
        numbers.push_back(member.number);
    } else if (member.presence == Presence::Active) {
      return make_error(
          ErrorCode::Unavailable,
          fmt::format("Node {} does not answer. Wait for it, or name it too.", to_hex(member.id)));
    }
  }
  if (situation.tip.committee->is_stall_quorum(active_units(*situation.tip.committee, numbers)))
    return not_continued("The nodes that answer are enough. The network goes on without a decision.");
  return numbers;
}

// The trusted wallets go on alone if too many of the others are ones that nobody vouched for.
Expected<BlockPtr> Recovery::make_succession(std::vector<std::uint32_t> numbers, const ChainTip& tip,
                                             std::uint64_t time_ms) const {
  const Registry& registry = *tip.registry;
  const auto propose = [&]() -> Expected<BlockPtr> {
    BlockBody body;
    body.succession = SuccessionSection{numbers};
    NS_ASSIGN_OR_RETURN(Proposed proposed,
                        apply_body(rules_, registry, tip.block->hash, time_ms, body, checks_));
    return make_block(proposed.header, std::move(body), tip.opening, rules_.network);
  };
  auto block = propose();
  if (block.ok()) return block;
  const auto untrusted = std::erase_if(numbers, [&](std::uint32_t number) {
    return !registry.wallet(registry.find(number)->wallet)->is_trusted();
  });
  return untrusted > 0 ? propose() : std::move(block);
}

Expected<Recovery::Output> Recovery::continue_without(const std::vector<net::NodeId>& without,
                                                      const Situation& situation) {
  std::set<std::uint32_t> left_out;
  for (const net::NodeId& id : without) {
    const MemberRecord* member = situation.tip.registry->find(id);
    if (!member)
      return make_error(ErrorCode::NotFound,
                        fmt::format("Node {} is not a member of this network.", to_hex(id)));
    const bool answers = member->presence == Presence::Active && situation.heard.count(member->number) > 0;
    if (id == self_ || answers)
      return not_continued(fmt::format("Node {} answers. Stop it first.", to_hex(id)));
    left_out.insert(member->number);
  }
  const ChainTip& tip = situation.tip;
  const auto wall_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(0, to_unix_ms(situation.wall)));
  const std::uint64_t time_ms = std::max(wall_ms, tip.block->header.time_ms + 1);
  NS_ASSIGN_OR_RETURN(std::vector<std::uint32_t> numbers, continuing(left_out, situation));

  NS_ASSIGN_OR_RETURN(const BlockPtr block, make_succession(std::move(numbers), tip, time_ms));
  SuccessionProposal proposal;
  proposal.block = block;
  proposal.signatures = {vote_for(*block), {}};
  const MemberRecord* self = tip.registry->find(self_);
  if (!is_named(*block, self->number))
    return not_continued("Other nodes of this wallet have its votes. Continue the network from one of them.");
  return sign(std::move(proposal), situation);
}

// Cheap checks first; signatures are checked by the caller.
Verdict Recovery::judge(const Block& block, const Situation& situation) const {
  const ChainTip& tip = situation.tip;
  if (block.header.height <= tip.height()) return Verdict::Past;
  if (block.header.height > tip.height() + 1) return Verdict::Later;
  if (block.header.previous != tip.block->hash) return Verdict::OtherHistory;
  if (!block.body.succession || block.opening != tip.opening) return Verdict::Inadmissible;
  const std::vector<std::uint32_t>& numbers = block.body.succession->continuing;
  const MemberRecord* self = tip.registry->find(self_);
  if (!self || !is_named(block, self->number)) return Verdict::NotMember;
  if (tip.committee->is_stall_quorum(active_units(*tip.committee, numbers))) return Verdict::Inadmissible;
  if (!is_plausible_time(block.header.time_ms, tip.block->header.time_ms,
                         static_cast<std::uint64_t>(to_unix_ms(situation.wall))))
    return Verdict::Busy;
  for (const CommitteeMember& member : tip.committee->members())
    if (!is_named(block, member.number) && situation.heard.count(member.number) > 0) return Verdict::Busy;
  return Verdict::Taken;
}

bool Recovery::has_signature_of_wallet(const Quorum& signatures, const Registry& registry) const {
  const MemberRecord* self = registry.find(self_);
  return std::any_of(signatures.signatures.begin(), signatures.signatures.end(),
                     [&](const VoterSignature& each) {
                       const MemberRecord* signer = registry.find(each.voter);
                       return self && signer && signer->wallet == self->wallet;
                     });
}

// Two persons may decide the same at the same time: all then sign the block with the lower hash.
bool Recovery::switches_to(const Block& block) const {
  const Block& own = *signing_->proposal.block;
  return block.header.previous == own.header.previous && block.body.succession == own.body.succession &&
         block.hash < own.hash;
}

Verdict Recovery::take(const SuccessionProposal& proposal, const Situation& situation, Output* output) {
  const Block& block = *proposal.block;
  if (!is_quorum_for(proposal.signatures, block)) return Verdict::Malformed;
  if (signing_ && signing_->proposal.block->hash == block.hash) return merge(proposal.signatures, output);
  const Verdict verdict = judge(block, situation);
  if (verdict != Verdict::Taken) return verdict;
  if (signing_ && !switches_to(block)) return Verdict::Busy;
  if (asked_.block && asked_.block->hash == block.hash) return Verdict::Known;

  const Registry& registry = *situation.tip.registry;
  if (proposal.signatures.signatures.empty()) return Verdict::BadSignature;
  for (const VoterSignature& each : proposal.signatures.signatures) {
    if (!is_named(block, each.voter)) return Verdict::Inadmissible;
    const MemberRecord* signer = registry.find(each.voter);
    if (!signer || !checks_.vote({vote_for(block), each.voter, each.signature}, signer->key, rules_.network))
      return Verdict::BadSignature;
  }
  if (!apply_block(rules_, registry, situation.tip.block->hash, block, checks_).ok())
    return Verdict::Inadmissible;
  if (signing_ || agreed_.count(block.hash) > 0 || has_signature_of_wallet(proposal.signatures, registry))
    *output = sign(proposal, situation);
  else
    asked_ = proposal;
  return Verdict::Taken;
}

void Recovery::others_adopted(const BlockPtr& block, const Registry& before) {
  if (!adopted_ || beats_succession(*block, *adopted_, before)) adopted_ = block;
}

Recovery::Output Recovery::agree(const Hash256& block, const Situation& situation) {
  const Hash256 agreed = block;  // which may go with adopted_
  agreed_.insert(agreed);
  if (adopted_ && adopted_->hash == agreed) adopted_.reset();
  if (!asked_.block || asked_.block->hash != agreed || signing_) return {};
  if (judge(*asked_.block, situation) != Verdict::Taken) return {};
  return sign(asked_, situation);
}

bool Recovery::may_adopt(const Block& block) const {
  return !block.body.succession || agreed_.count(block.hash) > 0;
}

Recovery::Output Recovery::sign(SuccessionProposal proposal, const Situation& situation) {
  const Block& block = *proposal.block;
  const std::uint32_t number = situation.tip.registry->find(self_)->number;
  const SignedVote vote = sign_vote(vote_for(block), number, key_, rules_.network);
  add_signature(&proposal.signatures, {number, vote.signature});
  agreed_.insert(block.hash);
  asked_ = {};
  signing_ = Signing{std::move(proposal), situation.tip.registry, situation.now, situation.now};
  return output();
}

Verdict Recovery::merge(const Quorum& signatures, Output* output) {
  Quorum& own = signing_->proposal.signatures;
  const Block& block = *signing_->proposal.block;
  bool grew = false;
  for (const VoterSignature& each : signatures.signatures) {
    if (find_by(own.signatures, &VoterSignature::voter, each.voter) != nullptr) continue;
    if (!is_named(block, each.voter)) return Verdict::Inadmissible;
    const MemberRecord* signer = signing_->before->find(each.voter);
    if (!signer || !checks_.vote({vote_for(block), each.voter, each.signature}, signer->key, rules_.network))
      return Verdict::BadSignature;
    grew = add_signature(&own, each) || grew;
  }
  if (!grew) return Verdict::Known;
  *output = this->output();
  return Verdict::Taken;
}

Recovery::Output Recovery::output() const {
  Output output;
  const SuccessionProposal& proposal = signing_->proposal;
  const std::vector<std::uint32_t>& numbers = proposal.block->body.succession->continuing;
  for (const std::uint32_t number : numbers) {
    const MemberRecord* member = signing_->before->find(number);
    if (member && member->id != self_) output.to.push_back(member->id);
  }
  output.proposal = proposal;
  if (proposal.signatures.signatures.size() == numbers.size())
    output.complete = make_certified(proposal.block, {proposal.signatures, std::nullopt});
  return output;
}

Recovery::Output Recovery::tick(MonotonicTime now) {
  if (!signing_) return {};
  if (now - signing_->since >= options_.release) {
    signing_.reset();
    return {};
  }
  if (now - signing_->sent < options_.repeat) return {};
  signing_->sent = now;
  return output();
}

void Recovery::on_tip(const ChainTip& tip) {
  if (signing_ && signing_->proposal.block->header.height <= tip.height()) signing_.reset();
  if (asked_.block && asked_.block->header.height <= tip.height()) asked_ = {};
  if (adopted_ && adopted_->header.height <= tip.height()) adopted_.reset();
}

}  // namespace neuroshard::chain
