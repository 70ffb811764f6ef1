// The mainline rendezvous on a DHT of its own: 24 libtorrent nodes on the loopback interface, and two of ours
// that know nothing but one of them. Nothing leaves the machine.
#include <QtTest>
#include <future>
#include <mutex>

#include "core/rendezvous/mainline.h"
#include "tests/support/mainline_table.h"
#include "tests/support/test_main.h"

using namespace neuroshard;              // NOLINT
using namespace neuroshard::rendezvous;  // NOLINT
using neuroshard::testing::MainlineTable;

class TestMainline : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase() { table_.stop(); }
  void keys_differ_by_network();
  void any_address_is_one_of_both_ip_versions();
  void an_answer_alone_fills_no_search();
  void two_nodes_find_each_other();
  void another_network_is_not_found();
  void a_dht_that_is_dead_is_no_harm();

 private:
  MainlineTable table_;
  std::string entry_;
};

namespace {

constexpr int nodes = MainlineTable::nodes;
constexpr auto patience = std::chrono::seconds(60);
const platform::IpAddress first = platform::IpAddress::v4(127, 0, 0, 1),
                          second = platform::IpAddress::v4(127, 0, 0, 2);

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
        if (has_found(wanted)) return true;
      }
    }
    return false;
  }
  bool has_found(const platform::Endpoint& endpoint) {
    const std::lock_guard lock(mutex_);
    return std::find(found_.begin(), found_.end(), endpoint) != found_.end();
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
  QVERIFY(table_.start());
  entry_ = table_.entry();
}

void TestMainline::keys_differ_by_network() {
  // From `printf 'neuroshard mainline 1' | cat - <(head -c 32 /dev/zero) | sha256sum`.
  const auto key = mainline_key(Hash256{});
  QCOMPARE(QString::fromStdString(to_hex({key.data(), key.size()})),
           QString("f7f9302ed239bae7e36fb32402070cba2acca53d"));
  QVERIFY(mainline_key(Hash256{1}) != key);
}

void TestMainline::any_address_is_one_of_both_ip_versions() {
  QCOMPARE(listen_interfaces({}), std::string("0.0.0.0:0,[::]:0"));
  QCOMPARE(listen_interfaces({platform::IpAddress::v4(0, 0, 0, 0), 0}), std::string("0.0.0.0:0"));
  QCOMPARE(listen_interfaces({platform::parse_ip("::1").value(), 7}), std::string("[::1]:7"));
}

void TestMainline::an_answer_alone_fills_no_search() {
  std::vector<platform::Endpoint> many;
  for (std::uint16_t port = 1; port <= 1000; ++port) many.push_back({first, port});
  Rng rng(5);
  std::vector<platform::Endpoint> told;
  const auto drawn = draw(many, &told, rng);
  QCOMPARE(drawn.size(), most_of_answer);
  QVERIFY(drawn == told);
  QVERIFY(drawn != std::vector<platform::Endpoint>(many.begin(), many.begin() + 4));
  // Another one is heard as well, and what is known is not told again.
  const std::vector<platform::Endpoint> honest{{second, 9000}, drawn[0]};
  QVERIFY(draw(honest, &told, rng) == std::vector<platform::Endpoint>{honest[0]});
  QVERIFY(draw(honest, &told, rng).empty());
  for (int i = 0; i < 1000; ++i) draw(many, &told, rng);
  QCOMPARE(told.size(), most_of_search);
}

void TestMainline::two_nodes_find_each_other() {
  const Hash256 network{42};
  Ours a(network, entry_), b(network, entry_, second);
  const auto begin = std::chrono::steady_clock::now();
  // The announcing node has no port open there: the DHT takes its word for the port, and the address that it
  // sees.
  QVERIFY(b.finds({first, 29001}, a));
  qInfo("found after %.1f s in a DHT of %d nodes",
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), nodes);
  QVERIFY(a.finds({second, 29002}, b));
}

void TestMainline::another_network_is_not_found() {
  const platform::Endpoint of_another{first, 29003}, of_its_own{first, 29005};
  Ours a(Hash256{1}, entry_), b(Hash256{2}, entry_), c(Hash256{1}, entry_), d(Hash256{2}, entry_);
  QVERIFY(c.finds(of_another, a));
  QVERIFY(b.finds(of_its_own, d));  // its search works
  QVERIFY(!b.has_found(of_another));
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

NS_TEST(TestMainline)
#include "test_mainline.moc"
