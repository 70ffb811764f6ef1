// A driver's data in a network: shards from the beacon, records and runs of batches, and the signed list that lets
// anybody rebuild them.
#include <QtTest>
#include <algorithm>

#include "core/crypto/hash.h"
#include "core/data/batch_audit.h"
#include "core/data/batch_list.h"
#include "core/data/loader.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/dataset_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::testing;

namespace {

BatchRecord example_record() {
  BatchRecord record;
  record.round = 12;
  record.shard_id = 7;
  for (std::uint8_t i = 0; i < 32; ++i) {
    record.shard_hash[i] = i;
    record.tokenizer_hash[i] = static_cast<std::uint8_t>(32 + i);
  }
  record.offset = 4096;
  record.batch_tokens = 64;
  record.driver = filled(5);
  record.draw = ShardDraw{9, 40};
  return record;
}

BatchList example_list() {
  BatchList list;
  list.network = filled(1);
  list.opening = filled(2);
  list.round = 12;
  list.work.tokenizer_hash = filled(3);
  list.work.sequence = 16;
  list.work.batch_tokens = 64;
  list.work.runs = {{11, {9, 40}, 7, filled(4), 4096, 3, 5, filled(6)},
                    {12, {9, 40}, 7, filled(4), 4416, 0, 20, filled(7)}};
  sign_batch_list(list, key_of(1));
  return list;
}

Manifest published(ShardId count, std::uint64_t tokens) {
  Manifest manifest;
  for (ShardId id = 0; id < count; ++id) manifest.shards.push_back(shard_of(id, tokens));
  return manifest;
}

LoaderOptions small_options() {
  LoaderOptions options;
  options.node_id = filled(5);
  options.own_batches = true;
  options.shard_count = 3;
  options.sequence = 16;
  options.batch_tokens = 64;
  options.steps_per_round = 1000;
  return options;
}

std::vector<ShardId> drawn(std::uint8_t beacon, std::uint32_t total) {
  return network_shard_order(filled(beacon), filled(5), total, 3);
}

// The shards that the loader takes in these rounds, one batch each, without repetitions.
std::vector<ShardId> taken(Loader& loader, std::uint64_t from, std::uint64_t rounds, std::uint8_t beacon) {
  std::vector<ShardId> shards;
  for (std::uint64_t round = from; round < from + rounds; ++round) {
    loader.begin_round(round, filled(static_cast<std::uint8_t>(beacon + round)));
    const ShardId id = loader.next(round).value().shard_id;
    if (shards.empty() || shards.back() != id) shards.push_back(id);
  }
  return shards;
}

}  // namespace

