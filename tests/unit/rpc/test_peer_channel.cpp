// The contract of peer channels, held by all implementations: gRPC over mutual TLS, the simulated
// network, and a transport under the user's limits.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/support/time.h"
#include "tests/unit/rpc/peer_pair.h"

using namespace neuroshard;
using namespace neuroshard::testing;

namespace {

constexpr auto method = static_cast<net::Method>(60'000);
using neuroshard::test::second;

std::unique_ptr<PeerPair> make_pair() {
  QFETCH_GLOBAL(QString, carrier);
  if (carrier == "grpc") return std::make_unique<GrpcPair>();
  if (carrier == "limited") return std::make_unique<LimitedPair>();
  return std::make_unique<SimPair>();
}

Bytes bytes_of(std::size_t size, std::uint8_t first = 0) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(first + i * 7);
  return bytes;
}

using Answer = std::optional<Expected<Bytes>>;

// Why something failed, for QVERIFY2, which wants it even when nothing did.
template <class T>
QByteArray why(const std::optional<Expected<T>>& result) {
  if (!result) return "nothing came";
  return result->ok() ? QByteArray() : QByteArray::fromStdString(result->error().describe());
}

Answer call(PeerPair& pair, net::PeerChannel& channel, Bytes request, Duration deadline = 20 * second) {
  Answer answer;
  channel.call(method, std::move(request), deadline,
               [&](Expected<Bytes> result) { answer.emplace(std::move(result)); });
  pair.run_until([&] { return answer.has_value(); });
  return answer;
}

using Piece = std::optional<Expected<std::optional<ByteChain>>>;

Piece read(PeerPair& pair, net::PeerStream& stream) {
  Piece piece;
  stream.read([&](Expected<std::optional<ByteChain>> result) { piece.emplace(std::move(result)); });
  pair.run_until([&] { return piece.has_value(); });
  return piece;
}

std::optional<Expected<void>> write(PeerPair& pair, net::PeerStream& stream, Bytes message) {
  std::optional<Expected<void>> written;
  stream.write(std::move(message), [&](Expected<void> result) { written.emplace(std::move(result)); });
  pair.run_until([&] { return written.has_value(); });
  return written;
}

// Sends everything back until the other end has finished.
void echo(std::shared_ptr<net::PeerStream> stream) {
  stream->read([stream](Expected<std::optional<ByteChain>> piece) {
    if (!piece.ok()) return;
    if (!*piece) return stream->finish();
    stream->write((*piece)->bytes(), [stream](Expected<void> written) {
      if (written.ok()) echo(stream);
    });
  });
}

}  // namespace

class TestPeerChannel : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase_data();
  void both_ends_know_each_other();
  void errors_travel();
  void an_answer_that_never_comes_is_an_error();
  void a_call_ends_at_its_deadline();
  void messages_are_bounded();
  void another_network_is_refused();
  void another_version_is_refused_and_says_who_upgrades();
  void a_banned_peer_is_refused();
  void calls_of_one_peer_are_bounded();
  void a_connection_given_up_ends_its_calls();
  void an_answer_after_a_connection_was_given_up_does_not_count();
  void a_peer_that_goes_ends_calls();
  void a_stream_carries_both_ways();
  void a_known_peer_has_streams_for_many_sessions_and_calls_beside_them();
  void a_slow_reader_slows_the_writer();
  void a_stream_that_is_broken_off_has_not_finished();
  void a_stream_that_stands_still_ends();
  void many_calls_at_once();
};

void TestPeerChannel::initTestCase_data() {
  QTest::addColumn<QString>("carrier");
  QTest::newRow("grpc") << "grpc";
  QTest::newRow("sim") << "sim";
  QTest::newRow("limited") << "limited";  // by the user, over the simulated network
}

