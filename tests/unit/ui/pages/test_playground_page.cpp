// The playground: what is sent, what streams in, how it ends, and how honest it is about the model.
#include <QClipboard>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QSpinBox>
#include <QTableView>
#include <QTextEdit>
#include <cmath>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/pages/playground_page.h"
#include "ui/widgets/banner.h"
#include "ui/widgets/empty_state.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestPlaygroundPage : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { fixture_ = std::make_unique<PageFixture>(); }
  void cleanup() { fixture_.reset(); }
  void without_a_model_it_says_so();
  void a_young_model_is_called_young();
  void its_numbers_follow_without_haste();
  void safe_mode_replaces_what_was_said_of_the_model();
  void a_text_is_continued_and_measured();
  void the_text_streams_in_before_the_end();
  void stop_cancels_and_keeps_what_came();
  void a_chat_ends_with_its_turn();
  void a_turn_that_comes_in_pieces_leaves_nothing();
  void a_refused_question_is_given_back();
  void the_transcript_follows_the_theme();
  void sampling_stays_within_limits();
  void every_control_arrives();
  void a_wrong_bias_is_explained();
  void likely_tokens_are_listed();
  void two_checkpoints_answer_with_one_seed();
  void the_facts_name_who_answered();
  void the_field_to_write_in_stays_in_view();
  void a_refusal_is_told();
  void enter_sends_and_shift_enter_does_not();
  void the_answer_can_be_copied();
  void tab_goes_from_the_text_to_the_controls();

 private:
  void start(double loss = 2.0) {
    fixture_->show<PlaygroundPage>();
    fixture_->publish([loss](node::Snapshot& s) {
      s.training.step = 1234;
      s.training.smoothed_loss = loss;
      s.training.last_step.emplace();
      s.training.last_step->tokens = 1'200'000;
    });
  }
  QPlainTextEdit* prompt() const { return fixture_->find<QPlainTextEdit>("prompt"); }
  QString transcript() const { return fixture_->find<QTextEdit>("transcript")->toPlainText(); }
  QString facts() const { return fixture_->find<QLabel>("generation_facts")->text(); }

  std::unique_ptr<PageFixture> fixture_;
};

void TestPlaygroundPage::without_a_model_it_says_so() {
  fixture_->show<PlaygroundPage>();
  auto* empty = fixture_->page->findChild<EmptyState*>();
  QVERIFY(empty->isVisible());
  QTest::mouseClick(empty->findChild<QPushButton*>(), Qt::LeftButton);
  QCOMPARE(fixture_->went_to, QString("training"));
  QVERIFY(!prompt()->isVisible());
}

void TestPlaygroundPage::tab_goes_from_the_text_to_the_controls() {
  start();
  QWidget* const clear = fixture_->find<QPushButton>("clear");
  QStringList names;
  for (QWidget* next = clear->nextInFocusChain(); next != clear && names.size() < 2;
       next = next->nextInFocusChain())
    if ((next->focusPolicy() & Qt::TabFocus) != 0) names << next->objectName();
  QCOMPARE(names, (QStringList{"playground_controls", "mode"}));
}

void TestPlaygroundPage::a_young_model_is_called_young() {
  start(6.5);
  auto* banner = fixture_->find<Banner>("honesty");
  QVERIFY(banner->isVisible());
  QVERIFY(banner->content().text.contains(QStringLiteral("1.20\u00a0M tokens")));
  QVERIFY(banner->content().text.contains(QStringLiteral("6.50")));
  QVERIFY(prompt()->isVisible());  // it may be tried all the same
  fixture_->publish([](node::Snapshot& s) { s.training.smoothed_loss = 2.0; });
  QVERIFY(!banner->isVisible());
}

void TestPlaygroundPage::its_numbers_follow_without_haste() {
  start(6.5);
  const auto* banner = fixture_->find<Banner>("honesty");
  const auto says = [banner](const char* loss) {
    return banner->isVisible() && banner->content().text.contains(QString::fromLatin1(loss));
  };
  QVERIFY(says("6.50"));
  // Not under the eyes of a person who reads it, but it does not stay old either.
  fixture_->publish([](node::Snapshot& s) { s.training.smoothed_loss = 5.75; });
  QVERIFY(says("6.50"));
  fixture_->clock.advance(std::chrono::seconds(30));
  fixture_->publish([](node::Snapshot&) {});
  QVERIFY2(says("5.75"), qPrintable(banner->content().text));
  // Coming back to the page shows what holds now.
  fixture_->publish([](node::Snapshot& s) { s.training.smoothed_loss = 4.25; });
  fixture_->page->shown();
  fixture_->page->refresh(*fixture_->node->snapshot());
  QVERIFY2(says("4.25"), qPrintable(banner->content().text));
}

