// The inhibitor lock against a logind of the test's own, on a bus of its own: when it is held, when it is
// released, and what happens without a bus or a logind.
#include <QtTest>

#include "core/platform/power/sleep_watch.h"
#include "tests/support/fake_logind.h"
#include "tests/support/private_bus.h"
#include "tests/support/test_main.h"

using namespace neuroshard;            // NOLINT
using namespace neuroshard::platform;  // NOLINT

class TestSleepWatch : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup();
  void the_lock_is_held_until_the_owner_releases_it();
  void a_slow_owner_loses_the_lock_before_the_limit();
  void a_lock_is_taken_again_after_resume();
  void a_cancelled_shutdown_ends_with_a_new_lock();
  void a_restarted_logind_gets_a_new_request();
  void a_resume_that_is_missed_is_found_out();
  void another_program_can_not_announce();
  void a_late_logind_is_found();
  void without_a_bus_the_log_says_so_once();
  void a_lost_bus_is_no_error();
  void the_bus_comes_from_the_environment();

 private:
  struct Lines final : Logger {
    void write(const LogRecord& record) override { lines.append(QString::fromStdString(record.message)); }
    QStringList lines;
  };

  void start_logind(std::chrono::milliseconds longest_delay = std::chrono::seconds(50)) {
    logind_ = std::make_unique<test::FakeLogind>(bus_->address(), longest_delay);
    QVERIFY(logind_->ready());
  }
  void start_watch() { start_watch_at(bus_->address()); }
  void start_watch_at(const std::string& address, Duration retry = std::chrono::milliseconds(20)) {
    watch_ = make_sleep_watch({address, "a test", "to see the lock", retry}, clock_, logger_);
  }
  // One turn of each side. True as soon as `held` locks are held.
  bool pump_until_held(std::size_t held) {
    pump();
    return logind_->held() == held;
  }
  void pump() {
    if (const auto event = watch_->poll()) events_.push_back(*event);
    if (logind_) logind_->process();
  }
  bool pump_until_events(std::size_t count) {
    pump();
    return events_.size() >= count;
  }

  std::unique_ptr<test::PrivateBus> bus_;
  std::unique_ptr<test::FakeLogind> logind_;
  std::unique_ptr<SleepWatch> watch_;
  std::vector<SleepEvent> events_;
  Lines logger_;
  SystemClock clock_;
};

void TestSleepWatch::init() {
  if (!test::PrivateBus::installed()) QSKIP("dbus-daemon is not installed");
  bus_ = std::make_unique<test::PrivateBus>();
  QVERIFY(!bus_->address().empty());
}

void TestSleepWatch::cleanup() {
  watch_.reset();
  logind_.reset();
  bus_.reset();
  events_.clear();
  logger_.lines.clear();
}

void TestSleepWatch::the_lock_is_held_until_the_owner_releases_it() {
  start_logind();
  start_watch();
  QTRY_VERIFY(pump_until_held(1));
  const test::FakeLogind::Lock& lock = logind_->given().front();
  QCOMPARE(lock.what, std::string("sleep:shutdown"));
  QCOMPARE(lock.mode, std::string("delay"));
  QCOMPARE(lock.who, std::string("a test"));
  QCOMPARE(lock.why, std::string("to see the lock"));
  watch_->release();  // nothing was announced
  QVERIFY(pump_until_held(1));

  const MonotonicTime before = clock_.monotonic_now();
  logind_->prepare_for_sleep(true);
  QTRY_VERIFY(pump_until_events(1));
  QVERIFY(events_.front().kind == SleepEventKind::Suspending);
  // Below logind's own limit, and not by much.
  QVERIFY(events_.front().deadline < before + std::chrono::seconds(50));
  QVERIFY(events_.front().deadline > before + std::chrono::seconds(30));
  QVERIFY(pump_until_held(1));
  watch_->release();
  QTRY_VERIFY(pump_until_held(0));
  QCOMPARE(logind_->given().size(), std::size_t{1});
}

void TestSleepWatch::a_slow_owner_loses_the_lock_before_the_limit() {
  start_logind(std::chrono::milliseconds(500));
  start_watch();
  QTRY_VERIFY(pump_until_held(1));
  const MonotonicTime before = clock_.monotonic_now();
  logind_->prepare_for_shutdown(true);
  QTRY_VERIFY(pump_until_events(1));
  QVERIFY(events_.front().kind == SleepEventKind::ShuttingDown);
  QTRY_VERIFY(pump_until_held(0));
  QVERIFY(clock_.monotonic_now() >= events_.front().deadline);
  QVERIFY(events_.front().deadline - before < std::chrono::milliseconds(500));
}

void TestSleepWatch::a_lock_is_taken_again_after_resume() {
  start_logind();
  start_watch();
  for (std::size_t nights = 1; nights <= 3; ++nights) {
    QTRY_VERIFY(pump_until_held(1));
    QCOMPARE(logind_->given().size(), nights);
    logind_->prepare_for_sleep(true);
    QTRY_VERIFY(pump_until_events(2 * nights - 1));
    watch_->release();
    QTRY_VERIFY(pump_until_held(0));
    logind_->prepare_for_sleep(false);
    QTRY_VERIFY(pump_until_events(2 * nights));
    QVERIFY(events_.back().kind == SleepEventKind::Resumed);
  }
  // A resume before the owner was prepared.
  QTRY_VERIFY(pump_until_held(1));
  logind_->prepare_for_sleep(true);
  logind_->prepare_for_sleep(false);
  QTRY_VERIFY(pump_until_events(8));
  watch_->release();  // too late: the lock is for the next suspend
  QTRY_VERIFY(pump_until_held(1));
}

