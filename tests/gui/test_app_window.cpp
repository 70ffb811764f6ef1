// The window on the desktop, with the real core behind it: links do nothing before a yes, it comes back as it
// was left, and where no tray is, it is never lost.
#include <QMessageBox>
#include <QPushButton>
#include <QTimer>

#include "tests/gui/support/app_fixture.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestAppWindow : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    const QByteArray problem = prepare_for_app(lab_);
    QVERIFY2(problem.isEmpty(), problem.constData());
  }
  void init() {
    fixture_ = std::make_unique<AppFixture>();
    fixture_->use_data_of(lab_);
  }
  void cleanup() {
    if (QTest::currentTestFailed()) fixture_->tell();
    if (local_pid_ != 0) QProcess::execute("kill", {"-9", QString::number(local_pid_)});
    local_pid_ = 0;
    fixture_.reset();
  }
  void a_link_to_another_core_waits_for_a_yes();
  void an_invitation_to_a_network_waits_for_a_yes();
  void a_link_that_can_not_be_followed_changes_nothing();
  void it_comes_back_as_it_was_left();
  void without_a_tray_it_is_never_lost();

 private:
  // What the running app is handed by a second start. Answers the question that comes with the button of that
  // text ("" = Escape), and gives its text back; empty: there came none.
  QString hand_over(const QString& link, const QString& answer) {
    gui::Arguments arguments;
    arguments.link = link;
    return answer_question([&] { fixture_->app().called(arguments); }, "linkQuestion", answer);
  }
  QString answer_question(const std::function<void()>& act, const QString& name, const QString& answer) {
    QString asked;
    QTimer hand;
    connect(&hand, &QTimer::timeout, &hand, [&] {
      auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
      if (box == nullptr || box->objectName() != name) return;
      hand.stop();
      asked = box->text();
      for (QAbstractButton* button : box->buttons()) {
        if (answer.isEmpty() || button->text() != answer) continue;
        QTest::mouseClick(button, Qt::LeftButton);
        return;
      }
      QTest::keyClick(box, Qt::Key_Escape);
    });
    hand.start(20);
    act();
    // Some questions come when a program has answered.
    static_cast<void>(QTest::qWaitFor([&] { return !asked.isEmpty(); }, patience_.left_ms()));
    return asked;
  }

  const Patience patience_;
  TrainingLab lab_;
  std::unique_ptr<AppFixture> fixture_;
  std::int64_t local_pid_ = 0;  // while the app looks elsewhere, its own core goes on
};

void TestAppWindow::a_link_to_another_core_waits_for_a_yes() {
  const QString file = fixture_->path("letter.json");
  QFile letter(file);
  QVERIFY(letter.open(QIODevice::WriteOnly) && letter.write("{\"dear\": \"friend\"}\n") > 0);
  letter.close();
  fixture_->start();
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Running);
  local_pid_ = fixture_->core_pid();
  const QString link = "neuroshard:attach?file=" + file;
  QVERIFY(hand_over(link, "").contains(file));
  QVERIFY(fixture_->phase() == gui::CorePhase::Running && !fixture_->app().supervisor().status().remote);
  QCOMPARE(fixture_->core_pid(), local_pid_);
  QCOMPARE(fixture_->banners(), QString());
  // With a yes it is followed; that file is no invitation, which is told.
  QVERIFY(hand_over(link, "Connect").contains(file));
  NS_WAIT_FOR(patience_, fixture_->banners().contains("is no invitation"));
}

void TestAppWindow::an_invitation_to_a_network_waits_for_a_yes() {
  const QString profile = fixture_->path("invited.json");
  const ProcessResult created =
      run_node({"network", "create", "--from", "solo", "--name", "invited", "--out", profile});
  QVERIFY2(created.ok(), created.text().constData());
  const ProcessResult invited = run_node({"network", "invite", "--profile", profile, "--json"});
  QVERIFY2(invited.ok(), invited.text().constData());
  fixture_->start();
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Running);
  const QString link = json_lines(invited.out).value(0)["link"].toString();
  QVERIFY2(link.startsWith("neuroshard:join"), invited.out.constData());
  const QString asked = hand_over(link, "");
  QVERIFY2(asked.contains("invited") && asked.contains(fixture_->data() + "-invited"), qPrintable(asked));
  // Nothing was made, and the core that runs goes on.
  QVERIFY(!QFileInfo::exists(fixture_->data() + "-invited"));
  QVERIFY(fixture_->phase() == gui::CorePhase::Running);
}

void TestAppWindow::a_link_that_can_not_be_followed_changes_nothing() {
  fixture_->start();
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Running);
  QVERIFY(hand_over("neuroshard:dance?with=me", "").contains("Nothing was changed"));
  QVERIFY(hand_over("neuroshard:invite?peer=host.example:9000", "").contains("host.example:9000"));
  QVERIFY(fixture_->phase() == gui::CorePhase::Running);
  QCOMPARE(fixture_->banners(), QString());
}

void TestAppWindow::it_comes_back_as_it_was_left() {
  fixture_->start();
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Running);
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  QSize size = fixture_->app().window().size();
  fixture_->app().window().resize(700, 520);
  QVERIFY(size != fixture_->app().window().size());
  size = fixture_->app().window().size();
  fixture_->app().window().open_page("checkpoints");
  fixture_->app().quit();
  NS_WAIT_FOR(patience_, !finished.isEmpty());
  fixture_->start();
  QCOMPARE(fixture_->app().window().current_page(), QString("checkpoints"));
  NS_WAIT_FOR(patience_, fixture_->app().window().size() == size);
}

void TestAppWindow::without_a_tray_it_is_never_lost() {
  gui::Arguments arguments;
  arguments.minimized = true;  // as the session starts it: in the tray, where there is one
  fixture_->start(arguments);
  QVERIFY(!fixture_->app().tray().available());
  QVERIFY(fixture_->app().window().isVisible() && fixture_->app().window().isMinimized());
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Running);
  fixture_->app().called({});  // a second start shows it
  QVERIFY(fixture_->app().window().isVisible() && !fixture_->app().window().isMinimized());
  // Closing asks, and neither hides the window nor ends the core unasked.
  const auto close = [this] { fixture_->app().window().close(); };
  QVERIFY(answer_question(close, "closeQuestion", "").contains("minimised"));
  QVERIFY(fixture_->app().window().isVisible() && !fixture_->app().window().isMinimized());
  QVERIFY(!answer_question(close, "closeQuestion", "Go on, minimised").isEmpty());
  QVERIFY(fixture_->app().window().isVisible() && fixture_->app().window().isMinimized());
  QVERIFY(fixture_->phase() == gui::CorePhase::Running);
  // Stop and Quit stand in the window.
  QVERIFY(fixture_->find<QAction>("actionQuit") != nullptr && fixture_->find<QAction>("finish") != nullptr);
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  QVERIFY(!answer_question(close, "closeQuestion", "Quit").isEmpty());
  NS_WAIT_FOR(patience_, !finished.isEmpty());
}

QTEST_MAIN(TestAppWindow)
#include "test_app_window.moc"
