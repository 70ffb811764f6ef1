// Which shards a driver trains on, and batches that any peer can rebuild.
#include <QtTest>
#include <algorithm>

#include "core/crypto/hash.h"
#include "core/data/batch_plan.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/dataset_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::testing;

namespace {

BatchRecord example_record() {
  BatchRecord record;
  record.round = 3;
  record.shard_id = 7;
  for (std::uint8_t i = 0; i < 32; ++i) {
    record.shard_hash[i] = i;
    record.tokenizer_hash[i] = static_cast<std::uint8_t>(32 + i);
  }
  record.offset = 4096;
  record.batch_tokens = 64;
  return record;
}

}  // namespace

class TestBatchPlan : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // Expected values: computed in Python from the definitions in the headers (hashlib, xoshiro256**, Lemire).
  void golden_record_and_starts() {
    const BatchRecord record = example_record();
    QCOMPARE(to_hex(crypto::sha256(record.canonical())),
             std::string("d066ec098331222efc43222d91326ee036c6072f6a9bda31c8ab05ec9f334c3e"));
    QVERIFY((batch_starts(record, 0, 1000, 16).value() == std::vector<std::uint64_t>{38, 599, 340, 828}));
    QVERIFY((batch_starts(record, 41, 1000, 16).value() == std::vector<std::uint64_t>{458, 482, 342, 759}));
  }

  void golden_shard_orders() {
    QVERIFY(
        (network_shard_order(filled(9), filled(5), 10, 6) == std::vector<std::uint32_t>{0, 4, 1, 5, 8, 6}));
    QCOMPARE(solo_first_shard(filled(5), 10), 5u);
    auto all = network_shard_order(filled(9), filled(5), 10, 100);
    std::sort(all.begin(), all.end());
    QVERIFY((all == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }

  void shards_are_spread_evenly_over_nodes() {
    std::vector<int> first(10);
    for (int node = 0; node < 2000; ++node) {
      const Hash256 id = crypto::sha256(as_bytes(std::string_view(std::to_string(node))));
      ++first[network_shard_order(filled(1), id, 10, 1).front()];
    }
    for (const int count : first) QVERIFY2(count > 140 && count < 260, std::to_string(count).c_str());
  }

  void targets_are_tokens_shifted_by_one() {
    std::vector<std::int32_t> shard(500);
    for (std::size_t i = 0; i < shard.size(); ++i) shard[i] = static_cast<std::int32_t>(i);
    const Batch batch = make_batch(example_record(), 9, shard, 16).value();
    QCOMPARE(batch.sequences, 4u);
    QCOMPARE(batch.tokens.size(), std::size_t{64});
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) QCOMPARE(batch.targets[i], batch.tokens[i] + 1);
    // The very last token is reachable as a target, and a shard of T + 1 tokens has exactly one place.
    QVERIFY((batch_starts(example_record(), 1, 17, 16).value() == std::vector<std::uint64_t>(4, 0)));
    QVERIFY(!batch_starts(example_record(), 1, 16, 16).ok());
    QCOMPARE(sequences_per_batch(100, 16), 6u);
    QCOMPARE(sequences_per_batch(8, 16), 1u);
  }

  void any_change_of_the_record_changes_the_batch() {
    const BatchRecord base = example_record();
    const auto starts = [](const BatchRecord& r, std::uint64_t s) {
      return batch_starts(r, s, 1'000'000, 16).value();
    };
    const auto first = starts(base, 5);
    QVERIFY(first == starts(base, 5));
    QVERIFY(first != starts(base, 6));
    std::vector<BatchRecord> others(7, base);
    others[5].driver = filled(1);  // two nodes of a network with the same shard
    others[6].driver = filled(2);
    QVERIFY(starts(others[5], 5) != starts(others[6], 5));
    others[0].round ^= 1;
    others[1].shard_id ^= 1;
    others[2].shard_hash[31] ^= 1;
    others[3].tokenizer_hash[0] ^= 1;
    others[4].offset += 1;
    for (const BatchRecord& other : others) QVERIFY(first != starts(other, 5));
  }
};

NS_TEST(TestBatchPlan)
#include "test_batch_plan.moc"
