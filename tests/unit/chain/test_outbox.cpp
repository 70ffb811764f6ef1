// Items on their way: pauses grow while nobody answers, and end when the recipient returns.
#include <QtTest>

#include <map>

#include "core/chain/outbox.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::chain;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

net::NodeId id_of(std::uint8_t mark) {
  net::NodeId id;
  id.fill(mark);
  return id;
}

const net::NodeId neighbour = id_of(1), absent = id_of(2);

// Keeps what is asked; answers when it is told to.
struct Calls final : net::PeerCaller {
  void call(const net::Contact& peer, net::Method method, Bytes, Duration deadline,
            net::CallDone done) override {
    QCOMPARE(method, net::Method::ChainPost);
    deadlines[peer.id].push_back(deadline);
    ++made[peer.id];
    waiting[peer.id] = std::move(done);
  }
  void fail(const net::NodeId& id) {
    std::exchange(waiting[id], nullptr)(make_error(ErrorCode::Unavailable, "away"));
  }
  void take(const net::NodeId& id) { answer(id, Verdict::Taken); }
  void answer(const net::NodeId& id, Verdict verdict) {
    std::exchange(waiting[id], nullptr)(encode_answer({verdict, 1}));
  }
  std::map<net::NodeId, int> made;
  std::map<net::NodeId, std::vector<Duration>> deadlines;
  std::map<net::NodeId, net::CallDone> waiting;
};

struct Everybody final : Peers {
  std::optional<net::Contact> find(const net::NodeId& id) override {
    if (id == nowhere) return std::nullopt;
    return net::Contact{id, {platform::IpAddress::v4(11, 0, 0, id[0]), 9000}};
  }
  std::vector<net::Contact> some() override { return {}; }
  net::NodeId nowhere{};
};

}  // namespace

class TestOutbox : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void pauses_grow_while_nobody_answers();
  void a_peer_that_returns_has_it_at_once();
  void a_peer_that_calls_often_does_not_get_it_more_often();
  void a_slow_call_is_not_made_twice();
  void each_attempt_has_more_time();
  void a_peer_that_wants_it_later_gets_it_later();
  void an_item_can_be_dropped();
  void a_peer_that_is_found_late_has_it_soon();
  void a_restarted_peer_has_it_once_more();
  void a_range_of_keys_is_dropped();
  void a_refusal_ends_it_and_the_answer_is_shown();

 private:
  struct Fixture {
    ManualClock clock;
    Calls calls;
    Everybody peers;
    std::vector<PostAnswer> answers;
    Outbox outbox{calls, peers, clock, {}, [this](const net::NodeId&, const PostAnswer& answer) {
                    answers.push_back(answer);
                  }};
    Fixture() { clock.advance(seconds(100)); }
    void put() { outbox.put(1, Bytes{1, 2, 3}, {neighbour, absent}); }
    // `absent` is away for so long; each attempt fails at once.
    void away(Duration time) {
      for (Duration passed{}; passed < time; passed += milliseconds(500)) {
        if (calls.waiting[absent]) calls.fail(absent);
        clock.advance(milliseconds(500));
        outbox.pump();
      }
      if (calls.waiting[absent]) calls.fail(absent);
    }
  };
};

void TestOutbox::pauses_grow_while_nobody_answers() {
  Fixture f;
  f.put();
  QCOMPARE(f.calls.made[neighbour], 1);
  f.calls.take(neighbour);
  f.away(seconds(60));
  QCOMPARE(f.calls.made[neighbour], 1);
  // 0, 1, 3, 7, 15, 30, 45, 60 seconds.
  QCOMPARE(f.calls.made[absent], 8);
  QCOMPARE(f.outbox.waiting(), std::size_t{1});
  QCOMPARE(f.outbox.bytes_sent(), std::uint64_t{9 * 3});
}

void TestOutbox::a_peer_that_returns_has_it_at_once() {
  Fixture f;
  f.put();
  f.away(seconds(50));
  const int before = f.calls.made[absent];
  f.outbox.heard(neighbour);  // no word of the other
  QCOMPARE(f.calls.made[absent], before);
  f.outbox.heard(absent);
  QCOMPARE(f.calls.made[absent], before + 1);
  f.calls.take(neighbour);
  f.calls.take(absent);
  QCOMPARE(f.outbox.waiting(), std::size_t{0});
  f.outbox.heard(absent);
  QCOMPARE(f.calls.made[absent], before + 1);
}

void TestOutbox::a_peer_that_calls_often_does_not_get_it_more_often() {
  Fixture f;
  f.put();
  f.away(seconds(50));
  const int before = f.calls.made[absent];
  for (int i = 0; i < 1000; ++i) {
    f.outbox.heard(absent);
    if (f.calls.waiting[absent]) f.calls.fail(absent);
    f.clock.advance(milliseconds(10));
  }
  QVERIFY2(f.calls.made[absent] - before <= 10, qPrintable(QString::number(f.calls.made[absent] - before)));
}

