// Finds nodes of the network when no known peer answers, and lets others find this one: on the local network
// and in the BitTorrent DHT (core/rendezvous), as the settings allow.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/rendezvous/seeker.h"
#include "core/runtime/peer_host.h"

namespace neuroshard::runtime {

struct DiscoveryOptions {
  Hash256 network_id{};
  std::uint16_t port = 0;  // where the node listens
  bool local = false, mainline = false;
  // Nodes of that DHT in place of the well-known ones: "host:port". When all of them are private, the DHT is
  // a private one.
  std::vector<std::string> mainline_nodes;
  Duration mainline_patience =
      std::chrono::seconds(30);  // before the public DHT is asked; a private one is asked at once
};

// Threads: one, not the host's executor. Ends before the host.
class PeerDiscovery {
 public:
  // A place that can't be used is a warning in the log. The host outlives this.
  PeerDiscovery(PeerHost& host, const RuntimeServices& services, const DiscoveryOptions& options);
  ~PeerDiscovery();
  PeerDiscovery(const PeerDiscovery&) = delete;
  PeerDiscovery& operator=(const PeerDiscovery&) = delete;

 private:
  struct Place {
    std::unique_ptr<rendezvous::Rendezvous> rendezvous;
    std::unique_ptr<rendezvous::Seeker> seeker;
  };
  void add(Expected<std::unique_ptr<rendezvous::Rendezvous>> rendezvous,
           rendezvous::SeekerQuestions questions, rendezvous::SeekerOptions options);
  void open(const DiscoveryOptions& options);

  PeerHost& host_;
  Logger& logger_;
  Rng rng_;
  std::vector<Place> places_;  // the executor's
};

}  // namespace neuroshard::runtime
