// The user's limits on the disk: what counts, what has no room, and when there is room again.
#include <QTemporaryDir>
#include <QTest>
#include <filesystem>

#include "core/storage/counted_files.h"
#include "core/storage/disk_budget.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::storage;

namespace {

constexpr std::uint64_t mebi = 1u << 20;

QByteArray why(const Expected<void>& room) {
  return room.ok() ? QByteArray() : QByteArray::fromStdString(room.error().describe());
}

}  // namespace

class TestDiskBudget : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    files_ = std::make_unique<testing::MemoryFileEnv>();
    clock_ = std::make_unique<ManualClock>();
    options_ = {};
    options_.folder = "/d";
    QVERIFY(files_->create_directories("/d/checkpoints/one").ok());
    QVERIFY(files_->create_directories("/d/chain").ok());
    write("/d/chain/row-0", 3 * mebi);
    write("/d/checkpoints/one/model", 10 * mebi);
  }

  void a_day_has_a_budget_and_the_next_one_a_new_one() {
    const auto budget = open({0, 100 * mebi});
    QVERIFY(budget->check(100 * mebi).ok());
    budget->wrote(60 * mebi);
    budget->hold(30 * mebi);
    QVERIFY(budget->check(10 * mebi).ok());
    QVERIFY2(why(budget->check(10 * mebi + 1)).contains("daily_write_budget"),
             why(budget->check(10 * mebi + 1)).constData());
    QCOMPARE(budget->check(10 * mebi + 1).error().code, ErrorCode::Exhausted);
    budget->wrote_held(30 * mebi, 30 * mebi);
    budget->give_back(30 * mebi, 0);  // was written all the same
    QVERIFY(!budget->check(11 * mebi).ok());
    budget->hold(5 * mebi);
    QVERIFY(!budget->check(6 * mebi).ok());
    budget->give_back(5 * mebi, 5 * mebi);
    QVERIFY(budget->check(10 * mebi).ok());
    budget->set_limits({0, 200 * mebi});
    QVERIFY(budget->check(100 * mebi).ok());
    budget->set_limits({0, 100 * mebi});
    clock_->advance(24 * test::hour);
    QVERIFY(budget->check(100 * mebi).ok());
    QCOMPARE(budget->written_today(), std::uint64_t{0});
  }

  // Neither after a clean stop nor after a kill.
  void a_restart_does_not_give_the_day_again() {
    {
      const auto budget = open({0, 100 * mebi});
      budget->wrote(95 * mebi);
    }
    QVERIFY(!open({0, 100 * mebi})->check(6 * mebi).ok());
    {
      const auto budget = open({0, 0});
      QVERIFY(budget->written_today() >= 95 * mebi);
    }
    QVERIFY(files_->remove_file("/d/writes.day").ok());
    {
      const auto budget = open({0, 0});
      budget->wrote(12345);
      budget->save();
    }
    const auto budget = open({0, 0});
    QCOMPARE(budget->written_today(), std::uint64_t{12345});
    // Another count of the same day.
    budget->written_at_least(utc_day(clock_->wall_now()), 20'000);
    budget->written_at_least(utc_day(clock_->wall_now()), 15'000);
    budget->written_at_least(utc_day(clock_->wall_now()) - 1, 90'000);
    QCOMPARE(budget->written_today(), std::uint64_t{20'000});
    const std::uint64_t space = budget->space_used();
    budget->count(3000);
    QCOMPARE(budget->written_today(), std::uint64_t{23'000});
    QCOMPARE(budget->space_used(), space);
  }

  void a_clock_that_was_wrong_by_years_stops_nothing_for_years() {
    clock_->advance(50 * 365 * 24 * test::hour);
    open({0, 100 * mebi})->wrote(95 * mebi);
    clock_ = std::make_unique<ManualClock>();
    QVERIFY(!open({0, 100 * mebi})->check(40 * mebi).ok());  // written today, as far as is known
    clock_->advance(24 * test::hour);
    QVERIFY(open({0, 100 * mebi})->check(100 * mebi).ok());
  }

  // As of a computer that keeps no time while it is off: its clock is right some moments after the start.
  void a_clock_that_starts_far_in_the_past_erases_nothing() {
    constexpr auto years = 50 * 365 * 24 * test::hour;
    clock_->advance(years);
    {
      const auto budget = open({0, 100 * mebi});
      budget->wrote(95 * mebi);
      budget->save();
    }
    clock_ = std::make_unique<ManualClock>();
    const auto budget = open({0, 100 * mebi});
    budget->wrote(mebi);
    clock_->advance(years);
    QCOMPARE(budget->written_today(), 96 * mebi);
    budget->wrote(mebi);
    QVERIFY(open({})->written_today() >= 97 * mebi);
    clock_->advance(24 * test::hour);
    QCOMPARE(budget->written_today(), std::uint64_t{0});
  }

  // Else each message of a peer would try to write a file.
  void a_full_disk_is_tried_once_a_piece() {
    testing::FaultFileEnv full(*files_, {.room_bytes = 0});
    auto count = PeriodCount::open(full, "/d/count", "NSXX", "bytes", 1);
    QVERIFY(count.ok() && !count->add(100, 1).ok());
    const std::uint64_t once = full.changes();
    for (int i = 1; i < 1000; ++i) QVERIFY(!count->add(100, 1).ok());
    QCOMPARE(full.changes(), once);
    QCOMPARE(count->used(1), std::uint64_t{100'000});
    QVERIFY(!count->add(16 * mebi, 1).ok());
    QCOMPARE(full.changes(), 2 * once);
  }

  void a_count_that_is_not_written_is_told_once() {
    struct Warnings final : Logger {
      void write(const LogRecord& record) override { told += record.level == LogLevel::Warning ? 1 : 0; }
      int told = 0;
    } logger;
    testing::FaultFileEnv full(*files_, {.room_bytes = 0});
    const auto budget = DiskBudget::open(full, *clock_, logger, options_, {});
    QVERIFY(budget.ok());
    for (int i = 0; i < 1000; ++i) (*budget)->wrote(100);
    (*budget)->wrote(20 * mebi);
    QCOMPARE(logger.told, 1);
  }

  void the_space_is_all_but_the_checkpoints_that_can_be_deleted() {
    options_.excluded = "checkpoints";
    options_.kept_of_excluded = [] { return 2 * mebi; };
    const auto budget = open({20 * mebi, 0});
    QVERIFY(budget->check(15 * mebi).ok());
    QVERIFY(!budget->check(15 * mebi + 1).ok());
    QVERIFY2(why(budget->check(16 * mebi)).contains("disk_limit"), why(budget->check(16 * mebi)).constData());
    budget->hold(5 * mebi);
    QCOMPARE(budget->space_used(), 8 * mebi);
    QVERIFY(!budget->check(11 * mebi).ok());
    budget->give_back(5 * mebi, 5 * mebi);
    budget->wrote(10 * mebi);  // in place of what was there, it turns out
    QVERIFY(!budget->check(6 * mebi).ok());
    budget->measure();
    QVERIFY(budget->check(14 * mebi).ok());  // the count of the day is a file as well
    budget->set_limits({4 * mebi, 0});
    QVERIFY(!budget->check(1).ok());
  }

  void what_is_reserved_is_nobody_elses() {
    const auto budget = open({0, 100 * mebi});
    budget->reserve(70 * mebi);
    QVERIFY(budget->check(30 * mebi).ok() && !budget->check(31 * mebi).ok());
    budget->wrote(50 * mebi);
    QVERIFY(budget->check(30 * mebi).ok() && !budget->check(31 * mebi).ok());
    budget->wrote(40 * mebi);  // more than was reserved
    QVERIFY(budget->check(10 * mebi).ok() && !budget->check(11 * mebi).ok());
  }

  void a_full_disk_has_no_room_either() {
    options_.least_free = 7 * mebi;
    files_->set_capacity(40 * mebi);  // 13 in use
    const auto budget = open({});
    QVERIFY(budget->check(20 * mebi).ok());
    QVERIFY2(why(budget->check(21 * mebi)).contains("free some space"),
             why(budget->check(21 * mebi)).constData());
    budget->hold(15 * mebi);
    QVERIFY(!budget->check(6 * mebi).ok());
    files_->set_capacity(400 * mebi);
    budget->measure();
    QVERIFY(budget->check(21 * mebi).ok());
  }

  // No midnight helps then, and nothing that a person could delete.
  void a_limit_below_one_round_says_how_far_to_raise_it() {
    const QByteArray day = why(open({0, 20 * mebi})->check(30 * mebi + 1));
    QVERIFY2(day.contains("daily_write_budget is 20 MiB") && day.contains("31 MiB"), day.constData());
    QVERIFY2(!day.contains("midnight"), day.constData());
    const QByteArray space = why(open({20 * mebi, 0})->check(30 * mebi));
    QVERIFY2(space.contains("disk_limit is 20 MiB") && space.contains("30 MiB"), space.constData());
  }

  // It is logged once.
  void the_reason_is_the_same_text_as_long_as_it_is_the_same() {
    const auto budget = open({0, 10 * mebi});
    const QByteArray before = why(budget->check(20 * mebi));
    budget->wrote(mebi / 2);
    QCOMPARE(why(budget->check(20 * mebi)), before);
  }

  void before_the_first_measurement_there_is_room() {
    auto budget = DiskBudget::open(*files_, *clock_, logger_, options_, {1, 1});
    QVERIFY(budget.ok() && (*budget)->check(100 * mebi).ok());
    (*budget)->measure();
    QVERIFY(!(*budget)->check(2).ok());
  }

  void a_damaged_count_says_what_to_do() {
    write("/d/writes.day", 16);
    const auto budget = DiskBudget::open(*files_, *clock_, logger_, options_, {});
    QCOMPARE(budget.error().code, ErrorCode::Corrupt);
    QVERIFY(budget.error().message.find("remove it") != std::string::npos);
  }

  void writes_through_counted_files_count() {
    const auto budget = open({});
    const auto counted = make_counted_files(*files_, budget);
    QVERIFY(write_file_atomic(*counted, "/d/chain/votes", Bytes(1000)).ok());
    auto log = counted->open_append("/d/chain/blocks").value();
    QVERIFY(log->append(Bytes(23)).ok() && log->append(Bytes(77)).ok() && log->close().ok());
    QCOMPARE(budget->written_today(), std::uint64_t{1100});
    QCOMPARE(read_file(*counted, "/d/chain/votes", mebi)->size(), std::size_t{1000});
    QCOMPARE(budget->written_today(), std::uint64_t{1100});
  }

  // The owner may move a folder to another disk; what programs link deeper may be anything.
  void links_below_the_first_level_are_not_followed() {
    const QTemporaryDir folder;
    const std::string root = folder.filePath("d").toStdString(), big = folder.filePath("big").toStdString();
    const auto disk = make_posix_file_env();
    QVERIFY(disk->create_directories(root + "/data").ok() && disk->create_directories(big).ok());
    QVERIFY(write_file_atomic(*disk, big + "/text", Bytes(1000)).ok());
    for (const std::string& link : {root + "/moved", root + "/data/other", big + "/itself"})
      std::filesystem::create_directory_symlink(big, link);
    std::filesystem::create_symlink(big + "/text", root + "/data/copy");
    options_.folder = root;
    const auto budget = DiskBudget::open(*disk, *clock_, logger_, options_, {});
    QVERIFY(budget.ok());
    (*budget)->measure();
    QCOMPARE((*budget)->space_used(), std::uint64_t{1000});
    QCOMPARE(tree_bytes(*disk, root), std::uint64_t{1000});
    QVERIFY(disk->list(root)->back().is_link && !disk->list(big)->back().is_link);
  }

  // As the machine's disk has them, with locks and names of their own.
  void counted_files_have_temporary_and_existing_ones() {
    const QTemporaryDir folder;
    const std::string path = folder.filePath("file").toStdString();
    const auto disk = make_posix_file_env();
    const auto budget = open({});
    const auto counted = make_counted_files(*disk, budget);
    auto temporary = counted->open_temporary(path, {});
    QVERIFY(temporary.ok() && temporary->path != path + ".tmp-0000000000000000");
    QVERIFY(temporary->file->append(Bytes(10)).ok() && temporary->file->close().ok());
    QCOMPARE(counted->remove_leftovers(folder.path().toStdString(), LeftoverScope::Folder), std::size_t{0});
    temporary->file.reset();
    QCOMPARE(counted->remove_leftovers(folder.path().toStdString(), LeftoverScope::Folder), std::size_t{1});
    QVERIFY(write_file_atomic(*counted, path, Bytes(20)).ok());
    auto existing = counted->open_existing(path);
    QVERIFY(existing.ok() && (*existing)->append(Bytes(5)).ok() && (*existing)->close().ok());
    QCOMPARE(budget->written_today(), std::uint64_t{35});
  }

 private:
  std::shared_ptr<DiskBudget> open(const DiskLimits& limits) {
    auto budget = DiskBudget::open(*files_, *clock_, logger_, options_, limits);
    if (!budget.ok()) qFatal("%s", budget.error().describe().c_str());
    (*budget)->measure();
    return *budget;
  }
  void write(const std::string& path, std::uint64_t bytes) {
    auto file = files_->open_write(path, false).value();
    QVERIFY(file->append(Bytes(static_cast<std::size_t>(bytes))).ok() && file->close().ok());
  }

  std::unique_ptr<testing::MemoryFileEnv> files_;
  std::unique_ptr<ManualClock> clock_;
  DiskBudgetOptions options_;
  NullLogger logger_;
};

NS_TEST(TestDiskBudget)
#include "test_disk_budget.moc"
