// Members fetch payloads, contributions and anchors from each other in pieces (net::Method::RoundPiece).
// docs/protocol/chain.md has the table.
//
//   request  row u32 · what u8 · hash · place u64
//   answer   whole size u64 · at most 256 KiB
//
// Decoders accept canonical bytes only. Any bytes are safe.  Errors: Corrupt.
#pragma once

#include <cstdint>

#include "core/base/byte_source.h"
#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard::rounds {

struct PieceRequest {
  enum class What : std::uint8_t {
    Payload = 1,       // hash: the payload's root; place: the first byte wanted
    Leaves = 2,        // hash: an anchor's; place: the first byte wanted of its leaves' hashes, 32 bytes each
    Chunk = 3,         // hash: an anchor's; place: the number of the leaf, from 1
    Contribution = 4,  // hash: the member's node id; place: the round
    // For members that check a row which they do not hold (row_proof.h). hash: the payload's root, the trace's root, the
    // proof's hash; place: the first byte wanted, but of sums the number of the chunk.
    PayloadLeaves = 5,
    TraceLeaves = 6,
    TraceSums = 7,
    Proof = 8,
  };
  std::uint32_t row = 0;
  What what = What::Payload;
  Hash256 hash{};
  std::uint64_t place = 0;
};
Bytes encode_piece_request(const PieceRequest& request);
Expected<PieceRequest> decode_piece_request(ByteSpan bytes);

struct PieceAnswer {
  std::uint64_t whole = 0;  // bytes in all; of a chunk: its own
  ByteSpan bytes;           // a view into what was decoded
};
Bytes encode_piece_answer(std::uint64_t whole, ByteSpan bytes);
// The answer with the piece of `whole` from `place` on. NotFound: it ends before.
Expected<Bytes> answer_from(ByteSpan whole, std::uint64_t place);
// The same of [begin, begin + size) of a source. Other errors: those of reading it.
Expected<Bytes> answer_from(const ByteSource& source, std::uint64_t begin, std::uint64_t size,
                            std::uint64_t place);
Error piece_not_held();
Expected<PieceAnswer> decode_piece_answer(ByteSpan bytes);

}  // namespace neuroshard::rounds
