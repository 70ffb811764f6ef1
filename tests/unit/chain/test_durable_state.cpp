// A node's records on its disk, above all votes that it can't read.
#include <QtTest>

#include <map>

#include "core/chain/durable_state.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::chain;

namespace {

class Records final : public ChainStore {
 public:
  Expected<Bytes> load(Record record) override {
    if (fails) return make_error(ErrorCode::Io, "the disk is gone");
    const auto at = records.find(record);
    if (at == records.end()) return make_error(ErrorCode::NotFound, "nothing kept");
    return at->second;
  }
  void save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) override {
    if (full) return done(make_error(ErrorCode::Exhausted, "the disk is full"));
    records[record] = std::move(bytes);
    done({});
  }
  std::uint64_t first_block() const override { return 0; }
  std::uint64_t block_count() const override { return blocks; }
  Expected<Bytes> load_block(std::uint64_t) override {
    return make_error(ErrorCode::NotFound, "nothing kept");
  }
  void append_block(std::uint64_t, BlockBytes, std::function<void(Expected<void>)> done) override {
    done({});
  }
  void begin_log(std::uint64_t, std::function<void(Expected<void>)> done) override { done({}); }
  void drop_last(std::function<void(Expected<void>)> done) override { done({}); }

  std::map<Record, Bytes> records;
  std::uint64_t blocks = 0;
  bool fails = false, full = false;
};

class Lines final : public Logger {
 public:
  void write(const LogRecord& record) override {
    if (record.level == LogLevel::Error) errors.push_back(record.message);
  }
  std::vector<std::string> errors;
};

AgreementMemory voted_at(std::uint64_t height) {
  AgreementMemory memory;
  memory.height = height;
  memory.view = 3;
  memory.prepared = Hash256{9};
  return memory;
}

}  // namespace

class TestDurableState : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void votes_that_can_be_read_bind_as_they_are();
  void after_unreadable_votes_a_voter_abstains_once_data();
  void after_unreadable_votes_a_voter_abstains_once();
  void votes_that_are_missing_beside_a_log_are_unreadable();
  void without_its_votes_it_votes_when_all_others_have_told();
  void votes_in_a_view_that_others_saw_are_not_repeated();
  void votes_of_a_height_that_is_opened_again_bind();
  void votes_that_can_not_be_kept_do_not_leave();
};

void TestDurableState::votes_that_can_be_read_bind_as_they_are() {
  Records records;
  Lines log;
  const DurableState durable(records, log, {}, [] {});
  KeptVotes none = durable.votes();  // a new data directory
  QVERIFY(none.may_vote(1, 4) && none.may_vote(1, 4) && none.may_vote(2, 4));
  QCOMPARE(none.memory().height, std::uint64_t(0));
  records.records[ChainStore::Record::Votes] = encode_agreement_memory(voted_at(8));
  KeptVotes kept = durable.votes();
  QVERIFY(kept.may_vote(8, 4));
  QVERIFY(encode_agreement_memory(kept.memory()) == encode_agreement_memory(voted_at(8)));
  QVERIFY(log.errors.empty());
}

void TestDurableState::after_unreadable_votes_a_voter_abstains_once_data() {
  QTest::addColumn<QByteArray>("bytes");
  QTest::addColumn<bool>("fails");
  const Bytes whole = encode_agreement_memory(voted_at(8));
  const QByteArray good(reinterpret_cast<const char*>(whole.data()), qsizetype(whole.size()));
  QByteArray version = good, magic = good;
  version[4] = char(9);
  magic[0] = 0;
  QTest::newRow("empty") << QByteArray() << false;
  QTest::newRow("cut") << good.first(good.size() - 1) << false;
  QTest::newRow("other bytes") << magic << false;
  QTest::newRow("a later version") << version << false;
  QTest::newRow("a disk that fails") << good << true;
}

// Planted: votes() that takes an unreadable record for none lets it vote twice.
void TestDurableState::after_unreadable_votes_a_voter_abstains_once() {
  QFETCH(QByteArray, bytes);
  QFETCH(bool, fails);
  Records records;
  Lines log;
  records.records[ChainStore::Record::Votes] = Bytes(bytes.begin(), bytes.end());
  records.fails = fails;
  const DurableState durable(records, log, {}, [] {});
  KeptVotes kept = durable.votes();
  QCOMPARE(log.errors.size(), std::size_t(1));
  // At the height after its newest block, however often it is opened; then it votes again.
  QVERIFY(!kept.may_vote(8, 4));
  QVERIFY(!kept.may_vote(8, 4));
  QVERIFY(kept.may_vote(9, 4));
  QCOMPARE(kept.memory().height, std::uint64_t(0));
  // Nobody else could make the block.
  QVERIFY(durable.votes().may_vote(8, 1));
}

