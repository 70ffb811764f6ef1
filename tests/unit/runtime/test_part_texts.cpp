// Texts of a node and its part of them, on a virtual clock: the weights are those of the newest round, and every wait ends.
#include <QtTest>

#include "core/net/local_stream.h"
#include "core/runtime/part_texts.h"
#include "core/sim/transport.h"
#include "core/sim/world.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"
#include "tests/unit/engine/toy_module.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT

namespace {

constexpr std::uint32_t vocabulary = 5, window = 8;
const std::vector<std::int32_t> test_tokens{1, 2, 3, 4, 0, 1};  // two sequences of three

compute::ModelShape small_shape() {
  compute::ModelShape shape;
  shape.layers = 1;
  shape.hidden = 8;
  shape.head_dim = 4;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.ffn = 8;
  shape.experts = shape.experts_per_token = 1;
  shape.vocab = vocabulary;
  shape.sequence = window;
  return shape;
}

// The weights of a round.
rounds::Anchor anchor_of(std::uint64_t round) {
  const std::vector<float> weights(compute::model_parameter_count(small_shape()), static_cast<float>(round));
  return rounds::state_in_memory(weights, weights);
}

// Of which each token has other logits.
rounds::Anchor other_anchor() {
  std::vector<float> weights(compute::model_parameter_count(small_shape()));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 11) / 11;
  return rounds::state_in_memory(weights, weights);
}

// Lines of a node that holds the whole model; silent: they connect to nobody.
class OwnLines final : public pipeline::Lines {
 public:
  explicit OwnLines(Executor& executor) : executor_(executor) {}
  pipeline::SessionTable* sessions = nullptr;
  net::NodeId own{};
  bool silent = false;
  std::unique_ptr<TimerHandle> open(const net::NodeId&, Opened done) override {
    (void)executor_.post([this, done = std::move(done)] {
      if (silent) return done(make_error(ErrorCode::Unavailable, "connection refused"));
      auto [here, there] = net::make_local_stream(executor_);
      sessions->take(own, std::move(there));
      done(std::move(here));
    });
    return nullptr;
  }

 private:
  Executor& executor_;
};

// A network of one member, which holds the only part.
struct Bench {
  sim::World world;
  sim::HostExecutor executor{world};
  chain::testing::ChainFixture chain{chain::testing::small_rules(chain::VotersMode::Invited, 1)};
  const std::size_t member = chain.add_node();
  chain::RegistryPtr registry;
  testing::ToyModule module;
  crypto::SystemEntropy entropy;
  pipeline::ExchangeLog exchanges;
  OwnLines lines{executor};
  std::shared_ptr<engine::JobQueue> jobs = std::make_shared<engine::JobQueue>();
  engine::PipelineTexts texts;
  std::optional<engine::RoundTrainer::Newest> newest = engine::RoundTrainer::Newest{3, anchor_of(3)};
  int stages_made = 0;
  std::size_t jobs_left = SIZE_MAX;  // that the compute thread still runs
  std::optional<PartHolders> holders;
  std::optional<PartTexts> service;
  std::unique_ptr<pipeline::SessionTable> sessions;

