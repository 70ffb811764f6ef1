// Power cuts, full and read-only disks, at every step of a save: there is always a complete checkpoint to
// load, and it is the one before or the new one.
#include <QtTest>

#include "core/checkpoint/writer.h"
#include "tests/support/checkpoint_sample.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::checkpoint;
using namespace neuroshard::testing;

namespace {

const char* root = "/data/checkpoints";

struct World {
  World() : older(1), newer(2) {
    NS_CHECK(disk.create_directories(root).ok());
    NS_CHECK(disk.sync_directory("/").ok() && disk.sync_directory("/data").ok());
    auto writer = Writer::open(disk, key, root).value();
    first = writer.save(tiny_manifest(10), older.view())->name;
  }
  // Opens the disk as the next start does, loads, and names what it found: "old", "new" or the trouble.
  std::string found_after_restart() {
    const auto writer = Writer::open(disk, key, root);
    if (!writer.ok()) return writer.error().describe();
    const auto names = disk.list(root).value();
    for (const auto& item : names) {
      if (!is_folder_name(item.name)) return "left over: " + item.name;
    }
    TinyState loaded(9);
    const auto outcome = load_current(disk, Catalogue(disk, root), loaded.request());
    if (!outcome.ok()) return outcome.error().describe();
    if (loaded.same_bits(newer)) return "new";
    return loaded.same_bits(older) && outcome->entry.name == first ? "old" : "a mixture";
  }

  crypto::KeyPair key = tiny_key();
  MemoryFileEnv disk;
  TinyState older, newer;
  std::string first;
};

}  // namespace

class TestFaults : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void power_cut_at_every_instant_data() {
    QTest::addColumn<int>("kind");
    QTest::newRow("only synced data survives") << static_cast<int>(PowerCut::OnlySynced);
    QTest::newRow("names without data") << static_cast<int>(PowerCut::NamesWithoutData);
    QTest::newRow("torn data") << static_cast<int>(PowerCut::TornData);
    QTest::newRow("the program was killed") << static_cast<int>(PowerCut::Everything);
  }
  void power_cut_at_every_instant() {
    QFETCH(int, kind);
    std::uint64_t instants = 0;
    int old_found = 0;
    for (bool saved = false; !saved; ++instants) {
      for (const bool tear : {false, true}) {
        World world;
        FaultFileEnv faults(world.disk, {.stop_at = instants, .tear_at_stop = tear});
        auto writer = Writer::open(faults, world.key, root);
        saved = writer.ok() && writer->save(tiny_manifest(20), world.newer.view()).ok();
        world.disk.power_cut(static_cast<PowerCut>(kind));
        const std::string found = world.found_after_restart();
        QVERIFY2(found == "new" || (found == "old" && !saved),
                 qPrintable(QString("instant %1: %2").arg(instants).arg(QString::fromStdString(found))));
        old_found += found == "old" ? 1 : 0;
      }
      QVERIFY(instants < 500);
    }
    QVERIFY(instants > 10);
    QVERIFY(old_found > 10);
  }

  // One failed operation: the save fails with a clear error, and the next save works.
  void one_failed_operation_costs_one_save() {
    bool saved = false;
    for (std::uint64_t at = 0; !saved; ++at) {
      World world;
      auto writer = Writer::open(world.disk, world.key, root).value();
      FaultFileEnv faults(world.disk, {.fail_at = at});
      auto faulty = Writer::open(faults, world.key, root);
      if (!faulty.ok()) continue;
      const auto outcome = faulty->save(tiny_manifest(20), world.newer.view());
      saved = outcome.ok();
      if (saved) break;
      QCOMPARE(outcome.error().code, ErrorCode::Io);
      QVERIFY(faulty->save(tiny_manifest(20), world.newer.view()).ok());
      QCOMPARE(world.found_after_restart(), std::string("new"));
      QVERIFY(at < 500);
    }
  }

  void full_disk_at_every_size() {
    const std::uint64_t whole = [] {
      World world;
      FaultFileEnv counter(world.disk);
      auto writer = Writer::open(counter, world.key, root).value();
      NS_CHECK(writer.save(tiny_manifest(20), world.newer.view()).ok());
      return counter.appended_bytes();
    }();
    for (std::uint64_t room = 0; room < whole; room += room % 5 == 0 ? 1 : 61) {
      World world;
      FaultFileEnv faults(world.disk, {.room_bytes = room});
      auto writer = Writer::open(faults, world.key, root).value();
      const std::uint64_t used = world.disk.used_bytes();
      const auto outcome = writer.save(tiny_manifest(20), world.newer.view());
      QCOMPARE(outcome.error().code, ErrorCode::Exhausted);
      QCOMPARE(world.disk.used_bytes(), used);  // the half-written one gives its room back
      QCOMPARE(world.found_after_restart(), std::string("old"));
    }
  }

  void a_foreseen_full_disk_is_not_filled() {
    World world;
    world.disk.set_capacity(world.disk.used_bytes() + 1000);
    auto writer = Writer::open(world.disk, world.key, root).value();
    const auto outcome = writer.save(tiny_manifest(20), world.newer.view());
    QCOMPARE(outcome.error().code, ErrorCode::Exhausted);
    QVERIFY(outcome.error().message.find("free") != std::string::npos);
    QCOMPARE(world.found_after_restart(), std::string("old"));
  }

  void read_only_disk() {
    World world;
    FaultFileEnv faults(world.disk, {.read_only = true});
    auto writer = Writer::open(faults, world.key, root);
    QVERIFY(writer.ok());
    QCOMPARE(writer->save(tiny_manifest(20), world.newer.view()).error().code, ErrorCode::Denied);
    QCOMPARE(world.found_after_restart(), std::string("old"));
  }

  // Every file of the newest checkpoint cut off at many sizes: the one before is loaded.
  void torn_files_fall_back() {
    for (const char* file : {"manifest.json", "weights.safetensors", "optimizer.safetensors"}) {
      for (int eighth = 0; eighth < 8; ++eighth) {
        World world;
        auto writer = Writer::open(world.disk, world.key, root).value();
        const std::string name = writer.save(tiny_manifest(20), world.newer.view())->name;
        const std::string path = std::string(root) + "/" + name + "/" + file;
        const std::uint64_t size = world.disk.open_read(path).value()->size();
        world.disk.truncate(path, size * static_cast<std::uint64_t>(eighth) / 8);
        QCOMPARE(world.found_after_restart(), std::string("old"));
      }
    }
  }

  // Deleting is atomic as well: a cut leaves a checkpoint whole or gone, never a damaged one in the list.
  void power_cut_while_deleting() {
    for (const PowerCut kind : {PowerCut::OnlySynced, PowerCut::NamesWithoutData, PowerCut::Everything}) {
      for (std::uint64_t stop = 0; stop < 6; ++stop) {
        World world;
        auto writer = Writer::open(world.disk, world.key, root).value();
        QVERIFY(writer.save(tiny_manifest(20), world.newer.view()).ok());
        FaultFileEnv faults(world.disk, {.stop_at = stop});
        Catalogue catalogue(faults, root);
        (void)catalogue.remove(world.first);
        world.disk.power_cut(kind);
        QCOMPARE(world.found_after_restart(), std::string("new"));
        const auto entries = Catalogue(world.disk, root).list().value();
        for (const Entry& entry : entries) QVERIFY(entry.complete());
      }
    }
  }
};

NS_TEST(TestFaults)
#include "test_faults.moc"
