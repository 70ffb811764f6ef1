// Graph and peer files: what parses is valid, becomes a problem or an error, and a small one is partitioned.
#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/partition/graph/graph_json.h"
#include "core/partition/search/partition.h"

using neuroshard::ByteSpan;
using namespace neuroshard::partition;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input{data, size};
  (void)parse_peers(input);
  const auto graph = parse_graph(input);
  if (!graph) return 0;
  NS_CHECK(validate(*graph).ok());
  NS_CHECK(graph->nodes.size() <= max_nodes);
  if (graph->nodes.size() > 30) return 0;
  Peer peer;
  if (!graph->printed_transfers) peer.bandwidth = 100;
  const auto problem =
      make_problem(*graph, std::vector<Peer>(std::min<std::size_t>(graph->nodes.size(), 3), peer));
  if (!problem) return 0;
  PartitionOptions options;
  options.time_limit = neuroshard::Duration(0);
  options.rounds = 1;
  const auto result = find_partition(*problem, options, neuroshard::ManualClock(), {});
  NS_CHECK(result.ok());
  NS_CHECK(result->lower_bound <= result->bottleneck);
  return 0;
}
