// The English words of BIP39, sorted, embedded at build time from resources/bip39_english.txt.
#pragma once

#include <array>
#include <string_view>

namespace neuroshard::crypto::detail {

extern const std::array<std::string_view, 2048> bip39_english;

}  // namespace neuroshard::crypto::detail
