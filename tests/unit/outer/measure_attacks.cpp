// The whole battery, as text: measure_attacks dense|top-k [--rules] [SEED…]. Every attack at 2 of 8 against
// the default rule and the plain mean, and 4 of 10 with f = 4; --rules: the other rules beside them. Lines
// that begin with SUMMARY are figures for tests/long.sh attacks. Exit code 1 when a gate is missed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/outer/attack_battery.h"

using namespace neuroshard;
using namespace neuroshard::outer;

namespace {

BatterySettings top_k_settings(BatterySettings settings) {
  settings.top_k = 64;
  settings.rule.sparse = true;
  settings.outer = {1.0f, 0.0f};
  settings.learner.lr = 4e-3f;
  settings.rounds = 120;
  return settings;
}

struct Row {
  double mean = 0, worst = 0;  // loss at the end over clean of the same seed, minus 1
  double on_the_way = 0;       // the worst of that at any tenth round: how much slower the descent is
  bool finite = true, falling = true;
};

Row against(const std::vector<std::uint64_t>& seeds, const std::vector<BatteryResult>& clean,
            BatterySettings settings) {
  Row row;
  row.worst = -1e300;
  for (std::size_t s = 0; s < seeds.size(); ++s) {
    settings.seed = seeds[s];
    const BatteryResult result = run_battery(settings);
    const double excess = result.loss / clean[s].loss - 1;
    row.mean += excess / static_cast<double>(seeds.size());
    row.worst = std::max(row.worst, excess);
    for (std::size_t k = 0; k < std::min(result.every_tenth.size(), clean[s].every_tenth.size()); ++k)
      row.on_the_way = std::max(row.on_the_way, result.every_tenth[k] / clean[s].every_tenth[k] - 1);
    row.finite = row.finite && result.finite;
    row.falling = row.falling && result.finite && result.loss < result.first_loss;
  }
  return row;
}

std::string percent(const Row& row) {
  if (!row.finite) return "diverges";
  char text[64];
  std::snprintf(text, sizeof text, "%+.1f %% (%+.1f; on the way %+.0f)", 100 * row.mean, 100 * row.worst,
                100 * row.on_the_way);
  return text;
}

// The work of one program: a codec, its seeds and their losses without attackers.
struct Study {
  std::string name;
  BatterySettings base;
  std::vector<std::uint64_t> seeds;
  std::vector<BatteryResult> clean;

  Row of(const BatterySettings& settings) const { return against(seeds, clean, settings); }
  BatterySettings with(Attack attack, std::size_t contributors, std::size_t liars) const {
    BatterySettings settings = base;
    settings.contributors = contributors;
    settings.liars = liars;
    settings.attack = attack;
    return settings;
  }
};

void run_clean(Study& study) {
  double lowest = 1e300, highest = 0, cosine = 0, sum = 0;
  for (const std::uint64_t seed : study.seeds) {
    BatterySettings settings = study.base;
    settings.seed = seed;
    study.clean.push_back(run_battery(settings));
    const BatteryResult& result = study.clean.back();
    lowest = std::min(lowest, result.loss), highest = std::max(highest, result.loss);
    sum += result.loss, cosine += result.honest_cosine;
  }
  const double count = static_cast<double>(study.seeds.size());
  std::printf("SUMMARY %s, clean, 8 contributors, %u rounds: loss %.4f (%.4f to %.4f), honest cosine %.3f\n",
              study.name.c_str(), study.base.rounds, sum / count, lowest, highest, cosine / count);
  BatterySettings exact = study.base;
  exact.rule.f = 0;
  std::printf("SUMMARY %s, clean, plain mean: %s\n", study.name.c_str(), percent(study.of(exact)).c_str());
  exact.contributors = 6;
  std::printf("SUMMARY %s, clean, six contributors, plain mean: %s\n", study.name.c_str(),
              percent(study.of(exact)).c_str());
}

void run_other_rules(const Study& study, const BatterySettings& attacked) {
  const std::pair<const char*, RuleChoice> others[] = {
      {"clip + trimmed mean", {Rule::TrimmedMean, true, false}},
      {"clip + median", {Rule::CoordinateMedian, true, false}},
      {"Krum", {Rule::Krum, false, false}},
      {"Multi-Krum", {Rule::MultiKrum, false, false}},
      {"clip + geometric median", {Rule::GeometricMedian, true, false}},
      {"clip + CC", {Rule::CenteredClipping, true, false}},
      {"clip + NNM + CC", {Rule::CenteredClipping, true, true}},
      {"clip + NNM + trimmed mean", {Rule::TrimmedMean, true, true}}};
  std::printf("RULES %s, %s:", study.name.c_str(), std::string(to_string(*attacked.attack)).c_str());
  for (const auto& [name, choice] : others) {
    BatterySettings with = attacked;
    with.rule.choice = choice;
    std::printf(" %s %s;", name, percent(study.of(with)).c_str());
  }
  std::printf("\n");
}

bool two_of_eight(const Study& study, Attack attack, bool rules) {
  const BatterySettings settings = study.with(attack, 8, 2);
  const Row ours = study.of(settings);
  BatterySettings plain = settings;
  plain.rule.choice = RuleChoice{Rule::WeightedMean, false, false};
  const Row mean = study.of(plain);
  const bool ok = ours.finite && ours.worst <= 0.05;
  const bool shown = attack != Attack::SignFlipTen || !mean.finite || mean.worst > 0.2;
  std::printf("SUMMARY %s, 2 of 8, %s: ours %s, plain mean %s%s%s\n", study.name.c_str(),
              std::string(to_string(attack)).c_str(), percent(ours).c_str(), percent(mean).c_str(),
              ok ? "" : " MISSED (<= +5 %)", shown ? "" : " MISSED (plain mean must fail)");
  if (rules) run_other_rules(study, settings);
  std::fflush(stdout);
  return ok && shown;
}

bool four_of_ten(const Study& study, Attack attack) {
  BatterySettings settings = study.with(attack, 10, 4);
  settings.rule.f = 4;
  const Row ours = study.of(settings);
  const bool ok = ours.finite && ours.falling;
  std::printf("SUMMARY %s, 4 of 10, f=4, %s: %s%s\n", study.name.c_str(),
              std::string(to_string(attack)).c_str(), percent(ours).c_str(),
              ok ? "" : " MISSED (finite and falling)");
  std::fflush(stdout);
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  Study study;
  study.name = argc > 1 ? argv[1] : "";
  if (study.name != "dense" && study.name != "top-k") {
    std::fputs("usage: measure_attacks dense|top-k [--rules] [SEED…]\n", stderr);
    return 64;
  }
  if (study.name == "top-k") study.base = top_k_settings(study.base);
  const bool rules = argc > 2 && std::string(argv[2]) == "--rules";
  for (int i = rules ? 3 : 2; i < argc; ++i) study.seeds.push_back(std::strtoull(argv[i], nullptr, 10));
  if (study.seeds.empty()) study.seeds = {1, 2, 3};
  run_clean(study);
  bool ok = true;
  for (const Attack attack : all_attacks) ok &= two_of_eight(study, attack, rules);
  for (const Attack attack : all_attacks) ok &= four_of_ten(study, attack);
  std::printf("SUMMARY %s: %s\n", study.name.c_str(), ok ? "passed" : "FAILED");
  return ok ? 0 : 1;
}
