// Texts through a pipeline: the tokens of one process, also when stages die in the middle of a sentence.
#include <QtTest>

#include "tests/support/pipeline_lab.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"
#include "tests/unit/train/fake_stage.h"

using namespace neuroshard;
using namespace neuroshard::model_test;
using namespace neuroshard::test;

namespace {

using Node = PipelineLab::Node;
using Answer = Expected<pipeline::TextDriver::Answer>;

ModelShape four_layers() {
  ModelShape shape = small_shape(4);
  shape.layers = 4;
  return shape;
}

std::vector<std::int32_t> prompt_of(std::size_t count) {
  Rng rng(count);
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>(rng.below(four_layers().vocab)));
  return tokens;
}

// Samples a text from logits, in the same way for both.
struct Writer {
  Rng rng{11};
  std::vector<std::int32_t> tokens;

  std::int32_t next(Span<const float> logits) {
    std::vector<double> weights;
    const float most = *std::max_element(logits.begin(), logits.end());
    for (const float value : logits) weights.push_back(std::exp(static_cast<double>(value - most)));
    double rest = static_cast<double>(rng.below(1u << 30)) / (1u << 30);
    rest *= std::accumulate(weights.begin(), weights.end(), 0.0);
    std::size_t token = 0;
    while (token + 1 < weights.size() && rest >= weights[token]) rest -= weights[token++];
    tokens.push_back(static_cast<std::int32_t>(token));
    return tokens.back();
  }
};

std::vector<std::int32_t> alone(Module& module, const std::vector<std::int32_t>& prompt, std::size_t count,
                                std::uint32_t piece) {
  const ModelShape shape = four_layers();
  const StagePtr stage = stage_of(module, whole_model(shape));
  Writer writer;
  std::vector<float> logits(shape.vocab);
  if (!stage->open_session(1, 256).ok()) return {};
  for (std::size_t at = 0; at < prompt.size(); at += piece) {
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(piece, prompt.size() - at));
    if (!stage->extend_session(1, n, prompt.data() + at, nullptr, nullptr, logits.data()).ok()) return {};
  }
  while (writer.tokens.size() < count) {
    const std::int32_t token = writer.next({logits.data(), logits.size()});
    if (!stage->extend_session(1, 1, &token, nullptr, nullptr, logits.data()).ok()) return {};
  }
  return writer.tokens;
}

// Of all tokens but the first, given those before; nothing is scored after the last one.
std::vector<std::int32_t> targets_of(const std::vector<std::int32_t>& text) {
  std::vector<std::int32_t> targets(text.begin() + 1, text.end());
  targets.push_back(-1);
  return targets;
}

pipeline::PositionScores scores_alone(Module& module, const std::vector<std::int32_t>& text,
                                      const pipeline::TextScores& asked, std::uint32_t piece) {
  const StagePtr stage = stage_of(module, whole_model(four_layers()));
  const std::vector<std::int32_t> targets = targets_of(text);
  pipeline::PositionScores all(text.size(), asked);
  if (!stage->open_session(1, 256).ok()) return {};
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::size_t n = std::min<std::size_t>(piece, text.size() - at);
    pipeline::PositionScores scores(n, asked);
    compute::SessionPart part;
    part.session = 1;
    part.n = static_cast<std::uint32_t>(n);
    part.tokens = text.data() + at;
    part.scores = scores.view(targets.data() + at, asked);
    if (!stage->extend_sessions(1, &part).ok()) return {};
    scores.copy_to(at, all);
  }
  return all;
}

struct Fixture {
  const ModelShape shape = four_layers();
  PipelineLab lab;
  std::vector<Node*> first, second;
  std::unique_ptr<pipeline::TextDriver> driver;
  Writer writer;
  std::size_t count = 0;
  std::string lost;  // last

