#include "core/rounds/grouped_commons.h"

#include "core/crypto/hash.h"

namespace neuroshard::rounds {

std::shared_ptr<const Deal> GroupedCommons::deal(const Hash256& previous, std::uint64_t round,
                                                 const RoundSlot& slot, const RosterPtr& roster) {
  return make_deal(previous, round, slot, roster);
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
  auto link = std::make_shared<GroupedLink>();
  NS_ASSIGN_OR_RETURN(link->body, body(*content, deal));
  if (certificate.body != grouped_name(*link->body, hash(*content)))
    return make_error(ErrorCode::Denied, "the round's certificate is not of the content that came with it");
  NS_RETURN_IF_ERROR(check_signatures(certificate, deal.roster->members, VoteStep::Commit, network_, least_));
  link->certificate = certificate;
  link->content = content;
  link->tip = body_hash(certificate.body);
  link->roster = next_roster(deal, *link->body);
  return GroupedLinkPtr(std::move(link));
}

Hash256 GroupedCommons::hash(const Bytes& bytes) {
  return crypto::sha256(bytes);
}

SharedStep GroupedCommons::step(const Hash256&, const std::function<Expected<StepResult>()>& job) {
  return std::make_shared<const Expected<StepResult>>(job());
}

}  // namespace neuroshard::rounds
