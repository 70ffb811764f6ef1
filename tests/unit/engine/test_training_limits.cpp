// Limits and settings of a running session: obeyed from the next step on, and clear about what is missing.
#include <QtTest>

#include "core/config/model_part.h"
#include "core/config/network_profile.h"
#include "core/engine/member_memory.h"
#include "core/engine/session/session_limits.h"
#include "core/engine/training_data.h"
#include "core/engine/training_memory.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/session_run.h"

using neuroshard::ErrorCode;
using neuroshard::config::Setting;
using neuroshard::engine::StepReport;
using neuroshard::testing::checkpoints_of;
using neuroshard::testing::Run;
using neuroshard::testing::TrainingFixture;

namespace {

std::shared_ptr<neuroshard::storage::DiskBudget> budget_of(TrainingFixture& fixture, const char* folder) {
  return neuroshard::storage::DiskBudget::open(fixture.files(), fixture.clock(), fixture.logger(),
                                               {fixture.path(folder), 0, {}, {}}, {})
      .value();
}

}  // namespace

class TestTrainingLimits : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void rounds_take_what_the_spool_has_room_for();
  void memory_limit_says_what_is_missing();
  void out_of_memory_is_remembered();
  void limits_hold_from_the_next_step();
  void a_raised_limit_brings_the_micro_batch_back();
  void checkpoint_settings_hold_from_the_next_step();
  void a_lowered_disk_limit_reaches_the_published_text();
  void others_use_up_the_days_writes();
  void writes_beside_a_save_count_with_it();
  void saves_that_fail_use_up_no_budget();
  void a_save_that_is_cut_off_counts_what_it_wrote();
  void rounds_take_the_place_of_old_checkpoints();
  void a_part_expects_no_more_micro_batches_than_a_step_has();
  void a_member_needs_what_its_plan_expects();
  void sizes_with_the_same_need_fit_together();
};

namespace {

// Published text, as far as its limit is concerned.
class LimitedText final : public neuroshard::data::Dataset {
 public:
  const neuroshard::data::Manifest& manifest() const override { return manifest_; }
  const neuroshard::data::Tokenizer& tokenizer() const override { NS_CHECK(false); }
  const std::vector<neuroshard::data::ShardEntry>& shards(neuroshard::data::Split) const override {
    return shards_;
  }
  neuroshard::Expected<std::shared_ptr<const neuroshard::data::ShardTokens>> load(
      neuroshard::data::ShardId, const neuroshard::CancelToken&) override {
    return neuroshard::make_error(ErrorCode::NotFound, "no shard");
  }
  neuroshard::Expected<void> prefetch(neuroshard::data::ShardId, const neuroshard::CancelToken&) override {
    return {};
  }
  neuroshard::Expected<void> limit_cache(std::uint64_t bytes) override {
    limits.push_back(bytes);
    if (fails) return neuroshard::make_error(ErrorCode::Io, "a shard can't be deleted");
    return {};
  }
  std::vector<std::uint64_t> limits;
  bool fails = false;

 private:
  neuroshard::data::Manifest manifest_;
  std::vector<neuroshard::data::ShardEntry> shards_;
};

}  // namespace

