// A port held open at the router, with routers of the test: asked only when needed, one way after the other,
// kept, and taken back.
#include <QtTest>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "core/nat/router_port.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using platform::Endpoint;
using platform::IpAddress;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const IpAddress outside = IpAddress::v4(198, 51, 100, 7);
constexpr std::uint16_t port = 9000;

// Shared by all mappers of a test; its members are looked at by several threads.
struct Router {
  std::atomic<bool> speaks{true}, opens{true}, holds{false};
  std::atomic<int> asked{0}, taken_back{0};
};

class Mapper final : public PortMapper {
 public:
  Mapper(std::string_view name, Router& router) : name_(name), router_(router) {}
  std::string_view name() const override { return name_; }
  Expected<PortMapping> map(const Io&, std::uint16_t inside, std::uint16_t wanted, seconds lease) override {
    ++router_.asked;
    if (!router_.speaks) return make_error(ErrorCode::NotFound, "no such router");
    if (!router_.opens) return make_error(ErrorCode::Denied, "not allowed");
    router_.holds = true;
    return PortMapping{inside, wanted, lease};
  }
  Expected<MappingState> check(const Io&, const PortMapping&) override {
    if (!router_.speaks) return make_error(ErrorCode::Timeout, "no answer");
    return MappingState{outside, !router_.holds};
  }
  Expected<void> unmap(const Io&, const PortMapping&) override {
    router_.holds = false;
    ++router_.taken_back;
    return {};
  }

 private:
  const std::string_view name_;
  Router& router_;
};

// The news, as its owner hears them.
class Board {
 public:
  void put(RouterNews news) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(news));
    changed_.notify_all();
  }
  std::optional<RouterNews> wait_for(const std::function<bool(const RouterNews&)>& condition) {
    std::unique_lock lock(mutex_);
    std::optional<RouterNews> found;
    changed_.wait_for(lock, seconds(20), [&] {
      for (const RouterNews& news : all_)
        if (condition(news)) return found = news, true;
      return false;
    });
    return found;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    all_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RouterNews> all_;
};

bool mapped(const RouterNews& news) {
  return std::any_of(news.mappers.begin(), news.mappers.end(), [](const MapperFinding& finding) {
    return finding.outside == Endpoint{outside, port};
  });
}

}  // namespace

class TestRouterPort : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_first_way_that_works_is_kept();
  void nobody_is_asked_without_need();
  void a_router_that_forgets_is_asked_again();
  void a_router_without_any_way_is_said_and_asked_again();
  void another_address_of_this_machine_gets_a_mapping_of_its_own();
  void another_way_is_found_when_the_first_is_gone();
  void a_lost_mapping_is_requested_at_once_when_asked();
  void a_mapping_is_checked_when_others_see_another_address();

 private:
  static constexpr KeeperTimes quick{milliseconds(20), milliseconds(20), milliseconds(40)};

  std::unique_ptr<RouterPort> start(const KeeperTimes& times = quick) {
    return std::make_unique<RouterPort>(
        clock_, entropy_, port,
        [this](const std::optional<IpAddress>&) {
          std::vector<std::unique_ptr<PortMapper>> ways;
          ways.push_back(std::make_unique<Mapper>("UPnP", silent_));
          ways.push_back(std::make_unique<Mapper>("NAT-PMP", router_));
          return ways;
        },
        [this](RouterNews news) { board_.put(std::move(news)); }, times,
        RouteLookup{[this]() -> Expected<IpAddress> { return host(); },
                    []() -> Expected<IpAddress> { return IpAddress::v4(10, 0, 0, 1); }});
  }
  void init() {
    board_.clear();
    silent_.speaks = false;
    router_.speaks = true;
    host_ = 2;
    for (Router* router : {&silent_, &router_}) {
      router->opens = true;
      router->holds = false;
      router->asked = router->taken_back = 0;
    }
  }
  IpAddress host() const { return IpAddress::v4(10, 0, 0, host_); }
  std::atomic<std::uint8_t> host_{2};  // of this machine's address
  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  Router silent_, router_;
  Board board_;
};

void TestRouterPort::the_first_way_that_works_is_kept() {
  init();
  auto held = start();
  QVERIFY(!router_.holds);  // nobody has said yet that it is needed
  held->open(outside);
  const auto news = board_.wait_for(mapped);
  QVERIFY(news.has_value());
  QCOMPARE(news->mappers.size(), std::size_t{2});
  QCOMPARE(news->mappers[0].name, std::string("UPnP"));
  QVERIFY(news->mappers[0].failure.has_value() && !news->mappers[0].outside);
  QVERIFY(news->needed && router_.holds);
  held.reset();
  QVERIFY(!router_.holds);
  QCOMPARE(router_.taken_back.load(), 1);
  QCOMPARE(silent_.taken_back.load(), 0);
}

