// Files without a name: what is written comes back, nothing stays on the disk, and small items stay in memory.
#include <QTemporaryDir>
#include <QTest>
#include <filesystem>

#include "core/storage/file_spool.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::storage;

namespace {

Bytes pattern(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + (i >> 8));
  return bytes;
}

std::uint64_t files_in(const QTemporaryDir& folder) {
  std::uint64_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path().toStdString()))
    files += entry.is_regular_file() ? 1 : 0;
  return files;
}

// Open files of this process below the folder.
std::uint64_t open_below(const QTemporaryDir& folder) {
  std::uint64_t open = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code code;
    const std::string target = std::filesystem::read_symlink(entry, code).string();
    open += target.rfind(folder.path().toStdString(), 0) == 0 ? 1 : 0;
  }
  return open;
}

}  // namespace

class TestFileSpool : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void parts_in_any_order_come_back_and_no_file_stays() {
    const QTemporaryDir folder;
    const auto spool = make_file_spool({folder.filePath("spool").toStdString(), 0});
    const Bytes all = pattern(100'000);
    auto item = spool->create(200'000).value();
    QVERIFY(item->write_at(60'000, ByteSpan(all).subspan(60'000)).ok());
    QVERIFY(item->write_at(0, ByteSpan(all).first(60'000)).ok());
    ByteSourcePtr made = item->finish(100'000).value();
    item.reset();
    QCOMPARE(made->size(), std::uint64_t{100'000});
    QVERIFY(read_all(*made).value() == all);
    Bytes some(10);
    QVERIFY(made->read_at(99'990, some).ok() && some == Bytes(all.end() - 10, all.end()));
    QVERIFY(made->read_at(99'991, some).error().code == ErrorCode::Corrupt);
    QCOMPARE(files_in(folder), std::uint64_t{0});
    QCOMPARE(open_below(folder), std::uint64_t{1});
    made.reset();
    QCOMPARE(open_below(folder), std::uint64_t{0});
  }

  // Also when nobody holds it any more, and when it was never finished.
  void what_fits_stays_in_memory() {
    const QTemporaryDir folder;
    const auto spool = make_file_spool({folder.filePath("spool").toStdString(), 1000});
    const Bytes all = pattern(600);
    const auto make = [&] {
      auto item = spool->create(600).value();
      return item->write_at(0, all).ok() ? item->finish(600).value() : nullptr;
    };
    ByteSourcePtr first = make(), second = make();
    QVERIFY(read_all(*first).value() == all && read_all(*second).value() == all);
    QCOMPARE(open_below(folder), std::uint64_t{1});  // the second
    first.reset();
    const ByteSourcePtr third = make();
    QCOMPARE(open_below(folder), std::uint64_t{1});
    second.reset();
    QCOMPARE(open_below(folder), std::uint64_t{0});
    QVERIFY(spool->create(300).ok());
    const ByteSourcePtr fourth = [&] {
      auto item = spool->create(300).value();
      return item->finish(0).value();
    }();
    QCOMPARE(open_below(folder), std::uint64_t{0});
  }

  // By the user's limits; with too little memory as well, the reason is the disk's.
  void without_room_on_the_disk_items_stay_in_the_spare_memory() {
    const QTemporaryDir folder;
    const auto files = make_posix_file_env();
    SystemClock clock;
    NullLogger logger;
    DiskBudgetOptions options;
    options.folder = folder.path().toStdString();
    const auto budget = DiskBudget::open(*files, clock, logger, options, {0, 10'000}).value();
    budget->measure();
    std::uint64_t spare = 5000;
    const auto spool =
        make_file_spool({folder.filePath("spool").toStdString(), 1000, budget, [&] { return spare; }});
    const auto make = [&](std::uint64_t bytes) -> ByteSourcePtr {
      auto item = spool->create(bytes);
      if (!item.ok()) return nullptr;
      const Bytes all = pattern(static_cast<std::size_t>(bytes));
      const ByteSourcePtr made = (*item)->write_at(0, all).ok() ? (*item)->finish(bytes).value() : nullptr;
      return made && read_all(*made).value() == all ? made : nullptr;
    };
    ByteSourcePtr first = make(7000);  // on the disk
    QVERIFY(first);
    QCOMPARE(open_below(folder), std::uint64_t{1});
    QCOMPARE(budget->written_today(), std::uint64_t{7000});
    QCOMPARE(budget->space_used(), std::uint64_t{7000});
    ByteSourcePtr second = make(4000);  // in memory: the budget has 3000
    QVERIFY(second);
    QCOMPARE(open_below(folder), std::uint64_t{1});
    const auto third = spool->create(4000);
    QVERIFY(!third.ok());
    QVERIFY(third.error().message.find("daily_write_budget") != std::string::npos);
    second.reset();
    QVERIFY(make(4000));
    spare = 0;
    QVERIFY(!spool->create(4000).ok());
    QVERIFY(make(2000));  // on the disk
    first.reset();
    QCOMPARE(budget->space_used(), std::uint64_t{0});
    QCOMPARE(budget->written_today(), std::uint64_t{9000});
  }

  // A peer may announce a payload and give a small part of it.
  void room_that_nobody_wrote_does_not_count_for_the_day() {
    const QTemporaryDir folder;
    const auto files = make_posix_file_env();
    SystemClock clock;
    NullLogger logger;
    DiskBudgetOptions options;
    options.folder = folder.path().toStdString();
    const auto budget = DiskBudget::open(*files, clock, logger, options, {0, 10'000}).value();
    budget->measure();
    const auto spool = make_file_spool({folder.filePath("spool").toStdString(), 1000, budget, {}});
    auto item = spool->create(7000);
    QVERIFY(item.ok());
    QVERIFY(!spool->create(4000).ok());  // the first item may still be written
    const Bytes part = pattern(100);
    QVERIFY((*item)->write_at(0, part).ok() && (*item)->write_at(0, part).ok());
    item->reset();
    QCOMPARE(budget->written_today(), std::uint64_t{200});
    QCOMPARE(budget->space_used(), std::uint64_t{0});
    QVERIFY(spool->create(9000).ok());
  }

  void a_full_disk_keeps_items_in_the_spare_memory() {
    const QTemporaryDir folder;
    const auto spool = make_file_spool(
        {folder.filePath("spool").toStdString(), 0, nullptr, [] { return std::uint64_t{1} << 61; }});
    // The folder of the spool is a file: nothing can be created there.
    QFile in_the_way(folder.filePath("spool"));
    QVERIFY(in_the_way.open(QIODevice::WriteOnly));
    auto item = spool->create(5000);
    QVERIFY(item.ok());
    QVERIFY((*item)->write_at(0, pattern(5000)).ok());
    QVERIFY(read_all(*(*item)->finish(5000).value()).value() == pattern(5000));
  }

  void a_full_disk_is_said_before_anything_is_written() {
    const QTemporaryDir folder;
    const auto spool = make_file_spool({folder.filePath("spool").toStdString(), 0});
    const auto item = spool->create(std::uint64_t{1} << 60);
    QVERIFY(!item.ok());
    QCOMPARE(item.error().code, ErrorCode::Exhausted);
    QVERIFY(item.error().message.find("spool") != std::string::npos);
  }

  void a_replaced_file_stays_what_it_was() {
    const QTemporaryDir folder;
    const auto files = make_posix_file_env();
    const std::string path = folder.filePath("record").toStdString();
    QVERIFY(open_bytes(*files, path).error().code == ErrorCode::NotFound);
    const Bytes first = pattern(3'000'000), second = pattern(5);
    QVERIFY(copy_to_file(*files, path, BytesView(first)).ok());
    const ByteSourcePtr held = open_bytes(*files, path).value();
    QVERIFY(copy_to_file(*files, path, BytesView(second)).ok());
    QVERIFY(read_all(*held).value() == first);
    QVERIFY(read_all(*open_bytes(*files, path).value()).value() == second);
    QCOMPARE(files_in(folder), std::uint64_t{1});
  }
};

NS_TEST(TestFileSpool)
#include "test_file_spool.moc"
