// Choosing tokens: greedy, temperature, top-k, top-p, and that a seed repeats the choice.
#include <QtTest>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "core/compute/sampling.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::compute;

namespace {

constexpr int draws = 20000;

// How often each token comes up.
std::map<std::int32_t, int> histogram(const std::vector<float>& logits, const SamplingOptions& options) {
  Rng rng(5);
  std::map<std::int32_t, int> counts;
  for (int i = 0; i < draws; ++i)
    ++counts[sample_token(Span<const float>(logits), options, rng).value_or(-1)];
  return counts;
}

double share(const std::map<std::int32_t, int>& counts, std::int32_t token) {
  const auto found = counts.find(token);
  return found == counts.end() ? 0.0 : found->second / double(draws);
}

SamplingOptions options_of(float temperature, std::uint32_t top_k = 0, float top_p = 1.0f) {
  SamplingOptions options;
  options.temperature = temperature;
  options.top_k = top_k;
  options.top_p = top_p;
  return options;
}

}  // namespace

class TestSampling : public QObject {
  Q_OBJECT
 private:
  // Probabilities 0.5, 0.3, 0.15, 0.05 for tokens 2, 0, 3, 1.
  const std::vector<float> logits_{std::log(0.3f), std::log(0.05f), std::log(0.5f), std::log(0.15f)};

 private Q_SLOTS:
  void greedy_takes_the_most_likely_and_draws_nothing() {
    Rng rng(1);
    const Rng::State before = rng.state();
    QCOMPARE(sample_token(Span<const float>(logits_), options_of(0), rng).value_or(-1), 2);
    QVERIFY(rng.state() == before);
    const std::vector<float> equal{1, 3, 3, 2};
    QCOMPARE(sample_token(Span<const float>(equal), options_of(0), rng).value_or(-1), 1);  // the lower token
  }

  void frequencies_follow_the_probabilities() {
    const auto counts = histogram(logits_, options_of(1));
    QVERIFY(std::abs(share(counts, 2) - 0.5) < 0.015);
    QVERIFY(std::abs(share(counts, 0) - 0.3) < 0.015);
    QVERIFY(std::abs(share(counts, 1) - 0.05) < 0.01);
  }

  void temperature_sharpens() {
    const auto counts = histogram(logits_, options_of(0.5f));  // squares: 25 : 9 : 2.25 : 0.25
    QVERIFY(std::abs(share(counts, 2) - 25 / 36.5) < 0.015);
  }

  void top_k_keeps_the_k_most_likely() {
    const auto counts = histogram(logits_, options_of(1, 2));
    QCOMPARE(counts.size(), std::size_t{2});
    QVERIFY(std::abs(share(counts, 2) - 0.5 / 0.8) < 0.015);
    QCOMPARE(histogram(logits_, options_of(5, 1)).size(), std::size_t{1});
    QCOMPARE(histogram(logits_, options_of(1, 100)).size(), std::size_t{4});  // more than there are: all
  }

  void top_p_keeps_the_smallest_set_that_reaches_it() {
    QCOMPARE(histogram(logits_, options_of(1, 0, 0.4f)).size(), std::size_t{1});
    QCOMPARE(histogram(logits_, options_of(1, 0, 0.6f)).size(), std::size_t{2});
    QCOMPARE(histogram(logits_, options_of(1, 0, 0.9f)).size(), std::size_t{3});
    QCOMPARE(histogram(logits_, options_of(1, 2, 0.99f)).size(), std::size_t{2});  // over what top-k left
  }

  void min_p_keeps_what_is_likely_enough() {
    // The likeliest has 0.5: at 0.5 of it, 0.25, the tokens with 0.5 and 0.3 are left.
    for (const std::uint32_t top_k : {0u, 3u}) {
      SamplingOptions options = options_of(1, top_k);
      options.min_p = 0.5f;
      const auto counts = histogram(logits_, options);
      QCOMPARE(counts.size(), std::size_t{2});
      QVERIFY(std::abs(share(counts, 2) - 0.5 / 0.8) < 0.015);
      options.min_p = 1;
      QCOMPARE(share(histogram(logits_, options), 2), 1.0);
      options.min_p = 0.05f;  // 0.025: no token is less likely
      QCOMPARE(histogram(logits_, options).size(), top_k == 0 ? std::size_t{4} : std::size_t{3});
    }
    SamplingOptions both = options_of(1, 0, 0.6f);  // top-p leaves two, min-p one of them
    both.min_p = 0.7f;
    QCOMPARE(histogram(logits_, both).size(), std::size_t{1});
  }

  void penalty_and_bias_change_the_logits() {
    SamplingOptions options;
    options.repetition_penalty = 2;
    options.logit_bias = {{0, -1.5f}, {3, 4.0f}, {9, 1.0f}};  // there is no token 9
    std::vector<float> logits{3, 2, -2, 1};
    adjust_logits(Span<float>(logits), options, {true, false, true});
    const std::vector<float> expected{0, 2, -4, 5};
    QCOMPARE(logits, expected);
    std::vector<float> same{3, -2};
    adjust_logits(Span<float>(same), SamplingOptions{}, {true, true});
    const std::vector<float> unchanged{3, -2};
    QCOMPARE(same, unchanged);
  }

