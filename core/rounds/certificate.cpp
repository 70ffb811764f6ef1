#include "core/rounds/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/check.h"
#include "core/crypto/hash.h"

namespace neuroshard::rounds {
namespace {

constexpr std::string_view magic = "NSRC";
constexpr std::uint16_t format_version = 1, grouped_version = 2;
constexpr std::size_t head_bytes = 101, member_bytes = 33, contributor_bytes = 46, change_bytes = 105;
constexpr std::size_t signature_bytes = 66, quorum_head_bytes = 6;

void append_slot(Bytes& bytes, const RoundSlot& slot) {
  bytes.push_back(static_cast<std::uint8_t>(slot.kind));
  append_le(bytes, slot.layer);
  append_le(bytes, slot.expert);
}

template <class Array>
void append_array(Bytes& bytes, const Array& array) {
  bytes.insert(bytes.end(), array.begin(), array.end());
}

template <class Array>
void read_array(const std::uint8_t* at, Array* array) {
  std::copy_n(at, array->size(), array->begin());
}

std::size_t encoded_size(const RoundBody& body) {
  return head_bytes + member_bytes * body.members.size() + contributor_bytes * body.contributors.size() +
         change_bytes * body.changes.size();
}

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, fmt::format("the round's certificate {}", what));
}

Bytes change_bytes_of(RoundChange::Kind kind, const RoundSlot& slot, std::uint64_t round) {
  Bytes bytes = {static_cast<std::uint8_t>(kind)};
  append_slot(bytes, slot);
  append_le(bytes, round);
  return bytes;
}

crypto::Purpose purpose_of(VoteStep step) {
  return step == VoteStep::Prepare ? crypto::Purpose::RoundPrepare : crypto::Purpose::RoundCommit;
}

Bytes vote_bytes(const RoundVote& vote) {
  Bytes bytes;
  append_slot(bytes, vote.slot);
  append_le(bytes, vote.round);
  append_le(bytes, vote.view);
  append_array(bytes, vote.body);
  return bytes;
}

Expected<void> read_members(const std::uint8_t* at, std::size_t count, std::vector<RoundMember>* members) {
  for (std::size_t i = 0; i < count; ++i, at += member_bytes) {
    RoundMember member;
    read_array(at, &member.key);
    member.id = crypto::node_id(member.key);
    member.missed = at[32];
    if (member.missed >= rounds_missed_to_expel) return corrupt("keeps a member that missed too much");
    if (i > 0 && !(members->back().id < member.id)) return corrupt("has its members in a wrong order");
    members->push_back(member);
  }
  return {};
}

Expected<void> read_contributors(const std::uint8_t* at, std::size_t count, std::size_t members,
                                 std::vector<RoundContributor>* contributors) {
  for (std::size_t i = 0; i < count; ++i, at += contributor_bytes) {
    RoundContributor c;
    c.member = load_le<std::uint16_t>(at);
    c.steps = load_le<std::uint32_t>(at + 2);
    c.tokens = load_le<std::uint64_t>(at + 6);
    read_array(at + 14, &c.payload);
    if (c.member >= members || (i > 0 && c.member <= contributors->back().member))
      return corrupt("names contributors that are none");
    contributors->push_back(c);
  }
  return {};
}

Expected<void> read_changes(const std::uint8_t* at, std::size_t count, std::vector<RoundChange>* changes) {
  net::NodeId last{};
  for (std::size_t i = 0; i < count; ++i, at += change_bytes) {
    RoundChange change;
    if (at[0] < 1 || at[0] > 2) return corrupt("has a change of an unknown kind");
    change.kind = static_cast<RoundChange::Kind>(at[0]);
    read_array(at + 1, &change.key);
    change.round = load_le<std::uint64_t>(at + 33);
    read_array(at + 41, &change.signature);
    const net::NodeId id = crypto::node_id(change.key);
    if (i > 0 && !(last < id)) return corrupt("has its changes in a wrong order");
    last = id;
    changes->push_back(change);
  }
  return {};
}

}  // namespace

std::uint32_t slot_number(const RoundSlot& slot) {
  // Kinds, layers and experts have 3, 13 and 16 bits: far beyond what an architecture can have (64 layers).
  return static_cast<std::uint32_t>(slot.kind) << 29 | static_cast<std::uint32_t>(slot.layer & 0x1fff) << 16 |
         slot.expert;
}

RoundMember make_member(const crypto::PublicKey& key) {
  return {key, crypto::node_id(key), 0};
}

RoundChange sign_change(RoundChange::Kind kind, const RoundSlot& slot, std::uint64_t round,
                        const crypto::KeyPair& node, const Hash256& network) {
  return {kind, node.public_key(), round,
          node.sign(crypto::Purpose::RoundJoin, network, change_bytes_of(kind, slot, round))};
}

bool change_holds(const RoundChange& change, const RoundSlot& slot, std::uint64_t round,
                  const Hash256& network) {
  return change.round < round && round - change.round <= change_life &&
         crypto::verify(change.key, crypto::Purpose::RoundJoin, network,
                        change_bytes_of(change.kind, slot, change.round), change.signature);
}

