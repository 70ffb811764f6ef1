// Room for rounds: on the disk, with temporary files in memory, or none.
#include <QTest>

#include "core/runtime/disk_room.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::runtime;

namespace {

struct Bench {
  Bench() {
    shape.values = 10'000'000;
    if (!files.create_directories("/d").ok()) qFatal("no folder");
    storage::DiskBudgetOptions options;
    options.folder = "/d";
    budget = storage::DiskBudget::open(files, clock, logger, options, {}).value();
    budget->measure();
    room.emplace(budget, shape, 0, [this] { return spare; });
    shape.contributors = 3;
    cost = rounds::round_cost(shape);
  }
  bool take() { return room->take(3).ok(); }
  void allow(std::uint64_t bytes) { budget->set_limits({0, bytes}); }

  testing::MemoryFileEnv files;
  ManualClock clock;
  NullLogger logger;
  rounds::RoundShape shape;
  rounds::RoundCost cost;
  std::shared_ptr<storage::DiskBudget> budget;
  std::optional<DiskRoom> room;
  std::uint64_t spare = 0;
};

}  // namespace

class TestDiskRoom : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_round_needs_all_that_it_writes() {
    Bench bench;
    QVERIFY(bench.take());  // no limit
    bench.allow(bench.cost.kept + bench.cost.temporary - 1);
    const auto none = bench.room->take(3);
    QVERIFY(!none.ok());
    QVERIFY(none.error().message.find("daily_write_budget") != std::string::npos);
    bench.allow(bench.cost.kept + bench.cost.temporary);
    QVERIFY(bench.take());
  }

  void temporary_files_may_be_in_the_spare_memory() {
    Bench bench;
    bench.allow(bench.cost.kept);
    QVERIFY(!bench.take());
    bench.spare = bench.cost.temporary;
    QVERIFY(bench.take());
    bench.allow(bench.cost.kept - 1);  // anchor and contribution have to be on the disk
    QVERIFY(!bench.take());
  }

  // Temporary files get what is beside that, so a round that has begun can be kept.
  void anchor_and_contribution_have_their_room_kept() {
    Bench bench;
    bench.spare = bench.cost.temporary;
    bench.allow(bench.cost.kept + 1000);
    QVERIFY(bench.take());
    QVERIFY(bench.budget->check(1000).ok() && !bench.budget->check(1001).ok());
    bench.budget->wrote(bench.cost.kept);
    QVERIFY(bench.budget->check(1000).ok());
    QVERIFY(!bench.take());
    bench.clock.advance(24 * test::hour);
    QVERIFY(bench.take());
  }
};

NS_TEST(TestDiskRoom)
#include "test_disk_room.moc"