void TestSleepWatch::a_cancelled_shutdown_ends_with_a_new_lock() {
  start_logind();
  start_watch();
  QTRY_VERIFY(pump_until_held(1));
  logind_->prepare_for_shutdown(true);
  QTRY_VERIFY(pump_until_events(1));
  watch_->release();
  logind_->prepare_for_shutdown(false);
  QTRY_VERIFY(pump_until_events(2));
  QVERIFY(events_.back().kind == SleepEventKind::ShutdownCancelled);
  QTRY_VERIFY(pump_until_held(1));
}

void TestSleepWatch::a_restarted_logind_gets_a_new_request() {
  start_logind();
  start_watch();
  QTRY_VERIFY(pump_until_held(1));
  logind_.reset();
  start_logind();
  QTRY_VERIFY(pump_until_held(1));
  QVERIFY(events_.empty());
  logind_->prepare_for_sleep(true);
  QTRY_VERIFY(pump_until_events(1));
  watch_->release();
  QTRY_VERIFY(pump_until_held(0));
}

// logind ends while the computer suspends. The next one gives a lock only when nothing is under way.
void TestSleepWatch::a_resume_that_is_missed_is_found_out() {
  start_logind();
  start_watch();
  QTRY_VERIFY(pump_until_held(1));
  logind_->prepare_for_sleep(true);
  QTRY_VERIFY(pump_until_events(1));
  watch_->release();
  logind_.reset();
  start_logind();
  QTRY_VERIFY(pump_until_events(2));
  QVERIFY(events_.back().kind == SleepEventKind::Resumed);
  QTRY_VERIFY(pump_until_held(1));
}

void TestSleepWatch::another_program_can_not_announce() {
  start_logind();
  start_watch();
  QTRY_VERIFY(pump_until_held(1));
  // A signal that names its receiver arrives whatever the receiver subscribed to.
  sd_bus* other = nullptr;
  QVERIFY(sd_bus_new(&other) >= 0 && sd_bus_set_address(other, bus_->address().c_str()) >= 0 &&
          sd_bus_set_bus_client(other, 1) >= 0 && sd_bus_start(other) >= 0);
  const char* name = nullptr;
  QVERIFY(sd_bus_get_unique_name(other, &name) >= 0);
  const int own = std::stoi(std::string(name).substr(std::string(":1.").size()));
  for (int i = 0; i < own; ++i) {
    sd_bus_message* signal = nullptr;
    QVERIFY(sd_bus_message_new_signal(other, &signal, "/org/freedesktop/login1",
                                      "org.freedesktop.login1.Manager", "PrepareForSleep") >= 0);
    QVERIFY(sd_bus_message_set_destination(signal, (":1." + std::to_string(i)).c_str()) >= 0);
    QVERIFY(sd_bus_message_append(signal, "b", 1) >= 0);
    QVERIFY(sd_bus_send(other, signal, nullptr) >= 0);
    sd_bus_message_unref(signal);
  }
  // The answer shows that the bus has passed the signals on.
  QVERIFY(sd_bus_request_name(other, "org.example.other", 0) >= 0);
  sd_bus_flush_close_unref(other);
  logind_->prepare_for_shutdown(true);
  QTRY_VERIFY(pump_until_events(1));
  QVERIFY(events_.front().kind == SleepEventKind::ShuttingDown);
}

void TestSleepWatch::a_late_logind_is_found() {
  start_watch();
  QTRY_VERIFY((pump(), !logger_.lines.isEmpty()));
  QVERIFY2(logger_.lines.front().contains("gives no notice"), qPrintable(logger_.lines.join('\n')));
  start_logind();
  QTRY_VERIFY(pump_until_held(1));
  QTRY_COMPARE((pump(), logger_.lines.size()), 2);
  QVERIFY2(logger_.lines.back().contains("waits for this program"), qPrintable(logger_.lines.join('\n')));
}

void TestSleepWatch::without_a_bus_the_log_says_so_once() {
  const QTemporaryDir folder;
  const std::string nowhere = "unix:path=" + folder.filePath("socket").toStdString();
  start_watch_at(nowhere);
  const MonotonicTime end = clock_.monotonic_now() + std::chrono::milliseconds(200);  // ten more tries
  while (clock_.monotonic_now() < end) pump();
  QVERIFY(events_.empty());
  QCOMPARE(logger_.lines.size(), 1);
  QVERIFY2(logger_.lines.front().contains("no system bus at " + QString::fromStdString(nowhere)),
           qPrintable(logger_.lines.front()));
}

void TestSleepWatch::a_lost_bus_is_no_error() {
  start_logind();
  start_watch();
  QTRY_COMPARE((pump(), logger_.lines.size()), 1);  // the lock has arrived
  bus_->stop();
  QTRY_VERIFY((pump(), logger_.lines.size() == 2));
  QVERIFY(logger_.lines.back().contains("gives no notice"));
  QTRY_VERIFY(logind_->held() == 0);
  QVERIFY(events_.empty());
}

void TestSleepWatch::the_bus_comes_from_the_environment() {
  QCOMPARE(system_bus_address([](const char*) { return std::string(); }),
           std::string("unix:path=/run/dbus/system_bus_socket"));
  QCOMPARE(system_bus_address([](const char* name) {
             return std::string(name) == "DBUS_SYSTEM_BUS_ADDRESS" ? "unix:path=/a" : "";
           }),
           std::string("unix:path=/a"));
}

NS_TEST(TestSleepWatch)
#include "test_sleep_watch.moc"
