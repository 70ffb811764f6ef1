#include "core/rounds/grouped_commons.h"

#include <algorithm>

#include "core/crypto/hash.h"

namespace neuroshard::rounds {
namespace {

std::shared_ptr<const RoundBody> flat_body(const GroupedBody& body, const Deal& deal) {
  auto flat = std::make_shared<RoundBody>();
  flat->slot = body.slot;
  flat->round = body.round;
  flat->previous = body.previous;
  flat->anchor = body.anchor;
  flat->tokens = body.tokens;
  flat->members = deal.roster->members;
  for (const GroupResult& result : body.groups)
    for (RoundContributor c : result.certificate.body.contributors) {
      c.member = static_cast<std::uint16_t>(
          roster_index(*deal.roster, result.certificate.body.members[c.member].id));
      flat->contributors.push_back(c);
    }
  std::sort(flat->contributors.begin(), flat->contributors.end(),
            [](const RoundContributor& a, const RoundContributor& b) { return a.member < b.member; });
  flat->changes = body.changes;
  return flat;
}

}  // namespace

Expected<GroupedLinkPtr> read_grouped_link(const RoundQuorum& certificate, const Payload& content,
                                           std::shared_ptr<const GroupedBody> body, const Deal& deal) {
  auto link = std::make_shared<GroupedLink>();
  link->certificate = certificate;
  link->content = content;
  link->body = std::move(body);
  link->tip = body_hash(certificate.body);
  link->made_by = deal.roster;
  link->roster = next_roster(deal, *link->body);
  link->flat = flat_body(*link->body, deal);
  return GroupedLinkPtr(std::move(link));
}

std::shared_ptr<const Deal> GroupedCommons::deal(const Hash256& previous, std::uint64_t round,
                                                 const RoundSlot& slot, const RosterPtr& roster) {
  return make_deal(previous, round, slot, roster, group_members_);
}

Expected<std::shared_ptr<const GroupedBody>> GroupedCommons::body(const Bytes& content, const Deal& deal) {
  NS_ASSIGN_OR_RETURN(GroupedBody body, decode_grouped_body(content, deal));
  NS_RETURN_IF_ERROR(check_groups(body, deal, network_));
  return std::make_shared<const GroupedBody>(std::move(body));
}

Expected<QuorumPtr> GroupedCommons::check(const RoundQuorum& quorum, VoteStep step, const Deal& deal) {
  NS_RETURN_IF_ERROR(check_signatures(quorum, deal.roster->members, step, network_, least_));
  return std::make_shared<const RoundQuorum>(quorum);
}

Expected<GroupedLinkPtr> GroupedCommons::link(const RoundQuorum& certificate, const Payload& content,
                                              const Deal& deal) {
  NS_ASSIGN_OR_RETURN(auto known, body(*content, deal));
  if (certificate.body != grouped_name(*known, hash(*content)))
    return make_error(ErrorCode::Denied, "the round's certificate is not of the content that came with it");
  NS_RETURN_IF_ERROR(check_signatures(certificate, deal.roster->members, VoteStep::Commit, network_, least_));
  return read_grouped_link(certificate, content, std::move(known), deal);
}

Hash256 GroupedCommons::hash(const Bytes& bytes) {
  return crypto::sha256(bytes);
}

SharedStep GroupedCommons::step(const Hash256&, const std::function<Expected<StepResult>()>& job) {
  return std::make_shared<const Expected<StepResult>>(job());
}

}  // namespace neuroshard::rounds
