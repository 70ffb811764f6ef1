// Byzantine peers among eight and ten contributors, a small version of the battery (measure_attacks has all
// of it): the loss that the default rule keeps, and what the plain mean loses.
#include <QTest>
#include <cmath>
#include <limits>
#include <string>

#include "tests/support/test_main.h"
#include "tests/unit/outer/attack_battery.h"

using namespace neuroshard;
using namespace neuroshard::outer;

namespace {

BatterySettings small_settings(bool top_k) {
  BatterySettings settings;
  if (top_k) {
    settings.top_k = 64;
    settings.rule.sparse = true;
    settings.outer = {1.0f, 0.0f};
    settings.learner.lr = 4e-3f;
    settings.rounds = 80;
  }
  return settings;
}

}  // namespace

class TestAttacks : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    for (const bool top_k : {false, true}) {
      clean_[top_k] = run_battery(small_settings(top_k));
      qInfo("%s: clean loss %.4f, honest cosine %.3f", top_k ? "top-k" : "dense", clean_[top_k].loss,
            clean_[top_k].honest_cosine);
    }
  }

  void two_of_eight_cost_little_data() {
    QTest::addColumn<int>("attack");
    QTest::addColumn<bool>("top_k");
    for (const Attack attack : {Attack::SignFlip, Attack::SignFlipTen, Attack::Alie, Attack::InnerProduct,
                                Attack::Zero, Attack::NotANumber, Attack::Sybil})
      QTest::addRow("%s", std::string(to_string(attack)).c_str()) << int(attack) << false;
    for (const Attack attack : {Attack::SignFlip, Attack::InnerProduct})
      QTest::addRow("%s, top-k", std::string(to_string(attack)).c_str()) << int(attack) << true;
  }
  void two_of_eight_cost_little() {
    QFETCH(int, attack);
    QFETCH(bool, top_k);
    BatterySettings settings = small_settings(top_k);
    settings.liars = 2;
    settings.attack = Attack(attack);
    const BatteryResult result = run_battery(settings);
    qInfo("%+.1f %%", 100 * (result.loss / clean_[top_k].loss - 1));
    QVERIFY(result.finite);
    QVERIFY(result.loss <= 1.05 * clean_[top_k].loss);
  }

  // The negative control: were the mean enough, the rules would be for nothing.
  void the_plain_mean_fails() {
    for (const bool top_k : {false, true}) {
      BatterySettings settings = small_settings(top_k);
      settings.liars = 2;
      settings.attack = Attack::SignFlipTen;
      settings.rule.choice = RuleChoice{Rule::WeightedMean, false, false};
      const BatteryResult result = run_battery(settings);
      QVERIFY(!result.finite || result.loss > 1.2 * clean_[top_k].loss);
    }
  }

  void four_of_ten_still_learn_data() {
    QTest::addColumn<int>("attack");
    for (const Attack attack : {Attack::InnerProduct, Attack::NotANumber})
      QTest::addRow("%s", std::string(to_string(attack)).c_str()) << int(attack);
  }
  void four_of_ten_still_learn() {
    QFETCH(int, attack);
    BatterySettings settings = small_settings(false);
    settings.contributors = 10;
    settings.liars = 4;
    settings.attack = Attack(attack);
    settings.rule.f = 4;
    const BatteryResult result = run_battery(settings);
    QVERIFY(result.finite);
    QVERIFY(result.loss < 0.9 * result.first_loss);
    QVERIFY(result.every_tenth.back() < result.every_tenth.front());
  }

  // The searched factor hurts the rule at least as much as the usual ones do.
  void the_search_finds_the_worst() {
    Rng rng(3);
    std::vector<std::vector<float>> honest(6, std::vector<float>(500));
    std::vector<float> common(500);
    for (float& value : common) value = rng.normal();
    for (auto& delta : honest)
      for (std::size_t c = 0; c < delta.size(); ++c) delta[c] = common[c] + 2 * rng.normal();
    const std::vector<Span<const float>> seen(honest.begin(), honest.end());
    std::vector<double> mean(500, 0.0);
    for (const auto& delta : honest)
      for (std::size_t c = 0; c < 500; ++c) mean[c] += delta[c] / 6.0;
    const auto progress = [&](const std::vector<float>& forged) {
      std::vector<Contribution> contributions(8);
      for (std::size_t i = 0; i < 8; ++i) {
        contributions[i].id[0] = static_cast<std::uint8_t>(i);
        contributions[i].tokens = 1;
        contributions[i].delta = i < 6 ? Span<const float>(honest[i]) : Span<const float>(forged);
      }
      std::vector<float> out(500);
      if (!aggregate({}, contributions, 1, out).ok()) qFatal("no aggregate");
      double product = 0;
      for (std::size_t c = 0; c < 500; ++c) product += out[c] * mean[c];
      return product;
    };
    const double tuned = progress(forge(Attack::InnerProduct, seen, 2, 1, {}, rng)[0].delta);
    for (const double e : {0.1, 0.5, 1.0, 2.0, 10.0}) {
      std::vector<float> forged(500);
      for (std::size_t c = 0; c < 500; ++c) forged[c] = static_cast<float>(-e * mean[c]);
      QVERIFY(tuned <= progress(forged) + 1e-9);
    }
  }

  void names() {
    for (const Attack attack : all_attacks) QCOMPARE(*attack_from_name(to_string(attack)), attack);
    QVERIFY(!attack_from_name("none").ok());
  }

 private:
  BatteryResult clean_[2];
};

NS_TEST(TestAttacks)
#include "test_attacks.moc"
