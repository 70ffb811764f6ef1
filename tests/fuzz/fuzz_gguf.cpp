// GGUF headers: what is read lies within the file, and the writer gives the same header again.
#include <cstring>

#include "core/base/check.h"
#include "core/export/gguf_reader.h"
#include "core/export/gguf_writer.h"

using namespace neuroshard;

namespace {

class MemorySource final : public tensor::ByteSource {
 public:
  explicit MemorySource(ByteSpan bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) override {
    // The reader promises to stay inside.
    NS_CHECK(offset <= bytes_.size() && target.size() <= bytes_.size() - offset);
    if (target.size() != 0) std::memcpy(target.data(), bytes_.data() + offset, target.size());
    return {};
  }

 private:
  ByteSpan bytes_;
};

}  // namespace

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
