#include "core/rounds/post_conduct.h"

#include <memory>

namespace neuroshard::rounds {
namespace {

enum class Kind { Unreadable, OwnContribution, Vote, Other };

Kind kind_of(const net::Caller& from, ByteSpan request) {
  const auto item = decode_item(request);
  if (!item.ok()) return Kind::Unreadable;
  if (const auto* const post = std::get_if<ContributionPost>(&*item))
    return crypto::node_id(post->contribution.key) == from.id ? Kind::OwnContribution : Kind::Other;
  return std::holds_alternative<VotePost>(*item) ? Kind::Vote : Kind::Other;
}

}  // namespace

net::Respond judged(net::Conduct& conduct, const net::Caller& from, net::Method method, ByteSpan request,
                    net::Respond respond) {
  if (method != net::Method::RoundPost) return respond;
  // Posts are megabytes and nearly all are good: read a second time only after a verdict, so they are kept.
  const auto kept = std::make_shared<const Bytes>(request.begin(), request.end());
  return [&conduct, from, kept, respond = std::move(respond)](Expected<Bytes> answer) {
    const auto said =
        answer.ok() ? decode_post_answer(*answer) : Expected<PostAnswer>(make_error(ErrorCode::Corrupt, ""));
    if (said.ok()) {
      if (said->verdict == Verdict::Malformed && kind_of(from, *kept) == Kind::Unreadable)
        conduct.fault(from, net::Fault::Malformed);
      const bool is_signature = said->verdict == Verdict::BadSignature;
      if (is_signature &&
          (kind_of(from, *kept) == Kind::OwnContribution || kind_of(from, *kept) == Kind::Vote))
        conduct.fault(from, net::Fault::BadSignature);
    }
    respond(std::move(answer));
  };
}

void blame_for_two_payloads(net::Conduct& conduct, const net::NodeId& liar) {
  conduct.fault(net::Caller{liar, {}}, net::Fault::TwoPayloads);
}

}  // namespace neuroshard::rounds
