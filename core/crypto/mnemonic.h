// The twelve words a person writes down: BIP39 (Palatinus, Rusnak, Voisine, Bowe 2013), English list, 128
// bits, no passphrase. The words encode 16 bytes of entropy and 4 bits of checksum.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/crypto/secret.h"

namespace neuroshard::crypto {

inline constexpr std::size_t mnemonic_word_count = 12;
inline constexpr std::size_t mnemonic_entropy_bytes = 16;
// Longest text that is looked at: twelve words of eight letters with generous white space.
inline constexpr std::size_t mnemonic_max_text = 1024;

// The 2048 words, sorted.
Span<const std::string_view> mnemonic_words();

// "abandon … about": lower case, single spaces. The entropy has exactly mnemonic_entropy_bytes.
Secret words_from_entropy(ByteSpan entropy);

// Back from words, in any case and with any white space between them. InvalidArgument: a wrong number of
// words; an unknown word (by position, with the nearest word of the list); a wrong checksum. The phrase is
// never repeated.
Expected<Secret> entropy_from_words(std::string_view phrase);

// The 64-byte BIP39 seed of canonical words: PBKDF2-HMAC-SHA512, salt "mnemonic", 2048 rounds.
Secret seed_from_words(std::string_view canonical_words);

}  // namespace neuroshard::crypto