void TestPeerChannel::both_ends_know_each_other() {
  const auto pair = make_pair();
  net::Caller seen;
  pair->service.call = [&](const net::Caller& from, net::Method asked, Bytes request,
                           const net::Respond& respond) {
    seen = from;
    request.push_back(asked == method ? 1 : 0);
    respond(std::move(request));
  };
  const auto channel = pair->connect();
  QVERIFY2(channel, pair->error.describe().c_str());
  QVERIFY(channel->id() == pair->id_b);
  QVERIFY(channel->hello().offers(net::Feature::Peers));
  QVERIFY(!channel->hello().offers(net::Feature::Tracker));
  const Answer answer = call(*pair, *channel, {5, 6});
  QVERIFY(answer && answer->ok());
  QCOMPARE(**answer, (Bytes{5, 6, 1}));
  QVERIFY(seen.id == pair->id_a);
  QVERIFY(seen.endpoint.port != 0);
}

void TestPeerChannel::errors_travel() {
  const auto pair = make_pair();
  pair->service.call = [](const net::Caller&, net::Method, const Bytes& request,
                          const net::Respond& respond) {
    respond(make_error(static_cast<ErrorCode>(request.at(0)), "because"));
  };
  const auto channel = pair->connect();
  QVERIFY(channel);
  for (const ErrorCode code :
       {ErrorCode::InvalidArgument, ErrorCode::NotFound, ErrorCode::Corrupt, ErrorCode::Busy,
        ErrorCode::Exhausted, ErrorCode::Denied, ErrorCode::Unsupported}) {
    const Answer answer = call(*pair, *channel, {static_cast<std::uint8_t>(code)});
    QVERIFY(answer && !answer->ok());
    QCOMPARE(answer->error().code, code);
    QCOMPARE(answer->error().message, std::string("because"));
  }
}

void TestPeerChannel::an_answer_that_never_comes_is_an_error() {
  const auto pair = make_pair();
  pair->service.call = [](const net::Caller&, net::Method, const Bytes&, const net::Respond&) {};
  const auto channel = pair->connect();
  QVERIFY(channel);
  const Answer answer = call(*pair, *channel, {1});
  QVERIFY(answer && !answer->ok());
  QCOMPARE(answer->error().code, ErrorCode::Internal);
}

void TestPeerChannel::a_call_ends_at_its_deadline() {
  const auto pair = make_pair();
  std::vector<net::Respond> kept;
  pair->service.call = [&](const net::Caller&, net::Method, const Bytes&, net::Respond respond) {
    kept.push_back(std::move(respond));
  };
  const auto channel = pair->connect();
  QVERIFY(channel);
  const Answer late = call(*pair, *channel, {1}, std::chrono::milliseconds(300));
  QVERIFY(late && !late->ok());
  QCOMPARE(late->error().code, ErrorCode::Timeout);
  QCOMPARE(kept.size(), std::size_t(1));
  kept.back()(Bytes{1});  // too late for the caller, harmless here
  pair->service.call = nullptr;
  QVERIFY(call(*pair, *channel, {2})->ok());
}

void TestPeerChannel::messages_are_bounded() {
  const auto pair = make_pair();
  pair->introduce_a();
  const auto channel = pair->connect();
  QVERIFY(channel);
  const Bytes largest = bytes_of(net::max_message_bytes);
  const Answer answer = call(*pair, *channel, largest);
  QVERIFY2(answer && answer->ok(), why(answer));
  QVERIFY(**answer == largest);
  const Answer more = call(*pair, *channel, Bytes(net::max_message_bytes + 1));
  QCOMPARE(more->error().code, ErrorCode::InvalidArgument);
}

void TestPeerChannel::another_network_is_refused() {
  const auto pair = make_pair();
  pair->a().set_hello(hello_of_network(8));
  QVERIFY(!pair->connect());
  QCOMPARE(pair->error.code, ErrorCode::Denied);
  QVERIFY2(pair->error.message.find("another network") != std::string::npos, pair->error.message.c_str());
  QCOMPARE(pair->refusals_b.of(net::Refusal::OtherNetwork), 1u);
}

