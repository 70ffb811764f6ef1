// The choice of a slot's holder, on virtual time: holders of different latency, rate and honesty, that share
// a line among their calls, hang, refuse, die and come back.
#include <QtTest>
#include <map>
#include <numeric>

#include "core/net/peer_channel.h"
#include "core/net/slot_router.h"
#include "core/sim/world.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

constexpr auto method = static_cast<Method>(60'000);
using neuroshard::test::millisecond;
using neuroshard::test::second;
const HeldSlot layer{SlotKind::Layer, 3, 0};

NodeId id_of(std::size_t number) {
  NodeId id{};
  id[0] = static_cast<std::uint8_t>(number);
  id[1] = static_cast<std::uint8_t>(number >> 8);
  return id;
}

struct Behaviour {
  Duration latency = 20 * millisecond;
  double bytes_per_second = 10e6;
  double claims = 0;
  bool dead = false;                 // says nothing, ever
  std::optional<ErrorCode> refuses;  // says this instead
  std::size_t hangs_every = 0;       // each so-manieth call takes ten seconds more
  std::size_t calls = 0;
  MonotonicTime line_free{};  // one answer after the other
};

class Holders final : public PeerCaller {
 public:
  explicit Holders(sim::World& world) : world_(world), executor_(world) {}
  Behaviour& operator[](std::size_t number) { return all_[number]; }
  std::vector<SlotHolder> list() const {
    std::vector<SlotHolder> holders;
    for (const auto& [number, b] : all_) holders.push_back({{id_of(number), {}}, b.claims});
    return holders;
  }
  void call(const Contact& peer, Method, Bytes request, Duration deadline, CallDone done) override {
    const std::size_t number = peer.id[0] + (std::size_t(peer.id[1]) << 8);
    Behaviour& b = all_.at(number);
    ++b.calls;
    const MonotonicTime now = world_.now();
    if (b.dead) return later(deadline, std::move(done), make_error(ErrorCode::Timeout, "no answer"));
    if (b.refuses) return later(b.latency, std::move(done), make_error(*b.refuses, "no"));
    const auto work = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(double(request.size()) / b.bytes_per_second));
    b.line_free = std::max(b.line_free, now) + work;
    Duration takes = b.line_free - now + b.latency;
    if (b.hangs_every != 0 && b.calls % b.hangs_every == 0) takes += 10 * second;
    if (takes > deadline)
      return later(deadline, std::move(done), make_error(ErrorCode::Timeout, "no answer in time"));
    later(takes, std::move(done), Bytes{1});
  }
  Executor& executor() { return executor_; }

 private:
  void later(Duration after, CallDone done, Expected<Bytes> answer) {
    const auto kept = std::make_shared<std::unique_ptr<TimerHandle>>();
    *kept = executor_.post_after(
        after, [kept, done = std::move(done), answer = std::move(answer)] { done(answer); });
    timers_.push_back(kept);
  }
  sim::World& world_;
  sim::HostExecutor executor_;
  std::map<std::size_t, Behaviour> all_;
  std::vector<std::shared_ptr<std::unique_ptr<TimerHandle>>> timers_;
};

struct Lab {
  explicit Lab(RouterLimits limits = {}) { make(limits); }
  void make(RouterLimits limits) {
    router = std::make_unique<SlotRouter>(
        holders, holders.executor(), world.clock(), [this](const HeldSlot&) { return holders.list(); },
        Rng(7), limits);
  }
  // One call and its outcome; how long it took.
  Expected<SlotAnswer> ask(std::size_t bytes = 1000, bool repeatable = true,
                           std::optional<NodeId> only = std::nullopt) {
    std::optional<Expected<SlotAnswer>> outcome;
    const MonotonicTime began = world.now();
    router->call({layer, method, Bytes(bytes), 0, 60 * second, repeatable, only},
                 [&](Expected<SlotAnswer> result) { outcome.emplace(std::move(result)); });
    world.run_until([&] { return outcome.has_value(); }, world.now() + 600 * second);
    took = world.now() - began;
    return outcome ? std::move(*outcome) : make_error(ErrorCode::Internal, "no outcome");
  }
  void rest(Duration time) {
    bool over = false;
    const auto timer = holders.executor().post_after(time, [&] { over = true; });
    world.run_until([&] { return over; }, world.now() + time * 2);
  }

