// The files of a node of the chain: what was written comes back, a torn tail is cut off, blocks keep their
// order behind the states that they name, and an old log stays.
#include <QtTest>
#include <set>

#include "core/engine/chain_files.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/pump_executor.h"
#include "tests/support/stored.h"
#include "tests/support/test_main.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::engine;   // NOLINT
using namespace neuroshard::testing;  // NOLINT
using Record = chain::ChainStore::Record;

namespace {

const std::string folder = "/d/chain";

Bytes block_of(std::uint64_t height) {
  return Bytes(static_cast<std::size_t>(10 + height), static_cast<std::uint8_t>(height + 1));
}
chain::BlockBytes shared_block(std::uint64_t height) {
  return std::make_shared<const Bytes>(block_of(height));
}
rounds::Anchor state_of_row(float value) {
  return rounds::state_in_memory(std::vector<float>(100, value), std::vector<float>(100, value / 2));
}

struct ChainBench {
  MemoryFileEnv disk;
  FaultFileEnv files{disk};
  NullLogger logger;
  PumpExecutor node;
  std::unique_ptr<ChainFiles> open(std::size_t earlier = 0) {
    return std::move(ChainFiles::open(files, folder, earlier, logger, node).value());
  }
  std::unique_ptr<BlockLog> log() {
    return std::move(BlockLog::open(files, folder + "/blocks", logger).value());
  }
};

}  // namespace

