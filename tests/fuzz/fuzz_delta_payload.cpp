// Delta payloads of every codec. The first byte chooses whether the checksum is put right first, so that what
// is behind it is reached; the number of values is the payload's own, up to a bound. An accepted payload is
// finite and encodes to the same bytes again.
#include <cmath>
#include <vector>

#include "core/base/check.h"
#include "core/outer/codec.h"
#include "core/outer/detail/codec_bodies.h"

using namespace neuroshard;  // NOLINT

namespace {

constexpr std::uint64_t most_values = 8 * outer::codec_chunk;
constexpr std::size_t checksum_at = 16;

void put_checksum_right(Bytes& payload) {
  const auto& kernels = outer::detail::best_codec_kernels();
  const std::uint32_t head = kernels.crc32c(0, payload.data(), checksum_at);
  store_le(payload.data() + checksum_at, kernels.crc32c(head, payload.data() + outer::codec_header_bytes,
                                                        payload.size() - outer::codec_header_bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Bytes payload(data + 1, data + size);
  if (data[0] % 8 != 0 && payload.size() >= outer::codec_header_bytes) put_checksum_right(payload);
  const auto header = outer::read_codec_header(payload);
  if (!header.ok() || header->count > most_values) {
    std::vector<float> few(3);
    NS_CHECK(!outer::decode(payload, few).ok());
    return 0;
  }
  std::vector<float> values(header->count);
  const bool accepted = outer::decode(payload, values).ok();
  for (const auto* kernels : {&outer::detail::codec_kernels_portable, &outer::detail::best_codec_kernels()}) {
    std::vector<float> again(values.size());
    NS_CHECK(outer::detail::decode_with(*kernels, payload, again).ok() == accepted);
    NS_CHECK(!accepted || again == values);
    if (!accepted) continue;
    const auto encoded = outer::detail::encode_with(*kernels, header->options, values);
    NS_CHECK(encoded.ok() && *encoded == payload);
  }
  for (const float value : values) NS_CHECK(!accepted || std::fabs(value) < outer::codec_magnitude_limit);
  return 0;
}
