#include "core/rounds/messages.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "core/net/peer_channel.h"

namespace neuroshard::rounds {
namespace {

constexpr std::string_view magic = "NSCO";
constexpr std::uint16_t format_version = 1;
constexpr std::size_t slot_bytes = 5;
constexpr std::size_t vote_post_bytes = 1 + slot_bytes + 8 + 4 + 32 + 2 + 64;
constexpr std::size_t change_post_bytes = slot_bytes + 1 + 32 + 8 + 64;
constexpr std::size_t status_bytes = 8 + 32 + 32 + 8 + 32 + 4 + 1 + 1 + 4;
constexpr std::size_t fetch_request_bytes = slot_bytes + 1 + 32 + 8;

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, what);
}

template <class Array>
void append_array(Bytes& bytes, const Array& array) {
  bytes.insert(bytes.end(), array.begin(), array.end());
}
template <class Array>
const std::uint8_t* read_array(const std::uint8_t* at, Array* array) {
  std::copy_n(at, array->size(), array->begin());
  return at + array->size();
}

void append_slot(Bytes& bytes, const RoundSlot& slot) {
  bytes.push_back(static_cast<std::uint8_t>(slot.kind));
  append_le(bytes, slot.layer);
  append_le(bytes, slot.expert);
}
bool read_slot(const std::uint8_t* at, RoundSlot* slot) {
  if (at[0] > static_cast<std::uint8_t>(RoundSlot::Kind::Head)) return false;
  *slot = {static_cast<RoundSlot::Kind>(at[0]), load_le<std::uint16_t>(at + 1),
           load_le<std::uint16_t>(at + 3)};
  return true;
}

Bytes signed_part(const Contribution& c) {
  Bytes bytes(magic.begin(), magic.end());
  bytes.reserve(contribution_bytes);
  append_le(bytes, format_version);
  append_slot(bytes, c.slot);
  append_le(bytes, c.round);
  append_array(bytes, c.base);
  append_array(bytes, c.key);
  append_le(bytes, c.tokens);
  append_le(bytes, c.steps);
  bytes.push_back(static_cast<std::uint8_t>(c.codec));
  append_le(bytes, c.payload_bytes);
  append_array(bytes, c.payload);
  append_le(bytes, c.sequence);
  return bytes;
}

// One writer and one reader per kind; the reader gets what follows the kind.
void write(Bytes& bytes, const ContributionPost& post) {
  NS_CHECK(post.payload.size() <= max_inline_payload);
  append_array(bytes, encode_contribution(post.contribution));
  append_array(bytes, post.payload);
}
void write(Bytes& bytes, const ProposalPost& post) {
  append_le(bytes, post.view);
  bytes.push_back(post.justification ? 1 : 0);
  append_array(bytes, post.justification ? encode_quorum(*post.justification) : encode_body(post.body));
}
void write(Bytes& bytes, const VotePost& post) {
  bytes.push_back(static_cast<std::uint8_t>(post.vote.step));
  append_slot(bytes, post.vote.slot);
  append_le(bytes, post.vote.round);
  append_le(bytes, post.vote.view);
  append_array(bytes, post.vote.body);
  append_le(bytes, post.signature.member);
  append_array(bytes, post.signature.signature);
}
void write(Bytes& bytes, const NewViewPost& post) {
  append_slot(bytes, post.slot);
  append_le(bytes, post.round);
  append_le(bytes, post.view);
  bytes.push_back(post.lock ? 1 : 0);
  if (post.lock) append_array(bytes, encode_quorum(*post.lock));
}
void write(Bytes& bytes, const CertificatePost& post) {
  append_array(bytes, encode_quorum(post.certificate));
}
void write(Bytes& bytes, const ChangePost& post) {
  append_slot(bytes, post.slot);
  bytes.push_back(static_cast<std::uint8_t>(post.change.kind));
  append_array(bytes, post.change.key);
  append_le(bytes, post.change.round);
  append_array(bytes, post.change.signature);
}
void write(Bytes& bytes, const EvidencePost& post) {
  append_array(bytes, encode_contribution(post.first));
  append_array(bytes, encode_contribution(post.second));
}

Expected<RoundItem> read_contribution(ByteSpan bytes) {
  if (bytes.size() < contribution_bytes || bytes.size() > contribution_bytes + max_inline_payload)
    return corrupt("a contribution has a wrong length");
  ContributionPost post;
  NS_ASSIGN_OR_RETURN(post.contribution, decode_contribution(bytes.first(contribution_bytes)));
  const ByteSpan payload = bytes.subspan(contribution_bytes);
  if (!payload.empty() && payload.size() != post.contribution.payload_bytes)
    return corrupt("a contribution's payload has another length than it says");
  post.payload.assign(payload.begin(), payload.end());
  return RoundItem(std::move(post));
}

