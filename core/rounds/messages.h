// What nodes say to each other in outer rounds, as bytes. Readers check every length before they believe it,
// and take canonical bytes only.
//
//   RoundPost     kind u8 · item (below)            answer: verdict u8 · round that the answering node works
//                                                   on u64
//   RoundStatus   slot                              answer: RoundStatus, 118 bytes
//   RoundChain    slot · from round u64             answer: more u8 · count u8 ≤ 32 · each: length u32 ·
//                                                   certified round (link.h); the first may be a
//                                                   genesis body without signatures
//   RoundFetch    slot · what u8 · hash · place u64  answer: whole size u64 · at most 256 KiB
//
//   slot: kind u8 · layer u16 · expert u16
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"
#include "core/outer/codec.h"
#include "core/rounds/link.h"

namespace neuroshard::rounds {

// A node's contribution to a round, signed; the payload's bytes travel beside it or are fetched by hash.
//   offset  size  content
//   0       4     "NSCO"
//   4       2     version, 1
//   6       5     slot
//   11      8     round
//   19      32    hash of the anchor that the delta is from
//   51      32    node key
//   83      8     tokens
//   91      4     steps
//   95      1     codec
//   96      8     payload's length
//   104     32    payload's SHA-256
//   136     8     sequence: higher with each contribution of this node
//   144     64    signature, purpose RoundContribution, over all before it
struct Contribution {
  RoundSlot slot;
  std::uint64_t round = 0;
  Hash256 base{};
  crypto::PublicKey key{};
  std::uint64_t tokens = 0;
  std::uint32_t steps = 0;
  outer::Codec codec = outer::Codec::Int8;
  std::uint64_t payload_bytes = 0;
  Hash256 payload{};
  std::uint64_t sequence = 0;
  crypto::Signature signature{};
  friend bool operator==(const Contribution&, const Contribution&) = default;
};
inline constexpr std::size_t contribution_bytes = 208;
void sign_contribution(Contribution& contribution, const crypto::KeyPair& node, const Hash256& network);
bool contribution_holds(const Contribution& contribution, const Hash256& network);
Bytes encode_contribution(const Contribution& contribution);
Expected<Contribution> decode_contribution(ByteSpan bytes);

// Payloads up to this size travel with their contribution.
inline constexpr std::size_t max_inline_payload = 64u << 10;

// 1: a contribution, with its payload when that is small. 208 bytes · payload or nothing.
struct ContributionPost {
  Contribution contribution;
  Bytes payload;  // empty: to be fetched
};
// 2: what a leader proposes. view u32 · 0: body; 1: a quorum of prepares of an earlier view, whose body it
// is.
struct ProposalPost {
  std::uint32_t view = 0;
  RoundBody body;
  std::optional<RoundQuorum> justification;  // its body is the same
};
// 3: a vote. step u8 · slot · round u64 · view u32 · body's hash · index of the member u16 · signature
struct VotePost {
  RoundVote vote;
  MemberSignature signature;
};
// 4: "the leaders before this view have not brought it about". slot · round u64 · view u32 · 0 or 1: lock
struct NewViewPost {
  RoundSlot slot;
  std::uint64_t round = 0;
  std::uint32_t view = 0;
  std::optional<RoundQuorum> lock;
};
// 5: a certificate.
struct CertificatePost {
  RoundCertificate certificate;
};
// 6: a join or leave. slot · kind u8 · node key · round u64 · signature
struct ChangePost {
  RoundSlot slot;
  RoundChange change;
};
// 7: two contributions of one node to one round.
struct EvidencePost {
  Contribution first, second;
};
using RoundItem = std::variant<ContributionPost, ProposalPost, VotePost, NewViewPost, CertificatePost,
                               ChangePost, EvidencePost>;

Bytes encode_item(const RoundItem& item);
Expected<RoundItem> decode_item(ByteSpan bytes);

// What became of a post. Values are protocol.
enum class Verdict : std::uint8_t {
  Taken = 0,
  Known = 1,      // had it already
  Malformed = 2,  // bytes
  OtherSlot = 3,
  PastRound = 4,
  LaterRound = 5,  // the answering node is behind and catches up: post it again
  NotMember = 6,
  BadSignature = 7,
  StaleBase = 8,  // from another anchor than the certified one
  TooFewSteps = 9,
  TooManyTokens = 10,  // more than a round can train
  OtherCodec = 11,
  TooLarge = 12,
  Replayed = 13,     // a sequence that was used before
  Copied = 14,       // another node's payload
  TwoPayloads = 15,  // of one sender in one round: both are left out, the two are kept as evidence
  NotLeader = 16,
  OtherView = 17,
  BadCertificate = 18,
  Busy = 19,  // nothing certified yet, or no room: again later
  Count_
};
// "another node's payload", for tables.
std::string_view to_string(Verdict verdict);

struct PostAnswer {
  Verdict verdict = Verdict::Taken;
  std::uint64_t round = 0;  // that the answering node works on; 0: none yet
};
Bytes encode_post_answer(const PostAnswer& answer);
Expected<PostAnswer> decode_post_answer(ByteSpan bytes);

// How far a node is.
//   round u64 · tip's body hash · genesis hash · tokens u64 · hash of its own anchor as computed · view u32 ·
//   phase u8 · member u8
enum class RoundPhase : std::uint8_t {
  Joining = 1,     // no certified anchor yet
  Training = 2,    // towards H steps
  Collecting = 3,  // own contribution is out
  Agreeing = 4,
  Provisional = 5,  // no quorum can be reached: goes on training
  Repairing = 6,    // its anchor is not the certified one: fetches that
};
struct RoundStatus {
  std::uint64_t round = 0;  // of the newest certificate
  Hash256 tip{};
  Hash256 genesis{};
  std::uint64_t tokens = 0;
  Hash256 anchor{};
  std::uint32_t view = 0;
  RoundPhase phase = RoundPhase::Joining;
  bool member = false;
  std::uint32_t shared_rounds = 0;  // certified since there was more than one member; 0: ever a single one
  friend bool operator==(const RoundStatus&, const RoundStatus&) = default;
};
Bytes encode_status(const RoundStatus& status);
Expected<RoundStatus> decode_status(ByteSpan bytes);

Bytes encode_slot(const RoundSlot& slot);
Expected<RoundSlot> decode_slot(ByteSpan bytes);

struct StatusRequest {
  RoundSlot slot;
  // The asker has just begun: of what it was told before, it knows only what it had to remember (SPEC §7).
  bool back = false;
};
Bytes encode_status_request(const StatusRequest& request);
Expected<StatusRequest> decode_status_request(ByteSpan bytes);

struct ChainRequest {
  RoundSlot slot;
  std::uint64_t from = 0;  // rounds from this on
};
Bytes encode_chain_request(const ChainRequest& request);
Expected<ChainRequest> decode_chain_request(ByteSpan bytes);
inline constexpr std::size_t max_chain_certificates = 32;
inline constexpr std::size_t most_chain_bytes = 1u << 20;  // of an answer with more than one
struct ChainAnswer {
  bool more = false;
  std::vector<RoundLink> links;  // ascending rounds
};
Bytes encode_chain_answer(const ChainAnswer& answer);
Expected<ChainAnswer> decode_chain_answer(ByteSpan bytes);

struct FetchRequest {
  enum class What : std::uint8_t {
    Payload = 1,       // hash: the payload's; place: the first byte wanted
    Leaves = 2,        // hash: an anchor's; place: the first byte wanted of its leaves' hashes, 32 bytes each
    Chunk = 3,         // hash: an anchor's; place: which leaf, 1 …
    Contribution = 4,  // hash: a payload's; place: 0. The signed contribution that it belongs to
  };
  RoundSlot slot;
  What what = What::Payload;
  Hash256 hash{};
  std::uint64_t place = 0;
};
Bytes encode_fetch_request(const FetchRequest& request);
Expected<FetchRequest> decode_fetch_request(ByteSpan bytes);
struct FetchAnswer {
  std::uint64_t whole = 0;  // bytes in all; of chunks: this one's
  ByteSpan bytes;           // a view into what was decoded
};
Bytes encode_fetch_answer(std::uint64_t whole, ByteSpan bytes);
Expected<FetchAnswer> decode_fetch_answer(ByteSpan bytes);

}  // namespace neuroshard::rounds
