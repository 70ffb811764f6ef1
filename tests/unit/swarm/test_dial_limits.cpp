// How often a member dials what records name: a victim's address, a household behind one address.
#include <QtTest>

#include "core/swarm/path_transport.h"
#include "tests/support/keys.h"
#include "tests/support/manual_executor.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::swarm;
using namespace neuroshard::test;  // NOLINT
using platform::Endpoint;
using platform::IpAddress;

namespace {

// Counts dials. Those that may answer do, the others time out.
class Wire final : public net::PeerTransport {
 public:
  explicit Wire(Executor& executor) : executor_(executor) {}
  void connect(const net::Dial& to, Duration, Connected done) override {
    ++dials;
    const bool answer = answers;
    QVERIFY(executor_.post([this, to, answer, done] {
      if (!answer) return done(make_error(ErrorCode::Timeout, "no connection in time"));
      done(std::shared_ptr<net::PeerChannel>(std::make_shared<Channel>(*this, to)));
    }));
  }
  void set_hello(net::Hello hello) override { hello_ = std::move(hello); }
  const net::Hello& hello() const override { return hello_; }

  int dials = 0;
  bool answers = false;

 private:
  class Channel final : public net::PeerChannel {
   public:
    Channel(Wire& wire, const net::Dial& to) : wire_(wire), to_(to) {}
    const net::NodeId& id() const override { return *to_.id; }
    const net::Hello& hello() const override { return wire_.hello_; }
    Endpoint endpoint() const override { return to_.endpoint; }
    void call(net::Method, Bytes, Duration, net::CallDone) override {}
    std::shared_ptr<net::PeerStream> open(net::Method, Duration) override { return nullptr; }

   private:
    Wire& wire_;
    const net::Dial to_;
  };
  Executor& executor_;
  net::Hello hello_;
};

const Endpoint victim{IpAddress::v4(11, 22, 33, 44), 9000};

}  // namespace

class TestDialLimits : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup();
  void a_victim_gets_few_dials();
  void a_victim_that_records_name_as_a_relay_gets_few_dials();
  void a_household_behind_one_address_is_dialled_at_once();
  void a_node_that_was_reached_is_always_dialled();
  void what_the_user_names_is_always_dialled();

 private:
  net::NodeId learn(std::uint16_t number, net::NodeEndpoint at) {
    net::NodeRecord record;
    const crypto::KeyPair key = key_numbered(number);
    record.sequence = 1;
    record.made = clock_.wall_now();
    record.expires = clock_.wall_now() + std::chrono::hours(2);
    record.endpoints = {at};
    record.program = "test";
    if (!net::sign_node_record(record, key, Hash256{}).ok() || !book_->put(record, clock_.wall_now()).ok())
      qFatal("not taken");
    return record.id();
  }
  // The error's code; Ok of a connection.
  std::optional<ErrorCode> connect(const net::NodeId& id, const Endpoint& at) {
    std::optional<ErrorCode> error;
    bool done = false;
    paths_->connect({at, id}, second, [&](const Expected<std::shared_ptr<net::PeerChannel>>& channel) {
      done = true;
      if (!channel.ok()) error = channel.error().code;
    });
    executor_.run();
    if (!done) qFatal("no answer");
    return error;
  }
  // Of an hour in which each of these nodes is needed every two minutes, the pool's longest pause.
  int dials_of_an_hour(const std::vector<net::NodeId>& ids) {
    wire_->dials = 0;
    for (int i = 0; i < 30; ++i) {
      for (const net::NodeId& id : ids) (void)connect(id, victim);
      clock_.advance(2 * minute);
    }
    return wire_->dials;
  }

  ManualClock clock_;
  testing::ManualExecutor executor_{256};
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<net::NodeBook> book_;
  std::unique_ptr<net::DialGate> gate_;
  std::unique_ptr<PathTransport> paths_;
};

