// Places of calls: this user's programs and the invited ones have their own, and one invitation has half.
#include <QtTest>
#include <atomic>
#include <thread>
#include <vector>

#include "core/control/detail/places.h"
#include "tests/support/test_main.h"

using neuroshard::control::detail::Place;
using neuroshard::control::detail::Places;

class TestControlPlaces : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void programs_of_this_user_have_their_own();
  void an_invitation_has_half_of_them();
  void a_place_is_given_back_once();
  void threads_never_have_more_than_there_are();
};

void TestControlPlaces::programs_of_this_user_have_their_own() {
  Places places(2, 4);
  QVERIFY(places.take("a") && places.take("a") && places.take("b") && places.take("b"));
  QVERIFY(!places.take("c"));
  QVERIFY(places.take("") && places.take(""));
  QVERIFY(!places.take(""));
  places.give_back("");
  QVERIFY(!places.take("c"));
  QVERIFY(places.take(""));
}

void TestControlPlaces::an_invitation_has_half_of_them() {
  Places places(0, 3);
  QVERIFY(!places.take(""));
  QVERIFY(places.take("a") && places.take("a"));
  QVERIFY(!places.take("a"));
  QVERIFY(places.take("b"));
  QVERIFY(!places.take("b"));
  places.give_back("a");
  QVERIFY(places.take("b"));
  Places one(0, 1);
  QVERIFY(one.take("a"));
}

void TestControlPlaces::a_place_is_given_back_once() {
  Places places(1, 0);
  {
    const Place first(places, "");
    QVERIFY(first.ok());
    const Place second(places, "");
    QVERIFY(!second.ok());
  }
  QVERIFY(places.take(""));
  QVERIFY(!places.take(""));
}

void TestControlPlaces::threads_never_have_more_than_there_are() {
  Places places(3, 0);
  std::atomic<int> now{0}, most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 1'000; ++turn) {
        const Place place(places, "");
        if (!place.ok()) continue;
        const int has = ++now;
        int seen = most;
        while (has > seen && !most.compare_exchange_weak(seen, has)) {
        }
        --now;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  QVERIFY(most >= 1 && most <= 3);
  QVERIFY(places.take("") && places.take("") && places.take(""));
}

NS_TEST(TestControlPlaces)
#include "test_places.moc"
