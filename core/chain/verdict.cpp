#include "core/chain/verdict.h"

#include <iterator>

namespace neuroshard::chain {

std::string_view to_string(Verdict verdict) {
  static constexpr std::string_view names[] = {"taken",
                                               "known already",
                                               "malformed",
                                               "of another history",
                                               "of an earlier height or round",
                                               "of a later height or round",
                                               "not from a member",
                                               "a wrong signature",
                                               "not from the leader",
                                               "of another view",
                                               "a certificate that does not hold",
                                               "not admissible",
                                               "equivocation",
                                               "over a limit",
                                               "busy",
                                               "too late for this round",
                                               "more tokens than a round can train",
                                               "another codec",
                                               "too large",
                                               "another member's payload"};
  static_assert(std::size(names) == static_cast<std::size_t>(Verdict::Count_));
  return names[static_cast<std::size_t>(verdict)];
}

}  // namespace neuroshard::chain
