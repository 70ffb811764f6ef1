// The user's limits on peer traffic, on virtual time: bytes a second within 5 %, the month within 5 % and
// beyond a restart, and the report when they are reached.
#include <QtTest>

#include "core/net/limited_transport.h"
#include "core/sim/transport.h"
#include "tests/support/busy_executor.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

constexpr auto method = static_cast<Method>(60'000);
using neuroshard::test::second;
constexpr std::uint64_t kibi = 1024, mebi = kibi * kibi;

NodeId id_of(std::uint8_t number) {
  NodeId id{};
  id.fill(number);
  return id;
}

// Takes every stream to its end and counts, and answers calls with as much as they ask for.
struct Sink final : PeerService {
  void on_call(const Caller&, Method, Bytes request, Respond respond) override {
    ++calls;
    respond(Bytes(request.size() == 8 ? load_le<std::uint64_t>(request.data()) : 0));
  }
  void on_stream(const Caller&, Method, std::shared_ptr<PeerStream> stream) override { drain(stream); }
  void drain(const std::shared_ptr<PeerStream>& stream) {
    stream->read([this, stream](Expected<std::optional<ByteChain>> piece) {
      if (!piece.ok() || !*piece) return;
      bytes += (*piece)->size();
      drain(stream);
    });
  }
  int calls = 0;
  std::uint64_t bytes = 0;
};

// `limited` dials `free`, and is dialled by it.
struct World {
  explicit World(TrafficLimits limits = {}, TrafficCap* cap = nullptr, const PeerRanks* ranks = nullptr)
      : meter(world.clock(), logger, limits, cap),
        limited_inner(services(), executor_a, id_of(1), at(1), sim::Nat::None, Hello{}),
        free(services(), executor_b, id_of(2), at(2), sim::Nat::None, Hello{}),
        limited(limited_inner, executor_a, meter, nullptr, ranks) {
    limited_inner.serve(&limited.serving(&sink_a));
    free.serve(&sink_b);
  }
  static platform::Endpoint at(std::uint8_t number) {
    return {platform::IpAddress::v4(11, 0, 0, number), 9000};
  }
  sim::TransportServices services() { return {world, network, population, bans, refusals}; }

  Expected<std::shared_ptr<PeerChannel>> connect(PeerTransport& from, std::uint8_t to) {
    std::optional<Expected<std::shared_ptr<PeerChannel>>> result;
    from.connect({at(to), id_of(to)}, 5 * second, [&](auto channel) { result.emplace(std::move(channel)); });
    world.run_until([&] { return result.has_value(); }, world.now() + std::chrono::minutes(1));
    return result ? std::move(*result) : make_error(ErrorCode::Timeout, "nothing came");
  }
  Expected<Bytes> call(PeerChannel& channel, std::uint64_t wanted, std::size_t sent = 8) {
    Bytes request(sent);
    store_le(request.data(), wanted);
    std::optional<Expected<Bytes>> answer;
    channel.call(method, std::move(request), std::chrono::hours(1),
                 [&](Expected<Bytes> result) { answer.emplace(std::move(result)); });
    world.run_until([&] { return answer.has_value(); }, world.now() + std::chrono::hours(2));
    return answer ? std::move(*answer) : make_error(ErrorCode::Timeout, "nothing came");
  }
  // Writes for ever.
  void pour(const std::shared_ptr<PeerStream>& stream, std::size_t size) {
    stream->write(Bytes(size), [this, stream, size](const Expected<void>& written) {
      if (written.ok()) pour(stream, size);
    });
  }

  sim::World world;
  sim::Network network{world, {}, 3};
  sim::Population population;
  BanList bans{world.clock()};
  RefusalCounts refusals;
  NullLogger logger;
  Sink sink_a, sink_b;
  sim::HostExecutor executor_a{world}, executor_b{world};
  TrafficMeter meter;
  sim::SimTransport limited_inner, free;
  LimitedTransport limited;
};

bool within(double value, double wanted, double share) {
  if (std::abs(value - wanted) <= share * wanted) return true;
  qWarning("%g instead of %g", value, wanted);
  return false;
}

}  // namespace

