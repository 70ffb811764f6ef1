#include "core/rounds/grouped_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/rounds/detail/reader.h"

namespace neuroshard::rounds {
namespace {

constexpr std::string_view magic = "NSRG";
constexpr std::uint16_t format_version = 1;

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, fmt::format("the round's content {}", what));
}
Error denied(std::string what) {
  return make_error(ErrorCode::Denied, fmt::format("the round's content {}", what));
}

Expected<GroupResult> read_group(Reader& in, const Deal& deal) {
  GroupResult result;
  result.group = in.number<std::uint16_t>();
  if (result.group >= deal.groups.size()) return corrupt("names a sub-group that there is not");
  RoundBody& body = result.certificate.body;
  body.slot = deal.slot;
  body.round = deal.round;
  body.previous = group_beacon(deal.previous, result.group);
  body.members = *deal.groups[result.group];
  body.anchor = in.array<Hash256>();
  body.tokens = in.number<std::uint64_t>();
  result.certificate.view = in.number<std::uint32_t>();
  const std::size_t contributors = in.number<std::uint8_t>(), signatures = in.number<std::uint8_t>();
  const std::size_t n = body.members.size();
  if (contributors == 0 || contributors > n || signatures > n)
    return corrupt("has more than a sub-group's members in one, or nobody");
  for (std::size_t i = 0; i < contributors; ++i) {
    RoundContributor c;
    c.member = in.number<std::uint16_t>();
    c.steps = in.number<std::uint32_t>();
    c.tokens = in.number<std::uint64_t>();
    c.payload = in.array<Hash256>();
    if (c.member >= n || (i > 0 && c.member <= body.contributors.back().member))
      return corrupt("names contributors that are none");
    body.contributors.push_back(c);
  }
  for (std::size_t i = 0; i < signatures; ++i) {
    MemberSignature s;
    s.member = in.number<std::uint16_t>();
    s.signature = in.array<crypto::Signature>();
    if (s.member >= n || (i > 0 && s.member <= result.certificate.signatures.back().member))
      return corrupt("has its signatures in a wrong order");
    result.certificate.signatures.push_back(s);
  }
  if (!in.good()) return corrupt("has lengths that do not fit together");
  return result;
}

Expected<std::vector<RoundChange>> read_changes(Reader& in, std::size_t count) {
  std::vector<RoundChange> changes;
  net::NodeId last{};
  for (std::size_t i = 0; i < count && in.good(); ++i) {
    RoundChange change;
    const auto kind = in.number<std::uint8_t>();
    if (kind < 1 || kind > 2) return corrupt("has a change of an unknown kind");
    change.kind = static_cast<RoundChange::Kind>(kind);
    change.key = in.array<crypto::PublicKey>();
    change.round = in.number<std::uint64_t>();
    change.signature = in.array<crypto::Signature>();
    const net::NodeId id = crypto::node_id(change.key);
    if (i > 0 && !(last < id)) return corrupt("has its changes in a wrong order");
    last = id;
    changes.push_back(change);
  }
  return changes;
}

}  // namespace

Bytes encode_grouped_body(const GroupedBody& body) {
  Bytes bytes(magic.begin(), magic.end());
  append_le(bytes, format_version);
  append_slot(bytes, body.slot);
  append_le(bytes, body.round);
  append_array(bytes, body.previous);
  append_array(bytes, body.roster);
  append_array(bytes, body.anchor);
  append_le(bytes, body.tokens);
  append_le(bytes, static_cast<std::uint16_t>(body.groups.size()));
  append_le(bytes, static_cast<std::uint16_t>(body.changes.size()));
  for (const GroupResult& result : body.groups) {
    const RoundQuorum& quorum = result.certificate;
    append_le(bytes, result.group);
    append_array(bytes, quorum.body.anchor);
    append_le(bytes, quorum.body.tokens);
    append_le(bytes, quorum.view);
    bytes.push_back(static_cast<std::uint8_t>(quorum.body.contributors.size()));
    bytes.push_back(static_cast<std::uint8_t>(quorum.signatures.size()));
    for (const RoundContributor& c : quorum.body.contributors) {
      append_le(bytes, c.member);
      append_le(bytes, c.steps);
      append_le(bytes, c.tokens);
      append_array(bytes, c.payload);
    }
    for (const MemberSignature& s : quorum.signatures) {
      append_le(bytes, s.member);
      append_array(bytes, s.signature);
    }
  }
  for (const RoundChange& change : body.changes) {
    bytes.push_back(static_cast<std::uint8_t>(change.kind));
    append_array(bytes, change.key);
    append_le(bytes, change.round);
    append_array(bytes, change.signature);
  }
  return bytes;
}

