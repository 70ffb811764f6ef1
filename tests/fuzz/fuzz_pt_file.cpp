// .pt shards: the zip container, and the pickle inside it reached directly, because a random change hardly
// ever leaves the archive's checksums right.
#include "core/base/check.h"
#include "core/data/detail/pickle_tensor.h"
#include "core/data/pt_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t max_tokens = 1 << 16;
  const neuroshard::ByteSpan input{data, size};
  if (const auto tokens = neuroshard::data::decode_pt(input, max_tokens)) {
    NS_CHECK(tokens->size() <= max_tokens);
    const auto file = neuroshard::data::encode_pt({tokens->data(), tokens->size()});
    NS_CHECK(file.ok());
    const auto again = neuroshard::data::decode_pt({file->data(), file->size()}, max_tokens);
    NS_CHECK(again.ok());
    NS_CHECK(*again == *tokens);
  }
  // The sizes of an accepted file add up, whatever its storage holds.
  if (const auto tensor = neuroshard::data::detail::read_tensor_pickle(input)) {
    NS_CHECK(tensor->item_size == 4 || tensor->item_size == 8);
    NS_CHECK(tensor->first_item <= tensor->storage_items);
    NS_CHECK(tensor->items <= tensor->storage_items - tensor->first_item);
  }
  return 0;
}
