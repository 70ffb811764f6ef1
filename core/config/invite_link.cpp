#include "core/config/invite_link.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/base64url.h"
#include "core/crypto/hash.h"
#include "core/platform/socket/resolve.h"

namespace neuroshard::config {
namespace {

constexpr std::string_view scheme = "neuroshard:";
constexpr std::string_view verb = "join?to=";
constexpr std::uint8_t version = 1;
constexpr std::size_t head_bytes = 5;
constexpr std::size_t checksum_bytes = 4;
enum class Form : std::uint8_t { BuiltIn = 0, Whole = 1 };

Error damaged() {
  return make_error(ErrorCode::Corrupt, "the invitation is not complete: copy the whole link again");
}

Error refused(std::string message) {
  return make_error(ErrorCode::InvalidArgument, std::move(message));
}

class Writer {
 public:
  void byte(std::uint8_t value) { bytes_.push_back(value); }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<std::uint8_t>(value) | 0x80);
    byte(static_cast<std::uint8_t>(value));
  }
  void raw(ByteSpan bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void text(std::string_view value) {
    number(value.size());
    raw(as_bytes(value));
  }
  void texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
  }
  template <std::size_t N>
  void optional(const std::optional<std::array<std::uint8_t, N>>& value) {
    byte(value ? 1 : 0);
    if (value) raw({value->data(), N});
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

// Reads on after an error and says so at the end: every member gives something within its bounds.
class Reader {
 public:
  explicit Reader(ByteSpan bytes) : rest_(bytes) {}

  std::uint8_t byte() {
    if (rest_.empty()) return fail<std::uint8_t>();
    const std::uint8_t value = rest_[0];
    rest_ = rest_.subspan(1);
    return value;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t piece = byte();
      // Ten pieces hold 70 bits; and the shortest form is the only one.
      if ((shift == 63 && piece > 1) || (shift > 0 && piece == 0)) return fail<std::uint64_t>();
      value |= static_cast<std::uint64_t>(piece & 0x7f) << shift;
      if ((piece & 0x80) == 0) return value;
    }
    return fail<std::uint64_t>();
  }
  ByteSpan raw(std::size_t size) {
    if (size > rest_.size()) return fail<ByteSpan>();
    const ByteSpan bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  std::string text(std::size_t most) {
    const std::uint64_t size = number();
    if (size > most) return fail<std::string>();
    return std::string(as_text(raw(static_cast<std::size_t>(size))));
  }
  std::vector<std::string> texts(std::size_t most) {
    const std::uint64_t count = number();
    std::vector<std::string> values;
    if (count > most) return fail<std::vector<std::string>>();
    for (std::uint64_t i = 0; i < count && good_; ++i) values.push_back(text(max_profile_text));
    return values;
  }
  template <std::size_t N>
  std::optional<std::array<std::uint8_t, N>> optional() {
    const std::uint8_t there = byte();
    if (there > 1) return fail<std::nullopt_t>(std::nullopt);
    if (there == 0) return std::nullopt;
    const ByteSpan bytes = raw(N);
    if (bytes.size() != N) return std::nullopt;
    std::array<std::uint8_t, N> value{};
    std::copy(bytes.begin(), bytes.end(), value.begin());
    return value;
  }
  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  template <class T>
  T fail(T value = T()) {
    good_ = false;
    rest_ = {};
    return value;
  }
  ByteSpan rest_;
  bool good_ = true;
};

void write_profile(Writer& out, const NetworkProfile& profile) {
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
}

Expected<NetworkProfile> read_profile(Reader& in) {
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

Expected<std::vector<InvitedPeer>> read_peers(Reader& in) {
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
  if (bytes->front() != version) {
    return make_error(ErrorCode::Unsupported,
                      "the invitation was made by a newer version of NeuroShard: use that version");
  }
  const ByteSpan content = ByteSpan(*bytes).subspan(head_bytes);
  const Hash256 sum = crypto::sha256(content);
  if (!std::equal(sum.begin(), sum.begin() + checksum_bytes, bytes->begin() + 1)) return damaged();
  Reader in(content);
  const std::uint8_t form = in.byte();
  InviteLink link;
  if (form == static_cast<std::uint8_t>(Form::BuiltIn)) {
    const ByteSpan id = in.raw(sizeof(Hash256));
    if (!in.good()) return damaged();
    NS_ASSIGN_OR_RETURN(link.profile, find_builtin(id));
  } else if (form == static_cast<std::uint8_t>(Form::Whole)) {
    NS_ASSIGN_OR_RETURN(link.profile, read_profile(in));
  } else {
    return damaged();
  }
  NS_ASSIGN_OR_RETURN(link.peers, read_peers(in));
  if (!in.at_end()) return damaged();
  return link;
}

Expected<std::string> format_invite_link(const InviteLink& link) {
  if (link.peers.size() > max_invited_peers)
    return make_error(ErrorCode::Exhausted,
                      fmt::format("an invitation names at most {} peers", max_invited_peers));
  Writer out;
  const auto builtin = builtin_profile(link.profile.consensus.name);
  if (builtin.ok() && format_network_profile(*builtin) == format_network_profile(link.profile)) {
    out.byte(static_cast<std::uint8_t>(Form::BuiltIn));
    out.raw(network_id(link.profile.consensus));
  } else {
    out.byte(static_cast<std::uint8_t>(Form::Whole));
    write_profile(out, link.profile);
  }
  out.number(link.peers.size());
  for (const InvitedPeer& peer : link.peers) {
    NS_RETURN_IF_ERROR(platform::check_place(peer.place));
    out.optional(peer.id);
    out.text(peer.place);
  }
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
