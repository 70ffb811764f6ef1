// The table of methods: which check answers a call, what conduct learns, and when methods end.
#include <QtTest>

#include "core/net/method_table.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

struct Node {
  // The code and message of the error, or the answer as text.
  std::string call(std::uint8_t who, Method method, std::size_t bytes = 1) {
    std::optional<Expected<Bytes>> heard;
    table.on_call(caller(who), method, Bytes(bytes, 7), [&](Expected<Bytes> answer) {
      QVERIFY(!heard);
      heard = std::move(answer);
    });
    if (!heard) return "no answer";
    code = heard->ok() ? ErrorCode::Internal : heard->error().code;
    return heard->ok() ? std::string((*heard)->begin(), (*heard)->end()) : heard->error().message;
  }
  static Caller caller(std::uint8_t number) {
    Caller from;
    from.id.fill(number);
    from.endpoint = {platform::IpAddress::v4(11, number, 1, 1), 9000};
    return from;
  }
  static MethodTable::Handler says(const std::string& text) {
    return [text](const Caller&, Method, ByteSpan, const Reply& reply) {
      reply(Bytes(text.begin(), text.end()));
    };
  }

  ManualClock clock;
  BanList bans{clock};
  Conduct conduct{bans, clock, false};
  MethodTable table{clock, &conduct};
  ErrorCode code = ErrorCode::Internal;
};

}  // namespace

class TestMethodTable : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void each_method_has_its_handler();
  void unknown_methods_are_no_fault();
  void methods_that_share_a_limit_count_together();
  void long_requests_do_not_reach_the_handler();
  void some_callers_are_not_admitted();
  void a_fault_goes_to_conduct_and_the_answer_to_the_caller();
  void an_answer_may_come_later();
  void a_handler_may_end_its_own_registration();
  void a_registration_may_outlive_the_table();
};

void TestMethodTable::each_method_has_its_handler() {
  Node node;
  const auto one = node.table.add({Method::Ping, Method::Peers}, {}, Node::says("one"));
  auto other = node.table.add({Method::DialBack}, {}, Node::says("other"));
  QCOMPARE(node.call(1, Method::Ping), std::string("one"));
  QCOMPARE(node.call(1, Method::Peers), std::string("one"));
  QCOMPARE(node.call(1, Method::DialBack), std::string("other"));
  other = node.table.add({Method::LetIn}, {}, Node::says("third"));
  QCOMPARE(node.call(1, Method::LetIn), std::string("third"));
  node.call(1, Method::DialBack);
  QCOMPARE(node.code, ErrorCode::Unsupported);
}

void TestMethodTable::unknown_methods_are_no_fault() {
  Node node;
  for (int i = 0; i < 1000; ++i) node.call(1, static_cast<Method>(60000));
  QCOMPARE(node.code, ErrorCode::Unsupported);
  QCOMPARE(node.conduct.points(Node::caller(1).id), 0.0);
}

void TestMethodTable::methods_that_share_a_limit_count_together() {
  Node node;
  MethodLimits limits;
  limits.calls = std::make_shared<RequestLimiter>(RequestLimits{1, 4, 16, 4}, false);
  const auto a = node.table.add({Method::Ping}, limits, Node::says("a"));
  const auto b = node.table.add({Method::Peers}, limits, Node::says("b"));
  const auto free = node.table.add({Method::DialBack}, {}, Node::says("free"));
  for (int i = 0; i < 2; ++i) {
    QCOMPARE(node.call(1, Method::Ping), std::string("a"));
    QCOMPARE(node.call(1, Method::Peers), std::string("b"));
  }
  QCOMPARE(node.call(1, Method::Ping), std::string("too many requests; wait a second"));
  QCOMPARE(node.code, ErrorCode::Exhausted);
  QCOMPARE(node.conduct.faults(Fault::Flood), std::uint64_t{1});
  QCOMPARE(node.call(2, Method::Peers), std::string("b"));
  QCOMPARE(node.call(1, Method::DialBack), std::string("free"));
  node.clock.advance(std::chrono::seconds(1));
  QCOMPARE(node.call(1, Method::Peers), std::string("b"));
}

