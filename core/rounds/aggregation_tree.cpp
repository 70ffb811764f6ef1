#include "core/rounds/aggregation_tree.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/chain/beacon.h"
#include "core/crypto/hash.h"

namespace neuroshard::rounds {
namespace {

std::vector<outer::EncodedContribution> encoded(const std::vector<StepInput>& inputs) {
  std::vector<outer::EncodedContribution> contributions;
  for (const StepInput& input : inputs) contributions.push_back({input.id, input.tokens, input.payload});
  return contributions;
}

constexpr std::uint64_t no_cap = std::numeric_limits<std::uint64_t>::max();

// A sub-group's aggregate, as a contribution to the level above.
struct SubAggregate {
  Hash256 id{};
  std::uint64_t tokens = 0;
  ByteSourcePtr payload;
};

// Of two the mean, of three and four the clipped trimmed mean with one cut off at each end, from five on what as
// many contributions take. A rule that the profile sets stays.
outer::AggregationOptions rule_above(const outer::AggregationOptions& rule, std::size_t count) {
  outer::AggregationOptions above = rule;
  above.sparse = false;
  above.f.reset();
  if (!rule.choice && (count == 3 || count == 4)) {
    above.choice = outer::RuleChoice{outer::Rule::TrimmedMean, true, false};
    above.f = 1;
  }
  return above;
}

std::uint64_t weight_of(const outer::AggregateReport& report) {
  std::uint64_t sum = 0;
  for (const outer::Judged& judged : report.judged)
    if (judged.refusal == outer::Refusal::None) sum += std::min(judged.weight, no_cap - sum);
  return sum;
}

Expected<Hash256> hash_of_bytes(const ByteSource& bytes) {
  constexpr std::size_t at_once = 256u << 10;
  crypto::Sha256 hash;
  NS_RETURN_IF_ERROR(read_in_parts(bytes, at_once, [&](std::uint64_t, ByteSpan part) -> Expected<void> {
    hash.update(part);
    return {};
  }));
  return hash.finish();
}

// The row that is aggregated: its values, and room for the aggregates of sub-groups.
struct RowRoom {
  std::uint64_t values = 0;
  Spool& spool;
};

// Aggregates by `aggregate(out)` and encodes the result for the level above. No payload: nothing counted.
template <class Aggregate>
Expected<outer::AggregateReport> sub_aggregate(const RowRoom& room, SubAggregate& made, Aggregate aggregate) {
  const std::uint64_t bytes = room.values * sizeof(float);
  NS_ASSIGN_OR_RETURN(const std::unique_ptr<SpoolItem> item, room.spool.create(bytes));
  NS_ASSIGN_OR_RETURN(outer::AggregateReport report, aggregate(outer::write_to(*item, 0)));
  if (report.counted == 0) return report;
  NS_ASSIGN_OR_RETURN(const ByteSourcePtr mean, item->finish(bytes));
  NS_ASSIGN_OR_RETURN(const std::unique_ptr<SpoolItem> payload,
                      room.spool.create(outer::max_payload_bytes(sub_aggregate_codec, room.values)));
  NS_ASSIGN_OR_RETURN(const std::uint64_t size,
                      outer::encode(sub_aggregate_codec, outer::values_of(mean, 0, room.values), *payload));
  NS_ASSIGN_OR_RETURN(made.payload, payload->finish(size));
  NS_ASSIGN_OR_RETURN(made.id, hash_of_bytes(*made.payload));
  made.tokens = weight_of(report);
  return report;
}

// Equal aggregates would count as one contribution that came twice.
void number(std::vector<SubAggregate>& level) {
  for (std::size_t i = 0; i < level.size(); ++i) {
    Bytes bytes(level[i].id.begin(), level[i].id.end());
    append_le(bytes, static_cast<std::uint64_t>(i));
    level[i].id = crypto::sha256(bytes);
  }
}

Expected<outer::AggregateReport> combine(const OuterRules& rules, Span<const SubAggregate> level,
                                         std::uint64_t values, const outer::WriteValues& out) {
  std::vector<outer::EncodedContribution> all;
  for (const SubAggregate& one : level) all.push_back({one.id, one.tokens, one.payload});
  return outer::aggregate_encoded(rule_above(rules.aggregation, all.size()), sub_aggregate_codec, all, no_cap,
                                  values, out);
}

double lower_median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Neighbours stay together: the beacon has mixed them below.
Expected<std::vector<SubAggregate>> level_above(const OuterRules& rules, std::vector<SubAggregate> level,
                                                const RowRoom& room) {
  number(level);
  const std::size_t n = level.size(), groups = sub_group_count(n, rules.group_members);
  std::vector<SubAggregate> above;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t first = g * n / groups, last = (g + 1) * n / groups;
    const Span<const SubAggregate> part(level.data() + first, last - first);
    SubAggregate made;
    NS_RETURN_IF_ERROR(sub_aggregate(
        room, made, [&](const outer::WriteValues& out) { return combine(rules, part, room.values, out); }));
    if (made.payload) above.push_back(std::move(made));
  }
  return above;
}

}  // namespace

