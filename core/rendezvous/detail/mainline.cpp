#include "core/rendezvous/mainline.h"
#include "core/base/lifetime.h"

#include <fmt/format.h>

#include <libtorrent/alert_types.hpp>
#include <libtorrent/session.hpp>
#include <libtorrent/session_params.hpp>
#include <libtorrent/settings_pack.hpp>

namespace neuroshard::rendezvous {
namespace {

constexpr const char* well_known =
    "dht.libtorrent.org:25401,router.bittorrent.com:6881,dht.transmissionbt.com:6881";
constexpr int alerts = 256;  // that wait; further ones are lost, and the search repeats

std::string joined(const std::vector<std::string>& nodes) {
  if (nodes.empty()) return well_known;
  std::string text;
  for (const std::string& node : nodes) text += (text.empty() ? "" : ",") + node;
  return text;
}

lt::session_params parameters(const MainlineOptions& options) {
  lt::settings_pack pack;
  pack.set_str(lt::settings_pack::listen_interfaces, listen_interfaces(options.listen));
  pack.set_str(lt::settings_pack::dht_bootstrap_nodes, joined(options.bootstrap));
  pack.set_bool(lt::settings_pack::enable_dht, true);
  // Off for a small table: a lookup that hides its key until it is near may end before it is near.
  pack.set_bool(lt::settings_pack::dht_privacy_lookups, !options.one_lan);
  for (const int off :
       {lt::settings_pack::enable_lsd, lt::settings_pack::enable_upnp, lt::settings_pack::enable_natpmp,
        lt::settings_pack::enable_incoming_tcp, lt::settings_pack::enable_outgoing_tcp,
        lt::settings_pack::enable_incoming_utp, lt::settings_pack::enable_outgoing_utp})
    pack.set_bool(off, false);
  if (options.one_lan) {
    for (const int off :
         {lt::settings_pack::dht_restrict_routing_ips, lt::settings_pack::dht_restrict_search_ips,
          lt::settings_pack::dht_enforce_node_id, lt::settings_pack::dht_ignore_dark_internet,
          lt::settings_pack::dht_prefer_verified_node_ids})
      pack.set_bool(off, false);
    pack.set_int(lt::settings_pack::dht_block_ratelimit, 100'000);
  }
  pack.set_int(lt::settings_pack::alert_mask,
               static_cast<int>(static_cast<std::uint32_t>(lt::alert_category::dht_operation |
                                                           lt::alert_category::error)));
  pack.set_int(lt::settings_pack::alert_queue_size, alerts);
  pack.set_int(lt::settings_pack::dht_upload_rate_limit, 8'000);  // bytes a second, libtorrent's default
  pack.set_str(lt::settings_pack::user_agent, "");
  return lt::session_params(std::move(pack));
}

std::optional<platform::Endpoint> endpoint_of(const lt::tcp::endpoint& from) {
  if (from.port() == 0) return std::nullopt;
  const auto endpoint = platform::parse_endpoint(
      from.address().is_v6() ? fmt::format("[{}]:{}", from.address().to_string(), from.port())
                             : fmt::format("{}:{}", from.address().to_string(), from.port()));
  if (!endpoint.ok()) return std::nullopt;
  return *endpoint;
}

class Session final : public Rendezvous {
 public:
  Session(Executor& executor, const MainlineOptions& options) : rng_(options.seed) {
    const auto key = mainline_key(options.network_id);
    key_ = lt::sha1_hash(reinterpret_cast<const char*>(key.data()));
    session_ = std::make_unique<lt::session>(parameters(options));
    // Called on the library's thread, which must continue at once.
    session_->set_alert_notify([this, life = lifetime_.token(), &executor] {
      static_cast<void>(executor.post([this, life] {
        if (life.alive()) read_alerts();
      }));
    });
  }

  ~Session() override {
    lifetime_.end();
    session_->set_alert_notify([] {});
  }

  std::string_view name() const override { return "the BitTorrent DHT"; }

  void announce(std::optional<std::uint16_t> port) override {
    port_ = port;
    if (port_) session_->dht_announce(key_, *port_);
  }

  void look_up(Found found) override {
    found_ = std::move(found);
    told_.clear();
    session_->dht_get_peers(key_);
  }

 private:
  void read_alerts() {
    std::vector<lt::alert*> list;
    session_->pop_alerts(&list);
    for (const lt::alert* one : list) {
      if (const auto* reply = lt::alert_cast<lt::dht_get_peers_reply_alert>(one)) tell(reply->peers());
      // The table was empty at the first request: repeat it now.
      if (lt::alert_cast<lt::dht_bootstrap_alert>(one) != nullptr) {
        if (port_) session_->dht_announce(key_, *port_);
        if (found_) session_->dht_get_peers(key_);
      }
    }
  }

  void tell(const std::vector<lt::tcp::endpoint>& peers) {
    std::vector<platform::Endpoint> answer;
    for (const lt::tcp::endpoint& peer : peers)
      if (const auto endpoint = endpoint_of(peer)) answer.push_back(*endpoint);
    const auto fresh = draw(std::move(answer), &told_, rng_);
    if (fresh.empty() || !found_) return;
    const Found found = found_;  // which may search again
    found(fresh);
  }

  lt::sha1_hash key_;
  std::optional<std::uint16_t> port_;
  Found found_;
  std::vector<platform::Endpoint> told_;
  Rng rng_;
  Lifetime lifetime_;
  std::unique_ptr<lt::session> session_;
};

}  // namespace

Expected<std::unique_ptr<Rendezvous>> make_mainline(Executor& executor, MainlineOptions options) {
  // The library throws; no exception passes this line.
  try {
    return std::unique_ptr<Rendezvous>(std::make_unique<Session>(executor, options));
  } catch (const std::exception& failed) {
    return make_error(ErrorCode::Internal,
                      fmt::format("the BitTorrent DHT can't be used: {}", failed.what()));
  }
}

}  // namespace neuroshard::rendezvous
