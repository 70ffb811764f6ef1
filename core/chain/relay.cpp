#include "core/chain/relay.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.h"
#include "core/chain/keys.h"

namespace neuroshard::chain {

RelayGrid::RelayGrid(std::size_t size) : size_(size), width_(1) {
  NS_CHECK(size > 0);
  while (width_ * width_ < size_) ++width_;
}

std::vector<std::size_t> RelayGrid::row_of(std::size_t place) const {
  const std::size_t row = place / width_;
  std::vector<std::size_t> places;
  for (std::size_t column = 0; column < std::min(width_, size_); ++column) {
    const std::size_t here = row * width_ + column;
    places.push_back(here < size_ ? here : here - width_);
  }
  return places;
}

std::vector<std::size_t> RelayGrid::column_of(std::size_t place) const {
  const std::size_t column = place % width_;
  std::vector<std::size_t> places;
  for (std::size_t first = 0; first < size_; first += width_)
    places.push_back(std::min(first + column, size_ - 1));
  return places;
}

std::vector<net::NodeId> below_in_tree(const Registry& registry, std::uint32_t root,
                                       const net::NodeId& self) {
  std::vector<net::NodeId> below;
  const MemberRecord* own = registry.find(self);
  if (own == nullptr || own->presence != Presence::Active) return below;
  const std::vector<std::uint32_t>& active = registry.active();
  // The last active member up to this number; the first one of all where there is none.
  const auto index_of = [&](std::uint32_t number) {
    const auto after = std::upper_bound(
        active.begin(), active.end(), number,
        [&](std::uint32_t wanted, std::uint32_t at) { return wanted < registry.members()[at].number; });
    return after == active.begin() ? 0 : static_cast<std::size_t>(after - active.begin()) - 1;
  };
  const std::size_t n = active.size(), first = index_of(root),
                    place = (index_of(own->number) + n - first) % n;
  for (std::size_t i = 1; i <= announced_below && announced_below * place + i < n; ++i)
    below.push_back(registry.members()[active[(first + announced_below * place + i) % n]].id);
  return below;
}

Relay::Relay(Outbox& outbox, Executor& executor, const net::NodeId& self, RelayOptions options)
    : outbox_(outbox), executor_(executor), self_(self), options_(options) {}

void Relay::on_tip(const ChainTip& tip) {
  committee_ = tip.committee;
}

// A node that does not vote takes the place that follows from its id.
std::size_t Relay::place() const {
  if (const auto position = committee_->position(self_)) return committee_->place(*position);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number |= std::uint64_t{self_[i]} << 8 * i;
  return static_cast<std::size_t>(number % committee_->size());
}

std::vector<net::NodeId> Relay::at(const std::vector<std::size_t>& places) const {
  std::vector<net::NodeId> ids;
  for (const std::size_t place : places)
    if (const net::NodeId& id = committee_->members()[committee_->leader(place)].id; id != self_)
      ids.push_back(id);
  return ids;
}

void Relay::to_all(std::uint64_t key, const ChainItem& item, Ways ways) {
  if (!committee_) return;
  if (!committee_->is_collected()) return outbox_.put(key, item, committee_->others(self_));
  const RelayGrid grid(committee_->size());
  const std::size_t own = place();
  const Bytes bytes = encode_item(item);
  outbox_.put(key, RelayedPost{RelayPath::Column, {bytes}}, at(grid.row_of(own)));
  // Nobody but the sender is in its row and in its column: on one way it passes the item on in its place.
  if (ways == Ways::One && !committee_->position(self_)) return;
  const RelayPath path = ways == Ways::One ? RelayPath::Nowhere : RelayPath::Row;
  outbox_.put(outbox_key::second_path + key, RelayedPost{path, {bytes}}, at(grid.column_of(own)));
}

void Relay::drop(std::uint64_t key) {
  outbox_.drop(key);
  outbox_.drop(outbox_key::second_path + key);
}

void Relay::drop_range(std::uint64_t first, std::uint64_t last) {
  outbox_.drop_range(first, last);
  outbox_.drop_range(outbox_key::second_path + first, outbox_key::second_path + last);
}

void Relay::pass_on(RelayPath path, Bytes item) {
  if (path == RelayPath::Nowhere || !committee_ || !committee_->position(self_)) return;
  Bundle& bundle = bundles_[path == RelayPath::Row ? 0 : 1];
  if (bundle.items.size() == max_relayed_items || bundle.bytes + item.size() > options_.most_bytes)
    send(path);
  bundle.bytes += item.size();
  bundle.items.push_back(std::move(item));
  if (bundle.bytes >= options_.most_bytes) return send(path);
  if (timer_) return;
  timer_ = executor_.post_after(options_.gather, [this] {
    timer_.reset();
    send(RelayPath::Row);
    send(RelayPath::Column);
  });
}

void Relay::send(RelayPath path) {
  Bundle& bundle = bundles_[path == RelayPath::Row ? 0 : 1];
  if (bundle.items.empty()) return;
  Bundle full = std::exchange(bundle, {});
  const RelayGrid grid(committee_->size());
  outbox_.put_once(outbox_key::first_passed_on + sent_++ % outbox_key::passed_on_window,
                   RelayedPost{RelayPath::Nowhere, std::move(full.items)},
                   at(path == RelayPath::Row ? grid.row_of(place()) : grid.column_of(place())));
}

}  // namespace neuroshard::chain
