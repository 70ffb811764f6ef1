// Shards on disk: a PyTorch `.pt` file of one 1-D int64 tensor, as torch.save writes it and
// torch.load(weights_only=True) reads it. A zip archive with stored entries: archive/data.pkl (how to rebuild
// the tensor), archive/data/0 (the values, little-endian), archive/version, archive/byteorder.
//
// Reading never executes a pickle: an interpreter knows the few opcodes that torch.save emits for a tensor
// and the names torch._utils._rebuild_tensor_v2, torch.LongStorage, torch.IntStorage and
// collections.OrderedDict; anything else is an error that names it. Sizes are checked before memory is
// allocated, so a small file can't claim a large tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/storage/file_env.h"

namespace neuroshard::data {

// The file of these tokens. Equal tokens give equal bytes.
Expected<Bytes> encode_pt(Span<const std::int32_t> tokens);

// The tensor's values (int64 or int32 in the file). Corrupt: not such a file, or values outside [0, 2^31).
// Unsupported: a well-formed file of something else (floats, several tensors, a dictionary, another format of
// torch). Exhausted: more than max_tokens values. Safe on any bytes.
Expected<std::vector<std::int32_t>> decode_pt(ByteSpan file, std::uint64_t max_tokens);

}  // namespace neuroshard::data
