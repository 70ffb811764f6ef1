// Nodes that begin with each other and no tracker: whoever is called learns who calls, from a record that
// only the caller can have signed, and can call back.
#include <QtTest>

#include "core/swarm/messages.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"
#include "tests/support/village.h"

using namespace neuroshard;
using namespace neuroshard::swarm;
using namespace neuroshard::test;  // NOLINT

namespace {

// Counts the calls of one method that a node gets from one other node.
struct CallsFrom final : net::PeerService {
  CallsFrom(net::PeerService& answers_, const net::NodeId& from_, net::Method method_)
      : answers(answers_), wanted(from_), counted(method_) {}
  void on_call(const net::Caller& from, net::Method method, Bytes request, net::Respond respond) override {
    if (from.id == wanted && method == counted) ++count;
    answers.on_call(from, method, std::move(request), std::move(respond));
  }
  void on_stream(const net::Caller& from, net::Method method,
                 std::shared_ptr<net::PeerStream> stream) override {
    answers.on_stream(from, method, std::move(stream));
  }
  net::PeerService& answers;
  const net::NodeId wanted;
  const net::Method counted;
  int count = 0;
};

net::NodeRecord record_of(const crypto::KeyPair& key, std::uint64_t sequence, WallTime now,
                          std::vector<net::NodeEndpoint> endpoints,
                          std::chrono::milliseconds life = std::chrono::hours(1)) {
  net::NodeRecord record;
  record.sequence = sequence;
  record.made = now;
  record.expires = now + life;
  record.endpoints = std::move(endpoints);
  record.program = "test";
  if (!net::sign_node_record(record, key, network_id()).ok()) qFatal("not signed");
  return record;
}

constexpr std::uint64_t later_than_its_own = std::uint64_t{1} << 62;  // a sequence

net::NodeEndpoint elsewhere(std::uint8_t group) {
  return {net::Reach::Direct, {platform::IpAddress::v4(12, group, 0, 1), 9000}};
}

}  // namespace

class TestIntroduction : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void two_without_a_tracker_reach_each_other();
  void a_chain_becomes_a_network();
  void a_newcomer_is_found_before_its_next_heartbeat();
  void who_missed_the_first_call_is_called_again();
  void who_is_back_is_found_before_its_next_heartbeat();
  void a_household_behind_one_address_becomes_a_network();
  void a_guest_introduces_nobody();
  void only_the_own_record_counts();
  void who_is_introduced_again_and_again_makes_nobody_flood_others();
  void who_names_records_does_so_from_where_it_is();
  void a_place_that_only_a_record_names_is_not_for_the_next_start();

 private:
  static Expected<Bytes> peers(Village& village, Host& from, const Host& to, Bytes request) {
    std::optional<Expected<Bytes>> answer;
    net::PeerPool pool(*from.transport, from.executor, village.world.clock());
    pool.call({to.id, to.endpoint}, net::Method::Peers, std::move(request), 10 * second,
              [&](Expected<Bytes> said) { answer.emplace(std::move(said)); });
    village.run_until([&] { return answer.has_value(); }, minute);
    return answer ? std::move(*answer) : make_error(ErrorCode::Timeout, "no answer");
  }
};

void TestIntroduction::two_without_a_tracker_reach_each_other() {
  Village village;
  Host& first = village.add({});
  Host& second_one = village.add({&first});
  QVERIFY(village.run_until(
      [&] {
        const MemberView a = first.member->view(), b = second_one.member->view();
        return a.known == 1 && b.known == 1 && a.reachable && b.reachable && a.table == 1 && b.table == 1;
      },
      3 * minute));
  // The one that was called calls back by itself, over a connection of its own.
  QVERIFY(village.run_until(
      [&] {
        const MemberView view = first.member->view();
        return !view.peers.empty() && view.peers[0].connection.connected;
      },
      2 * minute));
}

void TestIntroduction::a_chain_becomes_a_network() {
  Village village;
  std::vector<Host*> nodes{&village.add({})};
  for (int i = 0; i < 5; ++i) nodes.push_back(&village.add({nodes.back()}));
  QVERIFY(village.run_until(
      [&] {
        return std::all_of(nodes.begin(), nodes.end(),
                           [](const Host* node) { return node->member->view().known == 5; });
      },
      10 * minute));
}

