// The table at its full sizes:  measure_dht --members N [--loss P] [--churn P] [--hostile P --attack
// poison|stale|invent]
//   [--single-path] [--told CONTACTS] [--anchored EACH] [--quorum PATHS] [--confirm MEMBERS] [--lookups N]
//   [--seed S]
// Prints one JSON object. Used by tests/long.sh dht.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

#include "tests/sim/dht_world.h"

using namespace neuroshard;
using namespace neuroshard::testing;

namespace {

std::uint64_t peak_mebibytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10) / 1024;
  return 0;
}

Hostility attack(const std::string& name) {
  if (name == "poison") return Hostility::Poison;
  if (name == "stale") return Hostility::Stale;
  if (name == "invent") return Hostility::Invent;
  return Hostility::None;
}

std::string json(const LookupReport& report) {
  return fmt::format(
      "{{\"lookups\": {}, \"right\": {:.5f}, \"wrong\": {}, \"missing\": {}, \"messages\": {:.2f}, "
      "\"messages_95\": {:.0f}, \"lost\": {:.2f}, \"paths\": {:.2f}, \"holders\": {:.2f}, \"hops\": {:.2f}, "
      "\"most_hops\": {}, \"seconds\": {:.2f}}}",
      report.lookups, report.rate(), report.wrong, report.missing, report.messages, report.messages_95,
      report.lost, report.paths, report.holders, report.hops, report.most_hops, report.seconds);
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    flags[name] = name == "--single-path" || i + 1 == argc ? "1" : argv[++i];
  }
  const auto number = [&](const char* name, double fallback) {
    const auto flag = flags.find(name);
    return flag == flags.end() ? fallback : std::strtod(flag->second.c_str(), nullptr);
  };
  PopulationOptions options;
  options.members = static_cast<std::size_t>(number("--members", 1000));
  options.network.loss = number("--loss", 0);
  options.hostile = number("--hostile", 0);
  options.hostility = attack(flags["--attack"]);
  options.told = static_cast<std::size_t>(number("--told", double(options.told)));
  options.config.lookup.anchored =
      static_cast<std::size_t>(number("--anchored", double(options.config.lookup.anchored)));
  options.config.lookup.quorum =
      static_cast<std::size_t>(number("--quorum", double(options.config.lookup.quorum)));
  options.config.lookup.confirm =
      static_cast<std::size_t>(number("--confirm", double(options.config.lookup.confirm)));
  options.seed = static_cast<std::uint64_t>(number("--seed", 1));
  const auto lookups = static_cast<std::size_t>(number("--lookups", 5000));
  const double churn = number("--churn", 0);
  const std::size_t items = std::min<std::size_t>(options.members, 1000);

  const auto begin = std::chrono::steady_clock::now();
  Population population(options);
  if (flags.count("--single-path") != 0) population.use_single_path();
  population.join_all(std::chrono::minutes(30));
  population.world().run_for(std::chrono::minutes(10));
  const std::size_t stored = population.publish(items, 1);
  int version = 1;
  if (options.hostility == Hostility::Stale) {
    population.world().run_for(std::chrono::minutes(35));
    population.publish(items, ++version);
  }
  if (churn > 0) population.churn(churn, std::chrono::hours(1));
  const LookupReport report = population.lookup(lookups, items, version);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  // State before a lookup that was not right.
  for (const auto& [item, table, minutes, paths, messages] : report.failed) {
    std::cerr << fmt::format(
        "item {}: of the 20 nearest members {} are hostile; of the honest ones {} of the 20 nearest hold "
        "version "
        "{}, {} anywhere an older one; the asking member knew {} others, {:.1f} minutes after it joined; {} "
        "paths, {} messages\n",
        item, population.hostile_near(item, 20), population.copies(item, version, 20), version,
        version > 1 ? population.copies(item, version - 1, options.members) : 0, table, minutes, paths,
        messages);
  }
  std::cout << fmt::format(
      "{{\"members\": {}, \"loss\": {}, \"churn\": {}, \"hostile\": {}, \"attack\": \"{}\", \"single_path\": "
      "{}, \"told\": {}, \"anchored\": {}, "
      "\"seed\": {}, \"stored\": {}, \"items\": {}, \"table\": {}, \"hostile_in_tables\": {:.3f}, "
      "\"live_in_tables\": {:.4f}, \"lookup\": {}, \"events\": {}, \"calls\": {}, \"wall_seconds\": {:.1f}, "
      "\"peak_mib\": {}}}\n",
      options.members, options.network.loss, churn, options.hostile, flags["--attack"],
      flags.count("--single-path") != 0, options.told, options.config.lookup.anchored, options.seed, stored,
      items, population.table_mean(), population.hostile_share(), population.live_answers(200), json(report),
      population.world().events(), population.network().counters().calls, seconds, peak_mebibytes());
  return 0;
}
