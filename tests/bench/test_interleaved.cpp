// Interleaved rounds on a clock of our own: what is dropped, what is compared, in which order.
#include <QtTest>

#include "core/base/interleaved.h"
#include "tests/support/test_main.h"

using namespace neuroshard;

namespace {

// Contenders that take exactly as long as their script says, in milliseconds; the last entry repeats.
class Script {
 public:
  Contender contender(const std::string& name, double units, std::vector<int> milliseconds) {
    auto next = std::make_shared<std::size_t>(0);
    return {name, [this, name, units, milliseconds, next]() -> Expected<double> {
              order.push_back(name[0]);
              const std::size_t at = std::min((*next)++, milliseconds.size() - 1);
              clock.advance(std::chrono::milliseconds(milliseconds[at]));
              return units;
            }};
  }
  ManualClock clock;
  std::string order;
};

InterleavedOptions options(std::uint32_t rounds) {
  InterleavedOptions o;
  o.rounds = rounds;
  o.budget = std::chrono::seconds(1000);
  return o;
}

}  // namespace

class TestInterleaved : public QObject {
  Q_OBJECT
 private Q_SLOTS:

  void takes_turns_and_compares_within_a_round() {
    Script script;
    const auto result =
        run_interleaved(script.clock, script.contender("y", 100, {100}),
                        {script.contender("a", 50, {100}), script.contender("b", 50, {400})}, options(3), {});
    QVERIFY(result.ok());
    QCOMPARE(QString::fromStdString(script.order),
             QString("yabyyabyybayyaby"));  // the first round is not timed
    QCOMPARE(result->kept, 3u);
    QVERIFY(result->steady);
    QCOMPARE(result->yardstick.median, 1000.0);
    QCOMPARE(result->contenders[0].median, 500.0);
    QCOMPARE(result->contenders[0].ratio_median, 0.5);
    QCOMPARE(result->contenders[1].ratio_best, 0.125);
  }

  void drops_rounds_in_which_the_yardstick_moved() {
    Script script;
    // Warm-up 100, 100; then rounds: steady, moved within, steady, slow as a whole, steady.
    const auto yardstick =
        script.contender("y", 100, {100, 100, 100, 100, 100, 200, 100, 100, 300, 300, 100});
    // The contender seems twice as fast exactly where the yardstick is wrong.
    const auto contender = script.contender("a", 100, {200, 200, 100, 200, 100, 200});
    const auto result = run_interleaved(script.clock, yardstick, {contender}, options(3), {});
    QCOMPARE(result->kept, 3u);
    QCOMPARE(result->dropped, 2u);
    QVERIFY(result->steady);
    QCOMPARE(result->contenders[0].ratio_best, 0.5);
  }

  void says_when_the_machine_is_unsteady() {
    Script script;
    std::vector<int> wild;
    for (int i = 0; i < 400; ++i) wild.push_back(i % 2 == 0 ? 100 : 300);
    const auto result = run_interleaved(script.clock, script.contender("y", 100, wild),
                                        {script.contender("a", 100, {100})}, options(3), {});
    QVERIFY(result.ok());
    QVERIFY(!result->steady);
    QCOMPARE(result->kept, 0u);
    QCOMPARE(result->dropped, 60u);  // it gives up
  }

  void keeps_to_its_time() {
    Script script;
    InterleavedOptions o = options(100);
    o.budget = std::chrono::seconds(3);
    const auto result = run_interleaved(script.clock, script.contender("y", 1, {100}),
                                        {script.contender("a", 1, {800})}, o, {});
    QCOMPARE(result->kept, 2u);
    QVERIFY(!result->steady);
  }

  void passes_errors_on_and_stops() {
    Script script;
    const Contender broken{"b", []() -> Expected<double> { return make_error(ErrorCode::Io, "no disk"); }};
    const auto failed =
        run_interleaved(script.clock, script.contender("y", 1, {1}), {broken}, options(3), {});
    QVERIFY(failed.error().code == ErrorCode::Io);
    QVERIFY(failed.error().describe().find("measuring b") != std::string::npos);
    CancelSource cancel;
    cancel.cancel();
    const auto stopped =
        run_interleaved(script.clock, script.contender("y", 1, {1}), {}, options(3), cancel.token());
    QVERIFY(stopped.error().code == ErrorCode::Cancelled);
  }

  void prepares_untimed() {
    Script script;
    int prepared = 0;
    Contender contender = script.contender("a", 100, {100});
    contender.prepare = [&]() -> Expected<void> {
      ++prepared;
      return {};
    };
    const auto result =
        run_interleaved(script.clock, script.contender("y", 100, {100}), {contender}, options(3), {});
    QCOMPARE(prepared, 4);  // the untimed round too
    QCOMPARE(result->contenders[0].ratio_median, 1.0);
    contender.prepare = []() -> Expected<void> { return make_error(ErrorCode::Io, "no room"); };
    const auto failed =
        run_interleaved(script.clock, script.contender("y", 100, {100}), {contender}, options(3), {});
    QVERIFY(failed.error().describe().find("preparing a") != std::string::npos);
  }

  void finds_medians() {
    QCOMPARE(median_of({}), 0.0);
    QCOMPARE(median_of({3, 1, 2}), 2.0);
    QCOMPARE(median_of({4, 1, 2, 3}), 2.5);
  }
};

NS_TEST(TestInterleaved)
#include "test_interleaved.moc"