class TestBatchList : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // Expected values of this function: computed in Python from the definitions in docs/protocol/data.md (hashlib,
  // xoshiro256**, Lemire):
  //   tag = b"neuroshard/batch/3"
  //   record = tag + pack("<QQII", 12, 9, 40, 7) + bytes(range(32)) + bytes(range(32, 64)) + pack("<QI", 4096, 64)
  //            + b"\5" * 32
  //   digest = lambda before, tokens, targets: sha256(before + sha256(pack("<i", …tokens, …targets)))
  void golden_record_and_digest() {
    const BatchRecord record = example_record();
    QCOMPARE(to_hex(crypto::sha256(record.canonical())),
             std::string("ce8b298aa1e97dc3295a43106ce9e69c8639bf17423466d5bca7c9e38246f856"));
    Batch batch;
    batch.tokens = {1, 2, 3, 265};
    batch.targets = {2, 3, 265, 4};
    const Hash256 one = next_digest({}, batch);
    QCOMPARE(to_hex(one), std::string("a662be8544600c47d2c72b9ac594a1a72bd8ebb1ee6e355358270cbce0603589"));
    batch.tokens[0] = 5;
    QCOMPARE(to_hex(next_digest(one, batch)),
             std::string("42387bc742247d1afdebe01f21a47453f5fff9a911078ff62b52240f501d2f0d"));
  }

  // The list's bytes as the page lays them out; the signature is Ed25519, which is deterministic.
  void golden_list() {
    const Bytes bytes = encode_batch_list(example_list());
    QCOMPARE(bytes.size(), std::size_t{23 + 32 + 32 + 32 + 8 + 32 + 4 + 4 + 4 + 2 * 108 + 64});
    QCOMPARE(to_hex(crypto::sha256(ByteSpan(bytes).first(bytes.size() - 64))),
             std::string("81173e2f09c58313c2bd9670a3333f65360885b7f080bb61dbda3f6b5f3122a5"));
  }

  void lists_are_read_back_and_signed_for_one_network() {
    const BatchList list = example_list();
    const Bytes bytes = encode_batch_list(list);
    const auto read = decode_batch_list(bytes);
    QVERIFY(read.ok());
    QVERIFY(*read == list);
    QVERIFY(batch_list_holds(*read));
    QCOMPARE(read->work.batches(), std::uint64_t{25});
    for (const auto& change : std::vector<std::function<void(BatchList&)>>{
             [](BatchList& l) { l.network = filled(9); }, [](BatchList& l) { l.opening = filled(9); },
             [](BatchList& l) { ++l.round; }, [](BatchList& l) { ++l.work.runs[1].count; },
             [](BatchList& l) { l.node = key_of(2).public_key(); }}) {
      BatchList other = list;
      change(other);
      QVERIFY(!batch_list_holds(other));
    }
  }

  void damaged_lists_are_refused() {
    const Bytes bytes = encode_batch_list(example_list());
    for (std::size_t size = 0; size < bytes.size(); ++size)
      QVERIFY(!decode_batch_list(ByteSpan(bytes).first(size)).ok());
    Bytes longer = bytes;
    longer.push_back(0);
    QVERIFY(!decode_batch_list(longer).ok());
    BatchList many = example_list();
    many.work.runs.assign(max_batch_runs, many.work.runs.front());
    QVERIFY(encode_batch_list(many).size() <= max_batch_list_bytes);
    QVERIFY(decode_batch_list(encode_batch_list(many)).ok());
    many.work.runs.push_back(many.work.runs.front());
    QVERIFY(!decode_batch_list(encode_batch_list(many)).ok());
    BatchList empty = example_list();
    empty.work.runs[0].count = 0;
    QVERIFY(!decode_batch_list(encode_batch_list(empty)).ok());
  }

  // An auditor would rebuild batches for ever.
  void lists_of_too_many_batches_are_refused() {
    BatchList list = example_list();
    BatchRun& last = list.work.runs.back();
    last.count = static_cast<std::uint32_t>(max_listed_batches) - list.work.runs.front().count;
    QVERIFY(decode_batch_list(encode_batch_list(list)).ok());
    ++last.count;
    QVERIFY(!decode_batch_list(encode_batch_list(list)).ok());
    last.count = ~std::uint32_t{0};
    list.work.runs.assign(max_batch_runs, BatchRun(last));
    const Bytes bytes = encode_batch_list(list);
    QCOMPARE(decode_batch_list(bytes).error().code, ErrorCode::Corrupt);
    const ListClaim claim{crypto::sha256(bytes), list.network, list.node, list.opening, list.round, 16, 64};
    QCOMPARE(open_batch_list(bytes, claim).error().code, ErrorCode::Corrupt);
    // A node that trains for long without a round can still read its own position.
    QVERIFY(decode_runs(encode_runs(list.work.runs)).ok());
  }

  void the_beacon_draws_the_shards() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(env, published(20, 60));  // used up after one batch
    const auto loader = Loader::create(dataset, small_options()).value();
    const std::vector<ShardId> first = drawn(9, 20);
    loader->begin_round(1, filled(9));
    QCOMPARE(loader->next(0).value().shard_id, first[0]);
    QVERIFY(loader->last_rotation() == RotationReason::Drawn);
    QVERIFY((loader->record()->draw == ShardDraw{1, 20}));
    QCOMPARE(loader->record()->round, std::uint64_t{1});
    // It goes around the drawn ring, whatever the beacons of the rounds are, and draws again at its end.
    loader->begin_round(2, filled(10));
    QCOMPARE(loader->next(1).value().shard_id, first[1]);
    QVERIFY((loader->record()->draw == ShardDraw{1, 20}));
    loader->begin_round(3, filled(11));
    QCOMPARE(loader->next(2).value().shard_id, first[2]);
    loader->begin_round(4, filled(12));
    QCOMPARE(loader->next(3).value().shard_id, drawn(12, 20)[0]);
    QVERIFY((loader->record()->draw == ShardDraw{4, 20}));
  }

  void a_round_without_a_beacon_keeps_the_draw() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(env, published(20, 60));
    const auto loader = Loader::create(dataset, small_options()).value();
    loader->begin_round(6, {});
    QVERIFY(!loader->position().in_network);
    (void)loader->next(0).value();
    QVERIFY(!loader->record()->draw);  // as without a network
    loader->begin_round(7, filled(9));
    QCOMPARE(loader->next(1).value().shard_id, drawn(9, 20)[0]);
    loader->begin_round(8, {});
    QCOMPARE(loader->next(2).value().shard_id, drawn(9, 20)[1]);
    QCOMPARE(loader->record()->round, std::uint64_t{8});
    loader->begin_round(3, filled(1));  // of a fragment that starts late
    QCOMPARE(loader->next(3).value().shard_id, drawn(9, 20)[1]);
  }

  void own_shards_come_after_the_drawn_ones_and_are_not_drawn() {
    neuroshard::testing::MemoryFileEnv env;
    Manifest manifest = published(20, 60);
    manifest.shards.push_back(shard_of(first_own_shard, 60));
    manifest.shards.push_back(shard_of(first_own_shard + 4, 60));
    NumberDataset dataset(env, manifest);
    const auto loader = Loader::create(dataset, small_options()).value();
    std::vector<ShardId> expected = drawn(20, 20);
    expected.push_back(first_own_shard);
    expected.push_back(first_own_shard + 4);
    QVERIFY(taken(*loader, 1, 5, 19) == expected);
    // Its hashes would tell others which text it is.
    const auto work = loader->last_batches(2);
    QVERIFY(work);
    for (const BatchRun& run : work->runs) {
      QVERIFY(run.shard_id >= first_own_shard);
      QVERIFY(run.shard_hash == Hash256{} && run.digest == Hash256{});
    }
  }

  void without_published_shards_own_ones_are_in_solo_order() {
    neuroshard::testing::MemoryFileEnv env;
    Manifest manifest = published(6, 60);
    for (ShardEntry& shard : manifest.shards) shard.id |= first_own_shard;
    NumberDataset dataset(env, manifest);
    const auto loader = Loader::create(dataset, small_options()).value();
    const ShardId first = solo_first_shard(filled(5), 6);
    const auto own = [](ShardId id) { return first_own_shard | (id % 6); };
    QVERIFY((taken(*loader, 1, 3, 19) == std::vector<ShardId>{own(first), own(first + 1), own(first + 2)}));
    QVERIFY(loader->record()->shard_id >= first_own_shard);
    QCOMPARE(loader->record()->draw->total, 0u);
  }

  // From record, number and shard alone; and a restored loader repeats the run with all its runs.
  void runs_rebuild_every_batch() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(env, published(20, 400));
    const auto loader = Loader::create(dataset, small_options()).value();
    std::vector<std::string> positions;
    std::uint64_t step = 0;
    const auto run = [&](Loader& by, std::uint64_t round, std::uint64_t steps) {
      by.begin_round(round, filled(static_cast<std::uint8_t>(round)));
      for (std::uint64_t i = 0; i < steps; ++i) {
        QVERIFY(by.next(++step).ok());
        positions.push_back(by.position().to_json());
      }
    };
    run(*loader, 1, 5);
    QVERIFY(loader->last_batches(5));
    run(*loader, 1, 4);
    run(*loader, 2, 6);
    run(*loader, 3, 7);
    const auto work = loader->last_batches(17);
    QVERIFY(work);
    QCOMPARE(work->runs.size(), std::size_t{3});
    QCOMPARE(work->runs[0].first, std::uint64_t{5});
    QCOMPARE(work->batches(), std::uint64_t{17});
    for (const BatchRun& one : work->runs) {
      const auto shard = dataset.load(one.shard_id, {}).value();
      Hash256 digest{};
      for (std::uint64_t n = one.first; n < one.first + one.count; ++n)
        digest = next_digest(digest, make_batch(work->record(one, filled(5)), n, shard->tokens, 16).value());
      QVERIFY(digest == one.digest);
    }
    QVERIFY(!loader->last_batches(16));  // within a run
    QVERIFY(!loader->last_batches(1000));
    for (const std::size_t cut : {0u, 6u, 8u, 13u}) {
      const auto again = Loader::create(dataset, small_options()).value();
      const auto position = LoaderPosition::from_json(positions[cut]).value();
      QCOMPARE(position.to_json(), positions[cut]);
      QVERIFY(again->restore(position).ok());
      // A node hears its round again before it trains on: that ends the run, not the record.
      again->begin_round(position.in_network->round,
                         filled(static_cast<std::uint8_t>(position.in_network->round)));
      const std::size_t next_round = cut < 9 ? 9 : 15;
      for (std::size_t i = cut + 1; i < next_round; ++i) QVERIFY(again->next(i + 1).ok());
      const auto expected = LoaderPosition::from_json(positions[next_round - 1]).value();
      QCOMPARE(again->position().in_network->batches, expected.in_network->batches);
      QCOMPARE(again->position().shard_id, expected.shard_id);
      QVERIFY(again->last_batches(next_round));
    }
  }

  // As another node does it, which has the chain and the published shards.
  void an_audit_rebuilds_them_and_finds_lies() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(env, published(20, 400));
    LoaderOptions options = small_options();
    options.node_id = crypto::node_id(key_of(1).public_key());
    options.shard_count = shards_per_draw;
    const auto loader = Loader::create(dataset, options).value();
    for (std::uint64_t step = 0; step < 12; ++step) {
      loader->begin_round(1 + step / 5, filled(static_cast<std::uint8_t>(1 + step / 5)));
      QVERIFY(loader->next(step).ok());
    }
    BatchList list = example_list();
    list.work = *loader->last_batches(12);
    sign_batch_list(list, key_of(1));
    const Bytes bytes = encode_batch_list(list);
    ListClaim claim{crypto::sha256(bytes), list.network, list.node, list.opening, list.round, 16, 64};
    QVERIFY(open_batch_list(bytes, claim).ok());
    AuditSources sources{[](std::uint64_t round) -> std::optional<Hash256> {
                           if (round == 1) return filled(1);
                           return std::nullopt;
                         },
                         [&](ShardId id) { return dataset.load(id, {}); }, dataset.manifest()};
    const auto audit = [&](const std::function<void(BatchRun&)>& change) {
      BatchRun run = list.work.runs[0];
      change(run);
      return audit_run(list, run, sources, {}).value().finding;
    };
    for (const BatchRun& run : list.work.runs)
      QVERIFY(audit_run(list, run, sources, {}).value().finding == BatchFinding::Same);
    QVERIFY(audit([](BatchRun& run) { run.digest[0] ^= 1; }) == BatchFinding::Differs);
    QVERIFY(audit([](BatchRun& run) { ++run.offset; }) == BatchFinding::Differs);
    QVERIFY(audit([](BatchRun& run) { ++run.count; }) == BatchFinding::Differs);
    QVERIFY(audit([](BatchRun& run) { run.shard_hash[5] ^= 1; }) == BatchFinding::NotDrawn);
    const auto order = network_shard_order(filled(1), options.node_id, 20, 20);
    QVERIFY(audit([&](BatchRun& run) {
              run.shard_id = order.back();
              run.shard_hash = dataset.manifest().find(order.back())->sha256;
            }) == BatchFinding::NotDrawn);
    QVERIFY(audit([](BatchRun& run) { run.draw.round = 2; }) == BatchFinding::Unknown);
    QVERIFY(audit([](BatchRun& run) { run.draw.total = 21; }) == BatchFinding::Unknown);
    QVERIFY(audit([](BatchRun& run) { run.shard_id |= first_own_shard; }) == BatchFinding::OwnText);
    Bytes other = bytes;
    other[other.size() - 70] ^= 1;
    QVERIFY(open_batch_list(other, claim).error().code == ErrorCode::Denied);
    claim.hash = crypto::sha256(other);
    QVERIFY(open_batch_list(other, claim).error().code == ErrorCode::Denied);
    claim.hash = crypto::sha256(bytes);
    ++claim.round;
    QVERIFY(open_batch_list(bytes, claim).error().code == ErrorCode::Denied);
  }

  void a_grown_dataset_leaves_the_draw_as_it_is() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset before(env, published(20, 60)), after(env, published(30, 60));
    const auto loader = Loader::create(before, small_options()).value();
    loader->begin_round(1, filled(9));
    (void)loader->next(0).value();
    const auto more = Loader::create(after, small_options()).value();
    QVERIFY(more->restore(loader->position()).ok());
    more->begin_round(2, filled(10));
    QCOMPARE(more->next(1).value().shard_id, drawn(9, 20)[1]);
    QCOMPARE(more->record()->draw->total, 20u);
    more->begin_round(3, filled(11));
    QCOMPARE(more->next(2).value().shard_id, drawn(9, 20)[2]);
    more->begin_round(4, filled(12));
    QCOMPARE(more->next(3).value().shard_id, drawn(12, 30)[0]);
  }

  void positions_of_earlier_versions_are_read() {
    const std::string old =
        R"({"recent_losses":[],"round":2,"round_offset":0,"shard_id":1,"shard_index":0,"started":true,)"
        R"("steps_on_shard":1,"tokens_on_shard":64})";
    const auto position = LoaderPosition::from_json(old);
    QVERIFY(position.ok());
    QVERIFY(!position->in_network);
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(env, published(20, 400));
    const auto loader = Loader::create(dataset, small_options()).value();
    QVERIFY(loader->restore(*position).ok());
    loader->begin_round(5, filled(9));
    QCOMPARE(loader->next(3000).value().shard_id, drawn(9, 20)[0]);
  }

  void a_long_run_keeps_the_newest_runs() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(env, published(20, 4000));
    const auto loader = Loader::create(dataset, small_options()).value();
    for (std::uint64_t round = 1; round <= max_batch_runs + 10; ++round) {
      loader->begin_round(round, filled(9));
      QVERIFY(loader->next(round).ok());
    }
    QVERIFY(loader->last_batches(max_batch_runs));
    QVERIFY(!loader->last_batches(max_batch_runs + 1));
    const auto position = LoaderPosition::from_json(loader->position().to_json());
    QVERIFY(position.ok());
    QCOMPARE(position->in_network->runs.size(), max_batch_runs);
  }
};

NS_TEST(TestBatchList)
#include "test_batch_list.moc"
