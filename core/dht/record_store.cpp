#include "core/dht/record_store.h"

#include <algorithm>

namespace neuroshard::dht {
namespace {

// The cost of a record: its bytes and the containers around them.
std::size_t cost(const Record& record) {
  constexpr std::size_t around = 256;
  return around + record.path.size() + record.payload.size();
}

}  // namespace

net::NodeId RecordStore::place(const net::NodeId& key) const {
  net::NodeId at;
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = key[i] ^ self_[i];
  return at;
}

void RecordStore::forget(const Held& held) {
  --records_;
  bytes_ -= cost(held.record);
  const auto publisher = per_publisher_.find(held.record.publisher);
  if (--publisher->second == 0) per_publisher_.erase(publisher);
}

bool RecordStore::make_room(const net::NodeId& at, std::size_t bytes) {
  while (records_ >= limits_.records || bytes_ + bytes > limits_.bytes) {
    const auto farthest = std::prev(keys_.end());
    if (keys_.empty() || farthest->first <= at) return false;
    for (const Held& held : farthest->second) forget(held);
    keys_.erase(farthest);
  }
  return true;
}

Expected<void> RecordStore::check_room(const net::NodeId& at, const Record& record,
                                       std::uint64_t group) const {
  const auto count = per_publisher_.find(record.publisher);
  if (count != per_publisher_.end() && count->second >= limits_.per_publisher)
    return make_error(ErrorCode::Exhausted, "this publisher stores too many records here");
  const auto key = keys_.find(at);
  if (key == keys_.end()) return {};
  if (key->second.size() >= limits_.publishers_per_key)
    return make_error(ErrorCode::Exhausted, "this key has reached the limit of publishers");
  const auto near = std::count_if(key->second.begin(), key->second.end(),
                                  [&](const Held& held) { return held.group == group; });
  if (static_cast<std::size_t>(near) >= limits_.per_group_and_key)
    return make_error(ErrorCode::Exhausted, "this key has too many publishers of this address range");
  return {};
}

Expected<void> RecordStore::put(const net::NodeId& key, Record record, std::uint64_t group, WallTime now) {
  const net::NodeId at = place(key);
  if (const auto found = keys_.find(at); found != keys_.end()) {
    for (Held& held : found->second) {
      if (held.record.publisher != record.publisher) continue;
      if (record == held.record) return {};
      if (record.sequence <= held.record.sequence)
        return make_error(ErrorCode::Denied, "a record with this or a higher sequence is known");
      bytes_ = bytes_ - cost(held.record) + cost(record);
      held = {std::move(record), group};
      return {};
    }
  }
  if (records_ >= limits_.records || bytes_ + cost(record) > limits_.bytes) drop_expired(now);
  NS_RETURN_IF_ERROR(check_room(at, record, group));
  if (!make_room(at, cost(record)))
    return make_error(ErrorCode::Exhausted, "this member is full of records nearer to it");
  ++records_;
  bytes_ += cost(record);
  ++per_publisher_[record.publisher];
  keys_[at].push_back({std::move(record), group});
  return {};
}

std::vector<const Record*> RecordStore::find(const net::NodeId& key, WallTime now) const {
  std::vector<const Record*> found;
  const auto held = keys_.find(place(key));
  if (held == keys_.end()) return found;
  for (const Held& one : held->second)
    if (now < one.record.expires) found.push_back(&one.record);
  return found;
}

void RecordStore::drop_expired(WallTime now) {
  for (auto key = keys_.begin(); key != keys_.end();) {
    std::erase_if(key->second, [&](const Held& held) {
      if (now < held.record.expires) return false;
      forget(held);
      return true;
    });
    key = key->second.empty() ? keys_.erase(key) : std::next(key);
  }
}

}  // namespace neuroshard::dht
