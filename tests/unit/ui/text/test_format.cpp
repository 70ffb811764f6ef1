// Numbers and times as people read them.
#include <QtTest>
#include <limits>

#include "tests/support/test_main.h"
#include "ui/text/format.h"
#include "ui/text/translation.h"

using neuroshard::WallTime;
using neuroshard::ui::Format;
using neuroshard::ui::Language;
using neuroshard::ui::languages;

namespace {
QString plain(QString text) {
  return text.replace(QChar(0x00a0), QLatin1Char(' '));
}
WallTime at(std::int64_t seconds) {
  return WallTime(std::chrono::seconds(seconds));
}
}  // namespace

class FormatTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { QLocale::setDefault(QLocale(QLocale::English, QLocale::UnitedKingdom)); }

  void si_keeps_three_digits() {
    QCOMPARE(plain(Format::si(0)), "0");
    QCOMPARE(plain(Format::si(999)), "999");
    QCOMPARE(plain(Format::si(1240000)), "1.24 M");
    QCOMPARE(plain(Format::si(999600)), "1.00 M");
    QCOMPARE(plain(Format::si(21.97e9)), "22.0 G");
    QCOMPARE(plain(Format::si(std::numeric_limits<double>::infinity())), "—");
  }
  void bytes_are_iec() {
    QCOMPARE(plain(Format::bytes(0)), "0 B");
    QCOMPARE(plain(Format::bytes(1536)), "1.50 KiB");
    QCOMPARE(plain(Format::bytes(1024ull * 1024 - 1)), "1.00 MiB");
    QCOMPARE(plain(Format::bytes(251ull << 20)), "251 MiB");
  }
  void losses_have_four_digits() {
    QCOMPARE(Format::loss(8.39971), "8.400");
    QCOMPARE(Format::loss(0.0123456), "0.01235");
    QCOMPARE(Format::loss(std::numeric_limits<double>::quiet_NaN()), "—");
    QCOMPARE(Format::loss(std::numeric_limits<double>::infinity()), "—");
    QCOMPARE(Format::loss(std::optional<double>()), "—");
    QCOMPARE(Format::significant(0.0003, 3), "0.000300");
    QCOMPARE(Format::significant(3e-6, 2), "3.0E-06");
    QCOMPARE(Format::significant(12345.6, 4), "12,346");
  }
  void shares_and_rates() {
    QCOMPARE(plain(Format::percent(0.123)), "12 %");
    QCOMPARE(plain(Format::percent(0.0312)), "3.1 %");
    QCOMPARE(plain(Format::percent(0)), "0 %");
    QCOMPARE(Format::rate(7132.4), "7,132 tokens/s");
    QCOMPARE(Format::rate(std::nan("")), "—");
  }
  void times() {
    QCOMPARE(plain(Format::seconds(0.84)), "840 ms");
    QCOMPARE(plain(Format::seconds(2.4)), "2.40 s");
    QCOMPARE(plain(Format::seconds(185)), "3 min 5 s");
    QCOMPARE(plain(Format::duration(std::chrono::hours(75))), "3 d 3 h");
    QCOMPARE(Format::ago(at(1000), at(1002)), "just now");
    QCOMPARE(plain(Format::ago(at(1000), at(1000 + 200))), "3 min ago");
    QCOMPARE(plain(Format::ago(at(1000), at(1000 + 3 * 86400))), "3 d ago");
    QCOMPARE(Format::ago(WallTime{}, at(1000)), "—");
    QCOMPARE(Format::date_time(WallTime{}), "—");
  }
  void ends_name_the_day() {
    const WallTime now = at(1'700'000'000);  // 2023-11-14 22:13 UTC
    QCOMPARE(Format::until(now + std::chrono::minutes(30), now), "22:43");
    QCOMPARE(Format::until(now + std::chrono::hours(10), now), "tomorrow 08:13");
    QVERIFY(Format::until(now + std::chrono::hours(80), now).startsWith("Sat 18 Nov"));
  }
  void languages_are_those_with_a_catalogue() {
    const auto all = languages();
    QCOMPARE(all.front().code, "en");
    QCOMPARE(all.front().name, "English");
    for (const Language& one : all) {
      QVERIFY2(QFile::exists(QStringLiteral(":/translations/neuroshard_%1.qm").arg(one.code)),
               qPrintable(one.code));
      QVERIFY(!one.name.isEmpty());
    }
  }
  void ids_lose_their_middle() {
    QCOMPARE(Format::middle_elided("26870dc7719c62a5", 9), "2687…62a5");
    QCOMPARE(Format::middle_elided("short", 9), "short");
  }
};

NS_TEST(FormatTest)
#include "test_format.moc"
