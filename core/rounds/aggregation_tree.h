// The aggregate of a row with many contributors. Up to `group_members` are aggregated at once. The beacon deals
// more of them into sub-groups of half as many to all as many; each sub-group's aggregate, as canonical int8, is
// a contribution to the level above, with the tokens of its contributors. So the cost grows with the number of
// contributors and not with its square, and what a member can do to the row ends with its sub-group.
//
// Pure functions of their arguments: the same bits on every voter. Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "core/rounds/step.h"

namespace neuroshard::rounds {

inline constexpr outer::CodecOptions sub_aggregate_codec{outer::Codec::Int8};

// Sub-groups of n contributors. While they are few, sub-groups are small: a rule over three sub-groups or fewer
// can't outvote a bad one. most ≥ 2. None has more than `most`. Fewer than n
// where n > most, so that levels come to an end.
std::size_t sub_group_count(std::size_t n, std::size_t most);

// Positions in `ids` by sub-group. The beacon is newer than the contributions, so nobody chooses its sub-group.
std::vector<std::vector<std::size_t>> deal_sub_groups(const Hash256& beacon, std::uint32_t row,
                                                      const std::vector<net::NodeId>& ids, std::size_t most);

// values: P. out: as outer::aggregate_encoded(). The report counts contributors; its norm is the lower median of
// the sub-groups'. trace: of up to group_members inputs. spool: for the aggregates of sub-groups. Errors: those of
// outer::aggregate_encoded() and of the spool.
Expected<outer::AggregateReport> aggregate_row(const OuterRules& rules, const RowDraw& draw,
                                               const std::vector<StepInput>& inputs, const RowLimits& limits,
                                               std::uint64_t values, const outer::WriteValues& out,
                                               Spool& spool, const outer::WriteSums& trace = nullptr);

}  // namespace neuroshard::rounds
