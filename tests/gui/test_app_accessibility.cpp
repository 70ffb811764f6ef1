// A screen reader's way through the app: the real program on an X server of its own, a session bus, the
// accessibility bus, and a small client that finds the switch by its role and name and presses it. The core
// must see it.
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/gui/support/desktop_fixture.h"
#include "tests/gui/support/patience.h"
#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

class TestAppAccessibility : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void cleanup();
  void a_screen_reader_presses_contribute();
  void a_second_start_shows_the_first();
  void sigterm_is_a_clean_stop();

 private:
  const Patience patience_;
  QProcessEnvironment environment_;
  QTemporaryDir folder_;
  TrainingLab lab_;
  std::unique_ptr<XServer> server_;
  std::unique_ptr<Helper> manager_, bus_, launcher_, app_;

  QString path(const QString& name) const { return folder_.filePath(name); }
  QString data() const { return lab_.path("origin"); }
  // The core's state, by the command line.
  QJsonObject status() const {
    NodeProcess process({"status", "--json", "--data-dir", data()}, {"XDG_RUNTIME_DIR=" + path("runtime")});
    return json_lines(process.finish(patience_.left_ms()).out).value(0);
  }
  bool becomes(const QString& state) const {
    return QTest::qWaitFor([&] { return status()["state"].toString() == state; }, patience_.left_ms());
  }
  void press(const char* wanted);
};

void TestAppAccessibility::initTestCase() {
  const QString missing = missing_programs({"Xvfb", "openbox", "dbus-daemon"});
  QVERIFY2(missing.isEmpty(), qPrintable(missing));
  const QString bus_launcher = "/usr/libexec/at-spi-bus-launcher";
  QVERIFY2(QFile::exists(bus_launcher),
           "not installed: at-spi2-core (installers/debian-packages.txt, section [test])");
  const QByteArray problem = lab_.prepare();  // a small network: the core is real, its steps are short
  QVERIFY2(problem.isEmpty(), problem.constData());
  server_ = std::make_unique<XServer>();
  QVERIFY(server_->running());
  environment_ = server_->environment();
  QVERIFY(give_private_folders(folder_.path(), &environment_));
  manager_ = std::make_unique<Helper>("openbox", QStringList{}, environment_);
  bus_ = std::make_unique<Helper>("dbus-daemon", QStringList{"--session", "--nofork", "--print-address"},
                                  environment_);
  const auto address = bus_->next_line();
  QVERIFY(address.has_value());
  environment_.insert("DBUS_SESSION_BUS_ADDRESS", QString::fromLatin1(*address));
  environment_.insert("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1");
  launcher_ = std::make_unique<Helper>(bus_launcher, QStringList{"--launch-immediately"}, environment_);
  QVERIFY(launcher_->running());
  app_ = std::make_unique<Helper>(qEnvironmentVariable("NS_BIN_DIR") + "/neuroshard",
                                  QStringList{"--data-dir", data()}, environment_);
  QVERIFY(app_->running());
}

void TestAppAccessibility::cleanup() {
  if (!QTest::currentTestFailed()) return;
  tell_lines({"--- the core", QString::fromUtf8(QJsonDocument(status()).toJson()).left(3000)});
  if (app_) tell_lines({"--- the app", QString::fromUtf8(app_->errors()).right(3000)});
  tell_end_of(path("runtime/neuroshard/core-output.txt"));
  tell_end_of(data() + "/logs/neuroshardd.log");
}

void TestAppAccessibility::cleanupTestCase() {
  if (app_ && app_->running()) app_->stop();
  app_.reset();
  launcher_.reset();
  bus_.reset();
  manager_.reset();
  server_.reset();
}

void TestAppAccessibility::press(const char* wanted) {
  QProcess reader;
  reader.setProcessEnvironment(environment_);
  reader.setProcessChannelMode(QProcess::MergedChannels);
  // The system's interpreter has the binding.
  reader.start("/usr/bin/python3",
               {qEnvironmentVariable("NS_SOURCE_DIR") + "/tests/gui/support/press_contribute.py", wanted});
  QVERIFY(reader.waitForFinished(patience_.left_ms()));
  QVERIFY2(reader.exitCode() == 0, reader.readAll().right(1500).constData());
}

void TestAppAccessibility::a_screen_reader_presses_contribute() {
  QVERIFY(becomes("training"));
  press("off");
  if (QTest::currentTestFailed()) return;
  QVERIFY(becomes("paused"));
  const QJsonObject paused = status();
  QCOMPARE(paused["contributing"].toBool(true), false);
  QCOMPARE(paused["pause_reasons"].toArray().at(0).toObject()["key"].toString(), QString("user"));
  press("on");
  if (QTest::currentTestFailed()) return;
  QVERIFY(becomes("training"));
}

void TestAppAccessibility::a_second_start_shows_the_first() {
  QProcess second;
  second.setProcessEnvironment(environment_);
  second.start(qEnvironmentVariable("NS_BIN_DIR") + "/neuroshard", {"--data-dir", data()});
  QVERIFY(second.waitForFinished(patience_.left_ms()));
  QCOMPARE(second.exitCode(), 0);
  QVERIFY(app_->running());
}

void TestAppAccessibility::sigterm_is_a_clean_stop() {
  app_->process().terminate();
  QVERIFY(app_->process().waitForFinished(patience_.left_ms()));
  QCOMPARE(app_->process().exitStatus(), QProcess::NormalExit);
  QCOMPARE(app_->process().exitCode(), 0);
  // The core that it started has ended with it, and the directory is free.
  const ProcessResult list = run_node({"checkpoint", "list", "--data-dir", data(), "--json"});
  QVERIFY2(list.ok(), list.text().constData());
}

NS_TEST(TestAppAccessibility)
#include "test_app_accessibility.moc"
