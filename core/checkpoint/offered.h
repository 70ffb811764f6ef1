// Which of its checkpoints a node offers to others, and so holds for them: the newest, and those before it
// for as long as somebody fetches them. In a network with rounds of seconds a checkpoint would else be
// replaced while it is on its way.
//
// The cost of serving is bounded: one checkpoint is announced as the newest for a while before the next, few
// are offered at a time, those that are not the newest have bounded room on the disk, and each ends some time
// after it was replaced, whoever still asks for it.
//
// A value type without clock or disk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"

namespace neuroshard::checkpoint {

struct OfferRules {
  Duration told = std::chrono::seconds(60);    // as the newest, at least
  Duration unused = std::chrono::seconds(60);  // nobody asked for so long: nobody fetches it
  Duration longest = std::chrono::hours(2);    // after it was replaced
  std::size_t most = 4;                        // at a time, the newest among them
};

class OfferedCheckpoints {
 public:
  struct Candidate {
    std::string name;
    std::uint64_t bytes = 0;
  };
  // When somebody asked for a part of it at last; nothing: never.
  using Asked = std::function<std::optional<MonotonicTime>(const std::string& name)>;

  explicit OfferedCheckpoints(OfferRules rules = {}) : rules_(rules) {}

  // newest_first: the complete ones that there are.  room: bytes for those that are not the newest.
  void update(const std::vector<Candidate>& newest_first, const Asked& asked, std::uint64_t room,
              MonotonicTime now);

  // The checkpoint announced as the newest; empty: there is none.
  std::string newest() const { return offers_.empty() ? std::string() : offers_.front().name; }
  std::set<std::string> names() const;

 private:
  struct Offer {
    std::string name;
    std::uint64_t bytes = 0;
    MonotonicTime told{};      // as the newest since
    MonotonicTime replaced{};  // all but the first
    MonotonicTime used{};      // told, replaced or asked for
  };
  void take_newest(const std::vector<Candidate>& newest_first, MonotonicTime now);
  void drop_least_used();

  OfferRules rules_;
  std::vector<Offer> offers_;  // the newest first
};

}  // namespace neuroshard::checkpoint
