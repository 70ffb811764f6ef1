#include "core/rounds/outbox.h"

#include <algorithm>
#include <set>

#include "core/net/peer_channel.h"

namespace neuroshard::rounds {

RoundOutbox::RoundOutbox(net::PeerCaller& caller, RoundPeers& peers, const Clock& clock,
                         OutboxOptions options, Answered answered)
    : caller_(caller), peers_(peers), clock_(clock), options_(options), answered_(std::move(answered)) {}

void RoundOutbox::put(std::uint32_t key, const RoundItem& item, const std::vector<net::NodeId>& to) {
  put(key, std::make_shared<const Bytes>(encode_item(item)), to);
}

void RoundOutbox::put(std::uint32_t key, std::shared_ptr<const Bytes> post,
                      const std::vector<net::NodeId>& to) {
  set(key, std::move(post), to, clock_.monotonic_now());
  pump();
}

void RoundOutbox::put_later(std::uint32_t key, const RoundItem& item, const std::vector<net::NodeId>& to) {
  set(key, std::make_shared<const Bytes>(encode_item(item)), to,
      clock_.monotonic_now() + options_.first_pause);
}

void RoundOutbox::set(std::uint32_t key, std::shared_ptr<const Bytes> post,
                      const std::vector<net::NodeId>& to, MonotonicTime due) {
  Item& entry = items_[key];
  entry.serial = ++serial_;
  entry.bytes = std::move(post);
  entry.to.clear();
  entry.taken.clear();
  for (const net::NodeId& id : to) entry.to[id] = {due, options_.first_pause, clock_.monotonic_now(), false};
}

void RoundOutbox::drop(std::uint32_t key, const net::NodeId& to) {
  const auto item = items_.find(key);
  if (item != items_.end()) item->second.to.erase(to);
}

std::vector<net::NodeId> RoundOutbox::untold() const {
  std::set<net::NodeId> ids;
  for (const auto& [key, item] : items_)
    for (const auto& [id, recipient] : item.to) ids.insert(id);
  return {ids.begin(), ids.end()};
}

void RoundOutbox::pump() {
  for (auto& [key, item] : items_)
    for (auto& [id, recipient] : item.to)
      if (!recipient.under_way && clock_.monotonic_now() >= recipient.due) send(key, item, id);
}

void RoundOutbox::heard(const net::NodeId& from) {
  const MonotonicTime now = clock_.monotonic_now();
  for (auto& [key, item] : items_) {
    const auto at = item.to.find(from);
    if (at == item.to.end()) continue;
    // Once in a first pause, however often it calls.
    Recipient& recipient = at->second;
    if (recipient.under_way || now >= recipient.due || now - recipient.sent < options_.first_pause) continue;
    recipient.pause = options_.first_pause;
    send(key, item, from);
  }
}

void RoundOutbox::again(const net::NodeId& to) {
  const MonotonicTime now = clock_.monotonic_now();
  for (auto& [key, item] : items_) {
    const auto taken = item.taken.find(to);
    if (taken == item.taken.end() || now - taken->second < options_.first_pause) continue;
    item.taken.erase(taken);
    item.to[to] = {now, options_.first_pause, now, false};
  }
  pump();
}

std::size_t RoundOutbox::waiting() const {
  std::size_t sum = 0;
  for (const auto& [key, item] : items_) sum += item.to.size();
  return sum;
}

bool RoundOutbox::holds(std::uint32_t key) const {
  const auto item = items_.find(key);
  return item != items_.end() && !item->second.to.empty();
}

void RoundOutbox::send(std::uint32_t key, Item& item, const net::NodeId& to) {
  Recipient& recipient = item.to.at(to);
  recipient.sent = clock_.monotonic_now();
  const auto contact = peers_.find(to);
  if (!contact) {  // costs nothing to try: where it is may be known any moment
    recipient.due = recipient.sent + options_.first_pause;
    return;
  }
  recipient.due = recipient.sent + recipient.pause;
  recipient.pause = std::min(2 * recipient.pause, options_.longest_pause);
  recipient.under_way = true;
  bytes_sent_ += item.bytes->size();
  caller_.call(
      *contact, net::Method::RoundPost, *item.bytes,
      net::call_deadline(options_.allowed, item.bytes->size(), 16),
      [this, alive = std::weak_ptr<bool>(alive_), key, serial = item.serial, to](Expected<Bytes> answer) {
        if (!alive.expired()) answered(key, serial, to, std::move(answer));
      });
}

void RoundOutbox::answered(std::uint32_t key, std::uint64_t serial, const net::NodeId& from,
                           Expected<Bytes> answer) {
  const auto decoded = answer.ok() ? decode_post_answer(*answer) : Expected<PostAnswer>(answer.error());
  const auto item = items_.find(key);
  if (item != items_.end() && item->second.serial == serial) {
    const auto recipient = item->second.to.find(from);  // dropped meanwhile: none
    const bool again =
        !decoded.ok() || decoded->verdict == Verdict::LaterRound || decoded->verdict == Verdict::Busy;
    if (recipient != item->second.to.end()) {
      recipient->second.under_way = false;
      // It is there and wants it later: nothing that it says ends this pause.
      if (again && decoded.ok()) recipient->second.sent = MonotonicTime::max();
      if (!again) {
        item->second.to.erase(recipient);
        item->second.taken[from] = clock_.monotonic_now();
      }
    }
  }
  if (decoded.ok()) answered_(from, *decoded);
}

}  // namespace neuroshard::rounds
