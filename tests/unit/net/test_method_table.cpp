// The table of methods: which check answers a call, what conduct learns, and when methods end.
#include <QtTest>

#include "core/net/local_stream.h"
#include "core/net/method_table.h"
#include "tests/support/pump_executor.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::net;
using neuroshard::testing::PumpExecutor;

namespace {

// Limits that no test reaches.
MethodLimits wide() {
  return MethodLimits(std::make_shared<RequestLimiter>(RequestLimits{1e6, 1e6, 16, 4}, true, 1));
}

// A method without limits can't be registered.
static_assert(!std::is_default_constructible_v<MethodLimits>);

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
  void bytes_count_in_requests_and_answers();
  void strangers_share_a_limit_that_members_do_not();
  void a_group_that_floods_is_closed_without_its_honest_callers();
  void a_flood_of_all_strangers_is_nobodys_fault();
  void long_requests_do_not_reach_the_handler();
  void some_callers_are_not_admitted();
  void a_fault_goes_to_conduct_and_the_answer_to_the_caller();
  void an_answer_may_come_later();
  void a_handler_may_end_its_own_registration();
  void a_registration_may_outlive_the_table();
  void streams_pass_the_same_checks();
};

void TestMethodTable::each_method_has_its_handler() {
  Node node;
  const auto one = node.table.add({Method::Ping, Method::Peers}, wide(), Node::says("one"));
  auto other = node.table.add({Method::DialBack}, wide(), Node::says("other"));
  QCOMPARE(node.call(1, Method::Ping), std::string("one"));
  QCOMPARE(node.call(1, Method::Peers), std::string("one"));
  QCOMPARE(node.call(1, Method::DialBack), std::string("other"));
  other = node.table.add({Method::LetIn}, wide(), Node::says("third"));
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
  const MethodLimits limits(std::make_shared<RequestLimiter>(RequestLimits{1, 4, 16, 4}, false, 1));
  const auto a = node.table.add({Method::Ping}, limits, Node::says("a"));
  const auto b = node.table.add({Method::Peers}, limits, Node::says("b"));
  const auto free = node.table.add({Method::DialBack}, wide(), Node::says("free"));
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

void TestMethodTable::bytes_count_in_requests_and_answers() {
  Node node;
  RequestLimits bytes{1000, 1000, 16, 4};
  bytes.bytes_per_second = 100;
  bytes.bytes_burst = 1000;
  const auto echo =
      node.table.add({Method::Ping}, MethodLimits(std::make_shared<RequestLimiter>(bytes, false, 1)),
                     Node::says(std::string(600, 'x')));
  QCOMPARE(node.call(1, Method::Ping, 300).size(), std::size_t{600});
  QCOMPARE(node.call(1, Method::Ping, 101), std::string("too many requests; wait a second"));
  QCOMPARE(node.call(1, Method::Ping, 100).size(), std::size_t{600});  // its answer makes a debt
  node.clock.advance(std::chrono::seconds(5));
  QCOMPARE(node.call(1, Method::Ping, 1), std::string("too many requests; wait a second"));
  node.clock.advance(std::chrono::seconds(2));
  QCOMPARE(node.call(1, Method::Ping, 1).size(), std::size_t{600});
}

void TestMethodTable::strangers_share_a_limit_that_members_do_not() {
  Node node;
  PeerRanks ranks;
  constexpr std::uint8_t member = 200;
  ranks.set_members({{Node::caller(member).id, PeerRank::Voter}});
  MethodTable table(node.clock, &node.conduct, &ranks);
  RequestLimits few{1, 4, 1024, 4};
  few.strangers_factor = 8;
  MethodLimits limits = wide();
  limits.of_strangers = std::make_shared<RequestLimiter>(few, false, 1);
  const auto post = table.add({Method::ChainPost}, limits, Node::says("taken"));
  const auto served = [&](std::uint8_t who) {
    bool ok = false;
    table.on_call(Node::caller(who), Method::ChainPost, Bytes(1),
                  [&](const Expected<Bytes>& answer) { ok = answer.ok(); });
    return ok;
  };
  int strangers = 0, members = 0;
  for (int i = 0; i < 10; ++i)
    for (std::uint8_t who = 1; who < 100; ++who) strangers += served(who);
  for (int i = 0; i < 100; ++i) members += served(member);
  QCOMPARE(strangers, 32);  // of 990: eight times what one may have
  QCOMPARE(members, 100);
}

// Many ids at one address, and a neighbour of their address group.
void TestMethodTable::a_group_that_floods_is_closed_without_its_honest_callers() {
  Node node;
  const MethodLimits limits(std::make_shared<RequestLimiter>(RequestLimits{1, 4, 16, 4}, false, 1));
  const auto ping = node.table.add({Method::Ping}, limits, Node::says("ping"));
  const auto call = [&](const Caller& from) {
    bool ok = false;
    node.table.on_call(from, Method::Ping, Bytes(1),
                       [&](const Expected<Bytes>& answer) { ok = answer.ok(); });
    return ok;
  };
  Caller culprit = Node::caller(1), neighbour = Node::caller(2);
  neighbour.endpoint.ip = platform::IpAddress::v4(11, 1, 1, 77);
  const auto flood = [&](std::uint16_t ids) {
    int served = 0;
    for (std::uint16_t i = 0; i < ids; ++i) {
      store_le(culprit.id.data(), i);
      served += call(culprit);
    }
    return served;
  };
  QCOMPARE(flood(100), 16);  // four times what one may call
  for (int i = 0; i < 500; ++i) QVERIFY(!call(neighbour));
  QCOMPARE(node.conduct.points(neighbour.id), 0.0);
  QVERIFY(!node.bans.reason(neighbour.id));
  QVERIFY(node.conduct.welcome(culprit.endpoint.ip));
  flood(2000);
  QVERIFY(!node.conduct.welcome(culprit.endpoint.ip));
  QVERIFY(node.conduct.welcome(neighbour.endpoint.ip));
}

void TestMethodTable::a_flood_of_all_strangers_is_nobodys_fault() {
  Node node;
  RequestLimits few{1, 4, 16, 4};
  few.strangers_factor = 2;
  const MethodLimits limits(std::make_shared<RequestLimiter>(few, false, 1));
  const auto ping = node.table.add({Method::Ping}, limits, Node::says("ping"));
  for (int i = 0; i < 4; ++i)
    for (std::uint8_t who = 1; who <= 2; ++who) QCOMPARE(node.call(who, Method::Ping), std::string("ping"));
  for (int i = 0; i < 4; ++i) {
    node.call(3, Method::Ping);
    QCOMPARE(node.code, ErrorCode::Exhausted);
  }
  QCOMPARE(node.conduct.faults(Fault::Flood), std::uint64_t{0});
}

void TestMethodTable::long_requests_do_not_reach_the_handler() {
  Node node;
  MethodLimits limits = wide();
  limits.request_bytes = 64;
  const auto ping = node.table.add({Method::Ping}, limits, Node::says("ping"));
  QCOMPARE(node.call(1, Method::Ping, 64), std::string("ping"));
  QVERIFY(node.call(1, Method::Ping, 65).find("more bytes") != std::string::npos);
  QCOMPARE(node.code, ErrorCode::InvalidArgument);
  QCOMPARE(node.conduct.points(Node::caller(1).id), 0.0);
}

void TestMethodTable::some_callers_are_not_admitted() {
  Node node;
  MethodLimits limits = wide();
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
      node.table.add({Method::Ping}, wide(), [](const Caller&, Method, ByteSpan, const Reply& reply) {
        reply({make_error(ErrorCode::Corrupt, "unreadable"), Fault::Malformed});
      });
  // An answer that is no error may prove a fault, too: a vote with a bad signature gets its verdict.
  const auto judged =
      node.table.add({Method::ChainPost}, wide(), [](const Caller&, Method, ByteSpan, const Reply& reply) {
        reply({Bytes{'b', 'a', 'd'}, Fault::BadSignature});
      });
  QCOMPARE(node.call(1, Method::Ping), std::string("unreadable"));
  QCOMPARE(node.conduct.faults(Fault::Malformed), std::uint64_t{1});
  QCOMPARE(node.call(1, Method::ChainPost), std::string("bad"));
  QCOMPARE(node.conduct.faults(Fault::BadSignature), std::uint64_t{1});
  MethodTable uncounted(node.clock, nullptr);
  const auto same =
      uncounted.add({Method::Ping}, wide(), [](const Caller&, Method, ByteSpan, const Reply& reply) {
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
      {Method::Ping}, wide(), [&](const Caller&, Method, ByteSpan, const Reply& reply) { kept = reply; });
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
  once = node.table.add({Method::Ping}, wide(),
                        [&once, text](const Caller&, Method, ByteSpan, const Reply& reply) {
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
    kept = table.add({Method::Ping}, wide(), Node::says("ping"));
  }
  kept.end();
}

// A stream has a limiter, is admitted or not, and then is its handler's. Its method takes no calls.
void TestMethodTable::streams_pass_the_same_checks() {
  Node node;
  PumpExecutor executor;
  std::vector<std::shared_ptr<PeerStream>> taken;
  MethodLimits limits(std::make_shared<RequestLimiter>(RequestLimits{1, 2, 16, 4}, false, 1));
  limits.admit = [](const Caller& from) -> Expected<void> {
    if (from.id[0] != 9) return {};
    return make_error(ErrorCode::Denied, "not you");
  };
  auto registered = node.table.add_stream(Method::PipelineSession, limits,
                                          [&](const Caller& from, std::shared_ptr<PeerStream> stream) {
                                            QCOMPARE(from.id[0], std::uint8_t{1});
                                            taken.push_back(std::move(stream));
                                          });
  // The error that a caller hears on its stream; nothing: the stream is open.
  const auto open = [&](std::uint8_t who, Method method) -> std::string {
    auto [here, there] = make_local_stream(executor);
    std::string heard;
    here->read([&heard](const Expected<std::optional<ByteChain>>& read) {
      if (!read.ok()) heard = read.error().message;
    });
    node.table.on_stream(Node::caller(who), method, std::move(there));
    executor.run_for(std::chrono::milliseconds(5));
    const std::string result = heard;
    here->break_off(make_error(ErrorCode::Cancelled, "over"));
    executor.run_for(std::chrono::milliseconds(5));
    return result;
  };
  QCOMPARE(open(9, Method::PipelineSession), std::string("not you"));
  QCOMPARE(open(1, Method::PipelineSession), std::string());
  QCOMPARE(open(1, Method::PipelineSession), std::string());
  QCOMPARE(taken.size(), std::size_t{2});
  QCOMPARE(open(1, Method::PipelineSession), std::string("too many streams; wait a second"));
  QCOMPARE(open(1, Method::Ping), std::string("this node does not know that stream"));
  node.call(1, Method::PipelineSession);
  QCOMPARE(node.code, ErrorCode::Unsupported);
  registered.end();
  node.clock.advance(std::chrono::hours(1));
  QCOMPARE(open(1, Method::PipelineSession), std::string("this node does not know that stream"));
}

NS_TEST(TestMethodTable)
#include "test_method_table.moc"
