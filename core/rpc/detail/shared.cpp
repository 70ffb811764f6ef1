#include "core/rpc/detail/shared.h"

#include <utility>

#include "core/crypto/certificate.h"
#include "core/rpc/detail/wire.h"

namespace neuroshard::rpc::detail {
namespace {

net::Refusal refusal_of(crypto::CertificateFault fault) {
  switch (fault) {
    case crypto::CertificateFault::Missing: return net::Refusal::NoCertificate;
    case crypto::CertificateFault::Malformed: return net::Refusal::BadCertificate;
    case crypto::CertificateFault::NotEd25519: return net::Refusal::NotEd25519;
    case crypto::CertificateFault::NotYetValid: return net::Refusal::NotYetValid;
    case crypto::CertificateFault::Expired: return net::Refusal::Expired;
  }
  return net::Refusal::BadCertificate;
}

}  // namespace

std::optional<net::NodeId> KnownCertificates::find(const std::string& pem) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(pem);
  if (found == entries_.end()) return std::nullopt;
  order_.splice(order_.begin(), order_, found->second);
  return found->second->second;
}

void KnownCertificates::remember(const std::string& pem, const net::NodeId& id) {
  const std::lock_guard lock(mutex_);
  if (entries_.count(pem) != 0) return;
  if (order_.size() >= max_known) {
    entries_.erase(order_.back().first);
    order_.pop_back();
  }
  order_.emplace_front(pem, id);
  entries_[order_.front().first] = order_.begin();
}

Shared::Shared(RpcServices all, RpcOptions chosen)
    : options(std::move(chosen)),
      mailbox(std::make_shared<net::Mailbox>(all.executor)),
      id(crypto::node_id(all.key.public_key())),
      watch(options.limits.connections, options.seed) {
  services_.emplace(all);
  set_hello(options.hello);
}

Expected<net::NodeId> Shared::check_certificate(const std::string& pem,
                                                const std::optional<net::NodeId>& pin) {
  const std::lock_guard lock(services_mutex_);
  if (!services_) return make_error(ErrorCode::Cancelled, "this node stops");
  const auto read = crypto::read_certificate(pem, services_->clock.wall_now());
  if (const auto* const fault = std::get_if<crypto::CertificateFault>(&read)) {
    services_->refusals.count(refusal_of(*fault));
    return make_error(ErrorCode::Denied, "the peer is not accepted: " + std::string(to_string(*fault)));
  }
  const net::NodeId peer = crypto::node_id(std::get<crypto::PublicKey>(read));
  if (pin && peer != *pin) {
    services_->refusals.count(net::Refusal::WrongId);
    return make_error(ErrorCode::Denied, "another node answers there than the one expected: " + to_hex(peer));
  }
  if (const auto reason = services_->bans.reason(peer)) {
    services_->refusals.count(net::Refusal::Banned);
    return make_error(ErrorCode::Denied, "the peer is banned: " + *reason);
  }
  known_.remember(pem, peer);
  return peer;
}

Expected<net::Hello> Shared::check_hello(const std::string& bytes) {
  auto hello = decode_hello(bytes);
  if (!hello.ok()) {
    count(net::Refusal::NoHello);
    return make_error(ErrorCode::Denied, "the call brings no hello that can be read");
  }
  net::Hello own;
  {
    const std::lock_guard lock(hello_mutex_);
    own = hello_;
  }
  if (const auto fits = net::check_hello(own, *hello); !fits.ok()) {
    count(fits.error().code == ErrorCode::Denied ? net::Refusal::OtherNetwork : net::Refusal::OtherVersion);
    return fits.error();
  }
  return hello;
}

Expected<net::NodeId> Shared::caller_of(const std::string& pem) {
  const auto known = known_.find(pem);
  if (!known) return check_certificate(pem, std::nullopt);
  const std::lock_guard lock(services_mutex_);
  if (!services_) return make_error(ErrorCode::Cancelled, "this node stops");
  const auto reason = services_->bans.reason(*known);
  if (!reason) return *known;
  services_->refusals.count(net::Refusal::Banned);
  return make_error(ErrorCode::Denied, "the peer is banned: " + *reason);
}

void Shared::count(net::Refusal refusal) {
  const std::lock_guard lock(services_mutex_);
  if (services_) services_->refusals.count(refusal);
}

void Shared::fault(const net::Caller& from, net::Fault fault) {
  const std::lock_guard lock(services_mutex_);
  if (services_ && services_->conduct != nullptr) services_->conduct->fault(from, fault);
}

