// Frames over a stream: payloads in chunks, silence, and ends that break the rules.
#include <QtTest>

#include "core/net/limited_transport.h"
#include "core/net/local_stream.h"
#include "core/pipeline/frame_stream.h"
#include "core/sim/transport.h"
#include "core/sim/world.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::pipeline;
using namespace neuroshard::test;

namespace {

const Bytes alive = {0};

struct End {
  std::vector<std::pair<Bytes, Bytes>> frames;
  std::vector<Error> ends;
  std::size_t expected = 0;
  std::unique_ptr<FrameStream> stream;

  void open(std::shared_ptr<net::PeerStream> inner, sim::World& world, Executor& executor) {
    FrameStream::Events events;
    events.admit = [this](ByteSpan header) -> Expected<std::size_t> {
      if (header[0] == 99) return make_error(ErrorCode::InvalidArgument, "not this");
      return header[0] == 0 ? 0 : expected;
    };
    events.received = [this](Bytes header, Bytes payload) {
      frames.emplace_back(std::move(header), std::move(payload));
    };
    events.ended = [this](const Error& error) { ends.push_back(error); };
    stream =
        std::make_unique<FrameStream>(std::move(inner), executor, world.clock(), FrameTimes(), alive, events);
  }
};

struct Fixture {
  sim::World world;
  sim::HostExecutor executor{world};
  End one, other;
  std::pair<std::shared_ptr<net::PeerStream>, std::shared_ptr<net::PeerStream>> ends =
      net::make_local_stream(executor);
  void open_both() {
    one.open(std::move(ends.first), world, executor);
    other.open(std::move(ends.second), world, executor);
  }
};

// Keeps the stream that another node opens.
struct Keeper final : net::PeerService {
  void on_call(const net::Caller&, net::Method, Bytes, net::Respond) override {}
  void on_stream(const net::Caller&, net::Method, std::shared_ptr<net::PeerStream> opened) override {
    stream = std::move(opened);
  }
  std::shared_ptr<net::PeerStream> stream;
};

// A stream between a node whose owner allows it a speed and one without limits.
struct LimitedPair {
  explicit LimitedPair(net::TrafficLimits limits) : meter(world.clock(), logger, limits, nullptr) {
    free.serve(&keeper);
    limited.connect({at(2), id_of(2)}, 5 * second, [this](auto connected) {
      if (connected.ok()) channel = std::move(*connected);
    });
    world.run_until([this] { return channel != nullptr; }, world.now() + minute);
    if (channel == nullptr) return;
    auto stream = channel->open(net::Method::PipelineSession, Duration::max());
    world.run_until([this] { return keeper.stream != nullptr; }, world.now() + minute);
    if (keeper.stream == nullptr) return;
    one.open(std::move(stream), world, executor);
    other.open(std::move(keeper.stream), world, other_executor);
  }
  static net::NodeId id_of(std::uint8_t number) {
    net::NodeId id{};
    id.fill(number);
    return id;
  }
  static platform::Endpoint at(std::uint8_t number) {
    return {platform::IpAddress::v4(11, 0, 0, number), 9000};
  }
  sim::TransportServices services() { return {world, network, population, bans, refusals}; }

  sim::World world;
  sim::Network network{world, {}, 3};
  sim::Population population;
  net::BanList bans{world.clock()};
  net::RefusalCounts refusals;
  NullLogger logger;
  Keeper keeper;
  sim::HostExecutor executor{world}, other_executor{world};
  net::TrafficMeter meter;
  sim::SimTransport inner{services(), executor, id_of(1), at(1), sim::Nat::None, net::Hello{}};
  sim::SimTransport free{services(), other_executor, id_of(2), at(2), sim::Nat::None, net::Hello{}};
  net::LimitedTransport limited{inner, executor, meter};
  std::shared_ptr<net::PeerChannel> channel;
  End one, other;  // one: of the node with limits
};

SharedBytes payload_of(std::size_t size, std::uint8_t first) {
  auto bytes = std::make_shared<Bytes>(size);
  for (std::size_t i = 0; i < size; ++i) (*bytes)[i] = static_cast<std::uint8_t>(first + i * 7);
  return bytes;
}

}  // namespace

