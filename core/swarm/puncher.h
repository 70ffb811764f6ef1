// Direct connections between nodes behind NATs (nat/hole_punch.h). The two nodes arrange them over their
// relayed connection; no third node is trusted or informed. The caller names the outside endpoint of its
// port, the called node answers with its own, and both dial. The result is a plain TCP connection from the
// caller to the called node, for their mutual TLS.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/lifetime.h"
#include "core/nat/tunnels.h"
#include "core/net/dial_gate.h"
#include "core/net/peer_channel.h"
#include "core/net/request_limiter.h"

namespace neuroshard::swarm {

class Puncher {
 public:
  struct Punched {
    std::uint16_t port = 0;     // on 127.0.0.1, for one connection
    platform::Endpoint remote;  // the other node's outside endpoint
  };
  using Done = std::function<void(Expected<Punched>)>;

  // All outlive it. changed: punchable() may have changed. gate: bounds the dials; null: nothing does.
  // Threads: the executor's, on which `tunnels` answers.
  Puncher(nat::Tunnels& tunnels, const Clock& clock, bool one_lan, std::uint64_t seed,
          std::function<void()> changed, net::DialGate* gate = nullptr);
  ~Puncher();

  // Nodes that answer STUN requests (nat/relay_role.h), the nearest first. None: no punching is needed. Those of
  // one IP version are asked: of the version of `seen_at`, where others see this node, else of the one that most
  // of them have. NATs map each version in its own way.
  void set_servers(std::vector<platform::Endpoint> servers,
                   const std::optional<platform::Endpoint>& seen_at = std::nullopt);
  // Finds out the kind of NAT, if that is unknown or was found long ago.
  void probe_nat();
  // Discards the finding: the address changed, or the user asks for a new test.
  void restart_probe();
  // Two nodes can punch a direct connection if both are punchable.
  bool punchable() const;
  const nat::MappingFinding& finding() const { return finding_; }

  bool has_room() const { return calling_ < most_calling; }
  // `relayed` leads to the other node.  Exhausted: too many at the same time; Timeout; the other node's
  // errors.
  void punch(const std::shared_ptr<net::PeerChannel>& relayed, Done done);
  // Answers another node's punch.
  void answer(const net::Caller& from, ByteSpan request, const net::Respond& respond);

 private:
  static constexpr std::size_t most_calling = 2, most_called = 3;

  // Some of the servers, each at a different address: at most `most`.
  std::vector<platform::Endpoint> some_servers(std::size_t most) const;
  bool may_be_dialled(const platform::Endpoint& remote) const;
  Expected<platform::Endpoint> remote_in(ByteSpan message) const;
  // Whether the caller is at this address, by its connection or by its relay's report.
  bool is_attested(const net::Caller& from, const platform::IpAddress& named) const;
  Expected<void> admit_dials(const platform::Endpoint& remote);
  void met(const platform::Endpoint& remote);

  nat::Tunnels& tunnels_;
  const Clock& clock_;
  const bool one_lan_;
  const std::function<void()> changed_;
  net::DialGate* const gate_;
  net::RequestLimiter limiter_;
  net::TokenBucket all_;
  std::vector<platform::Endpoint> servers_;  // of one IP version
  nat::MappingFinding finding_;
  bool probing_ = false;
  std::uint64_t round_ = 0;  // discards the probe of an earlier address
  std::size_t asked_ = 0;    // servers at the last probe
  MonotonicTime next_{};
  std::size_t calling_ = 0, called_ = 0;
  Lifetime lifetime_;
};

}  // namespace neuroshard::swarm
