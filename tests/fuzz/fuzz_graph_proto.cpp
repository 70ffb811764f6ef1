// Graphs in protobuf form: what parses is valid and comes back from both forms as it was.
#include "core/base/check.h"
#include "core/partition/graph/graph_json.h"
#include "core/partition/graph/graph_proto.h"

using neuroshard::ByteSpan;
using namespace neuroshard::partition;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto graph = parse_graph_proto(ByteSpan{data, size});
  if (!graph) return 0;
  NS_CHECK(validate(*graph).ok());
  const neuroshard::Bytes written = format_graph_proto(*graph);
  const auto again = parse_graph_proto(written);
  NS_CHECK(again.ok());
  NS_CHECK(format_graph_proto(*again) == written);
  const std::string text = format_graph(*graph);
  const auto json = parse_graph(neuroshard::as_bytes(std::string_view(text)));
  NS_CHECK(json.ok() && json->nodes.size() == graph->nodes.size());
  return 0;
}
