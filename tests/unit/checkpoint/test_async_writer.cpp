// Saving beside training: one save in flight, the newest state wins, failures are reported and cost nothing
// else.
#include <QtTest>
#include <atomic>
#include <thread>

#include "core/checkpoint/async_writer.h"
#include "tests/support/checkpoint_sample.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/manual_executor.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::checkpoint;
using namespace neuroshard::testing;

namespace {

// Its items take nothing; `full`: it has none.
class FailingSpool final : public Spool {
 public:
  Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t) override {
    if (full) return make_error(ErrorCode::Exhausted, "the disk is full");
    return std::unique_ptr<SpoolItem>(std::make_unique<Item>());
  }
  bool full = false;

 private:
  class Item final : public SpoolItem {
   public:
    Expected<void> write_at(std::uint64_t, ByteSpan) override {
      return make_error(ErrorCode::Io, "the disk reported an error");
    }
    Expected<ByteSourcePtr> finish(std::uint64_t) override { return in_memory({}); }
  };
};

}  // namespace

class TestAsyncWriter : public QObject {
  Q_OBJECT

  AsyncWriter::Callbacks callbacks() {
    return {[this](const SaveResult& result) { saved_.push_back(result.manifest.step); },
            [this](const Error& error) { failed_.push_back(error.code); }};
  }
  // Large enough for a copy of several parts.
  static compute::ModelShape wide_shape() {
    compute::ModelShape shape = tiny_shape();
    shape.vocab = 40'000;
    return shape;
  }
  TinyState current_state() {
    TinyState loaded(99);
    NS_CHECK(load_current(disk_, Catalogue(disk_, "/c"), loaded.request()).ok());
    return loaded;
  }

 private Q_SLOTS:
  void init() {
    disk_ = MemoryFileEnv();
    saved_.clear();
    failed_.clear();
  }