// It calls the others first, and they could not answer with what they have for it.
void TestIntroduction::a_newcomer_is_found_before_its_next_heartbeat() {
  Village village;
  Host& tracker = village.add({}, true);
  std::vector<Host*> nodes;
  for (int i = 0; i < 5; ++i) nodes.push_back(&village.add({&tracker}));
  village.world.run_for(5 * minute);
  const Host& newcomer = village.add({&tracker});
  QVERIFY(village.run_until(
      [&] {
        return std::all_of(nodes.begin(), nodes.end(),
                           [&](const Host* node) { return node->member->find(newcomer.id).has_value(); });
      },
      MemberOptions{}.heartbeat / 2));
}

// Among many others it would be drawn only now and then.
void TestIntroduction::who_missed_the_first_call_is_called_again() {
  Village village;
  Host& tracker = village.add({}, true);
  for (int i = 0; i < 8; ++i) village.add({&tracker});
  village.world.run_for(5 * minute);
  Host& away = village.hosts[3];
  village.power_off(away);
  const Host& newcomer = village.add({&tracker});
  const auto has_failed = [&] {
    for (const MemberPeer& peer : newcomer.member->view().peers)
      if (peer.connection.id == away.id) return peer.connection.failures > 0;
    return false;
  };
  QVERIFY(village.run_until(has_failed, minute));
  CallsFrom introductions(*away.member, newcomer.id, net::Method::Peers);
  away.transport->serve(&introductions);
  village.power_on(away);
  QVERIFY(village.run_until([&] { return introductions.count > 0; }, 3 * MemberOptions{}.heartbeat));
  away.transport->serve(nullptr);
}

// Its record of before stays good until it knows where it is now, and then they hear that.
void TestIntroduction::who_is_back_is_found_before_its_next_heartbeat() {
  Village village;
  Host& a = village.add({});
  Host& b = village.add({&a});
  QVERIFY(village.run_until([&] { return a.member->find(b.id).has_value(); }, 2 * minute));
  MemberOptions again = Village::listening();
  again.sources = {{a.endpoint, a.id}};
  village.restart(b, again, 77);
  for (int i = 0; i < 40; ++i) {
    village.world.run_for(second / 2);
    QVERIFY2(a.member->find(b.id).has_value(), qPrintable(QString::number(i)));
  }
}

// Twenty computers behind one public address, each with a port of its own, and one elsewhere.
void TestIntroduction::a_household_behind_one_address_becomes_a_network() {
  Village village;
  village.place = [](std::uint8_t number) {
    const auto port = static_cast<std::uint16_t>(9000 + number);
    return platform::Endpoint{platform::IpAddress::v4(11, 7, 0, number == 1 ? 9 : 1), port};
  };
  Host& first = village.add({});
  std::vector<Host*> nodes{&first};
  for (int i = 0; i < 20; ++i) nodes.push_back(&village.add({&first}));
  // All know, and can call, all others, and others can dial them.
  QVERIFY(village.run_until(
      [&] {
        return std::all_of(nodes.begin(), nodes.end(), [&](const Host* node) {
          return node->member->view().reachable &&
                 std::all_of(nodes.begin(), nodes.end(), [&](const Host* other) {
                   return other == node || node->member->find(other->id).has_value();
                 });
        });
      },
      5 * minute));
}

void TestIntroduction::a_guest_introduces_nobody() {
  Village village;
  Host& a = village.add({});
  Host& guest = village.add({});
  village.world.run_for(second);
  const auto answer = peers(village, guest, a, encode_peers_request(max_records, nullptr));
  QVERIFY(answer.ok());
  QCOMPARE(decode_records(*answer).value().size(), std::size_t(1));  // who answers
  QCOMPARE(a.member->view().known, std::size_t(0));
}

