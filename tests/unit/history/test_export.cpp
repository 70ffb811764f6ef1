// The history as files: every value once, at the finest that is kept; independent Python reads the event files.
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <cmath>

#include "core/history/event_file.h"
#include "core/history/export.h"
#include "core/history/schema.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::history;
using testing::MemoryFileEnv;

namespace {

const WallTime now(std::chrono::milliseconds(1'700'000'000'500));

class Recorded {
 public:
  Recorded() : database_(storage::Database::open(":memory:").value()) {
    const storage::Migration migrations[] = {{1, schema_v1}};
    NS_CHECK(database_.migrate(migrations).ok());
    store_ = SeriesStore::open(database_).value();
  }
  SeriesStore& store() { return *store_; }
  SeriesSource source() {
    return {store_->names(), [this](const std::string& name, std::int64_t from, std::int64_t to) {
              return store_->query(name, from, to, max_query_buckets);
            }};
  }

 private:
  storage::Database database_;
  std::unique_ptr<SeriesStore> store_;
};

std::string text_of(MemoryFileEnv& disk, const std::string& path) {
  const Bytes bytes = storage::read_file(disk, path, 1 << 24).value();
  return std::string(as_text(bytes));
}

}  // namespace

class TestHistoryExport : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void checksums_are_those_of_the_standard() {
    QCOMPARE(crc32c(as_bytes("123456789")), 0xe3069283u);  // RFC 3720, B.4
    QCOMPARE(crc32c(Bytes(32, 0)), 0x8a9136aau);
    QCOMPARE(crc32c(Bytes(32, 0xff)), 0x62a8ab43u);
  }

  void every_value_is_there_once_data() {
    QTest::addColumn<int>("steps");
    QTest::addColumn<int>("stride");
    QTest::newRow("a few") << 10 << 1;
    QTest::newRow("sparse") << 40 << 500;
    QTest::newRow("more than is kept singly") << 14'000 << 1;
    QTest::newRow("sparse and more than is kept") << 9'000 << 3;
  }
  void every_value_is_there_once() {
    QFETCH(const int, steps);
    QFETCH(const int, stride);
    Recorded recorded;
    for (int i = 1; i <= steps; ++i) {
      QVERIFY(recorded.store().append("loss", std::int64_t{i} * stride, i).ok());
      if (i % 100 == 0) QVERIFY(recorded.store().flush().ok());
    }
    const auto buckets = all_buckets(recorded.source(), "loss");
    QVERIFY(buckets.ok() && !buckets->empty());
    std::uint64_t count = 0;
    double sum = 0;
    std::int64_t end = 0;
    for (const Bucket& bucket : *buckets) {
      QVERIFY(bucket.first >= end);  // none overlaps
      end = bucket.first + bucket.width;
      count += bucket.count;
      sum += bucket.mean * static_cast<double>(bucket.count);
    }
    QCOMPARE(count, static_cast<std::uint64_t>(steps));
    QVERIFY(std::abs(sum - 0.5 * steps * (steps + 1.0)) < 1e-3);
    QCOMPARE(buckets->back().width, std::int64_t{1});  // the newest are single steps
    if (steps <= 4000) QCOMPARE(buckets->size(), static_cast<std::size_t>(steps));
  }

  void tables_have_a_row_for_each_bucket() {
    Recorded recorded;
    for (const int step : {1, 2, 3}) QVERIFY(recorded.store().append("loss", step, 0.5 * step).ok());
    QVERIFY(recorded.store().append("val_loss", 2, 4.125).ok());
    QVERIFY(export_history(disk_, recorded.source(), ExportFormat::Csv, "/h.csv", now).ok());
    QCOMPARE(
        text_of(disk_, "/h.csv"),
        std::string("series,step,steps,values,least,most,mean\nloss,1,1,1,0.5,0.5,0.5\nloss,2,1,1,1,1,1\n"
                    "loss,3,1,1,1.5,1.5,1.5\nval_loss,2,1,1,4.125,4.125,4.125\n"));
    const auto count = export_history(disk_, recorded.source(), ExportFormat::Jsonl, "/h.jsonl", now);
    QCOMPARE(count->rows, std::uint64_t{4});
    QCOMPARE(
        QString::fromStdString(text_of(disk_, "/h.jsonl")).split('\n').at(3),
        QString(
            R"({"series":"val_loss","step":2,"steps":1,"values":1,"least":4.125,"most":4.125,"mean":4.125})"));
    QCOMPARE(export_history(disk_, recorded.source(), ExportFormat::Csv, "/h.csv", now).error().code,
             ErrorCode::AlreadyExists);
  }

  void independent_python_reads_the_event_file() {
    if (!QFile::exists("/usr/bin/python3")) QSKIP("python3 is not installed");
    Recorded recorded;
    for (int step = 1; step <= 300; ++step) {
      QVERIFY(recorded.store().append("loss", step, 8.0 / step).ok());
      if (step % 100 == 0) QVERIFY(recorded.store().append("val_loss", step, 0.25 * step).ok());
    }
    QTemporaryDir folder;
    const auto env = storage::make_posix_file_env();
    const std::string path = folder.filePath("runs").toStdString();
    QVERIFY(export_history(*env, recorded.source(), ExportFormat::TensorBoard, path, now).ok());
    QProcess python;
    python.start("/usr/bin/python3",
                 {qEnvironmentVariable("NS_SOURCE_DIR") + "/tests/golden/tfevents.py",
                  QString::fromStdString(path) + "/events.out.tfevents.1700000000.neuroshard"});
    QVERIFY(python.waitForFinished(30'000));
    QVERIFY2(python.exitCode() == 0, python.readAllStandardError().constData());
    const QList<QByteArray> lines = python.readAllStandardOutput().trimmed().split('\n');
    QCOMPARE(lines.size(), 1 + 300 + 3);
    QCOMPARE(lines[0], QByteArray("version brain.Event:2"));
    QCOMPARE(lines[1], QByteArray("1 loss 8.0 1700000000.5"));
    QCOMPARE(lines[2], QByteArray("2 loss 4.0 1700000000.5"));
    QVERIFY(lines.contains("200 val_loss 50.0 1700000000.5"));
    QCOMPARE(lines.last(), QByteArray("300 val_loss 75.0 1700000000.5"));
  }

  void nothing_recorded_and_a_stop_leave_nothing() {
    Recorded recorded;
    QCOMPARE(export_history(disk_, recorded.source(), ExportFormat::Csv, "/h", now).error().code,
             ErrorCode::NotFound);
    QVERIFY(recorded.store().append("loss", 1, 1).ok());
    CancelSource cancel;
    cancel.cancel();
    for (const ExportFormat format : {ExportFormat::Csv, ExportFormat::TensorBoard})
      QCOMPARE(export_history(disk_, recorded.source(), format, "/h", now, cancel.token()).error().code,
               ErrorCode::Cancelled);
    QVERIFY(!disk_.exists("/h"));
  }

 private:
  MemoryFileEnv disk_;
};

NS_TEST(TestHistoryExport)
#include "test_export.moc"
