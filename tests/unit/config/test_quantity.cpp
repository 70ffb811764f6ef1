// Numbers with a unit: what people write is read, and nothing else; what is written is read back.
#include <QtTest>
#include <limits>

#include "core/base/rng.h"
#include "core/config/detail/quantity.h"
#include "tests/support/test_main.h"

using namespace neuroshard::config::detail;  // NOLINT

namespace {

constexpr std::uint64_t tib = std::uint64_t{1} << 40;
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

}  // namespace

class TestQuantity : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void units_are_read_data();
  void units_are_read();
  void other_texts_are_none_data();
  void other_texts_are_none();
  void no_number_wraps_around();
  void the_largest_whole_unit_is_written();
  void every_number_is_read_back();
};

void TestQuantity::units_are_read_data() {
  QTest::addColumn<int>("kind");
  QTest::addColumn<QString>("text");
  QTest::addColumn<qulonglong>("number");
  const auto row = [](Quantity kind, const char* text, qulonglong number) {
    QTest::newRow(text) << static_cast<int>(kind) << text << number;
  };
  row(Quantity::Count, "0", 0);
  row(Quantity::Count, "1024", 1024);
  row(Quantity::Bytes, "7b", 7);
  row(Quantity::Bytes, "2k", 2ULL << 10);
  row(Quantity::Bytes, "2kb", 2ULL << 10);
  row(Quantity::Bytes, "2kib", 2ULL << 10);
  row(Quantity::Bytes, "3 \t gib", 3ULL << 30);
  row(Quantity::Bytes, "4t", 4ULL << 40);
  row(Quantity::Seconds, "90", 90);
  row(Quantity::Seconds, "90 sec", 90);
  row(Quantity::Seconds, "5m", 300);
  row(Quantity::Seconds, "2h", 7200);
  row(Quantity::Seconds, "1d", 86'400);
  row(Quantity::Seconds, "2 day", 172'800);
}

void TestQuantity::units_are_read() {
  QFETCH(int, kind);
  QFETCH(QString, text);
  const auto number = parse_quantity(static_cast<Quantity>(kind), text.toStdString());
  QVERIFY(number.has_value());
  QTEST(static_cast<qulonglong>(*number), "number");
}

void TestQuantity::other_texts_are_none_data() {
  QTest::addColumn<int>("kind");
  QTest::addColumn<QString>("text");
  const auto row = [](Quantity kind, const char* text) {
    QTest::addRow("%d %s", static_cast<int>(kind), text) << static_cast<int>(kind) << text;
  };
  for (const Quantity kind : {Quantity::Count, Quantity::Bytes, Quantity::Seconds}) {
    for (const char* text : {"", "-1", "+1", "many", "1.5", "1e3", "0x10", "1 2", "k"}) row(kind, text);
  }
  row(Quantity::Count, "1k");
  row(Quantity::Count, "1s");
  row(Quantity::Bytes, "1min");
  row(Quantity::Bytes, "1mibs");
  row(Quantity::Seconds, "1mib");
  row(Quantity::Seconds, "1hour");
}

void TestQuantity::other_texts_are_none() {
  QFETCH(int, kind);
  QFETCH(QString, text);
  QVERIFY(!parse_quantity(static_cast<Quantity>(kind), text.toStdString()));
}

void TestQuantity::no_number_wraps_around() {
  QVERIFY(parse_quantity(Quantity::Count, "18446744073709551615") == most);
  QVERIFY(!parse_quantity(Quantity::Count, "18446744073709551616"));
  QVERIFY(parse_quantity(Quantity::Bytes, "16777215tib") == 16'777'215 * tib);
  QVERIFY(!parse_quantity(Quantity::Bytes, "16777216tib"));
  QVERIFY(!parse_quantity(Quantity::Seconds, "18446744073709551615 min"));
}

void TestQuantity::the_largest_whole_unit_is_written() {
  QCOMPARE(format_quantity(Quantity::Bytes, 2 * tib), std::string("2TiB"));
  QCOMPARE(format_quantity(Quantity::Bytes, tib + (tib >> 10)), std::string("1025GiB"));
  QCOMPARE(format_quantity(Quantity::Bytes, 1025), std::string("1025"));
  QCOMPARE(format_quantity(Quantity::Seconds, 7200), std::string("2h"));
  QCOMPARE(format_quantity(Quantity::Seconds, 5400), std::string("90min"));
  QCOMPARE(format_quantity(Quantity::Seconds, 61), std::string("61s"));
  QCOMPARE(format_quantity(Quantity::Count, 1024), std::string("1024"));
  for (const Quantity kind : {Quantity::Count, Quantity::Bytes, Quantity::Seconds})
    QCOMPARE(format_quantity(kind, 0), std::string("0"));
}

void TestQuantity::every_number_is_read_back() {
  neuroshard::Rng rng(1);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t number = rng.next() >> rng.below(64);
    for (const Quantity kind : {Quantity::Count, Quantity::Bytes, Quantity::Seconds}) {
      QString text = QString::fromStdString(format_quantity(kind, number));
      QVERIFY2(parse_quantity(kind, text.toLower().toStdString()) == number, qPrintable(text));
    }
  }
}

NS_TEST(TestQuantity)
#include "test_quantity.moc"
