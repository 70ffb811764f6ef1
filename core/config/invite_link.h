// An invitation to a network, as a link that fits into a message or a QR code:
//
//   neuroshard:join?to=BASE64URL
//
// It carries the whole profile, or the id of a built-in one, some peers to begin with, and what the inviting
// node knows of the network's chain. Nothing in it is trusted beyond that: a profile from a link passes the same
// checks as one from a file, its addresses the same signature, and a peer with an id has to prove it. The
// program asks the person before it follows a link. A link with a voucher holds a secret: the right to vote,
// once, for whoever uses it first. Nothing else in a link is secret.
//
//   offset  size  content of the base64url; numbers are LEB128 varints, texts a varint of length and UTF-8
//   0       1     version: the highest mark, "3:" or "2:", of what is there; 1 without marks
//   1       4     the first bytes of the SHA-256 of what follows: a link that lost a piece says so
//   5       1     0: a built-in network with the addresses that the program knows; then its id, 32 bytes
//                 1: a whole profile
//     name · fields u8, then so many numbers (consensus_fields()) · sync · codec · publisher u8, 1: 32 bytes
//     sequence · p2p port · tracker port · HTTP port · least time between checkpoints
//     bootstrap: count, texts · trackers: count, texts · manifest URL · signature u8, 1: 64 bytes
//     2: founders: count ≤ 64, 32 bytes each · genesis u8, 1: 32 bytes
//     3: sizes: count ≤ 64, each: layers · width · memory of a member and of all, in 500 MB
//   –             peers: count ≤ 8, each: id u8, 1: 32 bytes · place, "host:port"
//   –             2: genesis u8, 1: 32 bytes · recent block u8, 1: height, 32 bytes · wallet of a founder u8, 1: 32
//                 bytes · voucher u8, 1: issuer, 32 bytes · serial · end, Unix milliseconds · signature, 64 bytes ·
//                 seed of its key, 32 bytes
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/chain/history.h"
#include "core/config/network_profile.h"

namespace neuroshard::config {

inline constexpr std::size_t max_invite_link = 2900;  // characters; what a QR code holds
inline constexpr std::size_t max_invited_peers = 8;
inline constexpr std::size_t max_place_text = 262;  // a name of 253, brackets, colon, port

struct InvitedPeer {
  std::optional<Hash256> id;  // who has to answer there; nothing: whoever does
  std::string place;          // "192.0.2.1:9000", "[2001:db8::1]:9000", "host.example.org:9000"
  friend bool operator==(const InvitedPeer&, const InvitedPeer&) = default;
};
// "[ID@]HOST:PORT", as every command takes it, and back.  InvalidArgument.
Expected<InvitedPeer> parse_invited_peer(std::string_view text);
std::string to_text(const InvitedPeer& peer);

struct InviteLink {
  NetworkProfile profile;
  std::vector<InvitedPeer> peers;
  chain::TrustAnchor trust = {};
  std::optional<chain::HeldVoucher> voucher = {};  // secret
};

// Whether the text begins like a link of ours.
bool is_invite_link(std::string_view text);
// Any text is safe; blanks around it are ignored.  Errors: InvalidArgument (no invitation to a network, or
// something in it is not allowed: the message names it), Corrupt (a piece is missing), Unsupported (made by a
// newer version; a built-in network that this one does not know), Denied (the signature of the publisher, or of the
// voucher).
Expected<InviteLink> parse_invite_link(std::string_view text);
// Exhausted: more than fits; the message says what to leave out.  InvalidArgument: a place that is none.
Expected<std::string> format_invite_link(const InviteLink& link);

}  // namespace neuroshard::config
