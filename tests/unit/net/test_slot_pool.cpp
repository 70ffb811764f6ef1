// Places among strangers, known peers and voters, and that none of them takes what is kept for the others.
#include <QtTest>

#include "core/net/address_group.h"
#include "core/net/slot_pool.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

constexpr SlotLimits limits{.all = 100, .per_peer = 10, .per_group = 20, .for_known = 30, .for_control = 10};

SlotUser user(std::uint8_t id, std::uint64_t group, PeerRank rank = PeerRank::Stranger,
              bool control = false) {
  SlotUser user{{}, group, rank, control};
  user.id.fill(id);
  return user;
}

// How many of `wanted` places users of one kind get, each under another id.
int taken(SlotPool& pool, int wanted, std::uint64_t groups, PeerRank rank, bool control = false,
          int first = 0) {
  int count = 0;
  for (int i = 0; i < wanted; ++i)
    count += pool.take(
        user(static_cast<std::uint8_t>(first + i), static_cast<std::uint64_t>(i) % groups, rank, control));
  return count;
}

}  // namespace

class TestSlotPool : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_peer_has_its_share();
  void an_address_group_has_its_share();
  void strangers_leave_room_for_members_and_members_for_votes();
  void places_come_back();
  void home_addresses_are_groups_of_their_own();
};

void TestSlotPool::a_peer_has_its_share() {
  SlotPool pool(limits);
  int count = 0;
  for (int i = 0; i < 50; ++i) count += pool.take(user(1, 1, PeerRank::Voter));
  QCOMPARE(count, 10);
  QVERIFY(!pool.take(user(1, 2)));
  QVERIFY(pool.take(user(2, 1)));
  SlotPool known(
      {.all = 100, .per_peer = 10, .per_group = 0, .for_known = 30, .for_control = 0, .per_known_peer = 25});
  count = 0;
  for (int i = 0; i < 50; ++i) count += known.take(user(1, 1, PeerRank::Known));
  QCOMPARE(count, 25);
  count = 0;
  for (int i = 0; i < 50; ++i) count += known.take(user(2, 1));
  QCOMPARE(count, 10);
}

void TestSlotPool::an_address_group_has_its_share() {
  SlotPool pool(limits);
  QCOMPARE(taken(pool, 100, 1, PeerRank::Stranger), 20);
  QVERIFY(pool.take(user(200, 7)));
  QVERIFY(pool.take(user(201, 0, PeerRank::Known)));  // a member behind the same address
  SlotPool lan({.all = 100, .per_peer = 10, .per_group = 0, .for_known = 30, .for_control = 10});
  QCOMPARE(taken(lan, 100, 1, PeerRank::Stranger), 60);
}

void TestSlotPool::strangers_leave_room_for_members_and_members_for_votes() {
  SlotPool pool(limits);
  QCOMPARE(taken(pool, 100, 50, PeerRank::Stranger), 60);
  QCOMPARE(taken(pool, 100, 50, PeerRank::Known, true, 100), 30);
  QCOMPARE(taken(pool, 20, 50, PeerRank::Voter, false, 200), 0);
  QCOMPARE(taken(pool, 20, 50, PeerRank::Voter, true, 200), 10);
  QCOMPARE(pool.taken(), std::size_t{100});
}

void TestSlotPool::places_come_back() {
  SlotPool pool(limits);
  for (int round = 0; round < 3; ++round) {
    QVERIFY(pool.take(user(1, 1), 7));
    QVERIFY(!pool.take(user(1, 1), 4));
    pool.give_back(user(1, 1), 7);
    QCOMPARE(pool.taken(), std::size_t{0});
  }
}

void TestSlotPool::home_addresses_are_groups_of_their_own() {
  const auto group = [](const char* text) { return limit_group(*platform::parse_ip(text)); };
  QCOMPARE(group("1.2.3.4"), group("1.2.3.200"));
  QVERIFY(group("1.2.3.4") != group("1.2.4.4"));
  QCOMPARE(group("2a00:1:2:3::1"), group("2a00:1:2:ffff::2"));
  QVERIFY(group("2a00:1:2::1") != group("2a00:1:3::1"));
  QVERIFY(group("192.168.1.1") != group("192.168.1.2"));
  QVERIFY(group("127.0.0.1") != group("127.0.0.2"));
  QVERIFY(group("fd00::1") != group("fd00::2"));
  QVERIFY(group("::1") != group("127.0.0.1"));
}

NS_TEST(TestSlotPool)
#include "test_slot_pool.moc"
