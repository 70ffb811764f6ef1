// The tray icon over the newer protocol (StatusNotifier): a session bus of its own, and this program as the
// watcher and host that a desktop has. The menu is asked for and used over the bus, as a panel does. And the
// host that comes after the app, goes and comes back.
#include <QDBusArgument>
#include <QDBusMessage>
#include <QDBusVariant>
#include <QJsonArray>
#include <QtTest>

#include "tests/gui/support/desktop_fixture.h"
#include "tests/gui/support/notifier_watcher.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

// (ia{sv}av): an entry of the menu with those below it.
struct MenuEntry {
  int id = 0;
  QVariantMap properties;
  QList<MenuEntry> children;
};

namespace {

MenuEntry read_entry(const QDBusArgument& argument) {
  MenuEntry entry;
  argument.beginStructure();
  argument >> entry.id >> entry.properties;
  argument.beginArray();
  while (!argument.atEnd()) {
    QDBusVariant child;
    argument >> child;
    entry.children << read_entry(child.variant().value<QDBusArgument>());
  }
  argument.endArray();
  argument.endStructure();
  return entry;
}

QString label(const MenuEntry& entry) {
  return entry.properties["label"].toString().remove('_');
}

const MenuEntry* find(const MenuEntry& menu, const QString& begins) {
  for (const MenuEntry& child : menu.children) {
    if (label(child).startsWith(begins)) return &child;
  }
  return nullptr;
}

}  // namespace

class TestTrayNotifier : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void the_item_says_what_it_is();
  void the_menu_has_what_it_should();
  void contribute_is_switched_over_the_bus();
  void snooze_ends_by_itself();
  void a_click_asks_for_the_window();
  void a_host_that_goes_and_comes_back_is_used();
  void a_host_that_comes_later_is_used();
  void quit_quits();

 private:
  QDBusMessage call(const QString& path, const QString& interface, const QString& method,
                    const QVariantList& arguments) {
    QDBusMessage message =
        QDBusMessage::createMethodCall(watcher_->items().constLast(), path, interface, method);
    message.setArguments(arguments);
    return bus_->connection().call(message, QDBus::BlockWithGui, generous_ms);
  }
  MenuEntry menu() {
    const QDBusMessage reply =
        call("/MenuBar", "com.canonical.dbusmenu", "GetLayout", {0, -1, QStringList()});
    if (reply.arguments().size() < 2) return {};
    return read_entry(reply.arguments()[1].value<QDBusArgument>());
  }
  void choose(int id) {
    call("/MenuBar", "com.canonical.dbusmenu", "Event",
         {id, QString("clicked"), QVariant::fromValue(QDBusVariant(QString())), 0u});
  }
  QVariant item(const QString& property) {
    const QDBusMessage reply = call("/StatusNotifierItem", "org.freedesktop.DBus.Properties", "Get",
                                    {QString("org.kde.StatusNotifierItem"), property});
    return reply.arguments().isEmpty() ? QVariant() : reply.arguments()[0].value<QDBusVariant>().variant();
  }
  QString last_command() {
    const QJsonArray commands = state_["commands"].toArray();
    return commands.isEmpty() ? QString() : commands.last().toString();
  }
  // Until the subject has been told that command.
  bool until_command(const QString& begins) {
    state_ = subject_->until([&begins](const QJsonObject& now) {
      const QJsonArray commands = now["commands"].toArray();
      return !commands.isEmpty() && commands.last().toString().startsWith(begins);
    });
    return !state_.isEmpty();
  }

  // The app's tray on a bus of this name.
  std::unique_ptr<Helper> start_subject(const SessionBus& bus) const {
    QProcessEnvironment environment = server_->environment();
    environment.insert("DBUS_SESSION_BUS_ADDRESS", bus.address());
    return std::make_unique<Helper>(QCoreApplication::applicationDirPath() + "/tray_subject", QStringList{},
                                    environment);
  }
  // The watcher is asked meanwhile: events are handled.
  static bool until_available(Helper& subject, bool available) {
    return QTest::qWaitFor(
        [&] {
          const QJsonValue now = subject.latest()["available"];
          return now.isBool() && now.toBool() == available;
        },
        generous_ms);
  }

  std::unique_ptr<XServer> server_;
  std::unique_ptr<SessionBus> bus_;
  std::unique_ptr<NotifierWatcher> watcher_;
  std::unique_ptr<Helper> subject_;
  QJsonObject state_;
};

void TestTrayNotifier::initTestCase() {
  const QString missing = missing_programs({"Xvfb", "dbus-daemon"});
  QVERIFY2(missing.isEmpty(), qPrintable(missing));
  server_ = std::make_unique<XServer>();
  QVERIFY(server_->running());
  bus_ = std::make_unique<SessionBus>(server_->environment());
  QVERIFY(bus_->running());
  watcher_ = std::make_unique<NotifierWatcher>(bus_->connection());
  QVERIFY(watcher_->come(true));
  subject_ = start_subject(*bus_);
  QTRY_VERIFY_WITH_TIMEOUT(!watcher_->items().isEmpty(), generous_ms);
}

void TestTrayNotifier::cleanupTestCase() {
  subject_.reset();
  watcher_.reset();
  bus_.reset();
  server_.reset();
}

void TestTrayNotifier::the_item_says_what_it_is() {
  const QJsonObject state = subject_->until([](const QJsonObject& now) { return now["available"].toBool(); });
  QVERIFY(!state.isEmpty());
  const QStringList lines = state["tooltip"].toString().split('\n');
  QCOMPARE(lines[0], QString("NeuroShard"));
  QVERIFY(lines[1].startsWith("Training"));
  QVERIFY(lines[2].contains("3.21"));
  QVERIFY(
      lines[3].contains(QString::fromUtf8("—")));  // nothing is earned on one's own, and unknown is never 0
  QCOMPARE(item("Category").toString(), QString("ApplicationStatus"));
}