void TestTrainingLimits::rounds_take_what_the_spool_has_room_for() {
  using neuroshard::engine::outer_round_bytes;
  using neuroshard::engine::round_spool_memory;
  using neuroshard::engine::RoundShape;
  RoundShape shape;
  shape.parameters = 1;
  const std::uint64_t buffers = outer_round_bytes(shape) - outer_round_bytes(shape) % (1 << 20);
  // 32 payloads, three vectors of values, three states.
  shape.parameters = 10'000;
  QCOMPARE(outer_round_bytes(shape) - buffers, 32 * max_payload_bytes(shape.codec, 10'000) + 36 * 10'000);
  // Six payloads of 10 MB; neither values nor states.
  shape.parameters = 10'000'000;
  QCOMPARE(outer_round_bytes(shape) - buffers, 6 * max_payload_bytes(shape.codec, 10'000'000));
  // No item of this model has room in memory; halves of it have, and small payloads.
  shape.parameters = 100'000'000;
  QCOMPARE(outer_round_bytes(shape), buffers);
  shape.fragments = 2;
  QCOMPARE(outer_round_bytes(shape) - buffers, max_payload_bytes(shape.codec, 50'000'000));
  shape.fragments = 1;
  shape.codec.codec = neuroshard::outer::Codec::TopK;
  QVERIFY(outer_round_bytes(shape) > buffers && outer_round_bytes(shape) <= buffers + round_spool_memory);
  const std::uint64_t without = outer_round_bytes(shape);
  shape.error_feedback = true;
  QVERIFY(outer_round_bytes(shape) > without);
}

void TestTrainingLimits::memory_limit_says_what_is_missing() {
  TrainingFixture fixture;
  fixture.settings[Setting::MemoryLimit] = "128MiB";
  Run run(fixture, "d");
  QVERIFY(!run.info.ok());
  QCOMPARE(run.info.error().code, ErrorCode::Exhausted);
  QVERIFY(run.info.error().message.find("128 MiB") != std::string::npos);
  QVERIFY(run.info.error().message.find("are missing") != std::string::npos);
}

void TestTrainingLimits::out_of_memory_is_remembered() {
  TrainingFixture fixture;
  {
    Run run(fixture, "d");
    QCOMPARE(run.info->micro_batch, 8u);
    QCOMPARE(run.step().micro_batch, 8u);
    run.module->controls.fits = 3;
    const StepReport report = run.step();
    QCOMPARE(report.micro_batch, 2u);
    QCOMPARE(report.alerts.size(), std::size_t{1});
    QCOMPARE(report.alerts.front().category, std::string("memory"));
    QVERIFY(run.session->finish().ok());
  }
  {
    Run again(fixture, "d");
    QCOMPARE(again.info->micro_batch, 2u);
    QCOMPARE(again.step().micro_batch, 2u);
    QVERIFY(again.session->finish().ok());
  }
  // A person who changes the limit gets what it allows.
  fixture.settings[Setting::MemoryLimit] = "64GiB";
  const Run raised(fixture, "d");
  QCOMPARE(raised.info->micro_batch, 8u);
}

void TestTrainingLimits::limits_hold_from_the_next_step() {
  TrainingFixture fixture;
  Run run(fixture, "d");
  QCOMPARE(run.step().micro_batch, 8u);
  QVERIFY(run.directory->set_setting(Setting::MaxMicroBatch, {3, {}}).ok());
  QCOMPARE(run.step().micro_batch, 3u);
  // A limit below what the program has already: the tensors get no more, and the micro-batch shrinks to the
  // least.
  const std::uint64_t before = run.module->controls.memory_limit;
  QVERIFY(run.directory->set_setting(Setting::MemoryLimit, {1u << 20, {}}).ok());
  bool told = false;
  for (int i = 0; i < 3; ++i) {
    for (const auto& alert : run.step().alerts) told = told || alert.category == "memory";
  }
  QVERIFY(told);
  QVERIFY(run.module->controls.memory_limit < before);
  QCOMPARE(run.step().micro_batch, 1u);
  QVERIFY(run.directory->set_setting(Setting::MemoryLimit, {0, {}}).ok());
  QCOMPARE(run.step().micro_batch, 3u);
  QCOMPARE(run.module->controls.memory_limit, std::uint64_t{0});  // none
}

void TestTrainingLimits::a_raised_limit_brings_the_micro_batch_back() {
  TrainingFixture fixture;
  const auto set_most = [](Run& run, std::uint64_t most) {
    QVERIFY(run.directory->set_setting(Setting::MaxMicroBatch, {most, {}}).ok());
  };
  {
    Run run(fixture, "d");
    set_most(run, 3);
    QCOMPARE(run.step().micro_batch, 3u);
    set_most(run, 8);
    QCOMPARE(run.step().micro_batch, 8u);
    set_most(run, 3);
    QCOMPARE(run.step().micro_batch, 3u);
    set_most(run, 8);  // no step follows it
    QVERIFY(run.session->finish().ok());
  }
  {
    Run again(fixture, "d");
    QCOMPARE(again.info->micro_batch, 8u);
    set_most(again, 3);
    QCOMPARE(again.step().micro_batch, 3u);
    QVERIFY(again.session->finish().ok());
  }
  {
    // A session that was planned with the lower limit.
    Run lower(fixture, "d");
    QCOMPARE(lower.info->micro_batch, 3u);
    set_most(lower, 8);
    QCOMPARE(lower.step().micro_batch, 8u);
  }
}

void TestTrainingLimits::checkpoint_settings_hold_from_the_next_step() {
  TrainingFixture fixture;
  Run run(fixture, "d");
  // A budget that has no room for one checkpoint.
  QVERIFY(run.directory->set_setting(Setting::CheckpointDailyWriteBudget, {1, {}}).ok());
  for (int i = 0; i < 12; ++i) QVERIFY(!run.step().checkpoint_started);
  QVERIFY(run.directory->set_setting(Setting::CheckpointDailyWriteBudget, {0, {}}).ok());
  QVERIFY(run.step().checkpoint_started);
  // The newest, and the best if that is another.
  QVERIFY(run.directory->set_setting(Setting::CheckpointKeepLast, {1, {}}).ok());
  for (int i = 0; i < 3; ++i) {
    run.step();
    QVERIFY(run.session->save().ok());
  }
  QVERIFY(checkpoints_of(fixture, "d") <= 2);
}

// Between two steps, once; a failure is an alert.
void TestTrainingLimits::a_lowered_disk_limit_reaches_the_published_text() {
  using namespace neuroshard;
  TrainingFixture fixture;
  const auto directory = fixture.open("d").value();
  testing::ToyModule module;
  engine::detail::SessionParts parts(*directory, {fixture.files(), fixture.clock(), fixture.logger()});
  parts.history =
      engine::TrainingHistory::open(fixture.files(), fixture.path("d/state.db"), fixture.clock()).value();
  auto text = std::make_unique<LimitedText>();
  LimitedText& seen = *text;
  parts.dataset = std::move(text);
  parts.module = compute::LoadedModule{&module, {}};
  compute::StageSpec spec;
  spec.shape = config::model_shape(directory->profile().consensus);
  parts.stage = compute::make_stage(module, spec).value();
  parts.loop.emplace(*parts.stage, fixture.clock(), fixture.logger(), 1u);
  engine::detail::SessionLimits limits(parts);
  StepReport report;
  limits.follow(&report);
  QVERIFY(seen.limits.empty());  // as it was when the text was opened
  constexpr std::uint64_t gib = 1u << 30;
  QVERIFY(directory->set_setting(Setting::DiskLimit, {gib, {}}).ok());
  limits.follow(&report);
  limits.follow(&report);
  QVERIFY(seen.limits == std::vector<std::uint64_t>{gib / 2});
  QVERIFY(report.alerts.empty());
  seen.fails = true;
  QVERIFY(directory->set_setting(Setting::DiskLimit, {gib / 2, {}}).ok());
  limits.follow(&report);
  QCOMPARE(report.alerts.size(), std::size_t{1});
  QCOMPARE(report.alerts.front().category, std::string("disk_limit"));
  QVERIFY(report.alerts.front().text.find("can't be deleted") != std::string::npos);
  QVERIFY(directory->set_setting(Setting::DiskLimit, {0, {}}).ok());
  limits.follow(&report);
  QCOMPARE(seen.limits.back(), engine::published_cache_bytes(*directory));
}

// Rounds and checkpoints share one budget, and each counts what the other wrote.
void TestTrainingLimits::others_use_up_the_days_writes() {
  using namespace neuroshard;
  TrainingFixture fixture;
  const auto disk = budget_of(fixture, ".");
  Run run(fixture, "d", "text.txt", engine::SessionMode::Train, nullptr, disk);
  QVERIFY(run.session->save().ok());
  const std::uint64_t one = disk->written_today();
  QVERIFY(one > 0);
  QVERIFY(run.directory->set_setting(Setting::CheckpointDailyWriteBudget, {20 * one, {}}).ok());
  bool started = false;
  for (int i = 0; i < 6; ++i) started = run.step().checkpoint_started || started;
  QVERIFY(started);
  disk->wrote(20 * one);
  for (int i = 0; i < 12; ++i) QVERIFY(!run.step().checkpoint_started);
  fixture.jump(std::chrono::hours(24));
  started = false;
  for (int i = 0; i < 6; ++i) started = run.step().checkpoint_started || started;
  QVERIFY(started);
}

void TestTrainingLimits::writes_beside_a_save_count_with_it() {
  using namespace neuroshard;
  TrainingFixture fixture;
  const auto disk = budget_of(fixture, ".");
  neuroshard::testing::FaultFileEnv files(fixture.files());
  Run run(fixture, "d", "text.txt", engine::SessionMode::Train, &files, disk);
  std::uint64_t before = disk->written_today(), beside = 0;
  QVERIFY(run.session->save().ok());
  const std::uint64_t one = disk->written_today() - before;
  QVERIFY(one > 0);
  files.before_rename([&](const std::string& to) {
    if (to.find("/checkpoints/") == std::string::npos) return;
    disk->wrote(one);
    beside += one;
  });
  run.step();
  before = disk->written_today();
  QVERIFY(run.session->save().ok());
  QVERIFY(beside > 0);
  QCOMPARE(disk->written_today(), before + beside + one);
}

void TestTrainingLimits::saves_that_fail_use_up_no_budget() {
  using namespace neuroshard;
  TrainingFixture fixture;
  std::uint64_t one = 0;
  {
    const auto disk = budget_of(fixture, ".");
    Run run(fixture, "d", "text.txt", engine::SessionMode::Train, nullptr, disk);
    QVERIFY(run.session->save().ok());
    one = disk->written_today();
  }
  fixture.settings[Setting::CheckpointDailyWriteBudget] = std::to_string(5 * one);
  neuroshard::testing::FaultFileEnv full(fixture.files(), neuroshard::testing::Faults{.room_bytes = 3000});
  Run run(fixture, "d", "", engine::SessionMode::Train, &full);
  QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
  for (int i = 0; i < 10; ++i) QCOMPARE(run.session->save().error().code, ErrorCode::Exhausted);
  bool started = false;
  for (int i = 0; i < 6; ++i) started = run.step().checkpoint_started || started;
  QVERIFY(started);
}

void TestTrainingLimits::a_save_that_is_cut_off_counts_what_it_wrote() {
  using namespace neuroshard;
  TrainingFixture fixture;
  const auto disk = budget_of(fixture, ".");
  {
    Run run(fixture, "d", "text.txt", engine::SessionMode::Train, nullptr, disk);
    QVERIFY(run.session->save().ok());
  }
  constexpr std::uint64_t room = 30'000;
  neuroshard::testing::FaultFileEnv small(fixture.files(), neuroshard::testing::Faults{.room_bytes = room});
  Run run(fixture, "d", "", engine::SessionMode::Train, &small, disk);
  QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
  const std::uint64_t before = disk->written_today();
  QCOMPARE(run.session->save().error().code, ErrorCode::Exhausted);
  const std::uint64_t counted = disk->written_today() - before;
  QVERIFY(counted > 5000 && counted <= room);
  // Nothing has room any more.
  QCOMPARE(run.session->save().error().code, ErrorCode::Exhausted);
  QCOMPARE(disk->written_today(), before + counted);
}

void TestTrainingLimits::rounds_take_the_place_of_old_checkpoints() {
  using namespace neuroshard;
  TrainingFixture fixture;
  fixture.settings[Setting::CheckpointKeepLast] = "10";
  const auto disk = budget_of(fixture, "none");
  Run run(fixture, "d", "text.txt", engine::SessionMode::Train, nullptr, disk);
  const auto save = [&] {
    run.step();
    QVERIFY(run.session->save().ok());
  };
  for (int i = 0; i < 4; ++i) save();
  const std::size_t before = checkpoints_of(fixture, "d");
  QVERIFY(before >= 4);
  std::uint64_t all = 0;
  const auto entries = checkpoint::Catalogue(fixture.files(), fixture.path("d") + "/checkpoints").list();
  for (const checkpoint::Entry& entry : *entries) all += entry.bytes;
  QVERIFY(run.directory->set_setting(Setting::DiskLimit, {100 * all, {}}).ok());
  save();
  QCOMPARE(checkpoints_of(fixture, "d"), before + 1);
  disk->hold(99 * all + all / 2);
  save();
  QVERIFY(checkpoints_of(fixture, "d") < before);
}

// The plans of nodes with one part of a model expected 16 micro-batches, whatever a step has.
void TestTrainingLimits::a_part_expects_no_more_micro_batches_than_a_step_has() {
  using namespace neuroshard;
  engine::TrainingMemoryRequest request;
  request.shape.layers = 3;
  request.shape.hidden = 64;
  request.shape.head_dim = 16;
  request.shape.heads = 4;
  request.shape.kv_heads = 1;
  request.shape.ffn = 128;
  request.shape.vocab = 256;
  request.shape.sequence = 32;
  request.sequences_together = 4;
  request.max_micro_batch = 16;
  const auto most_of = [&](const compute::StageRange& range, std::uint32_t micro_batches) {
    request.range = range;
    request.sequences_per_step = micro_batches * request.sequences_together;
    return engine::plan_training_memory(request).value();
  };
  const std::vector<compute::StageRange> parts = compute::cut_model(request.shape, 3);
  for (const compute::StageRange& range : parts) {
    QCOMPARE(most_of(range, 2).plan.micro_batch, 2u);
    const train::MemoryNeeds needs = most_of(range, 2).needs;
    QVERIFY(needs.deferred_per_sample > 0 && needs.most_deferred == 4);
  }
  // The last part makes both passes at once, so what it holds waits for gradients of weights only.
  QCOMPARE(most_of(parts[0], 12).plan.micro_batch, 12u);
  QCOMPARE(most_of(parts[2], 12).plan.micro_batch, 4u);
  QCOMPARE(most_of(parts[0], 100).plan.micro_batch, 16u);
}

// The need that people see of a network's members is the plan of a node without a limit.
void TestTrainingLimits::a_member_needs_what_its_plan_expects() {
  constexpr std::uint64_t mib = 1u << 20;
  for (const auto& [sync, size] : {std::pair{"plain", 0u}, {"parts=3", 0u}, {"plain", 1u}, {"parts=3", 1u}}) {
    config::ConsensusPart consensus = config::builtin_profile("devnet")->consensus;
    consensus.layers = 6;
    consensus.sync = sync;
    consensus.sizes = {{12, 128, 1, 1}};
    const std::vector<std::uint64_t> smaller = engine::part_bytes(consensus);
    consensus.size = size;
    const std::vector<std::uint64_t> bytes = engine::part_bytes(consensus);
    QVERIFY(size == 0 ? bytes == smaller : bytes.front() > smaller.front());
    std::vector<compute::StageRange> ranges = config::model_parts(consensus);
    if (ranges.empty()) ranges = {compute::whole_range(config::model_shape(consensus))};
    QCOMPARE(bytes.size(), ranges.size());
    QCOMPARE(engine::most_member_bytes(consensus), *std::max_element(bytes.begin(), bytes.end()));
    // Of both sizes, the embedding is in memory at a change.
    if (size == 0) {
      config::ConsensusPart fixed = consensus;
      fixed.sizes.clear();
      QVERIFY(engine::memory_request(consensus, ranges[0], true).outer_bytes >=
              engine::memory_request(fixed, ranges[0], true).outer_bytes +
                  sizeof(float) * consensus.vocab * (consensus.hidden + 128));
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const compute::StageRange& range = ranges[i];
      QCOMPARE(engine::member_bytes(consensus, range), bytes[i]);
      engine::TrainingMemoryRequest request = engine::memory_request(consensus, range, true);
      if (ranges.size() == 1) request.max_micro_batch = 1;
      const engine::TrainingMemory memory = engine::plan_training_memory(request).value();
      QVERIFY(memory.plan.whole_snapshot);
      QCOMPARE(engine::member_bytes(consensus, range),
               memory.plan.expected - memory.needs.baseline + 192 * mib + memory.needs.margin);
    }
  }
}

// A node without room for the second of two such sizes offers too little for either, at each of them.
void TestTrainingLimits::sizes_with_the_same_need_fit_together() {
  using namespace neuroshard;
  config::ConsensusPart consensus = config::builtin_profile("devnet")->consensus;
  consensus.sizes = {{6, 128, 4, 8}, {8, 128, 4, 9}, {10, 128, 5, 12}};
  for (const auto& [fitting, first, second, third] :
       {std::tuple{0u, 1u, 2u, 3u}, {1u, 2u, 2u, 3u}, {2u, 0u, 0u, 3u}, {3u, 0u, 0u, 0u}}) {
    const auto found = [&consensus, most = fitting](std::uint64_t size) {
      consensus.size = size;
      return engine::first_too_large(consensus, [most](std::uint32_t other) { return other <= most; })
          .value_or(0);
    };
    QCOMPARE(found(0), first);
    QCOMPARE(found(1), second);
    QCOMPARE(found(2), third);
    QCOMPARE(found(3), 0u);
  }
}

NS_TEST(TestTrainingLimits)
#include "test_training_limits.moc"
