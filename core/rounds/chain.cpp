#include "core/rounds/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/crypto/hash.h"
#include "core/rounds/detail/reader.h"

namespace neuroshard::rounds {
namespace {

// Version 1 had rounds of one group only, as certificates without a frame.
constexpr std::string_view magic = "NSRK1", base_magic = "NSRB1";

bool same_keys(const std::vector<RoundMember>& a, const std::vector<RoundMember>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const RoundMember& x, const RoundMember& y) { return x.key == y.key; });
}

Error denied(const char* why) {
  return make_error(ErrorCode::Denied, fmt::format("the round's certificate {}", why));
}
Error corrupt() {
  return make_error(ErrorCode::Corrupt, "this node's record of rounds can't be read");
}

Bytes encode_base(const ChainBase& base) {
  Bytes bytes(base_magic.begin(), base_magic.end());
  append_slot(bytes, base.body->slot);
  append_le(bytes, base.body->round);
  append_array(bytes, base.tip);
  append_array(bytes, base.body->anchor);
  append_le(bytes, base.body->tokens);
  append_part(bytes, encode_roster(*base.roster));
  return bytes;
}

bool is_base(ByteSpan bytes) {
  return bytes.size() >= base_magic.size() && as_text(bytes.first(base_magic.size())) == base_magic;
}

Expected<ChainBase> decode_base(ByteSpan bytes) {
  Reader in(bytes.subspan(base_magic.size()));
  auto body = std::make_shared<RoundBody>();
  ChainBase base;
  body->slot = in.slot();
  body->round = in.number<std::uint64_t>();
  base.tip = in.array<Hash256>();
  body->anchor = in.array<Hash256>();
  body->tokens = in.number<std::uint64_t>();
  const ByteSpan members = in.part();
  if (!in.at_end()) return corrupt();
  NS_ASSIGN_OR_RETURN(base.roster, decode_roster(members));
  body->members = base.roster->members;
  base.body = std::move(body);
  return base;
}

}  // namespace

bool better_branch(const RoundStatus& a, const RoundStatus& b) {
  if ((a.round > 0) != (b.round > 0)) return a.round > 0;
  if ((a.shared_rounds > 0) != (b.shared_rounds > 0)) return a.shared_rounds > 0;
  if (a.tokens != b.tokens) return a.tokens > b.tokens;
  return a.genesis < b.genesis;
}

ChainBase chain_base(const RoundSlot& slot, const Hash256& anchor, std::vector<crypto::PublicKey> founders) {
  std::vector<RoundMember> members;
  for (const crypto::PublicKey& key : founders) members.push_back(make_member(key));
  ChainBase base;
  base.roster = make_roster(std::move(members));
  auto body = std::make_shared<RoundBody>();
  body->slot = slot;
  body->anchor = anchor;
  body->members = base.roster->members;
  base.body = std::move(body);
  Bytes bytes = {'N', 'S', 'G', 'G', '1'};
  append_slot(bytes, slot);
  append_array(bytes, anchor);
  append_array(bytes, base.roster->hash);
  base.tip = crypto::sha256(bytes);
  return base;
}

RoundChain::RoundChain(const Hash256& network, RoundBody genesis) : network_(network) {
  append(RoundCertificate{std::move(genesis), 0, {}});
}

RoundChain::RoundChain(const Hash256& network, ChainBase base) : network_(network), base_(std::move(base)) {
  genesis_ = tip_hash_ = base_->tip;
  tip_ = base_->body;
  roster_ = base_->roster;
  others_ = roster_->members.size() > 1;
  kept_.push_back({});
}

bool RoundChain::alone(const net::NodeId& self) const {
  return !others_ && members().front().id == self;
}

std::uint32_t RoundChain::shared_rounds() const {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  return others_ ? static_cast<std::uint32_t>(std::min(tip().round - shared_from_, most)) : 0;
}

Expected<void> RoundChain::add(const RoundCertificate& certificate) {
  const RoundBody& body = certificate.body;
  if (body.slot != slot() || body.grouped) return denied("is of another slot");
  if (body.round <= tip().round)
    return make_error(ErrorCode::AlreadyExists, "the round's certificate is not newer than the newest known");
  if (body.round == tip().round + 1) {
    if (body.previous != tip_hash_) return denied("does not follow the newest known");
    if (body.members != members()) return denied("names other members than the newest known");
  } else if (!same_keys(body.members, members())) {
    return denied("is of later members; those between are needed first");
  }
  if (body.tokens < tip().tokens) return denied("counts fewer tokens than there were");
  NS_RETURN_IF_ERROR(check_quorum(certificate, VoteStep::Commit, network_));
  append(certificate);
  forget();
  return {};
}

Expected<void> RoundChain::add(const RoundLink& link, GroupedCommons& commons) {
  if (!link.grouped()) return add(link.certificate);
  const RoundBody& name = link.certificate.body;
  if (name.slot != slot()) return denied("is of another slot");
  if (name.round <= tip().round)
    return make_error(ErrorCode::AlreadyExists, "the round's certificate is not newer than the newest known");
  if (!link.content) return denied("came without its content");
  RosterPtr roster = roster_;
  if (name.round == tip().round + 1) {
    if (name.previous != tip_hash_) return denied("does not follow the newest known");
  } else {
    if (!link.roster || !same_keys(link.roster->members, members()))
      return denied("is of later members; those between are needed first");
    roster = link.roster;
  }
  if (roster->members.size() <= commons.group_members())
    return denied("is of two levels, for so few members");
  if (name.tokens < tip().tokens) return denied("counts fewer tokens than there were");
  const auto deal = commons.deal(name.previous, name.round, name.slot, roster);
  NS_ASSIGN_OR_RETURN(const GroupedLinkPtr checked, commons.link(link.certificate, link.content, *deal));
  append(checked);
  return {};
}

