// manifest.json of a checkpoint: what is accepted is within its bounds, and signing it anew gives a manifest
// that is accepted and verified.
#include "core/base/check.h"
#include "core/checkpoint/manifest.h"

namespace checkpoint = neuroshard::checkpoint;
namespace crypto = neuroshard::crypto;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto manifest = checkpoint::parse_manifest({data, size});
  if (!manifest) return 0;
  NS_CHECK(manifest->files.size() <= checkpoint::max_files);
  (void)checkpoint::verify_signature(*manifest);
  static const crypto::KeyPair key = crypto::KeyPair::from_seed({});
  const neuroshard::Bytes encoded = checkpoint::sign_and_encode(*manifest, key);
  const auto again = checkpoint::parse_manifest({encoded.data(), encoded.size()});
  NS_CHECK(again.ok());
  NS_CHECK(checkpoint::verify_signature(*again).ok());
  return 0;
}
