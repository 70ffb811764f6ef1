// The loader's batches: its rotation, its position, and shards that are not here yet.
#include <QtTest>
#include <atomic>
#include <cmath>
#include <thread>

#include "core/base/executor.h"
#include "core/data/loader.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/dataset_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::testing;

namespace {

LoaderOptions small_options() {
  LoaderOptions options;
  options.node_id = filled(5);
  options.sequence = 16;
  options.batch_tokens = 64;
  return options;
}

// A source that does not answer for one shard until the test says so.
class SlowDataset final : public NumberDataset {
 public:
  using NumberDataset::NumberDataset;
  Expected<void> prefetch(ShardId id, const CancelToken& cancel) override {
    ++asked;
    while (held == id && !cancel.cancelled()) std::this_thread::yield();
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    if (away) return make_error(ErrorCode::Timeout, "the publisher does not answer");
    return {};
  }
  static constexpr std::int64_t nothing = -1;
  std::atomic<std::int64_t> held{nothing};
  std::atomic<bool> away{false};
  std::atomic<int> asked{0};
};

LoaderOptions impatient_options() {
  LoaderOptions options = small_options();
  options.longest_wait = std::chrono::milliseconds(20);
  return options;
}

// As a training asks that looks again.
Expected<Batch> next_in_the_end(Loader& loader, std::uint64_t step) {
  constexpr int most_tries = 5000;
  Expected<Batch> batch = loader.next(step);
  for (int i = 0; i < most_tries && !batch.ok() && batch.error().code == ErrorCode::Busy; ++i) {
    QTest::qWait(1);  // a look at a download that was waited for before does not wait
    batch = loader.next(step);
  }
  return batch;
}

// A node in a network whose present draw is a shard that its source does not give yet.
struct SlowDraw {
  SlowDraw() {
    while (of(later) == of(1)) ++later;
    dataset.held = of(1);
    loader->begin_round(1, filled(1));
  }
  // With a beacon that draws another shard.
  void begin_second_round() { loader->begin_round(2, filled(later)); }
  ShardId of(std::uint8_t beacon) const {
    return network_shard_order(filled(beacon), options.node_id, 10, 1).front();
  }
  static std::vector<ShardEntry> shards() {
    std::vector<ShardEntry> made;
    for (ShardId id = 0; id < 10; ++id) made.push_back(shard_of(id, 200));
    return made;
  }
  static LoaderOptions one_shard() {
    LoaderOptions made = impatient_options();
    made.shard_count = 1;
    return made;
  }

  neuroshard::testing::MemoryFileEnv env;
  SlowDataset dataset{env, manifest_of(shards())};
  const LoaderOptions options = one_shard();
  std::uint8_t later = 2;
  const std::unique_ptr<Executor> io = make_thread_executor("fetch", 4);
  const std::unique_ptr<Loader> loader = Loader::create(dataset, options, io.get()).value();
};

}  // namespace

