// A node's membership of its network, and what of it is kept in the data directory: the port, the wallet's
// delegation to this node, the invited peers, the peers that answered before, the bans and the traffic of the
// month.
//
// Threads: the owner's, which is not the host's executor.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/data_directory.h"
#include "core/node/snapshot.h"
#include "core/runtime/ban_file.h"
#include "core/runtime/join_options.h"
#include "core/runtime/network_report.h"
#include "core/runtime/peer_discovery.h"
#include "core/runtime/peer_host.h"
#include "core/runtime/rounds_status.h"

namespace neuroshard::runtime {

class NetworkService {
 public:
  // Null when neither the profile, an invitation nor the options name a peer, and the options name no port.
  // Errors: InvalidArgument (the network has no peers, a wrong address), Busy (the port of the options is
  // taken), those of PeerHost::start and of the traffic's file.
  static Expected<std::unique_ptr<NetworkService>> join(const JoinOptions& options,
                                                        const config::DataDirectory& directory,
                                                        const RuntimeServices& services);

  PeerHost& host() { return *host_; }
  NetworkReport& report() { return *report_; }
  // The content of this node's status reports.
  const ReportingAs& reporting_as() const { return reporting_as_; }

  // Takes the bandwidth limits and the month's data from the settings, at once.  Threads: any.
  void limit_traffic(const config::Settings& settings);

  // To be called often. Every five seconds it writes what has changed: the good peers into D/peers.cache
  // (also when ten minutes have passed), and the bans into D/peers.bans, once a minute at most. The caller holds
  // the data directory's lock.
  void save_peers();
  // The same without waiting.
  void save_peers_now();
  // The wallet's delegation ends soon, and the next start can renew it.
  bool needs_new_start() const;
  // Tells the owner to renew the wallet's delegation, which nobody else can; empty: no need. save_peers() logs
  // it once a day.  Threads: any.
  std::string delegation_notice() const;
  // To be called often. Every five seconds it updates the capacity that the node's record announces.
  void announce_capacity(const node::Snapshot& view);

 private:
  NetworkService(std::string data_directory, const RuntimeServices& services)
      : data_directory_(std::move(data_directory)),
        services_(services),
        started_(services.clock.wall_now()),
        ban_file_(services_.files, data_directory_, services_.logger) {}
  Expected<void> open_traffic(const config::Settings& settings, PeerHostOptions& options);
  void save_good_peers();
  void log_delegation_notice();
  void start_discovery(const JoinOptions& options, const config::DataDirectory& directory, bool one_lan);
  Expected<void> listen(const JoinOptions& options, const config::DataDirectory& directory,
                        PeerHostOptions host);
  Expected<void> start_host(const config::DataDirectory& directory, PeerHostOptions& host,
                            std::uint16_t port);

  const std::string data_directory_;
  const RuntimeServices services_;
  const WallTime started_;
  MonotonicTime checked_{}, written_{}, announced_{};
  std::optional<MonotonicTime> notice_logged_;
  std::vector<net::NodeId> saved_peers_;
  BanFile ban_file_;
  std::optional<net::TrafficCap> traffic_cap_;
  ReportingAs reporting_as_;
  bool serves_files_ = true;
  std::unique_ptr<PeerHost> host_;
  std::unique_ptr<NetworkReport> report_;
  std::unique_ptr<PeerDiscovery> discovery_;
};

}  // namespace neuroshard::runtime