void TestTrayNotifier::the_menu_has_what_it_should() {
  const MenuEntry all = menu();
  const MenuEntry* contribute = find(all, "Contribute");
  QVERIFY(contribute != nullptr);
  QCOMPARE(contribute->properties["toggle-state"].toInt(), 1);
  const MenuEntry* snooze = find(all, "Snooze");
  QVERIFY(snooze != nullptr);
  for (const char* entry : {"15 minutes", "1 hour", "4 hours", "Until tomorrow"})
    QVERIFY2(find(*snooze, entry) != nullptr, entry);
  const MenuEntry* gpu = find(all, "Pause GPU only");
  QVERIFY(gpu != nullptr);
  QCOMPARE(gpu->properties["enabled"], QVariant(false));
  for (const char* entry : {"Finish", "Open", "Quit"}) QVERIFY2(find(all, entry) != nullptr, entry);
}

void TestTrayNotifier::contribute_is_switched_over_the_bus() {
  choose(find(menu(), "Contribute")->id);
  QVERIFY(until_command("contribute off"));
  QTRY_COMPARE_WITH_TIMEOUT(find(menu(), "Contribute")->properties["toggle-state"].toInt(), 0, generous_ms);
  const QJsonObject paused =
      subject_->until([](const QJsonObject& now) { return now["icon"].toString() == "tray-paused"; });
  QVERIFY(paused["tooltip"].toString().contains("Paused"));
  choose(find(menu(), "Contribute")->id);
  QVERIFY(until_command("contribute on"));
  QTRY_COMPARE_WITH_TIMEOUT(find(menu(), "Contribute")->properties["toggle-state"].toInt(), 1, generous_ms);
}

void TestTrayNotifier::snooze_ends_by_itself() {
  const MenuEntry all = menu();
  choose(find(*find(all, "Snooze"), "1 hour")->id);
  QVERIFY(until_command("snooze"));
  QCOMPARE(last_command(), QString("snooze 3600"));
  choose(find(*find(all, "Snooze"), "Until tomorrow")->id);
  state_ = subject_->until([this](const QJsonObject& now) {
    return now["commands"].toArray().size() > state_["commands"].toArray().size();
  });
  const int seconds = last_command().section(' ', 1).toInt();
  QVERIFY2(seconds > 0 && seconds <= 31 * 3600, qPrintable(last_command()));
}

void TestTrayNotifier::a_click_asks_for_the_window() {
  call("/StatusNotifierItem", "org.kde.StatusNotifierItem", "Activate", {10, 10});
  QVERIFY(!subject_->until([](const QJsonObject& now) { return now["toggled"].toInt() == 1; }).isEmpty());
  choose(find(menu(), "Open")->id);
  QVERIFY(!subject_->until([](const QJsonObject& now) { return now["opened"].toInt() == 1; }).isEmpty());
}

void TestTrayNotifier::a_host_that_goes_and_comes_back_is_used() {
  watcher_->set_host(false);  // the panel's tray is switched off
  QVERIFY(until_available(*subject_, false));
  watcher_->set_host(true);
  QVERIFY(until_available(*subject_, true));
  watcher_->go();  // the panel crashes, and is started again
  QVERIFY(until_available(*subject_, false));
  QVERIFY(watcher_->come(true));
  QVERIFY(until_available(*subject_, true));
  QTRY_VERIFY_WITH_TIMEOUT(!watcher_->items().isEmpty(), generous_ms);
  QTRY_VERIFY_WITH_TIMEOUT(find(menu(), "Contribute") != nullptr, generous_ms);
}

// At login, the app may be there before the panel: first there is nobody, then a watcher without a host.
void TestTrayNotifier::a_host_that_comes_later_is_used() {
  SessionBus bus(server_->environment());
  QVERIFY(bus.running());
  NotifierWatcher watcher(bus.connection());
  const auto subject = start_subject(bus);
  QVERIFY(until_available(*subject, false));
  QVERIFY(watcher.come(false));
  // A change of the state is announced after the watcher was seen: still no tray.
  subject->say("state paused");
  QTRY_COMPARE_WITH_TIMEOUT(subject->latest()["icon"].toString(), QString("tray-paused"), generous_ms);
  QCOMPARE(subject->latest()["available"], QJsonValue(false));
  QVERIFY(watcher.items().isEmpty());
  watcher.set_host(true);
  QVERIFY(until_available(*subject, true));
  QTRY_COMPARE_WITH_TIMEOUT(watcher.items().size(), 1, generous_ms);
  QDBusMessage activate = QDBusMessage::createMethodCall(watcher.items()[0], "/StatusNotifierItem",
                                                         "org.kde.StatusNotifierItem", "Activate");
  activate.setArguments({10, 10});
  bus.connection().call(activate, QDBus::BlockWithGui, generous_ms);
  QVERIFY(!subject->until([](const QJsonObject& now) { return now["toggled"].toInt() == 1; }).isEmpty());
}

void TestTrayNotifier::quit_quits() {
  choose(find(menu(), "Quit")->id);
  QTRY_VERIFY_WITH_TIMEOUT(!subject_->running() || subject_->process().waitForFinished(100), generous_ms);
  QCOMPARE(subject_->process().exitCode(), 0);
}

NS_TEST(TestTrayNotifier)
#include "test_tray_notifier.moc"