// Planted: votes() that takes a missing record for none, whatever else the disk has.
void TestDurableState::votes_that_are_missing_beside_a_log_are_unreadable() {
  Records records;
  Lines log;
  const DurableState durable(records, log, {}, [] {});
  QVERIFY(durable.votes().may_vote(8, 4));
  records.blocks = 8;
  KeptVotes lost = durable.votes();
  QCOMPARE(log.errors.size(), std::size_t(1));
  QVERIFY(!lost.may_vote(8, 4));
  QVERIFY(lost.may_vote(9, 4));
  // A record without votes is there from the first block on.
  records.records[ChainStore::Record::Votes] = encode_agreement_memory({});
  QVERIFY(durable.votes().may_vote(8, 4));
  QCOMPARE(log.errors.size(), std::size_t(1));
}

// Planted: a vote of a later view, or half of the answers, must not be enough.
void TestDurableState::without_its_votes_it_votes_when_all_others_have_told() {
  const Hash256 previous{1};
  const net::NodeId one{1}, two{2}, stranger{3};
  const std::vector<net::NodeId> others{one, two};
  const Vote prepare{VoteStep::Prepare, 8, previous, 0, Hash256{9}};
  Vote commit = prepare, later = prepare;
  commit.step = VoteStep::Commit;
  later.view = 1;
  KeptVotes lost(std::nullopt);
  QVERIFY(!lost.may_vote(8, 3) && lost.abstains_at(8) && !lost.abstains_at(9));
  const auto told = [&](const net::NodeId& from, const std::optional<Vote>& held) {
    return lost.on_answer(from, 8, previous, held, others);
  };
  QVERIFY(!lost.on_answer(one, 8, Hash256{2}, {}, others));  // of another history
  QVERIFY(!told(two, prepare) && !told(stranger, {}));
  QVERIFY(!told(one, commit) && !told(one, later) && !lost.may_vote(8, 3));
  QVERIFY(told(one, {}));
  QVERIFY(lost.may_vote(8, 3) && !lost.abstains_at(8) && !told(one, {}));
  QCOMPARE(lost.memory().height, std::uint64_t(8));
  QVERIFY(lost.memory().previous == previous && !lost.memory().prepared && !lost.memory().lock);
  QCOMPARE(lost.memory().view, 1u);
}

void TestDurableState::votes_in_a_view_that_others_saw_are_not_repeated() {
  KeptVotes votes(voted_at(8));
  votes.begin_after(8, {}, 2);  // it remembers a later one
  QCOMPARE(votes.memory().view, 3u);
  QVERIFY(votes.memory().prepared.has_value());
  votes.begin_after(8, {}, 3);
  QCOMPARE(votes.memory().view, 4u);
  QVERIFY(!votes.memory().prepared);
  votes.begin_after(9, Hash256{1}, 0);
  QCOMPARE(votes.memory().height, std::uint64_t(9));
  QCOMPARE(votes.memory().view, 1u);
  const Vote vote{VoteStep::Prepare, 8, {}, 3, Hash256{9}};
  QVERIFY(remembers(voted_at(8), vote));
  Vote other = vote;
  other.block = Hash256{8};
  QVERIFY(!remembers(voted_at(8), other));
  other.view = 2;
  QVERIFY(remembers(voted_at(8), other));
  other.view = 4;
  QVERIFY(!remembers(voted_at(8), other));
  other = vote;
  other.step = VoteStep::Commit;
  QVERIFY(!remembers(voted_at(8), other));
}

// Planted: a height that is opened again with the votes of before the start lets the voter vote twice.
void TestDurableState::votes_of_a_height_that_is_opened_again_bind() {
  KeptVotes kept;
  kept.keep(voted_at(8));
  QVERIFY(encode_agreement_memory(kept.memory()) == encode_agreement_memory(voted_at(8)));
}

void TestDurableState::votes_that_can_not_be_kept_do_not_leave() {
  Records records;
  Lines log;
  std::vector<bool> turns;
  int left = 0;
  std::optional<DurableState> durable;
  durable.emplace(records, log, Hash256{}, [&] { turns.push_back(durable->is_writable()); });
  durable->save_votes({1}, [&] { ++left; });
  QVERIFY(durable->is_writable() && left == 1 && turns.empty());
  records.full = true;
  for (int i = 0; i < 3; ++i) durable->save_votes({2}, [&] { ++left; });
  QVERIFY(!durable->is_writable());
  QCOMPARE(left, 1);
  QCOMPARE(turns, std::vector<bool>{false});
  QCOMPARE(log.errors.size(), std::size_t(1));
  records.full = false;
  durable->save(LocalMemory{});
  QVERIFY(durable->is_writable());
  QCOMPARE(turns, (std::vector<bool>{false, true}));
}

NS_TEST(TestDurableState)
#include "test_durable_state.moc"
