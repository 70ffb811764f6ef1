// One well-formed value of each format of core/chain, and what holds for every format: bytes that were cut,
// lengthened or changed are refused, or are another value's only encoding. Header only.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "core/chain/block.h"
#include "core/chain/vote.h"
#include "tests/support/keys.h"

namespace neuroshard::chain::samples {

inline Hash256 filled(std::uint8_t value) {
  Hash256 hash{};
  hash.fill(value);
  return hash;
}
inline const Hash256 network = filled(7);
inline const Hash256 opening = filled(50);

// reencode: the bytes' value written again, or nothing when they are refused. Empty: all holds.
template <class Reencode>
std::string format_fault(const Bytes& bytes, Reencode reencode) {
  if (reencode(ByteSpan(bytes)) != std::optional<Bytes>(bytes)) return "it is not read as it was written";
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    if (reencode(ByteSpan(bytes).first(size))) return "a part is read: " + std::to_string(size) + " bytes";
  }
  Bytes changed = bytes;
  changed.push_back(0);
  if (reencode(ByteSpan(changed))) return "a byte too many is read";
  changed.pop_back();
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto mask = static_cast<std::uint8_t>(1u << (bit % 8));
    changed[bit / 8] ^= mask;
    const std::optional<Bytes> again = reencode(ByteSpan(changed));
    if (again && *again != changed)
      return "two encodings of one value: bit " + std::to_string(bit % 8) + " of byte " +
             std::to_string(bit / 8);
    changed[bit / 8] ^= mask;
  }
  return {};
}

// For format_fault(): decode(bytes) and encode(value).
template <class Decode, class Encode>
auto reencoder(Decode decode, Encode encode) {
  return [=](ByteSpan bytes) -> std::optional<Bytes> {
    const auto value = decode(bytes);
    if (!value.ok()) return {};
    return encode(*value);
  };
}

inline SignedVote vote(std::uint8_t block = 60, std::uint8_t signer = 1, VoteStep step = VoteStep::Prepare) {
  const Vote what{step, 9, filled(40), step >= VoteStep::Succession ? 0u : 3u, filled(block)};
  return sign_vote(what, signer, test::key_of(signer), network);
}

inline Quorum quorum(VoteStep step, const Hash256& block, std::uint64_t height, const Hash256& previous,
                     std::uint8_t signers = 3) {
  Quorum quorum{step, height, previous, step >= VoteStep::Succession ? 0u : 3u, block, {}};
  const Vote vote{step, height, previous, quorum.view, block};
  for (std::uint8_t i = 1; i <= signers; ++i)
    quorum.signatures.push_back({i, sign_vote(vote, i, test::key_of(i), network).signature});
  return quorum;
}
inline Quorum quorum(VoteStep step = VoteStep::Prepare) {
  return quorum(step, filled(60), 9, filled(40));
}

inline Voucher voucher(std::uint8_t issuer = 1, std::uint8_t own_key = 90) {
  Voucher voucher;
  voucher.key = test::key_of(own_key).public_key();
  voucher.serial = 5;
  voucher.expires_ms = 1'800'000'000'000;
  sign_voucher(voucher, test::key_of(issuer), network);
  return voucher;
}

inline BeaconCommitment commitment() {
  return {filled(33), 4, 1000};
}

inline Register registration(std::uint8_t node, bool vouched) {
  const crypto::PublicKey key = test::key_of(node).public_key();
  const auto wallet = test::key_of(static_cast<std::uint8_t>(node + 100));
  Register what;
  what.delegation =
      crypto::delegate(wallet, key, network, WallTime(std::chrono::milliseconds(1'900'000'000'000)), 2);
  what.beacon = commitment();
  if (!vouched) return what;
  what.voucher = voucher();
  what.voucher_signature = use_voucher(test::key_of(90), key, wallet.public_key(), network);
  return what;
}

inline Vouch vouch(std::uint8_t node) {
  const crypto::PublicKey wallet = test::key_of(static_cast<std::uint8_t>(node + 100)).public_key();
  return {voucher(), use_voucher(test::key_of(90), test::key_of(node).public_key(), wallet, network), wallet};
}

