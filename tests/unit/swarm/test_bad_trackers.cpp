// Trackers that are not trusted, on the simulated world: one that lies about who there is, one that is slow,
// one that answers nonsense. The network comes together beside them, and takes nothing from them that is not
// signed.
#include <QtTest>

#include "core/swarm/messages.h"
#include "tests/support/test_main.h"
#include "tests/support/village.h"

using namespace neuroshard;
using namespace neuroshard::swarm;
using namespace neuroshard::test;  // NOLINT

namespace {

const platform::IpAddress nowhere = platform::IpAddress::v4(11, 250, 0, 1);

bool all_know(const std::vector<Host*>& nodes, std::size_t others) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const Host* node) {
    const MemberView view = node->member->view();
    return view.reachable && view.table >= others;
  });
}

std::vector<Host*> people(Village& village, const std::vector<Host*>& sources) {
  std::vector<Host*> nodes;
  for (int i = 0; i < 6; ++i) nodes.push_back(&village.add(sources));
  return nodes;
}

}  // namespace

class TestBadTrackers : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_a_liar_says_is_not_believed();
  void a_liar_alone_keeps_nobody_from_the_others();
  void a_slow_one_is_waited_for();
  void one_that_never_answers_in_time_is_done_without();
  void one_that_answers_nonsense_is_done_without();
  void a_node_registers_after_its_heartbeat_not_beside_it();
  void a_full_one_still_names_peers();
};

// It sends everybody elsewhere: records with another address than their nodes have signed.
void TestBadTrackers::what_a_liar_says_is_not_believed() {
  Village village;
  Host& honest = village.add({}, true);
  Host& liar = village.add({}, true);
  std::size_t told = 0;
  Front front(liar, [&](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
    if (method != net::Method::TrackerPeers || !answer.ok()) return respond(std::move(answer));
    auto records = *decode_records(*answer);
    std::vector<const net::NodeRecord*> changed;
    for (net::NodeRecord& record : records) {
      for (net::NodeEndpoint& at : record.endpoints) at.endpoint.ip = nowhere;
      changed.push_back(&record);
    }
    told += changed.size();
    respond(encode_records(changed));
  });
  const std::vector<Host*> nodes = people(village, {&liar, &honest});
  QVERIFY(village.run_until([&] { return all_know(nodes, 5) && told > 0; }, 5 * minute));
  for (const Host* node : nodes)
    for (const Host* other : nodes)
      if (const auto at = node->member->find(other->id)) QVERIFY(at->endpoint == other->endpoint);
}

// It says that nobody else is there.
void TestBadTrackers::a_liar_alone_keeps_nobody_from_the_others() {
  Village village;
  Host& liar = village.add({}, true);
  Front front(liar, [&](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
    if (method != net::Method::TrackerPeers) return respond(std::move(answer));
    respond(encode_records({}));
  });
  Host& first = village.add({&liar});
  const std::vector<Host*> nodes = people(village, {&liar, &first});
  QVERIFY(village.run_until([&] { return all_know(nodes, 5); }, 5 * minute));
}

void TestBadTrackers::a_slow_one_is_waited_for() {
  Village village;
  Host& slow = village.add({}, true);
  std::deque<std::function<void()>> held;  // ends before the network that they answer over
  Front front(slow, [&](net::Method, Expected<Bytes> answer, const net::Respond& respond) {
    held.push_back([answer, respond] { respond(answer); });
    village.world.after(2 * second, [&held, at = held.size() - 1] { held[at](); });
  });
  const std::vector<Host*> nodes = people(village, {&slow});
  QVERIFY(village.run_until([&] { return all_know(nodes, 5); }, 10 * minute));
}

void TestBadTrackers::one_that_never_answers_in_time_is_done_without() {
  Village village;
  Host& slow = village.add({}, true);
  Host& honest = village.add({}, true);
  std::vector<net::Respond> waiting;
  Front front(slow, [&](net::Method, const Expected<Bytes>&, const net::Respond& respond) {
    waiting.push_back(respond);
  });
  const std::vector<Host*> nodes = people(village, {&slow, &honest});
  QVERIFY(village.run_until([&] { return all_know(nodes, 5); }, 5 * minute));
  // And is tried on, with a word on it.
  const auto state = [&] { return nodes[0]->member->view().sources[0].state; };
  QVERIFY2(village.run_until([&] { return state().find("tried again in") != std::string::npos; }, minute),
           state().c_str());
}

void TestBadTrackers::one_that_answers_nonsense_is_done_without() {
  Village village;
  Host& broken = village.add({}, true);
  Host& honest = village.add({}, true);
  village.meant_to_be_banned.insert(broken.id);
  Rng rng(1);
  Front front(broken, [&](net::Method, const Expected<Bytes>&, const net::Respond& respond) {
    Bytes noise(rng.next() % 3000);
    for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>(rng.next());
    respond(noise);
  });
  const std::vector<Host*> nodes = people(village, {&broken, &honest});
  QVERIFY(village.run_until([&] { return all_know(nodes, 5); }, 5 * minute));
  for (const Host* node : nodes) QVERIFY(!node->member->view().sources[0].state.empty());
}

// An error to one of two open calls would drop the connection that the other one goes on with.
void TestBadTrackers::a_node_registers_after_its_heartbeat_not_beside_it() {
  Village village;
  Host& slow = village.add({}, true);
  std::deque<std::function<void()>> held;
  int open = 0, registered = 0, beside = 0;
  Front front(slow, [&](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
    if (method == net::Method::TrackerRegister) {
      ++registered;
      if (open > 0) ++beside;
    }
    if (method != net::Method::TrackerHeartbeat) return respond(std::move(answer));
    ++open;
    held.push_back([&open, answer, respond] {
      --open;
      respond(answer);
    });
    village.world.after(2 * second, [&held, at = held.size() - 1] { held[at](); });
  });
  Host& node = village.add({&slow});
  for (std::uint16_t i = 0; i < 60; ++i) {
    Capacity capacity;
    capacity.slots = {{net::SlotKind::Layer, static_cast<std::uint16_t>(i % 2), 0}};
    node.member->set_capacity(std::move(capacity));
    village.world.run_for(10 * second);
  }
  QVERIFY2(registered > 30, qPrintable(QString::number(registered)));
  QCOMPARE(beside, 0);
}

void TestBadTrackers::a_full_one_still_names_peers() {
  Village village;
  Host& tracker = village.add({}, true);
  bool full = false;
  int refused = 0;
  Front front(tracker, [&](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
    if (method != net::Method::TrackerRegister || !full) return respond(std::move(answer));
    ++refused;
    respond(make_error(ErrorCode::Exhausted, "this tracker has reached its limit of nodes"));
  });
  village.add({&tracker});
  QVERIFY(village.run_until([&] { return tracker.member->statistics().reachable == 1; }, minute));
  full = true;
  const Host& late = village.add({&tracker});
  QVERIFY(village.run_until([&] { return late.member->view().table == 1; }, minute));
  const auto source = [&] { return late.member->view().sources[0]; };
  // It stays connected and asks for a place now and then.
  for (int i = 0; i < 20; ++i) {
    village.world.run_for(minute);
    QVERIFY2(source().connected, source().state.c_str());
  }
  QVERIFY2(source().state.find("limit of nodes") != std::string::npos, source().state.c_str());
  QVERIFY2(refused >= 3 && refused < 12, qPrintable(QString::number(refused)));
  full = false;
  QVERIFY(village.run_until([&] { return source().state == "registered"; }, 11 * minute));
}

NS_TEST(TestBadTrackers)
#include "test_bad_trackers.moc"
