// Fetching in pieces from sources that give, refuse, lie or fall silent: it always ends, and what it gives is
// what was asked for.
#include <QtTest>

#include <deque>

#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/net/peer_channel.h"
#include "core/outer/anchor_hash.h"
#include "core/rounds/fetch.h"
#include "tests/support/manual_executor.h"
#include "tests/support/stored.h"
#include "tests/support/test_main.h"
#include "tests/unit/rounds/later_work.h"

using namespace neuroshard;
using namespace neuroshard::rounds;

namespace {

constexpr std::size_t pieces = 7;
constexpr std::size_t size = (pieces - 1) * net::chunk_bytes + 100;

net::NodeId id_of(std::uint8_t mark) {
  net::NodeId id;
  id.fill(mark);
  return id;
}
// Two at first show what a source's first answers change.
FetchOptions two_at_first() {
  FetchOptions options;
  options.first_pieces = 2;
  return options;
}
const net::NodeId first = id_of(1), second = id_of(2), unknown = id_of(9);

Bytes content(std::uint8_t seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>((i * 31 + i / 977) ^ seed);
  return bytes;
}

// Keeps what is asked, until the test answers.
struct Calls final : net::PeerCaller {
  struct Call {
    net::NodeId of;
    PieceRequest request;
    Duration deadline;
    net::CallDone done;
  };
  void call(const net::Contact& peer, net::Method, Bytes request, Duration deadline,
            net::CallDone done) override {
    waiting.push_back({peer.id, *decode_piece_request(request), deadline, std::move(done)});
    ++asked[peer.id];
  }
  Call take() {
    Call call = std::move(waiting.front());
    waiting.pop_front();
    return call;
  }
  void refuse(std::size_t count, ErrorCode code = ErrorCode::Exhausted) {
    for (; count > 0; --count) take().done(make_error(code, "not from here"));
  }
  void fall_silent() { take().done(make_error(ErrorCode::Timeout, "no answer within the deadline")); }
  // Answers every request from `whole`, which the node holds.
  void give_all(const Bytes& whole) {
    while (!waiting.empty()) give_one(whole);
  }
  void give_one(const Bytes& whole) {
    const Call call = take();
    const std::size_t at = call.request.place;
    const std::size_t count = std::min<std::size_t>(net::chunk_bytes, whole.size() - at);
    call.done(encode_piece_answer(whole.size(), ByteSpan(whole.data() + at, count)));
  }
  std::deque<Call> waiting;
  std::map<net::NodeId, int> asked;
};

struct Known final : chain::Peers {
  std::optional<net::Contact> find(const net::NodeId& id) override {
    if (id == unknown) return std::nullopt;
    return net::Contact{id, {platform::IpAddress::v4(11, 0, 0, id[0]), 9000}};
  }
  std::vector<net::Contact> some() override { return {}; }
};

// Timers run when the test says so.
struct TimedExecutor final : Executor {
  bool post(Task task) override {
    task();
    return true;
  }
  std::unique_ptr<TimerHandle> post_after(Duration, Task task) override {
    timers.push_back(std::move(task));
    return std::make_unique<TimerHandle>();
  }
  bool on_thread() const override { return true; }
  void a_second_passes() {
    for (Task& task : std::exchange(timers, {})) task();
  }
  std::vector<Task> timers;
};

// Counts what is made in it.
struct CountingSpool final : Spool {
  Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t bytes) override {
    ++made;
    if (full) return make_error(ErrorCode::Exhausted, "the spool is full");
    return memory.create(bytes);
  }
  int made = 0;
  bool full = false;
  MemorySpool memory;
};

// A payload with these bytes.
void fetch(RoundFetcher& fetcher, const Bytes& wanted, std::vector<net::NodeId> sources,
           RoundFetcher::GotPayload done) {
  PieceRequest request;
  request.hash = crypto::sha256(wanted);
  fetcher.payload(
      request, wanted.size(), std::move(sources),
      [wanted](const ByteSource& bytes) { return read_all(bytes).value() == wanted; }, std::move(done));
}

}  // namespace

class TestFetch : public QObject {
  Q_OBJECT

  struct Fixture {
    explicit Fixture(std::vector<net::NodeId> sources) {
      fetch(fetcher, wanted, std::move(sources), [this](Expected<ByteSourcePtr> result) {
        ++ends;
        got = std::move(result);
      });
    }
    Bytes wanted = content(0);
    Calls calls;
    Known peers;
    testing::ManualExecutor executor;
    ManualClock clock;
    CountingSpool spool;
    RoundFetcher fetcher{calls, peers, executor, clock, spool, two_at_first()};
    std::optional<Expected<ByteSourcePtr>> got;
    int ends = 0;