template <class What>
Statement statement(std::uint8_t node, What what, BlockReference reference = {8, filled(41)}) {
  Statement statement;
  statement.reference = reference;
  statement.what = std::move(what);
  sign_statement(statement, test::key_of(node), network);
  return statement;
}

// By the wallet of registration(node).
inline Statement revocation(std::uint8_t node, BlockReference reference = {8, filled(41)}) {
  Statement statement;
  statement.node = test::key_of(node).public_key();
  statement.reference = reference;
  sign_revocation(statement, test::key_of(static_cast<std::uint8_t>(node + 100)), network);
  return statement;
}

inline std::vector<Statement> statements_of_each_kind() {
  return {statement(1, registration(1, true)),
          statement(2, registration(2, false)),
          statement(3, vouch(3)),
          statement(4, Away{}),
          statement(5, Back{}),
          statement(6, Leave{}),
          statement(7, Commit{commitment()}),
          revocation(8),
          statement(9, Move{RowSet::of({0, 9}), true}),
          statement(10, Offer{33}),
          statement(11, Offer{33, 1500})};
}

inline Contribution contribution(std::uint8_t node, std::uint64_t tokens = 900) {
  Contribution contribution;
  contribution.opening = opening;
  contribution.round = 6;
  contribution.rows = {{1, tokens, 4096, filled(70)}, {4, tokens / 2, 2048, filled(71)}};
  contribution.batches = filled(72);
  contribution.reveal = filled(static_cast<std::uint8_t>(node + 20));
  sign_contribution(contribution, test::key_of(node), network);
  return contribution;
}

// Of two rows; every other listed payload is missing in the second.
inline Vector vector(std::uint8_t voter, std::vector<std::uint32_t> members) {
  Vector vector;
  vector.opening = opening;
  vector.round = 6;
  vector.voter = voter;
  vector.contributions = filled(80);
  vector.payloads.assign(2, Bitmap(members.size()));
  for (std::size_t i = 0; i < members.size(); ++i) {
    vector.payloads[0].set(i);
    if (i % 2 == 0) vector.payloads[1].set(i);
  }
  vector.members = std::move(members);
  sign_vector(vector, test::key_of(voter), network);
  return vector;
}

inline CloseSection close_section() {
  CloseSection close;
  close.round = 6;
  for (const std::uint8_t member : {1, 2, 3})
    close.contributions.push_back(entry_of(contribution(member), member));
  close.vectors = {vector(1, {1, 2, 3}), vector(2, {1, 3}), vector(4, {})};
  return close;
}

inline ResultSection result_section() {
  return {6, {{1, false, filled(81), filled(82), 0x3ff0000000000000}, {4, true, {}, {}, 0}}};
}

inline GenesisSection genesis_section() {
  GenesisSection genesis;
  for (const std::uint8_t node : {1, 2})
    genesis.founders.push_back(statement(node, registration(node, false), BlockReference{}));
  std::sort(genesis.founders.begin(), genesis.founders.end(),
            [](const Statement& a, const Statement& b) { return a.node < b.node; });
  genesis.anchors = {filled(90), filled(91)};
  return genesis;
}

inline Evidence evidence(std::uint8_t node = 1) {
  return evidence_of(test::key_of(node).public_key(), vote(60, node), vote(61, node));
}

inline BlockBody body_of_a_close() {
  BlockBody body;
  body.close = close_section();
  body.silent = {2, 5};
  body.statements = statements_of_each_kind();
  body.evidence = {evidence()};
  return body;
}

inline BlockPtr block(BlockBody body, std::uint64_t height = 9) {
  BlockHeader header;
  header.height = height;
  if (height > 0) header.previous = filled(40);
  header.time_ms = 1'790'000'000'000;
  const Hash256 of_round = height > 0 ? opening : Hash256{};
  header.body = body_root(body, of_round);
  header.registry = filled(42);
  return make_block(header, std::move(body), of_round, network);
}

}  // namespace neuroshard::chain::samples
