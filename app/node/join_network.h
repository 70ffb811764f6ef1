// What `run` brings to the network and keeps of it in the data directory: the port, the wallet's word for
// this node, the trackers and first peers of profile and flags, the peers that were good before.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/node/meeting_places.h"
#include "app/node/network_report.h"
#include "app/node/peer_host.h"
#include "app/node/rounds_status.h"
#include "core/config/data_directory.h"
#include "core/node/snapshot.h"

namespace neuroshard::app {

struct JoinFlags {
  std::vector<std::string> sources;  // beside those of the profile
  std::string address = "0.0.0.0";
  std::optional<std::uint16_t> port;
  bool lan = false;
  std::vector<std::string> mainline_nodes;  // of the BitTorrent DHT, in place of the well-known ones
};

class NetworkPart {
 public:
  // Null when neither the profile nor a flag names somebody to begin with, nor a flag a port. References
  // outlive the part.  Errors: InvalidArgument (the network has no peers, a wrong flag), Busy (the port that
  // a flag names is taken), what PeerHost::start says.
  static Expected<std::unique_ptr<NetworkPart>> join(const JoinFlags& flags,
                                                     const config::DataDirectory& directory, Logger& logger,
                                                     CommandContext& context);

  PeerHost& host() { return *host_; }
  node::NetworkSource& report() { return *report_; }
  // What this node's reports of its training carry.
  const ReportingAs& reporting_as() const { return reporting_as_; }
  // Writes the good peers into D/peers.cache when they are others than before, or after ten minutes, and the
  // bans into D/peers.bans when they are others; looks every five seconds, however often it is called. Only
  // while the data directory is ours.
  void keep_peers();
  void keep_peers_now();
  // What of this goes into the node's record for others, every five seconds, however often it is called.
  void tell_capacity(const node::Snapshot& view);

 private:
  NetworkPart(std::string data_directory, Logger& logger, CommandContext& context)
      : data_directory_(std::move(data_directory)), logger_(logger), context_(context) {}
  Expected<void> keep_limits(const config::DataDirectory& directory, PeerHostOptions& options);
  void keep_bans();
  void meet(const JoinFlags& flags, const config::DataDirectory& directory, bool one_lan);
  Expected<void> listen(const JoinFlags& flags, const config::DataDirectory& directory,
                        PeerHostOptions options);

  const std::string data_directory_;
  Logger& logger_;
  CommandContext& context_;
  MonotonicTime looked_{}, written_{}, told_{};
  std::vector<net::NodeId> kept_;
  std::uint64_t kept_bans_ = 0;  // BanList::changes() when they were written
  std::optional<net::TrafficCap> traffic_cap_;
  ReportingAs reporting_as_;
  bool gives_ = true;  // what it holds, to others
  std::unique_ptr<PeerHost> host_;
  std::unique_ptr<NetworkReport> report_;
  std::unique_ptr<MeetingPlaces> places_;
};

}  // namespace neuroshard::app