void RoundChain::append(RoundCertificate certificate) {
  auto one = std::make_shared<const RoundCertificate>(std::move(certificate));
  const RoundBody& body = one->body;
  auto next = next_members(body);
  const bool changes = !same_keys(body.members, next);
  const Hash256 tip = body_hash(body);
  append_kept({std::move(one), nullptr, changes}, tip, make_roster(std::move(next)));
}

void RoundChain::append(const GroupedLinkPtr& link) {
  append_kept({nullptr, link, !same_keys(link->made_by->members, link->roster->members)}, link->tip,
              link->roster);
  forget();
}

void RoundChain::append_kept(Kept kept, const Hash256& tip, RosterPtr next) {
  const std::uint64_t round = kept.body().round;
  if (kept_.empty()) genesis_ = tip;
  tip_hash_ = tip;
  roster_ = std::move(next);
  tip_ = kept.many ? kept.many->flat : std::shared_ptr<const RoundBody>(kept.one, &kept.one->body);
  content_ += kept.bytes();
  kept_.push_back(std::move(kept));
  if (!others_ && roster_->members.size() > 1) {
    others_ = true;
    shared_from_ = round;
  }
}

RoundLink RoundChain::link_of(const Kept& kept, bool with_roster) const {
  if (kept.many)
    return {kept.many->certificate, kept.many->content, with_roster ? kept.many->made_by : nullptr};
  return kept.one ? RoundLink(*kept.one) : RoundLink();
}

Bytes RoundChain::encode() const {
  Bytes bytes(magic.begin(), magic.end());
  append_le(bytes, static_cast<std::uint32_t>(kept_.size()));
  for (const Kept& kept : kept_)
    append_part(bytes, kept.one || kept.many ? encode_link(link_of(kept, true)) : encode_base(*base_));
  append_array(bytes, crypto::sha256(bytes));
  return bytes;
}

Expected<RoundChain> RoundChain::decode(const Hash256& network, ByteSpan bytes, std::size_t group_members) {
  Hash256 check;
  if (bytes.size() < magic.size() + 4 + check.size() || as_text(bytes.first(magic.size())) != magic)
    return corrupt();
  std::copy_n(bytes.end() - check.size(), check.size(), check.begin());
  bytes = bytes.first(bytes.size() - check.size());
  if (crypto::sha256(bytes) != check) return corrupt();
  Reader in(bytes.subspan(magic.size()));
  std::optional<RoundChain> chain;
  for (std::uint32_t count = in.number<std::uint32_t>(); count > 0; --count) {
    const ByteSpan part = in.part();
    if (!in.good()) return corrupt();
    if (!chain && is_base(part)) {
      NS_ASSIGN_OR_RETURN(ChainBase base, decode_base(part));
      chain.emplace(RoundChain(network, std::move(base)));
      continue;
    }
    NS_ASSIGN_OR_RETURN(RoundLink link, decode_link(part));
    if (!chain) {
      if (link.grouped()) return corrupt();
      chain.emplace(RoundChain(network, std::move(link.certificate.body)));
    } else {
      NS_RETURN_IF_ERROR(chain->append_read(link, group_members));
    }
  }
  if (!chain || !in.at_end()) return corrupt();
  return std::move(*chain);
}

Expected<void> RoundChain::append_read(const RoundLink& link, std::size_t group_members) {
  if (!link.grouped()) {
    append(link.certificate);
    return {};
  }
  if (!link.roster) return corrupt();
  const RoundBody& name = link.certificate.body;
  const auto deal = make_deal(name.previous, name.round, name.slot, link.roster, group_members);
  NS_ASSIGN_OR_RETURN(GroupedBody body, decode_grouped_body(*link.content, *deal));
  NS_ASSIGN_OR_RETURN(const GroupedLinkPtr read,
                      read_grouped_link(link.certificate, link.content,
                                        std::make_shared<const GroupedBody>(std::move(body)), *deal));
  append(read);
  return {};
}

ChainAnswer RoundChain::answer(std::uint64_t from) const {
  ChainAnswer answer;
  std::size_t size = 0;
  std::uint64_t before = from;  // who asks knows the round before that
  for (const Kept& kept : kept_) {
    if (!kept.one && !kept.many) continue;
    const std::uint64_t round = kept.body().round;
    if (round < from) continue;
    size += kept.bytes();
    if (answer.links.size() == max_chain_certificates || (!answer.links.empty() && size > most_chain_bytes)) {
      answer.more = true;
      break;
    }
    answer.links.push_back(link_of(kept, round != before));
    before = round + 1;
  }
  return answer;
}

// The genesis, changes of members and the newest stay.
void RoundChain::forget() {
  const std::size_t recent = kept_.back().many ? recent_grouped : recent_certificates;
  const auto drop = [this](std::size_t i) {
    content_ -= kept_[i].bytes();
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (std::size_t i = 1; i + 1 + recent <= kept_.size();)
    if (kept_[i].changes)
      ++i;
    else
      drop(i);
  while (kept_.size() > 2 && (kept_.size() > max_kept_certificates || content_ > max_kept_content)) drop(1);
}

}  // namespace neuroshard::rounds