void TestDialLimits::init() {
  wire_ = std::make_unique<Wire>(executor_);
  net::NodeBookLimits limits;
  limits.per_group = 5000;
  book_ = std::make_unique<net::NodeBook>(Hash256{}, false, limits);
  gate_ = std::make_unique<net::DialGate>(net::DialRules{}, clock_, 5);
  paths_ = std::make_unique<PathTransport>(*wire_, nullptr, *book_, clock_);
}

void TestDialLimits::cleanup() {
  paths_.reset();
}

void TestDialLimits::a_victim_gets_few_dials() {
  std::vector<net::NodeId> ids;
  for (std::uint16_t i = 0; i < 1000; ++i) ids.push_back(learn(i, {net::Reach::Direct, victim}));
  const int before = dials_of_an_hour(ids);  // the control
  paths_->set_gate(*gate_, executor_);
  const int after = dials_of_an_hour(ids);
  qInfo("1000 records name a victim: %d dials of an hour without the gate, %d with it", before, after);
  QCOMPARE(before, 30'000);
  QVERIFY2(after >= 24 && after <= 24 + 120, qPrintable(QString::number(after)));
  QCOMPARE(*connect(ids[0], victim), ErrorCode::Timeout);  // a token of the last two minutes
}

void TestDialLimits::a_victim_that_records_name_as_a_relay_gets_few_dials() {
  paths_->set_gate(*gate_, executor_);
  std::vector<net::NodeId> ids;
  for (std::uint16_t i = 0; i < 200; ++i)
    ids.push_back(learn(i, {i % 2 == 0 ? net::Reach::Relayed : net::Reach::Turn, victim}));
  for (const net::NodeId& id : ids) (void)connect(id, victim);
  QCOMPARE(wire_->dials, 24);
  // A service of another kind, and this computer's own network, get none.
  const Endpoint dns{IpAddress::v4(11, 22, 34, 53), 53}, printer{IpAddress::v4(192, 168, 1, 9), 9100};
  QCOMPARE(*connect(learn(300, {net::Reach::Direct, dns}), dns), ErrorCode::Denied);
  QCOMPARE(*connect(learn(301, {net::Reach::Direct, printer}), printer), ErrorCode::Denied);
  QCOMPARE(wire_->dials, 24);
  QVERIFY(!paths_->contact_of(*book_->find(learn(302, {net::Reach::Direct, dns}), clock_.wall_now()), false));
}

void TestDialLimits::a_household_behind_one_address_is_dialled_at_once() {
  paths_->set_gate(*gate_, executor_);
  wire_->answers = true;
  std::size_t connected = 0;
  for (std::uint16_t i = 0; i < 20; ++i) {
    const Endpoint at{victim.ip, static_cast<std::uint16_t>(9000 + i)};
    paths_->connect({at, learn(i, {net::Reach::Direct, at})}, second,
                    [&](const auto& channel) { connected += channel.ok() ? 1 : 0; });
  }
  executor_.run();
  QCOMPARE(connected, std::size_t{20});
  QCOMPARE(book_->proven(clock_.wall_now()).size(), std::size_t{20});
}

void TestDialLimits::a_node_that_was_reached_is_always_dialled() {
  paths_->set_gate(*gate_, executor_);
  wire_->answers = true;
  const net::NodeId honest = learn(1, {net::Reach::Direct, victim});
  QVERIFY(!connect(honest, victim));
  // Others name its address and don't answer there: a neighbour's record must not cut it off.
  wire_->answers = false;
  for (std::uint16_t i = 10; i < 100; ++i) (void)connect(learn(i, {net::Reach::Direct, victim}), victim);
  QCOMPARE(*connect(learn(200, {net::Reach::Direct, victim}), victim), ErrorCode::Exhausted);
  wire_->answers = true;
  QVERIFY(!connect(honest, victim));
}

void TestDialLimits::what_the_user_names_is_always_dialled() {
  paths_->set_gate(*gate_, executor_);
  const Endpoint own{IpAddress::v4(127, 0, 0, 1), 443};
  for (int i = 0; i < 100; ++i) paths_->connect_given({own, std::nullopt}, second, [](const auto&) {});
  QCOMPARE(wire_->dials, 100);
}

NS_TEST(TestDialLimits)
#include "test_dial_limits.moc"
