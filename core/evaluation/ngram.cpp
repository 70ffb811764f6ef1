#include "core/evaluation/ngram.h"

#include <algorithm>
#include <cmath>

namespace neuroshard::evaluation {
namespace {

constexpr unsigned token_bits = 20;
static_assert(data::max_vocabulary <= 1u << token_bits);

constexpr std::uint64_t low_tokens(std::size_t count) {
  return (std::uint64_t{1} << (token_bits * count)) - 1;
}

// The tokens from `at` on as one number.
std::uint64_t key_of(Span<const data::TokenId> tokens) {
  std::uint64_t key = 0;
  for (const data::TokenId token : tokens) key = key << token_bits | token;
  return key;
}

std::vector<std::uint64_t> keys_of(Span<const data::TokenId> tokens, std::size_t length) {
  std::vector<std::uint64_t> keys;
  if (tokens.size() < length) return keys;
  keys.reserve(tokens.size() - length + 1);
  for (std::size_t at = 0; at + length <= tokens.size(); ++at)
    keys.push_back(key_of(tokens.subspan(at, length)));
  return keys;
}

// Each key once, without its first token.
std::vector<std::uint64_t> continuations(std::vector<std::uint64_t> keys, std::size_t length) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (std::uint64_t& key : keys) key &= low_tokens(length - 1);
  return keys;
}

// The place of a key, or the size.
std::size_t find(const std::vector<std::uint64_t>& sorted, std::uint64_t key) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), key);
  if (at == sorted.end() || *at != key) return sorted.size();
  return static_cast<std::size_t>(at - sorted.begin());
}

}  // namespace

void NGram::Level::fill(std::vector<std::uint64_t> keys) {
  std::sort(keys.begin(), keys.end());
  for (const std::uint64_t key : keys) {
    if (grams.empty() || grams.back() != key) {
      grams.push_back(key);
      counts.push_back(0);
    }
    ++counts.back();
  }
  std::uint64_t once = 0, twice = 0;
  for (std::size_t i = 0; i < grams.size(); ++i) {
    const std::uint64_t history = grams[i] >> token_bits;
    if (histories.empty() || histories.back() != history) {
      histories.push_back(history);
      totals.push_back(0);
      followers.push_back(0);
    }
    totals.back() += counts[i];
    ++followers.back();
    once += counts[i] == 1;
    twice += counts[i] == 2;
  }
  if (once > 0 && twice > 0)
    discount = static_cast<double>(once) / (static_cast<double>(once) + 2.0 * static_cast<double>(twice));
}

Expected<NGram> NGram::learn(Span<const data::TokenId> tokens, std::uint32_t vocabulary) {
  if (tokens.empty())
    return make_error(ErrorCode::InvalidArgument, "the text of the n-gram baseline is empty");
  if (tokens.size() > max_ngram_tokens)
    return make_error(ErrorCode::InvalidArgument,
                      "the text of the n-gram baseline has more than 8 million tokens");
  if (vocabulary > data::max_vocabulary || *std::max_element(tokens.begin(), tokens.end()) >= vocabulary)
    return make_error(ErrorCode::InvalidArgument,
                      "a token of the n-gram baseline lies outside the vocabulary");
  NGram model(vocabulary);
  model.levels_[0].fill(continuations(keys_of(tokens, 2), 2));
  model.levels_[1].fill(continuations(keys_of(tokens, 3), 3));
  model.levels_[2].fill(keys_of(tokens, 3));
  return model;
}

double NGram::log_probability(Span<const data::TokenId> before, data::TokenId token) const {
  double probability = 1.0 / vocabulary_;
  for (std::size_t length = 1; length <= order && length - 1 <= before.size(); ++length) {
    const Level& level = levels_[length - 1];
    const std::uint64_t history = key_of(before.last(length - 1));
    const std::size_t h = find(level.histories, history);
    if (h == level.histories.size()) continue;
    const std::size_t g = find(level.grams, history << token_bits | token);
    const double count = g == level.grams.size() ? 0.0 : level.counts[g];
    probability = (std::max(count - level.discount, 0.0) +
                   level.discount * static_cast<double>(level.followers[h]) * probability) /
                  static_cast<double>(level.totals[h]);
  }
  return std::log(probability);
}

}  // namespace neuroshard::evaluation