Expected<GroupedBody> decode_grouped_body(ByteSpan bytes, const Deal& deal) {
  if (bytes.size() < magic.size() + 2 || as_text(bytes.first(magic.size())) != magic)
    return make_error(ErrorCode::Corrupt, "this is not a round's content");
  Reader in(bytes.subspan(magic.size()));
  const auto version = in.number<std::uint16_t>();
  if (version > format_version)
    return make_error(ErrorCode::Unsupported, "the round's content has a newer version; update this program");
  GroupedBody body;
  body.slot = in.slot();
  body.round = in.number<std::uint64_t>();
  body.previous = in.array<Hash256>();
  body.roster = in.array<Hash256>();
  body.anchor = in.array<Hash256>();
  body.tokens = in.number<std::uint64_t>();
  const std::size_t groups = in.number<std::uint16_t>(), changes = in.number<std::uint16_t>();
  if (!in.good() || version != format_version || changes > max_grouped_changes)
    return corrupt("has lengths that do not fit together");
  if (body.slot != deal.slot || body.round != deal.round || body.previous != deal.previous ||
      body.roster != deal.roster->hash)
    return denied("is of another round");
  if (groups == 0 || groups > deal.groups.size()) return corrupt("has no sub-groups, or too many");
  for (std::size_t i = 0; i < groups; ++i) {
    NS_ASSIGN_OR_RETURN(GroupResult result, read_group(in, deal));
    if (i > 0 && result.group <= body.groups.back().group) return corrupt("has sub-groups in a wrong order");
    body.groups.push_back(std::move(result));
  }
  NS_ASSIGN_OR_RETURN(body.changes, read_changes(in, changes));
  if (!in.at_end()) return corrupt("has lengths that do not fit together");
  return body;
}

Expected<void> check_group_result(const GroupResult& result, const Deal& deal, const Hash256& network) {
  const RoundBody& body = result.certificate.body;
  if (result.group >= deal.groups.size() || body.slot != deal.slot || body.round != deal.round ||
      body.grouped || body.previous != group_beacon(deal.previous, result.group) ||
      body.members != *deal.groups[result.group] || body.contributors.empty() || !body.changes.empty())
    return denied(fmt::format("has a sub-group, {}, that is not of this round", result.group));
  return check_quorum(result.certificate, VoteStep::Commit, network);
}

Expected<void> check_groups(const GroupedBody& body, const Deal& deal, const Hash256& network) {
  for (const GroupResult& result : body.groups) NS_RETURN_IF_ERROR(check_group_result(result, deal, network));
  for (const RoundChange& change : body.changes) {
    const std::size_t n = deal.roster->members.size();
    const bool member = roster_index(*deal.roster, crypto::node_id(change.key)) < n;
    if (member != (change.kind == RoundChange::Kind::Leave) ||
        !change_holds(change, body.slot, body.round, network))
      return denied("has a change of members that its node did not ask for");
  }
  return {};
}

RoundBody grouped_name(const GroupedBody& body, const Hash256& content) {
  RoundBody name;
  name.grouped = true;
  name.slot = body.slot;
  name.round = body.round;
  name.previous = body.previous;
  name.anchor = content;
  name.tokens = body.tokens;
  return name;
}

RosterPtr next_roster(const Deal& deal, const GroupedBody& body) {
  std::set<net::NodeId> left, there;
  for (const RoundChange& change : body.changes)
    if (change.kind == RoundChange::Kind::Leave) left.insert(crypto::node_id(change.key));
  std::vector<bool> in(deal.groups.size(), false);
  for (const GroupResult& result : body.groups) {
    in[result.group] = true;
    for (const RoundContributor& c : result.certificate.body.contributors)
      there.insert(result.certificate.body.members[c.member].id);
  }
  std::vector<RoundMember> next;
  for (std::size_t i = 0; i < deal.roster->members.size(); ++i) {
    RoundMember member = deal.roster->members[i];
    if (in[deal.group_of[i]])
      member.missed = there.count(member.id) != 0 ? 0 : static_cast<std::uint8_t>(member.missed + 1);
    if (member.missed < rounds_missed_to_expel && left.count(member.id) == 0) next.push_back(member);
  }
  for (const RoundChange& change : body.changes)
    if (change.kind == RoundChange::Kind::Join && next.size() < max_grouped_members)
      next.push_back(make_member(change.key));
  // Everybody left at once: whoever was there stays, or nobody could ever sign again.
  if (next.empty())
    for (const RoundMember& member : deal.roster->members)
      if (there.count(member.id) != 0) next.push_back(make_member(member.key));
  return make_roster(std::move(next));
}

Bytes encode_group_result(const GroupResult& result) {
  Bytes bytes;
  append_le(bytes, result.group);
  const Bytes certificate = encode_quorum(result.certificate);
  bytes.insert(bytes.end(), certificate.begin(), certificate.end());
  return bytes;
}

Expected<GroupResult> decode_group_result(ByteSpan bytes) {
  if (bytes.size() < 2) return corrupt("has no sub-group's result");
  GroupResult result;
  result.group = load_le<std::uint16_t>(bytes.data());
  NS_ASSIGN_OR_RETURN(result.certificate, decode_quorum(bytes.subspan(2)));
  return result;
}

}  // namespace neuroshard::rounds
