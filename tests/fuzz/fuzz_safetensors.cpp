// safetensors headers: every tensor that a parsed header names lies inside the file and can be read.
#include <cstring>

#include "core/base/check.h"
#include "core/tensor/safetensors.h"

using neuroshard::Bytes;
using neuroshard::ByteSpan;
using neuroshard::Expected;
using neuroshard::MutableByteSpan;

namespace {

class MemorySource final : public neuroshard::tensor::ByteSource {
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
