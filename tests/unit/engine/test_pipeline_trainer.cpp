// The boundary between the pipeline and the training of a node: jobs of the pipeline run on the compute thread during a
// step, and at no other time.
#include <QtTest>

#include <atomic>
#include <future>

#include "core/base/rng.h"
#include "core/engine/pipeline_trainer.h"
#include "core/net/local_stream.h"
#include "core/pipeline/stage_worker.h"
#include "tests/support/busy_executor.h"
#include "tests/support/keys.h"
#include "tests/support/manual_executor.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/jumping_clock.h"
#include "tests/unit/engine/toy_module.h"

using namespace neuroshard;
using namespace neuroshard::engine;

namespace {

constexpr std::uint32_t sequences = 2, length = 4, micro_batches = 3;

compute::ModelShape toy_shape() {
  compute::ModelShape shape;
  shape.layers = 1;
  shape.hidden = 8;
  shape.head_dim = 4;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.ffn = 8;
  shape.experts = shape.experts_per_token = 1;
  shape.vocab = 5;
  shape.sequence = length;
  return shape;
}

// Token i is followed by i + 1.
pipeline::MicroBatchText counting_text() {
  pipeline::MicroBatchText text{sequences, {}, {}};
  for (std::uint32_t i = 0; i < sequences * length; ++i) {
    text.tokens.push_back(static_cast<std::int32_t>(i % 5));
    text.targets.push_back(static_cast<std::int32_t>((i + 1) % 5));
  }
  return text;
}

// Lines of a node that holds the whole model.
class OwnLines final : public pipeline::Lines {
 public:
  explicit OwnLines(Executor& executor) : executor_(executor) {}
  pipeline::SessionTable* sessions = nullptr;
  net::NodeId own{};
  std::unique_ptr<TimerHandle> open(const net::NodeId&, Opened done) override {
    (void)executor_.post([this, done = std::move(done)] {
      auto [here, there] = net::make_local_stream(executor_);
      sessions->take(own, std::move(there));
      done(std::move(here));
    });
    return nullptr;
  }

 private:
  Executor& executor_;
};

using testing::BusyExecutor;

// A node alone: its stage, its driver and its trainer. The executor of the pipeline has a thread of its own.
struct Bench {
  Bench() {
    stage.reset(module.create_stage(spec(), nullptr));
    Rng rng(1);
    for (std::uint32_t i = 0; i < stage->slot_count(); ++i) {
      const compute::SlotBuffers slot = stage->slot(i);
      for (std::uint64_t at = 0; at < slot.count; ++at)
        slot.parameters[at] = static_cast<float>(rng.uniform() - 0.5);
    }
    lines = std::make_unique<OwnLines>(*executor);
    lines->own = crypto::node_id(key.public_key());
    PipelineTrainer::Listener listener;
    listener.executor = executor.get();
    listener.ready = [this](const PipelinePart& part) { open(part); };
    listener.gone = [this] { close(); };
    listener.text = [this] {
      if (driver) driver->wake();
    };
    trainer.listen(std::move(listener));
  }
  ~Bench() {
    trainer.listen({});
    trainer.detach();
    on_executor([this] { close(); });
    executor.reset();
  }

  static compute::StageSpec spec() {
    compute::StageSpec spec;
    spec.shape = toy_shape();
    spec.layer_count = 1;
    spec.embed = spec.head = true;
    return spec;
  }
  void attach() {
    PipelineTrainer::Model model{*stage, compute::whole_range(toy_shape()), toy_shape()};
    model.batch_tokens = sequences * length * micro_batches;
    model.sequences = sequences;
    model.most_held = 4;
    model.rule = [](compute::SlotId, std::uint64_t) {
      compute::StepOptions options;
      options.learning_rate = 0.1;
      return options;
    };
    model.before_step = [this] { ++steps_begun; };
    model.read_text = [this](const CancelToken&) -> Expected<std::vector<pipeline::MicroBatchText>> {
      ++text_asked;
      if (no_text) return make_error(ErrorCode::Io, "the disk is gone");
      if (text_away) return make_error(text_error, "the publisher does not answer");
      ++batches_read;
      return std::vector<pipeline::MicroBatchText>(micro_batches, counting_text());
    };
    trainer.attach(std::move(model));
  }
  void on_executor(const std::function<void()>& task) {
    std::promise<void> done;
    QVERIFY(executor->post([&] {
      task();
      done.set_value();
    }));
    done.get_future().wait();
  }
  train::InnerStep step() { return trainer.step({}).value(); }
  void cut_off() {
    on_executor([this] { close(); });
  }