    bool has_it() const { return ends == 1 && got->ok() && test::bytes_of(**got) == wanted; }
    bool failed() const { return ends == 1 && !got->ok() && got->error().code == ErrorCode::Unavailable; }
  };

  struct AnchorFixture {
    Calls calls;
    Known peers;
    testing::ManualExecutor executor;
    ManualClock clock;
    MemorySpool spool;
    RoundFetcher fetcher{calls, peers, executor, clock, spool, two_at_first()};
    std::optional<ErrorCode> error;
    RoundFetcher::Ticket ticket = fetcher.anchor(
        0, {}, {}, 1000, 0, {first, second},
        [this](const auto& state) { error = state.ok() ? ErrorCode::Corrupt : state.error().code; });
  };

 private Q_SLOTS:
  // Hundreds of megabytes are not hashed where votes are handled.
  void a_payload_is_checked_on_the_thread_of_the_work() {
    test::LaterWork work;
    Fixture f({first, second});
    f.fetcher.check_with(work);
    QVERIFY(!f.fetcher.checks());
    f.calls.give_all(content(9));
    QVERIFY(f.ends == 0 && f.calls.waiting.empty() && f.fetcher.checks());
    work.run_all();  // they are wrong
    QVERIFY(f.ends == 0 && !f.calls.waiting.empty() && !f.fetcher.checks());
    f.calls.give_all(f.wanted);
    QVERIFY(f.ends == 0 && f.calls.waiting.empty() && f.fetcher.checks());
    QCOMPARE(work.jobs.size(), std::size_t{1});
    work.run_all();
    QVERIFY(f.has_it() && !f.fetcher.checks());
    QCOMPARE(f.calls.asked[second], int(pieces));
  }

  void a_payload_whose_fetcher_ends_is_checked_for_nobody() {
    test::LaterWork work;
    {
      Fixture f({first});
      f.fetcher.check_with(work);
      f.calls.give_all(f.wanted);
    }
    work.run_all();
    QVERIFY(work.jobs.empty());
  }

  void a_few_pieces_at_a_time_until_it_is_whole() {
    Fixture f({first});
    QCOMPARE(f.calls.waiting.size(), std::size_t{2});
    f.calls.give_one(f.wanted);
    QCOMPARE(f.calls.waiting.size(), std::size_t{3});
    f.calls.give_one(f.wanted);
    f.calls.give_one(f.wanted);
    QCOMPARE(f.calls.waiting.size(), std::size_t{4});  // of seven, all that are left
    f.calls.give_all(f.wanted);
    QVERIFY(f.has_it());
    QCOMPARE(f.calls.asked[first], int(pieces));
    QCOMPARE(f.fetcher.bytes_received(), std::uint64_t{size});
  }

  // Refused as often as it may be while other pieces are still on their way: those are waited for.
  void who_refuses_too_often_is_left_with_pieces_under_way() {
    Fixture f({first, second});
    f.calls.refuse(4);
    QCOMPARE(f.calls.asked[second], 0);
    QCOMPARE(f.calls.waiting.size(), std::size_t{1});
    f.calls.give_one(f.wanted);
    QCOMPARE(f.calls.asked[first], 5);
    f.calls.give_all(f.wanted);
    QVERIFY(f.has_it());
    QCOMPARE(f.calls.asked[second], int(pieces));
  }

  void nobody_is_left() {
    Fixture f({first, unknown, second});
    f.calls.refuse(f.calls.waiting.size() + 3);
    QCOMPARE(f.calls.asked[first], 5);
    f.calls.refuse(5);
    QCOMPARE(f.calls.asked[second], 5);
    QVERIFY(f.calls.waiting.empty());
    QCOMPARE(f.ends, 0);  // in a turn of its own
    f.executor.run();
    QVERIFY(f.failed());
  }

  // It may have it later: the others come first.
  void who_does_not_hold_it_yet_has_another_turn() {
    Fixture f({first, second});
    f.calls.refuse(2, ErrorCode::NotFound);
    QCOMPARE(f.calls.asked[first], 2);
    QCOMPARE(f.calls.asked[second], 2);
    f.calls.refuse(2, ErrorCode::NotFound);
    QCOMPARE(f.calls.asked[first], 4);
    f.calls.give_all(f.wanted);
    QVERIFY(f.has_it());
    QCOMPARE(f.calls.asked[second], 2);
  }