  explicit Bench(std::uint64_t text_bytes = 1u << 20) {
    if (!chain.begin({member}).ok()) qFatal("no chain");
    registry = chain.registry_ptr();
    lines.own = crypto::node_id(key().public_key());
    holders.emplace(std::vector<compute::StageRange>{range()}, 0, lines.own, [this] { return registry; });
    texts.set_jobs(jobs);
    // The world goes on while the compute thread waits.
    texts.set_waiting([this] { run_for(std::chrono::seconds(1)); });
    service.emplace(PartTexts::Services{executor, world.clock(), entropy, key(), *holders, texts}, Bytes{1},
                    [this] { return newest; });
    start(text_bytes);
  }
  ~Bench() {
    service.reset();
    sessions.reset();
  }
  const crypto::KeyPair& key() const { return chain.key(member); }
  static compute::StageRange range() { return compute::whole_range(small_shape()); }
  pipeline::Surroundings around() {
    return {lines, executor, world.clock(), exchanges, lines.own, small_shape(), {}};
  }
  void start(std::uint64_t text_bytes) {
    engine::PipelinePart part;
    part.anchor = std::make_shared<engine::AnchorStage>([this]() -> Expected<compute::StagePtr> {
      ++stages_made;
      return stage();
    });
    part.text_lane = std::make_shared<pipeline::TextLane>([anchor = part.anchor] { return anchor->stage(); },
                                                          range(), small_shape());
    part.jobs = jobs;
    part.range = range();
    part.shape = small_shape();
    part.text_bytes = text_bytes;
    sessions = std::make_unique<pipeline::SessionTable>(around(), pipeline::TableOptions{range(), {1}});
    lines.sessions = sessions.get();
    service->on_ready(part, around(), *sessions);
  }
  Expected<compute::StagePtr> stage() {
    compute::StageSpec spec;
    spec.shape = small_shape();
    spec.layer_count = 1;
    spec.embed = spec.head = true;
    spec.trainable = false;
    return compute::make_stage(module, spec);
  }
  bool ask_losses(std::size_t pieces, std::optional<Expected<pipeline::Sums>>* result) {
    const pipeline::MicroBatchText piece{2, test_tokens, test_tokens};
    return texts.evaluate({3, std::vector<pipeline::MicroBatchText>(pieces, piece),
                           [result](Expected<pipeline::Sums> sums) { *result = std::move(sums); }});
  }
  std::optional<Expected<pipeline::Sums>> losses(std::size_t pieces) {
    std::optional<Expected<pipeline::Sums>> result;
    if (!ask_losses(pieces, &result)) return result;
    for (int second = 0; second < 60 && !result; ++second) run_for(std::chrono::seconds(1));
    return result;
  }
  void fill_queue() {
    while (jobs->texts().post([] {})) {
    }
  }
  // A text whose cache can't be closed yet: the queue is full when it ends, and stays so.
  bool end_text_with_full_queue() {
    if (!texts.open_session(1, window, {}).ok() || !first_logit(1, {1}).ok()) return false;
    jobs_left = 0;
    fill_queue();
    texts.close_session(1);
    run_for(std::chrono::seconds(20));
    return sessions->size(pipeline::SessionKind::Text) == 0;
  }
  // In small steps, as the compute thread gets its jobs from the executor.
  void run_for(Duration duration) {
    const MonotonicTime end = world.now() + duration;
    while (world.now() < end) {
      world.run_for(std::chrono::milliseconds(100));
      while (jobs_left > 0 && jobs->run_text({})) --jobs_left;
      service->tick();
    }
  }
  Expected<float> first_logit(std::uint64_t session, std::vector<std::int32_t> tokens) {
    std::vector<float> logits(vocabulary);
    compute::SessionPart part;
    part.session = session;
    part.n = static_cast<std::uint32_t>(tokens.size());
    part.tokens = tokens.data();
    part.logits = logits.data();
    NS_RETURN_IF_ERROR(texts.extend_sessions(1, &part));
    return logits[0];
  }
};

// Of weights that are all equal: hidden · w².
float logit_of(std::uint64_t round) {
  return 8.0f * static_cast<float>(round * round);
}

}  // namespace

