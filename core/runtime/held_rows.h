// The rows of the chain that this node holds: all of them, or the one of its part of the model (config/model_part.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/spool.h"
#include "core/chain/row_set.h"
#include "core/config/model_part.h"
#include "core/rounds/learner.h"

namespace neuroshard::runtime {

class HeldRows {
 public:
  HeldRows(const config::ConsensusPart& consensus, const Hash256& network);

  // Where members hold parts: the one here. Before this, and where every member holds the whole model: all rows.
  void hold(std::uint32_t part) { rows_ = chain::RowSet::of({part}); }
  const chain::RowSet& rows() const { return rows_; }
  // The learners of `count` rows; null for rows of others. own: of the rows that this node holds, in order.
  std::vector<rounds::RoundLearner*> learners(std::size_t count,
                                              const std::vector<rounds::RoundLearner*>& own) const;
  // Makes the first states of the rows that others hold. Null: there are none.  Threads: any.
  std::function<Expected<rounds::Anchor>(std::uint32_t row)> other_states(std::shared_ptr<Spool> spool) const;
  // "fragment 2 of 4", "part 2 of 4"; empty for a single row.
  std::string name_of(std::uint32_t row, std::size_t count) const;

 private:
  const compute::ModelShape shape_;
  const std::vector<compute::StageRange> parts_;
  const Hash256 network_;
  chain::RowSet rows_;
};

}  // namespace neuroshard::runtime
