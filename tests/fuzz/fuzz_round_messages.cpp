// Messages of the outer rounds, certificates and what a node keeps of its votes: what is read writes itself
// back. The first byte chooses the reader.
#include "core/rounds/agreement.h"
#include "core/rounds/chain.h"
#include "tests/fuzz/chosen_reader.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::rounds;  // NOLINT

namespace {

void read_message(std::uint8_t choice, ByteSpan input) {
  switch (choice % 9) {
    case 0:
      if (const auto item = decode_item(input); item.ok()) NS_CHECK(fuzz::same(encode_item(*item), input));
      break;
    case 1:
      if (const auto quorum = decode_quorum(input); quorum.ok()) {
        NS_CHECK(fuzz::same(encode_quorum(*quorum), input));
        NS_CHECK(quorum->body.members.size() <= max_round_members);
        NS_CHECK(!next_members(quorum->body).empty());
        static_cast<void>(check_quorum(*quorum, VoteStep::Commit, Hash256{}));
      }
      break;
    case 2:
      if (const auto c = decode_contribution(input); c.ok())
        NS_CHECK(fuzz::same(encode_contribution(*c), input));
      break;
    case 3:
      if (const auto status = decode_status(input); status.ok())
        NS_CHECK(fuzz::same(encode_status(*status), input));
      break;
    case 4:
      if (const auto answer = decode_chain_answer(input); answer.ok())
        NS_CHECK(fuzz::same(encode_chain_answer(*answer), input));
      break;
    case 5:
      if (const auto request = decode_fetch_request(input); request.ok())
        NS_CHECK(fuzz::same(encode_fetch_request(*request), input));
      break;
    case 6:
      if (const auto memory = decode_agreement_memory(input); memory.ok())
        NS_CHECK(fuzz::same(encode_agreement_memory(*memory), input));
      break;
    case 7: static_cast<void>(RoundChain::decode(Hash256{}, input)); break;
    default:
      static_cast<void>(decode_post_answer(input));
      static_cast<void>(decode_chain_request(input));
      static_cast<void>(decode_fetch_answer(input));
      static_cast<void>(decode_slot(input));
      if (const auto request = decode_status_request(input); request.ok())
        NS_CHECK(fuzz::same(encode_status_request(*request), input));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::read_chosen(data, size, read_message);
}
