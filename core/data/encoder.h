// Text to tokens. A Tokenizer is shared; each thread has an Encoder of its own with a cache of words and
// scratch space.
#pragma once

#include <memory>
#include <vector>

#include "core/base/bytes.h"
#include "core/data/tokenizer.h"

namespace neuroshard::data {

// Cost: O(n) over words seen lately, O(n log n) over anything, one huge word included. In steady state
// nothing is allocated but room in the caller's vector. About 2 MB each.  Threads: one.
class Encoder {
 public:
  explicit Encoder(std::shared_ptr<const Tokenizer> tokenizer);
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  // Appends the tokens of text to *ids; no BOS or EOS is added. Any bytes are text.  text.size() < 2^32.
  // To encode in pieces with the same result, cut with find_word_cut (pretokenizer.h).
  void encode(ByteSpan text, std::vector<TokenId>* ids);
  std::vector<TokenId> encode(ByteSpan text);

  const Tokenizer& tokenizer() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace neuroshard::data