void TestPlaygroundPage::safe_mode_replaces_what_was_said_of_the_model() {
  start(6.5);
  const auto* banner = fixture_->find<Banner>("honesty");
  fixture_->publish([](node::Snapshot& s) { s.safe_mode = true; });
  QVERIFY(banner->isVisible());
  QVERIFY2(banner->content().text.startsWith(QStringLiteral("Safe mode")),
           qPrintable(banner->content().text));
  QCOMPARE(banner->content().tone, Tone::Warning);
  fixture_->publish([](node::Snapshot& s) { s.safe_mode = false; });
  QVERIFY(banner->content().text.contains(QStringLiteral("6.50")));
  QCOMPARE(banner->content().tone, Tone::Info);
}

void TestPlaygroundPage::a_text_is_continued_and_measured() {
  start();
  prompt()->setPlainText(QStringLiteral("Once upon"));
  fixture_->node->hold_commands();
  fixture_->click("send");
  QTRY_VERIFY(fixture_->commanded("generate Once upon"));
  node::GenerateResult result;
  result.tokens = 50;
  result.seconds = 2;
  result.step = 1234;
  result.stopped_by = "length";
  fixture_->node->say(fixture_->node->held("generate"), " a time");
  fixture_->node->finish(fixture_->node->held("generate"), node::CommandResult{result});
  QTRY_VERIFY(facts().contains(QStringLiteral("25.0 tokens/s")));
  QVERIFY(facts().contains(QStringLiteral("step 1,234")));
  QVERIFY(facts().contains(QStringLiteral("longest answer")));
  QVERIFY(transcript().contains(QStringLiteral("Once upon a time")));
  QVERIFY(prompt()->toPlainText().isEmpty());
}

void TestPlaygroundPage::the_text_streams_in_before_the_end() {
  start();
  fixture_->node->hold_commands();
  prompt()->setPlainText(QStringLiteral("A"));
  fixture_->click("send");
  QTRY_VERIFY(fixture_->node->held("generate") != 0);
  QVERIFY(!fixture_->find<QPushButton>("send")->isVisible());
  QVERIFY(facts().startsWith(QStringLiteral("reading")));
  fixture_->node->say(fixture_->node->held("generate"), "bc");
  QTRY_VERIFY(transcript().endsWith(QStringLiteral("Abc")));
  QVERIFY(facts().startsWith(QStringLiteral("writing")));
  fixture_->node->say(fixture_->node->held("generate"), "d");
  QTRY_VERIFY(transcript().endsWith(QStringLiteral("Abcd")));
  QVERIFY(fixture_->find<QPushButton>("stop")->isVisible());
}

void TestPlaygroundPage::stop_cancels_and_keeps_what_came() {
  start();
  fixture_->node->hold_commands();
  prompt()->setPlainText(QStringLiteral("A"));
  fixture_->click("send");
  QTRY_VERIFY(fixture_->node->held("generate") != 0);
  fixture_->node->say(fixture_->node->held("generate"), "bc");
  fixture_->click("stop");
  QTRY_COMPARE(facts(), QStringLiteral("stopped"));
  QVERIFY(transcript().endsWith(QStringLiteral("Abc")));
  QVERIFY(fixture_->find<QPushButton>("send")->isVisible());
}

void TestPlaygroundPage::a_chat_ends_with_its_turn() {
  start();
  fixture_->find<QComboBox>("mode")->setCurrentIndex(1);
  fixture_->node->hold_commands();
  prompt()->setPlainText(QStringLiteral("Hello"));
  fixture_->click("send");
  QTRY_VERIFY(fixture_->commanded("generate User: Hello\nAssistant:"));
  fixture_->node->say(fixture_->node->held("generate"), " Hi!\nUser: What");
  QTRY_COMPARE(facts(), QStringLiteral("ended with the turn"));  // the page stopped it
  QVERIFY(transcript().contains(QStringLiteral("Hi!")));
  QVERIFY(!transcript().contains(QStringLiteral("What")));
}

