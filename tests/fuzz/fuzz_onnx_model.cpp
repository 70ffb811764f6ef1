// ONNX models: any bytes give an error or a graph that is valid.
#include "core/base/check.h"
#include "core/partition/import/onnx_import.h"

using neuroshard::ByteSpan;
using namespace neuroshard::partition;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input{data, size};
  (void)is_onnx(input);
  OnnxOptions options;
  options.dimensions = {{"batch", 3}};
  (void)infer_onnx(input, options);
  const auto costed = import_onnx(input, options);
  if (!costed) return 0;
  NS_CHECK(validate(costed->graph).ok());
  NS_CHECK(costed->costs.size() == costed->graph.nodes.size());
  for (const OperationCost& cost : costed->costs) NS_CHECK(cost.flops >= 0 && cost.bytes >= 0);
  return 0;
}
