// Keeps an address at a TURN server at which others dial this node: gets one, tests whether others can dial
// it, permits the addresses that its owner names, and takes their connections. It starts again, with growing
// pauses, when the server goes away or refuses. A server accepts only permitted IP addresses (RFC 6062), so
// it rejects strangers.
#pragma once

#include <deque>
#include <functional>

#include "core/nat/turn_client.h"

namespace neuroshard::nat {

struct TurnAccount {
  std::string username, password;  // the password is a secret: never logged
};

struct TurnHoldTimes {
  Duration answer = std::chrono::seconds(5);  // the server's, to one request
  Duration check = std::chrono::seconds(30);  // between two checks of a silent server
  Duration first_retry = std::chrono::seconds(2), last_retry = std::chrono::minutes(2);  // doubles
};

// Threads: one.
class TurnHold {
 public:
  static constexpr std::size_t max_known = 64, max_asked = 64;
  // Looks up the server's address; called before each try.
  using Find = std::function<Expected<platform::Endpoint>(const Io& io)>;

  // one_lan: private addresses count, too.
  TurnHold(TurnAccount account, Find find, bool one_lan, const TurnHoldTimes& times = {})
      : account_(std::move(account)),
        find_(std::move(find)),
        one_lan_(one_lan),
        times_(times),
        retry_(times.first_retry) {}

  // Permits these from now on, the first max_known of them, beside those that asked.
  void set_known(const std::vector<platform::IpAddress>& known);
  // Permits this address at once and keeps it until max_asked others have asked after it.  Unavailable: there
  // is no place now, or the server does not answer; Denied: the server's rules forbid it; Cancelled.
  Expected<void> let_in(const Io& io, const platform::IpAddress& peer);

  // Waits for a connection until `until`, after getting a place if there is none; nothing when no connection
  // came. Cancelled.
  Expected<std::optional<TurnCall>> next(const Io& io, MonotonicTime until);
  // Gives the place back, if there is one.
  void leave() { client_.reset(); }

  // Where others dial this node now.
  std::optional<platform::Endpoint> relayed() const;
  // Why nowhere.
  const std::string& trouble() const { return trouble_; }

 private:
  Expected<void> begin(const Io& io);
  Expected<void> try_own_address(const Io& io, TurnClient& client) const;
  Expected<void> keep(const Io& io);
  Expected<void> let_known_in(const Io& io);
  bool is_wanted(const platform::IpAddress& peer) const;
  void lost(const Io& io, const Error& why);

  const TurnAccount account_;
  const Find find_;
  const bool one_lan_;
  const TurnHoldTimes times_;
  std::optional<TurnClient> client_;
  std::vector<platform::IpAddress> known_, refused_;  // refused: by the server's rules, for this place
  std::deque<platform::IpAddress> asked_;             // the newest last
  MonotonicTime check_at_{}, try_at_{};
  Duration retry_;
  std::string trouble_ = "it was not asked yet";
};

}  // namespace neuroshard::nat
