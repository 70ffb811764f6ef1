// GGUF headers: what is read lies within the file, and the writer gives the same header again.
#include "core/base/check.h"
#include "core/export/gguf_reader.h"
#include "core/export/gguf_writer.h"
#include "tests/fuzz/memory_source.h"

using namespace neuroshard;
using neuroshard::fuzz::MemorySource;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MemorySource source({data, size});
  const auto header = exporting::read_gguf_header(source);
  if (!header) return 0;
  for (const auto& tensor : header->tensors) {
    NS_CHECK(header->data_offset + tensor.offset + tensor.bytes <= size);
    NS_CHECK(header->tensor(tensor.name)->offset == tensor.offset);
  }
  auto writer = exporting::GgufWriter::plan(header->entries, header->tensors);
  NS_CHECK(writer.ok());
  Bytes again;
  NS_CHECK(writer
               ->begin([&](ByteSpan bytes) -> Expected<void> {
                 again.assign(bytes.begin(), bytes.end());
                 return {};
               })
               .ok());
  again.resize(again.size() + size);  // room for the data
  MemorySource second({again.data(), again.size()});
  const auto read = exporting::read_gguf_header(second);
  NS_CHECK(read.ok() && read->entries.size() == header->entries.size());
  NS_CHECK(read->tensors.size() == header->tensors.size());
  return 0;
}