class TestLimitedTransport : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_travels_is_counted();
  void streams_up_keep_the_limit_data();
  void streams_up_keep_the_limit();
  void streams_down_keep_the_limit();
  void calls_keep_both_limits();
  void answers_to_others_keep_the_limit();
  void requests_of_others_stop_no_fetch();
  void small_messages_pass_by_large_ones();
  void small_messages_alone_keep_the_limit();
  void without_limits_nothing_waits();
  void limits_may_change_at_any_time();
  void what_waits_ends_with_its_channel();
  void a_full_executor_loses_no_end();
  void a_queue_that_is_too_long_is_refused();
  void the_month_ends_and_begins_anew();
  void strangers_can_not_use_up_the_month_data();
  void strangers_can_not_use_up_the_month();
  void the_month_survives_a_restart();
};

void TestLimitedTransport::what_travels_is_counted() {
  // A packet of 1500 bytes carries 1448 of TCP; 256 KiB are 16 TLS records.
  QCOMPARE(wire_bytes(0), std::uint64_t{150 + 52});
  const double chunk = static_cast<double>(wire_bytes(256 * kibi));
  QVERIFY(within(chunk / (256.0 * kibi), 1.0 + 52.0 / 1448, 0.005));
}

void TestLimitedTransport::streams_up_keep_the_limit_data() {
  QTest::addColumn<qulonglong>("limit");
  QTest::addColumn<int>("piece");
  QTest::addColumn<int>("streams");
  QTest::newRow("chunks") << 1ull * mebi << int(256 * kibi) << 1;
  QTest::newRow("chunks, slow line") << 100ull * kibi << int(256 * kibi) << 1;
  QTest::newRow("four streams") << 1ull * mebi << int(256 * kibi) << 4;
  QTest::newRow("small messages") << 500ull * kibi << 2000 << 40;
  QTest::newRow("the largest messages") << 2ull * mebi << int(4 * mebi) << 1;
}

void TestLimitedTransport::streams_up_keep_the_limit() {
  QFETCH(qulonglong, limit);
  QFETCH(int, piece);
  QFETCH(int, streams);
  World w({limit, 0});
  const auto channel = w.connect(w.limited, 2);
  QVERIFY(channel.ok());
  for (int i = 0; i < streams; ++i)
    w.pour((*channel)->open(method, Duration::max()), static_cast<std::size_t>(piece));
  constexpr int seconds = 60;
  w.world.run_for(seconds * second);
  const double per_message = static_cast<double>(wire_bytes(static_cast<std::uint64_t>(piece))) / piece;
  const double wire = static_cast<double>(w.sink_b.bytes) * per_message / seconds;
  // Bytes under way at the end, and a quarter of a second that passes at once, are in it.
  QVERIFY(within(wire, static_cast<double>(limit), 0.05));
}

void TestLimitedTransport::streams_down_keep_the_limit() {
  constexpr std::uint64_t limit = 800 * kibi;
  World w({0, limit});
  const auto channel = w.connect(w.free, 1);
  QVERIFY(channel.ok());
  w.pour((*channel)->open(method, Duration::max()), 256 * kibi);
  w.world.run_for(120 * second);
  const double wire = static_cast<double>(w.sink_a.bytes) * 1.0375 / 120;
  QVERIFY(within(wire, limit, 0.05));
}

void TestLimitedTransport::calls_keep_both_limits() {
  constexpr std::uint64_t limit = 256 * kibi;
  World w({limit, limit});
  const auto channel = w.connect(w.limited, 2);
  QVERIFY(channel.ok());
  const MonotonicTime down_from = w.world.now();
  for (int i = 0; i < 40; ++i) QVERIFY(w.call(**channel, 256 * kibi).ok());
  double seconds = to_seconds(w.world.now() - down_from);
  QVERIFY(within(40.0 * static_cast<double>(wire_bytes(256 * kibi)) / seconds, limit, 0.05));
  const MonotonicTime up_from = w.world.now();
  for (int i = 0; i < 40; ++i) QVERIFY(w.call(**channel, 0, 256 * kibi).ok());
  seconds = to_seconds(w.world.now() - up_from);
  QVERIFY(within(40.0 * static_cast<double>(wire_bytes(256 * kibi)) / seconds, limit, 0.05));
}

