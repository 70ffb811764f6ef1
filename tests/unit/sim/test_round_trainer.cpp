// The simulated learner with error feedback over a restart: what a codec left out comes later all the same,
// and what was sent is not sent again, as with the real one (tests/unit/engine/test_round_trainer.cpp).
#include <QtTest>

#include "core/sim/round_trainer.h"
#include "tests/support/stored.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;

namespace {

constexpr std::size_t values = 8192;

// The same steps on every node and in every life.
class Slope final : public LocalModel {
 public:
  void train(std::uint64_t, std::uint32_t, std::uint32_t steps, Span<float> weights) override {
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] -= 1e-3f * static_cast<float>(steps) * static_cast<float>((i * 7) % 101);
  }
};

// One life of a learner.
struct Life {
  explicit Life(World& world)
      : executor(world), trainer(world, executor, model, options(), RoundTrainer::Distortion()) {}
  static TrainerOptions options() {
    TrainerOptions o;
    o.inner_steps = 4;
    o.codec.codec = outer::Codec::TopK;
    o.error_feedback_beta = 0.9f;
    return o;
  }
  // A round of its own steps; the delta at its end.
  rounds::RoundLearner::Boundary round(World& world, std::uint64_t number, bool counted) {
    trainer.start({number, anchor(number), rounds::Carry::Nothing, counted});
    world.run_for(std::chrono::seconds(2));
    std::optional<rounds::RoundLearner::Boundary> given;
    trainer.boundary(rounds::AfterBoundary::Rest,
                     [&](Expected<rounds::RoundLearner::Boundary> result) { given = *result; });
    world.run_for(std::chrono::seconds(1));
    return given.value_or(rounds::RoundLearner::Boundary{});
  }
  static rounds::Anchor anchor(std::uint64_t number) {
    return test::state_with(std::vector<float>(values, static_cast<float>(number)));
  }
  Slope model;
  HostExecutor executor;
  RoundTrainer trainer;
};

}  // namespace

class TestSimRoundTrainer : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_was_left_out_comes_after_a_restart_data() {
    QTest::addColumn<bool>("counted");
    QTest::newRow("the last delta counted") << true;
    QTest::newRow("it did not: it is put back") << false;
  }
  void what_was_left_out_comes_after_a_restart() {
    QFETCH(bool, counted);
    World world;
    Life whole(world), killed(world), back(world), forgetful(world);
    QVERIFY(whole.round(world, 1, false).payload->size() > 100);
    const ByteSourcePtr memory = killed.round(world, 1, false).memory;
    back.trainer.recall(memory);
    const Bytes expected = test::bytes_of(whole.round(world, 2, counted).payload);
    QVERIFY(test::bytes_of(back.round(world, 2, counted).payload) == expected);
    QVERIFY(test::bytes_of(forgetful.round(world, 2, counted).payload) != expected);
  }

  void the_round_that_is_still_made_has_one_delta() {
    World world;
    Life killed(world), back(world);
    const auto sent = killed.round(world, 1, false);
    back.trainer.recall(sent.memory);
    const auto again = back.round(world, 1, false);
    QVERIFY(test::bytes_of(again.payload) == test::bytes_of(sent.payload) &&
            again.work.steps == sent.work.steps);
    QVERIFY(test::bytes_of(back.round(world, 2, true).payload) ==
            test::bytes_of(killed.round(world, 2, true).payload));
  }
};

NS_TEST(TestSimRoundTrainer)
#include "test_round_trainer.moc"
