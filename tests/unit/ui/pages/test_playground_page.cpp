// The playground: what is sent, what streams in, how it ends, and how honest it is about the model.
#include <QClipboard>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QPlainTextEdit>
#include <QSpinBox>
#include <QTextEdit>

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
  void a_text_is_continued_and_measured();
  void the_text_streams_in_before_the_end();
  void stop_cancels_and_keeps_what_came();
  void a_chat_ends_with_its_turn();
  void sampling_stays_within_limits();
  void a_refusal_is_told();
  void enter_sends_and_shift_enter_does_not();
  void the_answer_can_be_copied();

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
  fixture_->node->say(fixture_->node->held("generate"), "bc");
  QTRY_VERIFY(transcript().endsWith(QStringLiteral("Abc")));
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

void TestPlaygroundPage::a_refusal_is_told() {
  start();
  fixture_->node->refuse(make_error(ErrorCode::Busy, "another text is being written; wait for it"));
  prompt()->setPlainText(QStringLiteral("A"));
  fixture_->click("send");
  QTRY_VERIFY(facts().contains(QStringLiteral("wait for it")));
  QVERIFY(fixture_->find<QPushButton>("send")->isVisible());
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