void TestIntroduction::only_the_own_record_counts() {
  Village village;
  Host& a = village.add({});
  Host& b = village.add({&a});
  Host& liar = village.add({});
  village.meant_to_be_banned.insert(liar.id);
  QVERIFY(village.run_until([&] { return a.member->view().known == 1; }, 2 * minute));
  const WallTime now = village.world.clock().wall_now();
  const net::NodeRecord of_b = *a.member->book().find(b.id, now);
  // Another's, genuine; then one in its own name that is not what it signed.
  QVERIFY(!peers(village, liar, a, encode_peers_request(5, &of_b)).ok());
  QCOMPARE(a.conduct.faults(net::Fault::OthersRecord), std::uint64_t(1));
  net::NodeRecord altered = of_b;
  QVERIFY(net::sign_node_record(altered, *liar.key, network_id()).ok());
  altered.memory_bytes += 1;
  QVERIFY(!peers(village, liar, a, encode_peers_request(5, &altered)).ok());
  QCOMPARE(a.conduct.faults(net::Fault::BadSignature), std::uint64_t(1));
  QCOMPARE(a.member->view().known, std::size_t(1));
  QVERIFY(a.member->book().find(liar.id, now) == nullptr);
}

// Each record of the stranger has expired when the next one comes, so each is one of an unknown node.
void TestIntroduction::who_is_introduced_again_and_again_makes_nobody_flood_others() {
  Village village;
  Host& a = village.add({});
  Host& neighbour = village.add({&a});
  Host& stranger = village.add({});
  QVERIFY(village.run_until(
      [&] { return a.member->view().table == 1 && neighbour.member->view().table == 1; }, 3 * minute));
  village.world.run_for(minute);
  CallsFrom look_ups(*neighbour.member, a.id, net::Method::DhtFindNode);
  neighbour.transport->serve(&look_ups);
  net::PeerPool pool(*stranger.transport, stranger.executor, village.world.clock());
  int taken = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const net::NodeRecord record =
        record_of(*stranger.key, later_than_its_own + i, village.world.clock().wall_now(),
                  {{net::Reach::Direct, stranger.endpoint}}, std::chrono::milliseconds(450));
    pool.call({a.id, a.endpoint}, net::Method::Peers, encode_peers_request(5, &record), 10 * second,
              [&](const Expected<Bytes>& answer) { taken += answer.ok(); });
    village.world.run_for(second / 2);
  }
  neighbour.transport->serve(nullptr);
  QCOMPARE(taken, 60);
  QVERIFY2(look_ups.count >= 1 && look_ups.count <= 20, qPrintable(QString::number(look_ups.count)));
}

// Its own record names another address group each time.
void TestIntroduction::who_names_records_does_so_from_where_it_is() {
  Village village;
  Host& liar = village.add({});
  std::uint8_t answers = 0;
  std::uint16_t named = 0;
  const Front front(liar, [&](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
    if (method != net::Method::Peers) return respond(std::move(answer));
    const WallTime now = village.world.clock().wall_now();
    ++answers;
    std::vector<net::NodeRecord> records{
        record_of(*liar.key, later_than_its_own + answers, now, {elsewhere(answers)})};
    while (records.size() < max_records) records.push_back(record_of(key_numbered(++named), 1, now, {}));
    std::vector<const net::NodeRecord*> all;
    for (const net::NodeRecord& record : records) all.push_back(&record);
    respond(encode_records(all));
  });
  Host& a = village.add({&liar});
  a.member->pool().call({liar.id, liar.endpoint}, net::Method::Ping, {}, 5 * second,
                        [](const Expected<Bytes>&) {});
  QVERIFY(village.run_until([&] { return answers >= 8; }, 5 * minute));
  village.world.run_for(second);
  const std::size_t known = a.member->view().known, most = net::NodeBookLimits{}.per_informant;
  QVERIFY2(known > most / 2 && known <= most, qPrintable(QString::number(known)));
}

void TestIntroduction::a_place_that_only_a_record_names_is_not_for_the_next_start() {
  Village village;
  Host& liar = village.add({});
  const Front front(liar, [&](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
    if (method != net::Method::Peers) return respond(std::move(answer));
    const net::NodeRecord victim =
        record_of(*liar.key, later_than_its_own, village.world.clock().wall_now(), {elsewhere(1)});
    respond(encode_records({&victim}));
  });
  const Host& a = village.add({&liar});
  village.world.run_for(2 * minute);
  QVERIFY(a.member->view().sources[0].connected);
  QVERIFY(a.member->book().find(liar.id, village.world.clock().wall_now()) != nullptr);
  QVERIFY(a.member->good_peers().empty());
}

NS_TEST(TestIntroduction)
#include "test_introduction.moc"
