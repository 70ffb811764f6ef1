// Where `run` looks for nodes of its network when nobody is known, and is found itself: the local network and
// the BitTorrent DHT (core/rendezvous), as the settings allow.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/node/peer_host.h"
#include "core/rendezvous/seeker.h"

namespace neuroshard::app {

struct MeetingOptions {
  Hash256 network_id{};
  std::uint16_t port = 0;  // where the node listens
  bool local = false, mainline = false;
  // Nodes of that DHT in place of the well-known ones: "host:port". Where all are private, it is a DHT of
  // one's own.
  std::vector<std::string> mainline_nodes;
  Duration mainline_patience = std::chrono::seconds(30);  // with the public one; one's own is asked at once
};

// Threads: one, not the host's executor. Goes before the host.
class MeetingPlaces {
 public:
  // A place that can't be used is a warning in the log.
  MeetingPlaces(PeerHost& host, Logger& logger, crypto::Entropy& entropy, const MeetingOptions& options);
  ~MeetingPlaces();
  MeetingPlaces(const MeetingPlaces&) = delete;
  MeetingPlaces& operator=(const MeetingPlaces&) = delete;
  std::vector<std::string> states();  // for people

 private:
  struct Place {
    std::unique_ptr<rendezvous::Rendezvous> rendezvous;
    std::unique_ptr<rendezvous::Seeker> seeker;
  };
  void add(Expected<std::unique_ptr<rendezvous::Rendezvous>> rendezvous,
           rendezvous::SeekerQuestions questions, rendezvous::SeekerOptions options);
  void open(const MeetingOptions& options);

  PeerHost& host_;
  Logger& logger_;
  Rng rng_;
  std::vector<Place> places_;  // the executor's
};

}  // namespace neuroshard::app