void TestLimitedTransport::answers_to_others_keep_the_limit() {
  constexpr std::uint64_t limit = 256 * kibi;
  World w({limit, 0});
  const auto channel = w.connect(w.free, 1);
  QVERIFY(channel.ok());
  const MonotonicTime from = w.world.now();
  for (int i = 0; i < 40; ++i) QVERIFY(w.call(**channel, 256 * kibi).ok());
  QVERIFY(within(40.0 * static_cast<double>(wire_bytes(256 * kibi)) / to_seconds(w.world.now() - from), limit,
                 0.05));
}

// Others send requests of as many bytes as the limit allows in 160 s.
void TestLimitedTransport::requests_of_others_stop_no_fetch() {
  constexpr std::uint64_t limit = 64 * kibi;
  World w({0, limit});
  const auto from_outside = w.connect(w.free, 1);
  const auto channel = w.connect(w.limited, 2);
  QVERIFY(from_outside.ok() && channel.ok());
  for (int i = 0; i < 40; ++i) QVERIFY(w.call(**from_outside, 0, 256 * kibi).ok());
  QVERIFY(w.meter.view().received >= 40 * 256 * kibi);
  const MonotonicTime from = w.world.now();
  QVERIFY(w.call(**channel, 10).ok());
  const Duration waited = w.world.now() - from;
  QVERIFY2(waited > second && waited < 4 * second, std::to_string(to_seconds(waited)).c_str());
}

// While a line of 256 KiB/s is full with what a round sends and fetches, a vote is there within a second, and
// the limits hold for all of it.
void TestLimitedTransport::small_messages_pass_by_large_ones() {
  constexpr std::uint64_t limit = 256 * kibi;
  World w({limit, limit});
  const auto channel = w.connect(w.limited, 2);
  QVERIFY(channel.ok());
  std::vector<std::shared_ptr<PeerStream>> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back((*channel)->open(method, Duration::max()));
    w.pour(streams.back(), 256 * kibi);
  }
  std::function<void()> fetch = [&] {
    (*channel)->call(method, Bytes{0, 0, 2, 0, 0, 0, 0, 0}, std::chrono::hours(1),
                     [&](const Expected<Bytes>& answer) {
                       if (answer.ok()) fetch();
                     });
  };
  for (int i = 0; i < 3; ++i) fetch();
  w.world.run_for(30 * second);
  const TrafficView before = w.meter.view();
  const MonotonicTime from = w.world.now();
  Duration longest{0};
  for (int i = 0; i < 100; ++i) {
    const MonotonicTime asked = w.world.now();
    std::optional<Expected<Bytes>> answer;
    (*channel)->call(Method::ChainPost, Bytes(500), 10 * second,
                     [&](Expected<Bytes> result) { answer.emplace(std::move(result)); });
    QVERIFY(w.world.run_until([&] { return answer.has_value(); }, asked + 20 * second) && answer->ok());
    longest = std::max(longest, w.world.now() - asked);
    w.world.run_for(second);
  }
  QVERIFY2(longest < second, std::to_string(to_seconds(longest)).c_str());
  const double seconds = to_seconds(w.world.now() - from);
  const TrafficView after = w.meter.view();
  QVERIFY(within(static_cast<double>(after.sent - before.sent) / seconds, limit, 0.05));
  QVERIFY(within(static_cast<double>(after.received - before.received) / seconds, limit, 0.05));
  for (const auto& stream : streams) stream->break_off(make_error(ErrorCode::Cancelled, "the test is over"));
}

void TestLimitedTransport::small_messages_alone_keep_the_limit() {
  constexpr std::uint64_t limit = 16 * kibi;
  World w({limit, 0});
  const auto channel = w.connect(w.limited, 2);
  QVERIFY(channel.ok());
  int answers = 0;
  const MonotonicTime from = w.world.now();
  for (int i = 0; i < 400; ++i)
    (*channel)->call(Method::ChainPost, Bytes(1000), std::chrono::hours(1),
                     [&](const Expected<Bytes>& answer) { answers += answer.ok(); });
  QVERIFY(w.world.run_until([&] { return answers == 400; }, from + std::chrono::minutes(10)));
  const double allowed = 400.0 * static_cast<double>(wire_bytes(1000)) / limit;
  QVERIFY(within(to_seconds(w.world.now() - from), allowed, 0.1));
}

