// Blocks with their certificates, bodies, registries and saved states: what is read writes itself back, and a
// block that is read has its header's root. The first byte chooses the reader.
#include "core/chain/history.h"
#include "core/chain/resume.h"
#include "tests/fuzz/chosen_reader.h"

using namespace neuroshard;         // NOLINT
using namespace neuroshard::chain;  // NOLINT

namespace {

void read_certified(ByteSpan input) {
  const auto certified = decode_certified(input, {});
  if (!certified.ok()) return;
  const Block& block = *certified->block;
  NS_CHECK(fuzz::same(*certified->bytes, input));
  const auto header = decode_certified_header(input.first(std::min(input.size(), certified_header_bytes)));
  NS_CHECK(header.ok() && *header == block.header);
  NS_CHECK(fuzz::same(*make_certified(certified->block, *certified->certificate).bytes, input));
  NS_CHECK(body_root(block.body, block.opening) == block.header.body);
}

void read_body(ByteSpan input) {
  const auto body = decode_body(input, {});
  if (!body.ok()) return;
  NS_CHECK(fuzz::same(encode_body(*body), input));
  NS_CHECK(body->empty() || !body->is_presence_only() || !body->close);
}

void read_block(std::uint8_t choice, ByteSpan input) {
  switch (choice % 6) {
    case 0: read_certified(input); break;
    case 1: read_body(input); break;
    case 2:
      if (const auto header = decode_header(input); header.ok())
        NS_CHECK(fuzz::same(encode_header(*header), input));
      break;
    case 3:
      if (const auto certificate = decode_certificate(input); certificate.ok())
        NS_CHECK(fuzz::same(encode_certificate(*certificate), input));
      break;
    case 4:
      if (const auto registry = Registry::decode(input); registry.ok())
        NS_CHECK(fuzz::same((*registry)->encode(), input));
      break;
    default:
      if (const auto point = decode_resume_point(input); point.ok())
        NS_CHECK(fuzz::same(encode_resume_point(*point), input));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::read_chosen(data, size, read_block);
}
