// Answers of NAT-PMP gateways.
#include "core/base/check.h"
#include "core/nat/nat_pmp_message.h"

using namespace neuroshard::nat::nat_pmp;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto answer = parse_answer(neuroshard::ByteSpan(data, size));
  if (!answer.ok()) return 0;
  NS_CHECK(size >= 8 && size <= max_answer_bytes);
  if (answer->result != 0) {
    NS_CHECK(!answer->outside && !result_error(answer->result).message.empty());
  } else {
    NS_CHECK(answer->outside.has_value() == (answer->operation == Operation::OutsideAddress));
  }
  return 0;
}