void TestPeerChannel::another_version_is_refused_and_says_who_upgrades() {
  const auto pair = make_pair();
  net::Hello old = hello_of_network(7);
  old.version = {0, 9};
  pair->a().set_hello(old);
  QVERIFY(!pair->connect());
  QCOMPARE(pair->error.code, ErrorCode::Unsupported);
  QCOMPARE(pair->refusals_b.of(net::Refusal::OtherVersion), 1u);
  net::Hello minor = hello_of_network(7);
  minor.version = {1, 99};
  minor.features = ~std::uint64_t{0};
  pair->a().set_hello(minor);
  QVERIFY2(pair->connect(), pair->error.describe().c_str());
}

void TestPeerChannel::a_banned_peer_is_refused() {
  const auto pair = make_pair();
  net::BanList& bans = pair->bans_of_b();
  const auto channel = pair->connect();
  QVERIFY(channel);
  bans.ban(pair->id_a, std::chrono::hours(1), "it lied");
  const Answer open = call(*pair, *channel, {1});  // on the connection that stands
  QCOMPARE(open->error().code, ErrorCode::Denied);
  QVERIFY2(open->error().message.find("it lied") != std::string::npos, open->error().message.c_str());
  QVERIFY(!pair->connect());
  QVERIFY(pair->refusals_b.of(net::Refusal::Banned) >= 2);
  bans.lift(pair->id_a);
  QVERIFY2(pair->connect(), pair->error.describe().c_str());
}

void TestPeerChannel::calls_of_one_peer_are_bounded() {
  const auto pair = make_pair();
  std::vector<net::Respond> kept;
  pair->service.call = [&](const net::Caller&, net::Method, const Bytes&, net::Respond respond) {
    kept.push_back(std::move(respond));
  };
  const auto channel = pair->connect();
  QVERIFY(channel);
  int refused = 0, answered = 0;
  for (int i = 0; i < 40; ++i) {
    channel->call(method, {1}, 20 * second, [&](Expected<Bytes> answer) {
      ++(answer.ok() ? answered : refused);
      if (!answer.ok()) QCOMPARE(answer.error().code, ErrorCode::Exhausted);
    });
  }
  QVERIFY(pair->run_until([&] { return int(kept.size()) + refused == 40; }));
  QVERIFY(kept.size() == 32 || kept.size() == 31);  // the greeting may not have given its place back yet
  for (const auto& respond : kept) respond(Bytes());
  QVERIFY(pair->run_until([&] { return answered + refused == 40; }));
  QCOMPARE(pair->refusals_b.of(net::Refusal::TooManyCalls), std::uint64_t(refused));
  pair->service.call = nullptr;
  kept.clear();
  QVERIFY(call(*pair, *channel, {1})->ok());
}

void TestPeerChannel::a_connection_given_up_ends_its_calls() {
  const auto pair = make_pair();
  std::vector<net::Respond> kept;
  pair->service.call = [&](const net::Caller&, net::Method, const Bytes&, net::Respond respond) {
    kept.push_back(std::move(respond));
  };
  auto channel = pair->connect();
  QVERIFY(channel);
  Answer answer;
  channel->call(method, {1}, 20 * second, [&](Expected<Bytes> result) { answer.emplace(std::move(result)); });
  QVERIFY(pair->run_until([&] { return kept.size() == 1; }));
  channel.reset();
  QVERIFY(pair->run_until([&] { return answer.has_value(); }));
  QCOMPARE(answer->error().code, ErrorCode::Cancelled);
}

