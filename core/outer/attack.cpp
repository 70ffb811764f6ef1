#include "core/outer/attack.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "core/base/check.h"

namespace neuroshard::outer {
namespace {

constexpr std::pair<Attack, std::string_view> attack_names[] = {{Attack::SignFlip, "sign-flip"},
                                                                {Attack::SignFlipTen, "sign-flip-10"},
                                                                {Attack::Alie, "alie"},
                                                                {Attack::InnerProduct, "inner-product"},
                                                                {Attack::Gaussian, "gaussian"},
                                                                {Attack::Zero, "zero"},
                                                                {Attack::Mimic, "mimic"},
                                                                {Attack::NotANumber, "nan"},
                                                                {Attack::InflatedTokens, "inflated-tokens"},
                                                                {Attack::Sybil, "sybil"}};

constexpr std::uint64_t inflated = 1'000'000'000'000;

// Mean and standard deviation of the honest values, by coordinate.
struct Honest {
  std::vector<double> mean, deviation;
  double norm = 0;  // mean of the deltas' norms

  explicit Honest(const std::vector<Span<const float>>& deltas)
      : mean(deltas[0].size(), 0.0), deviation(deltas[0].size(), 0.0) {
    const double count = static_cast<double>(deltas.size());
    for (const Span<const float>& delta : deltas) {
      NS_CHECK(delta.size() == mean.size());
      double squares = 0;
      for (std::size_t c = 0; c < mean.size(); ++c) {
        mean[c] += double{delta[c]} / count;
        squares += double{delta[c]} * delta[c];
      }
      norm += std::sqrt(squares) / count;
    }
    for (const Span<const float>& delta : deltas)
      for (std::size_t c = 0; c < mean.size(); ++c)
        deviation[c] += (delta[c] - mean[c]) * (delta[c] - mean[c]) / count;
    for (double& value : deviation) value = std::sqrt(value);
  }

  // mean·a + deviation·b
  std::vector<float> combined(double a, double b) const {
    std::vector<float> result(mean.size());
    for (std::size_t c = 0; c < mean.size(); ++c)
      result[c] = static_cast<float>(a * mean[c] + b * deviation[c]);
    return result;
  }
};

// The round as the attackers predict it: the honest first, then all attackers with one delta.
class Rehearsal {
 public:
  Rehearsal(const std::vector<Span<const float>>& honest, std::size_t attackers, std::uint64_t tokens,
            const AggregationOptions& rule)
      : rule_(rule), tokens_(tokens), result_(honest[0].size()) {
    for (std::size_t i = 0; i < honest.size() + attackers; ++i) {
      Contribution c;
      c.id[0] = static_cast<std::uint8_t>(i >> 8);
      c.id[1] = static_cast<std::uint8_t>(i);
      c.tokens = tokens;
      if (i < honest.size()) c.delta = honest[i];
      contributions_.push_back(c);
    }
    honest_ = honest.size();
  }

  // The aggregate when the attackers send this; empty where the rule has none.
  const std::vector<float>& with(const std::vector<float>& forged) {
    for (std::size_t i = honest_; i < contributions_.size(); ++i) contributions_[i].delta = forged;
    const auto report = aggregate(rule_, contributions_, tokens_, result_);
    if (!report.ok() || report->counted == 0) result_.assign(result_.size(), 0.0f);
    return result_;
  }

 private:
  const AggregationOptions& rule_;
  std::uint64_t tokens_;
  std::vector<float> result_;
  std::vector<Contribution> contributions_;
  std::size_t honest_ = 0;
};

// The factor of the greatest damage: a coarse geometric grid, then finer steps around the best.
double worst_factor(const std::vector<double>& grid, const std::function<double(double)>& damage) {
  double worst = grid[0], most = -std::numeric_limits<double>::infinity();
  const auto look_at = [&](double factor) {
    const double done = damage(factor);
    if (done > most) most = done, worst = factor;
  };
  for (const double factor : grid) look_at(factor);
  for (double step = 1.3; step > 1.02; step = std::sqrt(step)) {
    const double around = worst;
    look_at(around * step);
    look_at(around / step);
  }
  return worst;
}

std::vector<float> alie(const Honest& honest, Rehearsal& rehearsal) {
  const double z = worst_factor({-4, -2, -1, -0.5, -0.25, 0.25, 0.5, 1, 2, 4}, [&](double factor) {
    const std::vector<float>& result = rehearsal.with(honest.combined(1, factor));
    double distance = 0;
    for (std::size_t c = 0; c < result.size(); ++c)
      distance += (result[c] - honest.mean[c]) * (result[c] - honest.mean[c]);
    return distance;
  });
  return honest.combined(1, z);
}

std::vector<float> inner_product(const Honest& honest, Rehearsal& rehearsal) {
  const double e = worst_factor({0.05, 0.1, 0.2, 0.5, 1, 2, 4, 8, 16}, [&](double factor) {
    const std::vector<float>& result = rehearsal.with(honest.combined(-factor, 0));
    double product = 0;
    for (std::size_t c = 0; c < result.size(); ++c) product += result[c] * honest.mean[c];
    return -product;
  });
  return honest.combined(-e, 0);
}

std::vector<float> noise(std::size_t values, double norm, Rng& rng) {
  const double scale = norm / std::sqrt(static_cast<double>(values));
  std::vector<float> result(values);
  for (float& value : result) value = static_cast<float>(scale * double{rng.normal()});
  return result;
}

}  // namespace

std::string_view to_string(Attack attack) {
  for (const auto& [value, name] : attack_names)
    if (value == attack) return name;
  return "unknown";
}

Expected<Attack> attack_from_name(std::string_view name) {
  std::string names;
  for (const auto& [value, known] : attack_names) {
    if (known == name) return value;
    names += names.empty() ? std::string(known) : fmt::format(", {}", known);
  }
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("attack “{}” not found; available: {}", name, names));
}

std::vector<ForgedDelta> forge(Attack attack, const std::vector<Span<const float>>& honest,
                               std::size_t attackers, std::uint64_t tokens, const AggregationOptions& rule,
                               Rng& rng) {
  NS_CHECK(!honest.empty() && !honest[0].empty());
  const Honest known(honest);
  Rehearsal rehearsal(honest, attackers, tokens, rule);
  const std::size_t values = honest[0].size();
  ForgedDelta forged{{}, tokens};
  switch (attack) {
    case Attack::SignFlip: forged.delta = known.combined(-1, 0); break;
    case Attack::SignFlipTen: forged.delta = known.combined(-10, 0); break;
    case Attack::Alie: forged.delta = alie(known, rehearsal); break;
    case Attack::InnerProduct: forged.delta = inner_product(known, rehearsal); break;
    case Attack::Gaussian: break;  // each its own, below
    case Attack::Zero: forged.delta.assign(values, 0.0f); break;
    case Attack::Mimic: forged.delta.assign(honest[0].begin(), honest[0].end()); break;
    case Attack::NotANumber:
      forged.delta = known.combined(1, 0);
      forged.delta[rng.below(values)] = std::numeric_limits<float>::quiet_NaN();
      break;
    case Attack::InflatedTokens:
      forged.delta = known.combined(-1, 0);
      forged.tokens = inflated;
      break;
    case Attack::Sybil: forged.delta = noise(values, known.norm, rng); break;
  }
  std::vector<ForgedDelta> all(attackers, forged);
  if (attack == Attack::Gaussian)
    for (ForgedDelta& one : all) one.delta = noise(values, 10 * known.norm, rng);
  return all;
}

}  // namespace neuroshard::outer