  sim::World world;
  Holders holders{world};
  std::unique_ptr<SlotRouter> router;
  Duration took{};
};

}  // namespace

class TestSlotRouter : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_fastest_is_asked();
  void the_size_decides_between_latency_and_rate();
  void calls_spread_over_equal_holders();
  void the_dead_are_passed_over_and_rest();
  void who_is_back_is_found();
  void late_calls_are_hedged_within_the_budget();
  void what_must_not_be_done_twice_is_not();
  void a_backward_pass_goes_to_its_holder();
  void a_claim_is_good_for_a_first_call_only();
  void who_lacks_the_slot_is_not_asked_again_soon();
  void nobody_to_ask_is_told();
  void memory_is_bounded();
  void nothing_is_called_after_its_end();
};

void TestSlotRouter::the_fastest_is_asked() {
  Lab lab;
  const Duration latencies[] = {300 * millisecond, 20 * millisecond, 100 * millisecond};
  for (std::size_t i = 0; i < 3; ++i) lab.holders[i].latency = latencies[i];
  for (int i = 0; i < 300; ++i) QVERIFY(lab.ask().ok());
  QVERIFY2(lab.holders[1].calls > 270, qPrintable(QString::number(lab.holders[1].calls)));
  QVERIFY(lab.holders[0].calls >= 1 && lab.holders[2].calls >= 1);  // else they would not be known
  for (const HolderView& view : lab.router->holders()) {
    if (view.id != id_of(1)) continue;
    QVERIFY(view.latency > 15 * millisecond && view.latency < 25 * millisecond);
    QVERIFY(view.success > 0.99 && view.rests == Duration(0));
  }
}

void TestSlotRouter::the_size_decides_between_latency_and_rate() {
  Lab lab;
  lab.holders[0].latency = 10 * millisecond;
  lab.holders[0].bytes_per_second = 1e6;
  lab.holders[1].latency = 200 * millisecond;
  lab.holders[1].bytes_per_second = 50e6;
  constexpr std::size_t small = 1000, large = 4'000'000;
  for (int i = 0; i < 30; ++i) {  // what is known afterwards was measured on both
    for (std::size_t only = 0; only < 2; ++only)
      QVERIFY(lab.ask(i % 2 == 0 ? small : large, true, id_of(only)).ok());
  }
  for (int i = 0; i < 50; ++i) {
    for (std::size_t n = 0; n < 2; ++n) lab.holders[n].calls = 0;
    const std::uint64_t explored = lab.router->counts().explored;
    QVERIFY(lab.ask(i % 2 == 0 ? small : large).ok());
    if (lab.router->counts().explored != explored) continue;
    QCOMPARE(lab.holders[i % 2 == 0 ? 0 : 1].calls, std::size_t(1));
  }
}

