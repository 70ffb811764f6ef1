// Saving beside training: one save in flight, the newest state wins, failures are told and cost nothing else.
#include <QtTest>

#include "core/checkpoint/async_writer.h"
#include "tests/support/checkpoint_sample.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/manual_executor.h"
#include "tests/support/memory_file_env.h"

using namespace neuroshard;
using namespace neuroshard::checkpoint;
using namespace neuroshard::testing;

class TestAsyncWriter : public QObject {
  Q_OBJECT

  AsyncWriter::Callbacks callbacks() {
    return {[this](const SaveResult& result) { saved_.push_back(result.manifest.step); },
            [this](const Error& error) { failed_.push_back(error.code); }};
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
    live = TinyState(2);
    QVERIFY(async.in_flight());
    QVERIFY(saved_.empty());
    io.run();
    QVERIFY(!async.in_flight());
    QCOMPARE(saved_, std::vector<std::uint64_t>{10});
    QVERIFY(current_state().same_bits(TinyState(1)));
    QVERIFY(async.snapshot_bytes() > 0);
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

QTEST_GUILESS_MAIN(TestAsyncWriter)
#include "test_async_writer.moc"