RoundBody genesis_body(const RoundSlot& slot, const Hash256& anchor,
                       std::vector<crypto::PublicKey> founders) {
  NS_CHECK(!founders.empty() && founders.size() <= max_round_members);
  RoundBody body;
  body.slot = slot;
  body.anchor = anchor;
  for (const crypto::PublicKey& key : founders) body.members.push_back(make_member(key));
  std::sort(body.members.begin(), body.members.end(),
            [](const RoundMember& a, const RoundMember& b) { return a.id < b.id; });
  for (std::size_t i = 1; i < body.members.size(); ++i)
    NS_CHECK(body.members[i - 1].id != body.members[i].id);
  return body;
}

Bytes encode_body(const RoundBody& body) {
  Bytes bytes(magic.begin(), magic.end());
  bytes.reserve(encoded_size(body));
  append_le(bytes, body.grouped ? grouped_version : format_version);
  append_le(bytes, static_cast<std::uint32_t>(encoded_size(body)));
  append_slot(bytes, body.slot);
  append_le(bytes, body.round);
  append_array(bytes, body.previous);
  append_array(bytes, body.anchor);
  append_le(bytes, body.tokens);
  append_le(bytes, static_cast<std::uint16_t>(body.members.size()));
  append_le(bytes, static_cast<std::uint16_t>(body.contributors.size()));
  append_le(bytes, static_cast<std::uint16_t>(body.changes.size()));
  for (const RoundMember& member : body.members) {
    append_array(bytes, member.key);
    bytes.push_back(member.missed);
  }
  for (const RoundContributor& c : body.contributors) {
    append_le(bytes, c.member);
    append_le(bytes, c.steps);
    append_le(bytes, c.tokens);
    append_array(bytes, c.payload);
  }
  for (const RoundChange& change : body.changes) {
    bytes.push_back(static_cast<std::uint8_t>(change.kind));
    append_array(bytes, change.key);
    append_le(bytes, change.round);
    append_array(bytes, change.signature);
  }
  return bytes;
}

Expected<RoundBody> decode_body(ByteSpan bytes, bool grouped) {
  if (bytes.size() < head_bytes || as_text(bytes.first(magic.size())) != magic)
    return make_error(ErrorCode::Corrupt, "this is not a round's certificate");
  const std::uint8_t* at = bytes.data();
  const std::uint16_t version = load_le<std::uint16_t>(at + 4);
  if (version > grouped_version)
    return make_error(ErrorCode::Unsupported,
                      "the round's certificate has a newer version; update this program");
  RoundBody body;
  const std::size_t members = load_le<std::uint16_t>(at + 95);
  const std::size_t contributors = load_le<std::uint16_t>(at + 97);
  const std::size_t changes = load_le<std::uint16_t>(at + 99);
  const std::size_t whole =
      head_bytes + member_bytes * members + contributor_bytes * contributors + change_bytes * changes;
  body.grouped = grouped;
  if (version != (grouped ? grouped_version : format_version) || (members == 0) != body.grouped ||
      members > max_round_members || contributors > members ||
      changes > (body.grouped ? 0 : max_round_changes) || bytes.size() != whole ||
      load_le<std::uint32_t>(at + 6) != whole)
    return corrupt("has lengths that do not fit together");
  if (at[10] > static_cast<std::uint8_t>(RoundSlot::Kind::Head))
    return corrupt("names an unknown kind of slot");
  body.slot = {static_cast<RoundSlot::Kind>(at[10]), load_le<std::uint16_t>(at + 11),
               load_le<std::uint16_t>(at + 13)};
  body.round = load_le<std::uint64_t>(at + 15);
  read_array(at + 23, &body.previous);
  read_array(at + 55, &body.anchor);
  body.tokens = load_le<std::uint64_t>(at + 87);
  if (body.grouped) return body;
  if ((body.round == 0) != (contributors == 0)) return corrupt("has nobody who contributed");
  if (body.round == 0 && changes != 0) return corrupt("changes its members before the first round");
  at += head_bytes;
  NS_RETURN_IF_ERROR(read_members(at, members, &body.members));
  at += member_bytes * members;
  NS_RETURN_IF_ERROR(read_contributors(at, contributors, members, &body.contributors));
  at += contributor_bytes * contributors;
  NS_RETURN_IF_ERROR(read_changes(at, changes, &body.changes));
  return body;
}

Hash256 body_hash(const RoundBody& body) {
  return crypto::sha256(encode_body(body));
}

