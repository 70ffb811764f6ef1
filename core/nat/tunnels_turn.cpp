// The place at the user's own TURN server.
#include "core/base/check.h"
#include "core/nat/tunnels.h"

namespace neuroshard::nat {
namespace {

// The longest wait of a request for a permission.
constexpr Duration check_period = std::chrono::milliseconds(100);

}  // namespace

void Tunnels::hold_turn(bool wanted, std::vector<platform::IpAddress> known) {
  if (!options_.turn) return;
  {
    const std::lock_guard lock(mutex_);
    turn_wanted_ = wanted;
    turn_known_ = std::move(known);
    if (wanted && !turn_thread_) {
      turn_thread_ = make_thread_executor("ns-turn", 1);
      const bool posted = turn_thread_->post([this] { keep_turn(); });
      NS_CHECK(posted);
    }
  }
  changed_.notify_all();
}

void Tunnels::let_in(const platform::IpAddress& peer, Joined done) {
  std::optional<Error> refused;
  {
    const std::lock_guard lock(mutex_);
    if (!turn_wanted_)
      refused = make_error(ErrorCode::Unavailable, "this node has no place at a TURN server");
    else if (turn_asking_.size() >= options_.waiting)
      refused = make_error(ErrorCode::Exhausted, "too many requests for permissions; ask again");
    else
      turn_asking_.push_back({peer, done});
  }
  if (refused) static_cast<void>(executor_.post([done, error = *refused] { done(error); }));
}

void Tunnels::answer_asking(TurnHold& hold) {
  std::deque<Asking> asking;
  {
    const std::lock_guard lock(mutex_);
    asking.swap(turn_asking_);
  }
  for (const Asking& one : asking)
    tell([done = one.done, result = hold.let_in(io_, one.peer)] { done(result); });
}

void Tunnels::keep_turn() {
  TurnHold hold(
      *options_.turn, [this](const Io&) { return find_turn(); }, options_.one_lan, options_.turn_times);
  std::optional<platform::Endpoint> told;
  std::string trouble;
  const auto tell_place = [&] {
    const auto now = hold.relayed();
    if (now == told && (now || hold.trouble() == trouble)) return;
    told = now;
    trouble = hold.trouble();
    tell([events = events_, now, trouble] {
      if (events->turned) events->turned(now, trouble);
    });
  };
  while (true) {
    std::vector<platform::IpAddress> known;
    {
      std::unique_lock lock(mutex_);
      if (!turn_wanted_ && hold.relayed()) {
        lock.unlock();
        hold.leave();
        tell_place();
        answer_asking(hold);
        lock.lock();
      }
      changed_.wait(lock, [this] { return stop_ || turn_wanted_; });
      if (stop_) return;
      known = turn_known_;
    }
    hold.set_known(known);
    answer_asking(hold);
    auto call = hold.next(io_, io_.now() + check_period);
    if (!call.ok() && call.error().code == ErrorCode::Cancelled) return;
    tell_place();
    if (!call.ok() || !call->has_value()) continue;
    join(std::move((*call)->socket), [this](LoopbackPump& pump, platform::TcpSocket socket) {
      (void)pump.inbound(std::move(socket), options_.own);
    });
  }
}

}  // namespace neuroshard::nat
