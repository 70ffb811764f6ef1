// A node's own part of a round: what its learners hear of the round, and the batches that its contribution names.
#include <QtTest>

#include <map>
#include <memory>

#include "core/chain/contribution.h"
#include "core/rounds/own_part.h"
#include "tests/support/stored.h"
#include "tests/support/test_main.h"
#include "tests/unit/rounds/later_work.h"

using namespace neuroshard;
using namespace neuroshard::rounds;

namespace {

class Learner final : public RoundLearner {
 public:
  void start(Start from) override { started = std::move(from); }
  TrainedWork progress() const override { return {steps, steps * 64}; }
  void boundary(AfterBoundary, std::function<void(Expected<Boundary>)> done) override {
    ++asked;
    if (error) return done(*error);
    done(Boundary{in_memory(payload), {100, 6400}, {}, batches});
  }
  void go_on() override {}

  std::optional<Start> started;
  Bytes payload = Bytes(64, 1), batches;
  std::optional<Error> error;
  int asked = 0;
  std::uint32_t steps = 100;
};

class Store final : public RoundStore {
 public:
  Expected<ByteSourcePtr> load(Record record) override {
    const auto kept = records.find(record);
    if (kept == records.end()) return make_error(ErrorCode::NotFound, "nothing");
    return kept->second;
  }
  void save(Record record, ByteSourcePtr bytes, std::function<void(Expected<void>)> done) override {
    if (error && record == Record::Contribution) return done(*error);
    records[record] = std::move(bytes);
    done({});
  }
  std::optional<Error> error;
  std::map<Record, ByteSourcePtr> records;
};

class Keeper final : public BatchKeeper {
 public:
  void keep(std::uint64_t round, const Hash256&, Bytes batches,
            std::function<void(const Hash256&)> done) override {
    asked.emplace_back(round, std::move(batches));
    answer = std::move(done);
  }
  std::vector<std::pair<std::uint64_t, Bytes>> asked;
  std::function<void(const Hash256&)> answer;
};

struct Bench {
  Bench() {
    rules.rows = 1;
    rules.network = Hash256{7};
    own.open(Hash256{3}, 12, Hash256{9});
  }
  void contribute() {
    own.contribute(Hash256{4}, {1'000'000}, [this] { ++made; });
  }
  const chain::Contribution& contribution() const { return own.made()->contribution; }
  // With a payload that is not read at once.
  void contribute_much() {
    learner.payload.assign(net::chunk_bytes + 1, 1);
    contribute();
  }
  Hash256 root() const { return payload_root(crypto::node_id(key.public_key()), learner.payload); }

  crypto::KeyPair key = crypto::KeyPair::from_seed(Hash256{1});
  NullLogger logger;
  chain::ChainRules rules;
  Learner learner;
  Store store;
  const std::shared_ptr<test::LaterWork> work = std::make_shared<test::LaterWork>();
  Keeper keeper;
  OwnPart own{{key, {&learner}, store, *work, logger, &keeper}, rules, 100, RoundSync::Plain};
  int made = 0;
};

}  // namespace