// Both answers are here when the first one gives the connection up.
void TestPeerChannel::an_answer_after_a_connection_was_given_up_does_not_count() {
  const auto pair = make_pair();
  std::vector<net::Respond> kept;
  pair->service.call = [&](const net::Caller&, net::Method, const Bytes&, net::Respond respond) {
    kept.push_back(std::move(respond));
  };
  auto channel = pair->connect();
  QVERIFY(channel);
  std::vector<Expected<Bytes>> answers;
  for (int i = 0; i < 4; ++i)
    channel->call(method, {1}, 20 * second, [&](Expected<Bytes> result) {
      answers.push_back(std::move(result));
      channel.reset();
    });
  QVERIFY(pair->run_until([&] { return kept.size() == 4; }));
  for (const auto& respond : kept) respond(Bytes());
  QVERIFY(pair->run_until([&] { return answers.size() == 4; }));
  QVERIFY(answers[0].ok());
  for (std::size_t i = 1; i < answers.size(); ++i) QCOMPARE(answers[i].error().code, ErrorCode::Cancelled);
}

void TestPeerChannel::a_peer_that_goes_ends_calls() {
  const auto pair = make_pair();
  std::vector<net::Respond> kept;
  pair->service.call = [&](const net::Caller&, net::Method, const Bytes&, net::Respond respond) {
    kept.push_back(std::move(respond));
  };
  const auto channel = pair->connect();
  QVERIFY(channel);
  Answer answer;
  channel->call(method, {1}, 5 * second, [&](Expected<Bytes> result) { answer.emplace(std::move(result)); });
  QVERIFY(pair->run_until([&] { return kept.size() == 1; }));
  pair->remove_b();
  QVERIFY(pair->run_until([&] { return answer.has_value(); }));
  QVERIFY(!answer->ok());
  kept.back()(Bytes());  // harmless
}

void TestPeerChannel::a_stream_carries_both_ways() {
  const auto pair = make_pair();
  pair->introduce_a();
  pair->service.stream = [](const net::Caller&, net::Method, std::shared_ptr<net::PeerStream> stream) {
    echo(std::move(stream));
  };
  const auto channel = pair->connect();
  QVERIFY(channel);
  const auto stream = channel->open(method, net::stream_patience);
  for (std::uint8_t i = 0; i < 5; ++i) {
    const Bytes chunk = bytes_of(net::chunk_bytes, i);
    const auto written = write(*pair, *stream, chunk);
    QVERIFY2(written && written->ok(), why(written));
    const Piece back = read(*pair, *stream);
    QVERIFY(back && back->ok() && **back);
    QVERIFY((**back)->bytes() == chunk);
  }
  stream->finish();
  const Piece end = read(*pair, *stream);
  QVERIFY(end && end->ok());
  QVERIFY(!**end);
}

void TestPeerChannel::a_known_peer_has_streams_for_many_sessions_and_calls_beside_them() {
  const auto pair = make_pair();
  pair->introduce_a();
  pair->service.stream = [](const net::Caller&, net::Method, std::shared_ptr<net::PeerStream> stream) {
    echo(std::move(stream));
  };
  const auto channel = pair->connect();
  QVERIFY(channel);
  std::vector<std::shared_ptr<net::PeerStream>> streams;
  for (std::uint8_t i = 0; i < 40; ++i) {
    streams.push_back(channel->open(method, net::stream_patience));
    const auto written = write(*pair, *streams.back(), {i});
    QVERIFY2(written && written->ok(), why(written));
  }
  for (std::uint8_t i = 0; i < 40; ++i) {
    const Piece back = read(*pair, *streams[i]);
    QVERIFY(back && back->ok() && **back);
    QVERIFY((**back)->bytes() == Bytes{i});
  }
  QVERIFY(call(*pair, *channel, {1})->ok());
}

