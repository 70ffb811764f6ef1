// The times of a route's hops: what a driver says of them, on a virtual clock.
#include <QtTest>

#include "core/pipeline/hop_times.h"
#include "tests/support/pipeline_lab.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::pipeline;
using namespace neuroshard::test;
using compute::StagePtr;
using compute::Status;

namespace {

constexpr std::uint32_t sequences = 2;
constexpr StageRange ranges[] = {{0, 2, true, false}, {2, 1, false, false}, {3, 1, false, true}};

compute::ModelShape four_layers() {
  compute::ModelShape shape = model_test::small_shape(1);
  shape.layers = 4;
  return shape;
}

struct Costs {
  Duration forward{0}, backward{0}, weights{0};
};

// A stage without weights, whose work takes time and gives zeros.
class CostlyStage final : public compute::Stage {
 public:
  CostlyStage(LabClock& clock, const Costs& costs) : clock_(clock), costs_(costs) {}
  Status forward(std::uint64_t, const compute::MicroBatch& batch, float*,
                 compute::ForwardMetrics* metrics) override {
    clock_.spend(costs_.forward);
    metrics->tokens = metrics->target_tokens = std::uint64_t{batch.batch} * batch.sequence;
    return {};
  }
  Status backward_input(std::uint64_t, const float*, float*) override {
    clock_.spend(costs_.backward);
    return {};
  }
  Status backward_weights(std::uint64_t) override {
    clock_.spend(costs_.weights);
    return {};
  }

  void release() override { delete this; }
  Status change(const compute::StageSpec&) override { return {}; }
  std::uint32_t slot_count() const override { return 0; }
  compute::SlotBuffers slot(std::uint32_t) override { return {}; }
  Status copy_out(std::uint32_t, compute::SlotBuffer, float*) override { return {}; }
  Status copy_in(std::uint32_t, compute::SlotBuffer, const float*) override { return {}; }
  void parameters_changed() override {}
  Status backward(std::uint64_t, const float*, float*) override { return {}; }
  void discard(std::uint64_t) override {}
  Status evaluate(const compute::MicroBatch&, float*, compute::ForwardMetrics*) override { return {}; }
  Status step(const compute::StepOptions&, compute::StepMetrics*) override { return {}; }
  Status step_slots(std::uint32_t, const compute::SlotStep*, compute::StepMetrics*) override { return {}; }
  void zero_gradients() override {}
  Status expert_forward(std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t, const float*, float*,
                        bool) override {
    return {};
  }
  Status expert_backward(std::uint64_t, const float*, float*) override { return {}; }
  void router_load(std::uint64_t*, bool) override {}
  void router_bias(float*) const override {}
  void set_router_bias(const float*) override {}
  Status open_session(std::uint64_t, std::uint32_t) override { return {}; }
  Status extend_sessions(std::uint32_t, const compute::SessionPart*) override { return {}; }
  void close_session(std::uint64_t) override {}
  Status logits(const compute::MicroBatch&, float*) override { return {}; }

 private:
  LabClock& clock_;
  const Costs costs_;
};

// Three stages, a line's delay of 5 ms, and no step of the optimizer.
struct Fixture {
  static constexpr Duration delay = 5 * millisecond;
  const compute::ModelShape shape = four_layers();
  PipelineLab lab{shape, delay};

  std::vector<PipelineLab::Node*> add_stages(const std::vector<Costs>& costs) {
    std::vector<PipelineLab::Node*> stages;
    StageSchedule::Limits limits;
    limits.batch_tokens = 1'000'000;
    for (std::size_t i = 0; i < 3; ++i)
      stages.push_back(&lab.add_stage(ranges[i], limits, StagePtr(new CostlyStage(lab.clock(), costs[i]))));
    return stages;
  }
};

Route route_of_three() {
  Route route;
  for (std::uint8_t i = 0; i < 3; ++i) {
    route.hops.push_back({{}, ranges[i]});
    route.hops.back().node[0] = i + 1;
  }
  return route;
}

HopTimes::Figure figure(Duration computing, Duration between) {
  return {computing, between};
}

std::uint32_t us(Duration duration) {
  return to_microseconds(duration);
}

// The nodes behind a hop: they answer each micro-batch at once, with so many times.
class AnsweringLines final : public Lines {
 public:
  AnsweringLines(sim::World& world, Executor& executor, const Route& route, const compute::ModelShape& shape,
                 std::size_t times)
      : world_(world), executor_(executor), route_(route), shape_(shape), times_(times) {}
  std::unique_ptr<TimerHandle> open(const net::NodeId&, Opened done) override {
    auto [here, there] = net::make_local_stream(executor_);
    FrameStream::Events events;
    events.admit = [this](ByteSpan header) -> Expected<std::size_t> { return size(*decode_message(header)); };
    events.received = [this](const Bytes& header, const Bytes&) {
      const Message message = *decode_message(header);
      const auto* work = std::get_if<Work>(&message);
      if (work == nullptr) return;
      const std::uint64_t tokens = std::uint64_t{work->sequences} * route_.length;
      const Result result{work->index, {tokens, tokens, 1, 0, 0}, std::vector<HopTime>(times_)};
      frames_->send(encode_message(result), std::make_shared<Bytes>(size(result)));
    };
    events.ended = [](const Error&) {};
    frames_ = std::make_unique<FrameStream>(std::move(there), executor_, world_.clock(), FrameTimes(),
                                            encode_message(Alive{}), std::move(events));
    (void)executor_.post([done, stream = std::move(here)] { done(stream); });
    return nullptr;
  }