void TestMethodTable::long_requests_do_not_reach_the_handler() {
  Node node;
  MethodLimits limits;
  limits.request_bytes = 64;
  const auto ping = node.table.add({Method::Ping}, limits, Node::says("ping"));
  QCOMPARE(node.call(1, Method::Ping, 64), std::string("ping"));
  QVERIFY(node.call(1, Method::Ping, 65).find("more bytes") != std::string::npos);
  QCOMPARE(node.code, ErrorCode::InvalidArgument);
  QCOMPARE(node.conduct.points(Node::caller(1).id), 0.0);
}

void TestMethodTable::some_callers_are_not_admitted() {
  Node node;
  MethodLimits limits;
  limits.admit = [](const Caller& from) -> Expected<void> {
    if (from.id == Node::caller(1).id) return {};
    return make_error(ErrorCode::Denied, "members only");
  };
  const auto post = node.table.add({Method::ChainPost}, limits, Node::says("taken"));
  QCOMPARE(node.call(1, Method::ChainPost), std::string("taken"));
  QCOMPARE(node.call(2, Method::ChainPost), std::string("members only"));
  QCOMPARE(node.code, ErrorCode::Denied);
}

void TestMethodTable::a_fault_goes_to_conduct_and_the_answer_to_the_caller() {
  Node node;
  const auto malformed =
      node.table.add({Method::Ping}, {}, [](const Caller&, Method, ByteSpan, const Reply& reply) {
        reply({make_error(ErrorCode::Corrupt, "unreadable"), Fault::Malformed});
      });
  // An answer that is no error may prove a fault, too: a vote with a bad signature gets its verdict.
  const auto judged =
      node.table.add({Method::ChainPost}, {}, [](const Caller&, Method, ByteSpan, const Reply& reply) {
        reply({Bytes{'b', 'a', 'd'}, Fault::BadSignature});
      });
  QCOMPARE(node.call(1, Method::Ping), std::string("unreadable"));
  QCOMPARE(node.conduct.faults(Fault::Malformed), std::uint64_t{1});
  QCOMPARE(node.call(1, Method::ChainPost), std::string("bad"));
  QCOMPARE(node.conduct.faults(Fault::BadSignature), std::uint64_t{1});
  MethodTable uncounted(node.clock, nullptr);
  const auto same =
      uncounted.add({Method::Ping}, {}, [](const Caller&, Method, ByteSpan, const Reply& reply) {
        reply({make_error(ErrorCode::Corrupt, "unreadable"), Fault::Malformed});
      });
  bool answered = false;
  uncounted.on_call(Node::caller(1), Method::Ping, {}, [&](const Expected<Bytes>&) { answered = true; });
  QVERIFY(answered);
}

void TestMethodTable::an_answer_may_come_later() {
  Node node;
  Reply kept;
  const auto slow = node.table.add(
      {Method::Ping}, {}, [&](const Caller&, Method, ByteSpan, const Reply& reply) { kept = reply; });
  std::optional<Expected<Bytes>> heard;
  node.table.on_call(Node::caller(1), Method::Ping, {}, [&](Expected<Bytes> answer) { heard = answer; });
  QVERIFY(!heard);
  kept({make_error(ErrorCode::Corrupt, "late"), Fault::Malformed});
  QVERIFY(heard && !heard->ok());
  QCOMPARE(node.conduct.faults(Fault::Malformed), std::uint64_t{1});
}

void TestMethodTable::a_handler_may_end_its_own_registration() {
  Node node;
  MethodTable::Registration once;
  const std::string text(100, 'x');
  once =
      node.table.add({Method::Ping}, {}, [&once, text](const Caller&, Method, ByteSpan, const Reply& reply) {
        once.end();
        reply(Bytes(text.begin(), text.end()));
      });
  QCOMPARE(node.call(1, Method::Ping), text);
  node.call(1, Method::Ping);
  QCOMPARE(node.code, ErrorCode::Unsupported);
}

void TestMethodTable::a_registration_may_outlive_the_table() {
  ManualClock clock;
  MethodTable::Registration kept;
  {
    MethodTable table(clock, nullptr);
    kept = table.add({Method::Ping}, {}, Node::says("ping"));
  }
  kept.end();
}

NS_TEST(TestMethodTable)
#include "test_method_table.moc"