void TestPeerChannel::a_slow_reader_slows_the_writer() {
  const auto pair = make_pair();
  std::shared_ptr<net::PeerStream> other;
  pair->service.stream = [&](const net::Caller&, net::Method, std::shared_ptr<net::PeerStream> stream) {
    other = std::move(stream);
  };
  const auto channel = pair->connect();
  QVERIFY(channel);
  const auto stream = channel->open(method, std::chrono::milliseconds(700));
  std::size_t written = 0;
  std::optional<Error> stopped;
  std::function<void()> more = [&] {
    stream->write(bytes_of(net::chunk_bytes), [&](Expected<void> result) {
      if (!result.ok()) {
        stopped = result.error();
        return;
      }
      written += net::chunk_bytes;
      if (written < (64u << 20)) more();
    });
  };
  more();
  QVERIFY(pair->run_until([&] { return stopped.has_value(); }));
  QCOMPARE(stopped->code, ErrorCode::Timeout);
  QVERIFY2(written <= (16u << 20), QByteArray::number(qulonglong(written)));
}

void TestPeerChannel::a_stream_that_is_broken_off_has_not_finished() {
  const auto pair = make_pair();
  std::shared_ptr<net::PeerStream> other;
  pair->service.stream = [&](const net::Caller&, net::Method, std::shared_ptr<net::PeerStream> stream) {
    other = std::move(stream);
  };
  const auto channel = pair->connect();
  QVERIFY(channel);
  {  // the caller breaks off
    const auto stream = channel->open(method, net::stream_patience);
    stream->write({1}, [](Expected<void>) {});
    QVERIFY(pair->run_until([&] { return other != nullptr; }));
    stream->break_off(make_error(ErrorCode::Cancelled, "enough"));
    Piece piece = read(*pair, *other);
    if (piece && piece->ok() && **piece) piece = read(*pair, *other);  // what came before
    QVERIFY(piece && !piece->ok());
  }
  other.reset();
  {  // the answering end does, and its reason arrives
    const auto stream = channel->open(method, net::stream_patience);
    QVERIFY(pair->run_until([&] { return other != nullptr; }));
    other->break_off(make_error(ErrorCode::NotFound, "no such shard"));
    const Piece piece = read(*pair, *stream);
    QVERIFY(piece && !piece->ok());
    QCOMPARE(piece->error().code, ErrorCode::NotFound);
    QCOMPARE(piece->error().message, std::string("no such shard"));
  }
  other.reset();
  {  // letting go is breaking off
    const auto stream = channel->open(method, net::stream_patience);
    QVERIFY(pair->run_until([&] { return other != nullptr; }));
    other.reset();
    const Piece piece = read(*pair, *stream);
    QVERIFY(piece && !piece->ok());
  }
}

void TestPeerChannel::a_stream_that_stands_still_ends() {
  const auto pair = make_pair();
  std::shared_ptr<net::PeerStream> other;
  pair->service.stream = [&](const net::Caller&, net::Method, std::shared_ptr<net::PeerStream> stream) {
    other = std::move(stream);
  };
  const auto channel = pair->connect();
  QVERIFY(channel);
  const auto stream = channel->open(method, std::chrono::milliseconds(400));
  const Piece piece = read(*pair, *stream);
  QVERIFY(piece && !piece->ok());
  QCOMPARE(piece->error().code, ErrorCode::Timeout);
}

void TestPeerChannel::many_calls_at_once() {
  const auto pair = make_pair();
  const auto channel = pair->connect();
  QVERIFY(channel);
  int wrong = 0, done = 0;
  int started = 0;
  std::function<void()> next = [&] {
    const int number = started++;
    channel->call(method, bytes_of(100, static_cast<std::uint8_t>(number)), 20 * second,
                  [&, number](Expected<Bytes> answer) {
                    ++done;
                    if (!answer.ok() || *answer != bytes_of(100, static_cast<std::uint8_t>(number))) ++wrong;
                    if (started < 2000) next();
                  });
  };
  for (int i = 0; i < 16; ++i) next();
  QVERIFY(pair->run_until([&] { return done == 2000; }));
  QCOMPARE(wrong, 0);
}

NS_TEST(TestPeerChannel)
#include "test_peer_channel.moc"