Expected<RoundItem> read_proposal(ByteSpan bytes) {
  if (bytes.size() < 5 || bytes[4] > 1) return corrupt("a proposal can't be read");
  ProposalPost post;
  post.view = load_le<std::uint32_t>(bytes.data());
  if (bytes[4] == 1) {
    NS_ASSIGN_OR_RETURN(post.justification, decode_quorum(bytes.subspan(5)));
    post.body = post.justification->body;
  } else {
    NS_ASSIGN_OR_RETURN(post.body, decode_body(bytes.subspan(5)));
  }
  return RoundItem(std::move(post));
}

Expected<RoundItem> read_vote(ByteSpan bytes) {
  if (bytes.size() != vote_post_bytes || bytes[0] < 1 || bytes[0] > 2) return corrupt("a vote can't be read");
  VotePost post;
  post.vote.step = static_cast<VoteStep>(bytes[0]);
  const std::uint8_t* at = bytes.data() + 1;
  if (!read_slot(at, &post.vote.slot)) return corrupt("a vote names an unknown kind of slot");
  at += slot_bytes;
  post.vote.round = load_le<std::uint64_t>(at);
  post.vote.view = load_le<std::uint32_t>(at + 8);
  at = read_array(at + 12, &post.vote.body);
  post.signature.member = load_le<std::uint16_t>(at);
  read_array(at + 2, &post.signature.signature);
  return RoundItem(post);
}

Expected<RoundItem> read_new_view(ByteSpan bytes) {
  constexpr std::size_t head = slot_bytes + 8 + 4 + 1;
  NewViewPost post;
  if (bytes.size() < head || bytes[head - 1] > 1 || (bytes[head - 1] == 0 && bytes.size() != head) ||
      !read_slot(bytes.data(), &post.slot))
    return corrupt("the word that a leader is silent can't be read");
  post.round = load_le<std::uint64_t>(bytes.data() + slot_bytes);
  post.view = load_le<std::uint32_t>(bytes.data() + slot_bytes + 8);
  if (bytes[head - 1] == 1) {
    NS_ASSIGN_OR_RETURN(post.lock, decode_quorum(bytes.subspan(head)));
  }
  return RoundItem(std::move(post));
}

Expected<RoundItem> read_change(ByteSpan bytes) {
  ChangePost post;
  if (bytes.size() != change_post_bytes || !read_slot(bytes.data(), &post.slot) || bytes[slot_bytes] < 1 ||
      bytes[slot_bytes] > 2)
    return corrupt("the wish to join or leave can't be read");
  post.change.kind = static_cast<RoundChange::Kind>(bytes[slot_bytes]);
  const std::uint8_t* at = read_array(bytes.data() + slot_bytes + 1, &post.change.key);
  post.change.round = load_le<std::uint64_t>(at);
  read_array(at + 8, &post.change.signature);
  return RoundItem(post);
}

Expected<RoundItem> read_evidence(ByteSpan bytes) {
  if (bytes.size() != 2 * contribution_bytes) return corrupt("evidence has a wrong length");
  EvidencePost post;
  NS_ASSIGN_OR_RETURN(post.first, decode_contribution(bytes.first(contribution_bytes)));
  NS_ASSIGN_OR_RETURN(post.second, decode_contribution(bytes.subspan(contribution_bytes)));
  return RoundItem(post);
}

}  // namespace

void sign_contribution(Contribution& contribution, const crypto::KeyPair& node, const Hash256& network) {
  contribution.key = node.public_key();
  contribution.signature = node.sign(crypto::Purpose::RoundContribution, network, signed_part(contribution));
}

bool contribution_holds(const Contribution& contribution, const Hash256& network) {
  return crypto::verify(contribution.key, crypto::Purpose::RoundContribution, network,
                        signed_part(contribution), contribution.signature);
}

Bytes encode_contribution(const Contribution& contribution) {
  Bytes bytes = signed_part(contribution);
  append_array(bytes, contribution.signature);
  return bytes;
}