std::vector<RoundMember> next_members(const RoundBody& body) {
  if (body.round == 0) return body.members;
  std::set<net::NodeId> left;
  std::vector<RoundMember> next;
  for (const RoundChange& change : body.changes)
    if (change.kind == RoundChange::Kind::Leave) left.insert(crypto::node_id(change.key));
  for (std::size_t i = 0; i < body.members.size(); ++i) {
    RoundMember member = body.members[i];
    const bool there = std::any_of(body.contributors.begin(), body.contributors.end(),
                                   [i](const RoundContributor& c) { return c.member == i; });
    member.missed = there ? 0 : static_cast<std::uint8_t>(member.missed + 1);
    if (member.missed < rounds_missed_to_expel && left.count(member.id) == 0) next.push_back(member);
  }
  for (const RoundChange& change : body.changes) {
    const net::NodeId id = crypto::node_id(change.key);
    if (change.kind == RoundChange::Kind::Join && next.size() < max_round_members &&
        member_index(next, id) == next.size())
      next.push_back(make_member(change.key));
  }
  // Everybody left at once: whoever contributed stays, or nobody could ever sign again.
  if (next.empty())
    for (const RoundContributor& c : body.contributors)
      next.push_back(make_member(body.members[c.member].key));
  std::sort(next.begin(), next.end(), [](const RoundMember& a, const RoundMember& b) { return a.id < b.id; });
  return next;
}

std::size_t member_index(const std::vector<RoundMember>& members, const net::NodeId& id) {
  return static_cast<std::size_t>(
      std::find_if(members.begin(), members.end(), [&id](const RoundMember& m) { return m.id == id; }) -
      members.begin());
}

std::vector<std::size_t> leader_order(const Hash256& beacon, std::uint64_t round, const RoundSlot& slot,
                                      const std::vector<RoundMember>& members) {
  std::vector<std::pair<Hash256, std::size_t>> draws;
  for (std::size_t i = 0; i < members.size(); ++i) {
    Bytes bytes(beacon.begin(), beacon.end());
    append_le(bytes, round);
    append_slot(bytes, slot);
    append_array(bytes, members[i].id);
    draws.emplace_back(crypto::sha256(bytes), i);
  }
  std::sort(draws.begin(), draws.end());
  std::vector<std::size_t> order;
  for (const auto& draw : draws) order.push_back(draw.second);
  return order;
}

crypto::Signature sign_vote(const RoundVote& vote, const crypto::KeyPair& node, const Hash256& network) {
  return node.sign(purpose_of(vote.step), network, vote_bytes(vote));
}

bool vote_holds(const RoundVote& vote, const crypto::PublicKey& key, const crypto::Signature& signature,
                const Hash256& network) {
  return crypto::verify(key, purpose_of(vote.step), network, vote_bytes(vote), signature);
}

Bytes encode_quorum(const RoundQuorum& quorum) {
  Bytes bytes = encode_body(quorum.body);
  append_le(bytes, quorum.view);
  append_le(bytes, static_cast<std::uint16_t>(quorum.signatures.size()));
  for (const MemberSignature& s : quorum.signatures) {
    append_le(bytes, s.member);
    append_array(bytes, s.signature);
  }
  return bytes;
}

Expected<RoundQuorum> decode_quorum(ByteSpan bytes, bool grouped) {
  if (bytes.size() < head_bytes + quorum_head_bytes ||
      bytes.size() > (grouped ? max_grouped_quorum_bytes : max_quorum_bytes))
    return corrupt("has a length that none has");
  const std::size_t body = load_le<std::uint32_t>(bytes.data() + 6);
  if (body > bytes.size() - quorum_head_bytes) return corrupt("has lengths that do not fit together");
  RoundQuorum quorum;
  NS_ASSIGN_OR_RETURN(quorum.body, decode_body(bytes.first(body), grouped));
  const std::uint8_t* at = bytes.data() + body;
  quorum.view = load_le<std::uint32_t>(at);
  const std::size_t count = load_le<std::uint16_t>(at + 4);
  const std::size_t members = grouped ? max_grouped_members : quorum.body.members.size();
  if (count > members || bytes.size() != body + quorum_head_bytes + count * signature_bytes)
    return corrupt("has lengths that do not fit together");
  at += quorum_head_bytes;
  for (std::size_t i = 0; i < count; ++i, at += signature_bytes) {
    MemberSignature s;
    s.member = load_le<std::uint16_t>(at);
    read_array(at + 2, &s.signature);
    if (s.member >= members || (i > 0 && s.member <= quorum.signatures.back().member))
      return corrupt("has its signatures in a wrong order");
    quorum.signatures.push_back(s);
  }
  return quorum;
}

Expected<void> check_quorum(const RoundQuorum& quorum, VoteStep step, const Hash256& network,
                            std::size_t least) {
  return check_signatures(quorum, quorum.body.members, step, network, least);
}

Expected<void> check_signatures(const RoundQuorum& quorum, const std::vector<RoundMember>& members,
                                VoteStep step, const Hash256& network, std::size_t least) {
  if (least == 0) least = quorum_size(members.size());
  if (quorum.signatures.size() < least)
    return make_error(ErrorCode::Denied,
                      fmt::format("the round's certificate has {} signatures of {} members, it takes {}",
                                  quorum.signatures.size(), members.size(), least));
  const RoundVote vote{step, quorum.body.slot, quorum.body.round, quorum.view, body_hash(quorum.body)};
  for (const MemberSignature& s : quorum.signatures)
    if (s.member >= members.size() || !vote_holds(vote, members[s.member].key, s.signature, network))
      return make_error(ErrorCode::Denied,
                        fmt::format("the round's certificate has a wrong signature, of member {}", s.member));
  return {};
}

}  // namespace neuroshard::rounds
