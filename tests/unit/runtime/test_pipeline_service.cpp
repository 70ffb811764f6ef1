// The pipeline of a node that holds a part of the model: whom its stage serves and when, which holders its driver uses, and
// what it reports.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/runtime/pipeline_service_bench.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT
using test::PipelineMembers;
using test::PipelineServiceBench;
using testing::until;

namespace {

using Members = PipelineMembers;
using Bench = PipelineServiceBench;

// Three: the service looks every half second.
void wait_for_ticks() {
  QTest::qWait(1600);
}

bool refuses(const Expected<pipeline::Message>& answer, ErrorCode code, const char* text) {
  if (!answer.ok() && answer.error().code == code && answer.error().message.find(text) != std::string::npos)
    return true;
  qWarning("%s", answer.ok() ? "it is taken" : answer.error().describe().c_str());
  return false;
}

}  // namespace

class TestPipelineService : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // ---- Whom its stage serves

  void nobody_is_served_until_the_part_is_ready_nor_once_training_ended() {
    Bench bench;
    const char* const prepares = "this node prepares its part of the model";
    QVERIFY(refuses(bench.drive(), ErrorCode::Unavailable, prepares));
    QCOMPARE(bench.view().sessions, 0u);
    bench.attach_and_wait();
    QVERIFY(bench.drive().ok());
    bench.detach();
    QVERIFY(until([&] { return bench.view().sessions == 0; }));
    QVERIFY(bench.view().path.empty());
    QVERIFY(refuses(bench.drive(), ErrorCode::Unavailable, prepares));
  }

  void a_stream_of_a_stranger_is_refused() {
    Bench bench;
    bench.attach_and_wait();
    for (const net::NodeId& from : {bench.members.id(Members::stranger), net::NodeId{1}}) {
      const auto answered = bench.answer(from, pipeline::Alive{});
      QVERIFY(refuses(answered, ErrorCode::Denied, "no voter has vouched for it"));
    }
  }

  // Its stream comes from a member that is before this node on the route.
  void a_session_of_a_stranger_is_refused() {
    Bench bench;
    bench.attach_and_wait(1);
    const std::vector<std::size_t> hops{Members::first, Members::self};
    const auto ask = [&](std::size_t driver) {
      const crypto::KeyPair& key = bench.members.key(driver);
      return bench.answer(bench.members.id(Members::first), bench.route(key, hops), key);
    };
    QVERIFY(refuses(ask(Members::stranger), ErrorCode::Denied, "no voter has vouched for it"));
    const auto of_member = ask(Members::second);
    QVERIFY(of_member.ok() && std::holds_alternative<pipeline::Ready>(*of_member));
  }

  void micro_batches_of_another_size_are_refused() {
    Bench bench;
    bench.attach_and_wait();
    QVERIFY(refuses(bench.drive(Bench::sequences + 1), ErrorCode::InvalidArgument,
                    "micro-batches of this network have 2 sequences of 8 tokens"));
    QVERIFY(bench.drive(Bench::sequences).ok());
  }

  // They would take the memory of others' sessions.
  void larger_windows_and_other_formats_are_refused() {
    Bench bench;
    bench.attach_and_wait();
    const crypto::KeyPair& key = bench.members.key(Members::first);
    const auto ask = [&](std::uint32_t window, pipeline::WireFormat wire) {
      pipeline::Route route = bench.route(key, {Members::self, Members::second});
      route.window = window;
      route.wire = wire;
      return bench.answer(bench.members.id(Members::first), route, key);
    };
    const char* const most = "at most 6 micro-batches";  // 2 · 2 parts + 2
    for (const std::uint32_t window : {7u, 256u})
      QVERIFY(refuses(ask(window, pipeline::WireFormat::Bf16), ErrorCode::InvalidArgument, most));
    QVERIFY(refuses(ask(2, pipeline::WireFormat::Fp32), ErrorCode::InvalidArgument, "exchange bf16"));
    QCOMPARE(bench.view().sessions, 1u);
    (void)ask(6, pipeline::WireFormat::Bf16);  // its holder of part 2 has no address
    QCOMPARE(bench.view().sessions, 2u);
  }

  void sessions_of_others_count_while_their_drivers_are_there() {
    Bench bench;
    bench.attach_and_wait();
    QVERIFY(bench.drive().ok());
    QCOMPARE(bench.view().sessions, 2u);
    bench.on_host([&] { bench.streams.clear(); });
    QVERIFY(until([&] { return bench.view().sessions == 1; }));
  }

  // The thief of its key has a session, and more text for it.
  void sessions_of_a_revoked_node_end() {
    Bench bench;
    bench.attach_and_wait();
    QVERIFY(bench.drive().ok());
    QCOMPARE(bench.view().sessions, 2u);
    Members later{0, 0, 1};
    QVERIFY(later.revoke(Members::first));
    bench.show(later);
    QVERIFY(until([&] { return bench.view().sessions == 1; }));
    QVERIFY(refuses(bench.drive(), ErrorCode::Denied, "no voter has vouched for it"));
  }

  void a_closed_service_answers_no_streams() {
    Bench bench;
    bench.attach_and_wait();
    bench.on_host([&] { bench.service->close(); });
    QVERIFY(refuses(bench.drive(), ErrorCode::Unsupported, ""));
    bench.detach();
    bench.attach();  // nobody is there who would take it
    bench.on_host([] {});
    QCOMPARE(bench.view().sessions, 0u);
  }

  // ---- Pauses

  void drivers_go_around_a_node_that_does_not_compute() {
    Bench bench;
    bench.attach_and_wait();
    bench.clock.advance(PipelineService::patience_with_idleness + std::chrono::seconds(1));
    QVERIFY(until([&] { return bench.view().paused; }));
    QVERIFY(refuses(bench.drive(), ErrorCode::Unavailable, "its owner needs the computer"));
    bench.compute();
    QVERIFY(until([&] { return !bench.view().paused; }));
    QVERIFY(bench.drive().ok());
  }

  // It computes texts meanwhile.
  void a_node_that_waits_for_its_round_says_so() {
    Bench bench;
    bench.attach_and_wait();
    const Duration most_of_it = PipelineService::patience_with_idleness * 2 / 3;
    bench.clock.advance(most_of_it);
    bench.rest();
    bench.clock.advance(most_of_it);
    bench.rest();
    QVERIFY(until([&] { return bench.view().paused; }));
    QVERIFY(refuses(bench.drive(), ErrorCode::Unavailable, "waits for the weights of its round"));
  }

  // ---- Its driver

  void its_text_passes_a_holder_of_each_part() {
    Bench bench;
    bench.attach_and_wait();
    const auto path = bench.view().path;
    QCOMPARE(path.size(), std::size_t{2});
    QCOMPARE(path[0].node, to_hex(bench.members.id(Members::self)));
    QCOMPARE(path[1].node, to_hex(bench.members.id(Members::second)));
    QVERIFY(!path[0].computing_ms);  // nothing has passed yet
    QCOMPARE(bench.trouble(), std::string());
  }

  // Within the round.
  void a_holder_that_does_not_answer_is_replaced() {
    Bench bench;
    bench.attach_and_wait();
    QCOMPARE(bench.view().replaced, std::uint64_t{0});
    const Members moved{0, 1, 0};
    bench.show(moved);
    QVERIFY(until([&] { return bench.holder_of_part_2() == to_hex(bench.members.id(Members::first)); }));
    QCOMPARE(bench.view().replaced, std::uint64_t{1});
    bench.detach();
    QVERIFY(until([&] { return bench.view().path.empty(); }));
    QCOMPARE(bench.view().replaced, std::uint64_t{1});  // it counts those of all its drivers
  }

  void it_chooses_its_holders_when_a_round_begins() {
    Bench bench;
    bench.attach_and_wait();
    Members without{0, 0, 0};
    bench.show(without);
    wait_for_ticks();
    QCOMPARE(bench.trouble(), std::string());
    QVERIFY(without.round({}));
    bench.show(without);
    QVERIFY(bench.troubled_by("no member holds part 2 of the model"));
    Members with{0, 0, 1};
    QVERIFY(with.round({}));
    bench.show(with);
    QVERIFY(until([&] { return bench.trouble().empty(); }));
    QCOMPARE(bench.holder_of_part_2(), to_hex(bench.members.id(Members::second)));
  }

  void a_part_without_a_holder_is_named_until_it_has_one() {
    Bench bench;
    const Members without{0, 0, 0};
    bench.show(without);
    bench.attach();
    QVERIFY(bench.troubled_by("no member holds part 2 of the model"));
    QVERIFY(bench.view().path.empty());
    bench.show(bench.members);
    QVERIFY(until([&] { return bench.view().path.size() == 2; }));
    QCOMPARE(bench.trouble(), std::string());
  }

  void a_node_without_a_voucher_has_no_driver() {
    Bench bench(Members::stranger);
    bench.attach();
    QVERIFY(bench.troubled_by("no voter has vouched for this node"));
    QVERIFY(bench.view().path.empty());
    QVERIFY(
        refuses(bench.drive(), ErrorCode::InvalidArgument, "does not name this node"));  // its stage works
  }

  // A driver asks again every half second.
  void a_holder_that_does_not_answer_is_logged_once_a_minute() {
    Bench bench;
    bench.attach_and_wait();
    const std::string line = "layer 1, head does not answer: no address of that node is known";
    QVERIFY(until([&] { return bench.logger.count(line) == 1; }));
    for (int i = 0; i < 15; ++i) bench.go_on();
    QCOMPARE(bench.logger.count(line), std::ptrdiff_t{1});
    QCOMPARE(bench.view().replaced, std::uint64_t{0});  // nobody else holds that part
    bench.clock.advance(std::chrono::minutes(1));
    for (int i = 0; i < 200 && bench.logger.count(line) == 1; ++i) bench.go_on();
    QCOMPARE(bench.logger.count(line), std::ptrdiff_t{2});
  }

  // ---- What it reports

  void the_view_names_the_part_and_the_holders_of_all() {
    Bench bench;
    const node::PartView before = bench.view();
    QCOMPARE(before.number, 1u);
    QCOMPARE(before.count, 2u);
    QCOMPARE(before.holds, std::string("embedding, layer 0"));
    QCOMPARE(before.holders, (std::vector<std::uint32_t>{2, 1}));  // the stranger does not count
    QVERIFY(before.speeds.empty() && before.path.empty() && !before.paused);
    bench.attach_and_wait(1);  // the model that came is of another part
    QCOMPARE(bench.view().number, 2u);
    QCOMPARE(bench.view().holds, std::string("layer 1, head"));
    std::uint32_t speed = 1;
    bench.on_host([&] { speed = bench.service->speed(); });
    QCOMPARE(speed, 0u);  // not known yet
  }

  void speeds_are_shown_in_percent_of_the_fastest_part() {
    Bench bench;
    Members stating{0, 0, 1};
    for (const auto& [node, speed] : {std::pair{Members::self, 1000u}, {Members::first, 1000u}})
      QVERIFY(stating.say(node, chain::Offer{8, speed}));
    QVERIFY(stating.say(Members::second, chain::Offer{8, 1000}));
    bench.show(stating);
    const std::vector<std::uint32_t> speeds = bench.view().speeds;
    QCOMPARE(speeds.size(), std::size_t{2});
    QCOMPARE(std::max(speeds[0], speeds[1]), 100u);
    // Two nodes hold the first part, and one of the same speed the second, which is more work.
    QVERIFY(speeds[0] == 100 && speeds[1] < 50);
  }

  void without_a_history_it_waits() {
    Bench bench;
    bench.on_host([&] { bench.registry = nullptr; });
    bench.attach();
    QVERIFY(until([&] { return refuses(bench.drive(), ErrorCode::Denied, "no voter has vouched"); }));
    QVERIFY(bench.view().path.empty() && bench.view().holders.empty());
    QCOMPARE(bench.trouble(), std::string());
    bench.show(bench.members);
    QVERIFY(until([&] { return bench.view().path.size() == 2; }));
  }
};

NS_TEST(TestPipelineService)
#include "test_pipeline_service.moc"