class TestOwnPart : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_twentieth_of_the_steps_is_enough() {
    Bench b;
    QVERIFY(b.own.has_trained() && b.own.has_enough_to_contribute());
    b.learner.steps = 99;
    QVERIFY(!b.own.has_trained() && b.own.has_enough_to_contribute());
    QCOMPARE(b.own.share_trained(), 0.99);
    b.learner.steps = 4;
    QVERIFY(!b.own.has_enough_to_contribute());
  }
  void the_learner_hears_the_beacon_of_the_round() {
    Bench b;
    b.own.begin(0, Hash256{5}, test::state_with({1, 2, 3, 4}));
    QVERIFY(b.learner.started);
    QCOMPARE(b.learner.started->round, std::uint64_t{12});
    QVERIFY(b.learner.started->beacon == Hash256{9});
  }

  void the_signed_contribution_names_the_kept_list() {
    Bench b;
    b.learner.batches = {1, 2, 3};
    b.contribute();
    QCOMPARE(b.keeper.asked.size(), std::size_t{1});
    QCOMPARE(b.keeper.asked[0].first, std::uint64_t{12});
    QVERIFY((b.keeper.asked[0].second == Bytes{1, 2, 3}));
    QVERIFY2(!b.own.has_contributed(), "it waits for the list");
    b.keeper.answer(Hash256{8});
    QCOMPARE(b.made, 1);
    QVERIFY(b.contribution().batches == Hash256{8});
    QVERIFY(chain::contribution_holds(b.contribution(), b.rules.network));
  }

  void without_a_list_it_contributes_all_the_same() {
    Bench refused;
    refused.learner.batches = {1};
    refused.contribute();
    refused.keeper.answer(Hash256{});  // no room on the disk
    QCOMPARE(refused.made, 1);
    QVERIFY(refused.contribution().batches == Hash256{});
    QVERIFY(chain::contribution_holds(refused.contribution(), refused.rules.network));
    Bench unknown;
    unknown.contribute();
    QCOMPARE(unknown.made, 1);
    QVERIFY(unknown.keeper.asked.empty());
    QVERIFY(unknown.contribution().batches == Hash256{});
  }

  // Nothing is signed whose payload is not on the disk.
  void without_room_it_contributes_later() {
    Bench b;
    b.learner.error = make_error(ErrorCode::Exhausted, "the disk is full");
    b.contribute();
    QVERIFY(!b.own.is_making() && !b.own.has_contributed() && !b.own.gave(0));
    QVERIFY(b.own.trouble().find("the disk is full") != std::string::npos);
    b.learner.error.reset();
    b.store.error = make_error(ErrorCode::Exhausted, "the disk is full again");
    b.contribute();
    QVERIFY(!b.own.is_making() && !b.own.has_contributed() && !b.own.gave(0));
    QVERIFY(b.own.trouble().find("full again") != std::string::npos);
    QCOMPARE(b.made, 0);
    b.store.error.reset();
    b.contribute();
    QCOMPARE(b.made, 1);
    QVERIFY(b.own.trouble().empty() && b.own.has_contributed() && b.own.gave(0));
    QCOMPARE(b.learner.asked, 3);
  }

  // The delta itself is wrong: later it would be as well.
  void a_delta_that_can_not_be_encoded_is_not_tried_again() {
    Bench b;
    b.learner.error = make_error(ErrorCode::InvalidArgument, "a value is not finite");
    b.contribute();
    QVERIFY(b.own.is_making() && b.own.trouble().empty());
    b.contribute();
    QCOMPARE(b.learner.asked, 1);
  }

  // A block that replaces a succession opens the round once more. A second contribution would be evidence.
  void the_same_round_again_has_the_same_contribution() {
    Bench b;
    b.contribute();
    const chain::Contribution first = b.contribution();
    b.own.open(Hash256{3}, 12, Hash256{9});
    QVERIFY(b.own.has_contributed() && b.own.gave(0));
    b.contribute();
    QCOMPARE(b.made, 1);
    QVERIFY(b.contribution() == first);
    b.own.open(Hash256{13}, 13, Hash256{9});
    QVERIFY(!b.own.has_contributed() && !b.own.gave(0) && !b.own.is_making());
  }

  void one_that_is_being_made_goes_on_in_the_same_round() {
    Bench b;
    b.learner.batches = {1};
    b.contribute();
    b.own.open(Hash256{3}, 12, Hash256{9});
    QVERIFY(b.own.is_making());
    b.contribute();
    QCOMPARE(b.learner.asked, 1);
    b.keeper.answer(Hash256{8});
    QCOMPARE(b.made, 1);
    QVERIFY(b.own.has_contributed() && b.own.gave(0));
  }

  void a_list_that_comes_after_the_round_makes_no_contribution() {
    Bench b;
    b.learner.batches = {1};
    b.contribute();
    b.own.open(Hash256{13}, 13, Hash256{10});
    b.keeper.answer(Hash256{8});
    QCOMPARE(b.made, 0);
    QVERIFY(!b.own.has_contributed());
  }

  // Gigabytes are not hashed where votes are handled.
  void a_large_payload_is_hashed_on_the_thread_of_the_work() {
    Bench b;
    b.contribute_much();
    QCOMPARE(b.work->jobs.size(), std::size_t{1});
    QVERIFY(b.own.is_making() && !b.own.has_contributed() && !b.own.gave(0));
    b.contribute();
    QCOMPARE(b.learner.asked, 1);
    b.work->run_all();
    QCOMPARE(b.made, 1);
    QVERIFY(b.own.has_contributed() && b.own.gave(0));
    QVERIFY(b.contribution().rows[0].payload == b.root());
    QCOMPARE(b.contribution().rows[0].payload_bytes, std::uint64_t{b.learner.payload.size()});
    QVERIFY(chain::contribution_holds(b.contribution(), b.rules.network));
    const PayloadReading& reading = b.own.made()->readings.at(0);
    QVERIFY(reading.root == b.root() && reading.leaves != nullptr);
    QCOMPARE(reading.leaves->size(), std::size_t{5});
  }

  void a_round_that_ends_while_the_payload_is_hashed_has_no_contribution() {
    Bench b;
    b.contribute_much();
    b.own.open(Hash256{13}, 13, Hash256{10});
    b.work->run_all();
    QCOMPARE(b.made, 0);
    QVERIFY(!b.own.has_contributed() && !b.own.is_making() && !b.own.gave(0));
    b.contribute_much();
    b.work->run_all();
    QCOMPARE(b.made, 1);
    QCOMPARE(b.contribution().round, std::uint64_t{13});
  }

  void the_same_round_again_waits_for_the_hash() {
    Bench b;
    b.contribute_much();
    b.own.open(Hash256{3}, 12, Hash256{9});
    QVERIFY(b.own.is_making());
    b.work->run_all();
    QCOMPARE(b.made, 1);
    QVERIFY(b.own.has_contributed() && b.own.gave(0));
  }

  void a_payload_whose_node_ends_is_hashed_for_nobody() {
    std::shared_ptr<test::LaterWork> work;
    {
      Bench b;
      b.contribute_much();
      work = b.work;
    }
    work->run_all();
    QVERIFY(work->jobs.empty());
  }

  void a_contribution_of_before_a_restart_is_there_unread() {
    Bench before, after;
    before.contribute_much();
    before.work->run_all();
    after.store.records = before.store.records;
    after.own.load();
    after.own.open(Hash256{3}, 12, Hash256{9});
    QVERIFY(after.own.has_contributed() && after.own.gave(0));
    QVERIFY(after.contribution() == before.contribution());
    QVERIFY(after.work->jobs.empty() && after.own.made()->readings.empty());
    QVERIFY(test::bytes_of(after.own.made()->payloads.at(0)) == before.learner.payload);
  }
};

NS_TEST(TestOwnPart)
#include "test_own_part.moc"
