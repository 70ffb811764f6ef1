// Batch lists and the loader's position: every accepted value is written with the same bytes. The first byte chooses
// the reader.
#include "core/data/batch_list.h"
#include "core/data/loader.h"
#include "tests/fuzz/chosen_reader.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::data;  // NOLINT

namespace {

void read_one(std::uint8_t choice, ByteSpan input) {
  switch (choice % 3) {
    case 0: {
      const auto list = decode_batch_list(input);
      if (!list.ok()) break;
      NS_CHECK(fuzz::same(encode_batch_list(*list), input));
      static_cast<void>(batch_list_holds(*list));
      break;
    }
    case 1: {
      const auto work = decode_batch_work(input);
      if (work.ok()) NS_CHECK(fuzz::same(encode_batch_work(*work), input));
      break;
    }
    default: {
      const auto position = LoaderPosition::from_json(as_text(input));
      if (!position.ok()) break;
      const std::string text = position->to_json();
      NS_CHECK(LoaderPosition::from_json(text).value().to_json() == text);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::read_chosen(data, size, read_one);
}
