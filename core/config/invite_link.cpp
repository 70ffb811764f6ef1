#include "core/config/invite_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/base64url.h"
#include "core/config/detail/link_bytes.h"
#include "core/crypto/hash.h"
#include "core/platform/socket/resolve.h"

namespace neuroshard::config {
namespace {

using detail::LinkReader;
using detail::LinkWriter;

constexpr std::string_view scheme = "neuroshard:";
constexpr std::string_view verb = "join?to=";
// The first version has no founders, trust and voucher, and the second no sizes. A link is written in the first that has all of it.
constexpr std::uint8_t first_version = 1, version_with_trust = 2, version_with_sizes = 3;
constexpr std::size_t head_bytes = 5;
constexpr std::size_t checksum_bytes = 4;
enum class Form : std::uint8_t { BuiltIn = 0, Whole = 1 };

Error damaged() {
  return make_error(ErrorCode::Corrupt, "the invitation is not complete: copy the whole link again");
}

Error refused(std::string message) {
  return make_error(ErrorCode::InvalidArgument, std::move(message));
}

void write_profile(LinkWriter& out, const NetworkProfile& profile, std::uint8_t version) {
  const ConsensusPart& c = profile.consensus;
  out.text(c.name);
  const Span<const ConsensusField> written = written_fields(c);
  out.byte(static_cast<std::uint8_t>(written.size()));
  for (const ConsensusField& field : written) out.number(c.*field.member);
  out.text(c.sync);
  out.text(c.codec);
  std::optional<Hash256> publisher;
  if (const auto key = hash_from_hex(c.publisher_key); key.ok()) publisher = *key;
  out.optional(publisher);
  const DirectoryPart& d = profile.directory;
  for (const std::uint64_t value :
       {d.sequence, d.p2p_port, d.tracker_port, d.http_port, d.checkpoint_min_interval})
    out.number(value);
  out.texts(d.bootstrap);
  out.texts(d.trackers);
  out.text(d.manifest_url);
  out.optional(d.signature);
  if (version < version_with_trust) return;
  out.number(c.founders.size());
  for (const Hash256& founder : founder_keys(c)) out.raw(founder);
  out.optional(d.genesis);
  if (version < version_with_sizes) return;
  out.number(c.sizes.size());
  for (const ModelGrowth& size : c.sizes)
    for (const std::uint64_t value : {size.layers, size.hidden, size.member_tiers, size.network_tiers})
      out.number(value);
}

// Damaged ones are found by the reader's end.
Expected<std::vector<ModelGrowth>> read_sizes(LinkReader& in) {
  const std::uint64_t count = in.number();
  if (in.good() && count > max_profile_sizes)
    return refused(fmt::format("the invitation's network has {} sizes; at most {} are allowed", count,
                               max_profile_sizes));
  std::vector<ModelGrowth> sizes;
  for (std::uint64_t i = 0; i < count && in.good(); ++i) {
    ModelGrowth& size = sizes.emplace_back();
    for (std::uint64_t* value : {&size.layers, &size.hidden, &size.member_tiers, &size.network_tiers})
      *value = in.number();
  }
  return sizes;
}

Expected<NetworkProfile> read_profile(LinkReader& in, std::uint8_t version) {
  NetworkProfile profile;
  ConsensusPart& c = profile.consensus;
  c.name = in.text(max_profile_text);
  const std::size_t fields = in.byte();
  if (in.good() && (fields < first_consensus_fields || fields > consensus_fields().size())) {
    return make_error(
        ErrorCode::Unsupported,
        fmt::format("the invitation's network has {} constants and this version of NeuroShard has {}: "
                    "use the version of the inviting node",
                    fields, consensus_fields().size()));
  }
  for (std::size_t i = 0; i < fields && in.good(); ++i) c.*consensus_fields()[i].member = in.number();
  c.sync = in.text(max_profile_text);
  c.codec = in.text(max_profile_text);
  const auto publisher = in.optional<std::tuple_size_v<Hash256>>();
  c.publisher_key = publisher ? to_hex(*publisher) : "none";
  DirectoryPart& d = profile.directory;
  for (std::uint64_t* value :
       {&d.sequence, &d.p2p_port, &d.tracker_port, &d.http_port, &d.checkpoint_min_interval})
    *value = in.number();
  d.bootstrap = in.texts(max_profile_peers);
  d.trackers = in.texts(max_profile_peers);
  d.manifest_url = in.text(max_profile_text);
  d.signature = in.optional<std::tuple_size_v<crypto::Signature>>();
  if (version >= version_with_trust) {
    const std::uint64_t founders = in.number();
    if (in.good() && founders > max_profile_founders)
      return refused(fmt::format("the invitation's network has {} founders; at most {} are allowed", founders,
                                 max_profile_founders));
    for (std::uint64_t i = 0; i < founders && in.good(); ++i)
      c.founders.push_back(to_hex(in.raw(sizeof(Hash256))));
    d.genesis = in.optional<std::tuple_size_v<Hash256>>();
  }
  if (version >= version_with_sizes) {
    NS_ASSIGN_OR_RETURN(c.sizes, read_sizes(in));
  }
  if (!in.good()) return damaged();
  // The form of files has all the rules; a profile of a link has to keep each of them.
  return parse_network_profile(as_bytes(format_network_profile(profile)));
}

Expected<NetworkProfile> find_builtin(ByteSpan id) {
  for (const char* name : builtin_profile_names()) {
    NS_ASSIGN_OR_RETURN(NetworkProfile profile, builtin_profile(name));
    const Hash256 own = network_id(profile.consensus);
    if (std::equal(id.begin(), id.end(), own.begin(), own.end())) return profile;
  }
  return make_error(ErrorCode::Unsupported,
                    fmt::format("the invitation is to the network {}…, which this version of NeuroShard does "
                                "not know: use the version of the inviting node",
                                to_hex(id.first(std::min<std::size_t>(id.size(), 6)))));
}

Expected<std::vector<InvitedPeer>> read_peers(LinkReader& in) {
  const std::uint64_t count = in.number();
  if (!in.good()) return damaged();
  if (count > max_invited_peers)
    return refused(
        fmt::format("the invitation names {} peers; at most {} are allowed", count, max_invited_peers));
  std::vector<InvitedPeer> peers;
  for (std::uint64_t i = 0; i < count; ++i) {
    InvitedPeer peer;
    peer.id = in.optional<std::tuple_size_v<Hash256>>();
    peer.place = in.text(max_place_text);
    if (!in.good()) return damaged();
    NS_RETURN_IF_ERROR(platform::check_place(peer.place));
    peers.push_back(std::move(peer));
  }
  return peers;
}

void write_trust(LinkWriter& out, const InviteLink& link) {
  out.optional(link.trust.genesis);
  out.byte(link.trust.recent ? 1 : 0);
  if (link.trust.recent) {
    out.number(link.trust.recent->height);
    out.raw(link.trust.recent->hash);
  }
  out.optional(link.trust.founder_wallet);
  out.byte(link.voucher ? 1 : 0);
  if (!link.voucher) return;
  const chain::Voucher& voucher = link.voucher->voucher;
  out.raw(voucher.issuer);
  out.number(voucher.serial);
  out.number(voucher.expires_ms);
  out.raw(voucher.signature);
  out.raw(link.voucher->secret);
}

template <class Array>
Array read_array(LinkReader& in) {
  Array value{};
  const ByteSpan bytes = in.raw(value.size());
  std::copy(bytes.begin(), bytes.end(), value.begin());
  return value;
}

// The voucher's public key is not in the link: it follows from the secret.
Expected<chain::HeldVoucher> read_voucher(LinkReader& in, const Hash256& network) {
  chain::HeldVoucher held;
  held.voucher.issuer = read_array<crypto::PublicKey>(in);
  const std::uint64_t serial = in.number();
  held.voucher.expires_ms = in.number();
  held.voucher.signature = read_array<crypto::Signature>(in);
  held.secret = read_array<Hash256>(in);
  if (!in.at_end() || serial > std::numeric_limits<std::uint32_t>::max()) return damaged();
  held.voucher.serial = static_cast<std::uint32_t>(serial);
  held.voucher.key = crypto::KeyPair::from_seed(held.secret).public_key();
  if (!chain::voucher_holds(held.voucher, network))
    return make_error(ErrorCode::Denied,
                      "the invitation's right to vote is not signed by the node that it names: ask for a new "
                      "invitation");
  return held;
}

Expected<void> read_trust(LinkReader& in, InviteLink& link) {
  link.trust.genesis = in.optional<std::tuple_size_v<Hash256>>();
  const std::uint8_t recent = in.byte();
  if (recent == 1) {
    link.trust.recent.emplace();
    link.trust.recent->height = in.number();
    link.trust.recent->hash = read_array<Hash256>(in);
  }
  link.trust.founder_wallet = in.optional<std::tuple_size_v<crypto::PublicKey>>();
  const std::uint8_t voucher = in.byte();
  if (!in.good() || recent > 1 || voucher > 1) return damaged();
  const std::optional<Hash256>& published = link.profile.directory.genesis;
  if (published && link.trust.genesis && *published != *link.trust.genesis)
    return refused("the invitation and the profile in it name different first blocks of the chain");
  if (voucher == 0) return {};
  NS_ASSIGN_OR_RETURN(link.voucher, read_voucher(in, network_id(link.profile.consensus)));
  return {};
}

bool has_trust(const InviteLink& link) {
  const chain::TrustAnchor& trust = link.trust;
  return trust.genesis || trust.recent || trust.founder_wallet || link.voucher ||
         !link.profile.consensus.founders.empty() || link.profile.directory.genesis;
}

std::uint8_t version_of(const InviteLink& link) {
  if (!link.profile.consensus.sizes.empty()) return version_with_sizes;
  return has_trust(link) ? version_with_trust : first_version;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool starts_with_any_case(std::string_view text, std::string_view head) {
  return text.size() >= head.size() && std::equal(head.begin(), head.end(), text.begin(), [](char a, char b) {
           return a == b || (b >= 'A' && b <= 'Z' && a == b - 'A' + 'a');
         });
}

}  // namespace

Expected<InvitedPeer> parse_invited_peer(std::string_view text) {
  InvitedPeer peer;
  const std::size_t at = text.find('@');
  if (at != std::string_view::npos) {
    NS_ASSIGN_OR_RETURN(const Hash256 id, hash_from_hex(text.substr(0, at)));
    peer.id = id;
    text.remove_prefix(at + 1);
  }
  if (text.size() > max_place_text)
    return refused(fmt::format("'{}…' is too long for the address of a peer", text.substr(0, 40)));
  peer.place = std::string(text);
  NS_RETURN_IF_ERROR(platform::check_place(peer.place));
  return peer;
}

std::string to_text(const InvitedPeer& peer) {
  return peer.id ? to_hex(*peer.id) + "@" + peer.place : peer.place;
}

bool is_invite_link(std::string_view text) {
  return starts_with_any_case(trimmed(text), scheme);
}

Expected<InviteLink> parse_invite_link(std::string_view text) {
  text = trimmed(text);
  if (text.size() > max_invite_link)
    return refused(
        fmt::format("the invitation is too long: {} characters of {}", text.size(), max_invite_link));
  if (!starts_with_any_case(text, scheme))
    return refused("this is not an invitation: an invitation begins with neuroshard:join?to=");
  text.remove_prefix(scheme.size());
  if (text.substr(0, 2) == "//") text.remove_prefix(2);
  if (text.substr(0, verb.size()) != verb)
    return refused(
        "this link is not an invitation to a network: such a link begins with neuroshard:join?to=");
  const auto bytes = from_base64url(text.substr(verb.size()));
  if (!bytes.ok() || bytes->size() < head_bytes) return damaged();
  const std::uint8_t version = bytes->front();
  if (version < first_version || version > version_with_sizes) {
    return make_error(ErrorCode::Unsupported,
                      "the invitation was made by a newer version of NeuroShard: use that version");
  }
  const ByteSpan content = ByteSpan(*bytes).subspan(head_bytes);
  const Hash256 sum = crypto::sha256(content);
  if (!std::equal(sum.begin(), sum.begin() + checksum_bytes, bytes->begin() + 1)) return damaged();
  LinkReader in(content);
  const std::uint8_t form = in.byte();
  InviteLink link;
  if (form == static_cast<std::uint8_t>(Form::BuiltIn)) {
    const ByteSpan id = in.raw(sizeof(Hash256));
    if (!in.good()) return damaged();
    NS_ASSIGN_OR_RETURN(link.profile, find_builtin(id));
  } else if (form == static_cast<std::uint8_t>(Form::Whole)) {
    NS_ASSIGN_OR_RETURN(link.profile, read_profile(in, version));
  } else {
    return damaged();
  }
  NS_ASSIGN_OR_RETURN(link.peers, read_peers(in));
  if (version >= version_with_trust) NS_RETURN_IF_ERROR(read_trust(in, link));
  if (!in.at_end()) return damaged();
  return link;
}

Expected<std::string> format_invite_link(const InviteLink& link) {
  if (link.peers.size() > max_invited_peers)
    return make_error(ErrorCode::Exhausted,
                      fmt::format("an invitation names at most {} peers", max_invited_peers));
  LinkWriter out;
  const std::uint8_t version = version_of(link);
  const auto builtin = builtin_profile(link.profile.consensus.name);
  if (builtin.ok() && format_network_profile(*builtin) == format_network_profile(link.profile)) {
    out.byte(static_cast<std::uint8_t>(Form::BuiltIn));
    out.raw(network_id(link.profile.consensus));
  } else {
    out.byte(static_cast<std::uint8_t>(Form::Whole));
    write_profile(out, link.profile, version);
  }
  out.number(link.peers.size());
  for (const InvitedPeer& peer : link.peers) {
    NS_RETURN_IF_ERROR(platform::check_place(peer.place));
    out.optional(peer.id);
    out.text(peer.place);
  }
  if (version >= version_with_trust) write_trust(out, link);
  const Hash256 sum = crypto::sha256(out.bytes());
  Bytes whole{version};
  whole.insert(whole.end(), sum.begin(), sum.begin() + checksum_bytes);
  whole.insert(whole.end(), out.bytes().begin(), out.bytes().end());
  std::string text = std::string(scheme) + std::string(verb) + to_base64url(whole);
  if (text.size() > max_invite_link)
    return make_error(ErrorCode::Exhausted,
                      fmt::format("the invitation has {} characters, and the limit is {}: name fewer peers, "
                                  "or send the profile's file instead",
                                  text.size(), max_invite_link));
  return text;
}

}  // namespace neuroshard::config