class TestFrameStream : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // Sizes around the chunks and beyond what waits in a stream.
  void payloads_arrive_whole_data() {
    QTest::addColumn<int>("size");
    for (const int size : {0, 1, 65535, 65536, 65537, 262144, 5000000})
      QTest::addRow("%d bytes", size) << size;
  }
  void payloads_arrive_whole() {
    QFETCH(int, size);
    Fixture pair;
    pair.open_both();
    pair.one.expected = pair.other.expected = static_cast<std::size_t>(size);
    const SharedBytes there = payload_of(pair.other.expected, 3), back = payload_of(pair.one.expected, 200);
    for (std::uint8_t i = 1; i <= 3; ++i) {
      pair.one.stream->send({i, 1}, there);
      pair.other.stream->send({i, 2}, back);
    }
    pair.world.run_for(second);
    QCOMPARE(pair.other.frames.size(), std::size_t{3});
    for (std::uint8_t i = 0; i < 3; ++i) {
      QVERIFY(pair.other.frames[i] == std::pair(Bytes({static_cast<std::uint8_t>(i + 1), 1}), *there));
      QVERIFY(pair.one.frames[i] == std::pair(Bytes({static_cast<std::uint8_t>(i + 1), 2}), *back));
    }
  }

  void an_idle_stream_lives() {
    Fixture pair;
    pair.open_both();
    pair.world.run_for(minute);
    QVERIFY(pair.one.ends.empty() && pair.other.ends.empty());
    QVERIFY(pair.one.frames.empty());  // that an end is there is no message
  }

  void silence_is_an_end() {
    Fixture pair;
    pair.one.open(std::move(pair.ends.first), pair.world, pair.executor);
    pair.world.run_for(2 * second);
    QVERIFY(pair.one.ends.empty());
    pair.world.run_for(3 * second);
    QCOMPARE(pair.one.ends.size(), std::size_t{1});
    QCOMPARE(pair.one.ends[0].code, ErrorCode::Timeout);
  }

  // A payload takes 16 seconds.
  void a_slow_payload_is_no_silence_data() {
    QTest::addColumn<bool>("up");
    QTest::newRow("up") << true;
    QTest::newRow("down") << false;
  }
  void a_slow_payload_is_no_silence() {
    QFETCH(bool, up);
    constexpr std::uint64_t speed = 64u << 10;
    LimitedPair pair(up ? net::TrafficLimits{speed, 0} : net::TrafficLimits{0, speed});
    QVERIFY(pair.one.stream != nullptr && pair.other.stream != nullptr);
    End &from = up ? pair.one : pair.other, &to = up ? pair.other : pair.one;
    to.expected = 1u << 20;
    const SharedBytes payload = payload_of(to.expected, 5);
    from.stream->send({1}, payload);
    from.stream->send({2}, payload);
    pair.world.run_for(10 * second);
    QVERIFY(to.frames.empty());  // the limit holds
    pair.world.run_for(minute);
    QVERIFY2(pair.one.ends.empty(), pair.one.ends.empty() ? "" : pair.one.ends[0].message.c_str());
    QVERIFY2(pair.other.ends.empty(), pair.other.ends.empty() ? "" : pair.other.ends[0].message.c_str());
    QCOMPARE(to.frames.size(), std::size_t{2});
    QVERIFY(to.frames[1].second == *payload);
  }

  void silence_within_a_payload_is_an_end() {
    Fixture pair;
    pair.one.expected = 4;
    pair.one.open(std::move(pair.ends.first), pair.world, pair.executor);
    const QByteArray header("\x04\0\0\0\x01", 5);
    pair.ends.second->write(Bytes(header.begin(), header.end()), [](const Expected<void>&) {});
    pair.world.run_for(15 * second);
    QVERIFY(pair.one.ends.empty());
    pair.world.run_for(10 * second);
    QCOMPARE(pair.one.ends.size(), std::size_t{1});
    QCOMPARE(pair.one.ends[0].code, ErrorCode::Timeout);
  }

  void a_broken_stream_ends_once() {
    Fixture pair;
    pair.open_both();
    pair.other.stream->break_off(make_error(ErrorCode::Unavailable, "the owner plays a game"));
    pair.world.run_for(minute);
    QCOMPARE(pair.one.ends.size(), std::size_t{1});
    QVERIFY(pair.one.ends[0].message.find("plays a game") != std::string::npos);
    QVERIFY(pair.other.ends.empty());
  }

  void rules_data() {
    QTest::addColumn<QByteArray>("first");
    QTest::addColumn<QByteArray>("second");
    QTest::newRow("no header") << QByteArray("\0\0\0\0", 4) << QByteArray();
    QTest::newRow("a long header") << QByteArray(20000, 1) << QByteArray();
    QTest::newRow("refused") << QByteArray("\0\0\0\0\x63", 5) << QByteArray();
    QTest::newRow("another size") << QByteArray("\x05\0\0\0\x01", 5) << QByteArray();
    QTest::newRow("a huge size") << QByteArray("\xFF\xFF\xFF\xFF\x01", 5) << QByteArray();
    QTest::newRow("a longer payload") << QByteArray("\x04\0\0\0\x01", 5) << QByteArray("12345");
  }
  void rules() {
    QFETCH(QByteArray, first);
    QFETCH(QByteArray, second);
    Fixture pair;
    pair.one.expected = 4;
    pair.one.open(std::move(pair.ends.first), pair.world, pair.executor);
    const auto raw = std::move(pair.ends.second);
    const auto send = [&raw](const QByteArray& bytes, std::function<void()> then) {
      raw->write(Bytes(bytes.begin(), bytes.end()), [then](const Expected<void>&) { then(); });
    };
    send(first, [&] {
      if (!second.isEmpty()) send(second, [] {});
    });
    pair.world.run_for(millisecond);
    QVERIFY(pair.one.frames.empty());
    QCOMPARE(pair.one.ends.size(), std::size_t{1});
    QCOMPARE(pair.one.ends[0].code, ErrorCode::InvalidArgument);
  }

  // An owner may drop its stream in any of the calls.
  void the_owner_may_end_it_in_a_call() {
    Fixture pair;
    pair.open_both();
    pair.other.expected = 1;
    FrameStream::Events events;
    std::unique_ptr<FrameStream> stream;
    auto [left, right] = net::make_local_stream(pair.executor);
    events.admit = [](ByteSpan) { return std::size_t{0}; };
    events.received = [&stream](const Bytes&, const Bytes&) { stream.reset(); };
    events.ended = [](const Error&) { QFAIL("it was destroyed"); };
    stream =
        std::make_unique<FrameStream>(left, pair.executor, pair.world.clock(), FrameTimes(), alive, events);
    left.reset();
    End end;
    end.open(right, pair.world, pair.executor);
    right.reset();
    end.stream->send({1});
    pair.world.run_for(second);
    QVERIFY(stream == nullptr);
    QCOMPARE(end.ends.size(), std::size_t{1});
  }
};

NS_TEST(TestFrameStream)
#include "test_frame_stream.moc"
