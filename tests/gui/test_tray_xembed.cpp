// The tray icon in a real tray of the older protocol (XEmbed): an X server, a window manager and a tray; the
// mouse and the keyboard are xdotool's. And what happens when the tray goes and comes back.
#include <QImage>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/gui/support/desktop_fixture.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestTrayXembed : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void a_click_asks_for_the_window();
  void the_menu_switches_contributing();
  void six_states_look_different();
  void a_tray_that_comes_back_is_used();
  void a_tray_that_comes_later_is_used();

 private:
  std::unique_ptr<Helper> start_tray() {
    return std::make_unique<Helper>("trayer",
                                    QStringList{"--edge", "top", "--align", "right", "--widthtype", "request",
                                                "--height", "32", "--SetDockType", "true"},
                                    server_->environment());
  }
  QJsonObject until_in_tray() {
    return subject_->until([](const QJsonObject& state) {
      return state["available"].toBool() && state["place"].toArray()[2].toInt() > 0;
    });
  }
  // Clicks the middle of the icon, where it stands now: a tray moves its icons while it grows.
  bool click(const char* button) {
    until_in_tray();
    const QJsonArray place = subject_->latest()["place"].toArray();
    const int x = place[0].toInt() + place[2].toInt() / 2, y = place[1].toInt() + place[3].toInt() / 2;
    return server_->run("xdotool", {"mousemove", QString::number(x), QString::number(y), "click", button});
  }
  // Until a click has arrived.
  bool click_toggles() {
    const int before = subject_->latest()["toggled"].toInt();
    const QDeadlineTimer deadline(generous_ms);
    while (!deadline.hasExpired()) {
      if (!click("1")) return false;
      QTest::qWait(500);
      if (subject_->latest()["toggled"].toInt() > before) return true;
    }
    return false;
  }
  QImage look();

  QTemporaryDir folder_;
  std::unique_ptr<XServer> server_;
  std::unique_ptr<Helper> manager_, tray_, subject_;
};

void TestTrayXembed::initTestCase() {
  const QString missing = missing_programs({"Xvfb", "openbox", "trayer", "xdotool", "import"});
  QVERIFY2(missing.isEmpty(), qPrintable(missing));
  server_ = std::make_unique<XServer>();
  QVERIFY(server_->running());
  manager_ = std::make_unique<Helper>("openbox", QStringList{}, server_->environment());
  tray_ = start_tray();
  QVERIFY(manager_->running() && tray_->running());
  subject_ = std::make_unique<Helper>(QCoreApplication::applicationDirPath() + "/tray_subject", QStringList{},
                                      server_->environment());
  QVERIFY(subject_->running());
  const QJsonObject state = until_in_tray();
  QVERIFY2(!state.isEmpty(), subject_->errors().constData());
}

void TestTrayXembed::cleanupTestCase() {
  subject_.reset();
  tray_.reset();
  manager_.reset();
  server_.reset();
}

void TestTrayXembed::a_click_asks_for_the_window() {
  QVERIFY(click_toggles());
}

void TestTrayXembed::the_menu_switches_contributing() {
  QVERIFY(click("3"));
  QVERIFY(!subject_->until([](const QJsonObject& state) { return state["menu"].toBool(); }).isEmpty());
  QVERIFY(server_->run("xdotool", {"key", "Down", "Return"}));  // the first entry that can be chosen
  const QJsonObject state =
      subject_->until([](const QJsonObject& now) { return !now["commands"].toArray().isEmpty(); });
  QCOMPARE(state["commands"].toArray()[0].toString(), QString("contribute off"));
  const QJsonObject paused =
      subject_->until([](const QJsonObject& now) { return now["icon"].toString() == "tray-paused"; });
  QVERIFY(!paused.isEmpty());
}

// The icon as it stands on the screen.
QImage TestTrayXembed::look() {
  const QJsonArray place = until_in_tray()["place"].toArray();
  const QString file = folder_.filePath("icon.png");
  const QString part = QString("%1x%2+%3+%4")
                           .arg(place[2].toInt())
                           .arg(place[3].toInt())
                           .arg(place[0].toInt())
                           .arg(place[1].toInt());
  if (!server_->run("import", {"-window", "root", "-crop", part, "+repage", file})) return {};
  return QImage(file).convertToFormat(QImage::Format_RGB32);
}

void TestTrayXembed::six_states_look_different() {
  QList<QImage> seen;
  for (const char* state : {"training", "idle", "paused", "syncing", "warning", "error"}) {
    subject_->say(QByteArray("state ") + state);
    const QString icon = QString("tray-%1").arg(state);
    QVERIFY2(!subject_->until([&icon](const QJsonObject& now) { return now["icon"].toString() == icon; })
                  .isEmpty(),
             state);
    // The tray draws when it comes to it.
    QImage image;
    QTRY_VERIFY_WITH_TIMEOUT(!(image = look()).isNull() && !seen.contains(image), generous_ms);
    seen << image;
  }
  QCOMPARE(seen.size(), 6);
}

void TestTrayXembed::a_tray_that_comes_back_is_used() {
  tray_->stop();
  QVERIFY(!subject_->until([](const QJsonObject& now) { return !now["available"].toBool(); }).isEmpty());
  tray_ = start_tray();
  QVERIFY(!until_in_tray().isEmpty());
  QVERIFY(click_toggles());
}

// At login, the app may be there before the panel.
void TestTrayXembed::a_tray_that_comes_later_is_used() {
  subject_->stop();
  tray_->stop();
  subject_ = std::make_unique<Helper>(QCoreApplication::applicationDirPath() + "/tray_subject", QStringList{},
                                      server_->environment());
  const QJsonObject alone = subject_->until([](const QJsonObject&) { return true; });
  QVERIFY(!alone.isEmpty());
  QCOMPARE(alone["available"], QJsonValue(false));
  tray_ = start_tray();
  QVERIFY(!until_in_tray().isEmpty());
  QVERIFY(click_toggles());
}

NS_TEST(TestTrayXembed)
#include "test_tray_xembed.moc"
