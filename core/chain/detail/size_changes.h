// Changes of the model's size in a registry that is being made (model_size.h).
//
// One object, one draft, which outlives it. Threads: one.
#pragma once

#include "core/chain/block.h"
#include "core/chain/registry.h"

namespace neuroshard::chain {

class SizeChanges {
 public:
  SizeChanges(const ChainRules& rules, Registry& draft) : rules_(rules), draft_(draft) {}

  // Whether this can be the result of a round that changes the size. Denied says what does not hold.
  static Expected<void> check(const ResultSection& result);
  // The draft's round is such a one, and its rows do not have the result yet.
  void end(const ResultSection& result);
  // The draft has the result of a round of training. May close the next round at once, for another size.
  void count();

 private:
  const ChainRules& rules_;
  Registry& draft_;
};

}  // namespace neuroshard::chain
