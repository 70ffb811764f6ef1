#include "core/chain/open_row.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/chain/ascending.h"
#include "core/chain/beacon.h"
#include "core/chain/committee.h"
#include "core/chain/contribution.h"
#include "core/chain/detail/formats.h"
#include "core/chain/registry.h"
#include "core/crypto/merkle.h"

namespace neuroshard::chain {

Hash256 contributors_hash(const std::vector<RowContributor>& contributors) {
  Bytes bytes;
  for (const RowContributor& one : contributors) append_record(bytes, std::tie(one.id, one.work));
  return tagged_hash("neuroshard/chain/row-contributors/1", bytes);
}

Hash256 result_hash(const RowResult& result) {
  Bytes bytes;
  append_result(bytes, result);
  return crypto::merkle_leaf(bytes);
}

std::vector<std::uint32_t> draw_checkers(const Registry& registry, const Committee& committee,
                                         const Hash256& beacon, std::uint32_t row) {
  std::set<std::uint32_t> wallets;  // that hold the row, or have a checker
  for (const MemberRecord& member : registry.members())
    if (member.rows.has(row)) wallets.insert(member.wallet);
  const std::string purpose = "checker " + std::to_string(row);
  std::vector<std::pair<Hash256, std::uint32_t>> order;
  for (const CommitteeMember& voter : committee.members())
    order.emplace_back(lot(purpose.c_str(), beacon, voter.id), voter.number);
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> drawn;
  for (const auto& [by_lot, number] : order) {
    if (drawn.size() == most_checkers) break;
    if (wallets.insert(registry.find(number)->wallet).second) drawn.push_back(number);
  }
  return drawn;
}

bool may_withhold(const Registry& registry, const Vector& vector) {
  return std::all_of(vector.withheld.begin(), vector.withheld.end(), [&](const RowRound& one) {
    const OpenRow* open = registry.open_row(one.row, one.round);
    return open != nullptr &&
           std::find(open->checkers.begin(), open->checkers.end(), vector.voter) != open->checkers.end();
  });
}

std::size_t count_withheld(const OpenRow& open, const std::vector<Vector>& vectors, std::size_t of) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(of, open.checkers.size()); ++i) {
    const Vector* vector = find_by(vectors, &Vector::voter, open.checkers[i]);
    const RowRound wanted{open.row, open.round};
    if (vector != nullptr &&
        std::find(vector->withheld.begin(), vector->withheld.end(), wanted) != vector->withheld.end())
      ++count;
  }
  return count;
}

}  // namespace neuroshard::chain
