// A node's own vector of a round: one in each, on the disk before anybody sees it, and the same one after a restart.
#include <QtTest>

#include "core/rounds/own_vector.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::rounds;

namespace {

class VectorDisk final : public RoundStore {
 public:
  Expected<ByteSourcePtr> load(Record record) override {
    if (record != Record::Vector || !kept) return make_error(ErrorCode::NotFound, "nothing");
    return kept;
  }
  void save(Record, ByteSourcePtr bytes, std::function<void(Expected<void>)> done) override {
    ++saves;
    kept = bytes;
    waiting = std::move(done);
  }
  ByteSourcePtr kept;
  std::function<void(Expected<void>)> waiting;
  int saves = 0;
};

struct VectorNode {
  VectorNode(VectorDisk* disk, const ManualClock& clock)
      : own(
            {key, clock, *disk}, rules, [this](const chain::Vector& vector) { shown.push_back(vector); },
            [this](const Error&) { ++failures; }) {
    own.load();
  }
  static chain::ChainRules rules_of_two_rows() {
    chain::ChainRules rules;
    rules.rows = 2;
    rules.network = Hash256{7};
    return rules;
  }
  static chain::Vector made(const Hash256& opening, std::vector<std::uint32_t> members) {
    chain::Vector vector;
    vector.opening = opening;
    vector.round = 12;
    vector.voter = 3;
    vector.payloads.assign(2, chain::Bitmap(members.size()));
    vector.members = std::move(members);
    return vector;
  }
  const chain::ChainRules rules = rules_of_two_rows();
  crypto::KeyPair key = crypto::KeyPair::from_seed(Hash256{1});
  std::vector<chain::Vector> shown;
  int failures = 0;
  OwnVector own;
};

const Hash256 round_12{12}, round_13{13};

class TestOwnVector : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_vector_is_shown_when_it_is_on_the_disk() {
    VectorDisk disk;
    ManualClock clock;
    VectorNode node(&disk, clock);
    node.own.open(round_12);
    QVERIFY(node.own.may_try() && node.own.kept() == nullptr);
    node.own.sign(VectorNode::made(round_12, {1, 2}));
    QVERIFY(node.own.is_signed() && !node.own.may_try() && node.shown.empty());
    disk.waiting({});
    QCOMPARE(node.shown.size(), std::size_t{1});
    QVERIFY(chain::vector_holds(node.shown[0], node.key.public_key(), node.rules.network));
    QVERIFY(node.own.kept() != nullptr && *node.own.kept() == node.shown[0]);
    // The next round has another one.
    node.own.open(round_13);
    QVERIFY(!node.own.is_signed() && node.own.may_try() && node.own.kept() == nullptr);
  }

  void after_a_restart_it_is_the_same_one() {
    VectorDisk disk;
    ManualClock clock;
    chain::Vector first;
    {
      VectorNode node(&disk, clock);
      node.own.open(round_12);
      chain::Vector made = VectorNode::made(round_12, {1, 2});
      made.withheld = {{1, 11}};
      node.own.sign(made);  // the program ends before the disk answers
      first = *node.own.kept();
    }
    VectorNode again(&disk, clock);
    again.own.open(round_12);
    QVERIFY(again.own.kept() != nullptr && *again.own.kept() == first);
    again.own.sign(VectorNode::made(round_12, {1, 2, 3}));  // it has got another contribution meanwhile
    disk.waiting({});
    QVERIFY(again.shown.size() == 1 && again.shown[0] == first);
    // Of another round it says nothing.
    VectorNode later(&disk, clock);
    later.own.open(round_13);
    QVERIFY(later.own.kept() == nullptr);
    later.own.sign(VectorNode::made(round_13, {3}));
    disk.waiting({});
    QCOMPARE(later.shown.at(0).members, std::vector<std::uint32_t>{3});
  }

  void a_full_disk_is_tried_again_a_little_later() {
    VectorDisk disk;
    ManualClock clock;
    VectorNode node(&disk, clock);
    node.own.open(round_12);
    node.own.sign(VectorNode::made(round_12, {1}));
    disk.waiting(make_error(ErrorCode::Exhausted, "full"));
    QVERIFY(node.failures == 1 && node.shown.empty() && !node.own.is_signed() && !node.own.may_try());
    clock.advance(std::chrono::seconds(5));
    QVERIFY(node.own.may_try());
    node.own.sign(VectorNode::made(round_12, {1, 2}));
    disk.waiting({});
    // The first one may be on the disk, so it is the one that is shown.
    QVERIFY(node.shown.size() == 1 && node.shown[0].members == std::vector<std::uint32_t>{1});
  }

  void an_answer_of_the_disk_about_an_earlier_round_is_nothing_any_more() {
    VectorDisk disk;
    ManualClock clock;
    VectorNode node(&disk, clock);
    node.own.open(round_12);
    node.own.sign(VectorNode::made(round_12, {1}));
    const auto late = disk.waiting;
    node.own.open(round_13);
    late({});
    late(make_error(ErrorCode::Exhausted, "full"));
    QVERIFY(node.shown.empty() && node.failures == 0 && node.own.may_try());
  }

  void damaged_records_are_no_vectors() {
    VectorDisk disk;
    ManualClock clock;
    for (const Bytes& bytes : {Bytes(), Bytes(10, 1), Bytes(1000, 0xff)}) {
      disk.kept = in_memory(bytes);
      VectorNode node(&disk, clock);
      node.own.open(round_12);
      QVERIFY(node.own.kept() == nullptr);
    }
  }
};

}  // namespace

NS_TEST(TestOwnVector)
#include "test_own_vector.moc"
