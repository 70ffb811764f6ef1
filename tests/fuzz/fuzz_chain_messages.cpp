// Messages of the chain, the statements, votes and contributions in them, and what a node keeps of its votes:
// what is read writes itself back. The first byte chooses the reader.
#include "core/chain/messages.h"
#include "core/chain/status.h"
#include "tests/fuzz/chosen_reader.h"

using namespace neuroshard;         // NOLINT
using namespace neuroshard::chain;  // NOLINT

namespace {

constexpr std::size_t most_rows = 8, most_members = 256, vector_rows = 2;

template <class Value, class Encode>
bool writes_back(const Expected<Value>& value, Encode encode, ByteSpan input) {
  if (!value.ok()) return false;
  NS_CHECK(fuzz::same(encode(*value), input));
  return true;
}

void read_statement(ByteSpan input) {
  const auto statement = decode_statement(input);
  if (writes_back(statement, encode_statement, input)) static_cast<void>(statement_holds(*statement, {}));
}

void read_evidence(ByteSpan input) {
  const auto evidence = decode_evidence(input);
  if (writes_back(evidence, encode_evidence, input)) static_cast<void>(evidence_holds(*evidence, {}));
}

void read_message(std::uint8_t choice, ByteSpan input) {
  switch (choice % 12) {
    case 0: writes_back(decode_item(input, {}), encode_item, input); break;
    case 1: writes_back(decode_status(input), encode_status, input); break;
    case 2: writes_back(decode_blocks_answer(input), encode_blocks_answer, input); break;
    case 3: writes_back(decode_answer(input), encode_answer, input); break;
    case 4: writes_back(decode_registry_answer(input), encode_registry_answer, input); break;
    case 5: writes_back(decode_registry_request(input), encode_registry_request, input); break;
    case 6: writes_back(decode_contribution(input, most_rows), encode_contribution, input); break;
    case 7: writes_back(decode_vector(input, most_members, vector_rows), encode_vector, input); break;
    case 8: read_statement(input); break;
    case 9: read_evidence(input); break;
    case 10: writes_back(decode_agreement_memory(input, {}), encode_agreement_memory, input); break;
    default:
      writes_back(decode_status_request(input), encode_status_request, input);
      writes_back(decode_voucher(input), encode_voucher, input);
      writes_back(decode_blocks_request(input), encode_blocks_request, input);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::read_chosen(data, size, read_message);
}
