// When a driver moves to its next shard.
#include <QtTest>
#include <algorithm>
#include <cmath>

#include "core/base/rng.h"
#include "core/data/rotation.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::data;

namespace {

// A smooth curve as of a language model on one shard: a power law down to a floor, with noise of the batches.
std::vector<float> curve(std::size_t steps, double start, double floor, double speed, double noise) {
  Rng rng(3);
  std::vector<float> losses;
  for (std::size_t i = 0; i < steps; ++i) {
    const double mean = floor + (start - floor) * std::pow(1.0 + static_cast<double>(i) * speed, -0.5);
    losses.push_back(static_cast<float>(mean + noise * rng.normal()));
  }
  return losses;
}

// The step at which the rule first says Plateau; 0 if never.
std::uint64_t first_plateau(const std::vector<float>& losses) {
  for (std::size_t step = 1; step <= losses.size(); ++step) {
    ShardProgress progress{step, step, 1'000'000'000, {}};
    const std::size_t first = step > 50 ? step - 50 : 0;
    progress.recent_losses.assign(losses.begin() + static_cast<std::ptrdiff_t>(first),
                                  losses.begin() + static_cast<std::ptrdiff_t>(step));
    if (should_rotate(progress) == RotationReason::Plateau) return step;
  }
  return 0;
}

}  // namespace

class TestRotation : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void rotation_rule() {
    ShardProgress progress{1, 100, 100, {}};
    QVERIFY(should_rotate(progress) == RotationReason::UsedUp);
    progress = {99, 99, 1000, std::vector<float>(50, 2.0f)};
    QVERIFY2(should_rotate(progress) == RotationReason::Stay, "fewer than 100 steps on the shard");
    progress.steps = 100;
    QVERIFY(should_rotate(progress) == RotationReason::Plateau);
    // Exactly at the limit of 0.5 %: 4 → 3.98 is an improvement of 0.005.
    std::vector<float> losses(25, 4.0f);
    losses.insert(losses.end(), 25, 3.96f);
    progress.recent_losses = losses;
    QVERIFY(should_rotate(progress) == RotationReason::Stay);
    std::fill(losses.begin() + 25, losses.end(), 3.99f);
    progress.recent_losses = losses;
    QVERIFY(should_rotate(progress) == RotationReason::Plateau);
    progress.recent_losses.pop_back();
    QVERIFY2(should_rotate(progress) == RotationReason::Stay, "the window is not full");
    std::fill(losses.begin() + 25, losses.end(), 4.4f);  // getting worse is no progress either
    progress.recent_losses = losses;
    QVERIFY(should_rotate(progress) == RotationReason::Plateau);
  }

  // The rule of the original documents: the variance of the window < 0.02 and the mean < 0.05. Losses of real
  // text end near 3 nats a token, so it can't fire there; ours does, and not while learning is quick.
  void rotation_on_real_looking_curves() {
    const auto levels_off = curve(2000, 8.3, 3.1, 0.05, 0.03);
    const std::uint64_t step = first_plateau(levels_off);
    QVERIFY2(step > 150 && step < 2000, std::to_string(step).c_str());
    for (const float loss : levels_off) QVERIFY2(loss > 0.05f, "the absolute rule would have fired");
    const auto still_falling = curve(300, 8.3, 1.0, 0.02, 0.005);
    QCOMPARE(first_plateau(still_falling), std::uint64_t{0});
    QCOMPARE(first_plateau(std::vector<float>(120, 3.3f)), std::uint64_t{100});
  }
};

NS_TEST(TestRotation)
#include "test_rotation.moc"
