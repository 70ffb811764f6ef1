// Lists that ascend strictly by a number or a key, as most lists of the chain do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace neuroshard::chain {

// key: a member or a function of an item; std::identity for a list of keys.
template <class Items, class Key>
bool is_ascending(const Items& items, Key key) {
  return std::adjacent_find(items.begin(), items.end(), [key](const auto& a, const auto& b) {
           return !(std::invoke(key, a) < std::invoke(key, b));
         }) == items.end();
}

// The item with this number; null: none. Members' numbers begin with 0 and few are gone, so most items of a list of
// them are at the place of their number.
template <class Items, class Item>
auto* find_by(Items& items, std::uint32_t Item::*number, std::uint32_t wanted) {
  if (wanted < items.size() && items[wanted].*number == wanted) return &items[wanted];
  const auto at =
      std::lower_bound(items.begin(), items.end(), wanted,
                       [number](const Item& item, std::uint32_t end) { return item.*number < end; });
  return at != items.end() && (*at).*number == wanted ? &*at : nullptr;
}

}  // namespace neuroshard::chain
