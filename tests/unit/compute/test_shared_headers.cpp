// The host is C++20, the compute module C++17: what they exchange must have one layout.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/compute/shared_sizes.h"

class TestSharedHeaders : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void both_standards_agree_on_every_size() {
    const std::vector<std::size_t> older = shared_sizes_cpp17();
    QVERIFY(older.size() > 30);
    QVERIFY(older == shared_sizes_cpp20());
  }
};

NS_TEST(TestSharedHeaders)
#include "test_shared_headers.moc"
