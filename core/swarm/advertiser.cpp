#include "core/swarm/advertiser.h"

#include <algorithm>

#include "core/swarm/messages.h"

namespace neuroshard::swarm {
namespace {

constexpr Duration call_patience = std::chrono::seconds(2);
constexpr std::size_t answer_bytes = 100u << 10;  // of a list of records
constexpr std::size_t most_introductions = 8, most_told = 1024;
// One call can fail because the other node is busy or has no relay yet. Addresses that strangers made up must
// not take the calls for good.
constexpr unsigned most_tries = 3;

bool differs(std::uint64_t now, std::uint64_t advertised, std::uint64_t part) {
  return (now > advertised ? now - advertised : advertised - now) > advertised / part;
}

}  // namespace

Advertiser::Advertiser(const MemberContext& context, const Reachability& reach, Heard heard)
    : context_(context),
      reach_(reach),
      heard_(std::move(heard)),
      record_(context.options.facts),
      slot_keys_(context.id) {}

void Advertiser::renew() {
  const MemberServices& services = context_.services;
  const WallTime now = services.clock.wall_now();
  record_.sequence = std::max(record_.sequence + 1, static_cast<std::uint64_t>(to_unix_ms(now)));
  record_.made = now;
  record_.expires = now + std::chrono::duration_cast<std::chrono::milliseconds>(context_.options.record_life);
  record_.features = services.transport.hello().features;
  record_.version = services.transport.hello().version;
  record_.program = context_.options.program;
  if (capacity_) {
    record_.memory_bytes = capacity_->memory_bytes;
    record_.tokens_per_second = capacity_->tokens_per_second;
    record_.slots = capacity_->slots;
  }
  if (services.line != nullptr) {
    record_.upload = services.line->speed(net::LineWay::Up);
    record_.download = services.line->speed(net::LineWay::Down);
  }
  // Other nodes refuse a record with an expired delegation.
  if (delegation_expired()) {
    services.logger.warning(
        "swarm",
        "the wallet's delegation to this node has expired: its record names no wallet. "
        "Stop the node, run \"neuroshardd wallet delegate\" with its --data-dir once, and "
        "start it again");
    record_.delegation.reset();
  }
  record_made_ = services.clock.monotonic_now();
  if (const auto is_signed = net::sign_node_record(record_, services.key, context_.options.network_id);
      !is_signed.ok())
    services.logger.error("swarm", "this node's record can't be made: " + is_signed.error().describe());
}

bool Advertiser::renewal_due() const {
  return delegation_expired() || capacity_changed() || line_changed() || record_is_old();
}

// Other nodes judge the record by wall time. It goes on while the machine is suspended, and jumps when the
// clock is set; the monotonic time does neither.
bool Advertiser::record_is_old() const {
  const Clock& clock = context_.services.clock;
  const Duration half = context_.options.record_life / 2;
  const WallTime now = clock.wall_now();
  return clock.monotonic_now() - record_made_ > half || now + half >= record_.expires || record_.made > now;
}

bool Advertiser::delegation_expired() const {
  return record_.delegation && context_.services.clock.wall_now() >= record_.delegation->expires;
}

bool Advertiser::record_is_fresh() const {
  return context_.services.clock.monotonic_now() - record_made_ < context_.options.capacity_told;
}

void Advertiser::set_capacity(Capacity capacity) {
  slot_keys_.set(capacity.gives ? capacity.slots : std::vector<net::HeldSlot>());
  capacity_ = std::move(capacity);
}

bool Advertiser::capacity_changed() const {
  if (!capacity_) return false;
  if (capacity_->slots != record_.slots) return true;  // a model was loaded or unloaded
  if (record_is_fresh()) return false;
  constexpr std::uint64_t tenth = 10;
  return differs(capacity_->memory_bytes, record_.memory_bytes, tenth) ||
         differs(capacity_->tokens_per_second, record_.tokens_per_second, tenth);
}

// Measured speeds vary. Only a difference that changes what others choose is worth a new record.
bool Advertiser::line_changed() const {
  const net::LineSpeed* const line = context_.services.line;
  if (line == nullptr || record_is_fresh()) return false;
  constexpr std::uint64_t quarter = 4;
  return differs(line->speed(net::LineWay::Up), record_.upload, quarter) ||
         differs(line->speed(net::LineWay::Down), record_.download, quarter);
}

void Advertiser::set_endpoints(std::vector<net::NodeEndpoint> endpoints) {
  record_.endpoints = std::move(endpoints);
  renew();
  placed_ = record_.sequence;
  told_.clear();
  introductions_ = 0;
}

void Advertiser::publish(dht::DhtNode& table) const {
  if (table.table().size() > 0)
    table.publish("/nodes/" + to_hex(context_.id), net::encode_node_record(record_),
                  [](const Expected<dht::Published>&) {});
}

void Advertiser::publish_slots(dht::DhtNode& table) {
  if (table.table().size() > 0) slot_keys_.step(table);
}

bool Advertiser::is_placed() const {
  return reach_.tested() || !record_.endpoints.empty();
}

void Advertiser::introduce_itself() {
  if (introducing_ || introductions_ >= most_introductions || !is_placed() || all_were_tried()) return;
  ++introductions_;
  introducing_ = true;
  exchange_records(1);
}

bool Advertiser::can_call(const net::NodeRecord& record) const {
  return context_.paths.contact_of(record, context_.options.one_lan).has_value();
}

bool Advertiser::is_told(const net::NodeRecord& record, unsigned tries) const {
  const auto found = told_.find(record.id());
  return found != told_.end() && (found->second.informed || found->second.tries >= tries);
}

bool Advertiser::all_were_tried() const {
  const auto all = context_.book.all(context_.services.clock.wall_now());
  return std::all_of(all.begin(), all.end(), [this](const net::NodeRecord* record) {
    return is_told(*record, 1) || !can_call(*record);
  });
}

void Advertiser::exchange_records() {
  exchange_records(most_tries);
}

void Advertiser::exchange_records(unsigned tries) {
  if (told_.size() > most_told) told_.clear();
  const std::vector<const net::NodeRecord*> from = context_.book.to_inform(
      context_.services.clock.wall_now(), /*reached_first=*/++exchanges_ % 2 == 0,
      [this](const net::NodeRecord& record) { return can_call(record); },
      [this, tries](const net::NodeRecord& record) { return is_told(record, tries); });
  if (from.empty()) return;
  const net::NodeRecord& record = *net::spread(from, 1, context_.rng).front();
  const net::Contact chosen = *context_.paths.contact_of(record, context_.options.one_lan);
  ++told_[chosen.id].tries;
  Bytes request = encode_peers_request(max_records, &record_);
  const Duration deadline = net::call_deadline(call_patience, request.size(), answer_bytes);
  context_.pool.call(
      chosen, net::Method::Peers, std::move(request), deadline,
      [this, life = lifetime_.token(), chosen, sequence = record_.sequence](const Expected<Bytes>& answer) {
        if (!life.alive()) return;
        introducing_ = false;
        const auto records =
            answer.ok() ? decode_records(*answer) : Expected<std::vector<net::NodeRecord>>(answer.error());
        if (answer.ok() && sequence >= placed_) note_informed(chosen.id);
        // Its place in the book depends on where it is, and not on where its record says that it is.
        const auto at = context_.pool.connected_at(chosen.id);
        if (records.ok() && at) heard_(*records, {chosen.id, *at});
        introduce_itself();
      });
}

}  // namespace neuroshard::swarm