void TestPlaygroundPage::a_turn_that_comes_in_pieces_leaves_nothing() {
  start();
  fixture_->find<QComboBox>("mode")->setCurrentIndex(1);
  fixture_->node->hold_commands();
  prompt()->setPlainText(QStringLiteral("Hello"));
  fixture_->click("send");
  QTRY_VERIFY(fixture_->node->held("generate") != 0);
  fixture_->node->say(fixture_->node->held("generate"), " Hi!\nUser");
  QTRY_VERIFY(transcript().endsWith(QStringLiteral(" Hi!\nUser")));
  fixture_->node->say(fixture_->node->held("generate"), ": What");
  QTRY_COMPARE(facts(), QStringLiteral("ended with the turn"));
  QVERIFY2(transcript().endsWith(QStringLiteral(" Hi!")), qPrintable(transcript()));
}

void TestPlaygroundPage::a_refused_question_is_given_back() {
  start();
  fixture_->find<QComboBox>("mode")->setCurrentIndex(1);
  prompt()->setPlainText(QStringLiteral("First"));
  fixture_->click("send");
  QTRY_VERIFY(fixture_->find<QPushButton>("copy_answer")->isEnabled());
  const QString before = transcript();
  fixture_->node->refuse(make_error(ErrorCode::Busy, "wait for it"));
  prompt()->setPlainText(QStringLiteral("Hello"));
  fixture_->click("send");
  QTRY_VERIFY(facts().contains(QStringLiteral("wait for it")));
  QCOMPARE(prompt()->toPlainText(), QStringLiteral("Hello"));
  QCOMPARE(transcript(), before);
  // A text that is written meanwhile stays, and the question stays readable.
  fixture_->click("send");
  prompt()->setPlainText(QStringLiteral("Next"));
  QTRY_VERIFY(fixture_->find<QPushButton>("send")->isVisible());
  QCOMPARE(prompt()->toPlainText(), QStringLiteral("Next"));
  QVERIFY(transcript().contains(QStringLiteral("Hello")));
  // The model reads neither of the questions that it did not answer.
  fixture_->node->refuse(Error{});
  fixture_->click("send");
  QTRY_VERIFY(fixture_->commanded("generate User: First\nAssistant:It works.\nUser: Next\nAssistant:"));
}

void TestPlaygroundPage::the_transcript_follows_the_theme() {
  start();
  fixture_->node->hold_commands();
  prompt()->setPlainText(QStringLiteral("A"));
  fixture_->click("send");
  QTRY_VERIFY(fixture_->node->held("generate") != 0);
  fixture_->node->say(fixture_->node->held("generate"), "bc");
  QTRY_VERIFY(transcript().endsWith(QStringLiteral("Abc")));
  const auto colour_of = [this](const char* text) {
    const auto* document = fixture_->find<QTextEdit>("transcript")->document();
    return document->find(QString::fromLatin1(text)).charFormat().foreground().color();
  };
  const QColor light = colour_of("bc");
  QCOMPARE(light, fixture_->theme.color(Token::Accent));
  fixture_->theme.choose(ThemeChoice::Dark);
  QVERIFY(light != fixture_->theme.color(Token::Accent));
  QCOMPARE(colour_of("bc"), fixture_->theme.color(Token::Accent));
  QCOMPARE(colour_of("Model"), fixture_->theme.color(Token::TextMuted));
}

void TestPlaygroundPage::sampling_stays_within_limits() {
  start();
  auto* temperature = fixture_->find<QDoubleSpinBox>("temperature");
  temperature->setValue(99);
  QCOMPARE(temperature->value(), 2.0);
  auto* length = fixture_->find<QSpinBox>("max_tokens");
  length->setValue(1'000'000);
  QCOMPARE(length->value(), 4096);
  auto* share = fixture_->find<QDoubleSpinBox>("top_p");
  share->setValue(0);
  QVERIFY(share->value() > 0);
}

