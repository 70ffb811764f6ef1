// A private mainline DHT: libtorrent nodes on the loopback interface, an address each. Nothing leaves the
// machine. Header only; needs Qt Test and libtorrent.
#pragma once

#include <QtTest>
#include <algorithm>
#include <libtorrent/alert_types.hpp>
#include <libtorrent/session.hpp>
#include <libtorrent/session_params.hpp>
#include <libtorrent/settings_pack.hpp>
#include <memory>
#include <string>
#include <vector>

namespace neuroshard::testing {

class MainlineTable {
 public:
  static constexpr int nodes = 24;

  // False when it has not formed within a minute.
  bool start() {
    for (int i = 0; i < nodes; ++i) {
      const std::string own = "127.0.1." + std::to_string(1 + i);
      table_.push_back(std::make_unique<lt::session>(parameters(own, entry_)));
      if (!QTest::qWaitFor([&] { return table_.back()->listen_port() != 0; }, 20'000)) return false;
      const std::string at = own + ":" + std::to_string(table_.back()->listen_port());
      if (entry_.empty()) entry_ = at;
      if (i > 0) table_.front()->add_dht_node({own, static_cast<int>(table_.back()->listen_port())});
    }
    // One that came first knows fewer.
    return QTest::qWaitFor(
        [this] {
          return std::count_if(table_.begin(), table_.end(),
                               [](const auto& session) { return known_to(*session) >= 8; }) >= 20;
        },
        60'000);
  }
  void stop() { table_.clear(); }
  const std::string& entry() const { return entry_; }  // "host:port" of one of them

 private:
  static lt::session_params parameters(const std::string& own, const std::string& entry) {
    lt::settings_pack pack;
    pack.set_str(lt::settings_pack::listen_interfaces, own + ":0");
    pack.set_str(lt::settings_pack::dht_bootstrap_nodes, entry);
    pack.set_bool(lt::settings_pack::enable_dht, true);
    for (const int off :
         {lt::settings_pack::enable_lsd, lt::settings_pack::enable_upnp, lt::settings_pack::enable_natpmp,
          lt::settings_pack::dht_restrict_routing_ips, lt::settings_pack::dht_restrict_search_ips,
          lt::settings_pack::dht_enforce_node_id, lt::settings_pack::dht_ignore_dark_internet,
          lt::settings_pack::dht_prefer_verified_node_ids})
      pack.set_bool(off, false);
    pack.set_int(lt::settings_pack::dht_block_ratelimit, 100'000);  // all come from one address
    pack.set_int(lt::settings_pack::dht_upload_rate_limit, 1'000'000);
    pack.set_int(
        lt::settings_pack::alert_mask,
        static_cast<int>(static_cast<std::uint32_t>(lt::alert_category::dht | lt::alert_category::error)));
    return lt::session_params(std::move(pack));
  }

  // The contacts that a node of the table knows.
  static int known_to(lt::session& session) {
    session.post_dht_stats();
    session.wait_for_alert(std::chrono::milliseconds(200));
    std::vector<lt::alert*> alerts;
    session.pop_alerts(&alerts);
    int known = -1;
    for (const lt::alert* one : alerts) {
      const auto* stats = lt::alert_cast<lt::dht_stats_alert>(one);
      if (stats == nullptr) continue;
      known = 0;
      for (const lt::dht_routing_bucket& bucket : stats->routing_table) known += bucket.num_nodes;
    }
    return known;
  }

  std::vector<std::unique_ptr<lt::session>> table_;
  std::string entry_;
};

}  // namespace neuroshard::testing