void TestSlotRouter::calls_spread_over_equal_holders() {
  Lab lab;
  for (std::size_t i = 0; i < 4; ++i) lab.holders[i].bytes_per_second = 1e6;
  for (int i = 0; i < 8; ++i) QVERIFY(lab.ask(100'000).ok());
  for (std::size_t i = 0; i < 4; ++i) lab.holders[i].calls = 0;
  int answers = 0;
  const MonotonicTime began = lab.world.now();
  for (int i = 0; i < 80; ++i)
    lab.router->call({layer, method, Bytes(100'000), 0, 600 * second, true, std::nullopt},
                     [&](const Expected<SlotAnswer>& answer) { answers += answer.ok(); });
  QVERIFY(lab.world.run_until([&] { return answers == 80; }, began + 600 * second));
  // One alone needs eight seconds.
  const double seconds = std::chrono::duration<double>(lab.world.now() - began).count();
  QVERIFY2(seconds < 3, qPrintable(QString::number(seconds)));
  for (std::size_t i = 0; i < 4; ++i)
    QVERIFY2(lab.holders[i].calls > 12 && lab.holders[i].calls < 30,
             qPrintable(QString::number(lab.holders[i].calls)));
}

void TestSlotRouter::the_dead_are_passed_over_and_rest() {
  Lab lab;
  lab.holders[0].latency = 10 * millisecond;
  lab.holders[1].latency = 50 * millisecond;
  for (int i = 0; i < 20; ++i) QVERIFY(lab.ask().ok());
  lab.holders[0].dead = true;
  lab.holders[0].calls = 0;
  const auto answer = lab.ask();
  QVERIFY(answer.ok() && answer->from == id_of(1));
  QVERIFY(lab.took < second);  // hedged: nobody waits for the deadline
  lab.rest(70 * second);       // the dead one's deadline passes
  const std::size_t asked = lab.holders[0].calls;
  QCOMPARE(asked, std::size_t(1));
  // A failure that is known costs nothing any more.
  for (int i = 0; i < 10; ++i) {
    QVERIFY(lab.ask().ok());
    QVERIFY(lab.took < 100 * millisecond || lab.holders[0].calls > asked);
  }
  for (int minute = 0; minute < 10; ++minute) {
    for (int i = 0; i < 20; ++i) QVERIFY(lab.ask().ok());
    lab.rest(60 * second);
  }
  QVERIFY2(lab.holders[0].calls < 12, qPrintable(QString::number(lab.holders[0].calls)));
}

void TestSlotRouter::who_is_back_is_found() {
  Lab lab;
  lab.holders[0].latency = 10 * millisecond;
  lab.holders[1].latency = 400 * millisecond;
  for (int i = 0; i < 20; ++i) QVERIFY(lab.ask().ok());
  lab.holders[0].dead = true;
  for (int i = 0; i < 5; ++i) {
    QVERIFY(lab.ask().ok());
    lab.rest(70 * second);
  }
  lab.holders[0].dead = false;
  lab.holders[0].calls = lab.holders[1].calls = 0;
  for (int i = 0; i < 1500; ++i) {
    QVERIFY(lab.ask().ok());
    lab.rest(second);
  }
  QVERIFY2(lab.holders[0].calls > 900, qPrintable(QString::number(lab.holders[0].calls)));
}

void TestSlotRouter::late_calls_are_hedged_within_the_budget() {
  const auto run = [](double hedges, std::uint64_t* made) {
    RouterLimits limits;
    limits.hedges = hedges;
    limits.most_hedges = hedges > 0 ? 5 : 0;
    limits.explore = 0;
    Lab lab(limits);
    for (std::size_t i = 0; i < 2; ++i) lab.holders[i].hangs_every = 40;
    std::vector<Duration> times;
    for (int i = 0; i < 1000; ++i) {
      if (!lab.ask().ok()) return Duration(-1);
      times.push_back(lab.took);
    }
    *made = lab.router->counts().hedges;
    std::sort(times.begin(), times.end());
    return times[times.size() * 99 / 100];
  };
  std::uint64_t made = 0, none = 0;
  const Duration hedged = run(0.05, &made);
  QVERIFY2(hedged > Duration(0) && hedged < second, qPrintable(QString::number(hedged.count())));
  QVERIFY2(made >= 10 && made <= 56, qPrintable(QString::number(made)));
  const Duration plain = run(0, &none);
  QVERIFY2(plain > 9 * second, qPrintable(QString::number(plain.count())));  // the control
  QCOMPARE(none, 0u);
  // A budget that is too small for all late calls is kept all the same.
  static_cast<void>(run(0.005, &made));
  QVERIFY2(made <= 11, qPrintable(QString::number(made)));
}

void TestSlotRouter::what_must_not_be_done_twice_is_not() {
  Lab lab;
  for (std::size_t i = 0; i < 3; ++i) lab.holders[i].dead = true;
  const auto late = lab.ask(1000, false);
  QVERIFY(!late.ok());
  QCOMPARE(late.error().code, ErrorCode::Timeout);
  QCOMPARE(lab.holders[0].calls + lab.holders[1].calls + lab.holders[2].calls, std::size_t(1));
  // A busy holder has not done a call that it refuses.
  Lab busy;
  busy.holders[0].refuses = ErrorCode::Exhausted;
  busy.holders[0].claims = 1e9;  // asked first
  busy.holders[1].latency = 50 * millisecond;
  const auto answer = busy.ask(100'000, false);
  QVERIFY(answer.ok() && answer->from == id_of(1));
  QCOMPARE(busy.holders[0].calls, std::size_t(1));
  // A malformed request is malformed for every holder.
  Lab wrong;
  for (std::size_t i = 0; i < 3; ++i) wrong.holders[i].refuses = ErrorCode::InvalidArgument;
  QCOMPARE(wrong.ask().error().code, ErrorCode::InvalidArgument);
  QCOMPARE(wrong.holders[0].calls + wrong.holders[1].calls + wrong.holders[2].calls, std::size_t(1));
}

void TestSlotRouter::a_backward_pass_goes_to_its_holder() {
  Lab lab;
  lab.holders[0].latency = 10 * millisecond;
  lab.holders[1].latency = 900 * millisecond;
  for (int i = 0; i < 10; ++i) {
    const auto answer = lab.ask(1000, false, id_of(1));
    QVERIFY(answer.ok() && answer->from == id_of(1));
  }
  QCOMPARE(lab.holders[0].calls, std::size_t(0));
  lab.holders[1].dead = true;
  QCOMPARE(lab.ask(1000, false, id_of(1)).error().code, ErrorCode::Timeout);
  QCOMPARE(lab.ask(1000, false, id_of(1)).error().code, ErrorCode::Unavailable);  // it rests
  QCOMPARE(lab.holders[0].calls, std::size_t(0));
}

void TestSlotRouter::a_claim_is_good_for_a_first_call_only() {
  RouterLimits limits;
  limits.explore = 0;
  Lab lab(limits);
  lab.holders[0].bytes_per_second = 50e3;
  lab.holders[0].claims = 1e9;
  lab.holders[1].bytes_per_second = 2e6;
  lab.holders[1].claims = 2e6;
  for (int i = 0; i < 100; ++i) QVERIFY(lab.ask(200'000).ok());
  QVERIFY2(lab.holders[0].calls >= 1 && lab.holders[0].calls <= 4,
           qPrintable(QString::number(lab.holders[0].calls)));
}

void TestSlotRouter::who_lacks_the_slot_is_not_asked_again_soon() {
  Lab lab;
  lab.holders[0].refuses = ErrorCode::NotFound;
  lab.holders[0].claims = 1e9;
  lab.holders[1].latency = 300 * millisecond;
  for (int i = 0; i < 20; ++i) QVERIFY(lab.ask(100'000).ok());
  QCOMPARE(lab.holders[0].calls, std::size_t(1));
  for (const HolderView& view : lab.router->holders()) QCOMPARE(view.failures, 0u);
  lab.rest(121 * second);
  lab.holders[0].refuses.reset();  // it has been given the slot
  for (int i = 0; i < 20; ++i) QVERIFY(lab.ask(100'000).ok());
  QVERIFY(lab.holders[0].calls > 1);
}

void TestSlotRouter::nobody_to_ask_is_told() {
  Lab lab;
  const auto none = lab.ask();
  QCOMPARE(none.error().code, ErrorCode::NotFound);
  for (std::size_t i = 0; i < 3; ++i) lab.holders[i].refuses = ErrorCode::Corrupt;
  QCOMPARE(lab.ask().error().code, ErrorCode::Corrupt);  // what the last one said
  for (std::size_t i = 0; i < 3; ++i) QCOMPARE(lab.holders[i].calls, std::size_t(1));
  const auto resting = lab.ask();
  QCOMPARE(resting.error().code, ErrorCode::Unavailable);
  QVERIFY2(resting.error().message.find("none of the 3 nodes") != std::string::npos,
           resting.error().message.c_str());
  QVERIFY(lab.took < millisecond);
  QCOMPARE(lab.router->counts().failed, 3u);
}

void TestSlotRouter::memory_is_bounded() {
  RouterLimits limits;
  limits.holders = 64;
  limits.explore = 0.5;
  Lab lab(limits);
  for (std::size_t i = 0; i < 300; ++i) lab.holders[i].latency = 5 * millisecond;
  for (int i = 0; i < 500; ++i) QVERIFY(lab.ask().ok());
  QVERIFY(lab.router->holders().size() <= 64);
}

void TestSlotRouter::nothing_is_called_after_its_end() {
  Lab lab;
  lab.holders[0].latency = second;
  int told = 0;
  lab.router->call({layer, method, Bytes(10), 0, 60 * second, true, std::nullopt},
                   [&](const Expected<SlotAnswer>&) { ++told; });
  lab.router->call({{SlotKind::Head, 0, 0}, method, Bytes(10), 0, 60 * second, true, std::nullopt},
                   [&](const Expected<SlotAnswer>&) { ++told; });
  lab.router.reset();
  lab.rest(100 * second);
  QCOMPARE(told, 0);
}

NS_TEST(TestSlotRouter)
#include "test_slot_router.moc"
