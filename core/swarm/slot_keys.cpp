#include "core/swarm/slot_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/hash.h"
#include "core/dht/dht_node.h"

namespace neuroshard::swarm {

void SlotKeys::set(const std::vector<net::HeldSlot>& slots) {
  if (slots == slots_) return;
  slots_ = slots;
  wanted_.clear();
  std::vector<std::pair<Hash256, std::string>> experts;
  for (const net::HeldSlot& slot : slots_) {
    if (slot.kind == net::SlotKind::Layer) wanted_.push_back(fmt::format("/layers/{}", slot.layer));
    if (slot.kind != net::SlotKind::Expert) continue;
    std::string path = fmt::format("/experts/{}/{}", slot.layer, slot.expert);
    Bytes mixed(own_.begin(), own_.end());
    mixed.insert(mixed.end(), path.begin(), path.end());
    experts.emplace_back(crypto::sha256(mixed), std::move(path));
  }
  std::sort(experts.begin(), experts.end());
  for (auto& [order, path] : experts) wanted_.push_back(std::move(path));
  if (wanted_.size() > most) wanted_.resize(most);
}

void SlotKeys::step(dht::DhtNode& table) {
  std::erase_if(published_, [&](const std::string& path) {
    if (std::find(wanted_.begin(), wanted_.end(), path) != wanted_.end()) return false;
    table.withdraw(path);
    return true;
  });
  std::size_t now = 0;
  for (const std::string& path : wanted_) {
    if (now == at_a_time) return;
    if (!published_.insert(path).second) continue;
    ++now;
    // If it fails, the table tries again by itself.
    table.publish(path, {}, [](const Expected<dht::Published>&) {});
  }
}

}  // namespace neuroshard::swarm
