// Committees that are too large for everybody to call everybody: votes go to the leader, and a grid of voters
// relays the rest (core/chain/relay.h).
#include <QtTest>

#include "tests/sim/chain_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using test::ChainLab;
using test::lab_options;
using test::lab_round;

namespace {

constexpr std::size_t all = 25;
constexpr std::uint8_t relayed_kind = 14;

// A way out that sees the posts with relayed items, and decides which of them leave.
class RelayCaller final : public net::PeerCaller {
 public:
  using Leaves = std::function<bool(const net::Contact& to, chain::RelayPath path)>;
  RelayCaller(net::PeerCaller& out, Leaves leaves) : out_(out), leaves_(std::move(leaves)) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    const bool relayed = method == net::Method::ChainPost && request.size() > 1 && request[0] == relayed_kind;
    if (!relayed || leaves_(peer, static_cast<chain::RelayPath>(request[1])))
      out_.call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  net::PeerCaller& out_;
  const Leaves leaves_;
};

sim::ChainWorld::MakeCaller relays(
    std::function<bool(std::size_t node, const net::Contact&, chain::RelayPath)> leaves) {
  return [leaves](std::size_t node, net::PeerCaller& out, const crypto::KeyPair&) {
    return std::make_unique<RelayCaller>(out, [leaves, node](const net::Contact& to, chain::RelayPath path) {
      return leaves(node, to, path);
    });
  };
}

class TestChainLarge : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void everybody_counts_and_nobody_calls_everybody();
  void silent_relays_keep_nothing_back();
  void voters_that_die_are_gone_round();
};

void TestChainLarge::everybody_counts_and_nobody_calls_everybody() {
  std::map<std::pair<std::size_t, std::uint64_t>, std::set<net::NodeId>> called;  // by node and height
  const sim::ChainWorld* seen = nullptr;
  sim::ChainWorld world(lab_options(1, all), test::lab_model, {},
                        relays([&](std::size_t node, const net::Contact& to, chain::RelayPath path) {
                          const std::uint64_t height = seen->height(node);
                          if (path != chain::RelayPath::Nowhere) called[{node, height}].insert(to.id);
                          return true;
                        }));
  seen = &world;
  world.start_all();
  QVERIFY(world.run_to_round(4, 30 * lab_round));
  // Its row and its column; what it began at the height before may still be repeated.
  for (const auto& [node, others] : called) QVERIFY(others.size() <= 2 * 8);
  QCOMPARE(world.seen().conflicts, 0u);
  QCOMPARE(world.seen().twice, 0u);
  QCOMPARE(world.seen().rows_carried, 0u);
  QVERIFY2(world.seen().contributions >= 4 * all - 10,
           qPrintable(QString::number(world.seen().contributions)));
}

// A fifth of the voters take what they should pass on, and pass nothing on. In the control nobody does.
void TestChainLarge::silent_relays_keep_nothing_back() {
  const auto contributions = [](std::size_t silent) {
    sim::ChainWorld world(lab_options(2, all), test::lab_model, {},
                          relays([silent](std::size_t node, const net::Contact&, chain::RelayPath path) {
                            return node >= silent || path != chain::RelayPath::Nowhere;
                          }));
    world.start_all();
    const bool there = world.run_to_round(4, 30 * lab_round);
    qInfo("%zu silent: %llu rounds, %llu contributions", silent, (unsigned long long)world.seen().rounds,
          (unsigned long long)world.seen().contributions);
    return there && world.seen().conflicts == 0 ? world.seen().contributions : 0;
  };
  QVERIFY(contributions(5) >= 4 * all - 12);
  QVERIFY(contributions(all) < 2 * all);
}

void TestChainLarge::voters_that_die_are_gone_round() {
  ChainLab lab(lab_options(3, all));
  QVERIFY2(lab.world.run_to_round(2, 20 * lab_round), lab.text("before").c_str());
  for (std::size_t node = 0; node < 6; ++node) lab.world.kill(node);
  QVERIFY2(lab.world.run_to_round(5, 60 * lab_round), lab.text("after").c_str());
  QCOMPARE(lab.world.seen().conflicts, 0u);
  QVERIFY2(lab.world.chain(10).view().committee <= all - 6, lab.text("marked dormant").c_str());
}

}  // namespace

NS_TEST(TestChainLarge)
#include "test_chain_large.moc"
