// A screen reader's way through the app: the real program on an X server of its own, a session bus, the
// accessibility bus, and a small client that finds the switch by its role and name and presses it. The core
// must see it.
#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/gui/support/desktop_fixture.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int long_ms = 50'000;

}  // namespace

class TestAppAccessibility : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void a_screen_reader_presses_contribute();
  void a_second_start_shows_the_first();
  void sigterm_is_a_clean_stop();

 private:
  QProcessEnvironment environment_;
  QTemporaryDir folder_;
  std::unique_ptr<XServer> server_;
  std::unique_ptr<Helper> manager_, bus_, launcher_, app_;

  QString path(const QString& name) const { return folder_.filePath(name); }
  // What the core says, asked by the command line.
  QJsonObject status() const {
    NodeProcess process({"status", "--json", "--data-dir", path("data")},
                        {"XDG_RUNTIME_DIR=" + path("runtime")});
    return json_lines(process.finish().out).value(0);
  }
};

void TestAppAccessibility::initTestCase() {
  const QString missing = missing_programs({"Xvfb", "openbox", "dbus-daemon"});
  QVERIFY2(missing.isEmpty(), qPrintable(missing));
  const QString bus_launcher = "/usr/libexec/at-spi-bus-launcher";
  QVERIFY2(QFile::exists(bus_launcher),
           "not installed: at-spi2-core (installers/debian-packages.txt, section [test])");
  server_ = std::make_unique<XServer>();
  QVERIFY(server_->running());
  environment_ = server_->environment();
  manager_ = std::make_unique<Helper>("openbox", QStringList{}, environment_);
  bus_ = std::make_unique<Helper>("dbus-daemon", QStringList{"--session", "--nofork", "--print-address"},
                                  environment_);
  const auto address = bus_->next_line();
  QVERIFY(address.has_value());
  environment_.insert("DBUS_SESSION_BUS_ADDRESS", QString::fromLatin1(*address));
  environment_.insert("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1");
  for (const char* folder : {"runtime", "config", "text"}) QVERIFY(QDir().mkpath(path(folder)));
  QFile::setPermissions(path("runtime"), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  environment_.insert("XDG_RUNTIME_DIR", path("runtime"));
  environment_.insert("XDG_CONFIG_HOME", path("config"));
  launcher_ = std::make_unique<Helper>(bus_launcher, QStringList{"--launch-immediately"}, environment_);
  QVERIFY(launcher_->running());
  QFile text(path("text/tale.txt"));
  QVERIFY(text.open(QIODevice::WriteOnly));
  text.write(made_up_text(7, 60'000));
  text.close();
  for (const QStringList& words :
       {QStringList{"wallet", "create"}, {"settings", "set", "contribute", "on"}}) {
    const ProcessResult result = run_node(words + QStringList{"--data-dir", path("data"), "--json"});
    QVERIFY2(result.ok(), result.text().constData());
  }
  app_ =
      std::make_unique<Helper>(qEnvironmentVariable("NS_BIN_DIR") + "/neuroshard",
                               QStringList{"--data-dir", path("data"), "--text", path("text")}, environment_);
  QVERIFY(app_->running());
  QTRY_VERIFY_WITH_TIMEOUT(status()["contributing"].toBool(), long_ms);
}

void TestAppAccessibility::cleanupTestCase() {
  if (app_ && app_->running()) app_->stop();
  app_.reset();
  launcher_.reset();
  bus_.reset();
  manager_.reset();
  server_.reset();
}

void TestAppAccessibility::a_screen_reader_presses_contribute() {
  QProcess reader;
  reader.setProcessEnvironment(environment_);
  reader.setProcessChannelMode(QProcess::MergedChannels);
  // The system's interpreter has the binding.
  reader.start("/usr/bin/python3",
               {qEnvironmentVariable("NS_SOURCE_DIR") + "/tests/gui/support/press_contribute.py"});
  QVERIFY(reader.waitForFinished(long_ms));
  QVERIFY2(reader.exitCode() == 0, reader.readAll().right(1500).constData());
  QTRY_VERIFY_WITH_TIMEOUT(!status()["contributing"].toBool(true), long_ms);
}

void TestAppAccessibility::a_second_start_shows_the_first() {
  QProcess second;
  second.setProcessEnvironment(environment_);
  second.start(qEnvironmentVariable("NS_BIN_DIR") + "/neuroshard", {"--data-dir", path("data")});
  QVERIFY(second.waitForFinished(long_ms));
  QCOMPARE(second.exitCode(), 0);
  QVERIFY(app_->running());
}

void TestAppAccessibility::sigterm_is_a_clean_stop() {
  app_->process().terminate();
  QVERIFY(app_->process().waitForFinished(long_ms));
  QCOMPARE(app_->process().exitStatus(), QProcess::NormalExit);
  QCOMPARE(app_->process().exitCode(), 0);
  // The core that it started has ended with it, and the directory is free.
  const ProcessResult list = run_node({"checkpoint", "list", "--data-dir", path("data"), "--json"});
  QVERIFY2(list.ok(), list.text().constData());
}

QTEST_GUILESS_MAIN(TestAppAccessibility)
#include "test_app_accessibility.moc"
