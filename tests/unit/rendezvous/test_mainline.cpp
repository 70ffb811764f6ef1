// The mainline rendezvous on a DHT of its own: 24 libtorrent nodes on the loopback interface, and two of ours
// that know nothing but one of them. Nothing leaves the machine.
#include <QtTest>
#include <future>
#include <libtorrent/alert_types.hpp>
#include <libtorrent/session.hpp>
#include <libtorrent/session_params.hpp>
#include <libtorrent/settings_pack.hpp>
#include <mutex>

#include "core/rendezvous/mainline.h"

using namespace neuroshard;              // NOLINT
using namespace neuroshard::rendezvous;  // NOLINT

class TestMainline : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase() { table_.clear(); }
  void keys_differ_by_network();
  void two_nodes_find_each_other();
  void another_network_is_not_found();
  void a_dht_that_is_dead_is_no_harm();

 private:
  std::vector<std::unique_ptr<lt::session>> table_;
  std::string entry_;
};

namespace {

constexpr int nodes = 24;
constexpr auto patience = std::chrono::seconds(60);
const platform::IpAddress first = platform::IpAddress::v4(127, 0, 0, 1),
                          second = platform::IpAddress::v4(127, 0, 0, 2);

lt::session_params node_of_the_table(const std::string& own, const std::string& entry) {
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

// Whom a node of the table knows.
int known_to(lt::session& session) {
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

// A node of ours on a thread of its own.
class Ours {
 public:
  Ours(const Hash256& network, const std::string& entry, const platform::IpAddress& ip = first)
      : executor_(make_thread_executor("ours", 1024)) {
    run([&] {
      MainlineOptions options;
      options.network_id = network;
      options.listen = {ip, 0};
      options.bootstrap = {entry};
      options.one_lan = true;
      auto made = make_mainline(*executor_, options);
      if (!made.ok()) qFatal("%s", made.error().describe().c_str());
      place_ = std::move(*made);
    });
  }
  ~Ours() {
    run([&] { place_.reset(); });
  }
  void announce(std::uint16_t port) {
    run([&] { place_->announce(port); });
  }
  void look() {
    run([&] {
      place_->look_up([this](const std::vector<platform::Endpoint>& found) {
        const std::lock_guard lock(mutex_);
        found_.insert(found_.end(), found.begin(), found.end());
      });
    });
  }
  // Looks until this is among what was found. The other one announces again each time, as a seeker does: a
  // single announcement may be lost.
  bool finds(const platform::Endpoint& wanted, Ours& other) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < end) {
      other.announce(wanted.port);
      look();
      // Not more often: the DHT's allowance for sending would be used up, and nothing be found at all.
      for (int i = 0; i < 100; ++i) {
        QTest::qWait(50);
        const std::lock_guard lock(mutex_);
        if (std::find(found_.begin(), found_.end(), wanted) != found_.end()) return true;
      }
    }
    return false;
  }
  std::size_t found() {
    const std::lock_guard lock(mutex_);
    return found_.size();
  }

 private:
  void run(const std::function<void()>& task) {
    std::promise<void> done;
    if (!executor_->post([&] {
          task();
          done.set_value();
        }))
      qFatal("the executor is full");
    done.get_future().wait();
  }
  std::mutex mutex_;
  std::vector<platform::Endpoint> found_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Rendezvous> place_;
};

}  // namespace

void TestMainline::initTestCase() {
  for (int i = 0; i < nodes; ++i) {
    // An address each, as in the world.
    const std::string own = "127.0.1." + std::to_string(1 + i);
    table_.push_back(std::make_unique<lt::session>(node_of_the_table(own, entry_)));
    QTRY_VERIFY_WITH_TIMEOUT(table_.back()->listen_port() != 0, 20'000);
    const std::string at = own + ":" + std::to_string(table_.back()->listen_port());
    if (entry_.empty()) entry_ = at;
    if (i > 0) table_.front()->add_dht_node({own, static_cast<int>(table_.back()->listen_port())});
  }
  // One that came first knows fewer.
  const auto formed = [this] {
    return std::count_if(table_.begin(), table_.end(),
                         [](const auto& session) { return known_to(*session) >= 8; }) >= 20;
  };
  QTRY_VERIFY_WITH_TIMEOUT(formed(), 60'000);
}

void TestMainline::keys_differ_by_network() {
  // From `printf 'neuroshard mainline 1' | cat - <(head -c 32 /dev/zero) | sha256sum`.
  const auto key = mainline_key(Hash256{});
  QCOMPARE(QString::fromStdString(to_hex({key.data(), key.size()})),
           QString("f7f9302ed239bae7e36fb32402070cba2acca53d"));
  QVERIFY(mainline_key(Hash256{1}) != key);
}

void TestMainline::two_nodes_find_each_other() {
  const Hash256 network{42};
  Ours a(network, entry_), b(network, entry_, second);
  const auto begin = std::chrono::steady_clock::now();
  // Who announces has no port open there: the DHT takes its word for the port, and the address that it sees.
  QVERIFY(b.finds({first, 29001}, a));
  qInfo("found after %.1f s in a DHT of %d nodes",
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), nodes);
  QVERIFY(a.finds({second, 29002}, b));
}

void TestMainline::another_network_is_not_found() {
  Ours a(Hash256{1}, entry_), b(Hash256{2}, entry_), c(Hash256{1}, entry_);
  QVERIFY(c.finds({first, 29003}, a));
  b.look();
  QTest::qWait(1'000);
  QCOMPARE(b.found(), std::size_t{0});
}

void TestMainline::a_dht_that_is_dead_is_no_harm() {
  const auto begin = std::chrono::steady_clock::now();
  {
    Ours a(Hash256{3}, "127.0.0.1:9");
    a.announce(29004);
    a.look();
  }
  QVERIFY2(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20),
           "its end does not wait for it");
}

QTEST_GUILESS_MAIN(TestMainline)
#include "test_mainline.moc"
