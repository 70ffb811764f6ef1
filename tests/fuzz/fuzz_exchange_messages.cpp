// Messages about files: an accepted message encodes to the same bytes, and no list is longer than its
// size and its bound say. The first byte chooses the reader.
#include "core/exchange/messages.h"
#include "tests/fuzz/chosen_reader.h"

using namespace neuroshard;            // NOLINT
using namespace neuroshard::exchange;  // NOLINT

namespace {

void read_message(std::uint8_t choice, ByteSpan input) {
  switch (choice % 4) {
    case 0:
      if (const auto name = decode_name(input); name.ok()) {
        NS_CHECK(valid_name(*name) && name->size() <= max_name);
        NS_CHECK(fuzz::same(encode_name(*name), input));
      }
      break;
    case 1:
      if (const auto named = decode_named(input); named.ok()) {
        NS_CHECK(valid_size(named->content.size) && named->note.size() <= max_note);
        NS_CHECK(fuzz::same(encode_named(*named), input));
      }
      break;
    case 2:
      if (const auto request = decode_piece_request(input); request.ok())
        NS_CHECK(fuzz::same(encode_piece_request(*request), input));
      break;
    default: {
      if (input.size() < 4) break;
      const auto first = load_le<std::uint32_t>(input.data());
      if (const auto list = decode_piece_list(input.subspan(4), first); list.ok()) {
        NS_CHECK(valid_size(list->size) && list->hashes.size() <= max_listed_pieces);
        NS_CHECK(first + list->hashes.size() <= piece_count(list->size));
        NS_CHECK(fuzz::same(encode_piece_list(list->size, list->hashes), input.subspan(4)));
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::read_chosen(data, size, read_message);
}