std::size_t sub_group_count(std::size_t n, std::size_t most) {
  if (n <= most) return 1;
  const std::size_t least = (n + most - 1) / most;
  if (most == 2) return least;  // half a pair would make no level shorter
  if (n < 4 * most) return std::max(least, n / ((most + 1) / 2));
  if (n < 64 * most) return std::max(least, n / ((3 * most + 3) / 4));
  return least;
}

std::vector<std::vector<std::size_t>> deal_sub_groups(const Hash256& beacon, std::uint32_t row,
                                                      const std::vector<net::NodeId>& ids, std::size_t most) {
  const std::string purpose = "sub-group " + std::to_string(row);
  std::vector<std::pair<Hash256, std::size_t>> order;
  for (std::size_t i = 0; i < ids.size(); ++i)
    order.emplace_back(chain::lot(purpose.c_str(), beacon, ids[i]), i);
  std::sort(order.begin(), order.end());
  const std::size_t n = ids.size(), groups = sub_group_count(n, most);
  std::vector<std::vector<std::size_t>> dealt(groups);
  for (std::size_t g = 0; g < groups; ++g)
    for (std::size_t i = g * n / groups; i < (g + 1) * n / groups; ++i) dealt[g].push_back(order[i].second);
  return dealt;
}

Expected<outer::AggregateReport> aggregate_row(const OuterRules& rules, const RowDraw& draw,
                                               const std::vector<StepInput>& inputs, const RowLimits& limits,
                                               std::uint64_t values, const outer::WriteValues& out,
                                               Spool& spool, const outer::WriteSums& trace) {
  NS_CHECK(rules.group_members >= 2);
  outer::AggregationOptions options = rules.aggregation;
  options.most_norm = limits.most_norm;
  if (inputs.size() <= rules.group_members)
    return outer::aggregate_encoded(options, rules.codec, encoded(inputs), limits.most_tokens, values, out,
                                    trace);
  const RowRoom room{values, spool};
  std::vector<net::NodeId> ids;
  for (const StepInput& input : inputs) ids.push_back(input.id);
  outer::AggregateReport whole;
  std::vector<double> norms;
  std::vector<SubAggregate> level;
  for (const auto& group : deal_sub_groups(draw.beacon, draw.row, ids, rules.group_members)) {
    std::vector<StepInput> part;
    for (const std::size_t position : group) part.push_back(inputs[position]);
    SubAggregate made;
    NS_ASSIGN_OR_RETURN(outer::AggregateReport report,
                        sub_aggregate(room, made, [&](const outer::WriteValues& to) {
                          return outer::aggregate_encoded(options, rules.codec, encoded(part),
                                                          limits.most_tokens, values, to);
                        }));
    whole.counted += report.counted;
    whole.judged.insert(whole.judged.end(), report.judged.begin(), report.judged.end());
    if (!made.payload) continue;
    norms.push_back(report.median_norm);
    level.push_back(std::move(made));
  }
  while (level.size() > rules.group_members) {
    NS_ASSIGN_OR_RETURN(level, level_above(rules, std::move(level), room));
  }
  number(level);
  if (level.empty()) return whole;
  NS_ASSIGN_OR_RETURN(const outer::AggregateReport top, combine(rules, level, values, out));
  whole.f = top.f;
  whole.ran = top.ran;
  whole.clipped_to = top.clipped_to;
  whole.trimmed = top.trimmed;
  whole.median_norm = lower_median(std::move(norms));
  if (top.counted == 0) whole.counted = 0;
  return whole;
}

}  // namespace neuroshard::rounds
