// Fetching in pieces from sources that give, refuse, lie or fall silent: it always ends, and what it gives is
// what was asked for.
#include <QtTest>

#include <deque>

#include "core/crypto/hash.h"
#include "core/net/peer_channel.h"
#include "core/rounds/fetch.h"
#include "tests/support/manual_executor.h"

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
    FetchRequest request;
    net::CallDone done;
  };
  void call(const net::Contact& peer, net::Method, Bytes request, Duration, net::CallDone done) override {
    waiting.push_back({peer.id, *decode_fetch_request(request), std::move(done)});
    ++asked[peer.id];
  }
  Call take() {
    Call call = std::move(waiting.front());
    waiting.pop_front();
    return call;
  }
  void refuse(std::size_t count) {
    for (; count > 0; --count) take().done(make_error(ErrorCode::NotFound, "not here"));
  }
  // All that is asked, and what that leads to; `whole` is what this node holds.
  void give_all(const Bytes& whole) {
    while (!waiting.empty()) give_one(whole);
  }
  void give_one(const Bytes& whole) {
    const Call call = take();
    const std::size_t at = call.request.place;
    const std::size_t count = std::min<std::size_t>(net::chunk_bytes, whole.size() - at);
    call.done(encode_fetch_answer(whole.size(), ByteSpan(whole.data() + at, count)));
  }
  std::deque<Call> waiting;
  std::map<net::NodeId, int> asked;
};

struct Known final : RoundPeers {
  std::optional<net::Contact> find(const net::NodeId& id) override {
    if (id == unknown) return std::nullopt;
    return net::Contact{id, {platform::IpAddress::v4(11, 0, 0, id[0]), 9000}};
  }
  std::vector<net::Contact> some() override { return {}; }
};

}  // namespace

class TestFetch : public QObject {
  Q_OBJECT

  struct Fixture {
    explicit Fixture(std::vector<net::NodeId> sources) {
      fetcher.payload({}, crypto::sha256(wanted), size, std::move(sources), [this](Expected<Bytes> result) {
        ++ends;
        got = std::move(result);
      });
    }
    Bytes wanted = content(0);
    Calls calls;
    Known peers;
    testing::ManualExecutor executor;
    RoundFetcher fetcher{calls, peers, executor, {}};
    std::optional<Expected<Bytes>> got;
    int ends = 0;

    bool has_it() const { return ends == 1 && got->ok() && **got == wanted; }
    bool failed() const { return ends == 1 && !got->ok() && got->error().code == ErrorCode::Unavailable; }
  };

 private Q_SLOTS:
  void a_few_pieces_at_a_time_until_it_is_whole() {
    Fixture f({first});
    QCOMPARE(f.calls.waiting.size(), std::size_t{4});
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
    QCOMPARE(f.calls.waiting.size(), std::size_t{3});
    f.calls.give_one(f.wanted);
    f.calls.refuse(2);
    QCOMPARE(f.calls.asked[first], 7);
    f.calls.give_all(f.wanted);
    QVERIFY(f.has_it());
    QCOMPARE(f.calls.asked[second], int(pieces));
  }

  void nobody_is_left() {
    Fixture f({first, unknown, second});
    f.calls.refuse(f.calls.waiting.size() + 3);
    QCOMPARE(f.calls.asked[first], 7);
    f.calls.refuse(7);
    QCOMPARE(f.calls.asked[second], 7);
    QVERIFY(f.calls.waiting.empty());
    QCOMPARE(f.ends, 0);  // in a turn of its own
    f.executor.run();
    QVERIFY(f.failed());
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

  void too_short_a_piece_counts_as_a_refusal() {
    Fixture f({first, second});
    const Bytes less = content(0);
    while (f.calls.asked[second] == 0)
      f.calls.take().done(encode_fetch_answer(size, ByteSpan(less.data(), 99)));
    f.calls.give_all(f.wanted);
    QVERIFY(f.has_it());
  }

  void an_end_in_the_middle_calls_nobody_back() {
    auto f = std::make_unique<Fixture>(std::vector<net::NodeId>{first});
    auto calls = std::move(f->calls.waiting);
    f.reset();
    for (auto& call : calls) call.done(make_error(ErrorCode::NotFound, "not here"));
  }
};

QTEST_GUILESS_MAIN(TestFetch)
#include "test_fetch.moc"
