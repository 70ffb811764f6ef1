// Notices to the other members around a suspend and a shutdown, and the release of the computer.
#include <QtTest>
#include <deque>

#include "core/runtime/sleep_notice.h"
#include "tests/support/test_main.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT
using platform::SleepEvent;
using platform::SleepEventKind;

namespace {

// The test's side of the watch.
struct Computer {
  std::deque<SleepEvent> events;
  int released = 0;
};

class FakeWatch final : public platform::SleepWatch {
 public:
  explicit FakeWatch(Computer& computer) : computer_(computer) {}
  std::optional<SleepEvent> poll() override {
    if (computer_.events.empty()) return std::nullopt;
    const SleepEvent event = computer_.events.front();
    computer_.events.pop_front();
    return event;
  }
  void release() override { ++computer_.released; }

 private:
  Computer& computer_;
};

class FakePresence final : public Presence {
 public:
  void announce_away(MonotonicTime deadline, std::function<void()> done) override {
    said.append("away");
    deadlines.push_back(deadline);
    when_done = std::move(done);
  }
  void announce_back() override { said.append("back"); }

  QStringList said;
  std::vector<MonotonicTime> deadlines;
  std::function<void()> when_done;
};

struct Lines final : Logger {
  void write(const LogRecord& record) override { lines.append(QString::fromStdString(record.message)); }
  QStringList lines;
};

}  // namespace

class TestSleepNotice : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup();
  void the_computer_waits_until_the_others_know();
  void a_resume_brings_the_node_back();
  void a_resume_before_the_others_know();
  void the_wait_is_bounded();

 private:
  void announce(SleepEventKind kind, Duration limit = std::chrono::seconds(4)) {
    computer_.events.push_back({kind, clock_.monotonic_now() + limit});
    notice_->poll();
  }

  Computer computer_;
  FakePresence presence_;
  Lines logger_;
  ManualClock clock_;
  int saved_ = 0;
  std::unique_ptr<SleepNotice> notice_;
};

void TestSleepNotice::init() {
  notice_ = std::make_unique<SleepNotice>(
      std::make_unique<FakeWatch>(computer_), presence_, [this] { ++saved_; }, clock_, logger_);
}

void TestSleepNotice::cleanup() {
  notice_.reset();
  computer_ = {};
  presence_.said.clear();
  presence_.deadlines.clear();
  logger_.lines.clear();
  saved_ = 0;
}

void TestSleepNotice::the_computer_waits_until_the_others_know() {
  notice_->poll();
  QVERIFY(presence_.said.isEmpty());
  for (const SleepEventKind kind : {SleepEventKind::Suspending, SleepEventKind::ShuttingDown}) {
    cleanup();
    init();
    announce(kind);
    QCOMPARE(presence_.said, QStringList{"away"});
    QVERIFY(presence_.deadlines.front() == clock_.monotonic_now() + std::chrono::seconds(4));
    QCOMPARE(saved_, 1);
    QCOMPARE(logger_.lines.size(), 1);
    notice_->poll();
    QCOMPARE(computer_.released, 0);
    presence_.when_done();
    notice_->poll();
    notice_->poll();
    QCOMPARE(computer_.released, 1);
    QCOMPARE(presence_.said, QStringList{"away"});
  }
}

void TestSleepNotice::a_resume_brings_the_node_back() {
  announce(SleepEventKind::Suspending);
  presence_.when_done();
  notice_->poll();
  announce(SleepEventKind::Resumed);
  announce(SleepEventKind::ShuttingDown);
  announce(SleepEventKind::ShutdownCancelled);
  const QStringList expected{"away", "back", "away", "back"};
  QCOMPARE(presence_.said, expected);
  QCOMPARE(logger_.lines.size(), 4);
}

void TestSleepNotice::a_resume_before_the_others_know() {
  announce(SleepEventKind::Suspending);
  announce(SleepEventKind::Resumed);
  presence_.when_done();  // late
  notice_->poll();
  QCOMPARE(computer_.released, 0);
  announce(SleepEventKind::Suspending);
  QCOMPARE(computer_.released, 0);
  presence_.when_done();
  notice_->poll();
  QCOMPARE(computer_.released, 1);
}

void TestSleepNotice::the_wait_is_bounded() {
  announce(SleepEventKind::Suspending, std::chrono::minutes(5));
  QVERIFY(presence_.deadlines.front() == clock_.monotonic_now() + std::chrono::seconds(10));
}

NS_TEST(TestSleepNotice)
#include "test_sleep_notice.moc"