 private:
  std::size_t size(const Message& message) const {
    return payload_bytes(message, route_, route_.hops[1], shape_).value_or(0);
  }
  sim::World& world_;
  Executor& executor_;
  const Route route_;
  const compute::ModelShape shape_;
  const std::size_t times_;
  std::unique_ptr<FrameStream> frames_;
};

}  // namespace

class TestHopTimes : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void round_trips_become_figures_of_hops() {
    const Route route = route_of_three();
    HopTimes times;
    QVERIFY(!times.means(route)[0]);
    times.add(route, 100 * millisecond,
              {{us(10 * millisecond), us(70 * millisecond)},
               {us(20 * millisecond), us(35 * millisecond)},
               {us(30 * millisecond), 0}});
    const auto means = times.means(route);
    QVERIFY(means[0] == figure(10 * millisecond, 20 * millisecond));
    QVERIFY(means[1] == figure(20 * millisecond, 15 * millisecond));
    QVERIFY(means[2] == figure(30 * millisecond, 5 * millisecond));
  }

  void figures_are_means_of_the_last_micro_batches() {
    const Route route = route_of_three();
    HopTimes times;
    for (long i = 1; i <= 40; ++i)
      times.add(route, 100 * millisecond, {{us(i * millisecond), us(40 * millisecond)}, {0, 0}, {0, 0}});
    const Duration mean = 12 * millisecond + 12 * millisecond + 500 * std::chrono::microseconds(1);
    QVERIFY(times.means(route)[0] == figure(mean, 60 * millisecond - mean));  // of 9 to 40 ms
  }

  void another_node_has_no_figures_yet() {
    const Route route = route_of_three();
    HopTimes times;
    times.add(route, 10 * millisecond, {{1000, 5000}, {1000, 2000}, {500, 0}});
    Route other = route;
    other.hops[1].node[0] = 77;
    QVERIFY(times.means(other)[0] && !times.means(other)[1] && times.means(other)[2]);
    times.add(other, 20 * millisecond, {{1000, 5000}, {3000, 1000}, {500, 0}});
    QVERIFY(times.means(other)[1] == figure(3 * millisecond, millisecond));
    QVERIFY(!times.means(route)[1]);
  }

  // A stage may say anything: the figures share out the driver's own round trip.
  void false_times_change_shares_only() {
    const Route route = route_of_three();
    const std::uint32_t most = UINT32_MAX;
    for (const std::vector<HopTime>& said : {std::vector<HopTime>{{most, most}, {most, most}, {most, 0}},
                                             {{0, most}, {0, most}, {most, 0}},
                                             {{1000, 0}, {most, 5}, {7, 0}}}) {
      HopTimes times;
      times.add(route, 50 * millisecond, said);
      Duration sum{0};
      for (const auto& mean : times.means(route)) {
        QVERIFY(mean->computing >= Duration(0) && mean->between >= Duration(0));
        sum += mean->computing + mean->between;
      }
      QVERIFY(sum == 50 * millisecond);
    }
    QCOMPARE(to_microseconds(hour * 2), UINT32_MAX);
    QCOMPARE(to_microseconds(-second), 0u);
  }

  void a_driver_knows_the_times_of_its_hops_data() {
    QTest::addColumn<int>("weights_ms");
    QTest::newRow("nothing but the micro-batch") << 0;
    QTest::newRow("gradients of weights that follow the result") << 400;
  }
  // The lab's line takes 5 ms for each header and each chunk of a payload.
  void a_driver_knows_the_times_of_its_hops() {
    QFETCH(int, weights_ms);
    Fixture all;
    const Duration weights = weights_ms * millisecond;
    const auto stages = all.add_stages({{7 * millisecond, 3 * millisecond, weights},
                                        {20 * millisecond, 1 * millisecond, weights},
                                        {4 * millisecond, 11 * millisecond, weights}});
    LabDriver driver(all.lab, all.lab.add_node(), all.lab.route(stages, sequences, 1), all.shape, 1, 5);
    driver.start();
    QCOMPARE(driver.driver().times().size(), std::size_t{3});
    QVERIFY(!driver.driver().times()[0]);
    QVERIFY(all.lab.run_until([&] { return driver.finished(); }));
    const auto times = driver.driver().times();
    const Duration computing[] = {10 * millisecond, 21 * millisecond, 15 * millisecond};
    const Duration line[] = {3 * Fixture::delay, 4 * Fixture::delay, 4 * Fixture::delay};
    for (std::size_t i = 0; i < 3; ++i) {
      QVERIFY(times[i].has_value());
      QCOMPARE(times[i]->computing.count(), computing[i].count());
      if (weights_ms == 0) QCOMPARE(times[i]->between.count(), line[i].count());
    }
  }

  // Ten seconds without a holder are no time of the line.
  void an_outage_is_not_in_the_figures() {
    Fixture all;
    const std::vector<Costs> costs(3, {2 * millisecond, 2 * millisecond, Duration(0)});
    const auto first = all.add_stages(costs), second = all.add_stages(costs);
    LabDriver driver(all.lab, all.lab.add_node(), all.lab.route(first, sequences, 4), all.shape, 1, 100'000);
    bool found = false;
    driver.holders = [&](const StageRange& range) {
      return found ? all.lab.holders(range) : std::vector<net::NodeId>();
    };
    driver.start();
    QVERIFY(all.lab.run_until([&] { return driver.done.size() == 20; }));
    QCOMPARE(driver.driver().unfinished(), std::size_t{4});
    all.lab.kill(*first[1]);
    all.lab.run_for(10 * test::second);
    const std::size_t before = driver.done.size();
    QVERIFY(driver.driver().times()[1].has_value());
    found = true;
    QVERIFY(all.lab.run_until([&] { return driver.driver().replaced() == 1; }));
    QCOMPARE(driver.done.size(), before);
    QVERIFY(driver.driver().times()[0] && !driver.driver().times()[1] && driver.driver().times()[2]);
    QVERIFY(all.lab.run_until([&] { return driver.done.size() == before + 12; }));
    for (const auto& time : driver.driver().times()) {
      QVERIFY(time.has_value());
      QVERIFY2(time->between < test::second, QByteArray::number(to_seconds(time->between)).constData());
    }
  }

  // Else the number of times that belongs to a result would change under way.
  void a_session_keeps_the_ranges_of_its_hops() {
    Fixture all;
    const auto stages = all.add_stages(std::vector<Costs>(3));
    PipelineLab::Node& home = all.lab.add_node();
    Route route = all.lab.route(stages, sequences, 4);
    sign_route(route, home.key, {});
    std::vector<Lost> lost;
    bool ready = false;
    NextHop hop(all.lab.around(home), {[](const auto&, const auto&) {},
                                       [&](const Lost& one) { lost.push_back(one); }, [&] { ready = true; }});
    hop.follow(route, 0);
    QVERIFY(all.lab.run_until([&] { return ready; }, second));
    ++route.revision;
    route.hops.erase(route.hops.begin() + 1);
    route.hops[1].range = {2, 2, false, true};
    sign_route(route, home.key, {});
    hop.follow(route, 0);
    QVERIFY(all.lab.run_until([&] { return !lost.empty(); }, second));
    QVERIFY2(lost[0].what.find("keeps the ranges of its hops") != std::string::npos, lost[0].what.c_str());
  }

  void a_list_of_another_length_is_refused_data() {
    QTest::addColumn<int>("kind");
    QTest::addColumn<int>("times");
    QTest::addColumn<bool>("accepted");
    const int training = static_cast<int>(SessionKind::Training), text = static_cast<int>(SessionKind::Text);
    QTest::newRow("one for each later hop") << training << 2 << true;
    QTest::newRow("none") << training << 0 << false;
    QTest::newRow("one too few") << training << 1 << false;
    QTest::newRow("one too many") << training << 3 << false;
    QTest::newRow("a text has none") << text << 0 << true;
    QTest::newRow("a text with some") << text << 2 << false;
  }
  void a_list_of_another_length_is_refused() {
    QFETCH(int, kind);
    QFETCH(int, times);
    QFETCH(bool, accepted);
    const compute::ModelShape shape = four_layers();
    Route route = route_of_three();
    route.kind = static_cast<SessionKind>(kind);
    route.sequences = sequences;
    route.length = route.kind == SessionKind::Text ? 1 : shape.sequence;
    route.positions = route.kind == SessionKind::Text ? 64 : 0;
    route.window = 4;
    sim::World world;
    sim::HostExecutor executor(world);
    AnsweringLines lines(world, executor, route, shape, static_cast<std::size_t>(times));
    ExchangeLog exchanges;
    std::vector<Result> results;
    std::vector<Lost> lost;
    NextHop hop({lines, executor, world.clock(), exchanges, {}, shape, {}},
                {[&](const Result& result, const Bytes&) { results.push_back(result); },
                 [&](const Lost& one) { lost.push_back(one); }});
    hop.follow(route, 1);
    const Work work{0, 0, sequences};
    hop.send(work, std::make_shared<Bytes>(*payload_bytes(work, route, route.hops[1], shape)));
    QVERIFY(world.run_until([&] { return !results.empty() || !lost.empty(); }, world.now() + minute));
    QCOMPARE(!results.empty(), accepted);
    if (accepted) return;
    const std::string says = std::to_string(times) + " hops and the route has " + (kind == 0 ? "2" : "0");
    QVERIFY2(lost[0].what.find(says) != std::string::npos, lost[0].what.c_str());
  }
};

NS_TEST(TestHopTimes)
#include "test_hop_times.moc"
