#include "core/nat/turn_hold.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::nat {
namespace {

using platform::IpAddress;

constexpr Duration own_call = std::chrono::seconds(1);  // for the server to report the own test call

template <class List>
bool holds(const List& list, const IpAddress& ip) {
  return std::find(list.begin(), list.end(), ip) != list.end();
}

}  // namespace

std::optional<platform::Endpoint> TurnHold::relayed() const {
  if (!client_) return std::nullopt;
  return client_->relayed();
}

bool TurnHold::is_wanted(const IpAddress& peer) const {
  return holds(known_, peer) || holds(asked_, peer);
}

void TurnHold::set_known(const std::vector<IpAddress>& known) {
  std::vector<IpAddress> next;
  for (const IpAddress& ip : known)
    if (next.size() < max_known && !holds(next, ip)) next.push_back(ip);
  if (next == known_) return;
  const std::vector<IpAddress> before = std::exchange(known_, std::move(next));
  if (!client_) return;
  for (const IpAddress& ip : before)
    if (!is_wanted(ip)) client_->forbid(ip);
}

Expected<void> TurnHold::let_in(const Io& io, const IpAddress& peer) {
  if (!client_) return make_error(ErrorCode::Unavailable, "this node has no place at its TURN server now");
  if (peer.is_v4() != client_->relayed().ip.is_v4())
    return make_error(ErrorCode::Denied, "the TURN server's address and the caller's are of different kinds");
  const auto permitted = client_->permit(io, {&peer, 1}, io.now() + times_.answer);
  if (!permitted.ok()) {
    // The next request must not wait for the same.
    const ErrorCode code = permitted.error().code;
    if (code != ErrorCode::Denied && code != ErrorCode::Cancelled) lost(io, permitted.error());
    return permitted;
  }
  std::erase(asked_, peer);
  asked_.push_back(peer);
  if (asked_.size() <= max_asked) return {};
  const IpAddress oldest = asked_.front();
  asked_.pop_front();
  if (!is_wanted(oldest)) client_->forbid(oldest);
  return {};
}

Expected<void> TurnHold::begin(const Io& io) {
  NS_ASSIGN_OR_RETURN(const platform::Endpoint server, find_(io));
  NS_ASSIGN_OR_RETURN(
      TurnClient client,
      TurnClient::allocate(io, {server, account_.username, account_.password}, io.now() + times_.answer));
  if (!one_lan_ && !platform::globally_routable(client.relayed().ip)) {
    return make_error(
        ErrorCode::Unsupported,
        fmt::format("it gives addresses like {}, which nobody reaches from the internet (coturn: "
                    "set external-ip)",
                    to_text(client.relayed().ip)));
  }
  NS_RETURN_IF_ERROR(try_own_address(io, client));
  client_ = std::move(client);
  check_at_ = io.now() + times_.check;
  retry_ = times_.first_retry;
  refused_.clear();
  trouble_.clear();
  return {};
}

// Only a dialled address is published: a server whose firewall closes the relayed ports gives addresses like
// any other.
Expected<void> TurnHold::try_own_address(const Io& io, TurnClient& client) const {
  const IpAddress own = client.outside().ip;
  if (own.is_v4() != client.relayed().ip.is_v4()) return {};
  const auto permitted = client.permit(io, {&own, 1}, io.now() + times_.answer);
  if (!permitted.ok()) {
    if (permitted.error().code == ErrorCode::Denied) return {};  // the server's rules forbid the test
    return permitted;
  }
  const auto dialled = dial_until(io, client.relayed(), {}, io.now() + times_.answer);
  if (!dialled.ok()) {
    if (dialled.error().code == ErrorCode::Cancelled) return dialled.error();
    return make_error(
        ErrorCode::Unavailable,
        fmt::format(
            "its address {} can't be dialled ({}): open the relayed ports of the server for TCP (coturn: "
            "min-port to max-port, 49152 to 65535)",
            to_text(client.relayed()), dialled.error().message));
  }
  NS_RETURN_IF_ERROR(client.next(io, io.now() + own_call));
  client.forbid(own);
  return {};
}

Expected<void> TurnHold::keep(const Io& io) {
  if (io.now() >= check_at_) {
    NS_RETURN_IF_ERROR(client_->extend(io, io.now() + times_.answer));
    check_at_ = io.now() + times_.check;
  }
  if (io.now() >= client_->next_renewal()) NS_RETURN_IF_ERROR(client_->renew(io, io.now() + times_.answer));
  return let_known_in(io);
}

// One request at a time, so that callers do not wait for all of them.
Expected<void> TurnHold::let_known_in(const Io& io) {
  std::vector<IpAddress> next;
  const auto add = [&](const IpAddress& ip) {
    if (next.size() < TurnClient::max_permitted_at_once && ip.is_v4() == client_->relayed().ip.is_v4() &&
        !client_->permits(ip) && !holds(refused_, ip))
      next.push_back(ip);
  };
  for (const IpAddress& ip : asked_) add(ip);
  for (const IpAddress& ip : known_) add(ip);
  if (next.empty()) return {};
  NS_ASSIGN_OR_RETURN(const auto denied, client_->permit_each(io, next, io.now() + times_.answer));
  for (const IpAddress& ip : denied)
    if (refused_.size() < max_known + max_asked) refused_.push_back(ip);
  return {};
}

void TurnHold::lost(const Io& io, const Error& why) {
  trouble_ = why.message;
  client_.reset();
  try_at_ = io.now() + retry_;
  retry_ = std::min(2 * retry_, times_.last_retry);
}

Expected<std::optional<TurnCall>> TurnHold::next(const Io& io, MonotonicTime until) {
  while (true) {
    if (!client_) {
      const MonotonicTime wait = std::min(try_at_, until);
      while (io.now() < wait) NS_RETURN_IF_ERROR(wait_until(io, {}, wait));
      if (io.now() < try_at_) return std::optional<TurnCall>();
    }
    auto kept = client_ ? keep(io) : begin(io);
    auto call = kept.ok() ? client_->next(io, std::min({until, check_at_, client_->next_renewal()}))
                          : Expected<std::optional<TurnCall>>(std::move(kept).error());
    if (!call.ok()) {
      if (call.error().code == ErrorCode::Cancelled) return call;
      lost(io, call.error());
    } else if (call->has_value()) {
      return call;
    }
    if (io.now() >= until) return std::optional<TurnCall>();
  }
}

}  // namespace neuroshard::nat
