// Prints the figures of the partitioner; tests/long.sh partition collects them.
//   measure_partition public FOLDER [SECONDS]       the graphs of a folder, k = 2, 4, 8, 16
//   measure_partition families [SECONDS [K]]        the generated families, default k = 16
//   measure_partition layered-models [SECONDS]      chains, transformer and mixture layers, k = 2, 4, 8, 16
//   measure_partition curve                         time and gap by the number of nodes, to 10,000
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "core/base/clock.h"
#include "core/partition/graph/graph_json.h"
#include "core/partition/search/partition.h"
#include "core/storage/file_env.h"
#include "tests/unit/partition/graph_families.h"

using namespace neuroshard;             // NOLINT
using namespace neuroshard::partition;  // NOLINT

namespace {

struct Measured {
  PartitionResult result;
  double seconds = 0;
};

Measured measure(const ComputationGraph& graph, std::uint32_t k, double limit) {
  const SystemClock clock;
  Peer peer;
  if (!graph.printed_transfers) peer.bandwidth = 1;
  const auto problem = make_problem(graph, std::vector<Peer>(k, peer));
  NS_CHECK(problem.ok());
  PartitionOptions options;
  options.time_limit = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(limit));
  options.rounds = 1000;
  const MonotonicTime start = clock.monotonic_now();
  auto result = find_partition(*problem, options, clock, {});
  NS_CHECK(result.ok());
  return {std::move(*result), to_seconds(clock.monotonic_now() - start)};
}

void print_row(const std::string& name, std::size_t n, std::uint32_t k, const Measured& m) {
  fmt::print("{:<40} {:>5} {:>3} {:>12.4f} {:>12.4f} {:>12.4f} {:>8.4f}% {:<6} {:>7.3f} s  {}\n", name, n, k,
             m.result.bottleneck, m.result.lower_bound, m.result.simple_bound, 100 * m.result.gap(),
             m.result.proved() ? "proved" : "", m.seconds, m.result.certificate);
  std::fflush(stdout);
}

// Geometric means and counts over a set of answers.
struct Summary {
  int count = 0, proved = 0;
  double log_bound = 0, log_simple = 0, worst = 1, slowest = 0, seconds = 0;

  void add(const Measured& m) {
    ++count;
    proved += m.result.proved();
    log_bound += std::log(m.result.lower_bound / m.result.bottleneck);
    log_simple += std::log(m.result.simple_bound / m.result.bottleneck);
    worst = std::max(worst, m.result.bottleneck / m.result.lower_bound);
    slowest = std::max(slowest, m.seconds);
    seconds += m.seconds;
  }
  void print(const std::string& name) const {
    const double bound = std::exp(log_bound / count), simple = std::exp(log_simple / count);
    fmt::print(
        "SUMMARY {}: {} of {} proved, geomean bound/best {:.4f} (simple {:.4f}, its gap closed {:.1f} x), "
        "worst "
        "best/bound {:.4f}, slowest {:.2f} s, mean {:.3f} s\n",
        name, proved, count, bound, simple, (1 - simple) / std::max(1 - bound, 1e-9), worst, slowest,
        seconds / count);
    std::fflush(stdout);
  }
};

int measure_public(const std::string& folder, double limit) {
  const auto files = storage::make_posix_file_env();
  const auto entries = files->list(folder);
  NS_CHECK(entries.ok());
  Summary summary;
  for (const auto& entry : *entries) {
    if (entry.name.find(".json") == std::string::npos) continue;
    const auto bytes = storage::read_file(*files, folder + "/" + entry.name, max_graph_file_bytes);
    NS_CHECK(bytes.ok());
    const auto graph = parse_graph(*bytes);
    NS_CHECK(graph.ok());
    for (const std::uint32_t k : {2u, 4u, 8u, 16u}) {
      const Measured m = measure(*graph, k, limit);
      print_row(entry.name, graph->nodes.size(), k, m);
      summary.add(m);
    }
  }
  summary.print("public graphs");
  return 0;
}

int measure_families(double limit, std::uint32_t k) {
  std::map<std::string, Summary> families;
  Summary all;
  for (const test::Family& family : test::all_families()) {
    const Measured m =
        measure(family.graph,
                std::min<std::uint32_t>(k, static_cast<std::uint32_t>(family.graph.nodes.size())), limit);
    print_row(family.name, family.graph.nodes.size(), k, m);
    families[family.name.substr(0, family.name.find(' '))].add(m);
    all.add(m);
  }
  for (const auto& [name, summary] : families) summary.print(name);
  all.print("all families");
  return 0;
}

int measure_layered_models(double limit) {
  Summary all;
  for (const std::uint32_t k : {2u, 4u, 8u, 16u}) {
    for (const test::Family& family : test::all_families()) {
      if (!family.is_layered_model) continue;
      const Measured m = measure(family.graph, k, limit);
      if (!m.result.proved() || m.seconds > 1) print_row(family.name, family.graph.nodes.size(), k, m);
      all.add(m);
    }
  }
  all.print("chains, transformer and mixture layers");
  return 0;
}

int measure_curve() {
  for (const std::uint32_t n : {100u, 300u, 1000u, 3000u, 10'000u}) {
    const auto graph = test::layered_random(n, 0.5, 0.1, 7);
    const Measured longer = measure(graph, 16, 8);
    for (const double limit : {0.25, 0.9}) {
      const Measured m = measure(graph, 16, limit);
      print_row(fmt::format("layered random, limit {} s", limit), n, 16, m);
      fmt::print("  against 8 s: {:.4f}\n", m.result.bottleneck / longer.result.bottleneck);
    }
    print_row("layered random, limit 8 s", n, 16, longer);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "public" && argc > 2) return measure_public(argv[2], argc > 3 ? std::atof(argv[3]) : 8);
  if (what == "families") {
    return measure_families(argc > 2 ? std::atof(argv[2]) : 1,
                            argc > 3 ? static_cast<std::uint32_t>(std::atoi(argv[3])) : 16);
  }
  if (what == "layered-models") return measure_layered_models(argc > 2 ? std::atof(argv[2]) : 1);
  if (what == "curve") return measure_curve();
  fmt::print(stderr, "usage: measure_partition public FOLDER | families | layered-models | curve\n");
  return 64;
}