  // Rounds go on: an anchor that is not held now is one of the past, and the newest is to be asked for.
  void an_anchor_that_nobody_holds_is_given_up_at_once() {
    AnchorFixture f;
    f.calls.refuse(2, ErrorCode::NotFound);
    QVERIFY(f.calls.waiting.empty());
    f.executor.run();
    QCOMPARE(f.error, std::optional(ErrorCode::Unavailable));
    QVERIFY(!f.fetcher.abandon(f.ticket));
  }

  // The leaves are the anchor's, but the first one names another tokenizer: this node can never hold it.
  void an_anchor_of_another_tokenizer_is_noticed() {
    for (const bool same : {true, false}) {
      outer::AnchorIdentity own, theirs;
      if (!same) theirs.tokenizer.fill(5);
      const std::vector<float> values(1000, 0.5f);
      const rounds::Anchor anchor = state_in_memory(values, values);
      const std::vector<Hash256> leaves =
          outer::anchor_leaves(theirs, anchor->counts, *anchor->bytes).value();
      Bytes bytes;
      for (const Hash256& leaf : leaves) bytes.insert(bytes.end(), leaf.begin(), leaf.end());
      Calls calls;
      Known peers;
      testing::ManualExecutor executor;
      ManualClock clock;
      MemorySpool spool;
      RoundFetcher fetcher{calls, peers, executor, clock, spool, two_at_first()};
      fetcher.anchor({}, crypto::merkle_root(leaves), own, 1000, 0, {first}, [](const auto&) {});
      QVERIFY(!calls.waiting.empty());
      calls.give_one(bytes);
      QCOMPARE(fetcher.other_identity(), !same);
    }
  }

  void what_is_abandoned_asks_for_no_more() {
    AnchorFixture f;
    QVERIFY(f.fetcher.abandon(f.ticket));
    QVERIFY(!f.fetcher.abandon(f.ticket));
    f.calls.refuse(1);
    QVERIFY(f.calls.waiting.empty());
    f.executor.run();
    QVERIFY(!f.error);
  }

  void other_bytes_are_not_taken() {
    Fixture f({first, second});
    while (f.calls.asked[second] == 0) f.calls.give_one(content(1));
    QCOMPARE(f.calls.asked[first], int(pieces));
    f.calls.give_all(f.wanted);
    QVERIFY(f.has_it());

    Fixture alone({first});
    alone.calls.give_all(content(1));
    alone.executor.run();
    QVERIFY(alone.failed());
  }

  // A contribution may have no payload at all, and room on the disk costs a part of the day's writes.
  void a_source_that_gives_nothing_takes_no_room() {
    Fixture f({first, second});
    f.calls.refuse(2);
    f.calls.fall_silent();
    while (!f.calls.waiting.empty()) f.calls.refuse(1, ErrorCode::NotFound);
    f.executor.run();
    QVERIFY(f.failed());
    QCOMPARE(f.spool.made, 0);
  }

  void sources_fill_the_same_room() {
    Fixture f({first, second});
    f.calls.give_one(content(1));  // other bytes, and no more of them
    QCOMPARE(f.spool.made, 1);
    while (f.calls.asked[second] == 0) f.calls.refuse(1);
    f.calls.give_all(f.wanted);
    QVERIFY(f.has_it());
    QCOMPARE(f.spool.made, 1);

    // All of them, so they have been read: nothing can be added any more.
    Fixture liar({first, second});
    while (liar.calls.asked[second] == 0) liar.calls.give_one(content(1));
    QCOMPARE(liar.spool.made, 1);
    liar.calls.give_all(liar.wanted);
    QVERIFY(liar.has_it());
    QCOMPARE(liar.spool.made, 2);
  }

  void without_room_the_fetch_ends_once_and_says_so() {
    Fixture f({first, second});
    f.spool.full = true;
    f.calls.give_one(f.wanted);
    f.calls.give_all(f.wanted);
    QCOMPARE(f.ends, 0);  // in a turn of its own
    f.executor.run();
    QCOMPARE(f.ends, 1);
    QVERIFY(!f.got->ok());
    QCOMPARE(f.got->error().code, ErrorCode::Exhausted);
    QCOMPARE(f.spool.made, 1);
    QCOMPARE(f.calls.asked[second], 0);
  }

