// The certificate of an outer round: what the members of a slot agreed on, signed by more than two thirds of
// them. Certificates are chained by hash; a chain begins with a genesis body that names the founders and the
// first anchor, and its hash is what everybody must know beforehand.
//
//   offset  size  the body, little-endian
//   0       4     "NSRC"
//   4       2     version, 1; 2: of a round of two levels (grouped_body.h)
//   6       4     length of the body
//   10      5     slot: kind u8 · layer u16 · expert u16
//   15      8     round; 0 = genesis
//   23      32    hash of the previous body; genesis: zeros
//   55      32    the anchor's hash after the round (outer/anchor_hash.h)
//   87      8     tokens of all rounds so far, this one included
//   95      2     members, n ≥ 1
//   97      2     contributors, c ≤ n; at least one unless genesis
//   99      2     changes, m
//           33 n  members, ascending by id: node key · rounds missed in a row, 0 or 1
//           46 c  contributors, ascending: index of the member u16 · steps u32 · tokens u64 · payload's hash
//          105 m  changes, ascending by id: 1 joins, 2 leaves u8 · node key · round u64 · signature
//
//   Version 2 has n = c = m = 0, round 0 included: its anchor is the hash of a GroupedBody, which names them.
//
//   after the body, in a quorum: view u32 · count u16 · ascending: index of the member u16 · signature
//
// Who votes in the next round follows from the body (next_members): members less those who left or missed two
// rounds in a row, and those who joined. So nobody's local view of who is there enters.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"
#include "core/net/node_id.h"

