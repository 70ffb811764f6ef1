#include "core/rounds/grouped_messages.h"

#include "core/rounds/detail/overloaded.h"
#include "core/rounds/detail/reader.h"

namespace neuroshard::rounds {
namespace {

enum class Kind : std::uint8_t {
  Group = 64,
  Proposal = 65,
  Lock = 66,
  Certificate = 67,
  Votes = 68,
  Result = 69,
  NewView = 70
};

Error corrupt() {
  return make_error(ErrorCode::Corrupt, "a post of a round can't be read");
}

Bytes begin(Kind kind) {
  Bytes bytes;
  bytes.reserve(256);
  bytes.push_back(static_cast<std::uint8_t>(kind));
  return bytes;
}
void append_all(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}
void append_optional(Bytes& bytes, const std::optional<RoundQuorum>& quorum) {
  bytes.push_back(quorum ? 1 : 0);
  if (quorum) append_all(bytes, encode_quorum(*quorum));
}
Expected<std::optional<RoundQuorum>> read_optional(Reader& in) {
  const auto there = in.number<std::uint8_t>();
  if (there > 1) return corrupt();
  if (there == 0) return std::optional<RoundQuorum>();
  NS_ASSIGN_OR_RETURN(RoundQuorum quorum, decode_quorum(in.rest(), true));
  return std::optional<RoundQuorum>(std::move(quorum));
}

Bytes encode_quorum_post(Kind kind, bool relay, const RoundQuorum& quorum) {
  Bytes bytes = begin(kind);
  bytes.push_back(relay ? 1 : 0);
  append_all(bytes, encode_quorum(quorum));
  return bytes;
}
template <class Post>
Expected<GroupedPost> read_quorum_post(Reader& in) {
  const auto relay = in.number<std::uint8_t>();
  if (relay > 1) return corrupt();
  NS_ASSIGN_OR_RETURN(RoundQuorum quorum, decode_quorum(in.rest(), true));
  return GroupedPost(Post{relay == 1, std::move(quorum)});
}

Bytes encode_votes(const CollectedVotes& post) {
  Bytes bytes = begin(Kind::Votes);
  bytes.push_back(static_cast<std::uint8_t>(post.vote.step));
  append_slot(bytes, post.vote.slot);
  append_le(bytes, post.vote.round);
  append_le(bytes, post.vote.view);
  append_array(bytes, post.vote.body);
  for (const MemberSignature& s : post.signatures) {
    append_le(bytes, s.member);
    append_array(bytes, s.signature);
  }
  return bytes;
}

Expected<GroupedPost> read_votes(Reader& in) {
  CollectedVotes post;
  const auto step = in.number<std::uint8_t>();
  if (step < 1 || step > 2) return corrupt();
  post.vote.step = static_cast<VoteStep>(step);
  post.vote.slot = in.slot();
  post.vote.round = in.number<std::uint64_t>();
  post.vote.view = in.number<std::uint32_t>();
  post.vote.body = in.array<Hash256>();
  while (in.good() && !in.at_end() && post.signatures.size() <= max_group_members) {
    MemberSignature s;
    s.member = in.number<std::uint16_t>();
    s.signature = in.array<crypto::Signature>();
    post.signatures.push_back(s);
  }
  if (!in.at_end() || post.signatures.empty() || post.signatures.size() > max_group_members) return corrupt();
  return GroupedPost(std::move(post));
}

Expected<GroupedPost> read_proposal(Reader& in) {
  GroupedProposal post;
  const auto relay = in.number<std::uint8_t>();
  post.relay = relay == 1;
  post.view = in.number<std::uint32_t>();
  post.leader = in.array<crypto::Signature>();
  const ByteSpan content = in.part();
  if (!in.good() || relay > 1 || content.size() > max_content_bytes) return corrupt();
  post.content.assign(content.begin(), content.end());
  NS_ASSIGN_OR_RETURN(post.justification, read_optional(in));
  if (!in.at_end()) return corrupt();
  return GroupedPost(std::move(post));
}

Expected<GroupedPost> read_new_view(Reader& in) {
  NewViewPost post;
  post.slot = in.slot();
  post.round = in.number<std::uint64_t>();
  post.view = in.number<std::uint32_t>();
  NS_ASSIGN_OR_RETURN(post.lock, read_optional(in));
  if (!in.at_end()) return corrupt();
  return GroupedPost(std::move(post));
}

}  // namespace

Bytes encode_grouped_post(const GroupedPost& post) {
  return std::visit(
      Overloaded{[](const GroupPost& p) {
                   Bytes bytes = begin(Kind::Group);
                   append_all(bytes, p.item);
                   return bytes;
                 },
                 [](const GroupedProposal& p) {
                   Bytes bytes = begin(Kind::Proposal);
                   bytes.push_back(p.relay ? 1 : 0);
                   append_le(bytes, p.view);
                   append_array(bytes, p.leader);
                   append_part(bytes, p.content);
                   append_optional(bytes, p.justification);
                   return bytes;
                 },
                 [](const GroupedLock& p) { return encode_quorum_post(Kind::Lock, p.relay, p.quorum); },
                 [](const GroupedCertificate& p) {
                   return encode_quorum_post(Kind::Certificate, p.relay, p.quorum);
                 },
                 [](const CollectedVotes& p) { return encode_votes(p); },
                 [](const GroupResult& p) {
                   Bytes bytes = begin(Kind::Result);
                   append_all(bytes, encode_group_result(p));
                   return bytes;
                 },
                 [](const NewViewPost& p) {
                   Bytes bytes = begin(Kind::NewView);
                   append_slot(bytes, p.slot);
                   append_le(bytes, p.round);
                   append_le(bytes, p.view);
                   append_optional(bytes, p.lock);
                   return bytes;
                 }},
      post);
}

Expected<GroupedPost> decode_grouped_post(ByteSpan bytes) {
  if (bytes.empty()) return corrupt();
  Reader in(bytes.subspan(1));
  switch (static_cast<Kind>(bytes[0])) {
    case Kind::Group: return GroupedPost(GroupPost{Bytes(bytes.begin() + 1, bytes.end())});
    case Kind::Proposal: return read_proposal(in);
    case Kind::Lock: return read_quorum_post<GroupedLock>(in);
    case Kind::Certificate: return read_quorum_post<GroupedCertificate>(in);
    case Kind::Votes: return read_votes(in);
    case Kind::Result: {
      NS_ASSIGN_OR_RETURN(GroupResult result, decode_group_result(bytes.subspan(1)));
      return GroupedPost(std::move(result));
    }
    case Kind::NewView: return read_new_view(in);
  }
  return make_error(ErrorCode::Unsupported, "a post of a kind that rounds of two levels do not have");
}

namespace {

struct RoundOf {
  std::uint64_t operator()(const ContributionPost& post) const { return post.contribution.round; }
  std::uint64_t operator()(const ProposalPost& post) const { return post.body.round; }
  std::uint64_t operator()(const VotePost& post) const { return post.vote.round; }
  std::uint64_t operator()(const NewViewPost& post) const { return post.round; }
  std::uint64_t operator()(const CertificatePost& post) const { return post.certificate.body.round; }
  std::uint64_t operator()(const ChangePost& post) const { return post.change.round + 1; }
  std::uint64_t operator()(const EvidencePost& post) const { return post.first.round; }
  std::uint64_t operator()(const GroupedLock& post) const { return post.quorum.body.round; }
  std::uint64_t operator()(const GroupedCertificate& post) const { return post.quorum.body.round; }
  std::uint64_t operator()(const CollectedVotes& post) const { return post.vote.round; }
  std::uint64_t operator()(const GroupResult& post) const { return post.certificate.body.round; }
  std::uint64_t operator()(const GroupPost& post) const { return round_of_post(post.item).value_or(0); }
  std::uint64_t operator()(const GroupedProposal& post) const {
    Reader in(post.content);
    // Magic, version and slot come before it (grouped_body.h).
    static_cast<void>(in.number<std::uint32_t>());
    static_cast<void>(in.number<std::uint16_t>());
    static_cast<void>(in.slot());
    return in.number<std::uint64_t>();
  }
};

}  // namespace

bool is_grouped_post(ByteSpan bytes) {
  return !bytes.empty() && bytes[0] >= static_cast<std::uint8_t>(Kind::Group);
}

std::optional<std::uint64_t> round_of_post(ByteSpan bytes) {
  if (!is_grouped_post(bytes)) {
    const auto item = decode_item(bytes);
    return item.ok() ? std::optional(std::visit(RoundOf{}, *item)) : std::nullopt;
  }
  // One within another is no post.
  if (bytes[0] == static_cast<std::uint8_t>(Kind::Group) && is_grouped_post(bytes.subspan(1)))
    return std::nullopt;
  const auto post = decode_grouped_post(bytes);
  return post.ok() ? std::optional(std::visit(RoundOf{}, *post)) : std::nullopt;
}

}  // namespace neuroshard::rounds
