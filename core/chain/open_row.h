// A row's round that can still be judged: the facts by which anybody can prove a holder's result wrong, and to which
// anchor the row returns then (docs/protocol/chain.md). All of it follows from the blocks, so a proof needs no
// statement of the accused but its attestation.
//
// A record is made when the round closes and goes with the result of the second round after it: then the row is settled.
// Pure. Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/bytes.h"
#include "core/chain/row_result.h"
#include "core/net/node_id.h"

namespace neuroshard::chain {

class Committee;
class Registry;
struct Vector;
struct ClosedRound;

// Rounds whose result can be taken back, the newest included.
inline constexpr std::uint64_t rounds_to_settle = 2;
// So many check each result. As many again check it when some of the first say that it is withheld.
inline constexpr std::size_t checkers_per_row = 3;
inline constexpr std::size_t most_checkers = 2 * checkers_per_row;
// So many of the first checkers must say so in the next round's close to call the others, and so many of all in that of the
// second round to take the result back.
inline constexpr std::size_t withheld_to_call = 2;
inline constexpr std::size_t withheld_to_take_back = 4;
// A wallet's second wrong result within so many rounds expels it; so does one that another wallet attested, too. One alone
// may be a bit that flipped in its memory.
inline constexpr std::uint64_t strike_rounds = 64;

struct OpenRow {
  std::uint32_t row = 0;
  std::uint64_t round = 0;
  Hash256 before{};                  // anchor at the beginning of the round
  std::uint64_t before_round = 0;    // in which that anchor was made
  Hash256 contributors{};            // contributors_hash(); zeros: nothing of the round can count
  std::uint64_t most_tokens = 0;     // of one contributor
  std::uint64_t most_norm_bits = 0;  // IEEE 754, of one contributor; 0: no limit
  Hash256 result{};             // result_hash() of the certified one; zeros: none yet, carried, or taken back
  std::uint64_t norm_bits = 0;  // of that result
  std::vector<std::uint32_t>
      checkers;  // members drawn to check the row, by lot: those that do at once come first
  auto place() const { return std::tie(row, round); }
  friend bool operator==(const OpenRow&, const OpenRow&) = default;
};

// A wallet attested a result that was proven wrong.
struct StrikeRecord {
  std::uint32_t wallet = 0;
  std::uint64_t round = 0;
  Hash256 result{};  // result_hash()
  auto place() const { return std::tie(wallet, round, result); }
  friend bool operator==(const StrikeRecord&, const StrikeRecord&) = default;
};

// A contributor as the close names it.
struct RowContributor {
  net::NodeId id{};
  Hash256 work{};  // root of its rows, from its contribution
};
// In the order of their numbers.
Hash256 contributors_hash(const std::vector<RowContributor>& contributors);
// The leaf of a result in the tree that an attestation signs.
Hash256 result_hash(const RowResult& result);

// Members of the committee whose wallet holds the row with none of its nodes, one of each wallet, by lot; most_checkers at
// most.
std::vector<std::uint32_t> draw_checkers(const Registry& registry, const Committee& committee,
                                         const Hash256& beacon, std::uint32_t row);

// Whether all that the vector says is withheld are results that its voter was drawn to check.
bool may_withhold(const Registry& registry, const Vector& vector);
// How many of the row's checkers say in these vectors that its result is withheld; only of the first `of` checkers.
std::size_t count_withheld(const OpenRow& open, const std::vector<Vector>& vectors,
                           std::size_t of = most_checkers);

}  // namespace neuroshard::chain
