// Set-up and tear-down of the tests of the window with a real core: a small network that has made a step,
// once for a program, and a copy of its directory and an app for each test. The slots stay with the test:
// moc reads no headers here.
#pragma once

#include "tests/gui/support/app_fixture.h"

namespace neuroshard::test {

class AppTest : public QObject {
 protected:
  AppTest() = default;
  explicit AppTest(int patience_ms) : patience_(patience_ms) {}

  // Of initTestCase(), init() and cleanup().
  void prepare() {
    QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    const QByteArray problem = prepare_for_app(lab_);
    QVERIFY2(problem.isEmpty(), problem.constData());
  }
  void begin() {
    fixture_ = std::make_unique<AppFixture>();
    fixture_->use_data_of(lab_);
  }
  void end() {
    if (QTest::currentTestFailed() && fixture_) fixture_->tell();
    fixture_.reset();
  }

  // The app, until a core of its own answers.
  bool start_running(const gui::Arguments& arguments = {}) {
    fixture_->start(arguments);
    return runs();
  }
  bool runs() {
    return QTest::qWaitFor([this] { return fixture_->phase() == gui::CorePhase::Running; },
                           patience_.left_ms());
  }
  // A file that is no invitation; empty: it could not be written.
  QString letter() const {
    QFile file(fixture_->path("letter.json"));
    const bool written = file.open(QIODevice::WriteOnly) && file.write("{\"dear\": \"friend\"}\n") > 0;
    return written ? file.fileName() : QString();
  }

  const Patience patience_;
  TrainingLab lab_;
  std::unique_ptr<AppFixture> fixture_;
};

}  // namespace neuroshard::test
