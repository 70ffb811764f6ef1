// The program itself and a tray that is not there yet: as the session starts it, before the panel. On an X
// server of its own with a window manager, and a session bus on which this program is the panel.
#include <xcb/xcb.h>

#include <QTemporaryDir>
#include <QtTest>
#include <cstdlib>

#include "tests/gui/support/desktop_fixture.h"
#include "tests/gui/support/notifier_watcher.h"
#include "tests/gui/support/patience.h"
#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

// ICCCM 4.1.3.1. A window that is hidden is not in the manager's list.
enum class Shown : std::uint32_t { Nowhere = 0, Normal = 1, Minimised = 3 };

// The window manager's list of windows.
class Manager {
 public:
  explicit Manager(const QString& display)
      : connection_(xcb_connect(display.toLatin1().constData(), nullptr)) {
    root_ = xcb_setup_roots_iterator(xcb_get_setup(connection_)).data->root;
    list_ = atom("_NET_CLIENT_LIST");
    state_ = atom("WM_STATE");
    check_ = atom("_NET_SUPPORTING_WM_CHECK");
  }
  ~Manager() { xcb_disconnect(connection_); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // It has announced itself. A window that is mapped before is not known to it as minimised.
  bool ready() const { return !property(root_, check_).isEmpty(); }
  // Of its first window.
  Shown shown() const {
    const auto windows = property(root_, list_);
    if (windows.isEmpty()) return Shown::Nowhere;
    const auto state = property(windows[0], state_);
    return state.isEmpty() ? Shown::Nowhere : static_cast<Shown>(state[0]);
  }

 private:
  xcb_atom_t atom(const std::string& name) const {
    const auto cookie = xcb_intern_atom(connection_, 0, static_cast<std::uint16_t>(name.size()), name.data());
    const std::unique_ptr<xcb_intern_atom_reply_t, Free> reply(
        xcb_intern_atom_reply(connection_, cookie, nullptr));
    return reply->atom;
  }
  QList<std::uint32_t> property(xcb_window_t window, xcb_atom_t name) const {
    const auto cookie = xcb_get_property(connection_, 0, window, name, XCB_GET_PROPERTY_TYPE_ANY, 0, 64);
    const std::unique_ptr<xcb_get_property_reply_t, Free> reply(
        xcb_get_property_reply(connection_, cookie, nullptr));
    if (!reply || reply->format != 32) return {};
    const auto* values = static_cast<const std::uint32_t*>(xcb_get_property_value(reply.get()));
    return QList<std::uint32_t>(values, values + reply->value_len);
  }

  xcb_connection_t* connection_;
  xcb_window_t root_;
  xcb_atom_t list_, state_, check_;
};

}  // namespace

class TestAppTray : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void init();
  void cleanup();
  void started_by_the_session_it_waits_for_the_tray();
  void with_a_tray_there_is_no_window();

 private:
  void start_app() {
    app_ =
        std::make_unique<Helper>(qEnvironmentVariable("NS_BIN_DIR") + "/neuroshard",
                                 QStringList{"--minimized", "--data-dir", lab_.path("origin")}, environment_);
  }
  bool becomes(Shown wanted) const {
    return QTest::qWaitFor([&] { return manager_->shown() == wanted; }, patience_.left_ms());
  }
  // As a click on its icon.
  void press_icon() const {
    QDBusMessage activate = QDBusMessage::createMethodCall(
        watcher_->items().constLast(), "/StatusNotifierItem", "org.kde.StatusNotifierItem", "Activate");
    activate.setArguments({10, 10});
    bus_->connection().call(activate, QDBus::BlockWithGui, patience_.left_ms());
  }

  const Patience patience_;
  QTemporaryDir folder_;
  TrainingLab lab_;
  QProcessEnvironment environment_;
  std::unique_ptr<XServer> server_;
  std::unique_ptr<Helper> window_manager_, app_;
  std::unique_ptr<Manager> manager_;
  std::unique_ptr<SessionBus> bus_;
  std::unique_ptr<NotifierWatcher> watcher_;
};

void TestAppTray::initTestCase() {
  const QString missing = missing_programs({"Xvfb", "openbox", "dbus-daemon"});
  QVERIFY2(missing.isEmpty(), qPrintable(missing));
  const QByteArray problem = lab_.prepare();
  QVERIFY2(problem.isEmpty(), problem.constData());
}

void TestAppTray::init() {
  server_ = std::make_unique<XServer>();
  QVERIFY(server_->running());
  environment_ = server_->environment();
  QVERIFY(give_private_folders(folder_.path(), &environment_));
  window_manager_ = std::make_unique<Helper>("openbox", QStringList{}, environment_);
  manager_ = std::make_unique<Manager>(server_->display());
  QTRY_VERIFY_WITH_TIMEOUT(manager_->ready(), patience_.left_ms());
  bus_ = std::make_unique<SessionBus>(environment_);
  QVERIFY(bus_->running());
  environment_.insert("DBUS_SESSION_BUS_ADDRESS", bus_->address());
  watcher_ = std::make_unique<NotifierWatcher>(bus_->connection());
}

void TestAppTray::cleanup() {
  if (QTest::currentTestFailed() && manager_) {
    tell_lines({QString("shown: %1, window manager %2, app %3, icons %4")
                    .arg(static_cast<int>(manager_->shown()))
                    .arg(window_manager_->running())
                    .arg(app_ && app_->running())
                    .arg(watcher_ ? watcher_->items().size() : -1),
                "--- the app", QString::fromUtf8(app_ ? app_->errors() : QByteArray()).right(3000)});
  }
  app_.reset();  // with SIGTERM: it stops the core that it started
  watcher_.reset();
  bus_.reset();
  manager_.reset();
  window_manager_.reset();
  server_.reset();
}

void TestAppTray::started_by_the_session_it_waits_for_the_tray() {
  start_app();
  QVERIFY(becomes(Shown::Minimised));  // never lost
  QVERIFY(watcher_->come(true));
  QTRY_VERIFY_WITH_TIMEOUT(!watcher_->items().isEmpty(), patience_.left_ms());
  QVERIFY(becomes(Shown::Nowhere));  // it has its icon now
  press_icon();
  QVERIFY(becomes(Shown::Normal));
  watcher_->go();
  // A window that somebody opened stays as it is, whatever becomes of the tray.
  QVERIFY(watcher_->come(true));
  QTRY_VERIFY_WITH_TIMEOUT(!watcher_->items().isEmpty(), patience_.left_ms());
  QCOMPARE(manager_->shown(), Shown::Normal);
}

void TestAppTray::with_a_tray_there_is_no_window() {
  QVERIFY(watcher_->come(true));
  start_app();
  QTRY_VERIFY_WITH_TIMEOUT(!watcher_->items().isEmpty(), patience_.left_ms());
  QCOMPARE(manager_->shown(), Shown::Nowhere);
  // The panel crashes: the window is there to be found, and goes again with the new one.
  watcher_->go();
  QVERIFY(becomes(Shown::Minimised));
  QVERIFY(watcher_->come(true));
  QVERIFY(becomes(Shown::Nowhere));
}

NS_TEST(TestAppTray)
#include "test_app_tray.moc"
