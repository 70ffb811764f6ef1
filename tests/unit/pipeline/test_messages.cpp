// Routes and messages as bytes: canonical, bounded, signed; and what is committed to.
#include <QtTest>

#include <cmath>

#include "core/pipeline/exchange_log.h"
#include "core/pipeline/messages.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::pipeline;
using test::key_of;

namespace {

const Bytes network = {1, 2, 3};

compute::ModelShape shape_of(std::uint32_t layers) {
  compute::ModelShape shape;
  shape.layers = layers;
  shape.hidden = 32;
  shape.vocab = 256;
  return shape;
}

Route route_of_three() {
  Route route;
  route.session[3] = 9;
  route.revision = 4;
  route.sequences = 2;
  route.length = 16;
  route.window = 8;
  route.wire = WireFormat::Int8;
  route.base[0] = 7;
  const StageRange ranges[] = {{0, 2, true, false}, {2, 1, false, false}, {3, 1, false, true}};
  for (std::uint8_t i = 0; i < 3; ++i)
    route.hops.push_back({crypto::node_id(key_of(static_cast<std::uint8_t>(i + 1)).public_key()), ranges[i]});
  sign_route(route, key_of(9), network);
  return route;
}

Route scored_text() {
  Route route = route_of_three();
  route.kind = SessionKind::Text;
  route.length = 1;
  route.positions = 100;
  route.scores = TextScores{5, 200};
  sign_route(route, key_of(9), network);
  return route;
}

}  // namespace