  void log_probabilities_are_those_of_the_softmax() {
    const auto of = [&](std::int32_t token, std::uint32_t count, std::uint32_t vocabulary) {
      return log_probabilities(Span<const float>(logits_), token, count, vocabulary);
    };
    const Logprobs two = of(1, 2, 4);
    QVERIFY(std::abs(two.chosen - std::log(0.05)) < 1e-6);
    QCOMPARE(two.top.size(), std::size_t{2});
    QCOMPARE(two.top[0].token, 2);
    QVERIFY(std::abs(two.top[0].logprob - std::log(0.5)) < 1e-6);
    QCOMPARE(two.top[1].token, 0);
    QVERIFY(of(1, 0, 4).top.empty());
    QCOMPARE(of(1, 20, 4).top.size(), std::size_t{4});
    QCOMPARE(of(1, 1, 2).top[0].token, 0);  // of the first two tokens
    const std::vector<float> none{0.0f, -std::numeric_limits<float>::infinity()};
    QVERIFY(std::isinf(log_probabilities(Span<const float>(none), 1, 0, 2).chosen));
    QCOMPARE(log_probabilities(Span<const float>(none), 0, 0, 2).chosen, 0.0);
  }

  void a_seed_repeats_the_choices() {
    const auto run = [&](std::uint64_t seed) {
      Rng rng(seed);
      std::vector<std::int32_t> tokens;
      for (int i = 0; i < 50; ++i)
        tokens.push_back(*sample_token(Span<const float>(logits_), options_of(1), rng));
      return tokens;
    };
    QVERIFY(run(3) == run(3));
    QVERIFY(run(3) != run(4));
  }

  void large_vocabularies_are_cut_as_by_a_full_sort_data() {
    QTest::addColumn<int>("top_k");
    QTest::addColumn<float>("top_p");
    QTest::newRow("k") << 300 << 1.0f;
    QTest::newRow("p, few tokens") << 0 << 0.02f;
    QTest::newRow("p, many tokens") << 0 << 0.6f;
    QTest::newRow("p of k") << 500 << 0.5f;
    QTest::newRow("all") << 0 << 1.0f;
  }

  void large_vocabularies_are_cut_as_by_a_full_sort() {
    QFETCH(int, top_k);
    QFETCH(float, top_p);
    // Nearly flat, with many equal logits, and a few impossible tokens among them.
    std::vector<float> logits(1200);
    Rng source(8);
    for (float& logit : logits) logit = static_cast<float>(source.below(200)) / 100.0f;
    for (std::size_t i = 0; i < logits.size(); i += 97) logits[i] = -std::numeric_limits<float>::infinity();

    std::vector<std::int32_t> order;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (std::isfinite(logits[i])) order.push_back(static_cast<std::int32_t>(i));
    }
    const auto logit = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
    if (top_k > 0) order.resize(static_cast<std::size_t>(top_k));
    double sum = 0;
    for (const std::int32_t token : order) sum += std::exp(double{logit(token)});
    std::map<std::int32_t, double> probability;
    double reached = 0;
    for (const std::int32_t token : order) {
      if (reached >= top_p * sum) break;
      reached += probability[token] = std::exp(double{logit(token)});
    }

    const SamplingOptions options = options_of(1, static_cast<std::uint32_t>(top_k), top_p);
    Rng rng(6);
    std::map<std::int32_t, int> counts;
    const int all = 30 * static_cast<int>(probability.size());
    for (int i = 0; i < all; ++i)
      ++counts[sample_token(Span<const float>(logits), options, rng).value_or(-1)];
    double distance = 0;  // chi-squared; its mean is the number of tokens, its variance twice that
    for (const auto& [token, weight] : probability) {
      const double expected = weight / reached * all;
      distance += (counts[token] - expected) * (counts[token] - expected) / expected;
    }
    QCOMPARE(counts.size(), probability.size());  // each of them, and no other
    const auto tokens = static_cast<double>(probability.size());
    QVERIFY2(distance < tokens + 5 * std::sqrt(2 * tokens),
             qPrintable(QString("%1 for %2 tokens").arg(distance).arg(tokens)));
  }

  void impossible_tokens_are_never_chosen() {
    const float none = -std::numeric_limits<float>::infinity();
    const std::vector<float> logits{none, 0.0f, std::nanf(""), none};
    const auto counts = histogram(logits, options_of(2));
    QCOMPARE(counts.size(), std::size_t{1});
    QCOMPARE(share(counts, 1), 1.0);
    Rng rng(1);
    const std::vector<float> nothing{none, std::nanf("")};
    QVERIFY(!sample_token(Span<const float>(nothing), options_of(1), rng).ok());
    QVERIFY(!sample_token(Span<const float>(), options_of(1), rng).ok());
  }

  void bad_options_are_named() {
    const auto message = [&](const SamplingOptions& options) {
      const Expected<void> result = validate(options);
      return result.ok() ? std::string() : result.error().message;
    };
    QVERIFY(message(options_of(-1)).find("temperature") != std::string::npos);
    QVERIFY(message(options_of(std::nanf(""))).find("temperature") != std::string::npos);
    QVERIFY(message(options_of(1, 0, 0)).find("top-p") != std::string::npos);
    QVERIFY(message(options_of(1, 0, 1.5f)).find("top-p") != std::string::npos);
    QVERIFY(message(options_of(1)).empty());
    SamplingOptions bad = options_of(1);
    bad.min_p = 1.5f;
    QVERIFY(message(bad).find("min-p") != std::string::npos);
    bad = options_of(1);
    bad.repetition_penalty = 0;
    QVERIFY(message(bad).find("repetition penalty") != std::string::npos);
    bad = options_of(1);
    bad.logit_bias = {{7, 101.0f}};
    QVERIFY(message(bad).find("token 7") != std::string::npos);
    bad.logit_bias.assign(max_logit_biases + 1, {1, 1.0f});
    QVERIFY(message(bad).find("301") != std::string::npos);
  }
};

NS_TEST(TestSampling)
#include "test_sampling.moc"