void Shared::fault(const platform::IpAddress& from, net::Fault fault) {
  const std::lock_guard lock(services_mutex_);
  if (services_ && services_->conduct != nullptr) services_->conduct->fault(from, fault);
}

bool Shared::welcome(const platform::IpAddress& address) {
  const std::lock_guard lock(services_mutex_);
  return !services_ || services_->conduct == nullptr || services_->conduct->welcome(address);
}

bool Shared::may_greet(const platform::IpAddress& address) {
  const std::lock_guard lock(services_mutex_);
  return !services_ || services_->conduct == nullptr || services_->conduct->may_greet(address);
}

bool Shared::is_shaped(const platform::IpAddress& address) {
  const std::lock_guard lock(services_mutex_);
  return services_ && services_->conduct != nullptr && !services_->conduct->has_ranked(address);
}

Expected<platform::Endpoint> Shared::caller_at(const std::string& peer) const {
  const std::string prefix = "unix-abstract:";
  if (peer.compare(0, prefix.size(), prefix) != 0) return endpoint_of_peer(peer);
  const auto remote = shaper ? shaper->remote_of(peer.substr(prefix.size())) : std::nullopt;
  if (remote) return *remote;
  return make_error(ErrorCode::Unavailable, "the connection is over");
}

Expected<void> Shared::check_address(const net::Caller& caller) {
  const std::lock_guard lock(services_mutex_);
  if (!services_) return make_error(ErrorCode::Cancelled, "this node stops");
  if (services_->conduct == nullptr) return {};
  auto accepted = services_->conduct->check(caller);
  if (!accepted.ok()) services_->refusals.count(net::Refusal::Banned);
  return accepted;
}

void Shared::answer_leaves() {
  const std::lock_guard lock(services_mutex_);
  if (services_ && services_->line != nullptr) services_->line->begin(net::LineWay::Up);
}

void Shared::answer_left(std::uint64_t bytes) {
  const std::lock_guard lock(services_mutex_);
  if (!services_ || services_->line == nullptr) return;
  if (bytes != 0) services_->line->carried(net::LineWay::Up, bytes);
  // A node that only dials has no listener that would report that all bytes have left.
  if (bytes != 0 && options.listen && !std::exchange(draining_, true)) {
    services_->line->begin(net::LineWay::Up);
    if (drain_begins_) drain_begins_();
  }
  services_->line->end(net::LineWay::Up);
}

bool Shared::draining() {
  const std::lock_guard lock(services_mutex_);
  return draining_;
}

void Shared::set_drain_begins(std::function<void()> begins) {
  const std::lock_guard lock(services_mutex_);
  drain_begins_ = std::move(begins);
}

void Shared::drained() {
  const std::lock_guard lock(services_mutex_);
  if (std::exchange(draining_, false) && services_) services_->line->end(net::LineWay::Up);
}

MonotonicTime Shared::now() {
  const std::lock_guard lock(services_mutex_);
  return services_ ? services_->clock.monotonic_now() : MonotonicTime{};
}

net::PeerRank Shared::rank(const net::NodeId& peer) {
  const std::lock_guard lock(services_mutex_);
  return services_ && services_->ranks != nullptr ? services_->ranks->of(peer) : net::PeerRank::Stranger;
}

std::string Shared::own_hello() {
  const std::lock_guard lock(hello_mutex_);
  return hello_bytes_;
}

void Shared::set_hello(const net::Hello& hello) {
  const std::lock_guard lock(hello_mutex_);
  hello_ = hello;
  hello_bytes_ = encode_hello(hello);
}

void Shared::add(const std::shared_ptr<Sweepable>& sweepable) {
  const std::lock_guard lock(sweep_mutex_);
  sweepables_[sweepable.get()] = sweepable;
}

void Shared::remove(Sweepable* sweepable) {
  const std::lock_guard lock(sweep_mutex_);
  sweepables_.erase(sweepable);
}

std::vector<std::shared_ptr<Sweepable>> Shared::all() {
  std::vector<std::shared_ptr<Sweepable>> living;
  const std::lock_guard lock(sweep_mutex_);
  for (const auto& [address, sweepable] : sweepables_)
    if (auto alive = sweepable.lock()) living.push_back(std::move(alive));
  return living;
}

void Shared::close() {
  mailbox->close();
  const std::lock_guard lock(services_mutex_);
  services_.reset();
}

}  // namespace neuroshard::rpc::detail