void TestLimitedTransport::without_limits_nothing_waits() {
  World w;
  const auto channel = w.connect(w.limited, 2);
  QVERIFY(channel.ok());
  const MonotonicTime from = w.world.now();
  for (int i = 0; i < 10; ++i) QVERIFY(w.call(**channel, 256 * kibi).ok());
  QVERIFY(w.world.now() - from < 10 * second);
  const TrafficView view = w.meter.view();
  QCOMPARE(view.received, 10 * wire_bytes(256 * kibi));
  QCOMPARE(view.sent, 10 * wire_bytes(8));
  QVERIFY(!view.left);
}

void TestLimitedTransport::limits_may_change_at_any_time() {
  testing::MemoryFileEnv files;
  sim::World clock_of_the_cap;
  auto cap = TrafficCap::open(files, "/traffic", 0, clock_of_the_cap.clock().wall_now());
  QVERIFY(cap.ok());
  World w({}, &*cap);
  const auto channel = w.connect(w.limited, 2);
  QVERIFY(channel.ok());
  const auto rate = [&] {
    const MonotonicTime from = w.world.now();
    for (int i = 0; i < 40; ++i)
      if (!w.call(**channel, 0, 256 * kibi).ok()) return 0.0;
    return 40.0 * static_cast<double>(wire_bytes(256 * kibi)) / to_seconds(w.world.now() - from);
  };
  const double free = rate();
  w.meter.set_limits({256 * kibi, 0}, 0);
  QVERIFY(within(rate(), 256 * kibi, 0.05));
  w.meter.set_limits({512 * kibi, 0}, 0);
  QVERIFY(within(rate(), 512 * kibi, 0.05));
  w.meter.set_limits({}, 0);
  QVERIFY(within(rate(), free, 0.1));
  // Bytes sent before the monthly limit was set count, too.
  w.meter.set_limits({}, mebi);
  QCOMPARE(w.call(**channel, 10).error().code, ErrorCode::Exhausted);
  w.meter.set_limits({}, 0);
  QVERIFY(w.call(**channel, 10).ok());
}

void TestLimitedTransport::what_waits_ends_with_its_channel() {
  World w({64 * kibi, 0});
  auto channel = w.connect(w.limited, 2);
  QVERIFY(channel.ok());
  std::vector<ErrorCode> ended;
  for (int i = 0; i < 3; ++i)
    (*channel)->call(method, Bytes(512 * kibi), std::chrono::hours(1), [&](const Expected<Bytes>& answer) {
      ended.push_back(answer.ok() ? ErrorCode::Internal : answer.error().code);
    });
  auto stream = (*channel)->open(method, Duration::max());
  stream->write(Bytes(512 * kibi), [&](const Expected<void>& written) {
    ended.push_back(written.ok() ? ErrorCode::Internal : written.error().code);
  });
  w.world.run_for(second);
  QVERIFY(ended.empty());
  stream.reset();
  *channel = nullptr;
  w.world.run_for(second);
  QCOMPARE(ended, std::vector<ErrorCode>(4, ErrorCode::Cancelled));
  w.world.run_for(std::chrono::hours(1));
  QCOMPARE(ended.size(), std::size_t{4});
}

void TestLimitedTransport::a_full_executor_loses_no_end() {
  World w({64 * kibi, 0});
  testing::BusyExecutor executor;
  LimitedTransport limited(w.limited_inner, executor, w.meter);
  auto channel = w.connect(limited, 2);
  QVERIFY(channel.ok());
  int ended = 0;
  for (int i = 0; i < 2; ++i)
    (*channel)->call(method, Bytes(512 * kibi), std::chrono::hours(1),
                     [&](const Expected<Bytes>& answer) { ended += answer.ok() ? 0 : 1; });
  executor.refused = 1;
  *channel = nullptr;
  executor.manual.run();
  QCOMPARE(ended, 2);
}

void TestLimitedTransport::a_queue_that_is_too_long_is_refused() {
  World w({64 * kibi, 0});
  const auto channel = w.connect(w.limited, 2);
  QVERIFY(channel.ok());
  int refused = 0, others = 0;
  for (int i = 0; i < 30; ++i)
    (*channel)->call(method, Bytes(512 * kibi), std::chrono::hours(1), [&](const Expected<Bytes>& answer) {
      const bool limit = !answer.ok() && answer.error().message.find("upload_limit") != std::string::npos;
      (limit ? refused : others) += 1;
    });
  w.world.run_for(second);
  QVERIFY2(refused >= 20 && refused < 30, std::to_string(refused).c_str());
  w.world.run_for(std::chrono::minutes(10));
  QCOMPARE(refused + others, 30);
}

