// tokenizer.json of a Hugging Face folder: what is accepted spells every token as an export of it does.
#include "core/base/check.h"
#include "core/export/hugging_face_tokenizer.h"
#include "core/export/vocabulary.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint32_t rows = 300;
  const auto tokenizer = neuroshard::exporting::parse_hugging_face_tokenizer({data, size}, rows);
  if (!tokenizer.ok()) return 0;
  const auto vocabulary = neuroshard::exporting::make_vocabulary(*tokenizer, rows);
  NS_CHECK(vocabulary.ok() && vocabulary->merges.size() == tokenizer->merges().size());
  return 0;
}