void TestOutbox::a_slow_call_is_not_made_twice() {
  Fixture f;
  f.put();
  f.clock.advance(seconds(4));
  f.outbox.heard(absent);
  QCOMPARE(f.calls.made[absent], 1);
}

// A lost message is noticed soon, and a slow node has its time in the end.
void TestOutbox::each_attempt_has_more_time() {
  Fixture f;
  f.put();
  f.away(seconds(20));
  std::vector<int> whole;
  for (const Duration deadline : f.calls.deadlines[absent])
    whole.push_back(static_cast<int>(to_seconds(deadline)));
  QCOMPARE(whole, (std::vector<int>{2, 4, 5, 5, 5}));
}

// Lines are not filled with what the other has no use for yet.
void TestOutbox::a_peer_that_wants_it_later_gets_it_later() {
  for (const Verdict later : {Verdict::Later, Verdict::Busy, Verdict::Limit}) {
    Fixture f;
    f.put();
    for (int i = 0; i < 60; ++i) {
      f.outbox.heard(absent);
      if (f.calls.waiting[absent]) f.calls.answer(absent, later);
      f.clock.advance(seconds(1));
      f.outbox.pump();
    }
    // As often as without an answer from it: 0, 1, 3, 7, 15, 30, 45 and 60 seconds.
    QCOMPARE(f.calls.made[absent], 8);
  }
}

void TestOutbox::an_item_can_be_dropped() {
  Fixture f;
  f.put();
  f.outbox.put(2, Heartbeat{}, {neighbour, absent});
  QCOMPARE(f.outbox.waiting(), std::size_t{4});
  f.outbox.drop(1);
  QCOMPARE(f.outbox.waiting(), std::size_t{2});
  // Dropped while it is under way: its answer changes nothing.
  f.outbox.drop(2);
  f.calls.take(absent);
  QCOMPARE(f.outbox.waiting(), std::size_t{0});
  f.clock.advance(seconds(60));
  f.outbox.pump();
  QCOMPARE(f.calls.made[absent], 2);
}

// A newcomer, or one that returns: for a while nobody knows where it is.
void TestOutbox::a_peer_that_is_found_late_has_it_soon() {
  Fixture f;
  f.peers.nowhere = absent;
  f.put();
  f.away(seconds(50));
  QCOMPARE(f.calls.made[absent], 0);
  f.peers.nowhere = {};
  f.away(seconds(1));
  QVERIFY(f.calls.made[absent] >= 1);
}

void TestOutbox::a_restarted_peer_has_it_once_more() {
  Fixture f;
  f.put();
  f.calls.take(neighbour);
  // It took it just now: that may have been before its restart, so it has it once more, after a pause.
  for (int i = 0; i < 100; ++i) f.outbox.again(neighbour);
  QCOMPARE(f.calls.made[neighbour], 1);
  f.away(seconds(1));
  QCOMPARE(f.calls.made[neighbour], 2);
  f.calls.take(neighbour);
  f.clock.advance(seconds(2));
  const int tried = f.calls.made[absent];
  f.outbox.again(neighbour);
  f.outbox.again(absent);  // has not had it, and its call is under way
  QCOMPARE(f.calls.made[neighbour], 3);
  QCOMPARE(f.calls.made[absent], tried + 1);  // due anyway
  // However often it asks: not while it is under way, and once in a pause.
  for (int i = 0; i < 100; ++i) f.outbox.again(neighbour);
  f.calls.take(neighbour);
  for (int i = 0; i < 100; ++i) f.outbox.again(neighbour);
  QCOMPARE(f.calls.made[neighbour], 3);
  // The item in its place is another one.
  f.outbox.put(1, Bytes{4}, {absent});
  f.clock.advance(seconds(2));
  f.outbox.again(neighbour);
  QCOMPARE(f.calls.made[neighbour], 3);
}

void TestOutbox::a_range_of_keys_is_dropped() {
  Fixture f;
  const auto item = Bytes{1};
  for (const std::uint64_t key : {std::uint64_t{1}, std::uint64_t{0x1000}, std::uint64_t{0xFFFFF},
                                  std::uint64_t{0x100000}, std::uint64_t{1} << 40})
    f.outbox.put(key, item, {neighbour});
  f.outbox.drop_range(0x1000, 0xFFFFF);
  QCOMPARE(f.outbox.waiting(), std::size_t{3});
  f.outbox.drop_range(0x1000, 0xFFFFF);
  QCOMPARE(f.outbox.waiting(), std::size_t{3});
}

void TestOutbox::a_refusal_ends_it_and_the_answer_is_shown() {
  Fixture f;
  f.put();
  f.calls.answer(neighbour, Verdict::BadSignature);
  f.calls.answer(absent, Verdict::Known);
  QCOMPARE(f.outbox.waiting(), std::size_t{0});
  QCOMPARE(f.answers.size(), std::size_t{2});
  QCOMPARE(f.answers[0], (PostAnswer{Verdict::BadSignature, 1}));
}

NS_TEST(TestOutbox)
#include "test_outbox.moc"