Expected<Contribution> decode_contribution(ByteSpan bytes) {
  if (bytes.size() != contribution_bytes || as_text(bytes.first(magic.size())) != magic)
    return corrupt("this is not a contribution to a round");
  const std::uint8_t* at = bytes.data();
  if (load_le<std::uint16_t>(at + 4) > format_version)
    return make_error(ErrorCode::Unsupported, "the contribution has a newer version; update this program");
  Contribution c;
  const bool known =
      std::any_of(std::begin(outer::all_codecs), std::end(outer::all_codecs),
                  [at](outer::Codec codec) { return static_cast<std::uint8_t>(codec) == at[95]; });
  if (load_le<std::uint16_t>(at + 4) != format_version || !read_slot(at + 6, &c.slot) || !known)
    return corrupt("the contribution names a slot, codec or version that there is not");
  c.round = load_le<std::uint64_t>(at + 11);
  read_array(at + 19, &c.base);
  read_array(at + 51, &c.key);
  c.tokens = load_le<std::uint64_t>(at + 83);
  c.steps = load_le<std::uint32_t>(at + 91);
  c.codec = static_cast<outer::Codec>(at[95]);
  c.payload_bytes = load_le<std::uint64_t>(at + 96);
  read_array(at + 104, &c.payload);
  c.sequence = load_le<std::uint64_t>(at + 136);
  read_array(at + 144, &c.signature);
  return c;
}

Bytes encode_item(const RoundItem& item) {
  Bytes bytes = {static_cast<std::uint8_t>(item.index() + 1)};
  std::visit([&bytes](const auto& post) { write(bytes, post); }, item);
  return bytes;
}

Expected<RoundItem> decode_item(ByteSpan bytes) {
  if (bytes.empty()) return corrupt("an empty post");
  const ByteSpan body = bytes.subspan(1);
  switch (bytes[0]) {
    case 1: return read_contribution(body);
    case 2: return read_proposal(body);
    case 3: return read_vote(body);
    case 4: return read_new_view(body);
    case 5: {
      NS_ASSIGN_OR_RETURN(RoundCertificate certificate, decode_quorum(body));
      return RoundItem(CertificatePost{std::move(certificate)});
    }
    case 6: return read_change(body);
    case 7: return read_evidence(body);
    default: return make_error(ErrorCode::Unsupported, "a post of a kind that this program does not know");
  }
}

std::string_view to_string(Verdict verdict) {
  static constexpr std::string_view names[] = {"taken",
                                               "known already",
                                               "malformed",
                                               "another slot",
                                               "a past round",
                                               "a later round",
                                               "not a member",
                                               "a wrong signature",
                                               "from another anchor",
                                               "too few steps",
                                               "more tokens than a round can train",
                                               "another codec",
                                               "too large",
                                               "replayed",
                                               "another node's payload",
                                               "two payloads in one round",
                                               "not from the leader",
                                               "another view",
                                               "a certificate that does not hold",
                                               "busy"};
  static_assert(std::size(names) == static_cast<std::size_t>(Verdict::Count_));
  return names[static_cast<std::size_t>(verdict)];
}

Bytes encode_post_answer(const PostAnswer& answer) {
  Bytes bytes = {static_cast<std::uint8_t>(answer.verdict)};
  append_le(bytes, answer.round);
  return bytes;
}

Expected<PostAnswer> decode_post_answer(ByteSpan bytes) {
  if (bytes.size() != 9 || bytes[0] >= static_cast<std::uint8_t>(Verdict::Count_))
    return corrupt("the answer to a post can't be read");
  return PostAnswer{static_cast<Verdict>(bytes[0]), load_le<std::uint64_t>(bytes.data() + 1)};
}

Bytes encode_status(const RoundStatus& status) {
  Bytes bytes;
  append_le(bytes, status.round);
  append_array(bytes, status.tip);
  append_array(bytes, status.genesis);
  append_le(bytes, status.tokens);
  append_array(bytes, status.anchor);
  append_le(bytes, status.view);
  bytes.push_back(static_cast<std::uint8_t>(status.phase));
  bytes.push_back(status.member ? 1 : 0);
  append_le(bytes, status.shared_rounds);
  return bytes;
}

Expected<RoundStatus> decode_status(ByteSpan bytes) {
  if (bytes.size() != status_bytes) return corrupt("the status of a round has a wrong length");
  RoundStatus status;
  const std::uint8_t* at = bytes.data();
  status.round = load_le<std::uint64_t>(at);
  at = read_array(at + 8, &status.tip);
  at = read_array(at, &status.genesis);
  status.tokens = load_le<std::uint64_t>(at);
  at = read_array(at + 8, &status.anchor);
  status.view = load_le<std::uint32_t>(at);
  if (at[4] < 1 || at[4] > static_cast<std::uint8_t>(RoundPhase::Repairing) || at[5] > 1)
    return corrupt("the status of a round names an unknown phase");
  status.phase = static_cast<RoundPhase>(at[4]);
  status.member = at[5] == 1;
  status.shared_rounds = load_le<std::uint32_t>(at + 6);
  return status;
}

