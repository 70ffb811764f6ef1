#include "core/crypto/mnemonic.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/edit_distance.h"
#include "core/crypto/detail/bip39_english.h"
#include "core/crypto/detail/sodium.h"
#include "core/crypto/hash.h"
#include "core/crypto/keys.h"

namespace neuroshard::crypto {
namespace {

constexpr unsigned bits_per_word = 11;
constexpr unsigned pbkdf2_rounds = 2048;
constexpr std::size_t longest_word = 8;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Lower-case words in the caller's buffer.
std::vector<std::string_view> split(MutableByteSpan text) {
  std::vector<std::string_view> words;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && !is_space(static_cast<char>(text[i]))) {
      if (text[i] >= 'A' && text[i] <= 'Z') text[i] = static_cast<std::uint8_t>(text[i] - 'A' + 'a');
      continue;
    }
    if (i > start) words.push_back(as_text(ByteSpan(text.data() + start, i - start)));
    start = i + 1;
  }
  return words;
}

// The list's word that a person most likely meant, or nothing. The first four letters identify a word of this
// list.
std::string_view nearest_word(std::string_view typed) {
  if (typed.size() > 2 * longest_word) return {};
  std::string_view best;
  std::size_t best_distance = 3;
  for (const std::string_view word : detail::bip39_english) {
    if (typed.size() >= 4 && word.substr(0, 4) == typed.substr(0, 4)) return word;
    const std::size_t distance = edit_distance(typed, word);
    if (distance < best_distance) {
      best = word;
      best_distance = distance;
    }
  }
  return best;
}

Expected<unsigned> word_index(std::string_view word, std::size_t position) {
  const auto& list = detail::bip39_english;
  const auto found = std::lower_bound(list.begin(), list.end(), word);
  if (found != list.end() && *found == word) return static_cast<unsigned>(found - list.begin());
  const std::string_view nearest = nearest_word(word);
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("word {} of the phrase is not in the word list{}", position,
                                nearest.empty() ? std::string("; check its spelling")
                                                : fmt::format("; did you mean \"{}\"?", nearest)));
}

}  // namespace

Span<const std::string_view> mnemonic_words() {
  return detail::bip39_english;
}

Secret words_from_entropy(ByteSpan entropy) {
  NS_CHECK(entropy.size() == mnemonic_entropy_bytes);
  Secret coded(mnemonic_entropy_bytes + 1);
  std::copy(entropy.begin(), entropy.end(), coded.bytes().begin());
  coded.bytes().back() = sha256(entropy)[0];
  std::array<std::string_view, mnemonic_word_count> words;
  std::size_t length = mnemonic_word_count - 1;
  for (std::size_t w = 0; w < mnemonic_word_count; ++w) {
    unsigned index = 0;
    for (std::size_t bit = w * bits_per_word; bit < (w + 1) * bits_per_word; ++bit) {
      index = index << 1 | (coded.bytes()[bit / 8] >> (7 - bit % 8) & 1u);
    }
    words[w] = detail::bip39_english[index];
    length += words[w].size();
  }
  Secret phrase(length);
  std::uint8_t* at = phrase.bytes().data();
  for (std::size_t w = 0; w < mnemonic_word_count; ++w) {
    if (w > 0) *at++ = ' ';
    at = std::copy(words[w].begin(), words[w].end(), at);
  }
  return phrase;
}

Expected<Secret> entropy_from_words(std::string_view phrase) {
  if (phrase.size() > mnemonic_max_text) {
    return make_error(ErrorCode::InvalidArgument, "the text is too long to be 12 words");
  }
  Secret text = Secret::copy_of(phrase);
  const std::vector<std::string_view> words = split(text.bytes());
  if (words.size() != mnemonic_word_count) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("expected {} words, got {}", mnemonic_word_count, words.size()));
  }
  Secret coded(mnemonic_entropy_bytes + 1);
  for (std::size_t w = 0; w < mnemonic_word_count; ++w) {
    NS_ASSIGN_OR_RETURN(const unsigned index, word_index(words[w], w + 1));
    for (unsigned b = 0; b < bits_per_word; ++b) {
      const std::size_t bit = w * bits_per_word + b;
      const unsigned value = index >> (bits_per_word - 1 - b) & 1u;
      coded.bytes()[bit / 8] = static_cast<std::uint8_t>(coded.bytes()[bit / 8] | value << (7 - bit % 8));
    }
  }
  Secret entropy = Secret::copy_of(ByteSpan(coded.bytes()).first(mnemonic_entropy_bytes));
  // Twelve words hold 132 bits: the last four are the first four of the entropy's SHA-256.
  if ((sha256(entropy.bytes())[0] & 0xf0u) != coded.bytes().back()) {
    return make_error(
        ErrorCode::InvalidArgument,
        "the 12 words do not belong together (wrong checksum): check their spelling and their order");
  }
  return entropy;
}

Secret seed_from_words(std::string_view canonical_words) {
  detail::require_sodium();
  // HMAC state keyed once; each round copies it. The output is exactly one block of PBKDF2 (RFC 8018, 5.2).
  crypto_auth_hmacsha512_state keyed;
  crypto_auth_hmacsha512_init(&keyed, reinterpret_cast<const unsigned char*>(canonical_words.data()),
                              canonical_words.size());
  static constexpr std::uint8_t salt_and_block[] = {'m', 'n', 'e', 'm', 'o', 'n', 'i', 'c', 0, 0, 0, 1};
  std::array<std::uint8_t, crypto_auth_hmacsha512_BYTES> round;
  crypto_auth_hmacsha512_state state = keyed;
  crypto_auth_hmacsha512_update(&state, salt_and_block, sizeof(salt_and_block));
  crypto_auth_hmacsha512_final(&state, round.data());
  Secret seed = Secret::copy_of(ByteSpan(round));
  for (unsigned i = 1; i < pbkdf2_rounds; ++i) {
    state = keyed;
    crypto_auth_hmacsha512_update(&state, round.data(), round.size());
    crypto_auth_hmacsha512_final(&state, round.data());
    for (std::size_t b = 0; b < round.size(); ++b) seed.bytes()[b] ^= round[b];
  }
  sodium_memzero(&keyed, sizeof(keyed));
  sodium_memzero(&state, sizeof(state));
  wipe(round);
  return seed;
}

}  // namespace neuroshard::crypto
