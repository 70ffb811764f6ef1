// The network of a running node as the seam shows it: its peers, its reachability, its traffic.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "core/base/lifetime.h"
#include "core/config/network_profile.h"
#include "core/node/network_view.h"
#include "core/runtime/chain_trust.h"
#include "core/runtime/peer_host.h"

namespace neuroshard::runtime {

class NetworkReport final : public node::NetworkSource {
 public:
  // Samples the traffic every ten seconds from now on. profile: the network that invitations name. The host
  // outlives the report.  Threads: the constructor and the destructor run on the owner's, which is not the
  // host's executor; the calls below on any.
  NetworkReport(PeerHost& host, config::NetworkProfile profile);
  ~NetworkReport() override;

  void view(Answer answer) override;
  node::PeersView peers() const override;
  void test_reachability() override;
  void invite(bool with_vote, InvitationAnswer answer) override;
  // Invitations take their part about the chain from `source`.  Threads: the owner's.
  void invite_with(InvitationSource source);

 private:
  node::NetworkView inspect() const;
  void add_invitation(const swarm::MemberView& member, node::NetworkView& view) const;
  void add_refusals(node::NetworkView& view) const;
  void sample();
  void count_peers();

  // The part that any thread may read at any moment.
  struct Board {
    std::mutex mutex;
    node::PeersView peers;
  };

  PeerHost& host_;
  const config::NetworkProfile profile_;
  std::unique_ptr<Board> board_ = std::make_unique<Board>();
  // The executor's.
  InvitationSource chain_;  // null: no chain
  std::deque<node::TrafficPoint> traffic_;
  swarm::Traffic counted_;
  MonotonicTime sampled_{};
  std::unique_ptr<TimerHandle> timer_, count_timer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::runtime
