#include <QtTest>
#include <functional>
#include <optional>

#include "core/base/lifetime.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT

namespace {

struct Counter {
  int count = 0;
  Lifetime lifetime;
  std::function<bool()> callback() {
    return [this, life = lifetime.token()] {
      if (!life.alive()) return false;
      ++count;
      return true;
    };
  }
};

}  // namespace

class TestLifetime : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void callback_reaches_a_live_object();
  void callback_leaves_a_destroyed_object_alone();
  void end_turns_every_token();
};

void TestLifetime::callback_reaches_a_live_object() {
  Counter counter;
  QVERIFY(counter.callback()());
  QCOMPARE(counter.count, 1);
}

void TestLifetime::callback_leaves_a_destroyed_object_alone() {
  std::optional<Counter> counter(std::in_place);
  const auto callback = counter->callback();
  const auto copy = callback;
  counter.reset();
  QVERIFY(!callback());
  QVERIFY(!copy());
}

void TestLifetime::end_turns_every_token() {
  Counter counter;
  const auto callback = counter.callback();
  counter.lifetime.end();
  QVERIFY(!callback());
  QVERIFY(!counter.lifetime.token().alive());
  QCOMPARE(counter.count, 0);
}

NS_TEST(TestLifetime)
#include "test_lifetime.moc"
