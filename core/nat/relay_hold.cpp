#include "core/nat/relay_hold.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::nat {

std::optional<platform::Endpoint> RelayHold::relay() const {
  if (!callee_) return std::nullopt;
  return relays_[at_];
}

void RelayHold::set_relays(std::vector<platform::Endpoint> relays) {
  if (relays == relays_) return;
  const auto held = relay();
  const auto same = held ? std::find(relays.begin(), relays.end(), *held) : relays.end();
  const bool stays = held && same != relays.end();
  at_ = stays ? static_cast<std::size_t>(same - relays.begin()) : 0;
  if (!stays) callee_.reset();
  relays_ = std::move(relays);
  failed_ = 0;
  try_at_ = {};
}

Expected<void> RelayHold::join(const Io& io) {
  const platform::Endpoint& relay = relays_[at_];
  NS_ASSIGN_OR_RETURN(const RelayTicket ticket, reserve_(io, relay));
  NS_ASSIGN_OR_RETURN(RelayCallee callee, RelayCallee::join(io, relay, ticket, io.now() + times_.join));
  callee_ = std::move(callee);
  renew_at_ = io.now() + times_.renew;
  failed_ = 0;
  retry_ = times_.first_retry;
  trouble_.clear();
  return {};
}

void RelayHold::lost(const Io& io, std::string why) {
  trouble_ = fmt::format("the relay {}: {}", to_text(relays_[at_]), why);
  callee_.reset();
  at_ = (at_ + 1) % relays_.size();
  if (++failed_ < relays_.size()) return;  // tries the next one at once
  failed_ = 0;
  try_at_ = io.now() + retry_;
  retry_ = std::min(2 * retry_, times_.last_retry);
}

Expected<std::optional<RelayedCall>> RelayHold::next(const Io& io, MonotonicTime until) {
  if (relays_.empty()) return make_error(ErrorCode::InvalidArgument, "no relay is known");
  while (true) {
    // Joins the same relay again: its running calls go on.
    if (callee_ && io.now() >= renew_at_) callee_.reset();
    if (!callee_) {
      const MonotonicTime wait = std::min(try_at_, until);
      while (io.now() < wait) NS_RETURN_IF_ERROR(wait_until(io, {}, wait));
      if (io.now() < try_at_) return std::optional<RelayedCall>();
      const auto joined = join(io);
      if (!joined.ok()) {
        if (joined.error().code == ErrorCode::Cancelled) return joined.error();
        lost(io, joined.error().message);
        if (io.now() >= until) return std::optional<RelayedCall>();
        continue;
      }
    }
    auto call = callee_->next(io, std::min(until, renew_at_));
    if (!call.ok()) {
      if (call.error().code == ErrorCode::Cancelled) return call;
      lost(io, call.error().message);
      continue;
    }
    if (call->has_value() || io.now() >= until) return call;
  }
}

}  // namespace neuroshard::nat