  void a_source_of_wrong_bytes_is_named_and_not_asked_again() {
    Fixture f({first, second});
    std::vector<net::NodeId> named;
    f.fetcher.on_wrong_bytes(
        [&named](const net::NodeId& source, const PieceRequest&) { named.push_back(source); });
    const Bytes less = content(0);
    const int at_once = f.calls.asked[first];
    while (f.calls.asked[second] == 0)
      f.calls.take().done(encode_piece_answer(size, ByteSpan(less.data(), 99)));
    QCOMPARE(f.calls.asked[first], at_once);
    QVERIFY(named == std::vector<net::NodeId>(static_cast<std::size_t>(at_once), first));
    f.calls.give_all(f.wanted);
    QVERIFY(f.has_it());
    QCOMPARE(named.size(), static_cast<std::size_t>(at_once));
  }

  // Seven that fetch from a line of 10 Mbit/s: each piece takes longer than a quiet line would need, and a
  // piece that takes twice as long as the last one is no reason to give it up.
  void a_slow_source_has_time_as_long_as_pieces_come() {
    Fixture f({first, second});
    const Duration at_first = f.calls.waiting.front().deadline;
    f.clock.advance(std::chrono::seconds(6));
    f.calls.give_one(f.wanted);
    f.calls.give_one(f.wanted);
    QCOMPARE(f.calls.waiting.size(), std::size_t{1});  // more would only wait
    QVERIFY(f.calls.waiting.front().deadline > 3 * at_first);
    // Once nothing comes for all that time; then again.
    f.clock.advance(f.calls.waiting.front().deadline);
    f.calls.fall_silent();
    QCOMPARE(f.calls.waiting.size(), std::size_t{1});
    f.calls.give_all(f.wanted);
    QVERIFY(f.has_it());
    QCOMPARE(f.calls.asked[second], 0);
  }

  // A node that asks seven others for a payload each has one line for all answers. Each answer has the time of
  // itself and all before it, at 1 Mbit/s. Else none would be here in time, and all would be asked for again.
  void what_was_asked_of_others_comes_over_the_same_line() {
    Fixture f({first});
    fetch(f.fetcher, content(1), {second}, [](const auto&) {});
    QCOMPARE(f.calls.waiting.size(), std::size_t{4});
    const auto of_line = std::chrono::milliseconds(4 * net::chunk_bytes / 125);
    QVERIFY(f.calls.waiting.back().deadline >= of_line + FetchOptions{}.allowed);
    QVERIFY(f.calls.waiting.front().deadline < of_line);
    // An answered request takes no time any more.
    f.calls.refuse(1, ErrorCode::NotFound);
    f.calls.give_all(f.wanted);
    fetch(f.fetcher, content(2), {second}, [](const auto&) {});
    QVERIFY(f.calls.waiting.front().deadline < of_line);
  }

  // Dead, or its answers are lost: the others come first, then it has another turn, four in all.
  void who_never_says_anything_is_asked_after_the_others() {
    Fixture f({first, second});
    for (int turn = 1; turn <= 4; ++turn) {
      for (const net::NodeId& id : {first, second}) {
        QCOMPARE(f.calls.waiting.size(), std::size_t{2});
        QVERIFY(f.calls.waiting.front().deadline < std::chrono::seconds(10));
        f.calls.fall_silent();
        f.calls.fall_silent();
        QCOMPARE(f.calls.asked[id], 2 * turn);
      }
    }
    QVERIFY(f.calls.waiting.empty());
    f.executor.run();
    QVERIFY(f.failed());

    Fixture later({first, second});
    for (int i = 0; i < 4; ++i) later.calls.fall_silent();
    later.calls.give_all(later.wanted);
    QVERIFY(later.has_it());
    QCOMPARE(later.calls.asked[second], 2);
  }

