// A node's records on its disk, above all votes that it can't read.
#include <QtTest>

#include <map>
#include <utility>

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
  void a_vote_that_was_shown_binds_when_its_holder_forgets_it();
  void who_may_have_forgotten_votes_allows_none();
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

namespace {

// A voter without its record at height 8, and the two others.
struct Asking {
  bool told(const net::NodeId& from, const KeptVotes::Answer& answer) {
    return lost.on_answer(from, 8, previous, answer, {one, two});
  }
  Vote vote(VoteStep step, std::uint32_t view) const { return {step, 8, previous, view, Hash256{9}}; }
  const Hash256 previous{1};
  const net::NodeId one{1}, two{2};
  KeptVotes lost{std::nullopt};
  const bool votes_at_once = lost.may_vote(8, 3);
};

}  // namespace

// Planted: half of the answers must not be enough.
void TestDurableState::without_its_votes_it_votes_when_all_others_have_told() {
  Asking f;
  QVERIFY(!f.votes_at_once && f.lost.abstains_at(8) && !f.lost.abstains_at(9));
  const Vote commit = f.vote(VoteStep::Commit, 0);
  QVERIFY(!f.lost.on_answer(f.one, 8, Hash256{2}, {commit}, {f.one, f.two}));  // of another history
  QVERIFY(!f.told(f.two, {f.vote(VoteStep::Prepare, 0)}) && !f.told(net::NodeId{3}, {}));
  QVERIFY(!f.lost.may_vote(8, 3));
  QVERIFY(f.told(f.one, {}));
  QVERIFY(f.lost.may_vote(8, 3) && !f.lost.abstains_at(8) && !f.told(f.one, {}));
  QCOMPARE(f.lost.memory().height, std::uint64_t(8));
  QVERIFY(f.lost.memory().previous == f.previous && !f.lost.memory().prepared && !f.lost.memory().lock);
  QCOMPARE(f.lost.memory().view, 1u);
}

void TestDurableState::a_vote_that_was_shown_binds_when_its_holder_forgets_it() {
  for (const auto& [step, view] : {std::pair(VoteStep::Commit, 0u), std::pair(VoteStep::Prepare, 1u)}) {
    Asking f;
    QVERIFY(!f.told(f.two, {}));
    QVERIFY(!f.told(f.one, {f.vote(step, view)}));
    QVERIFY(!f.told(f.one, {}) && !f.told(f.two, {}) && !f.lost.may_vote(8, 3));
    // With another block before, it is another height.
    QVERIFY(!f.lost.on_answer(f.one, 8, Hash256{2}, {}, {f.one, f.two}));
    QVERIFY(f.lost.on_answer(f.two, 8, Hash256{2}, {}, {f.one, f.two}));
  }
}

void TestDurableState::who_may_have_forgotten_votes_allows_none() {
  Asking f;
  const std::optional<Vote> none;
  QVERIFY(!f.told(f.one, {none, 2}));
  QVERIFY(!f.told(f.two, {none, 0, false}));                                  // it was started since
  QVERIFY(!f.told(f.two, {f.vote(VoteStep::Prepare, 0), 0, false}));          // it may have had later ones
  QVERIFY(!f.told(f.two, {none, views_kept + 1}) && !f.lost.may_vote(8, 3));  // too late for them
  QVERIFY(f.told(f.two, {none, 1}));
  QCOMPARE(f.lost.memory().view, 3u);

  Asking bound;
  QVERIFY(!bound.told(bound.one, {bound.vote(VoteStep::Commit, 0), 0, false}));
  QVERIFY(!bound.told(bound.one, {}) && !bound.told(bound.two, {}) && !bound.lost.may_vote(8, 3));
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