namespace neuroshard::rounds {

// Votes go from each member to each; beyond this many a group is dealt into sub-groups (SPEC §7).
inline constexpr std::size_t max_round_members = 64;
inline constexpr std::size_t max_round_changes = 16;
inline constexpr std::uint8_t rounds_missed_to_expel = 2;
inline constexpr std::size_t max_body_bytes =
    101 + 33 * max_round_members + 46 * max_round_members + 105 * max_round_changes;
// Of rounds of two levels: as many sub-groups as one aggregation takes, of 16.
inline constexpr std::size_t max_grouped_members = 16384;
inline constexpr std::size_t max_quorum_bytes = max_body_bytes + 6 + 66 * max_round_members;
inline constexpr std::size_t max_grouped_quorum_bytes = 101 + 6 + 66 * max_grouped_members;
// A join or leave is taken up to this many rounds after the one it names.
inline constexpr std::uint64_t change_life = 8;

// What is synchronised together. Values of the kinds are protocol.
struct RoundSlot {
  enum class Kind : std::uint8_t { Model = 0, Embed = 1, Layer = 2, Expert = 3, Head = 4 };
  Kind kind = Kind::Model;  // Model: everything, of nodes that hold it all
  std::uint16_t layer = 0;
  std::uint16_t expert = 0;
  friend auto operator<=>(const RoundSlot&, const RoundSlot&) = default;
};
// One number for it, as outer::AnchorIdentity has.
std::uint32_t slot_number(const RoundSlot& slot);

struct RoundMember {
  crypto::PublicKey key{};
  net::NodeId id{};         // crypto::node_id(key)
  std::uint8_t missed = 0;  // rounds in a row up to the previous one
  friend bool operator==(const RoundMember&, const RoundMember&) = default;
};
RoundMember make_member(const crypto::PublicKey& key);

struct RoundContributor {
  std::uint16_t member = 0;  // index
  std::uint32_t steps = 0;
  std::uint64_t tokens = 0;
  Hash256 payload{};
  friend bool operator==(const RoundContributor&, const RoundContributor&) = default;
};

// A node's own word that it joins or leaves.
struct RoundChange {
  enum class Kind : std::uint8_t { Join = 1, Leave = 2 };
  Kind kind = Kind::Join;
  crypto::PublicKey key{};
  std::uint64_t round = 0;  // the newest certificate that it knew
  crypto::Signature signature{};
  friend bool operator==(const RoundChange&, const RoundChange&) = default;
};
RoundChange sign_change(RoundChange::Kind kind, const RoundSlot& slot, std::uint64_t round,
                        const crypto::KeyPair& node, const Hash256& network);
// Signature, and that it is not older than change_life when `round` is being made.
bool change_holds(const RoundChange& change, const RoundSlot& slot, std::uint64_t round,
                  const Hash256& network);

struct RoundBody {
  RoundSlot slot;
  std::uint64_t round = 0;
  Hash256 previous{};
  Hash256 anchor{};
  std::uint64_t tokens = 0;
  std::vector<RoundMember> members;
  std::vector<RoundContributor> contributors;
  std::vector<RoundChange> changes;
  bool grouped = false;  // version 2: a short name for a GroupedBody
  friend bool operator==(const RoundBody&, const RoundBody&) = default;
};

// Sorted members with nothing missed. 1 … max_round_members keys, none twice.
RoundBody genesis_body(const RoundSlot& slot, const Hash256& anchor, std::vector<crypto::PublicKey> founders);

Bytes encode_body(const RoundBody& body);
// Any bytes are safe; only canonical ones are taken, of the version that is asked for. Signatures of changes
// are not checked. Corrupt, Unsupported.
Expected<RoundBody> decode_body(ByteSpan bytes, bool grouped = false);
Hash256 body_hash(const RoundBody& body);

// Who signs the round after this one. Joins that find no room are left out.
std::vector<RoundMember> next_members(const RoundBody& body);
// The index of a node among members; members.size(): it is none.
std::size_t member_index(const std::vector<RoundMember>& members, const net::NodeId& id);

// More than two thirds of n.
constexpr std::size_t quorum_size(std::size_t n) {
  return 2 * n / 3 + 1;
}
// The least number of members of whom one is honest, if less than a third lie.
constexpr std::size_t honest_size(std::size_t n) {
  return n - quorum_size(n) + 1;
}

// Indices of members in the order in which they lead the views of a round: by the hash of (beacon, round,
// slot, id). The beacon is the previous body's hash until a ledger has a better one: who leads a round can
// bias it.
std::vector<std::size_t> leader_order(const Hash256& beacon, std::uint64_t round, const RoundSlot& slot,
                                      const std::vector<RoundMember>& members);

// A vote of the two steps of an agreement (agreement.h).
enum class VoteStep : std::uint8_t { Prepare = 1, Commit = 2 };
struct RoundVote {
  VoteStep step = VoteStep::Prepare;
  RoundSlot slot;
  std::uint64_t round = 0;
  std::uint32_t view = 0;
  Hash256 body{};
  friend bool operator==(const RoundVote&, const RoundVote&) = default;
};
crypto::Signature sign_vote(const RoundVote& vote, const crypto::KeyPair& node, const Hash256& network);
bool vote_holds(const RoundVote& vote, const crypto::PublicKey& key, const crypto::Signature& signature,
                const Hash256& network);

struct MemberSignature {
  std::uint16_t member = 0;
  crypto::Signature signature{};
  friend bool operator==(const MemberSignature&, const MemberSignature&) = default;
};
// Signatures of one view below one body. Of commits: the round's certificate. Of prepares: what a member
// locks on.
struct RoundQuorum {
  RoundBody body;
  std::uint32_t view = 0;
  std::vector<MemberSignature> signatures;
  friend bool operator==(const RoundQuorum&, const RoundQuorum&) = default;
};
using RoundCertificate = RoundQuorum;

Bytes encode_quorum(const RoundQuorum& quorum);
Expected<RoundQuorum> decode_quorum(ByteSpan bytes, bool grouped = false);
// Enough valid signatures of members of quorum.body.members. Whether those are the right members is for the
// chain (chain.h). Denied says what does not hold.
Expected<void> check_quorum(const RoundQuorum& quorum, VoteStep step, const Hash256& network,
                            std::size_t least = 0);
// The same with the members given, for bodies that don't carry them. 0: more than two thirds of them.
Expected<void> check_signatures(const RoundQuorum& quorum, const std::vector<RoundMember>& members,
                                VoteStep step, const Hash256& network, std::size_t least = 0);

}  // namespace neuroshard::rounds
