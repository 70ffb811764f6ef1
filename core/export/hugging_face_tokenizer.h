// tokenizer.json of a Hugging Face folder as one of our tokenizers. Only byte-level BPE with our ids can be expressed: ten special
// tokens, the 256 bytes, then one token for each merge (core/data/tokenizer.h, export/vocabulary.h).
#pragma once

#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/data/tokenizer.h"

namespace neuroshard::exporting {

inline constexpr const char* hugging_face_tokenizer = "tokenizer.json";
inline constexpr std::uint64_t max_hugging_face_tokenizer_bytes = std::uint64_t{32} << 20;

// rows: of the model's embedding. The tokenizer has no sources. Errors: Corrupt, Exhausted, Unsupported (names what ours does not
// have: another model, a normalizer, another split, tokens with other ids).  Threads: any.
Expected<data::Tokenizer> parse_hugging_face_tokenizer(ByteSpan file, std::uint32_t rows);

}  // namespace neuroshard::exporting