  void training_changes_nothing_in_a_save_in_flight() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    ManualExecutor io;
    AsyncWriter async(writer, io, callbacks());
    TinyState live(1);
    QCOMPARE(async.save(tiny_manifest(10), live.view(), true).value(), SaveStart::Started);
    async.before_update();
    live = TinyState(2);
    QVERIFY(async.in_flight());
    QVERIFY(saved_.empty());
    io.run();
    QVERIFY(!async.in_flight());
    QCOMPARE(saved_, std::vector<std::uint64_t>{10});
    QVERIFY(current_state().same_bits(TinyState(1)));
    QVERIFY(async.snapshot_bytes() > 0);
  }

  // Nothing has copied anything when the update comes: it does the copying itself.
  void an_update_may_come_before_the_disk_thread_has_begun() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    ManualExecutor io;
    AsyncWriter async(writer, io, callbacks());
    TinyState live(1);
    for (std::uint32_t step = 1; step <= 3; ++step) {
      live = TinyState(step);
      QCOMPARE(async.save(tiny_manifest(step), live.view(), true).value(), SaveStart::Started);
      live.extra.assign(live.extra.size(), -1.0f);  // extras are the caller's again at once
      async.before_update();
      async.before_update();  // asked for in every step, also in those without a save
      live = TinyState(100 + step);
      io.run();
      async.before_update();
      QVERIFY(current_state().same_bits(TinyState(step)));
    }
    QCOMPARE(saved_, (std::vector<std::uint64_t>{1, 2, 3}));
  }

  // Whatever the timing between a real thread that copies and a training thread that updates as soon as it is
  // allowed to, what is saved is the state of the step at which the save was asked for.
  void saved_is_the_state_that_was_asked_for() {
    const compute::ModelShape shape = wide_shape();
    auto writer = Writer::open(disk_, key_, "/c").value();
    const auto io = make_thread_executor("io", 8);
    AsyncWriter async(writer, *io, callbacks());
    TinyState live(1, shape);
    Manifest manifest = tiny_manifest(1);
    manifest.architecture = shape;
    for (std::uint32_t step = 1; step <= 12; ++step) {
      live.fill(step);
      manifest.step = step;
      QCOMPARE(async.save(manifest, live.view(), true).value(), SaveStart::Started);
      // The passes of the next step take none, a little, or more time than the copy.
      for (std::uint32_t i = 0; i < step % 4 * 200; ++i) std::this_thread::yield();
      async.before_update();
      live.fill(1000 + step);
      async.wait();
      TinyState loaded(99, shape);
      QVERIFY(load_current(disk_, Catalogue(disk_, "/c"), loaded.request()).ok());
      QVERIFY2(loaded.same_bits(TinyState(step, shape)), qPrintable(QString("step %1").arg(step)));
    }
    QVERIFY(failed_.empty());
  }

  // A step that is cancelled updates nothing and asks nothing; the save is complete all the same.
  void a_cancelled_step_holds_nothing_up() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    const auto io = make_thread_executor("io", 8);
    AsyncWriter async(writer, *io, callbacks());
    TinyState live(1);
    QCOMPARE(async.save(tiny_manifest(10), live.view(), true).value(), SaveStart::Started);
    async.wait();
    QCOMPARE(async.save(tiny_manifest(20), live.view(), true).value(), SaveStart::Started);
    async.before_update();
    live = TinyState(2);
    async.wait();
    QCOMPARE(saved_, (std::vector<std::uint64_t>{10, 20}));
    QVERIFY(current_state().same_bits(TinyState(1)));
  }

  // Destroyed in the middle: the save is finished first, from tensors that are still there.
  void destruction_waits_for_the_copy() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    const auto io = make_thread_executor("io", 8);
    const TinyState live(5);
    {
      AsyncWriter async(writer, *io, callbacks());
      QCOMPARE(async.save(tiny_manifest(10), live.view(), true).value(), SaveStart::Started);
    }
    QVERIFY(current_state().same_bits(live));
  }

  void room_is_made_in_advance_and_beside() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    ManualExecutor io;
    AsyncWriter async(writer, io, callbacks());
    TinyState live(1);
    async.prepare(1 << 20);
    QCOMPARE(async.save(tiny_manifest(1), live.view(), true).value(), SaveStart::Deferred);
    io.run();
    QCOMPARE(async.snapshot_bytes(), std::uint64_t{1 << 20});
    QCOMPARE(async.save(tiny_manifest(2), live.view(), true).value(), SaveStart::Started);
    io.run();
    QCOMPARE(async.snapshot_bytes(), std::uint64_t{1 << 20});
    QVERIFY(current_state().same_bits(live));
  }

  // An executor that takes no work must not leave the writer waiting for it.
  void room_that_cannot_be_made_in_advance() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    ManualExecutor io(0);
    AsyncWriter async(writer, io, callbacks());
    async.prepare(1 << 20);
    QVERIFY(!async.in_flight());
  }

  // The copy is held although the write fails, and the step after the next save is free as ever.
  void a_failed_write_leaves_the_next_copy_right() {
    FaultFileEnv faults(disk_, {.fail_at = 7});
    auto writer = Writer::open(faults, key_, "/c").value();
    ManualExecutor io;
    AsyncWriter async(writer, io, callbacks());
    TinyState live(1);
    QVERIFY(async.save(tiny_manifest(10), live.view(), true).ok());
    io.run();
    async.before_update();
    live = TinyState(2);
    QVERIFY(async.save(tiny_manifest(20), live.view(), true).ok());
    async.before_update();
    live = TinyState(3);
    io.run();
    QCOMPARE(failed_.size(), std::size_t{1});
    QVERIFY(current_state().same_bits(TinyState(2)));
  }

  // A thread that would rest for hours after each piece: whoever waits for it waits for no pause, whether it
  // has begun or not, and neither does an update.
  void who_waits_waits_for_no_pause() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    const auto io = make_thread_executor("io", 8);
    std::atomic<int> asked{0};
    const Pace pace{0.001, [&] { return Duration(std::chrono::hours(++asked)); }};
    TinyState live(1, wide_shape());  // outlives the copy
    AsyncWriter async(writer, *io, callbacks(), pace);
    Manifest manifest = tiny_manifest(0);
    manifest.architecture = live.shape;
    for (std::uint32_t step = 1; step <= 3; ++step) {
      live.fill(step);
      manifest.step = step;
      QCOMPARE(async.save(manifest, live.view(), true).value(), SaveStart::Started);
      async.before_update();
      live.fill(100 + step);
      if (step == 1) QTRY_VERIFY(asked >= 2);  // it rests
      if (step == 2) async.hurry();
      async.wait();
      TinyState loaded(99, live.shape);
      QVERIFY(load_current(disk_, Catalogue(disk_, "/c"), loaded.request()).ok());
      QVERIFY(loaded.same_bits(TinyState(step, live.shape)));
    }
    QVERIFY(async.save(manifest, live.view(), true).ok());  // and it ends at once with one in flight
  }

  // Pieces with pauses between them: as many as the writer makes.
  void a_pause_after_every_piece() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    const TinyState live(1, wide_shape());
    Manifest manifest = tiny_manifest(1);
    manifest.architecture = live.shape;
    int pauses = 0;
    const auto saved = writer.save(manifest, live.view(), [&] { ++pauses; });
    QVERIFY(saved.ok());
    QVERIFY(std::uint64_t(pauses) >= saved->manifest.file_bytes() >> 20);
  }

  void requests_coalesce() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    ManualExecutor io;
    AsyncWriter async(writer, io, callbacks());
    TinyState live(1);
    QCOMPARE(async.save(tiny_manifest(10), live.view(), true).value(), SaveStart::Started);
    QCOMPARE(async.save(tiny_manifest(20), live.view(), true).value(), SaveStart::Deferred);
    QCOMPARE(async.save(tiny_manifest(30), live.view(), true).value(), SaveStart::Deferred);
    QVERIFY(async.wanted());
    QCOMPARE(io.waiting(), std::size_t{1});
    io.run();
    QVERIFY(async.wanted());
    live = TinyState(4);
    QCOMPARE(async.save(tiny_manifest(40), live.view(), true).value(), SaveStart::Started);
    QVERIFY(!async.wanted());
    io.run();
    QCOMPARE(saved_, (std::vector<std::uint64_t>{10, 40}));
    QVERIFY(current_state().same_bits(live));
  }

  // As large models have it: the copy takes no memory, and training goes on meanwhile.
  void a_copy_in_the_spool_is_as_good() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    ManualExecutor io;
    AsyncWriter async(writer, io, callbacks(), {}, std::make_shared<MemorySpool>());
    TinyState live(1, wide_shape());
    compute::ModelShape shape = wide_shape();
    for (const std::uint64_t step : {10u, 20u}) {
      const TinyState then = live;
      Manifest manifest = tiny_manifest(step);
      manifest.architecture = shape;
      QCOMPARE(async.save(manifest, live.view(), false).value(), SaveStart::Started);
      async.before_update();
      live = TinyState(step, shape);
      io.run();
      QCOMPARE(async.snapshot_bytes(), std::uint64_t{0});
      TinyState loaded(99, shape);
      QVERIFY(load_current(disk_, Catalogue(disk_, "/c"), loaded.request()).ok());
      QVERIFY(loaded.same_bits(then));
    }
    QCOMPARE(saved_, (std::vector<std::uint64_t>{10, 20}));
  }

  void a_spool_that_fails_is_told_and_the_next_save_works() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    ManualExecutor io;
    const auto spool = std::make_shared<FailingSpool>();
    AsyncWriter async(writer, io, callbacks(), {}, spool);
    TinyState live(1);
    QCOMPARE(async.save(tiny_manifest(10), live.view(), false).value(), SaveStart::Started);
    async.before_update();
    io.run();
    QVERIFY(saved_.empty());
    QCOMPARE(failed_.size(), std::size_t{1});
    QVERIFY(!async.in_flight());
    spool->full = true;  // no item at all: it is written while training waits
    QCOMPARE(async.save(tiny_manifest(20), live.view(), false).value(), SaveStart::Written);
    QCOMPARE(saved_, std::vector<std::uint64_t>{20});
    QVERIFY(current_state().same_bits(live));
  }

  void without_room_for_a_copy_it_writes_at_once() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    ManualExecutor io;
    AsyncWriter async(writer, io, callbacks());
    TinyState live(1);
    QCOMPARE(async.save(tiny_manifest(10), live.view(), false).value(), SaveStart::Written);
    QCOMPARE(io.waiting(), std::size_t{0});
    QCOMPARE(async.snapshot_bytes(), std::uint64_t{0});
    QCOMPARE(saved_, std::vector<std::uint64_t>{10});
    QVERIFY(current_state().same_bits(live));
  }

  void a_full_disk_is_told_and_the_next_save_works() {
    FaultFileEnv faults(disk_, {.fail_at = 7});
    auto writer = Writer::open(faults, key_, "/c").value();
    ManualExecutor io;
    AsyncWriter async(writer, io, callbacks());
    TinyState live(1);
    QVERIFY(async.save(tiny_manifest(10), live.view(), true).ok());
    io.run();
    QCOMPARE(failed_, std::vector<ErrorCode>{ErrorCode::Io});
    QVERIFY(async.save(tiny_manifest(20), live.view(), true).ok());
    io.run();
    QCOMPARE(saved_, std::vector<std::uint64_t>{20});
  }

  void a_stopping_executor_is_no_lost_writer() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    ManualExecutor io(0);
    AsyncWriter async(writer, io, callbacks());
    TinyState live(1);
    QCOMPARE(async.save(tiny_manifest(10), live.view(), true).error().code, ErrorCode::Unavailable);
    QVERIFY(!async.in_flight());
    QVERIFY(async.save_now(tiny_manifest(11), live.view()).ok());
  }

  // With a real thread: a clean stop waits for the save in flight and writes the last state after it.
  void a_clean_stop_saves_the_last_state() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    const auto io = make_thread_executor("io", 8);
    AsyncWriter async(writer, *io, callbacks());
    TinyState live(1);
    QCOMPARE(async.save(tiny_manifest(10), live.view(), true).value(), SaveStart::Started);
    async.before_update();
    live = TinyState(2);
    const auto last = async.save_now(tiny_manifest(13), live.view());
    QVERIFY(last.ok());
    QCOMPARE(saved_, (std::vector<std::uint64_t>{10, 13}));
    const Entry entry = Catalogue(disk_, "/c").current().value().value();
    QCOMPARE(entry.name, last->name);
    QVERIFY(current_state().same_bits(live));
  }

 private:
  crypto::KeyPair key_ = tiny_key();
  MemoryFileEnv disk_;
  std::vector<std::uint64_t> saved_;
  std::vector<ErrorCode> failed_;
};

NS_TEST(TestAsyncWriter)
#include "test_async_writer.moc"
