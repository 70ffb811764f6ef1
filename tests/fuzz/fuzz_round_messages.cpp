// Messages of the outer rounds, certificates and what a node keeps of its votes: what is read writes itself
// back. The first byte chooses the reader.
#include <algorithm>

#include "core/base/check.h"
#include "core/rounds/agreement.h"
#include "core/rounds/chain.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::rounds;  // NOLINT

namespace {

bool same(const Bytes& bytes, ByteSpan input) {
  return std::equal(bytes.begin(), bytes.end(), input.begin(), input.end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteSpan input{data + 1, size - 1};
  switch (data[0] % 9) {
    case 0:
      if (const auto item = decode_item(input); item.ok()) NS_CHECK(same(encode_item(*item), input));
      break;
    case 1:
      if (const auto quorum = decode_quorum(input); quorum.ok()) {
        NS_CHECK(same(encode_quorum(*quorum), input));
        NS_CHECK(quorum->body.members.size() <= max_round_members);
        NS_CHECK(!next_members(quorum->body).empty());
        static_cast<void>(check_quorum(*quorum, VoteStep::Commit, Hash256{}));
      }
      break;
    case 2:
      if (const auto c = decode_contribution(input); c.ok()) NS_CHECK(same(encode_contribution(*c), input));
      break;
    case 3:
      if (const auto status = decode_status(input); status.ok())
        NS_CHECK(same(encode_status(*status), input));
      break;
    case 4:
      if (const auto answer = decode_chain_answer(input); answer.ok())
        NS_CHECK(same(encode_chain_answer(*answer), input));
      break;
    case 5:
      if (const auto request = decode_fetch_request(input); request.ok())
        NS_CHECK(same(encode_fetch_request(*request), input));
      break;
    case 6:
      if (const auto memory = decode_agreement_memory(input); memory.ok())
        NS_CHECK(same(encode_agreement_memory(*memory), input));
      break;
    case 7: static_cast<void>(RoundChain::decode(Hash256{}, input)); break;
    default:
      static_cast<void>(decode_post_answer(input));
      static_cast<void>(decode_chain_request(input));
      static_cast<void>(decode_fetch_answer(input));
      static_cast<void>(decode_slot(input));
  }
  return 0;
}
