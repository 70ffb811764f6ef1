// Stages and drivers that die, pause or lie: training goes on, and what survives applied each micro-batch once.
#include <QtTest>

#include <limits>

#include "tests/support/test_main.h"
#include "tests/unit/pipeline/failover_fixture.h"

using namespace neuroshard;
using namespace neuroshard::model_test;
using namespace neuroshard::test;
using namespace neuroshard::test::failover;

class TestPipelineFailover : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

 private Q_SLOTS:
  void initTestCase() {
    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
  }

  void a_dead_stage_is_replaced_data() {
    QTest::addColumn<int>("position");
    QTest::newRow("first") << 0;
    QTest::newRow("middle") << 1;
    QTest::newRow("last") << 2;
  }
  // Without a step both holders have the same weights, so what survives has the gradients of one process.
  void a_dead_stage_is_replaced() {
    QFETCH(int, position);
    Fixture all(*module_, 1000);
    const auto driver = all.drive(1, 24);
    driver->start();
    QVERIFY(all.lab.run_until([&] { return driver->done.size() == 9; }));
    const auto at = static_cast<std::size_t>(position);
    all.lab.kill(*all.first[at]);
    QVERIFY(all.lab.run_until([&] { return driver->done.size() == 16; }, 5 * test::second));
    QVERIFY(all.lab.run_until([&] { return driver->finished(); }));
    all.lab.run_for(test::second);
    QCOMPARE(driver->driver().replaced(), std::uint64_t{1});
    const StagePtr alone = stage_of(*module_, whole_model(all.shape));
    for (std::uint64_t i = 0; i < 24; ++i) {
      const Batch batch = LabDriver::batch(all.shape, 1, i, sequences);
      ForwardMetrics metrics;
      NS_VERIFY_OK(alone->forward(i + 1, batch.view, nullptr, &metrics));
      NS_VERIFY_OK(alone->backward(i + 1, nullptr, nullptr));
      QVERIFY(std::abs(driver->done[i].loss - metrics.loss_sum) < 1e-4 * metrics.loss_sum);
    }
    const std::vector<float> expected = gradients(*alone);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::vector<float> own = gradients(*all.second[i]->stage);
      const auto from = expected.begin() + static_cast<std::ptrdiff_t>(begin);
      begin += own.size();
      if (i == at) continue;  // its gradients died with the other holder
      QCOMPARE(applied(*all.first[i]), std::uint64_t{24});
      const std::vector<float> part(from, from + static_cast<std::ptrdiff_t>(own.size()));
      const double difference = distance(gradients(*all.first[i]->stage), part);
      QVERIFY2(difference < 1e-5, qPrintable(QString("stage %1: %2").arg(i).arg(difference)));
    }
    // Work that the dead one had answered is not sent again.
    QVERIFY(applied(*all.second[at]) >= 24 - 9 - 6 && applied(*all.second[at]) <= 24 - 9 + 6);
  }

  // Its micro-batches would hold up the steps of the earlier stages, which would refuse it then.
  void a_driver_waits_for_a_part_without_a_holder() {
    Fixture all(*module_, 4);
    const auto driver = all.drive(2, 12);
    driver->holders = [&](const pipeline::StageRange& range) {
      for (const Node* stage : all.first)
        if (stage->range == range) return std::vector<net::NodeId>{stage->id};
      return std::vector<net::NodeId>();
    };
    all.lab.kill(*all.first[2]);
    driver->start();
    all.lab.run_for(10 * minute);
    QCOMPARE(driver->done.size(), std::size_t{0});
    QCOMPARE(driver->driver().unfinished(), std::size_t{0});
    for (const std::size_t i : {0, 1}) {
      QCOMPARE(all.first[i]->worker->schedule().under_way(), std::size_t{0});
      QCOMPARE(all.first[i]->worker->sessions(), std::size_t{1});  // it was not refused
    }
    driver->holders = nullptr;  // the second holder is found
    QVERIFY(all.lab.run_until([&] { return driver->finished(); }, 5 * test::second));
  }

  void a_pause_leads_sessions_around() {
    Fixture all(*module_, 4);
    const auto driver = all.drive(2, 40);
    driver->start();
    QVERIFY(all.lab.run_until([&] { return driver->done.size() == 10; }));
    all.first[1]->sessions->pause(pipeline::SessionKind::Training,
                                  make_error(ErrorCode::Unavailable, "the computer runs on battery"));
    QVERIFY(all.lab.run_until([&] { return driver->done.size() == 12; }, test::second));
    QCOMPARE(driver->lost.size(), std::size_t{1});
    QVERIFY(driver->lost[0].what.find("battery") != std::string::npos);
    QCOMPARE(all.first[1]->worker->sessions(), std::size_t{0});
    const std::uint64_t before = applied(*all.first[1]);
    QVERIFY(all.lab.run_until([&] { return driver->finished(); }));
    QCOMPARE(applied(*all.first[1]), before);
    // Back at work: it takes the session of another driver.
    all.first[1]->sessions->resume(pipeline::SessionKind::Training);
    const auto other = all.drive(3, 8);
    other->start();
    QVERIFY(all.lab.run_until([&] { return other->finished(); }));
    QCOMPARE(applied(*all.first[1]), before + 8);
  }

  void a_dead_driver_harms_nobody() {
    Fixture all(*module_, 4);
    const auto driver = all.drive(4, 400), other = all.drive(5, 60);
    driver->start();
    other->start();
    QVERIFY(all.lab.run_until([&] { return driver->done.size() == 10; }));
    driver->die();
    QVERIFY(all.lab.run_until([&] { return other->finished(); }, minute));
    all.lab.run_for(20 * test::second);
    for (const Node* stage : all.first) {
      QCOMPARE(stage->worker->sessions(), std::size_t{1});  // the other's
      QCOMPARE(stage->worker->schedule().under_way(), std::size_t{0});
      QVERIFY(applied(*stage) >= 70 && applied(*stage) <= 76);
      QVERIFY(stage->troubles.empty());
    }
  }

  void without_another_holder_it_waits_for_one() {
    Fixture all(*module_, 4);
    for (Node* node : all.second) all.lab.kill(*node);
    const auto driver = all.drive(6, 20);
    driver->start();
    QVERIFY(all.lab.run_until([&] { return driver->done.size() == 5; }));
    const pipeline::StageRange range = all.first[1]->range;
    all.lab.kill(*all.first[1]);
    all.lab.run_for(10 * test::second);
    QVERIFY(driver->done.size() < 13);
    all.lab.add_stage(range, limits_of(4));
    QVERIFY(all.lab.run_until([&] { return driver->finished(); }, 5 * test::second));
  }

  // Each is asked and refuses at once. The stage before them would refuse a route that changes as fast.
  void many_holders_that_are_gone() {
    Fixture all(*module_, 4);
    const pipeline::StageRange range = all.first[1]->range;
    for (int i = 0; i < 20; ++i) all.lab.kill(all.lab.add_stage(range, limits_of(4)));
    all.lab.kill(*all.first[1]);
    all.lab.kill(*all.second[1]);
    const auto driver = all.drive(17, 12);
    driver->start();
    all.lab.run_for(20 * test::second);
    QVERIFY(driver->lost.size() > 40);
    for (const pipeline::Lost& lost : driver->lost) QCOMPARE(lost.position, std::uint8_t{1});
    all.lab.add_stage(range, limits_of(4));
    QVERIFY(all.lab.run_until([&] { return driver->finished(); }, 5 * test::second));
  }

  // Whatever dies, and when: the work goes on within five seconds, and the one stage that nobody kills has applied
  // every micro-batch once.
  void random_kills_data() {
    QTest::addColumn<int>("seed");
    for (int seed = 1; seed <= 3; ++seed) QTest::addRow("seed %d", seed) << seed;
  }
  void random_kills() {
    QFETCH(int, seed);
    Fixture all(*module_, 5);
    Node& spared = *all.first[2];
    all.lab.kill(*all.second[2]);
    const auto driver = all.drive(7, 1'000'000);
    driver->start();
    Rng rng(static_cast<std::uint64_t>(seed));
    for (int kill = 0; kill < 33; ++kill) {
      all.lab.run_for(static_cast<long>(20 + rng.below(400)) * millisecond);
      const pipeline::Route& route = driver->driver().route();
      const std::size_t at = rng.below(2);
      for (const auto& node : all.lab.nodes()) {
        if (node->id != route.hops[at].node || !node->alive) continue;
        const pipeline::StageRange range = node->range;
        all.lab.kill(*node);
        all.lab.add_stage(range, limits_of(5));
        break;
      }
      const std::size_t done = driver->done.size();
      QVERIFY2(all.lab.run_until([&] { return driver->done.size() >= done + 4; }, 5 * test::second),
               qPrintable(QString("kill %1 of seed %2").arg(kill).arg(seed)));
    }
    QVERIFY(driver->driver().replaced() >= 30);
    const std::uint64_t finished = driver->done.size();
    QVERIFY(applied(spared) >= finished && applied(spared) <= finished + 6);
    for (const std::uint64_t step : spared.steps)
      QCOMPARE(step, std::uint64_t{5} * sequences * all.shape.sequence);
    QVERIFY(spared.troubles.empty());
    // Each index once, none left out.
    QCOMPARE(driver->done.rbegin()->first + 1 - finished < 7, true);
  }

  void strangers_are_refused_data() {
    QTest::addColumn<int>("which");
    QTest::addColumn<QString>("says");
    QTest::newRow("layers that it does not hold") << 0 << "does not hold";
    QTest::newRow("another node's turn") << 1 << "another node is before this one";
    QTest::newRow("a forged route") << 2 << "signature of the route";
    QTest::newRow("a huge window") << 3 << "no place for another session";
  }
  void strangers_are_refused() {
    QFETCH(int, which);
    QFETCH(QString, says);
    Fixture all(*module_, 4);
    Node& stranger = all.lab.add_node();
    pipeline::Route route = all.lab.route(all.first, sequences, which == 3 ? 256 : 4);
    if (which == 0) route.hops[0].range.layer_count = 2, route.hops[1].range = {2, 1, false, false};
    if (which == 3) route.sequences = 4096, route.wire = pipeline::WireFormat::Fp32;
    const crypto::KeyPair other = key_of(77);
    pipeline::sign_route(route, which == 1 ? other : stranger.key, {});
    if (which == 2) route.window = 5;
    std::vector<pipeline::Lost> lost;
    pipeline::NextHop hop(
        all.lab.around(stranger),
        {[](const auto&, const auto&) {}, [&](const pipeline::Lost& one) { lost.push_back(one); }});
    hop.follow(route, 0);
    QVERIFY(all.lab.run_until([&] { return !lost.empty(); }, test::second));
    QVERIFY2(lost[0].what.find(says.toStdString()) != std::string::npos, lost[0].what.c_str());
    QCOMPARE(all.first[0]->worker->sessions(), std::size_t{0});
  }

  // Sessions of one driver leave room for those of others.
  void a_driver_has_a_few_sessions_at_a_stage() {
    Fixture all(*module_, 1000);
    constexpr std::size_t most = pipeline::SessionLimits().of_one_driver;
    Node& greedy = all.lab.add_node();
    std::vector<std::unique_ptr<LabDriver>> drivers;
    for (std::size_t i = 0; i <= most; ++i) {
      drivers.push_back(std::make_unique<LabDriver>(all.lab, greedy, all.lab.route(all.first, sequences, 4),
                                                    all.shape, i, 2));
      drivers.back()->holders = [](const pipeline::StageRange&) { return std::vector<net::NodeId>(); };
      drivers.back()->start();
    }
    const auto honest = all.drive(99, 4);
    honest->start();
    QVERIFY(all.lab.run_until([&] { return honest->finished() && !drivers.back()->lost.empty(); }, minute));
    QVERIFY2(drivers.back()->lost[0].what.find("too many sessions") != std::string::npos,
             drivers.back()->lost[0].what.c_str());
    for (std::size_t i = 0; i < most; ++i) QVERIFY(drivers[i]->finished());
    QCOMPARE(all.first[0]->worker->sessions(), most + 1);
  }

  // A driver leads its session to a node of its own that never answers. A step waits for all that is under way, but not
  // for ever.
  void a_later_hop_that_never_answers() {
    Fixture all(*module_, 4);
    const auto honest = all.drive(9, 40);
    Node& silent = all.lab.add_silent(all.first[2]->range);
    Node& liar = all.lab.add_node();
    LabDriver hostile(all.lab, liar, all.lab.route({all.first[0], all.first[1], &silent}, sequences, 3),
                      all.shape, 10, 50);
    hostile.holders = [&](const pipeline::StageRange&) { return std::vector<net::NodeId>(); };
    hostile.start();
    honest->start();
    QVERIFY(all.lab.run_until([&] { return honest->finished(); }, 3 * minute));
    QVERIFY(hostile.done.empty());
    QVERIFY(!hostile.lost.empty());
    QVERIFY2(hostile.lost[0].what.find("did not come back") != std::string::npos,
             hostile.lost[0].what.c_str());
    // Its driver is not let in again at once; the honest one is.
    hostile.holders = [&](const pipeline::StageRange& range) {
      for (const Node* node : {all.first[0], all.first[1], &silent})
        if (node->range == range) return std::vector<net::NodeId>{node->id};
      return std::vector<net::NodeId>();
    };
    hostile.lost.clear();
    honest->add(40);
    QVERIFY(all.lab.run_until([&] { return honest->finished(); }, 10 * test::second));
    QVERIFY(hostile.done.empty());
    QVERIFY(!hostile.lost.empty());
    QVERIFY(hostile.lost.back().what.find("held the stage up") != std::string::npos);
  }

  // The engine's queue of jobs is bounded.
  void a_stage_goes_on_after_its_queue_was_full() {
    Fixture all(*module_, 4);
    const auto driver = all.drive(12, 40);
    driver->start();
    for (std::size_t done = 4; done < 36; ++done) {
      QVERIFY2(all.lab.run_until([&] { return driver->done.size() >= done; }, 10 * test::second),
               QByteArray::number(done).constData());
      all.lab.compute().refused = 3;
      all.lab.swarm().refused = 2;
    }
    QVERIFY(all.lab.run_until([&] { return driver->finished(); }, 10 * test::second));
    all.lab.run_for(test::second);
    QVERIFY(driver->lost.empty());
    for (const Node* stage : all.first) {
      QCOMPARE(applied(*stage), std::uint64_t{40});
      QCOMPARE(stage->worker->lost_micro_batches(), std::uint64_t{0});
    }
  }

  void a_hop_that_keeps_everything_is_replaced_data() { a_dead_stage_is_replaced_data(); }
  // It says that it is there and ready. The hop before it names it, so that the driver is not refused for it.
  void a_hop_that_keeps_everything_is_replaced() {
    QFETCH(int, position);
    Fixture all(*module_, 4);
    const auto at = static_cast<std::size_t>(position);
    Node& silent = all.lab.add_silent(all.first[at]->range);
    std::vector<Node*> hops = all.first;
    hops[at] = &silent;
    LabDriver driver(all.lab, all.lab.add_node(), all.lab.route(hops, sequences, 4), all.shape, 18, 12);
    driver.start();
    const Duration patience = position == 0 ? pipeline::Driver::patience + minute : 2 * minute;
    QVERIFY(all.lab.run_until([&] { return driver.finished(); }, patience));
    QCOMPARE(driver.lost.size(), std::size_t{1});
    QVERIFY(driver.lost[0].node == silent.id && driver.lost[0].position == position);
    QCOMPARE(driver.driver().replaced(), std::uint64_t{1});
    for (const std::size_t i : {0, 1, 2})
      if (i != at) QCOMPARE(applied(*all.first[i]), std::uint64_t{12});
  }

  void a_hop_that_never_gets_ready_is_replaced_data() { a_dead_stage_is_replaced_data(); }
  // It answers the heartbeats, so nothing else shows that it is of no use. The honest hops before it are not blamed.
  void a_hop_that_never_gets_ready_is_replaced() {
    QFETCH(int, position);
    Fixture all(*module_, 4);
    const auto at = static_cast<std::size_t>(position);
    Node& silent = all.lab.add_silent(all.first[at]->range, false);
    std::vector<Node*> hops = all.first;
    hops[at] = &silent;
    LabDriver driver(all.lab, all.lab.add_node(), all.lab.route(hops, sequences, 4), all.shape, 11, 12);
    driver.holders = [&](const pipeline::StageRange& range) { return all.lab.holders(range); };
    driver.start();
    QVERIFY(all.lab.run_until([&] { return driver.finished(); }, 2 * minute));
    QCOMPARE(driver.lost.size(), std::size_t{1});
    QVERIFY(driver.lost[0].node == silent.id && driver.lost[0].position == position);
    QVERIFY2(driver.lost[0].what.find("does not get ready") != std::string::npos,
             driver.lost[0].what.c_str());
    QCOMPARE(driver.driver().replaced(), std::uint64_t{1});
    for (const std::size_t i : {0, 1, 2})
      if (i != at) QCOMPARE(applied(*all.first[i]), std::uint64_t{12});
  }

  // It sends again what another one has finished meanwhile.
  void a_hop_that_comes_back_is_heard() {
    Fixture all(*module_, 100'000);
    Node& home = all.lab.add_node();
    pipeline::Route route = all.lab.route(all.first, sequences, 4);
    pipeline::sign_route(route, home.key, {});
    RawEnd driver(all.lab, home, route, 0);
    const auto has_results = [&](std::size_t count) {
      return all.lab.run_until([&] { return driver.count<pipeline::Result>() == count; }, 10 * test::second);
    };
    for (std::uint64_t i = 0; i < 4; ++i) driver.work(i, 0);
    QVERIFY(has_results(4));
    driver.work(4, 4);
    QVERIFY(has_results(5));
    driver.work(0, 0);
    driver.work(5, 5);
    QVERIFY(has_results(6));
    QVERIFY2(driver.ended.empty(), driver.ended.c_str());
    QCOMPARE(applied(*all.first[0]), std::uint64_t{6});
  }

  // A hop whose rows are not numbers loses its session; nothing of it is applied, and others go on.
  void rows_that_are_no_numbers() {
    Fixture all(*module_, 4);
    const auto honest = all.drive(8, 12);
    honest->start();
    Node& liar = all.lab.add_node();
    pipeline::Route route = all.lab.route({&liar, all.first[1], all.first[2]}, sequences, 4);
    route.hops[0].range = all.first[0]->range;
    pipeline::sign_route(route, liar.key, {});
    std::vector<pipeline::Lost> lost;
    pipeline::NextHop hop(all.lab.around(liar), {[](const auto&, const auto&) {},
                                                 [&](const pipeline::Lost& one) { lost.push_back(one); }});
    hop.follow(route, 1);
    const std::size_t tokens = sequences * all.shape.sequence;
    auto payload = std::make_shared<Bytes>(tokens * 4 + tokens * all.shape.hidden * 4, std::uint8_t{0});
    const float none = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(payload->data() + payload->size() - 4, &none, 4);
    hop.send({0, 0, sequences}, payload);
    QVERIFY(all.lab.run_until([&] { return !lost.empty() && honest->finished(); }));
    QVERIFY2(lost[0].what.find("not a finite number") != std::string::npos, lost[0].what.c_str());
    for (const Node* stage : all.first) QCOMPARE(applied(*stage), std::uint64_t{12});
  }
};

NS_TEST(TestPipelineFailover)
#include "test_failover.moc"
