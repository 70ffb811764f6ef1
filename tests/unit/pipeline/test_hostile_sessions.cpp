// Drivers and hops that keep no rule: they take neither the memory nor the places of others.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/pipeline/failover_fixture.h"

using namespace neuroshard;
using namespace neuroshard::model_test;
using namespace neuroshard::test;
using namespace neuroshard::test::failover;

class TestHostileSessions : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

 private Q_SLOTS:
  void initTestCase() {
    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
  }

  // Its driver says of each micro-batch that the earlier ones are finished, and its own node behind answers none.
  void finished_work_is_not_kept() {
    Fixture all(*module_, 100'000);
    constexpr std::uint32_t window = 4, count = 1000;
    Node& silent = all.lab.add_silent(all.first[2]->range);
    Node& other = all.lab.add_silent(all.first[2]->range);
    Node& liar = all.lab.add_node();
    pipeline::Route route = all.lab.route({all.first[0], all.first[1], &silent}, sequences, window);
    pipeline::sign_route(route, liar.key, {});
    RawEnd driver(all.lab, liar, route, 0);
    for (std::uint32_t i = 0; i < count; ++i) driver.work(i, i);
    all.lab.run_for(40 * test::second);
    QVERIFY2(driver.ended.empty(), driver.ended.c_str());
    QCOMPARE(silent.silent->works(), std::size_t{count});
    // Another hop gets what the stage before it keeps.
    ++route.revision;
    route.hops[2].node = other.id;
    pipeline::sign_route(route, liar.key, {});
    driver.send(pipeline::Follow{route});
    QVERIFY(all.lab.run_until([&] { return other.silent->works() > 0; }, 5 * test::second));
    all.lab.run_for(5 * test::second);
    QVERIFY2(other.silent->works() <= window, QByteArray::number(other.silent->works()).constData());
  }

  // Nor do tasks that drop it pile up while the compute thread is busy.
  void finished_work_leaves_the_queue_of_jobs_short() {
    Fixture all(*module_, 100'000);
    Node& liar = all.lab.add_node();
    pipeline::Route route = all.lab.route(all.first, sequences, 4);
    pipeline::sign_route(route, liar.key, {});
    RawEnd driver(all.lab, liar, route, 0);
    all.lab.compute().busy = true;
    for (std::uint32_t i = 0; i < 200; ++i) driver.work(i, i);
    all.lab.run_for(10 * test::second);
    QVERIFY2(driver.ended.empty(), driver.ended.c_str());
    const std::size_t waiting = all.lab.compute().waiting.size();
    QVERIFY2(waiting >= 1 && waiting <= 2, QByteArray::number(waiting).constData());
    QCOMPARE(all.first[0]->worker->lost_micro_batches(), std::uint64_t{0});  // it began with none of them
  }

  // Nor does it pile up on its way out.
  void a_hop_that_does_not_read_ends_its_session() {
    Fixture all(*module_, 100'000);
    Node& silent = all.lab.add_silent(all.first[2]->range, true, false);
    Node& liar = all.lab.add_node();
    pipeline::Route route = all.lab.route({all.first[0], all.first[1], &silent}, sequences, 4);
    pipeline::sign_route(route, liar.key, {});
    RawEnd driver(all.lab, liar, route, 0);
    for (std::uint32_t i = 0; i < 1000; ++i) driver.work(i, i);
    const auto says = [&] {
      return std::any_of(
          driver.received.begin(), driver.received.end(), [](const pipeline::Message& message) {
            const auto* lost = std::get_if<pipeline::Lost>(&message);
            return lost != nullptr && lost->what.find("does not take what it is sent") != std::string::npos;
          });
    };
    QVERIFY(all.lab.run_until(says, minute));
    all.lab.run_for(20 * test::second);
    QCOMPARE(all.first[1]->worker->sessions(), std::size_t{0});
  }

  // The stages before it would keep the notices for a slow reader, and the driver would have no end of patience.
  void a_later_hop_that_says_the_same_again_and_again() {
    Fixture all(*module_, 100'000);
    Node& silent = all.lab.add_silent(all.first[1]->range);
    Node& home = all.lab.add_node();
    pipeline::Route route = all.lab.route({all.first[0], &silent, all.first[2]}, sequences, 4);
    pipeline::sign_route(route, home.key, {});
    RawEnd driver(all.lab, home, route, 0);
    QVERIFY(all.lab.run_until([&] { return driver.is_ready(); }, 5 * test::second));
    for (int i = 0; i < 50; ++i) {
      silent.silent->say(pipeline::Ready{0});
      silent.silent->say(pipeline::Lost{2, all.first[2]->id, std::to_string(i)});
      silent.silent->say(pipeline::Lost{2, all.second[2]->id, "no hop of this route"});
    }
    all.lab.run_for(5 * test::second);
    QVERIFY2(driver.ended.empty(), driver.ended.c_str());
    QCOMPARE(driver.count<pipeline::Ready>(), std::size_t{1});
    QCOMPARE(driver.count<pipeline::Lost>(), std::size_t{1});
    QCOMPARE(std::get<pipeline::Lost>(driver.received.back()).what, std::string("0"));
    // Of the next route again.
    route.revision = 1;
    pipeline::sign_route(route, home.key, {});
    driver.send(pipeline::Follow{route});
    all.lab.run_for(test::second);
    silent.silent->say(pipeline::Lost{2, all.first[2]->id, "still"});
    all.lab.run_for(test::second);
    QCOMPARE(driver.count<pipeline::Lost>(), std::size_t{2});
  }

  // Its losses would be means over other numbers of tokens.
  void a_result_with_other_targets_is_refused() {
    Fixture all(*module_, 100'000);
    Node& silent = all.lab.add_silent(all.first[0]->range);
    LabDriver driver(all.lab, all.lab.add_node(),
                     all.lab.route({&silent, all.first[1], all.first[2]}, sequences, 4), all.shape, 19, 4);
    driver.start();
    QVERIFY(all.lab.run_until([&] { return silent.silent->works() > 0; }, 5 * test::second));
    const std::uint64_t tokens = std::uint64_t{sequences} * all.shape.sequence;
    silent.silent->say(pipeline::Result{0, {tokens, tokens - 1, 5, 0, 0}, std::vector<pipeline::HopTime>(3)});
    QVERIFY(all.lab.run_until([&] { return !driver.lost.empty(); }, 5 * test::second));
    QVERIFY2(driver.lost[0].what.find("the targets of its micro-batch") != std::string::npos,
             driver.lost[0].what.c_str());
    QVERIFY(all.lab.run_until([&] { return driver.finished(); }, 10 * test::second));
    for (const auto& [index, sums] : driver.done) QCOMPARE(sums.target_tokens, tokens);
  }

  void a_first_hop_that_is_ready_again_and_again_is_replaced() {
    Fixture all(*module_, 4);
    Node& silent = all.lab.add_silent(all.first[0]->range);
    LabDriver driver(all.lab, all.lab.add_node(),
                     all.lab.route({&silent, all.first[1], all.first[2]}, sequences, 4), all.shape, 18, 12);
    driver.start();
    const MonotonicTime last = all.lab.world().now() + pipeline::Driver::patience + minute;
    while (!driver.finished() && all.lab.world().now() < last) {
      silent.silent->say(pipeline::Ready{0});
      all.lab.run_for(5 * test::second);
    }
    QVERIFY(driver.finished());
    QCOMPARE(driver.driver().replaced(), std::uint64_t{1});
  }

  // A node has the routes of the driver's earlier sessions, and would fill the driver's places at the later nodes.
  void a_route_of_an_ended_session_is_refused() {
    Fixture all(*module_, 4);
    Node& home = all.lab.add_node();
    LabDriver driver(all.lab, home, all.lab.route(all.first, sequences, 4), all.shape, 15, 8);
    driver.start();
    QVERIFY(all.lab.run_until([&] { return driver.finished(); }, 10 * test::second));
    pipeline::Route route = driver.driver().route();
    driver.driver().close();
    all.lab.run_for(3 * test::second);
    QCOMPARE(all.first[1]->worker->sessions(), std::size_t{0});
    RawEnd replay(all.lab, *all.first[0], route, 1);
    QVERIFY(all.lab.run_until([&] { return !replay.ended.empty(); }, 5 * test::second));
    QVERIFY2(replay.ended.find("this session is over") != std::string::npos, replay.ended.c_str());
    QCOMPARE(all.first[1]->worker->sessions(), std::size_t{0});
    // The driver itself may go on with it.
    ++route.revision;
    pipeline::sign_route(route, home.key, {});
    RawEnd later(all.lab, *all.first[0], route, 1);
    QVERIFY(all.lab.run_until([&] { return later.is_ready(); }, 5 * test::second));
  }

  // Each change has a signature to check and a line to open.
  void a_route_changes_a_few_times_a_second() {
    Fixture all(*module_, 4);
    Node& liar = all.lab.add_node();
    pipeline::Route route = all.lab.route(all.first, sequences, 4);
    pipeline::sign_route(route, liar.key, {});
    RawEnd driver(all.lab, liar, route, 0);
    for (std::uint32_t i = 1; i <= 1000; ++i) {
      route.revision = i;
      route.hops[1].node = (i % 2 == 0 ? all.first[1] : all.second[1])->id;
      pipeline::sign_route(route, liar.key, {});
      driver.send(pipeline::Follow{route});
    }
    QVERIFY(all.lab.run_until([&] { return !driver.ended.empty(); }, test::second));
    QVERIFY2(driver.ended.find("changes too often") != std::string::npos, driver.ended.c_str());
    const auto honest = all.drive(16, 8);
    honest->start();
    QVERIFY(all.lab.run_until([&] { return honest->finished(); }, 2 * test::second));
    QVERIFY(honest->lost.empty());
  }

  // Its node says on each of them that it is there.
  void streams_without_a_session_keep_no_places() {
    Fixture all(*module_, 4);
    constexpr std::size_t places = 64;  // of such streams
    QCOMPARE(pipeline::TableOptions().newcomers, places);
    Node& liar = all.lab.add_node();
    const pipeline::Surroundings around = all.lab.around(liar);
    std::size_t ended = 0;
    std::vector<std::unique_ptr<pipeline::FrameStream>> idle;
    const auto opened = [&](Expected<std::shared_ptr<net::PeerStream>> stream) {
      pipeline::FrameStream::Events events;
      events.admit = [](ByteSpan) { return Expected<std::size_t>(std::size_t{0}); };
      events.received = [](const Bytes&, const Bytes&) {};
      events.ended = [&](const Error&) { ++ended; };
      idle.push_back(std::make_unique<pipeline::FrameStream>(
          std::move(stream).value(), around.executor, around.clock, around.times,
          pipeline::encode_message(pipeline::Alive{}), std::move(events)));
    };
    for (std::size_t i = 0; i < places; ++i) liar.lines->open(all.first[0]->id, opened);
    all.lab.run_for(test::second);
    QCOMPARE(idle.size(), places);
    const auto honest = all.drive(20, 8);
    honest->start();
    QVERIFY(all.lab.run_until([&] { return honest->finished(); }, 2 * test::second));
    QVERIFY(honest->lost.empty());
    QCOMPARE(ended, std::size_t{1});
    all.lab.run_for(7 * test::second);
    QCOMPARE(ended, places);
  }

  // They say that they are there, and send nothing.
  void idle_sessions_make_room_for_one_that_works() {
    Fixture all(*module_, 1000);
    constexpr pipeline::SessionLimits limits{};
    std::vector<std::unique_ptr<RawEnd>> idle;
    for (std::size_t i = 0; i < limits.sessions / limits.of_one_driver; ++i) {
      Node& liar = all.lab.add_node();
      for (std::size_t k = 0; k < limits.of_one_driver; ++k) {
        pipeline::Route route = all.lab.route(all.first, sequences, 4);
        pipeline::sign_route(route, liar.key, {});
        idle.push_back(std::make_unique<RawEnd>(all.lab, liar, route, 0));
      }
    }
    all.lab.run_for(test::second);
    QCOMPARE(all.first[0]->worker->sessions(), limits.sessions);
    const auto honest = all.drive(14, 8);
    honest->holders = [&](const pipeline::StageRange& range) {
      for (const Node* stage : all.first)
        if (stage->range == range) return std::vector<net::NodeId>{stage->id};
      return std::vector<net::NodeId>();
    };
    honest->start();
    all.lab.run_for(50 * test::second);
    QCOMPARE(honest->done.size(), std::size_t{0});
    QVERIFY(!honest->lost.empty());
    QVERIFY2(honest->lost[0].what.find("no place for another session") != std::string::npos,
             honest->lost[0].what.c_str());
    QVERIFY(all.lab.run_until([&] { return honest->finished(); }, 20 * test::second));
    QCOMPARE(all.first[0]->worker->sessions(), limits.sessions);  // one has ended
    const auto ended =
        std::count_if(idle.begin(), idle.end(), [](const auto& one) { return !one->ended.empty(); });
    QCOMPARE(ended, std::ptrdiff_t{1});
  }
};

NS_TEST(TestHostileSessions)
#include "test_hostile_sessions.moc"