class TestChainFiles : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void blocks_and_records_come_back() {
    ChainBench b;
    std::vector<int> done;
    {
      const auto files = b.open();
      QCOMPARE(files->block_count(), std::uint64_t{0});
      QVERIFY(files->load(Record::Local).error().code == ErrorCode::NotFound);
      for (std::uint64_t h = 0; h < 5; ++h)
        files->append_block(h, shared_block(h), [&done, h](Expected<void> written) {
          if (written.ok()) done.push_back(static_cast<int>(h));
        });
      QVERIFY(files->load_block(4).value() == block_of(4));  // before it is on the disk
      QVERIFY(files->load_beginning(4, 3).value() == Bytes(3, 5));
      files->save(Record::Local, Bytes{1, 2}, [](Expected<void>) {});
      files->save(Record::Resume, Bytes{4, 5, 6}, [](Expected<void>) {});
      files->save(Record::Votes, Bytes{3}, [&done](Expected<void> saved) {
        if (saved.ok()) done.push_back(100);
      });
      QVERIFY(b.node.run_until([&] { return done.size() == 6; }));
      QVERIFY(files->load_block(2).value() == block_of(2));
      QVERIFY(files->load_block(5).error().code == ErrorCode::NotFound);
    }
    // The blocks before the votes on the next one.
    QVERIFY((done == std::vector<int>{0, 1, 2, 3, 4, 100}));
    const auto files = b.open();
    QCOMPARE(files->block_count(), std::uint64_t{5});
    for (std::uint64_t h = 0; h < 5; ++h) QVERIFY(files->load_block(h).value() == block_of(h));
    QVERIFY(files->load_beginning(3, 3).value() == Bytes(3, 4));
    QVERIFY(files->load_beginning(3, 1000).value() == block_of(3));
    QVERIFY(files->load_beginning(5, 3).error().code == ErrorCode::NotFound);
    QVERIFY((files->load(Record::Local).value() == Bytes{1, 2}));
    QVERIFY((files->load(Record::Resume).value() == Bytes{4, 5, 6}));
    QVERIFY(files->load(Record::Votes).value() == Bytes{3});
  }

  void a_block_waits_for_the_state_that_it_names() {
    ChainBench b;
    const auto files = b.open();
    int written = 0;
    files->append_block(0, shared_block(0), [&](Expected<void>) { ++written; });
    bool saved = false;
    files->save(Record::Local, Bytes{1}, [&](Expected<void>) { saved = true; });
    QVERIFY(b.node.run_until([&] { return saved; }));
    QCOMPARE(written, 0);
    files->save_row(0, 7, state_of_row(2));
    files->release();
    QVERIFY(b.node.run_until([&] { return written == 1; }));
    const auto state = files->rows().load(0, 0, 100, 0);
    QVERIFY(state.ok() && state->round == 7 && test::weights_of(state->state)[99] == 2.0f);
    QVERIFY(files->rows().load(1, 0, 100, 0).error().code == ErrorCode::NotFound);
    QVERIFY(files->rows().load(0, 0, 101, 0).error().code == ErrorCode::InvalidArgument);
  }

  void earlier_states_of_a_row_stay() {
    ChainBench b;
    const auto round_of = [&](std::size_t age) -> std::uint64_t {
      const auto state = b.open(2)->rows().load(0, age, 100, 0);
      if (!state.ok()) return 0;
      const float expected = static_cast<float>(state->round);
      return test::weights_of(state->state)[0] == expected ? state->round : 999;
    };
    for (std::uint64_t round = 1; round <= 4; ++round) {
      b.open(2)->save_row(0, round, state_of_row(static_cast<float>(round)));  // written when it is closed
      for (std::uint64_t age = 0; age <= 3; ++age)
        QCOMPARE(round_of(age), age <= 2 && age < round ? round - age : 0);
    }
  }

  void a_row_that_is_given_up_leaves_the_disk() {
    ChainBench b;
    for (const std::uint32_t row : {0u, 1u})
      for (std::uint64_t round = 1; round <= 3; ++round) b.open(2)->save_row(row, round, state_of_row(1.0f));
    b.open(2)->forget_row(0);
    b.open(2)->forget_row(7);  // never held
    const auto files = b.open(2);
    for (std::size_t age = 0; age <= 2; ++age) {
      QVERIFY(files->rows().load(0, age, 100, 0).error().code == ErrorCode::NotFound);
      QVERIFY(files->rows().load(1, age, 100, 0).ok());
    }
  }

  // The blocks on the disk name the state before the one that is being written, or one that a result can be taken back to.
  void a_cut_or_a_full_disk_takes_no_earlier_state() {
    const auto save = [](storage::FileEnv& files, std::uint64_t round) {
      NullLogger logger;
      PumpExecutor node;
      auto opened = ChainFiles::open(files, folder, 2, logger, node);
      if (opened.ok()) (*opened)->save_row(0, round, state_of_row(static_cast<float>(round)));
    };
    const auto rounds_of = [](storage::FileEnv& files) {
      NullLogger logger;
      PumpExecutor node;
      const auto opened = std::move(ChainFiles::open(files, folder, 2, logger, node).value());
      std::set<std::uint64_t> rounds;
      for (std::size_t age = 0; age <= 2; ++age)
        if (const auto state = opened->rows().load(0, age, 100, 0); state.ok()) rounds.insert(state->round);
      return rounds;
    };
    for (const PowerCut kind :
         {PowerCut::OnlySynced, PowerCut::NamesWithoutData, PowerCut::TornData, PowerCut::Everything}) {
      for (std::uint64_t stop = 0;; ++stop) {
        MemoryFileEnv disk;
        for (const std::uint64_t round : {1, 2, 3}) save(disk, round);
        QVERIFY(disk.sync_directory("/d").ok() && disk.sync_directory("/").ok());
        Faults off;
        off.stop_at = stop;
        FaultFileEnv faults(disk, off);
        save(faults, 4);
        disk.power_cut(kind);
        const std::set<std::uint64_t> rounds = rounds_of(disk);
        QVERIFY2(rounds.count(3) == 1 && rounds.count(2) == 1, qPrintable(QString::number(stop)));
        if (stop < faults.changes()) continue;
        QVERIFY((rounds == std::set<std::uint64_t>{2, 3, 4}));
        break;
      }
    }
    MemoryFileEnv disk;
    for (const std::uint64_t round : {1, 2, 3}) save(disk, round);
    disk.set_capacity(disk.used_bytes() + 100);
    for (const std::uint64_t round : {4, 5, 6, 7}) save(disk, round);
    QVERIFY((rounds_of(disk) == std::set<std::uint64_t>{1, 2, 3}));
  }

  void a_new_log_keeps_the_old_one() {
    ChainBench b;
    {
      const auto files = b.open();
      for (std::uint64_t h = 0; h < 3; ++h) files->append_block(h, shared_block(h), [](Expected<void>) {});
      files->begin_log(40, [](Expected<void>) {});
      QVERIFY(!files->load_block(1).ok());
      files->append_block(40, shared_block(40), [](Expected<void>) {});
      files->append_block(41, shared_block(41), [](Expected<void>) {});
      files->drop_last([](Expected<void>) {});
      QCOMPARE(files->block_count(), std::uint64_t{1});
    }
    const auto files = b.open();
    QCOMPARE(files->first_block(), std::uint64_t{40});
    QCOMPARE(files->block_count(), std::uint64_t{1});
    QVERIFY(files->load_block(40).value() == block_of(40));
    const auto old = std::move(BlockLog::open(b.files, folder + "/blocks.1", b.logger).value());
    QCOMPARE(old->count(), std::uint64_t{3});
    QVERIFY(old->read(2).value() == block_of(2));
  }

  void a_torn_tail_is_cut_off() {
    ChainBench b;
    QVERIFY(b.files.create_directories(folder).ok());
    for (std::uint64_t h = 0; h < 3; ++h) QVERIFY(b.log()->append(h, block_of(h)).ok());
    const std::uint64_t whole = b.files.open_read(folder + "/blocks").value()->size();
    for (std::uint64_t cut = 1; cut < 8 + block_of(2).size(); ++cut) {
      ChainBench torn;
      QVERIFY(torn.files.create_directories(folder).ok());
      for (std::uint64_t h = 0; h < 3; ++h) QVERIFY(torn.log()->append(h, block_of(h)).ok());
      torn.disk.truncate(folder + "/blocks", whole - cut);
      const auto log = torn.log();
      QCOMPARE(log->count(), std::uint64_t{2});
      QVERIFY(log->append(2, block_of(9)).ok());
      QVERIFY(torn.log()->read(2).value() == block_of(9));
    }
    b.disk.flip(folder + "/blocks", whole - 1);
    QCOMPARE(b.log()->count(), std::uint64_t{2});
  }

  // At every instant of some appends the machine goes off: what is there is a beginning of the log.
  void a_kill_in_the_middle_of_a_write() {
    for (std::uint64_t stop = 0;; ++stop) {
      MemoryFileEnv disk;
      NullLogger logger;
      QVERIFY(disk.create_directories(folder).ok());
      FaultFileEnv files(disk, {.stop_at = stop, .tear_at_stop = true});
      std::uint64_t written = 0;
      if (auto log = BlockLog::open(files, folder + "/blocks", logger); log.ok())
        while (written < 4 && (*log)->append(written, block_of(written)).ok()) ++written;
      disk.power_cut(PowerCut::Everything);
      const auto after = BlockLog::open(disk, folder + "/blocks", logger);
      QVERIFY2(after.ok(), after.ok() ? "" : after.error().describe().c_str());
      QVERIFY((*after)->count() >= written && (*after)->count() <= written + 1);
      for (std::uint64_t h = 0; h < (*after)->count(); ++h) QVERIFY((*after)->read(h).value() == block_of(h));
      if (stop >= files.changes()) break;
    }
  }

  // Whatever change to the disk fails: the new log has its head, and the old one stays.
  void a_failure_at_the_begin_of_a_log_is_made_up_for() {
    for (std::uint64_t fail = 0;; ++fail) {
      MemoryFileEnv disk;
      NullLogger logger;
      QVERIFY(disk.create_directories(folder).ok());
      {
        const auto old = std::move(BlockLog::open(disk, folder + "/blocks", logger).value());
        for (std::uint64_t h = 0; h < 2; ++h) QVERIFY(old->append(h, block_of(h)).ok());
      }
      FaultFileEnv files(disk, {.fail_at = fail, .room_bytes = {}});
      {
        const auto log = std::move(BlockLog::open(files, folder + "/blocks", logger).value());
        (void)log->restart(40);
        QCOMPARE(log->first(), std::uint64_t{40});
        QVERIFY(!log->read(1).ok());
        std::uint64_t failures = 0;
        for (std::uint64_t h = 40; h < 42;) {
          const bool appended = log->append(h, block_of(h)).ok();
          ++(appended ? h : failures);
        }
        QVERIFY(failures <= 1);
      }
      const auto after = std::move(BlockLog::open(disk, folder + "/blocks", logger).value());
      QCOMPARE(after->first(), std::uint64_t{40});
      QCOMPARE(after->count(), std::uint64_t{2});
      const auto old = std::move(BlockLog::open(disk, folder + "/blocks.1", logger).value());
      QCOMPARE(old->count(), std::uint64_t{2});
      if (fail >= files.changes()) break;
    }
  }

  void a_disk_that_was_full_for_a_night_gets_all_blocks() {
    constexpr std::uint64_t night = 5000;
    ChainBench b;
    const auto files = b.open();
    b.disk.set_capacity(b.disk.used_bytes());
    std::uint64_t failed = 0, saved = 0;
    const auto note = [&](const Expected<void>& written) { ++(written.ok() ? saved : failed); };
    for (std::uint64_t h = 0; h < night; ++h) files->append_block(h, shared_block(h % 10), note);
    files->release();
    QVERIFY(b.node.run_until([&] { return failed == night; }));
    b.disk.set_capacity(std::uint64_t{1} << 30);
    files->append_block(night, shared_block(1), note);
    files->release();
    QVERIFY(b.node.run_until([&] { return saved == 1; }));
    QCOMPARE(b.log()->count(), night + 1);
    QVERIFY(files->load_block(4321).value() == block_of(1));
  }

  void a_full_disk_gets_the_blocks_later() {
    MemoryFileEnv disk;
    NullLogger logger;
    QVERIFY(disk.create_directories(folder).ok());
    FaultFileEnv files(disk, {.fail_at = 8, .room_bytes = {}});
    auto log = std::move(BlockLog::open(files, folder + "/blocks", logger).value());
    std::uint64_t height = 0, failures = 0;
    while (height < 4)
      if (log->append(height, block_of(height)).ok())
        ++height;
      else
        ++failures;
    QCOMPARE(failures, std::uint64_t{1});
    const auto after = std::move(BlockLog::open(disk, folder + "/blocks", logger).value());
    QCOMPARE(after->count(), std::uint64_t{4});
  }
};

NS_TEST(TestChainFiles)
#include "test_chain_files.moc"
