// The log files: levels, rotation, and a place that can't be written.
#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include "core/base/log.h"
#include "tests/support/test_main.h"

using namespace neuroshard;

class TestLog : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void records_carry_time_level_and_category();
  void low_levels_stay_out();
  void files_rotate_and_stay_bounded();
  void a_place_that_cannot_be_written_gives_no_logger();
};

namespace {

QByteArray read(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

}  // namespace

void TestLog::records_carry_time_level_and_category() {
  const QTemporaryDir directory;
  FileLogOptions options;
  options.path = directory.filePath("node.log").toStdString();
  {
    const auto logger = make_file_logger(options);
    QVERIFY(logger != nullptr);
    logger->info("data", "tokenizer loaded {}");  // braces are text, not a format
    logger->warning("train", "loss rises");
  }
  const QStringList lines =
      QString::fromUtf8(read(directory.filePath("node.log"))).split('\n', Qt::SkipEmptyParts);
  QCOMPARE(lines.size(), 2);
  const QRegularExpression first(
      R"(^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} info \[data\] tokenizer loaded \{\}$)");
  QVERIFY2(first.match(lines[0]).hasMatch(), qPrintable(lines[0]));
  QVERIFY2(lines[1].contains("warning [train] loss rises"), qPrintable(lines[1]));
}

void TestLog::low_levels_stay_out() {
  const QTemporaryDir directory;
  FileLogOptions options;
  options.path = directory.filePath("node.log").toStdString();
  options.file_level = LogLevel::Warning;
  {
    const auto logger = make_file_logger(options);
    logger->debug("a", "quiet one");
    logger->info("a", "quiet two");
    logger->error("a", "loud");
  }
  const QByteArray text = read(directory.filePath("node.log"));
  QVERIFY(text.contains("loud"));
  QVERIFY(!text.contains("quiet"));
}

void TestLog::files_rotate_and_stay_bounded() {
  const QTemporaryDir directory;
  FileLogOptions options;
  options.path = directory.filePath("node.log").toStdString();
  options.max_bytes = 2000;
  options.files = 3;
  {
    const auto logger = make_file_logger(options);
    for (int i = 0; i < 500; ++i) logger->info("test", "line number " + std::to_string(i));
  }
  const QFileInfoList files = QDir(directory.path()).entryInfoList(QDir::Files);
  QCOMPARE(files.size(), 3);
  QByteArray all;
  for (const QFileInfo& file : files) {
    QVERIFY(file.size() <= 2000);
    all += read(file.filePath());
  }
  QVERIFY(all.contains("line number 499\n"));
  QVERIFY(!all.contains("line number 1\n"));
}

void TestLog::a_place_that_cannot_be_written_gives_no_logger() {
  FileLogOptions options;
  options.path = "/proc/nonexistent/node.log";
  QVERIFY(make_file_logger(options) == nullptr);
  NullLogger nothing;
  nothing.error("a", "b");
}

NS_TEST(TestLog)
#include "test_log.moc"