void TestPlaygroundPage::every_control_arrives() {
  start();
  fixture_->find<QDoubleSpinBox>("temperature")->setValue(0.5);
  fixture_->find<QSpinBox>("top_k")->setValue(9);
  fixture_->find<QDoubleSpinBox>("top_p")->setValue(0.9);
  fixture_->find<QDoubleSpinBox>("min_p")->setValue(0.1);
  fixture_->find<QDoubleSpinBox>("repetition_penalty")->setValue(1.25);
  fixture_->find<QSpinBox>("max_tokens")->setValue(33);
  fixture_->find<QSpinBox>("seed")->setValue(7);
  fixture_->find<QLineEdit>("stop_texts")->setText(QStringLiteral("The end | \\n\\n|A B "));
  fixture_->find<QLineEdit>("token_biases")->setText(QStringLiteral("42: -100, 7:2.5"));
  fixture_->find<QSpinBox>("logprobs")->setValue(3);
  prompt()->setPlainText(QStringLiteral("A"));
  fixture_->click("send");
  QTRY_VERIFY(facts().contains(QStringLiteral("seed 7")));
  const node::GenerateRequest& sent = fixture_->node->generated;
  QCOMPARE(sent.temperature, 0.5);
  QCOMPARE(sent.top_k, 9u);
  QCOMPARE(sent.top_p, 0.9);
  QCOMPARE(sent.min_p, 0.1);
  QCOMPARE(sent.repetition_penalty, 1.25);
  QCOMPARE(sent.max_tokens, 33u);
  QCOMPARE(sent.seed, std::uint64_t{7});
  QVERIFY((sent.stop == std::vector<std::string>{"The end", "\n\n", "A B"}));
  QCOMPARE(sent.logit_bias.size(), std::size_t{2});
  QCOMPARE(sent.logit_bias[0].token, 42u);
  QCOMPARE(sent.logit_bias[1].bias, 2.5);
  QCOMPARE(sent.logprobs.value_or(0), 3u);
}

void TestPlaygroundPage::a_wrong_bias_is_explained() {
  start();
  prompt()->setPlainText(QStringLiteral("A"));
  for (const char* wrong : {"42", "word: 3", "42: 101", "42: x"}) {
    fixture_->find<QLineEdit>("token_biases")->setText(QString::fromLatin1(wrong));
    fixture_->click("send");
    QVERIFY2(fixture_->find<QLabel>("sampling_problem")->isVisible(), wrong);
  }
  QVERIFY(fixture_->node->commands().empty());
  QCOMPARE(prompt()->toPlainText(), QStringLiteral("A"));  // nothing is lost
  fixture_->find<QLineEdit>("token_biases")->clear();
  fixture_->click("send");
  QTRY_VERIFY(fixture_->commanded("generate A"));
  QVERIFY(!fixture_->find<QLabel>("sampling_problem")->isVisible());
}

void TestPlaygroundPage::likely_tokens_are_listed() {
  start();
  auto* table = fixture_->find<QTableView>("answer_tokens");
  QVERIFY(!table->isVisible());
  node::GeneratedToken token;
  token.text = " sun\n";
  token.logprob = std::log(0.25);
  token.top = {{1, " moon", std::log(0.5)}, {2, "\xe2\x82", std::log(0.25)}};
  fixture_->node->pieces = {{" sun\n", {token}, false}};
  fixture_->find<QSpinBox>("logprobs")->setValue(2);
  prompt()->setPlainText(QStringLiteral("The"));
  fixture_->click("send");
  QTRY_COMPARE(table->model()->rowCount(), 1);
  QVERIFY(table->isVisible());
  const auto cell = [&](int column) { return table->model()->index(0, column).data().toString(); };
  QCOMPARE(cell(0), QStringLiteral("\u2423sun\u21b5"));
  QVERIFY2(cell(1).startsWith("25"), qPrintable(cell(1)));
  QCOMPARE(cell(2), QStringLiteral("-1.386"));
  QVERIFY2(cell(3).contains("moon 50") && cell(3).contains("e2 82"), qPrintable(cell(3)));
}

void TestPlaygroundPage::two_checkpoints_answer_with_one_seed() {
  for (const std::uint64_t step : {200, 100}) {
    node::CheckpointEntry entry;
    entry.name = "checkpoint-" + std::to_string(step);
    entry.step = step;
    fixture_->node->checkpoints.push_back(entry);
  }
  start();
  auto* first = fixture_->find<QComboBox>("answering_model");
  auto* second = fixture_->find<QComboBox>("second_model");
  QTRY_COMPARE(first->count(), 3);
  auto* beside = fixture_->find<QTextEdit>("transcript_second");
  QVERIFY(!beside->isVisible());
  second->setCurrentIndex(2);
  QVERIFY(beside->isVisible());
  fixture_->node->hold_commands();
  prompt()->setPlainText(QStringLiteral("Once"));
  fixture_->click("send");
  QTRY_VERIFY(fixture_->node->held("generate") != 0);
  const node::GenerateRequest one = fixture_->node->generated;
  QVERIFY(one.checkpoint.empty() && one.seed != 0);
  QVERIFY(!second->isEnabled());
  fixture_->node->say(fixture_->node->held("generate"), " upon");
  fixture_->node->finish(fixture_->node->held("generate"), node::CommandResult{node::GenerateResult{}});
  QTRY_COMPARE(fixture_->node->commands().size(), std::size_t{2});  // the second after the first
  const node::GenerateRequest two = fixture_->node->generated;
  QCOMPARE(two.checkpoint, std::string("checkpoint-100"));
  QCOMPARE(two.seed, one.seed);
  QCOMPARE(two.prompt, one.prompt);
  fixture_->node->say(fixture_->node->held("generate"), " there");
  fixture_->node->finish(fixture_->node->held("generate"), node::CommandResult{node::GenerateResult{}});
  QTRY_VERIFY(second->isEnabled());
  QVERIFY(transcript().endsWith(QStringLiteral("Once upon")));
  QVERIFY(beside->toPlainText().endsWith(QStringLiteral("Once there")));
  // A chat has one model.
  fixture_->find<QComboBox>("mode")->setCurrentIndex(1);
  QVERIFY(!second->isEnabled() && !beside->isVisible());
}