  // A small piece is asked of the next source after a second of silence, and whoever is right first gives it.
  void what_is_small_is_soon_asked_of_others_too() {
    const Bytes wanted = {1, 2, 3, 4, 5}, other = {5, 4, 3, 2, 1};
    const auto answer = [](const Bytes& bytes) { return encode_piece_answer(bytes.size(), bytes); };
    Calls calls;
    Known peers;
    TimedExecutor executor;
    ManualClock clock;
    MemorySpool spool;
    RoundFetcher fetcher(calls, peers, executor, clock, spool, {});
    int ends = 0;
    std::optional<Expected<ByteSourcePtr>> got;
    fetch(fetcher, wanted, {first, second, id_of(3)}, [&](Expected<ByteSourcePtr> result) {
      ++ends;
      got = std::move(result);
    });
    QCOMPARE(calls.waiting.size(), std::size_t{1});
    executor.a_second_passes();
    executor.a_second_passes();
    QCOMPARE(calls.asked[second], 1);
    QCOMPARE(calls.asked[id_of(3)], 1);
    Calls::Call silent = calls.take(), liar = calls.take(), honest = calls.take();
    liar.done(answer(other));
    QCOMPARE(ends, 0);
    honest.done(answer(wanted));
    QCOMPARE(ends, 1);
    QVERIFY(got->ok() && test::bytes_of(**got) == wanted);
    silent.done(answer(wanted));
    executor.a_second_passes();
    QCOMPARE(ends, 1);
    QVERIFY(calls.waiting.empty());

    // A large piece is not: a slow line would only get slower.
    std::optional<Expected<ByteSourcePtr>> large;
    fetch(fetcher, content(0), {first, second},
          [&](Expected<ByteSourcePtr> result) { large = std::move(result); });
    calls.asked.clear();
    executor.a_second_passes();
    QCOMPARE(calls.asked[second], 0);
  }

  // One is silent, the next lies, and the others refuse: the lie does not hide that nobody is left.
  void wrong_bytes_beside_a_silent_source_are_no_end() {
    const Bytes wanted = {1, 2, 3, 4, 5}, other = {5, 4, 3, 2, 1};
    Calls calls;
    Known peers;
    TimedExecutor executor;
    ManualClock clock;
    MemorySpool spool;
    RoundFetcher fetcher(calls, peers, executor, clock, spool, {});
    std::vector<Expected<ByteSourcePtr>> ends;
    fetch(fetcher, wanted, {first, second, id_of(3)},
          [&](Expected<ByteSourcePtr> result) { ends.push_back(std::move(result)); });
    executor.a_second_passes();
    Calls::Call silent = calls.take(), liar = calls.take();
    QCOMPARE(liar.of, second);
    liar.done(encode_piece_answer(other.size(), other));
    QVERIFY(ends.empty());
    silent.done(make_error(ErrorCode::Timeout, "no answer within the deadline"));
    for (int calls_left = 100; calls_left > 0 && !calls.waiting.empty(); --calls_left) calls.refuse(1);
    QVERIFY(calls.asked[id_of(3)] > 0);
    QCOMPARE(ends.size(), std::size_t{1});
    QCOMPARE(ends[0].error().code, ErrorCode::Unavailable);
  }

  void a_piece_without_bytes_is_nobodys() {
    Calls calls;
    Known peers;
    TimedExecutor executor;
    ManualClock clock;
    MemorySpool spool;
    RoundFetcher fetcher(calls, peers, executor, clock, spool, {});
    std::optional<Expected<ByteSourcePtr>> got;
    fetch(fetcher, {}, {first}, [&](Expected<ByteSourcePtr> result) { got = std::move(result); });
    QVERIFY(got && !got->ok() && calls.waiting.empty());
  }

  void who_falls_silent_in_the_middle_is_asked_once_more() {
    Fixture f({first, second});
    f.clock.advance(std::chrono::seconds(1));
    f.calls.give_one(f.wanted);
    f.clock.advance(std::chrono::seconds(20));
    while (f.calls.asked[second] == 0) f.calls.fall_silent();
    QVERIFY(f.calls.asked[first] <= 6);
    f.calls.give_all(f.wanted);
    QVERIFY(f.has_it());
  }

  // It gives a piece now and then, and each time more slowly: an end is set to that.
  void patience_has_an_end() {
    Fixture f({first, second});
    Duration longest{};
    for (int i = 0; i < 5; ++i) {
      longest = std::max(longest, f.calls.waiting.front().deadline);
      f.clock.advance(f.calls.waiting.front().deadline);
      f.calls.give_one(f.wanted);
    }
    QCOMPARE(longest, Duration(std::chrono::seconds(60)));
  }

  void an_end_in_the_middle_calls_nobody_back() {
    auto f = std::make_unique<Fixture>(std::vector<net::NodeId>{first});
    auto calls = std::move(f->calls.waiting);
    f.reset();
    for (auto& call : calls) call.done(make_error(ErrorCode::NotFound, "not here"));
  }
};

NS_TEST(TestFetch)
#include "test_fetch.moc"