  testing::JumpingClock clock;
  testing::ToyModule module;
  std::unique_ptr<compute::Stage, void (*)(compute::Stage*)> stage{nullptr,
                                                                   [](compute::Stage* s) { s->release(); }};
  const crypto::KeyPair key = test::key_numbered(1);
  std::unique_ptr<Executor> executor = make_thread_executor("pipeline", 1024);
  PipelineTrainer trainer{clock};
  pipeline::ExchangeLog exchanges;
  std::unique_ptr<OwnLines> lines;
  std::unique_ptr<pipeline::SessionTable> sessions;
  std::unique_ptr<pipeline::StageWorker> worker;
  std::unique_ptr<pipeline::Driver> driver;
  std::shared_ptr<JobQueue> jobs;
  int opened = 0, closed = 0;
  std::atomic<int> steps_begun = 0, batches_read = 0, text_asked = 0;
  std::atomic<bool> no_text = false, text_away = false;
  ErrorCode text_error = ErrorCode::Timeout;  // where the text is away

 private:
  void open(const PipelinePart& part) {
    ++opened;
    jobs = part.jobs;
    const pipeline::Surroundings around{*lines, *executor, clock, exchanges, lines->own, part.shape, {}};
    pipeline::StageOptions options;
    sessions = std::make_unique<pipeline::SessionTable>(around, pipeline::TableOptions{part.range, {1}});
    options.schedule.batch_tokens = part.batch_tokens;
    options.schedule.most_held = part.most_held;
    worker = std::make_unique<pipeline::StageWorker>(around, *sessions, part.jobs->training(), part.lane,
                                                     std::move(options));
    lines->sessions = sessions.get();
    pipeline::Route route;
    route.sequences = part.sequences;
    route.length = part.shape.sequence;
    route.window = 4;
    route.wire = pipeline::WireFormat::Fp32;
    route.hops = {{lines->own, part.range}};
    pipeline::DriverEvents events;
    events.next = [this] { return trainer.next_text(); };
    events.finished = [](std::uint64_t, const pipeline::Sums&) {};
    events.lead.holders = [this](const auto&) { return std::vector<net::NodeId>{lines->own}; };
    driver = std::make_unique<pipeline::Driver>(around, key, Bytes{1}, route, std::move(events));
    driver->start();
  }
  void close() {
    if (driver || worker) ++closed;
    driver.reset();
    worker.reset();
    sessions.reset();
  }
};

}  // namespace

