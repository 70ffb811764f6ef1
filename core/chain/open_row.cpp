#include "core/chain/open_row.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/chain/beacon.h"
#include "core/chain/committee.h"
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
    if (drawn.size() == checkers_per_row) break;
    if (wallets.insert(registry.find(number)->wallet).second) drawn.push_back(number);
  }
  return drawn;
}

}  // namespace neuroshard::chain
