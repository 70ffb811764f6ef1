// Log messages for people about what a block says of rows and members: rows that are carried or taken back, results that
// were proven wrong, members that are expelled.
//
// The logger outlives it. Threads: one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/chain/history.h"

namespace neuroshard::runtime {

class BlockNotices {
 public:
  // name_of: a row's; empty where the model is a single row.
  using NameOf = std::function<std::string(std::uint32_t row)>;
  BlockNotices(Logger& logger, const net::NodeId& self, NameOf name_of);

  // before, after: the registries before and after the block.
  void tell_of_rows(const chain::Registry& before, const chain::Registry& after,
                    const chain::BlockBody& body);
  // Of the model: it is going to change, or a round for that has ended.
  void tell_of_size(const chain::Registry& before, const chain::Registry& after);
  void tell_of_evidence(const std::vector<chain::Evidence>& proven);

 private:
  std::string begin(std::uint32_t row) const;
  void tell_of(const chain::FalseResult& result, const net::NodeId& node);

  Logger& logger_;
  const net::NodeId self_;
  const NameOf name_of_;
};

}  // namespace neuroshard::runtime
