// The blocks of one height that this member knows, and the judgements of each (demand.h). A block that is right
// under a stricter demand is right under every other one. Threads: one.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "core/chain/block.h"
#include "core/chain/demand.h"

namespace neuroshard::chain {

enum class Judgement : std::uint8_t { NotAsked, Pending, Right, Wrong };

class KnownBlocks {
 public:
  void know(const BlockPtr& block, std::uint32_t view);
  BlockPtr find(const Hash256& block) const;  // null: not known
  Judgement judgement(const Hash256& block, Demand demand) const;
  // Whether the question is to be put: it was never, or the last answer was "wrong". It is pending then.
  bool ask(const Hash256& block, Demand demand);
  void answer(const Hash256& block, Demand demand, bool right);
  // Those of views before this one, but not `kept`.
  void forget_before(std::uint32_t view, const Hash256* kept);

 private:
  struct Known {
    BlockPtr block;
    std::uint32_t view = 0;                // the newest in which it was proposed or locked
    std::array<Judgement, 3> judgement{};  // by demand
  };
  std::map<Hash256, Known> blocks_;
};

}  // namespace neuroshard::chain
