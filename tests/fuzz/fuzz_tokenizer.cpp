// tokenizer.json: what parses is consistent, writes itself back, and encodes without loss.
#include "core/base/check.h"
#include "core/data/encoder.h"
#include "core/data/tokenizer.h"

using neuroshard::Bytes;
using neuroshard::ByteSpan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input{data, size};
  auto tokenizer = neuroshard::data::parse_tokenizer(input);
  if (!tokenizer) return 0;
  const Bytes json = tokenizer->to_json();
  const auto again = neuroshard::data::parse_tokenizer({json.data(), json.size()});
  NS_CHECK(again.ok());
  NS_CHECK(again->hash() == tokenizer->hash());

  const auto shared = std::make_shared<const neuroshard::data::Tokenizer>(std::move(*tokenizer));
  neuroshard::data::Encoder encoder(shared);
  const auto ids = encoder.encode(input);
  const auto text = shared->decode({ids.data(), ids.size()});
  NS_CHECK(text.ok());
  NS_CHECK(*text == Bytes(data, data + size));
  return 0;
}
