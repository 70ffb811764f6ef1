// Twenty computers of one home or campus begin a network together and train, beside twenty of twenty address groups. At
// each node calls pass the checks before the chain: places for calls, limits of methods and ranks. Dials
// pass the node's book of records and its dial gate. Sockets and TLS are not in this world.
#include <QtTest>

#include "core/chain/server.h"
#include "core/net/address_group.h"
#include "core/net/dial_gate.h"
#include "core/net/node_book.h"
#include "core/net/slot_pool.h"
#include "core/rpc/grpc_transport.h"
#include "core/runtime/chain_limits.h"
#include "core/sim/identities.h"
#include "tests/sim/chain_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using test::lab_round;
using test::lab_second;

namespace {

constexpr std::size_t machines = 20;
constexpr std::uint64_t rounds_made = 6;
constexpr Duration idle = std::chrono::seconds(60);  // then a call dials again

using AddressOf = platform::IpAddress (*)(std::size_t node);

struct Refused {
  std::uint64_t calls = 0, places = 0, dials = 0, records = 0;
  std::uint64_t passed = 0;  // calls that were not
};

// The answering side of one node.
struct Door {
  Door(sim::ChainWorld& all, std::size_t number, double group_factor)
      : world(all),
        node(number),
        table(all.world().clock(), nullptr, &ranks),
        places(rpc::RpcLimits().calls) {
    const auto limits = [number](const net::RequestLimits& of, std::size_t bytes) {
      return net::MethodLimits(std::make_shared<net::RequestLimiter>(of, false, number), bytes);
    };
    const auto to_chain = [this](const net::Caller& from, net::Method method, ByteSpan request,
                                 const net::Reply& reply) {
      world.chain(node).on_call(from, method, request, reply);
    };
    net::MethodLimits posts = limits(runtime::post_limits, net::max_message_bytes);
    net::RequestLimits of_stranger = runtime::post_limits_of_stranger;
    of_stranger.group_factor = group_factor;
    posts.of_strangers = std::make_shared<net::RequestLimiter>(of_stranger, false, number);
    methods.push_back(table.add({net::Method::ChainPost}, posts, to_chain));
    methods.push_back(
        table.add({net::Method::ChainStatus, net::Method::ChainBlocks, net::Method::ChainRegistry},
                  limits(runtime::chain_request_limits, runtime::chain_request_bytes), to_chain));
    methods.push_back(
        table.add({net::Method::RoundPiece}, limits(runtime::piece_limits, runtime::piece_request_bytes),
                  [this](const net::Caller& from, net::Method, ByteSpan request, const net::Reply& reply) {
                    world.training(node).on_call(from, request, reply);
                  }));
  }
  // As the rounds do with each block.
  void rank_members() {
    const chain::History* history = world.chain(node).history();
    if (history == nullptr || history->tip().height() == ranked) return;
    ranked = history->tip().height();
    const chain::Registry& registry = *history->tip().registry;
    net::PeerRanks::Members members;
    for (const std::uint32_t index : registry.active()) {
      const chain::MemberRecord& member = registry.members()[index];
      members[member.id] = registry.is_voter(member) ? net::PeerRank::Voter : net::PeerRank::Known;
    }
    ranks.set_members(std::move(members));
  }
  void on_call(const net::Caller& from, net::Method method, ByteSpan request, const net::Respond& respond,
               Refused* refused) {
    rank_members();
    const bool control = method == net::Method::ChainPost || method == net::Method::ChainStatus;
    const net::SlotUser user{from.id, net::limit_group(from.endpoint.ip), ranks.of(from.id), control};
    if (!places.take(user)) {
      ++refused->places;
      return respond(make_error(ErrorCode::Exhausted, "no place"));
    }
    table.on_call(from, method, Bytes(request.begin(), request.end()),
                  [this, user, respond, refused](Expected<Bytes> answer) {
                    places.give_back(user);
                    const bool is_refused = !answer.ok() && answer.error().code == ErrorCode::Exhausted;
                    ++(is_refused ? refused->calls : refused->passed);
                    respond(std::move(answer));
                  });
  }

