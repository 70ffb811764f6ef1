// safetensors headers: every tensor that a parsed header names lies inside the file and can be read.
#include "core/base/check.h"
#include "core/tensor/safetensors.h"
#include "tests/fuzz/memory_source.h"

using neuroshard::Bytes;
using neuroshard::fuzz::MemorySource;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MemorySource source({data, size});
  const auto header = neuroshard::tensor::read_safetensors_header(source);
  if (!header) return 0;
  NS_CHECK(header->data_offset + header->data_bytes == size);
  for (const auto& entry : header->tensors) {
    Bytes bytes(entry.bytes);
    NS_CHECK(neuroshard::tensor::read_tensor(source, *header, entry, {bytes.data(), bytes.size()}).ok());
    const auto* found = header->find(entry.spec.name);
    NS_CHECK(found != nullptr && found->begin == entry.begin);
  }
  return 0;
}