  explicit Fixture(Module& module) : lab(module, shape, 5 * millisecond) {
    const pipeline::StageRange ranges[] = {{0, 1, true, false}, {1, 2, false, false}, {3, 1, false, true}};
    for (const auto& range : ranges) first.push_back(&lab.add_text_stage(range));
    for (const auto& range : ranges) second.push_back(&lab.add_text_stage(range));
  }
  pipeline::Route route(std::uint32_t piece) {
    pipeline::Route route = lab.route(first, piece, 2);
    route.kind = pipeline::SessionKind::Text;
    route.length = 1;
    route.positions = 256;
    return route;
  }
  // Of a text whose losses `driver` asks for.
  pipeline::Route losses_of(const Node& driver, const std::vector<Node*>& hops) {
    pipeline::Route route = lab.route(hops, 2, 2);
    route.kind = pipeline::SessionKind::Text;
    route.length = 7;
    pipeline::sign_route(route, driver.key, {});
    return route;
  }
  void begin(std::uint32_t piece, std::optional<pipeline::TextScores> scores = std::nullopt) {
    pipeline::LeadEvents events;
    events.holders = [this](const pipeline::StageRange& range) { return lab.holders(range); };
    events.lost = [this](const pipeline::Lost& one) { lost = one.what; };
    Node& home = lab.add_node();
    pipeline::Route asked = route(piece);
    asked.scores = scores;
    driver = std::make_unique<pipeline::TextDriver>(lab.around(home), home.key, Bytes(), asked, events);
    driver->start();
  }
  Expected<void> write(const std::vector<std::int32_t>& tokens, std::size_t until) {
    return driver->extend(tokens, {}, [this, until](const Answer& answer) {
      const std::int32_t token = writer.next({answer->logits.data(), answer->logits.size()});
      if (writer.tokens.size() < until) (void)write({token}, until);
    });
  }
};

}  // namespace

