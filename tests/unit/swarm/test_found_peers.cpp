// First peers that were found elsewhere, at a rendezvous or in the network: how long they are kept, and when they
// are enough.
#include <QtTest>

#include <deque>

#include "core/swarm/messages.h"
#include "tests/support/test_main.h"
#include "tests/support/village.h"

using namespace neuroshard;
using namespace neuroshard::swarm;
using namespace neuroshard::test;  // NOLINT

namespace {

// Lets nobody introduce itself, as at an address that the others don't know.
struct Unknown final : net::PeerService {
  explicit Unknown(net::PeerService& answers_) : answers(answers_) {}
  void on_call(const net::Caller& from, net::Method method, Bytes request, net::Respond respond) override {
    if (method == net::Method::Peers) return respond(make_error(ErrorCode::Unavailable, "not there"));
    answers.on_call(from, method, std::move(request), std::move(respond));
  }
  void on_stream(const net::Caller& from, net::Method method,
                 std::shared_ptr<net::PeerStream> stream) override {
    answers.on_stream(from, method, std::move(stream));
  }
  net::PeerService& answers;
};

}  // namespace

class TestFoundPeers : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_found_place_that_answers_again_is_kept();
  void a_node_whose_first_peers_are_gone_takes_another();
  void a_found_peer_that_names_nobody_is_not_enough();
  void found_peers_that_name_nobody_make_room();
  void an_address_group_has_one_found_place();
};

void TestFoundPeers::a_found_place_that_answers_again_is_kept() {
  Village village;
  Host& a = village.add({});
  Host& b = village.add({});
  Front front(b, [](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
    if (method != net::Method::Ping) return respond(std::move(answer));
    respond(make_error(ErrorCode::Internal, "it ends its connections"));
  });
  a.member->suggest({b.endpoint, b.id});
  int ended = 0;
  for (int i = 0; i < 120; ++i) {
    village.world.run_for(second);
    const SourceView source = a.member->view().sources[0];
    ended += source.state.find("tried again in") != std::string::npos;
    QVERIFY2(source.state.find("not tried again") == std::string::npos, source.state.c_str());
  }
  QVERIFY2(ended >= 3, qPrintable(QString::number(ended)));
}

void TestFoundPeers::a_node_whose_first_peers_are_gone_takes_another() {
  Village village;
  Host& founder = village.add({});
  Host& other = village.add({&founder});
  const auto has_first_peer = [&] {
    for (const SourceView& source : founder.member->view().sources)
      if (source.connected) return true;
    return false;
  };
  QVERIFY(
      village.run_until([&] { return has_first_peer() && founder.member->view().reachable; }, 3 * minute));
  Unknown unknown(*founder.member);
  founder.transport->serve(&unknown);
  village.power_off(other);
  village.world.run_for(10 * minute);
  QVERIFY(!has_first_peer());
  village.power_on(other);
  const bool found = village.run_until(has_first_peer, 5 * minute);
  founder.transport->serve(nullptr);
  QVERIFY(found);
}

void TestFoundPeers::a_found_peer_that_names_nobody_is_not_enough() {
  Village village;
  Host& a = village.add({});
  Host& silent = village.add({});
  Front front(silent, [](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
    respond(method == net::Method::Peers ? Expected<Bytes>(encode_records({})) : std::move(answer));
  });
  Unknown unknown(*a.member);
  a.transport->serve(&unknown);
  a.member->suggest({silent.endpoint, silent.id});
  village.world.run_for(minute);
  const bool connected = a.member->view().sources[0].connected, alone = a.member->alone();
  const bool seeks = a.member->seeks_others();
  // One that names itself is.
  Host& honest = village.add({});
  a.member->suggest({honest.endpoint, honest.id});
  village.world.run_for(minute);
  const bool seeks_on = a.member->seeks_others();
  a.transport->serve(nullptr);
  QVERIFY(connected && !alone);
  QVERIFY(seeks);
  QVERIFY(!seeks_on);
}

void TestFoundPeers::found_peers_that_name_nobody_make_room() {
  std::deque<Front> silent;
  Village village;
  Host& a = village.add({});
  for (int i = 0; i < 8; ++i) {
    Host& host = village.add({});
    silent.emplace_back(host, [](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
      respond(method == net::Method::Peers ? Expected<Bytes>(encode_records({})) : std::move(answer));
    });
    a.member->suggest({host.endpoint, host.id});
  }
  Unknown unknown(*a.member);
  a.transport->serve(&unknown);
  village.world.run_for(2 * minute);
  const bool seeks = a.member->seeks_others();
  Host& honest = village.add({});
  a.member->suggest({honest.endpoint, honest.id});
  village.world.run_for(minute);
  const bool seeks_on = a.member->seeks_others();
  const std::size_t places = a.member->view().sources.size();
  a.transport->serve(nullptr);
  QVERIFY(seeks);
  QVERIFY(!seeks_on);
  QCOMPARE(places, std::size_t{8});
}

void TestFoundPeers::an_address_group_has_one_found_place() {
  Village village;
  Host& a = village.add({});
  Host& in_lan = village.add({}, false, true, [](Host&, MemberOptions& options) { options.one_lan = true; });
  for (std::uint8_t i = 1; i <= 3; ++i) {
    const platform::Endpoint dead{platform::IpAddress::v4(99, 0, 0, i), 9000};
    a.member->suggest({dead, net::NodeId{i}});
    in_lan.member->suggest({dead, net::NodeId{i}});
  }
  QCOMPARE(a.member->view().sources.size(), std::size_t{1});
  QCOMPARE(in_lan.member->view().sources.size(), std::size_t{3});
  a.member->suggest({{platform::IpAddress::v4(99, 0, 1, 1), 9000}, net::NodeId{9}});
  QCOMPARE(a.member->view().sources.size(), std::size_t{2});
}

NS_TEST(TestFoundPeers)
#include "test_found_peers.moc"
