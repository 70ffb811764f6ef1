// What a running node tells of its network over the seam: whom it knows, how it is reached, what passes.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "app/node/peer_host.h"
#include "core/config/network_profile.h"
#include "core/node/network_view.h"

namespace neuroshard::app {

class NetworkReport final : public node::NetworkSource {
 public:
  // The host outlives the report. Samples the traffic every ten seconds from now on. profile: what
  // invitations invite to.
  NetworkReport(PeerHost& host, config::NetworkProfile profile);
  ~NetworkReport() override;

  void view(Answer answer) override;
  node::PeersView peers() const override;
  void test_reachability() override;

 private:
  node::NetworkView look() const;
  void sample();
  void count_peers();

  // What any thread may read at any moment.
  struct Board {
    std::mutex mutex;
    node::PeersView peers;
  };

  PeerHost& host_;
  const config::NetworkProfile profile_;
  std::unique_ptr<Board> board_ = std::make_unique<Board>();
  // The executor's.
  std::deque<node::TrafficPoint> traffic_;
  swarm::Traffic counted_;
  MonotonicTime sampled_{};
  std::unique_ptr<TimerHandle> timer_, count_timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::app
