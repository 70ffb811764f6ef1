// Versions of this program: which texts are ones, and which is newer.
#include <QtTest>

#include "core/base/version.h"
#include "tests/support/test_main.h"

using namespace neuroshard;

class TestVersion : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_version_is_read_and_written();
  void versions_are_ordered();
  void other_texts_are_refused();
};

void TestVersion::a_version_is_read_and_written() {
  for (const char* text : {"0.0.0", "0.1.0", "12.34.56", "999999.0.1", "0.2.0+git202611250844.b5d1080"})
    QCOMPARE(Version::parse(text).value().text(), std::string(text));
}

void TestVersion::versions_are_ordered() {
  const char* const rising[] = {
      "0.1.0", "0.1.0+git202611250844.b5d1080", "0.1.0+git202611260000.0000000", "0.1.1", "0.2.0", "0.10.0",
      "1.0.0"};
  for (std::size_t i = 0; i < std::size(rising); ++i)
    for (std::size_t j = 0; j < std::size(rising); ++j) {
      const Version a = Version::parse(rising[i]).value(), b = Version::parse(rising[j]).value();
      QCOMPARE(a < b, i < j);
      QCOMPARE(a == b, i == j);
    }
}

void TestVersion::other_texts_are_refused() {
  for (const char* text : {"", "1", "1.2", "1.2.3.4", "v1.2.3", "1.2.x", "1.2.3-rc1", "1.2.3 ", " 1.2.3",
                           "01.2.3", "1.2.3+", "1.2.3+a b", "1.2.3+a/b", "1000000.0.0", "4294967296.0.0",
                           "-1.0.0", "+1.0.0", "1.2.3+12345678901234567890123456789012345678901"})
    QVERIFY2(!Version::parse(text).ok(), text);
}

NS_TEST(TestVersion)
#include "test_version.moc"