class TestPipelineTexts : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

 private Q_SLOTS:
  void initTestCase() {
    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
  }

  void the_tokens_of_one_process() {
    const auto prompt = prompt_of(21);
    const auto expected = alone(*module_, prompt, 40, 8);
    QCOMPARE(expected.size(), std::size_t{40});
    Fixture all(*module_);
    all.begin(8);
    QVERIFY(all.write(prompt, 40).ok());
    QVERIFY(all.lab.run_until([&] { return all.writer.tokens.size() == 40; }, minute));
    QCOMPARE(all.writer.tokens, expected);
    all.driver->close();
    all.lab.run_for(3 * test::second);
    for (const Node* stage : all.first) QCOMPARE(stage->texts->sessions(), std::size_t{0});
  }

  void a_stage_dies_in_mid_sentence_data() {
    QTest::addColumn<QVector<int>>("victims");
    QTest::newRow("first") << QVector<int>{0};
    QTest::newRow("middle") << QVector<int>{1};
    QTest::newRow("last") << QVector<int>{2};
    QTest::newRow("two at once") << QVector<int>{1, 2};
    QTest::newRow("all") << QVector<int>{0, 1, 2};
  }
  void a_stage_dies_in_mid_sentence() {
    QFETCH(QVector<int>, victims);
    const auto prompt = prompt_of(30);
    const auto expected = alone(*module_, prompt, 36, 16);
    Fixture all(*module_);
    all.begin(16);
    QVERIFY(all.write(prompt, 36).ok());
    QVERIFY(all.lab.run_until([&] { return all.writer.tokens.size() == 15; }, minute));
    all.lab.run_for(7 * millisecond);  // a piece is on its way
    for (const int victim : victims) all.lab.kill(*all.first[static_cast<std::size_t>(victim)]);
    QVERIFY(all.lab.run_until([&] { return all.writer.tokens.size() == 36; }, minute));
    QCOMPARE(all.writer.tokens, expected);
    QVERIFY(all.driver->replaced() >= static_cast<std::uint64_t>(victims.size()));
  }

  void the_scores_of_one_process_data() {
    QTest::addColumn<QVector<int>>("victims");
    QTest::newRow("nobody dies") << QVector<int>();
    QTest::newRow("the middle one dies") << QVector<int>{1};
    QTest::newRow("the last one dies") << QVector<int>{2};
  }
  // In pieces that are answered one after another, and at the end logits for the next token.
  void the_scores_of_one_process() {
    QFETCH(QVector<int>, victims);
    const auto text = prompt_of(61);
    const pipeline::TextScores asked{3, four_layers().vocab};
    const auto expected = scores_alone(*module_, text, asked, 4);
    QCOMPARE(expected.logprobs.size(), text.size());
    QVERIFY(expected.logprobs[0] < 0 && expected.logprobs.back() == 0);
    Fixture all(*module_);
    all.begin(4, asked);
    std::optional<pipeline::TextDriver::Answer> answer;
    const auto take = [&](Answer got) { answer = std::move(got).value(); };
    QVERIFY(all.driver->extend(text, targets_of(text), take).ok());
    all.lab.run_for(150 * millisecond);
    QVERIFY(!answer);
    for (const int victim : victims) all.lab.kill(*all.first[static_cast<std::size_t>(victim)]);
    QVERIFY(all.lab.run_until([&] { return answer.has_value(); }, minute));
    QCOMPARE(all.driver->replaced(), static_cast<std::uint64_t>(victims.size()));
    QCOMPARE(answer->scores.logprobs, expected.logprobs);
    QCOMPARE(answer->scores.top_tokens, expected.top_tokens);
    QCOMPARE(answer->scores.top_logprobs, expected.top_logprobs);
    const std::int32_t next = Writer().next({answer->logits.data(), answer->logits.size()});
    QCOMPARE(std::vector<std::int32_t>{next}, alone(*module_, text, 1, 4));
    // A text goes on without more to score.
    QVERIFY(!all.driver->extend({next}, {}, [](const auto&) {}).ok());
    answer.reset();
    QVERIFY(all.driver->extend({next}, {-1}, take).ok());
    QVERIFY(all.lab.run_until([&] { return answer.has_value(); }, minute));
    QCOMPARE(answer->scores.logprobs, std::vector<double>{0});
  }

  // Its second piece is wrong; the others are not asked for any more.
  void a_head_whose_scores_are_wrong_is_named_at_once() {
    FakeStage liar;
    liar.on_extend = [pieces = 0](const compute::SessionPart& part) mutable {
      std::fill_n(part.scores.logprobs, part.n, ++pieces == 2 ? 0.5 : -1.0);
    };
    Fixture all(*module_);
    Node& head = all.lab.add_text_stage({3, 1, false, true}, StagePtr(&liar));
    all.first[2] = &head;
    all.begin(4, pipeline::TextScores{0, all.shape.vocab});
    std::vector<Answer> answers;
    const auto text = prompt_of(30);
    const auto take = [&](Answer got) { answers.push_back(std::move(got)); };
    QVERIFY(all.driver->extend(text, targets_of(text), take).ok());
    QVERIFY(all.lab.run_until([&] { return !answers.empty(); }, test::second));
    QCOMPARE(answers[0].error().code, ErrorCode::Corrupt);
    const QString message = QString::fromStdString(answers[0].error().message);
    QVERIFY2(message.contains(QString::fromStdString(to_hex(head.id).substr(0, 12))), qPrintable(message));
    QVERIFY2(message.contains("no log-probabilities"), qPrintable(message));
    all.lab.run_for(5 * test::second);
    QCOMPARE(answers.size(), std::size_t{1});
  }

  void a_head_whose_logits_are_no_numbers_is_named() {
    Fixture all(*module_);
    Node& head = all.lab.add_silent({3, 1, false, true});
    all.first[2] = &head;
    all.begin(4);
    std::vector<Answer> answers;
    const auto take = [&](Answer got) { answers.push_back(std::move(got)); };
    QVERIFY(all.driver->extend(prompt_of(4), {}, take).ok());
    QVERIFY(all.lab.run_until([&] { return head.silent->works() > 0; }, 5 * test::second));
    head.silent->say(pipeline::Result{0, {4, 0, 0, 0, 0}}, Bytes(all.shape.vocab * sizeof(float), 0xFF));
    QVERIFY(all.lab.run_until([&] { return !answers.empty(); }, 5 * test::second));
    QVERIFY(!answers[0].ok());
    QCOMPARE(answers[0].error().code, ErrorCode::Corrupt);
    const QString message = QString::fromStdString(answers[0].error().message);
    QVERIFY2(message.contains(QString::fromStdString(to_hex(head.id).substr(0, 12))), qPrintable(message));
    QVERIFY2(message.contains("not a finite number"), qPrintable(message));
  }

  void the_losses_of_one_process_data() {
    QTest::addColumn<QVector<int>>("victims");
    QTest::newRow("nobody dies") << QVector<int>();
    QTest::newRow("the first one dies") << QVector<int>{0};
    QTest::newRow("two die") << QVector<int>{1, 2};
  }
  // Sequences by themselves, of which nothing is kept: a stage that comes late needs the open ones only.
  void the_losses_of_one_process() {
    QFETCH(QVector<int>, victims);
    constexpr std::uint32_t pieces = 40, sequences = 2, length = 7;
    const StagePtr stage = stage_of(*module_, whole_model(four_layers()));
    Fixture all(*module_);
    std::vector<pipeline::MicroBatchText> texts;
    std::vector<pipeline::Sums> expected;
    for (std::uint32_t i = 0; i < pieces; ++i) {
      const auto tokens = prompt_of(sequences * length + i);
      texts.push_back({sequences, {tokens.begin(), tokens.begin() + sequences * length}, targets_of(tokens)});
      texts.back().targets.resize(sequences * length, 3);
      MicroBatch batch;
      batch.batch = sequences;
      batch.sequence = length;
      batch.tokens = texts.back().tokens.data();
      batch.targets = texts.back().targets.data();
      ForwardMetrics metrics;
      QVERIFY(stage->evaluate(batch, nullptr, &metrics).ok());
      expected.push_back({metrics.tokens, metrics.target_tokens, metrics.loss_sum, 0, 0});
    }
    pipeline::Route route = all.lab.route(all.first, sequences, 2);
    route.kind = pipeline::SessionKind::Text;
    route.length = length;
    std::map<std::uint64_t, pipeline::Sums> sums;
    std::size_t sent = 0;
    pipeline::DriverEvents events;
    events.next = [&]() -> std::optional<pipeline::MicroBatchText> {
      if (sent == texts.size()) return std::nullopt;
      return texts[sent++];
    };
    events.finished = [&](std::uint64_t index, const pipeline::Sums& one) { sums[index] = one; };
    events.lead.holders = [&](const auto& range) { return all.lab.holders(range); };
    Node& home = all.lab.add_node();
    pipeline::Driver driver(all.lab.around(home), home.key, Bytes(), route, events);
    driver.start();
    QVERIFY(all.lab.run_until([&] { return sums.size() == 10; }, minute));
    for (const int victim : victims) all.lab.kill(*all.first[static_cast<std::size_t>(victim)]);
    QVERIFY(all.lab.run_until([&] { return sums.size() == pieces; }, minute));
    QCOMPARE(driver.replaced(), static_cast<std::uint64_t>(victims.size()));
    for (std::uint32_t i = 0; i < pieces; ++i) QVERIFY(sums[i] == expected[i]);
    driver.close();
    all.lab.run_for(3 * test::second);
    for (const auto& stages : {all.first, all.second})
      for (const Node* node : stages) QVERIFY(!node->alive || node->texts->sessions() == 0);
  }

  void a_text_goes_on_after_the_queue_of_jobs_was_full() {
    const auto prompt = prompt_of(9);
    const auto expected = alone(*module_, prompt, 12, 4);
    Fixture all(*module_);
    all.begin(4);
    all.lab.compute().refused = 5;
    QVERIFY(all.write(prompt, 12).ok());
    for (std::size_t tokens = 1; tokens < 10; ++tokens) {
      QVERIFY(all.lab.run_until([&] { return all.writer.tokens.size() >= tokens; }, 10 * test::second));
      all.lab.compute().refused = 2;
      all.lab.swarm().refused = 1;
    }
    QVERIFY(all.lab.run_until([&] { return all.writer.tokens.size() == 12; }, 10 * test::second));
    QCOMPARE(all.writer.tokens, expected);
    QCOMPARE(all.driver->replaced(), std::uint64_t{0});
  }

  // A driver calls its pieces finished before they are computed.
  void pieces_of_losses_do_not_pile_up() {
    Fixture all(*module_);
    Node& liar = all.lab.add_node();
    pipeline::Route route = all.losses_of(liar, all.first);
    RawEnd driver(all.lab, liar, route, 0);
    all.lab.compute().busy = true;
    for (std::uint32_t i = 0; i < 1000; ++i) driver.work(i, i);
    QVERIFY(all.lab.run_until([&] { return !driver.ended.empty(); }, minute));
    QVERIFY2(driver.ended.find("more pieces of the text wait here") != std::string::npos,
             driver.ended.c_str());
  }

  // Nor what a hop behind does not answer.
  void finished_pieces_of_losses_are_not_kept() {
    Fixture all(*module_);
    Node& silent = all.lab.add_silent(all.first[2]->range);
    Node& other = all.lab.add_silent(all.first[2]->range);
    Node& liar = all.lab.add_node();
    pipeline::Route route = all.losses_of(liar, {all.first[0], all.first[1], &silent});
    RawEnd driver(all.lab, liar, route, 0);
    for (std::uint32_t i = 0; i < 1000; ++i) driver.work(i, i);
    all.lab.run_for(25 * test::second);
    QVERIFY2(driver.ended.empty(), driver.ended.c_str());
    QCOMPARE(silent.silent->works(), std::size_t{1000});
    ++route.revision;
    route.hops[2].node = other.id;
    pipeline::sign_route(route, liar.key, {});
    driver.send(pipeline::Follow{route});
    QVERIFY(all.lab.run_until([&] { return other.silent->works() > 0; }, 5 * test::second));
    all.lab.run_for(5 * test::second);
    QVERIFY2(other.silent->works() <= 2, QByteArray::number(other.silent->works()).constData());
  }

  // An admitted driver asks for pieces from before its newest one, for which nobody waits.
  void old_pieces_of_losses_are_not_remembered() {
    Fixture all(*module_);
    Node& liar = all.lab.add_node();
    pipeline::Route route = all.losses_of(liar, all.first);
    RawEnd driver(all.lab, liar, route, 0);
    driver.work(1000, 1000);
    for (std::uint32_t i = 0; i < 100; ++i) driver.work(i, i);
    all.lab.run_for(5 * test::second);
    QVERIFY2(driver.ended.empty(), driver.ended.c_str());
    QVERIFY(driver.count<pipeline::Result>() > 0);
    const auto* session = static_cast<const pipeline::TextSession*>(
        all.first[0]->sessions->find(pipeline::SessionKind::Text, route.session));
    QVERIFY(session != nullptr);
    QCOMPARE(session->asked(), std::size_t{1});
  }

  // Its stage may have other weights at once, before the table forgets the session.
  void a_closed_text_keeps_no_cache() {
    FakeStage stage;
    Fixture all(*module_);
    Node& head = all.lab.add_text_stage({3, 1, false, true}, StagePtr(&stage));
    all.first[2] = &head;
    all.begin(4);
    bool answered = false;
    QVERIFY(all.driver->extend(prompt_of(4), {}, [&](const Answer&) { answered = true; }).ok());
    QVERIFY(all.lab.run_until([&] { return answered; }, 5 * test::second));
    QCOMPARE(stage.sessions, std::size_t{1});
    all.driver->close();
    all.lab.run_for(500 * millisecond);
    QCOMPARE(stage.sessions, std::size_t{0});
    all.lab.run_for(5 * test::second);
    QCOMPARE(stage.sessions, std::size_t{0});
  }

  // Many texts at the same stages do not mix.
  void texts_beside_each_other() {
    const auto prompt = prompt_of(9);
    const auto expected = alone(*module_, prompt, 12, 4);
    Fixture all(*module_);
    all.begin(4);
    std::vector<std::unique_ptr<pipeline::TextDriver>> others;
    int answers = 0;
    for (int i = 0; i < 5; ++i) {
      Node& home = all.lab.add_node();
      others.push_back(std::make_unique<pipeline::TextDriver>(
          all.lab.around(home), home.key, Bytes(), all.route(4),
          pipeline::LeadEvents{[&](const auto& range) { return all.lab.holders(range); }, nullptr}));
      others.back()->start();
      QVERIFY(others.back()
                  ->extend(prompt_of(static_cast<std::size_t>(10 + i)), {}, [&](const auto&) { ++answers; })
                  .ok());
    }
    QVERIFY(all.write(prompt, 12).ok());
    QVERIFY(all.lab.run_until([&] { return all.writer.tokens.size() == 12 && answers == 5; }, minute));
    QCOMPARE(all.writer.tokens, expected);
  }

  // As when the weights change: the driver hears of it, and begins anew.
  void a_stage_ends_its_texts() {
    Fixture all(*module_);
    all.begin(8);
    QVERIFY(all.write(prompt_of(9), 1000).ok());
    QVERIFY(all.lab.run_until([&] { return all.writer.tokens.size() == 5; }, minute));
    const std::uint64_t before = all.driver->replaced();
    all.first[1]->texts->end_sessions(make_error(ErrorCode::Cancelled, "a new\nround\xFF"));
    QCOMPARE(all.first[1]->texts->sessions(), std::size_t{0});
    QVERIFY(all.lab.run_until([&] { return all.driver->replaced() == before + 1; }, minute));
    QVERIFY2(all.lost.find("a new round\xEF\xBF\xBD") != std::string::npos, all.lost.c_str());
    // Nobody serves the kind any more.
    all.first[1]->texts.reset();
    QVERIFY(all.lab.run_until([&] { return all.writer.tokens.size() == 12; }, minute));
  }

  // Two kinds have places of their own, and one is paused without the other.
  void a_table_has_sessions_of_both_kinds() {
    Fixture all(*module_);
    Node& both = all.lab.add_stage({0, 1, true, false}, {64, 4, 4});
    both.texts = all.lab.texts_at(both);
    all.first[0] = &both;
    std::vector<Node*> stages = all.first;
    for (std::size_t i : {1, 2}) {
      Node& trainer = all.lab.add_stage(all.first[i]->range, {64, 4, 4});
      stages[i] = &trainer;
    }
    all.begin(8);
    QVERIFY(all.write(prompt_of(9), 1000).ok());
    Node& home = all.lab.add_node();
    LabDriver training(all.lab, home, all.lab.route(stages, 2, 2), all.shape, 1, 1000);
    training.start();
    QVERIFY(
        all.lab.run_until([&] { return all.writer.tokens.size() > 5 && training.done.size() > 5; }, minute));
    QCOMPARE(both.worker->sessions(), std::size_t{1});
    QCOMPARE(both.texts->sessions(), std::size_t{1});
    training.holders = [&](const auto&) { return std::vector<net::NodeId>{both.id}; };
    both.sessions->pause(pipeline::SessionKind::Training, make_error(ErrorCode::Unavailable, "it rests"));
    QCOMPARE(both.worker->sessions(), std::size_t{0});
    const std::size_t trained = training.done.size(), written = all.writer.tokens.size();
    QVERIFY(all.lab.run_until([&] { return all.writer.tokens.size() > written + 20; }, minute));
    QVERIFY(training.done.size() <= trained + 2);  // what was under way
    both.sessions->resume(pipeline::SessionKind::Training);
    QVERIFY(all.lab.run_until([&] { return training.done.size() > trained + 5; }, minute));
  }

  void texts_have_bounds() {
    Fixture all(*module_);
    all.begin(8);
    QVERIFY(!all.driver->extend({}, {}, [](const auto&) {}).ok());
    QVERIFY(!all.driver->extend(prompt_of(257), {}, [](const auto&) {}).ok());
    QVERIFY(all.write(prompt_of(255), 2).ok());
    QVERIFY(all.lab.run_until([&] { return all.writer.tokens.size() == 2; }, minute));
    QVERIFY(!all.driver->extend({1}, {}, [](const auto&) {}).ok());
    // A stage of training takes no texts.
    Node& other = all.lab.add_stage({0, 1, true, false}, {64, 4, 4});
    pipeline::Route route = all.route(8);
    route.hops[0].node = other.id;
    std::vector<pipeline::Lost> lost;
    Node& home = all.lab.add_node();
    pipeline::TextDriver driver(all.lab.around(home), home.key, Bytes(), route,
                                {[](const auto&) { return std::vector<net::NodeId>(); },
                                 [&](const pipeline::Lost& one) { lost.push_back(one); }});
    driver.start();
    QVERIFY(all.lab.run_until([&] { return !lost.empty(); }, minute));
    QVERIFY2(lost[0].what.find("another kind of session") != std::string::npos, lost[0].what.c_str());
  }
};

NS_TEST(TestPipelineTexts)
#include "test_texts.moc"