class TestLoader : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void loader_rotates_when_a_shard_is_used_up() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(
        env, manifest_of({shard_of(0, 200), shard_of(1, 70), shard_of(2, 10), shard_of(3, 500)}));
    const auto loader = Loader::create(dataset, small_options()).value();
    std::vector<ShardId> order;
    for (std::uint64_t step = 0; step < 20; ++step) {
      const Batch batch = loader->next(step).value();
      QCOMPARE(batch.source, std::string("numbers"));
      order.push_back(batch.shard_id);
    }
    // The ring of 0, 1, 3 (2 holds no sequence): used up after ceil(tokens / 64) steps.
    std::vector<ShardId> runs;
    std::vector<int> lengths;
    for (const ShardId id : order) {
      if (runs.empty() || runs.back() != id) {
        runs.push_back(id);
        lengths.push_back(0);
      }
      ++lengths.back();
    }
    for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
      QCOMPARE(lengths[i], runs[i] == 0 ? 4 : runs[i] == 1 ? 2 : 8);
      QCOMPARE(runs[i + 1], runs[i] == 0 ? 1u : runs[i] == 1 ? 3u : 0u);
    }
    QVERIFY(runs.size() >= 4);
  }

  void loader_rotates_only_at_round_starts() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(env, manifest_of({shard_of(0, 100), shard_of(1, 100)}));
    LoaderOptions options = small_options();
    options.steps_per_round = 10;
    const auto loader = Loader::create(dataset, options).value();
    const ShardId first = loader->next(0).value().shard_id;
    const BatchRecord record = *loader->record();
    for (std::uint64_t step = 1; step < 10; ++step) {
      QCOMPARE(loader->next(step).value().shard_id, first);
      QVERIFY(*loader->record() == record);
    }
    QVERIFY(loader->next(10).value().shard_id != first);
    QVERIFY(loader->last_rotation() == RotationReason::UsedUp);
    QCOMPARE(loader->record()->round, std::uint64_t{1});
  }

  void loader_rotates_on_a_plateau() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(env, manifest_of({shard_of(0, 100'000), shard_of(1, 100'000)}));
    const auto loader = Loader::create(dataset, small_options()).value();
    const ShardId first = loader->next(0).value().shard_id;
    std::uint64_t step = 0;
    while (step < 300) {
      loader->report_loss(step % 10 == 3 ? std::nanf("") : 3.0f);
      if (loader->next(++step).value().shard_id != first) break;
    }
    QCOMPARE(step, std::uint64_t{100});
    QVERIFY(loader->last_rotation() == RotationReason::Plateau);
  }

  // Any peer rebuilds any batch from record, step and shard; and a restored loader repeats the uninterrupted
  // run.
  void restored_loader_repeats_the_run() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(env, manifest_of({shard_of(0, 900), shard_of(4, 20'000), shard_of(9, 400)}));
    LoaderOptions options = small_options();
    options.steps_per_round = 3;
    const auto loader = Loader::create(dataset, options).value();
    std::vector<std::string> positions;
    std::vector<Batch> batches;
    Rng rng(1);
    for (std::uint64_t step = 0; step < 260; ++step) {
      batches.push_back(loader->next(step).value());
      const auto shard = dataset.load(batches.back().shard_id, {}).value();
      const Batch rebuilt = make_batch(*loader->record(), step, shard->tokens, options.sequence).value();
      QVERIFY(rebuilt.tokens == batches.back().tokens && rebuilt.targets == batches.back().targets);
      loader->report_loss(3.0f + 0.1f * rng.normal());
      positions.push_back(loader->position().to_json());
    }
    for (const std::size_t cut : {0u, 1u, 50u, 137u, 200u}) {
      const auto again = Loader::create(dataset, options).value();
      const auto position = LoaderPosition::from_json(positions[cut]).value();
      QCOMPARE(position.to_json(), positions[cut]);
      QVERIFY(again->restore(position).ok());
      Rng replay(1);
      for (std::size_t i = 0; i <= cut; ++i) (void)replay.normal();
      for (std::size_t step = cut + 1; step < batches.size(); ++step) {
        QVERIFY(again->next(step).value().tokens == batches[step].tokens);
        again->report_loss(3.0f + 0.1f * replay.normal());
        QCOMPARE(again->position().to_json(), positions[step]);
      }
    }
  }

  void added_shards_do_not_disturb_a_restored_run() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset before(env, manifest_of({shard_of(0, 900), shard_of(1, 900)}));
    const auto loader = Loader::create(before, small_options()).value();
    const ShardId id = loader->next(0).value().shard_id;
    NumberDataset after(
        env, manifest_of({shard_of(0, 900), shard_of(1, 900), shard_of(2, 900), shard_of(3, 900)}));
    const auto more = Loader::create(after, small_options()).value();
    QVERIFY(more->restore(loader->position()).ok());
    QCOMPARE(more->next(1).value().shard_id, id);
    NumberDataset without(env, manifest_of({shard_of(id + 5, 900)}));
    const auto lost = Loader::create(without, small_options()).value();
    QVERIFY(lost->restore(loader->position()).error().code == ErrorCode::NotFound);
  }

  void a_download_goes_on_while_the_loader_is_busy() {
    neuroshard::testing::MemoryFileEnv env;
    const Manifest manifest = manifest_of({shard_of(0, 200), shard_of(1, 200)});
    NumberDataset local(env, manifest);
    SlowDataset dataset(env, manifest);
    const auto io = make_thread_executor("fetch", 4);
    const auto loader = Loader::create(dataset, impatient_options(), io.get()).value();
    const std::string before = loader->position().to_json();
    dataset.held = loader->position().shard_id;
    for (int i = 0; i < 3; ++i) {
      const auto batch = loader->next(0);
      QVERIFY(!batch.ok());
      QCOMPARE(batch.error().code, ErrorCode::Busy);
    }
    QVERIFY2(dataset.asked <= 1, "one download");
    QCOMPARE(dataset.loads, 0);
    QCOMPARE(loader->position().to_json(), before);
    dataset.held = SlowDataset::nothing;
    const auto batch = next_in_the_end(*loader, 0);
    QVERIFY2(batch.ok(), batch.ok() ? "" : batch.error().describe().c_str());
    const auto expected = Loader::create(local, small_options()).value()->next(0).value();
    QVERIFY(batch->tokens == expected.tokens);
    QVERIFY2(loader->next(1).ok(), "the shard is here");
  }

  void a_failed_download_is_told_once_and_tried_again() {
    neuroshard::testing::MemoryFileEnv env;
    SlowDataset dataset(env, manifest_of({shard_of(0, 200)}));
    const auto io = make_thread_executor("fetch", 4);
    const auto loader = Loader::create(dataset, impatient_options(), io.get()).value();
    dataset.held = 0;
    QCOMPARE(loader->next(0).error().code, ErrorCode::Busy);
    dataset.away = true;
    dataset.held = SlowDataset::nothing;
    const auto failed = next_in_the_end(*loader, 0);
    QVERIFY(!failed.ok());
    QCOMPARE(failed.error().code, ErrorCode::Timeout);
    dataset.away = false;
    QVERIFY(next_in_the_end(*loader, 0).ok());
    QCOMPARE(dataset.asked.load(), 2);
  }

  void a_needed_shard_does_not_wait_for_one_ahead() {
    neuroshard::testing::MemoryFileEnv env;
    SlowDataset dataset(env, manifest_of({shard_of(0, 200), shard_of(1, 200), shard_of(2, 200)}));
    const auto io = make_thread_executor("fetch", 4);
    const auto loader = Loader::create(dataset, impatient_options(), io.get()).value();
    const ShardId first = loader->position().shard_id;
    dataset.held = (first + 1) % 3;
    QCOMPARE(next_in_the_end(*loader, 0)->shard_id, first);
    LoaderPosition elsewhere = loader->position();
    elsewhere.shard_id = (first + 2) % 3;
    QVERIFY(loader->restore(elsewhere).ok());
    const auto batch = next_in_the_end(*loader, 1);
    QVERIFY2(batch.ok(), batch.ok() ? "" : batch.error().describe().c_str());
    QCOMPARE(batch->shard_id, elsewhere.shard_id);
  }

  // Else a download that lasts longer than a round would begin anew in each.
  void a_draw_holds_while_its_shard_is_fetched() {
    SlowDraw draw;
    QCOMPARE(draw.loader->next(0).error().code, ErrorCode::Busy);
    draw.begin_second_round();
    QCOMPARE(draw.loader->next(0).error().code, ErrorCode::Busy);
    draw.dataset.held = SlowDataset::nothing;
    const auto batch = next_in_the_end(*draw.loader, 0);
    QVERIFY2(batch.ok(), batch.ok() ? "" : batch.error().describe().c_str());
    QCOMPARE(batch->shard_id, draw.of(1));
    QCOMPARE(draw.loader->record()->round, std::uint64_t{2});
    QCOMPARE(draw.loader->record()->draw->round, std::uint64_t{1});
  }

  void a_draw_whose_shard_nobody_gives_is_replaced() {
    SlowDraw draw;
    QCOMPARE(draw.loader->next(0).error().code, ErrorCode::Busy);
    draw.begin_second_round();
    draw.dataset.away = true;
    draw.dataset.held = SlowDataset::nothing;
    QCOMPARE(next_in_the_end(*draw.loader, 0).error().code, ErrorCode::Timeout);
    draw.dataset.away = false;
    const auto batch = next_in_the_end(*draw.loader, 0);
    QVERIFY2(batch.ok(), batch.ok() ? "" : batch.error().describe().c_str());
    QCOMPARE(batch->shard_id, draw.of(draw.later));
  }

  void positions_from_a_disk_are_checked() {
    QVERIFY(!LoaderPosition::from_json("").ok());
    QVERIFY(!LoaderPosition::from_json("[]").ok());
    std::string text = LoaderPosition{}.to_json();
    QVERIFY(LoaderPosition::from_json(text).ok());
    text.replace(text.find("\"round\":0"), 9, "\"round\":-1");
    const auto negative = LoaderPosition::from_json(text);
    QVERIFY(negative.error().message.find("round") != std::string::npos);
  }

  void too_little_text_says_how_much_is_needed() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset empty(env, manifest_of({}));
    QVERIFY(Loader::create(empty, small_options()).error().code == ErrorCode::NotFound);
    NumberDataset tiny(env, manifest_of({shard_of(0, 16)}));
    const auto error = Loader::create(tiny, small_options()).error();
    QVERIFY(error.code == ErrorCode::InvalidArgument);
    QVERIFY2(
        error.message.find("16 tokens") != std::string::npos && error.message.find("17") != std::string::npos,
        error.message.c_str());
  }
};

NS_TEST(TestLoader)
#include "test_loader.moc"
