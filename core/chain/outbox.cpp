#include "core/chain/outbox.h"

#include <algorithm>

#include "core/net/peer_channel.h"

namespace neuroshard::chain {

namespace {
constexpr std::size_t answer_bytes = 16;
// An attempt has this long, beside the time for its bytes, and each next one twice as long, up to the options'
// `allowed`: a lost message costs little, and a slow node has its time in the end.
constexpr Duration first_allowed = std::chrono::seconds(2);
}  // namespace

struct Outbox::Recipient {
  MonotonicTime due{};
  Duration pause{};
  MonotonicTime sent{};
  Duration allowed = first_allowed;
  bool under_way = false;
};

struct Outbox::Item {
  std::uint64_t serial = 0;
  Bytes bytes;
  std::map<net::NodeId, Recipient> to;
  std::map<net::NodeId, MonotonicTime> taken;  // and when
  bool once = false;
};

Outbox::Outbox(net::PeerCaller& caller, Peers& peers, const Clock& clock, OutboxOptions options,
               Answered answered)
    : caller_(caller), peers_(peers), clock_(clock), options_(options), answered_(std::move(answered)) {}

Outbox::~Outbox() = default;

void Outbox::put(std::uint64_t key, const ChainItem& item, const std::vector<net::NodeId>& to) {
  put(key, encode_item(item), to);
}

void Outbox::put(std::uint64_t key, Bytes item, const std::vector<net::NodeId>& to) {
  auto& entry = items_[key];
  entry = std::make_unique<Item>();
  entry->serial = ++serial_;
  entry->bytes = std::move(item);
  const MonotonicTime now = clock_.monotonic_now();
  for (const net::NodeId& id : to) entry->to[id] = {now, options_.first_pause, now};
  pump();
}

void Outbox::put_once(std::uint64_t key, const ChainItem& item, const std::vector<net::NodeId>& to) {
  put(key, item, to);
  if (const auto entry = items_.find(key); entry != items_.end()) entry->second->once = true;
}

void Outbox::drop(std::uint64_t key) {
  items_.erase(key);
}

void Outbox::drop_range(std::uint64_t first, std::uint64_t last) {
  items_.erase(items_.lower_bound(first), items_.upper_bound(last));
}

void Outbox::pump() {
  for (auto& [key, item] : items_)
    for (auto& [id, recipient] : item->to)
      if (!recipient.under_way && clock_.monotonic_now() >= recipient.due) send(key, *item, id);
}

void Outbox::heard(const net::NodeId& from) {
  const MonotonicTime now = clock_.monotonic_now();
  for (auto& [key, item] : items_) {
    const auto at = item->to.find(from);
    if (at == item->to.end()) continue;
    // Once in a first pause, however often it calls.
    Recipient& recipient = at->second;
    if (recipient.under_way || now >= recipient.due || now - recipient.sent < options_.first_pause) continue;
    recipient.pause = options_.first_pause;
    send(key, *item, from);
  }
}

void Outbox::again(const net::NodeId& to) {
  const MonotonicTime now = clock_.monotonic_now();
  for (auto& [key, item] : items_) {
    const auto taken = item->taken.find(to);
    if (taken == item->taken.end()) continue;
    // Once in a first pause, however often it says that it was restarted.
    item->to[to] = {std::max(now, taken->second + options_.first_pause), options_.first_pause, now};
    item->taken.erase(taken);
  }
  pump();
}

std::size_t Outbox::waiting() const {
  std::size_t sum = 0;
  for (const auto& [key, item] : items_) sum += item->to.size();
  return sum;
}

void Outbox::send(std::uint64_t key, Item& item, const net::NodeId& to) {
  Recipient& recipient = item.to.at(to);
  recipient.sent = clock_.monotonic_now();
  const auto contact = peers_.find(to);
  if (!contact) {  // costs nothing to try: where it is may be known any moment
    recipient.due = recipient.sent + options_.first_pause;
    return;
  }
  recipient.due = recipient.sent + recipient.pause;
  recipient.pause = std::min(2 * recipient.pause, options_.longest_pause);
  const Duration allowed = std::min(recipient.allowed, options_.allowed);
  recipient.allowed = 2 * allowed;
  recipient.under_way = true;
  bytes_sent_ += item.bytes.size();
  caller_.call(*contact, net::Method::ChainPost, item.bytes,
               net::call_deadline(allowed, item.bytes.size(), answer_bytes),
               [this, life = lifetime_.token(), key, serial = item.serial, to](Expected<Bytes> answer) {
                 if (life.alive()) answered(key, serial, to, std::move(answer));
               });
}

void Outbox::answered(std::uint64_t key, std::uint64_t serial, const net::NodeId& from,
                      Expected<Bytes> answer) {
  const auto decoded = answer.ok() ? decode_answer(*answer) : Expected<PostAnswer>(answer.error());
  const auto item = items_.find(key);
  if (item != items_.end() && item->second->serial == serial) {
    const auto recipient = item->second->to.find(from);  // dropped meanwhile: none
    const bool again = !decoded.ok() || wants_it_later(decoded->verdict);
    if (recipient != item->second->to.end()) {
      recipient->second.under_way = false;
      // It is there and wants it later: nothing that arrives from it ends this pause.
      if (again && decoded.ok()) recipient->second.sent = MonotonicTime::max();
      if (!again) {
        item->second->to.erase(recipient);
        if (!item->second->once)
          item->second->taken[from] = clock_.monotonic_now();
        else if (item->second->to.empty())
          items_.erase(item);
      }
    }
  }
  if (decoded.ok()) answered_(from, *decoded);
}

}  // namespace neuroshard::chain
