// A row with more contributors than one aggregation takes: dealt into sub-groups, aggregated level by level, the
// same bits everywhere, and no minority decides.
#include <QtTest>

#include <cmath>
#include <set>

#include "core/crypto/hash.h"
#include "core/rounds/aggregation_tree.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::rounds;

namespace {

constexpr std::size_t values = 96;

net::NodeId id_of(std::size_t number) {
  Bytes bytes;
  append_le(bytes, static_cast<std::uint64_t>(number));
  return crypto::sha256(bytes);
}

outer::WriteValues into(std::vector<float>& out) {
  return [&out](std::uint64_t first, Span<const float> values) -> Expected<void> {
    std::copy(values.begin(), values.end(), out.begin() + static_cast<std::ptrdiff_t>(first));
    return {};
  };
}

std::vector<outer::EncodedContribution> encoded(const std::vector<StepInput>& inputs) {
  std::vector<outer::EncodedContribution> contributions;
  for (const StepInput& input : inputs) contributions.push_back({input.id, input.tokens, input.payload});
  return contributions;
}

// Into memory.
Expected<outer::AggregateReport> tree_of(const OuterRules& rules, const RowDraw& draw,
                                         const std::vector<StepInput>& inputs, std::uint64_t most_tokens,
                                         std::vector<float>& out) {
  MemorySpool spool;
  return aggregate_row(rules, draw, inputs, {most_tokens}, out.size(), into(out), spool);
}
Expected<outer::AggregateReport> at_once(const OuterRules& rules, const std::vector<StepInput>& inputs,
                                         std::uint64_t most_tokens, std::vector<float>& out) {
  return outer::aggregate_encoded(rules.aggregation, rules.codec, encoded(inputs), most_tokens, out.size(),
                                  into(out));
}

// All but the liars send the same direction with a little noise of their own.
std::vector<StepInput> inputs_of(const OuterRules& rules, std::size_t count, std::size_t liars) {
  std::vector<StepInput> inputs;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<float> delta(values);
    for (std::size_t k = 0; k < values; ++k)
      delta[k] = i < liars ? -50.0f : 1.0f + 0.05f * std::sin(static_cast<float>(7 * i + 3 * k));
    inputs.push_back({id_of(i), 1000, in_memory(*outer::encode(rules.codec, delta))});
  }
  return inputs;
}

class TestAggregationTree : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void everybody_is_dealt_once();
  void groups_of_any_size_end_in_one();
  void few_are_aggregated_at_once();
  void more_than_one_aggregation_takes();
  void liars_end_with_their_sub_groups();
  void the_order_of_arrival_does_not_matter();
};

void TestAggregationTree::everybody_is_dealt_once() {
  for (const std::size_t n : {17u, 31u, 63u, 64u, 100u, 1023u, 1024u, 10'000u}) {
    std::vector<net::NodeId> ids;
    for (std::size_t i = 0; i < n; ++i) ids.push_back(id_of(i));
    const auto dealt = deal_sub_groups(id_of(1), 3, ids, 16);
    std::set<std::size_t> seen;
    for (const auto& group : dealt) {
      QVERIFY(group.size() >= 8 && group.size() <= 16);
      seen.insert(group.begin(), group.end());
    }
    QCOMPARE(seen.size(), n);
    // Another beacon or row deals anew.
    QVERIFY(deal_sub_groups(id_of(2), 3, ids, 16) != dealt);
    QVERIFY(deal_sub_groups(id_of(1), 4, ids, 16) != dealt);
  }
}

void TestAggregationTree::groups_of_any_size_end_in_one() {
  for (std::size_t most = 2; most <= 16; ++most)
    for (std::size_t n = most + 1; n <= 1200; ++n) {
      const std::size_t groups = sub_group_count(n, most), largest = (n + groups - 1) / groups;
      QVERIFY2(groups < n && largest <= most,
               qPrintable(QString("%1 in %2 of at most %3").arg(n).arg(groups).arg(most)));
    }
  OuterRules rules;
  rules.group_members = 2;
  for (const std::size_t count : {3u, 4u, 9u}) {
    std::vector<float> out(values);
    const auto report = tree_of(rules, {id_of(1), 0}, inputs_of(rules, count, 0), 1000, out);
    QVERIFY(report.ok());
    QCOMPARE(report->counted, count);
    for (const float value : out) QVERIFY(std::fabs(value - 1.0f) < 0.1f);
  }
}

void TestAggregationTree::few_are_aggregated_at_once() {
  const OuterRules rules;
  const auto inputs = inputs_of(rules, 16, 0);
  std::vector<float> tree(values), once(values);
  QVERIFY(tree_of(rules, {id_of(1), 0}, inputs, 1000, tree).ok());
  QVERIFY(at_once(rules, inputs, 1000, once).ok());
  QVERIFY(tree == once);
}

void TestAggregationTree::more_than_one_aggregation_takes() {
  const OuterRules rules;
  const auto inputs = inputs_of(rules, outer::max_contributions + 1, 0);
  std::vector<float> out(values);
  // The control.
  QVERIFY(!at_once(rules, inputs, 1000, out).ok());
  const auto report = tree_of(rules, {id_of(1), 0}, inputs, 1000, out);
  QVERIFY(report.ok());
  QCOMPARE(report->counted, outer::max_contributions + 1);
  QVERIFY(report->median_norm > 0);
  for (const float value : out) QVERIFY(std::fabs(value - 1.0f) < 0.06f);
}

// A fifth of all. In the control nothing but the mean is taken.
void TestAggregationTree::liars_end_with_their_sub_groups() {
  OuterRules rules;
  const auto inputs = inputs_of(rules, 300, 60);
  for (std::size_t beacon = 1; beacon <= 5; ++beacon) {
    std::vector<float> out(values);
    QVERIFY(tree_of(rules, {id_of(beacon), 0}, inputs, 1000, out).ok());
    for (const float value : out) QVERIFY2(value > 0.8f, qPrintable(QString::number(value)));
  }
  rules.aggregation.choice = outer::RuleChoice{outer::Rule::WeightedMean, false, false};
  std::vector<float> mean(values);
  QVERIFY(tree_of(rules, {id_of(1), 0}, inputs, 1000, mean).ok());
  QVERIFY(mean[0] < -5.0f);
}

void TestAggregationTree::the_order_of_arrival_does_not_matter() {
  const OuterRules rules;
  auto inputs = inputs_of(rules, 200, 0);
  std::vector<float> first(values), second(values), other(values);
  QVERIFY(tree_of(rules, {id_of(1), 0}, inputs, 1000, first).ok());
  QVERIFY(tree_of(rules, {id_of(2), 0}, inputs, 1000, other).ok());
  std::reverse(inputs.begin(), inputs.end());
  QVERIFY(tree_of(rules, {id_of(1), 0}, inputs, 1000, second).ok());
  QVERIFY(first == second);
  QVERIFY(first != other);
}

}  // namespace

NS_TEST(TestAggregationTree)
#include "test_aggregation_tree.moc"