  sim::ChainWorld& world;
  const std::size_t node;
  net::PeerRanks ranks;
  net::MethodTable table;
  net::SlotPool places;
  std::vector<net::MethodTable::Registration> methods;
  std::optional<std::uint64_t> ranked;
};

// The dialling side of one node: it calls whom it has a record of, and the gate counts what it dials.
class Dialler final : public net::PeerCaller {
 public:
  Dialler(const Clock& clock, net::PeerCaller& out, std::size_t self, std::uint64_t seed,
          AddressOf address_of, Refused& refused)
      : clock_(clock), out_(out), book_(Hash256{}), gate_({}, clock, self), refused_(refused) {
    for (std::size_t node = 0; node < machines; ++node) {
      if (node == self) continue;
      net::NodeRecord record;
      record.made = clock.wall_now();
      record.expires = record.made + std::chrono::hours(1);
      record.sequence = 1;
      at_[node] = {address_of(node), static_cast<std::uint16_t>(9000 + node)};
      record.endpoints = {{net::Reach::Direct, at_[node]}};
      record.program = "test";
      const crypto::KeyPair key = key_of_node(seed, node);
      if (!net::sign_node_record(record, key, Hash256{}).ok()) qFatal("not signed");
      numbers_[crypto::node_id(key.public_key())] = node;
      // The next one names it, as after a first look for peers.
      const std::size_t informant = (node + 1) % machines;
      const crypto::KeyPair other = key_of_node(seed, informant);
      if (!book_
               .put(record, clock.wall_now(),
                    net::Caller{crypto::node_id(other.public_key()), {address_of(informant), 9000}})
               .ok())
        ++refused_.records;
    }
  }
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    const MonotonicTime now = clock_.monotonic_now();
    const auto number = numbers_.find(peer.id);
    if (number == numbers_.end() || book_.find(peer.id, clock_.wall_now()) == nullptr)
      return done(make_error(ErrorCode::Unavailable, "no record"));
    const platform::Endpoint at = at_[number->second];
    auto& used = used_[peer.id];
    const bool dials = !used || now - *used > idle;
    if (dials && !gate_.admit(at).ok()) {
      ++refused_.dials;
      return done(make_error(ErrorCode::Exhausted, "not dialled"));
    }
    used = now;
    out_.call(peer, method, std::move(request), deadline,
              [this, dials, at, id = peer.id, done = std::move(done)](Expected<Bytes> answer) {
                if (dials && answer.ok()) {
                  gate_.answered(at);
                  book_.reached(id, at, clock_.wall_now());
                }
                done(std::move(answer));
              });
  }

 private:
  const Clock& clock_;
  net::PeerCaller& out_;
  net::NodeBook book_;
  net::DialGate gate_;
  Refused& refused_;
  std::array<platform::Endpoint, machines> at_;
  std::map<net::NodeId, std::size_t> numbers_;
  std::map<net::NodeId, std::optional<MonotonicTime>> used_;
};

struct Outcome {
  double begun = 0, trained = 0;  // seconds until all have a genesis, and for the rounds after it
  std::size_t founders = 0, fewest = machines;  // contributors of a round
  Refused refused;

  std::string text() const {
    return fmt::format(
        "a genesis of {} after {:.1f} s, {} rounds in {:.1f} s, at least {} contributed; {} calls passed, "
        "refused: {} "
        "calls, {} places, {} dials, {} records",
        founders, begun, rounds_made, trained, fewest, refused.passed, refused.calls, refused.places,
        refused.dials, refused.records);
  }
};