void TestRouterPort::nobody_is_asked_without_need() {
  init();
  auto held = start();
  held->open(host());
  const auto news = board_.wait_for([](const RouterNews& n) { return !n.needed; });
  QVERIFY(news.has_value());
  QVERIFY(news->mappers.empty());
  held.reset();
  QCOMPARE(router_.asked.load(), 0);
}

void TestRouterPort::a_router_that_forgets_is_asked_again() {
  init();
  auto held = start();
  held->open(outside);
  QVERIFY(board_.wait_for(mapped).has_value());
  board_.clear();
  router_.speaks = false;  // it restarts
  router_.holds = false;
  QVERIFY(board_.wait_for([](const RouterNews& news) { return !mapped(news); }).has_value());
  board_.clear();
  router_.speaks = true;
  QVERIFY(board_.wait_for(mapped).has_value());
  QVERIFY(router_.holds);
}

void TestRouterPort::a_router_without_any_way_is_said_and_asked_again() {
  init();
  router_.opens = false;
  auto held = start();
  held->open(outside);
  const auto news = board_.wait_for([](const RouterNews& n) { return !n.words.empty(); });
  QVERIFY(news.has_value());
  QCOMPARE(news->words, std::string("no router opened the port"));
  QVERIFY(!mapped(*news));
  // The advice depends on the reasons.
  QVERIFY(news->mappers.size() == 2 && news->mappers[0].failure && news->mappers[1].failure);
  QCOMPARE(news->mappers[0].failure->code, ErrorCode::NotFound);
  QCOMPARE(news->mappers[1].failure->code, ErrorCode::Denied);
  router_.opens = true;
  held->open(outside);  // somebody wants a new test
  QVERIFY(board_.wait_for(mapped).has_value());
}

void TestRouterPort::another_address_of_this_machine_gets_a_mapping_of_its_own() {
  init();
  auto held = start();
  held->open(outside);
  QVERIFY(board_.wait_for(mapped).has_value());
  host_ = 3;  // from the wireless network to the cable, at the same router
  const auto news = board_.wait_for([this](const RouterNews& n) { return mapped(n) && n.local == host(); });
  QVERIFY(news.has_value());
  QCOMPARE(router_.taken_back.load(), 1);
  QCOMPARE(router_.asked.load(), 2);
  QVERIFY(router_.holds);
}

// As in another network whose router has the same address.
void TestRouterPort::another_way_is_found_when_the_first_is_gone() {
  init();
  auto held = start();
  held->open(outside);
  QVERIFY(board_.wait_for(mapped).has_value());
  board_.clear();
  silent_.speaks = true;
  router_.speaks = false;
  const auto news = board_.wait_for([](const RouterNews& n) { return mapped(n) && n.mappers.size() == 1; });
  QVERIFY(news.has_value());
  QCOMPARE(news->mappers[0].name, std::string("UPnP"));
  QVERIFY(silent_.holds);
}

void TestRouterPort::a_lost_mapping_is_requested_at_once_when_asked() {
  init();
  using std::chrono::hours;
  auto held = start(KeeperTimes{milliseconds(20), hours(1), hours(1)});
  held->open(outside);
  QVERIFY(board_.wait_for(mapped).has_value());
  board_.clear();
  router_.opens = false;
  router_.holds = false;
  const auto lost = board_.wait_for([](const RouterNews& news) { return !mapped(news); });
  QVERIFY(lost.has_value());
  QVERIFY(lost->mappers.back().failure && lost->mappers.back().failure->code == ErrorCode::Denied);
  board_.clear();
  router_.opens = true;
  held->open(outside);
  QVERIFY(board_.wait_for(mapped).has_value());
}

void TestRouterPort::a_mapping_is_checked_when_others_see_another_address() {
  init();
  using std::chrono::hours;
  auto held = start(KeeperTimes{hours(1), milliseconds(20), milliseconds(40)});
  held->open(outside);
  QVERIFY(board_.wait_for(mapped).has_value());
  board_.clear();
  router_.holds = false;
  held->open(IpAddress::v4(198, 51, 100, 8));
  QVERIFY(board_.wait_for(mapped).has_value());
  QVERIFY(router_.holds);
}

NS_TEST(TestRouterPort)
#include "test_router_port.moc"
