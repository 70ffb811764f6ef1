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
  const auto group = bytes_of_group_.find(held.group);
  group->second -= cost(held.record);
  if (group->second == 0) bytes_of_group_.erase(group);
}

void RecordStore::add(const net::NodeId& at, Held held) {
  ++records_;
  bytes_ += cost(held.record);
  ++per_publisher_[held.record.publisher];
  bytes_of_group_[held.group] += cost(held.record);
  keys_[at].push_back(std::move(held));
}

RecordStore::Held RecordStore::take(Keys::iterator key, Key::iterator held) {
  Held taken = std::move(*held);
  key->second.erase(held);
  if (key->second.empty()) keys_.erase(key);
  forget(taken);
  return taken;
}

bool RecordStore::make_room(const net::NodeId& at, std::size_t bytes, std::uint64_t group) {
  while (records_ >= limits_.records || bytes_ + bytes > limits_.bytes)
    if (!drop_one(at, bytes, group)) return false;
  return true;
}

// The addresses that one computer can have are mostly one group, so a flood replaces its own records: a group
// never replaces those of smaller ones, always those of one twice as large, and others if they are farther.
bool RecordStore::drop_one(const net::NodeId& at, std::size_t bytes, std::uint64_t group) {
  const auto largest = std::max_element(bytes_of_group_.begin(), bytes_of_group_.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest == bytes_of_group_.end()) return false;
  const auto found = bytes_of_group_.find(group);
  const std::size_t own = found == bytes_of_group_.end() ? 0 : found->second;
  const bool larger = largest->second / 2 > own + bytes;  // groups of nearly one size compete by distance
  for (auto key = keys_.end(); key != keys_.begin();) {
    --key;
    if (!larger && key->first <= at) return false;
    const auto held = std::find_if(key->second.begin(), key->second.end(), [&](const Held& one) {
      return larger ? one.group == largest->first : bytes_of_group_.at(one.group) >= own;
    });
    if (held == key->second.end()) continue;
    take(key, held);
    return true;
  }
  return false;
}

Expected<void> RecordStore::make_place(const net::NodeId& at, const Record& record, std::uint64_t group) {
  const auto count = per_publisher_.find(record.publisher);
  if (count != per_publisher_.end() && count->second >= limits_.per_publisher)
    return make_error(ErrorCode::Exhausted, "this publisher stores too many records here");
  const auto key = keys_.find(at);
  if (key == keys_.end()) return {};
  std::map<std::uint64_t, std::size_t> publishers;  // of each group
  for (const Held& held : key->second) ++publishers[held.group];
  if (publishers[group] >= limits_.per_group_and_key)
    return make_error(ErrorCode::Exhausted, "this key has too many publishers of this address range");
  if (key->second.size() < limits_.publishers_per_key) return {};
  const auto most = std::max_element(publishers.begin(), publishers.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most->second < publishers[group] + 2)
    return make_error(ErrorCode::Exhausted, "this key has reached the limit of publishers");
  take(key, std::find_if(key->second.begin(), key->second.end(),
                         [&](const Held& held) { return held.group == most->first; }));
  return {};
}

Expected<void> RecordStore::put(const net::NodeId& key, Record record, std::uint64_t group, WallTime now) {
  const net::NodeId at = place(key);
  std::optional<Held> former;
  if (const auto found = keys_.find(at); found != keys_.end()) {
    const auto held = std::find_if(found->second.begin(), found->second.end(),
                                   [&](const Held& one) { return one.record.publisher == record.publisher; });
    if (held != found->second.end()) {
      if (record == held->record) return {};
      if (record.sequence <= held->record.sequence)
        return make_error(ErrorCode::Denied, "a record with this or a higher sequence is known");
      former = take(found, held);
    }
  }
  if (records_ >= limits_.records || bytes_ + cost(record) > limits_.bytes) drop_expired(now);
  Expected<void> room = make_place(at, record, group);
  if (room.ok() && !make_room(at, cost(record), group))
    room = make_error(ErrorCode::Exhausted, "this member is full of records nearer to it");
  if (room.ok())
    add(at, {std::move(record), group});
  else if (former)
    add(at, std::move(*former));
  return room;
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
