// The close section of a block as bytes. Thousands of members are in hundreds of vectors, so their numbers are
// written once and each vector as a bitmap over them. Results that voters say are withheld are rare: if there are any, they
// come at the end.
#pragma once

#include "core/chain/block.h"

namespace neuroshard::chain {

// Openings and rounds of the vectors are not written: they are the section's.
Bytes encode_close(const CloseSection& close);
Expected<CloseSection> decode_close(ByteSpan bytes, const Hash256& opening);

}  // namespace neuroshard::chain
