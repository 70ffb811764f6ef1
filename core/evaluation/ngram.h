// An interpolated Kneser–Ney model of token triples (Kneser and Ney 1995; Chen and Goodman 1999, eq. 21, with one discount
// for each order): the baseline that every evaluation shows beside the model. Memory: about 40 bytes for each token learned.
//
//   P_k(w | h) = (max(c_k(hw) − D_k, 0) + D_k N_k(h) P_{k−1}(w | h')) / C_k(h)    where C_k(h) > 0, else P_{k−1}(w | h')
//   P_0(w) = 1 / vocabulary
//
// h: the k − 1 tokens before w; h': h without its first token. c_3: how often the triple occurs; c_2 and c_1: how many different
// tokens occur before the pair or the token. C_k(h) = Σ_w c_k(hw); N_k(h): tokens w with c_k(hw) > 0. D_k = n_1 / (n_1 + 2 n_2),
// n_i: entries with c_k = i; ½ where n_1 or n_2 is 0.
//
// Threads: any, once learned.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/data/tokenizer.h"

namespace neuroshard::evaluation {

inline constexpr std::size_t max_ngram_tokens = std::size_t{8} << 20;  // learned from

class NGram {
 public:
  static constexpr std::size_t order = 3;

  // vocabulary: tokens that can occur, at most data::max_vocabulary. InvalidArgument: no token, more than max_ngram_tokens, or
  // one outside the vocabulary.
  static Expected<NGram> learn(Span<const data::TokenId> tokens, std::uint32_t vocabulary);

  // The natural logarithm of the probability of `token` after `before`, of which the last two count. Never −∞ for a token of the
  // vocabulary. O(log n).
  double log_probability(Span<const data::TokenId> before, data::TokenId token) const;

 private:
  struct Level {                        // k = 1 … 3
    std::vector<std::uint64_t> grams;   // hw, 20 bits a token, ascending
    std::vector<std::uint32_t> counts;  // c_k(hw)
    std::vector<std::uint64_t> histories;
    std::vector<std::uint64_t> totals;     // C_k(h)
    std::vector<std::uint32_t> followers;  // N_k(h)
    double discount = 0.5;
    void fill(std::vector<std::uint64_t> keys);  // in any order, each as often as it counts
  };

  explicit NGram(std::uint32_t vocabulary) : vocabulary_(vocabulary) {}

  std::uint32_t vocabulary_;
  std::array<Level, order> levels_;
};

}  // namespace neuroshard::evaluation
