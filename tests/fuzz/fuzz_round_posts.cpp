// The rounds' posts and pieces: every accepted value encodes to the same bytes. The first byte chooses the reader.
#include "core/chain/attestation.h"
#include "core/rounds/pieces.h"
#include "core/rounds/round_posts.h"
#include "core/rounds/row_proof.h"
#include "tests/fuzz/chosen_reader.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::rounds;  // NOLINT

namespace {

constexpr std::size_t most_rows = 8;

void read_contribution(ByteSpan input) {
  const auto post = decode_contribution_post(input, most_rows);
  if (!post) return;
  std::vector<Payload> payloads;
  for (const auto& [row, payload] : post->payloads) payloads.push_back(in_memory(payload));
  NS_CHECK(fuzz::same(encode_contribution_post(post->contribution, payloads), input));
}

void read_post(std::uint8_t choice, ByteSpan input) {
  switch (choice % 5) {
    case 0: read_contribution(input); break;
    case 1: {
      const auto request = decode_piece_request(input);
      if (request.ok()) NS_CHECK(fuzz::same(encode_piece_request(*request), input));
      break;
    }
    case 2: {
      const auto attestation = chain::decode_attestation(input, most_rows);
      if (attestation.ok()) NS_CHECK(fuzz::same(chain::encode_attestation(*attestation), input));
      break;
    }
    case 4: {
      const auto proof = decode_row_proof(input);
      if (proof.ok()) NS_CHECK(fuzz::same(encode_row_proof(*proof), input));
      break;
    }
    default: {
      const auto answer = decode_piece_answer(input);
      if (answer.ok()) NS_CHECK(fuzz::same(encode_piece_answer(answer->whole, answer->bytes), input));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::read_chosen(data, size, read_post);
}