class TestPipelineMessages : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void routes() {
    const Route route = route_of_three();
    const Bytes bytes = encode_route(route);
    const auto read = decode_route(bytes);
    QVERIFY(read.ok());
    QVERIFY(*read == route);
    QVERIFY(check_route(route, shape_of(4)).ok());
    QVERIFY(signature_holds(route, network));
    QVERIFY(!signature_holds(route, Bytes{1, 2}));
    for (std::size_t size = 0; size < bytes.size(); ++size)
      QVERIFY(!decode_route(ByteSpan(bytes).first(size)).ok());
    Bytes longer = bytes;
    longer.push_back(0);
    QVERIFY(!decode_route(longer).ok());
  }

  void routes_of_scored_texts() {
    const Route route = scored_text();
    const Bytes bytes = encode_route(route);
    const auto read = decode_route(bytes);
    QVERIFY(read.ok());
    QVERIFY(*read == route && signature_holds(route, network));
    Route plain = route;
    plain.scores.reset();
    QCOMPARE(encode_route(plain).size() + 5, bytes.size());
    for (std::size_t size = 0; size < bytes.size(); ++size)
      QVERIFY(!decode_route(ByteSpan(bytes).first(size)).ok());
    const compute::ModelShape shape = shape_of(4);
    QVERIFY(check_route(route, shape).ok());
    const auto refused = [&](auto change) {
      Route other = route;
      change(other);
      return !check_route(other, shape).ok();
    };
    QVERIFY(refused([](Route& other) { other.scores->top = 21; }));
    QVERIFY(refused([](Route& other) { other.scores->vocabulary = 0; }));
    QVERIFY(refused([&](Route& other) { other.scores->vocabulary = shape.vocab + 1; }));
    QVERIFY(refused([](Route& other) { other.kind = SessionKind::Training, other.positions = 0; }));
  }

  void scores() {
    const TextScores asked{2, 7};
    PositionScores all(2, asked);
    all.logprobs = {-1.5, 0};
    all.top_tokens = {6, 0, 3, -1};
    all.top_logprobs = {-0.25, -HUGE_VAL, 0, 0};
    Bytes bytes;
    append_scores(all, bytes);
    QCOMPARE(bytes.size(), scores_bytes(2, asked));
    const auto read = read_scores(bytes, 2, asked);
    QVERIFY(read.ok());
    QVERIFY(read->logprobs == all.logprobs && read->top_tokens == all.top_tokens &&
            read->top_logprobs == all.top_logprobs);
    PositionScores both(3, asked);
    read->copy_to(1, both);
    QCOMPARE(both.logprobs, (std::vector<double>{0, -1.5, 0}));
    QCOMPARE(both.top_tokens, (std::vector<std::int32_t>{-1, -1, 6, 0, 3, -1}));
    const auto refused = [&](auto change) {
      PositionScores other = all;
      change(other);
      Bytes made;
      append_scores(other, made);
      return !read_scores(made, 2, asked).ok();
    };
    QVERIFY(refused([](PositionScores& other) { other.logprobs[0] = NAN; }));
    QVERIFY(refused([](PositionScores& other) { other.logprobs[0] = 0.5; }));
    QVERIFY(refused([](PositionScores& other) { other.top_tokens[0] = 7; }));
    QVERIFY(refused([](PositionScores& other) { other.top_tokens[0] = -2; }));
    QVERIFY(refused([](PositionScores& other) { other.top_logprobs[3] = NAN; }));
  }

  // Every byte is signed.
  void nobody_else_leads_a_session_data() {
    QTest::addColumn<bool>("scored");
    QTest::newRow("training") << false;
    QTest::newRow("a scored text") << true;
  }
  void nobody_else_leads_a_session() {
    QFETCH(bool, scored);
    const Bytes bytes = encode_route(scored ? scored_text() : route_of_three());
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      Bytes other = bytes;
      other[at] ^= 1;
      const auto read = decode_route(other);
      QVERIFY2(!read.ok() || !signature_holds(*read, network), qPrintable(QString::number(at)));
    }
  }

  void routes_that_are_none_data() {
    QTest::addColumn<int>("which");
    QTest::addColumn<QString>("says");
    const char* texts[] = {"does not begin with layer 2",
                           "hold 3 of 4 layers",
                           "first hop",
                           "last hop",
                           "names a node twice",
                           "1 to 256 micro-batches",
                           "1 to 65536 tokens",
                           "1 to 64 hops",
                           "holds nothing"};
    for (int i = 0; i < 9; ++i) QTest::newRow(texts[i]) << i << texts[i];
  }
  void routes_that_are_none() {
    QFETCH(int, which);
    QFETCH(QString, says);
    Route route = route_of_three();
    switch (which) {
      case 0: route.hops[1].range.first_layer = 1; break;
      case 1: route.hops[2].range.layer_count = 0; break;
      case 2: route.hops[1].range.embed = true; break;
      case 3: route.hops[2].range.head = false; break;
      case 4: route.hops[2].node = route.hops[0].node; break;
      case 5: route.window = 0; break;
      case 6: route.sequences = 1u << 15; break;
      case 7: route.hops.clear(); break;
      case 8: route.hops[1].range.layer_count = 0, route.hops[2].range = {2, 2, false, true}; break;
    }
    const auto checked = check_route(route, shape_of(4));
    QVERIFY(!checked.ok());
    QVERIFY2(checked.error().message.find(says.toStdString()) != std::string::npos,
             checked.error().message.c_str());
  }

  void messages() {
    const std::vector<Message> all = {
        Alive{},
        Follow{route_of_three()},
        Work{17, 12, 2},
        Close{18},
        Result{17, {32, 30, 99.5, 3.25, 0.125}},
        Result{17, {32, 30, 99.5, 3.25, 0.125}, {{7, 9}, {UINT32_MAX, 8}, {1, 0}}},
        Result{17, {32, 30, 99.5, 3.25, 0.125}, std::vector<HopTime>(max_hops)},
        Lost{1, crypto::node_id(key_of(2).public_key()), "connection refused"},
        Ready{7}};
    for (const Message& message : all) {
      const Bytes bytes = encode_message(message);
      const auto read = decode_message(bytes);
      QVERIFY(read.ok());
      QVERIFY(*read == message);
      if (!std::holds_alternative<Lost>(message)) {  // whose text may have any length
        Bytes longer = bytes;
        longer.push_back(0);
        QVERIFY(!decode_message(longer).ok());
      }
      if (bytes.size() > 1 && !std::holds_alternative<Lost>(message))
        QVERIFY(!decode_message(ByteSpan(bytes).first(bytes.size() - 1)).ok());
    }
    QVERIFY(!decode_message({}).ok());
    QVERIFY(!decode_message(Bytes{7}).ok());
    QVERIFY(decode_message(encode_message(Work{3, 4, 1})).ok());   // sent again, no result is wanted
    QVERIFY(!decode_message(encode_message(Work{3, 5, 1})).ok());  // finished before it was sent
    QVERIFY(!decode_message(encode_message(Work{3, 3, 0})).ok());
    QVERIFY(!decode_message(encode_message(Result{1, {32, 33, 1, 0, 0}})).ok());
    for (const double value : {HUGE_VAL, std::nan(""), -1.0, 1e300})
      for (const Sums& wrong : {Sums{32, 3, value, 0, 0}, Sums{32, 3, 0, value, 0}, Sums{32, 3, 0, 0, value}})
        QVERIFY(!decode_message(encode_message(Result{1, wrong})).ok());
    QVERIFY(decode_message(encode_message(Result{1, {32, 3, 3 * most_loss, 0, 0}})).ok());
    QVERIFY(!decode_message(encode_message(Result{1, {32, 3, 3.1 * most_loss, 0, 0}})).ok());
    // Times of more hops than a route may have, and of a last hop that has later ones.
    const Sums sums{32, 30, 1, 0, 0};
    QVERIFY(!decode_message(encode_message(Result{1, sums, std::vector<HopTime>(max_hops + 1)})).ok());
    QVERIFY(!decode_message(encode_message(Result{1, sums, {{5, 9}, {5, 1}}})).ok());
  }

  void payloads() {
    const Route route = route_of_three();
    const compute::ModelShape shape = shape_of(4);
    const std::size_t ids = 2 * 16 * 4, wide = 2 * 16 * (32 + 4);
    QCOMPARE(*payload_bytes(Work{0, 0, 2}, route, route.hops[0], shape), 2 * ids);
    QCOMPARE(*payload_bytes(Work{0, 0, 2}, route, route.hops[1], shape), ids + wide);
    QCOMPARE(*payload_bytes(Work{0, 0, 1}, route, route.hops[1], shape), (ids + wide) / 2);
    QVERIFY(!payload_bytes(Work{0, 0, 3}, route, route.hops[1], shape));
    QCOMPARE(*payload_bytes(Result{0, {32, 1, 0, 0, 0}}, route, route.hops[1], shape), wide);
    QCOMPARE(*payload_bytes(Result{0, {32, 1, 0, 0, 0}}, route, route.hops[0], shape), std::size_t{0});
    QVERIFY(!payload_bytes(Result{0, {31, 1, 0, 0, 0}}, route, route.hops[1], shape));
    QVERIFY(!payload_bytes(Result{0, {48, 1, 0, 0, 0}}, route, route.hops[1], shape));
    const Route scored = scored_text();
    QCOMPARE(*payload_bytes(Work{0, 0, 2}, scored, scored.hops[0], shape), std::size_t{2 * 4 + 2 * 4});
    QCOMPARE(*payload_bytes(Work{0, 0, 2}, scored, scored.hops[1], shape), std::size_t{2 * 4 + 2 * (32 + 4)});
    QCOMPARE(*payload_bytes(Result{0, {2, 0, 0, 0, 0}}, scored, scored.hops[0], shape),
             std::size_t{256 * 4 + 2 * (8 + 5 * 12)});
    Route losses = route;
    losses.kind = SessionKind::Text;
    QVERIFY(check_route(losses, shape).ok());
    QCOMPARE(*payload_bytes(Work{0, 0, 2}, losses, losses.hops[0], shape), 2 * ids);
    QCOMPARE(*payload_bytes(Work{0, 0, 2}, losses, losses.hops[1], shape), ids + wide);
    QVERIFY(!payload_bytes(Work{0, 1, 2}, losses, losses.hops[1], shape));  // no result is wanted
    QCOMPARE(*payload_bytes(Result{0, {32, 1, 5, 0, 0}}, losses, losses.hops[1], shape), std::size_t{0});
    losses.scores = TextScores{0, 256};
    QVERIFY(!check_route(losses, shape).ok());
  }

  void commitments() {
    const net::NodeId a = crypto::node_id(key_of(1).public_key()),
                      b = crypto::node_id(key_of(2).public_key()),
                      c = crypto::node_id(key_of(3).public_key());
    const SessionId session{1}, other{2};
    ExchangeLog ours, theirs;
    for (ExchangeLog* log : {&ours, &theirs})
      for (std::uint64_t index = 0; index < 4; ++index)
        log->note({session, index, Direction::Work, a, b}, Bytes{static_cast<std::uint8_t>(index)});
    theirs.note({session, 0, Direction::Work, b, c}, Bytes{5});
    QVERIFY(ours.root() == Hash256{});  // nothing is finished
    for (ExchangeLog* log : {&ours, &theirs}) log->finished_below(session, 3);
    QCOMPARE(ours.size(), std::size_t{3});
    QVERIFY(ours.root_with(b) == theirs.root_with(a) && ours.root_with(b) != Hash256{});
    QVERIFY(ours.root() != theirs.root());
    const Hash256 before = ours.root();
    ours.note({session, 1, Direction::Work, a, b}, Bytes{77});  // a repetition
    ours.note({other, 1, Direction::Work, a, b}, Bytes{1});
    ours.ended(other);
    ours.finished_below(other, 9);
    QVERIFY(ours.root() == before);
    ours.note({session, 3, Direction::Result, b, a}, Bytes{1});
    ours.finished_below(session, 4);
    QVERIFY(ours.root() != before);
  }
};

NS_TEST(TestPipelineMessages)
#include "test_messages.moc"
