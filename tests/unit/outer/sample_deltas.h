// Deltas of a round, and shorthands for their aggregation. Header only.
#pragma once

#include <QtGlobal>
#include <optional>
#include <vector>

#include "core/base/rng.h"
#include "core/outer/aggregate.h"
#include "tests/unit/outer/aggregation_oracle.h"

namespace neuroshard::outer::samples {

inline constexpr std::uint64_t plenty = 1'000'000;

// n deltas of a common direction and noise; the later ones are longer, and the last two lie.
struct Deltas {
  std::vector<std::vector<float>> rows;
  std::vector<Contribution> contributions;

  Deltas(std::size_t n, std::size_t values, std::uint64_t seed) : rows(n, std::vector<float>(values)) {
    Rng rng(seed);
    std::vector<float> common(values);
    for (float& value : common) value = rng.normal();
    for (std::size_t i = 0; i < n; ++i) {
      const float length = (i + 2 >= n && n > 4) ? -3.0f : 1.0f + 0.1f * static_cast<float>(i);
      for (std::size_t c = 0; c < values; ++c)
        rows[i][c] = 1e-3f * length * (common[c] + 1.5f * rng.normal());
    }
    connect();
  }
  void connect() {
    contributions.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Contribution c;
      c.id[0] = static_cast<std::uint8_t>(i / 256);
      c.id[31] = static_cast<std::uint8_t>(i % 256);
      c.tokens = 1000 + 10 * i;
      c.delta = rows[i];
      contributions.push_back(c);
    }
  }
  std::vector<oracle::Vector> as_oracle() const {
    std::vector<oracle::Vector> result;
    for (const auto& row : rows) result.push_back({row.begin(), row.end()});
    return result;
  }
};

inline AggregationOptions with(Rule rule, bool clip, bool mixing, std::optional<std::size_t> f = {}) {
  AggregationOptions options;
  options.choice = RuleChoice{rule, clip, mixing};
  options.f = f;
  return options;
}

inline std::vector<float> result_of(const AggregationOptions& options,
                                    const std::vector<Contribution>& contributions, std::size_t values,
                                    AggregateReport* report = nullptr) {
  std::vector<float> out(values, -7.0f);
  const auto result = aggregate(options, contributions, plenty, out);
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  if (report) *report = *result;
  return out;
}

inline bool is_error(const AggregationOptions& options, const Deltas& deltas) {
  std::vector<float> out(deltas.rows[0].size());
  const auto result = aggregate(options, deltas.contributions, plenty, out);
  return !result.ok() && result.error().code == ErrorCode::InvalidArgument;
}

inline constexpr Rule all_rules[] = {
    Rule::WeightedMean, Rule::TrimmedMean,     Rule::CoordinateMedian, Rule::Krum,
    Rule::MultiKrum,    Rule::GeometricMedian, Rule::CenteredClipping};

}  // namespace neuroshard::outer::samples
