// A log without secrets: the message loses them, and the rest of a record stays.
#include <QtTest>

#include "core/base/redacting_logger.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT

namespace {

struct Keeper final : Logger {
  void write(const LogRecord& record) override { last = record; }
  LogRecord last;
};

}  // namespace

class TestRedactingLogger : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void passes_records_on_without_secrets();
  void the_same_value_has_the_same_number_in_all_records();
};

void TestRedactingLogger::passes_records_on_without_secrets() {
  Keeper keeper;
  const auto logger = make_redacting_logger(keeper, Redactor(Redactor::Options{}));
  logger->warning("wallet", "opened with token " + std::string(64, 'a'));
  QCOMPARE(keeper.last.level, LogLevel::Warning);
  QCOMPARE(keeper.last.category, std::string("wallet"));
  QCOMPARE(keeper.last.message, std::string("opened with token <id 1>"));
}

void TestRedactingLogger::the_same_value_has_the_same_number_in_all_records() {
  Keeper keeper;
  const auto logger = make_redacting_logger(keeper, Redactor(Redactor::Options{}));
  logger->info("peers", "connected " + std::string(64, 'a'));
  logger->info("peers", "connected " + std::string(64, 'b'));
  QCOMPARE(keeper.last.message, std::string("connected <id 2>"));
  logger->info("peers", "left " + std::string(64, 'a'));
  QCOMPARE(keeper.last.message, std::string("left <id 1>"));
}

NS_TEST(TestRedactingLogger)
#include "test_redacting_logger.moc"
