// config.json of a Hugging Face folder: what is accepted is a shape that the compute module takes.
#include "core/base/check.h"
#include "core/compute/module.h"
#include "core/export/hugging_face_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto shape = neuroshard::exporting::parse_hugging_face_config({data, size});
  if (shape.ok()) NS_CHECK(neuroshard::compute::validate(*shape).ok());
  return 0;
}