Outcome train(AddressOf address_of, double group_factor = runtime::post_limits_of_stranger.group_factor) {
  constexpr std::uint64_t seed = 1;
  Outcome outcome;
  auto options = test::lab_options(seed, machines);
  options.open_start = true;
  options.contacts = machines;
  sim::World* clock = nullptr;
  sim::ChainWorld world(
      options, test::lab_model, {}, [&](std::size_t node, net::PeerCaller& out, const crypto::KeyPair&) {
        return std::make_unique<Dialler>(clock->clock(), out, node, seed, address_of, outcome.refused);
      });
  clock = &world.world();
  std::vector<std::unique_ptr<Door>> doors;
  for (std::size_t node = 0; node < machines; ++node) {
    doors.push_back(std::make_unique<Door>(world, node, group_factor));
    world.set_answers(node, [&world, &outcome, address_of, seed, door = doors.back().get()](
                                const net::Caller& from, net::Method method, ByteSpan request,
                                const net::Respond& respond) {
      std::size_t number = 0;
      while (world.id(number) != from.id) ++number;
      const net::Caller caller{from.id, {address_of(number), 9000}};
      door->on_call(caller, method, request, respond, &outcome.refused);
      return true;
    });
    world.set_honest(node, true);
  }
  world.start_all();
  const auto all_begun = [&] {
    for (std::size_t node = 0; node < machines; ++node)
      if (world.chain(node).history() == nullptr) return false;
    return true;
  };
  const MonotonicTime start = world.world().now();
  if (!world.run_until(all_begun, 600 * lab_second)) return outcome;
  outcome.begun = to_seconds(world.world().now() - start);
  outcome.founders = world.chain(0).view().voters;
  const MonotonicTime begun = world.world().now();
  if (!world.run_to_round(rounds_made, 600 * lab_second)) return outcome;
  outcome.trained = to_seconds(world.world().now() - begun);
  for (std::uint64_t round = 1; round <= rounds_made; ++round)
    outcome.fewest = std::min(outcome.fewest, world.seen().contributors.at(round));
  return outcome;
}

platform::IpAddress of_own_group(std::size_t node) {
  return platform::IpAddress::v4(40, 1, static_cast<std::uint8_t>(node + 1), 7);
}
platform::IpAddress of_one_prefix(std::size_t node) {
  return platform::IpAddress::v4(40, 1, 1, static_cast<std::uint8_t>(node + 1));
}
platform::IpAddress behind_one_address(std::size_t) {
  return platform::IpAddress::v4(40, 1, 1, 1);
}

}  // namespace

class TestOnePrefix : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void twenty_machines_train_undisturbed_data();
  void twenty_machines_train_undisturbed();
  void a_tighter_limit_would_show();

 private:
  std::optional<Outcome> apart_;
};

void TestOnePrefix::twenty_machines_train_undisturbed_data() {
  QTest::addColumn<bool>("one_address");
  QTest::newRow("one prefix") << false;
  QTest::newRow("one address") << true;
}

void TestOnePrefix::twenty_machines_train_undisturbed() {
  QFETCH(bool, one_address);
  if (!apart_) apart_ = train(of_own_group);
  const Outcome near = train(one_address ? behind_one_address : of_one_prefix);
  for (const Outcome* one : {static_cast<const Outcome*>(&*apart_), &near}) qInfo("%s", one->text().c_str());
  QVERIFY(apart_->trained > 0 && near.trained > 0);
  qInfo("ratio of the pace %.3f", apart_->trained / near.trained);
  QVERIFY(near.refused.passed > 1000);
  QCOMPARE(near.founders, machines);
  QCOMPARE(near.fewest, machines);
  QVERIFY(near.trained <= 1.05 * apart_->trained);
  QCOMPARE(near.refused.dials + near.refused.records + near.refused.places, std::uint64_t{0});
}

// The calls of the twenty do pass the limit of their group.
void TestOnePrefix::a_tighter_limit_would_show() {
  const Outcome tight = train(of_one_prefix, 0.1);
  qInfo("%s", tight.text().c_str());
  QVERIFY(tight.refused.calls > 100);
}

NS_TEST(TestOnePrefix)
#include "test_one_prefix.moc"