void TestLimitedTransport::the_month_ends_and_begins_anew() {
  testing::MemoryFileEnv files;
  sim::World clock_of_the_cap;
  auto cap = TrafficCap::open(files, "/traffic", 20 * mebi, clock_of_the_cap.clock().wall_now());
  QVERIFY(cap.ok());
  World w({}, &*cap);
  const auto channel = w.connect(w.limited, 2);
  const auto from_outside = w.connect(w.free, 1);
  QVERIFY(channel.ok() && from_outside.ok());
  std::uint64_t moved = 0;
  Expected<Bytes> answer = Bytes();
  for (int i = 0; i < 200 && answer.ok(); ++i) {
    answer = w.call(**channel, 256 * kibi);
    if (answer.ok()) moved += wire_bytes(256 * kibi) + wire_bytes(8);
  }
  QVERIFY(!answer.ok());
  QCOMPARE(answer.error().code, ErrorCode::Exhausted);
  QVERIFY2(answer.error().message.find("monthly_data") != std::string::npos, answer.error().message.c_str());
  QVERIFY(within(static_cast<double>(moved), 20.0 * mebi, 0.05));
  QVERIFY(moved >= 20 * mebi - 300 * kibi);
  // Nothing goes out, and callers get an error.
  QCOMPARE(w.connect(w.limited, 2).error().code, ErrorCode::Exhausted);
  const auto told = w.call(**from_outside, 10);
  QVERIFY(!told.ok() && told.error().message.find("used up") != std::string::npos);
  QCOMPARE(w.sink_a.calls, 0);
  w.world.run_for(std::chrono::hours(24 * 32));
  QVERIFY(w.connect(w.limited, 2).ok());
}

void TestLimitedTransport::strangers_can_not_use_up_the_month_data() {
  QTest::addColumn<bool>("ranked");
  QTest::addColumn<bool>("member_is_served");
  QTest::newRow("with the strangers' share") << true << true;
  QTest::newRow("control: nobody is a stranger") << false << false;
}

// A stranger asks for as much as it gets, every day of a month. Then a member calls.
void TestLimitedTransport::strangers_can_not_use_up_the_month() {
  QFETCH(bool, ranked);
  QFETCH(bool, member_is_served);
  testing::MemoryFileEnv files;
  sim::World clock_of_the_cap;
  constexpr std::uint64_t limit = 400 * mebi;
  auto cap = TrafficCap::open(files, "/traffic", limit, clock_of_the_cap.clock().wall_now());
  QVERIFY(cap.ok());
  PeerRanks ranks;
  World w({}, &*cap, ranked ? &ranks : nullptr);
  const auto channel = w.connect(w.free, 1);
  QVERIFY(channel.ok());
  std::uint64_t given = 0;
  for (int i = 0; i < 400; ++i) {
    const auto answer = w.call(**channel, mebi);
    if (answer.ok()) given += wire_bytes(mebi);
  }
  ranks.set_members({{id_of(2), PeerRank::Known}});
  QCOMPARE(w.call(**channel, mebi).ok(), member_is_served);
  const auto share = static_cast<std::uint64_t>(strangers_month_share * static_cast<double>(limit));
  QVERIFY2((given <= share + 2 * mebi) == ranked, qPrintable(QString::number(given / mebi) + " MiB"));
  QVERIFY(given > mebi);
}

void TestLimitedTransport::the_month_survives_a_restart() {
  testing::MemoryFileEnv files;
  const sim::World other;
  const WallTime now = other.clock().wall_now();
  std::uint64_t used = 0;
  {
    auto cap = TrafficCap::open(files, "/traffic", 100 * mebi, now);
    World w({}, &*cap);
    const auto channel = w.connect(w.limited, 2);
    for (int i = 0; i < 20; ++i) QVERIFY(w.call(**channel, mebi).ok());
    used = w.meter.view().sent + w.meter.view().received;
  }
  auto again = TrafficCap::open(files, "/traffic", 100 * mebi, now);
  QVERIFY(again.ok());
  QCOMPARE(again->used(now), used);
  World w({}, &*again);
  QCOMPARE(*w.meter.view().left, 100 * mebi - used);
}

NS_TEST(TestLimitedTransport)
#include "test_limited_transport.moc"
