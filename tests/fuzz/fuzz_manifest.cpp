// manifest.json and manifest.json.sig: what parses is within its bounds and writes itself back.
#include "core/base/check.h"
#include "core/data/manifest.h"

using neuroshard::Bytes;
using neuroshard::ByteSpan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input{data, size};
  if (const auto manifest = neuroshard::data::parse_manifest(input)) {
    NS_CHECK(manifest->shards.size() <= neuroshard::data::max_manifest_shards);
    const Bytes encoded = neuroshard::data::encode_manifest(*manifest);
    const auto again = neuroshard::data::parse_manifest({encoded.data(), encoded.size()});
    NS_CHECK(again.ok());
    NS_CHECK(neuroshard::data::encode_manifest(*again) == encoded);
  }
  if (const auto signature = neuroshard::data::parse_manifest_signature(input)) {
    const Bytes encoded = neuroshard::data::encode_manifest_signature(*signature);
    NS_CHECK(neuroshard::data::parse_manifest_signature({encoded.data(), encoded.size()}).ok());
  }
  return 0;
}