void TestPlaygroundPage::the_facts_name_who_answered() {
  start();
  fixture_->publish([](node::Snapshot& s) { s.identity.node_id = std::string(64, 'a'); });
  QTest::qWait(150);  // the bridge has it
  prompt()->setPlainText(QStringLiteral("A"));
  fixture_->click("send");
  QTRY_VERIFY2(facts().contains(QStringLiteral("this computer alone (node aaaaaaaa")), qPrintable(facts()));
  fixture_->elsewhere = true;
  prompt()->setPlainText(QStringLiteral("B"));
  fixture_->click("send");
  QTRY_VERIFY(facts().contains(QStringLiteral("the computer that this window shows")));
  // Of a model of which others hold parts: they read the text.
  QVERIFY(!fixture_->find<QLabel>("parts_help")->isVisible());
  fixture_->publish([](node::Snapshot& s) { s.rounds.part.emplace(); });
  QTRY_VERIFY(fixture_->find<QLabel>("parts_help")->isVisible());
  QTest::qWait(150);  // the bridge has it
  prompt()->setPlainText(QStringLiteral("C"));
  fixture_->click("send");
  QTRY_VERIFY2(facts().contains(QStringLiteral("together with the nodes that hold the other parts")),
               qPrintable(facts()));
}

// The controls are higher than a small window: they scroll by themselves.
void TestPlaygroundPage::the_field_to_write_in_stays_in_view() {
  start();
  QVERIFY2(fixture_->page->minimumSizeHint().height() <= 480,
           qPrintable(QString::number(fixture_->page->minimumSizeHint().height())));
  fixture_->page->resize(760, 500);
  QTRY_COMPARE(fixture_->page->height(), 500);
  const QRect place(prompt()->mapTo(fixture_->page.get(), QPoint()), prompt()->size());
  QVERIFY(fixture_->page->rect().contains(place));
}

void TestPlaygroundPage::a_refusal_is_told() {
  start();
  fixture_->node->refuse(make_error(ErrorCode::Busy, "another text is being written; wait for it"));
  prompt()->setPlainText(QStringLiteral("A"));
  fixture_->click("send");
  QTRY_VERIFY(facts().contains(QStringLiteral("wait for it")));
  QVERIFY(fixture_->find<QPushButton>("send")->isVisible());
  QCOMPARE(prompt()->toPlainText(), QStringLiteral("A"));
  QCOMPARE(transcript(), QString());
}

void TestPlaygroundPage::enter_sends_and_shift_enter_does_not() {
  start();
  prompt()->setFocus();
  QTest::keyClicks(prompt(), QStringLiteral("A"));
  QTest::keyClick(prompt(), Qt::Key_Return, Qt::ShiftModifier);
  QTest::keyClicks(prompt(), QStringLiteral("B"));
  QVERIFY(fixture_->node->commands().empty());
  QTest::keyClick(prompt(), Qt::Key_Return);
  QTRY_COMPARE(fixture_->node->commands().size(), std::size_t{1});
  QCOMPARE(fixture_->node->commands().front(), std::string("generate A\nB"));
}

void TestPlaygroundPage::the_answer_can_be_copied() {
  start();
  prompt()->setPlainText(QStringLiteral("Does it?"));
  fixture_->click("send");
  QTRY_VERIFY(fixture_->find<QPushButton>("copy_answer")->isEnabled());
  fixture_->click("copy_answer");
  QCOMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("It works."));
}

NS_UI_TEST(TestPlaygroundPage)
#include "test_playground_page.moc"