Bytes encode_slot(const RoundSlot& slot) {
  Bytes bytes;
  append_slot(bytes, slot);
  return bytes;
}

Expected<RoundSlot> decode_slot(ByteSpan bytes) {
  RoundSlot slot;
  if (bytes.size() != slot_bytes || !read_slot(bytes.data(), &slot))
    return corrupt("the request does not name a slot");
  return slot;
}

Bytes encode_status_request(const StatusRequest& request) {
  Bytes bytes = encode_slot(request.slot);
  bytes.push_back(request.back ? 1 : 0);
  return bytes;
}

Expected<StatusRequest> decode_status_request(ByteSpan bytes) {
  StatusRequest request;
  if (bytes.size() != slot_bytes + 1 || !read_slot(bytes.data(), &request.slot) || bytes[slot_bytes] > 1)
    return corrupt("the question how far the rounds are can't be read");
  request.back = bytes[slot_bytes] == 1;
  return request;
}

Bytes encode_chain_request(const ChainRequest& request) {
  Bytes bytes = encode_slot(request.slot);
  append_le(bytes, request.from);
  return bytes;
}

Expected<ChainRequest> decode_chain_request(ByteSpan bytes) {
  ChainRequest request;
  if (bytes.size() != slot_bytes + 8 || !read_slot(bytes.data(), &request.slot))
    return corrupt("the request for certificates can't be read");
  request.from = load_le<std::uint64_t>(bytes.data() + slot_bytes);
  return request;
}

Bytes encode_chain_answer(const ChainAnswer& answer) {
  NS_CHECK(answer.links.size() <= max_chain_certificates);
  Bytes bytes = {static_cast<std::uint8_t>(answer.more ? 1 : 0),
                 static_cast<std::uint8_t>(answer.links.size())};
  for (const RoundLink& link : answer.links) {
    const Bytes encoded = encode_link(link);
    append_le(bytes, static_cast<std::uint32_t>(encoded.size()));
    append_array(bytes, encoded);
  }
  return bytes;
}

Expected<ChainAnswer> decode_chain_answer(ByteSpan bytes) {
  if (bytes.size() < 2 || bytes[0] > 1 || bytes[1] > max_chain_certificates)
    return corrupt("the answer's certificates can't be read");
  ChainAnswer answer;
  answer.more = bytes[0] == 1;
  std::size_t at = 2;
  for (std::size_t i = 0; i < bytes[1]; ++i) {
    if (bytes.size() - at < 4) return corrupt("the answer's certificates end early");
    const std::size_t size = load_le<std::uint32_t>(bytes.data() + at);
    at += 4;
    if (size > bytes.size() - at) return corrupt("the answer's certificates end early");
    NS_ASSIGN_OR_RETURN(RoundLink link, decode_link(bytes.subspan(at, size)));
    answer.links.push_back(std::move(link));
    at += size;
  }
  if (at != bytes.size()) return corrupt("bytes follow the answer's certificates");
  return answer;
}

Bytes encode_fetch_request(const FetchRequest& request) {
  Bytes bytes = encode_slot(request.slot);
  bytes.push_back(static_cast<std::uint8_t>(request.what));
  append_array(bytes, request.hash);
  append_le(bytes, request.place);
  return bytes;
}

Expected<FetchRequest> decode_fetch_request(ByteSpan bytes) {
  FetchRequest request;
  if (bytes.size() != fetch_request_bytes || !read_slot(bytes.data(), &request.slot) ||
      bytes[slot_bytes] < 1 || bytes[slot_bytes] > 4)
    return corrupt("the request for a piece can't be read");
  request.what = static_cast<FetchRequest::What>(bytes[slot_bytes]);
  const std::uint8_t* at = read_array(bytes.data() + slot_bytes + 1, &request.hash);
  request.place = load_le<std::uint64_t>(at);
  return request;
}

Bytes encode_fetch_answer(std::uint64_t whole, ByteSpan bytes) {
  NS_CHECK(bytes.size() <= net::chunk_bytes);
  Bytes answer;
  answer.reserve(8 + bytes.size());
  append_le(answer, whole);
  append_array(answer, bytes);
  return answer;
}

Expected<FetchAnswer> decode_fetch_answer(ByteSpan bytes) {
  if (bytes.size() <= 8 || bytes.size() > 8 + net::chunk_bytes)
    return corrupt("the answer has no piece in it, or too large a one");
  return FetchAnswer{load_le<std::uint64_t>(bytes.data()), bytes.subspan(8)};
}

}  // namespace neuroshard::rounds