class TestPipelineTrainer : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void steps_train_this_nodes_text() {
    Bench bench;
    bench.attach();
    const train::InnerStep first = bench.step();
    QCOMPARE(first.target_tokens, std::uint64_t{sequences * length * micro_batches});
    QCOMPARE(first.tokens, first.target_tokens);
    QVERIFY2(first.loss > 1.0 && first.loss < 3.0, QByteArray::number(first.loss).constData());
    train::InnerStep last;
    for (int i = 0; i < 40; ++i) last = bench.step();
    QVERIFY2(last.loss < 0.5 * first.loss, QByteArray::number(last.loss).constData());
    QCOMPARE(bench.steps_begun, 41);
    QVERIFY(bench.batches_read >= 41);
  }

  void a_part_knows_its_speed_after_some_steps() {
    Bench bench;
    bench.attach();
    std::vector<double> of_steps;
    for (std::size_t i = 0; i < StageSpeed::least_steps; ++i) {
      QVERIFY(!bench.trainer.tokens_per_second());
      const train::InnerStep step = bench.step();
      of_steps.push_back(static_cast<double>(step.tokens) / step.seconds_forward_backward);
    }
    const double speed = bench.trainer.tokens_per_second().value_or(0);
    const auto [slowest, fastest] = std::minmax_element(of_steps.begin(), of_steps.end());
    QVERIFY(speed > 0 && *slowest * 0.999 <= speed && speed <= *fastest * 1.001);
    bench.trainer.detach();
    bench.attach();
    QVERIFY(!bench.trainer.tokens_per_second());  // of another part
    bench.step();
    bench.on_executor([] {});
  }

  void jobs_wait_outside_of_a_step() {
    Bench bench;
    bench.attach();
    bench.step();
    const std::uint64_t before = bench.module.controls.forwards;
    // The driver has text for the next step, and its stage asks for work; nobody gives it the thread.
    for (int i = 0; i < 5; ++i) bench.on_executor([&] { bench.driver->wake(); });
    QCOMPARE(bench.module.controls.forwards, before);
    bench.step();
    QCOMPARE(bench.module.controls.forwards, before + micro_batches);
  }

  void a_cancelled_step_goes_on_later() {
    Bench bench;
    bench.attach();
    bench.step();
    CancelSource cancel;
    bench.module.controls.on_forward = [&] { cancel.cancel(); };
    const std::uint64_t before = bench.module.controls.forwards;
    QCOMPARE(bench.trainer.step(cancel.token()).error().code, ErrorCode::Cancelled);
    QCOMPARE(bench.module.controls.forwards, before + 1);
    bench.module.controls.on_forward = nullptr;
    bench.step();
    QCOMPARE(bench.module.controls.forwards, before + micro_batches);  // none of them twice
  }

  void the_times_of_a_step_are_those_of_all_its_calls() {
    Bench bench;
    bench.attach();
    bench.step();
    CancelSource cancel;
    bench.module.controls.on_forward = [&] {
      bench.clock.jump(std::chrono::seconds(1));
      cancel.cancel();
    };
    QCOMPARE(bench.trainer.step(cancel.token()).error().code, ErrorCode::Cancelled);
    bench.module.controls.on_forward = nullptr;
    const train::InnerStep step = bench.step();
    const double seconds = step.seconds_forward_backward;
    QVERIFY2(seconds >= 1.0, QByteArray::number(seconds).constData());
    QVERIFY(bench.step().seconds_forward_backward < seconds);
  }

  void pieces_of_texts_are_no_time_of_training() {
    Bench bench;
    bench.attach();
    bench.step();
    for (int i = 0; i < 3; ++i)
      QVERIFY(bench.jobs->texts().post([&] { bench.clock.jump(std::chrono::milliseconds(500)); }));
    // More than a second without a micro-batch.
    QCOMPARE(bench.trainer.step({}).error().code, ErrorCode::Timeout);
    const train::InnerStep step = bench.step();
    QVERIFY2(step.seconds_forward_backward < 1.0,
             QByteArray::number(step.seconds_forward_backward).constData());
  }

  void an_error_of_the_text_ends_the_step() {
    Bench bench;
    bench.attach();
    bench.no_text = true;
    QCOMPARE(bench.trainer.step({}).error().code, ErrorCode::Io);
    bench.no_text = false;
    QVERIFY(bench.trainer.step({}).ok());
  }

  void work_goes_on_while_the_text_is_away_data() {
    QTest::addColumn<bool>("is_fetched");
    QTest::newRow("away") << false;
    QTest::newRow("still being fetched") << true;
  }

  // It computes for others, and uses up what it has.
  void work_goes_on_while_the_text_is_away() {
    QFETCH(const bool, is_fetched);
    const ErrorCode told = is_fetched ? ErrorCode::Busy : ErrorCode::Unavailable;
    Bench bench;
    bench.text_error = is_fetched ? ErrorCode::Busy : ErrorCode::Timeout;
    bench.attach();
    bench.step();
    bench.text_away = true;
    // Once may be while the last micro-batches are still on their way.
    int steps = 0, in_a_row = 0;
    Expected<train::InnerStep> last = train::InnerStep();
    for (int i = 0; i < 50 && in_a_row < 2; ++i) {
      last = bench.trainer.step({});
      if (last.ok()) {
        ++steps;
        in_a_row = 0;
      } else if (last.error().code != ErrorCode::Timeout) {
        ++in_a_row;
      }
    }
    QVERIFY2(steps >= 2, QByteArray::number(steps).constData());
    QVERIFY(!last.ok());
    QCOMPARE(last.error().code, told);
    QVERIFY(last.error().message.find("the publisher does not answer") != std::string::npos);
    // It is asked again after a while.
    const int asked = bench.text_asked;
    QCOMPARE(bench.trainer.step({}).error().code, told);
    QVERIFY(bench.text_asked <= asked + 2);
    bench.text_away = false;
    bench.clock.jump(is_fetched ? PipelineTrainer::text_look : PipelineTrainer::text_retry);
    for (int i = 0; i < 10 && !last.ok(); ++i) last = bench.trainer.step({});
    QVERIFY(last.ok());
  }

  void a_listener_whose_queue_was_full_hears_of_the_part_later() {
    Bench bench;
    BusyExecutor busy;
    busy.refused = 1;
    int ready = 0;
    bench.trainer.listen({&busy, [&](const PipelinePart&) { ++ready; }, [] {}, [] {}});
    bench.attach();
    busy.manual.run();
    QCOMPARE(ready, 0);
    bench.trainer.rest();
    bench.trainer.rest();
    busy.manual.run();
    QCOMPARE(ready, 1);  // once
    bench.trainer.listen({});
  }

  void a_model_that_is_gone_is_used_by_nobody() {
    Bench bench;
    bench.attach();
    bench.step();
    bench.trainer.detach();
    const std::uint64_t before = bench.module.controls.forwards;
    bench.on_executor([] {});  // what was posted before it
    bench.on_executor([&] {
      QCOMPARE(bench.closed, 1);
      QVERIFY(!bench.trainer.next_text());
    });
    QVERIFY(!bench.trainer.idle());
    QCOMPARE(bench.module.controls.forwards, before);
    bench.attach();
    bench.step();
    bench.on_executor([&] { QCOMPARE(bench.opened, 2); });
  }

  // It computes for others, of whom there is none here.
  void a_node_that_assists_trains_on_no_text_of_its_own() {
    Bench bench;
    bench.attach();
    bench.step();
    bench.trainer.set_assisting(true);
    // Micro-batches that its driver has sent already may fill a step.
    Expected<train::InnerStep> last = train::InnerStep();
    for (int i = 0; i < 5 && last.ok(); ++i) {
      const auto later = bench.executor->post_after(std::chrono::milliseconds(30),
                                                    [&] { bench.clock.jump(std::chrono::seconds(1)); });
      last = bench.trainer.step({});
    }
    QVERIFY(!last.ok());
    QCOMPARE(last.error().code, ErrorCode::Timeout);
    QVERIFY(!bench.trainer.next_text());
    QVERIFY(bench.trainer.idle()->training < std::chrono::minutes(1));
    bench.trainer.set_assisting(false);
    bench.step();
  }

  // So that a node whose part nobody uses any more looks what else is to be done.
  void a_step_without_micro_batches_is_given_up_after_a_second() {
    Bench bench;
    bench.attach();
    bench.step();
    bench.cut_off();
    const auto later = bench.executor->post_after(std::chrono::milliseconds(30),
                                                  [&] { bench.clock.jump(std::chrono::seconds(2)); });
    const auto none = bench.trainer.step({});
    QVERIFY(!none.ok());
    QCOMPARE(none.error().code, ErrorCode::Timeout);
  }

  void idleness_is_the_time_outside_of_steps() {
    Bench bench;
    bench.attach();
    bench.step();
    bench.clock.jump(std::chrono::hours(1));
    QVERIFY(bench.trainer.idle()->training >= std::chrono::hours(1));
    QVERIFY(bench.trainer.idle()->texts >= std::chrono::hours(1));
    // A rest for the rounds: texts are computed, and training is not.
    bench.trainer.rest();
    QVERIFY(bench.trainer.idle()->training >= std::chrono::hours(1));
    QVERIFY(bench.trainer.idle()->texts < std::chrono::hours(1));
    bench.step();
    QVERIFY(bench.trainer.idle()->training < std::chrono::hours(1));
  }

  // Else a slow machine would pause its own stage.
  void a_long_job_is_no_idleness() {
    Bench bench;
    bench.attach();
    bench.step();
    std::optional<PipelineTrainer::Idle> within;
    bench.module.controls.on_forward = [&] {
      if (within) return;
      bench.clock.jump(std::chrono::seconds(10));
      within = bench.trainer.idle();
    };
    for (int i = 0; i < 20 && !within; ++i) static_cast<void>(bench.trainer.step({}));
    QVERIFY(within);
    QVERIFY(within->training == Duration{} && within->texts == Duration{});
    QVERIFY(bench.trainer.idle()->training < std::chrono::seconds(10));
    QVERIFY(bench.jobs->texts().post([&] {
      bench.clock.jump(std::chrono::seconds(10));
      within = bench.trainer.idle();
    }));
    bench.trainer.rest();
    QVERIFY(within->training >= std::chrono::seconds(10));
    QVERIFY(within->texts == Duration{});
    QVERIFY(bench.trainer.idle()->texts < std::chrono::seconds(10));
  }

  void a_queue_runs_texts_first_and_all_in_order_until_it_is_closed() {
    JobQueue queue;
    Executor &training = queue.training(), &texts = queue.texts();
    std::string ran;
    const auto append = [&](char letter) { return [&ran, letter] { ran += letter; }; };
    QVERIFY(!queue.run_one(std::chrono::milliseconds(1)));
    QVERIFY(training.post([&] { ran += training.on_thread() ? "a" : "-"; }) && training.post(append('b')));
    QVERIFY(!training.on_thread());
    QVERIFY(queue.run_one({}) && queue.run_one({}) && !queue.run_one({}));
    QCOMPARE(ran, std::string("ab"));
    QVERIFY(training.post(append('c')) && texts.post(append('d')) && texts.post(append('e')));
    QVERIFY(queue.run_text({}));
    QVERIFY(queue.run_one({}) && queue.run_one({}) && !queue.run_text({}));
    QCOMPARE(ran, std::string("abdec"));
    QVERIFY(training.post(append('f')) && texts.post(append('g')));
    queue.close();
    QVERIFY(!queue.run_one({}) && !training.post(append('h')) && !texts.post(append('i')));
    QCOMPARE(ran, std::string("abdec"));
  }
};

NS_TEST(TestPipelineTrainer)
#include "test_pipeline_trainer.moc"