class TestPartTexts : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_text_has_the_weights_of_the_newest_round() {
    Bench bench;
    QCOMPARE(bench.stages_made, 0);
    QVERIFY(bench.texts.open_session(1, window, {}).ok());
    QCOMPARE(bench.first_logit(1, {1, 2, 3}).value(), logit_of(3));
    QCOMPARE(bench.texts.round(), std::uint64_t{3});
    QCOMPARE(bench.first_logit(1, {4}).value(), logit_of(3));
    // The round ends between two tokens.
    bench.newest = engine::RoundTrainer::Newest{4, anchor_of(4)};
    bench.run_for(std::chrono::seconds(1));
    QCOMPARE(bench.texts.round(), std::uint64_t{4});
    QCOMPARE(bench.first_logit(1, {4}).error().code, ErrorCode::Cancelled);
    QVERIFY(bench.texts.open_session(2, window, {}).ok());
    QCOMPARE(bench.first_logit(2, {1, 2, 3, 4}).value(), logit_of(4));
    QCOMPARE(bench.stages_made, 1);
  }

  void losses_have_the_weights_of_the_newest_round() {
    Bench bench;
    const auto loss_of = [&](const rounds::Anchor& weights) {
      engine::AnchorStage anchor([&]() -> Expected<compute::StagePtr> { return bench.stage(); });
      anchor.use(weights);
      compute::MicroBatch batch{2, 3, test_tokens.data(), test_tokens.data()};
      compute::ForwardMetrics metrics;
      (void)anchor.stage().value()->evaluate(batch, nullptr, &metrics);
      return metrics.loss_sum;
    };
    const auto measured = bench.losses(5);
    QVERIFY(measured && measured->ok());
    QCOMPARE((*measured)->loss, 5 * loss_of(anchor_of(3)));
    QCOMPARE((*measured)->target_tokens, std::uint64_t{5 * 6});
    QCOMPARE(bench.sessions->size(pipeline::SessionKind::Text), std::size_t{0});
    bench.newest = engine::RoundTrainer::Newest{4, other_anchor()};
    const auto later = bench.losses(1);
    QVERIFY(later && later->ok());
    QCOMPARE((*later)->loss, loss_of(other_anchor()));
    QVERIFY(loss_of(anchor_of(3)) != loss_of(other_anchor()));
  }

  // After round 7, in which this part's row was carried; its anchor is of round 5.
  void carried_rows_have_the_round_of_the_others() {
    QCOMPARE(round_of_weights(6, 5, 7), std::optional<std::uint64_t>(8));
    QCOMPARE(round_of_weights(8, 5, 7), std::optional<std::uint64_t>(8));  // it restarted meanwhile
    QCOMPARE(round_of_weights(8, 7, 7), std::optional<std::uint64_t>(8));  // a part whose row is new
    QCOMPARE(round_of_weights(7, 7, 7), std::nullopt);                     // that anchor is not here yet
    QCOMPARE(round_of_weights(1, 0, 0), std::optional<std::uint64_t>(1));
  }

  void losses_end_with_their_round() {
    Bench bench;
    bench.lines.silent = true;
    std::optional<Expected<pipeline::Sums>> result;
    QVERIFY(bench.ask_losses(1, &result));
    bench.run_for(std::chrono::seconds(2));
    QVERIFY(!result);
    bench.newest = engine::RoundTrainer::Newest{4, anchor_of(4)};
    bench.run_for(std::chrono::seconds(1));
    QVERIFY(result && !result->ok());
    QCOMPARE(result->error().code, ErrorCode::Cancelled);
  }

  void losses_say_which_part_does_not_answer() {
    Bench bench;
    bench.lines.silent = true;
    const auto result = bench.losses(2);
    QVERIFY(result && !result->ok());
    QVERIFY2(result->error().message.find("part 1 of the model does not answer") != std::string::npos,
             result->error().message.c_str());
    bench.service->on_gone();
    const auto gone = bench.losses(1);
    QVERIFY(gone && !gone->ok());
    QCOMPARE(gone->error().code, ErrorCode::Unavailable);
  }

  void its_weights_stay_in_memory_for_a_minute() {
    Bench bench;
    QVERIFY(bench.texts.open_session(1, window, {}).ok());
    QVERIFY(bench.first_logit(1, {1}).ok());
    bench.run_for(std::chrono::minutes(3));  // while a text is open
    QVERIFY(bench.first_logit(1, {1}).ok());
    QCOMPARE(bench.stages_made, 1);
    bench.texts.close_session(1);
    bench.run_for(std::chrono::seconds(30));
    QVERIFY(bench.texts.open_session(2, window, {}).ok());
    QVERIFY(bench.first_logit(2, {1}).ok());
    QCOMPARE(bench.stages_made, 1);
    bench.texts.close_session(2);
    bench.run_for(std::chrono::minutes(2));
    QVERIFY(bench.texts.open_session(3, window, {}).ok());
    QVERIFY(bench.first_logit(3, {1}).ok());
    QCOMPARE(bench.stages_made, 2);
  }

  void a_part_that_does_not_answer_is_named() {
    Bench bench;
    bench.lines.silent = true;
    QVERIFY(bench.texts.open_session(1, window, {}).ok());
    const MonotonicTime begun = bench.world.now();
    const auto logit = bench.first_logit(1, {1});
    QCOMPARE(logit.error().code, ErrorCode::Unavailable);
    QVERIFY2(
        QString::fromStdString(logit.error().message).contains("with part 1 of the model does not answer"),
        logit.error().message.c_str());
    QVERIFY(bench.world.now() - begun < PartTexts::patience + std::chrono::seconds(5));
  }

  // The part was not there at first, and has answered since.
  void a_part_that_was_lost_earlier_is_not_named() {
    Bench bench;
    bench.lines.silent = true;
    QVERIFY(bench.texts.open_session(1, window, {}).ok());
    bench.run_for(std::chrono::seconds(2));
    bench.lines.silent = false;
    QVERIFY(bench.first_logit(1, {1}).ok());
    bench.jobs_left = 0;
    bench.texts.set_jobs(std::make_shared<engine::JobQueue>());  // what it runs while it waits
    const auto logit = bench.first_logit(1, {2});
    QVERIFY(!logit.ok());
    QCOMPARE(logit.error().message, std::string("the holders of the model's parts do not answer"));
  }

  void losses_do_not_name_a_part_that_was_lost_earlier() {
    Bench bench;
    bench.lines.silent = true;
    std::optional<Expected<pipeline::Sums>> result;
    QVERIFY(bench.ask_losses(3, &result));
    bench.run_for(std::chrono::seconds(2));
    bench.lines.silent = false;
    bench.jobs_left = 1;  // the first piece
    bench.run_for(std::chrono::seconds(40));
    QCOMPARE(bench.jobs_left, std::size_t{0});
    QVERIFY(result && !result->ok());
    QCOMPARE(result->error().message, std::string("the holders of the model's parts do not answer"));
  }

  void a_full_queue_takes_the_weights_of_a_round_later() {
    Bench bench;
    bench.run_for(std::chrono::seconds(1));
    bench.fill_queue();
    bench.newest = engine::RoundTrainer::Newest{4, anchor_of(4)};
    bench.service->tick();
    QCOMPARE(bench.texts.round(), std::uint64_t{3});
    bench.run_for(std::chrono::seconds(1));
    QCOMPARE(bench.texts.round(), std::uint64_t{4});
    QVERIFY(bench.texts.open_session(1, window, {}).ok());
    QCOMPARE(bench.first_logit(1, {1}).value(), logit_of(4));
  }

  void a_full_queue_closes_a_text_before_its_weights_go() {
    Bench bench;
    QVERIFY(bench.end_text_with_full_queue());
    bench.jobs_left = SIZE_MAX;
    bench.run_for(std::chrono::minutes(2));
    QVERIFY(bench.texts.open_session(2, window, {}).ok());
    QVERIFY(bench.first_logit(2, {1}).ok());
    QCOMPARE(bench.stages_made, 2);
    QCOMPARE(bench.module.controls.sessions_dropped, std::size_t{0});
  }

  void a_full_queue_closes_a_text_before_its_weights_change() {
    Bench bench;
    QVERIFY(bench.end_text_with_full_queue());
    bench.newest = engine::RoundTrainer::Newest{4, anchor_of(4)};
    QVERIFY(bench.jobs->run_text({}));
    bench.service->tick();  // the only place is the closed text's
    QCOMPARE(bench.texts.round(), std::uint64_t{3});
    bench.jobs_left = SIZE_MAX;
    bench.run_for(std::chrono::seconds(1));
    QCOMPARE(bench.texts.round(), std::uint64_t{4});
    QVERIFY(bench.texts.open_session(2, window, {}).ok());
    QCOMPARE(bench.first_logit(2, {1}).value(), logit_of(4));
  }

  void a_full_queue_releases_the_weights_later() {
    Bench bench;
    QVERIFY(bench.texts.open_session(1, window, {}).ok());
    QVERIFY(bench.first_logit(1, {1}).ok());
    bench.texts.close_session(1);
    bench.run_for(std::chrono::seconds(30));
    bench.jobs_left = 0;
    bench.fill_queue();
    bench.run_for(std::chrono::minutes(1));
    bench.jobs_left = SIZE_MAX;
    bench.run_for(std::chrono::seconds(1));
    QVERIFY(bench.texts.open_session(2, window, {}).ok());
    QVERIFY(bench.first_logit(2, {1}).ok());
    QCOMPARE(bench.stages_made, 2);
  }

  void an_answer_that_comes_too_late_is_dropped() {
    Bench bench;
    bench.lines.silent = true;
    QVERIFY(bench.texts.open_session(1, window, {}).ok());
    const std::string late = bench.first_logit(1, {1}).error().message;
    bench.lines.silent = false;
    bench.run_for(std::chrono::seconds(5));
    QCOMPARE(bench.first_logit(1, {2}).error().message, late);
    bench.texts.close_session(1);
    QVERIFY(bench.texts.open_session(2, window, {}).ok());
    QCOMPARE(bench.first_logit(2, {1, 2}).value(), logit_of(3));
  }

  void without_what_it_needs_it_says_so_data() {
    QTest::addColumn<QString>("text");
    QTest::newRow("no chain") << "no certified weights yet";
    QTest::newRow("no anchor") << "no certified weights yet";
    QTest::newRow("no holder") << "no member holds part 1";
    QTest::newRow("no training") << "training has ended";
    QTest::newRow("no memory") << "no place for another session";
  }
  void without_what_it_needs_it_says_so() {
    QFETCH(QString, text);
    const QByteArray row = QTest::currentDataTag();
    Bench bench(row == "no memory" ? 0 : 1u << 20);
    if (row == "no chain") bench.registry = nullptr;
    if (row == "no anchor") {
      bench.newest.reset();
      bench.service->on_gone();
      bench.start(1u << 20);
    }
    if (row == "no holder")
      bench.holders.emplace(std::vector<compute::StageRange>{Bench::range()}, 0, bench.lines.own,
                            [] { return std::make_shared<const chain::Registry>(); });
    if (row == "no training") bench.service->on_gone();
    QVERIFY(bench.texts.open_session(1, window, {}).ok());
    const auto logit = bench.first_logit(1, {1});
    QVERIFY(!logit.ok());
    QVERIFY2(QString::fromStdString(logit.error().message).contains(text), logit.error().message.c_str());
  }

  // Before its signature is checked.
  void a_stage_refuses_other_rounds_sizes_and_strangers_data() {
    QTest::addColumn<QString>("text");
    QTest::newRow("another round") << "those of round 3";
    QTest::newRow("longer") << "has 8 positions";
    QTest::newRow("stranger") << "no voter has vouched";
    QTest::newRow("window") << "at most 4 pieces under way, in fp32";
    QTest::newRow("format") << "at most 4 pieces under way, in fp32";
    QTest::newRow("window of losses") << "at most 2 pieces under way, in fp32";
  }
  void a_stage_refuses_other_rounds_sizes_and_strangers() {
    QFETCH(QString, text);
    const QByteArray row = QTest::currentDataTag();
    Bench bench;
    const crypto::KeyPair other = test::key_numbered(99);
    const crypto::KeyPair& driver = row == "stranger" ? other : bench.key();
    bench.lines.own = crypto::node_id(driver.public_key());
    pipeline::Route route;
    route.kind = pipeline::SessionKind::Text;
    route.session[0] = 1;
    route.sequences = 4;
    route.length = 1;
    route.window = 1;
    route.positions = row == "longer" ? window + 1 : window;
    route.wire = row == "format" ? pipeline::WireFormat::Bf16 : pipeline::WireFormat::Fp32;
    if (row == "window") route.window = 5;
    if (row == "window of losses") route.window = 3, route.positions = 0;
    route.base[0] = row == "another round" ? 4 : 3;
    route.hops = {{crypto::node_id(bench.key().public_key()), Bench::range()}};
    std::vector<std::string> lost;
    pipeline::LeadEvents events;
    events.holders = [](const auto&) { return std::vector<net::NodeId>(); };
    events.lost = [&](const pipeline::Lost& one) { lost.push_back(one.what); };
    pipeline::TextDriver text_driver(bench.around(), driver, Bytes{1}, route, std::move(events));
    text_driver.start();
    bench.run_for(std::chrono::seconds(2));
    QVERIFY(!lost.empty());
    QVERIFY2(QString::fromStdString(lost[0]).contains(text), lost[0].c_str());
  }
};

NS_TEST(TestPartTexts)
#include "test_part_texts.moc"
