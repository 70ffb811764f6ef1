#include "core/net/node_book.h"

#include <algorithm>

namespace neuroshard::net {

Expected<void> NodeBook::put(const NodeRecord& record, WallTime now) {
  const NodeId id = record.id();
  const auto known = records_.find(id);
  // Before the signature check: a replay must stay cheap.
  if (known != records_.end() && record.sequence <= known->second.sequence) {
    if (record.sequence == known->second.sequence && record.signature == known->second.signature) return {};
    return make_error(ErrorCode::Denied, "the node's record is not newer than the one that is known");
  }
  if (auto holds = check_node_record(record, network_id_, now); !holds.ok()) {
    if (never_held(record, network_id_)) ++forged_;
    return holds;
  }
  if (known == records_.end() && records_.size() >= most_) {
    drop_expired(now);
    if (records_.size() >= most_) {
      records_.erase(std::min_element(records_.begin(), records_.end(), [](const auto& a, const auto& b) {
        return a.second.expires < b.second.expires;
      }));
    }
  }
  records_[id] = record;
  return {};
}

const NodeRecord* NodeBook::find(const NodeId& id, WallTime now) const {
  const auto found = records_.find(id);
  return found == records_.end() || now >= found->second.expires ? nullptr : &found->second;
}

std::vector<const NodeRecord*> NodeBook::all(WallTime now) const {
  std::vector<const NodeRecord*> living;
  for (const auto& [id, record] : records_)
    if (now < record.expires) living.push_back(&record);
  return living;
}

void NodeBook::drop_expired(WallTime now) {
  std::erase_if(records_, [now](const auto& entry) { return now >= entry.second.expires; });
}

}  // namespace neuroshard::net
