// Plans: the hard limits, the exact optimum on small cases, the cost of churn and of false speeds.
#include <QtTest>
#include <set>

#include "core/plan/detail/recreate_ranges.h"
#include "core/plan/schedule.h"
#include "tests/support/test_main.h"
#include "tests/unit/plan/random_peers.h"

using namespace neuroshard;
using namespace neuroshard::plan;
using namespace neuroshard::plan::test;

namespace {

Hash256 beacon_of(std::uint8_t value) {
  Hash256 beacon{};
  beacon[0] = value;
  return beacon;
}

// Units of `bytes` gigabytes each; a boundary takes one byte per token.
Chain plain_chain(std::uint32_t size, std::uint64_t bytes = 1) {
  std::vector<Unit> units;
  for (std::uint32_t i = 0; i < size; ++i) units.push_back({"layer " + std::to_string(i), 1e9, 1'000'000});
  return Chain::of_units(units, std::vector<std::uint64_t>(size, bytes * gigabyte), 0, 1).value();
}

PlanPeer plain_peer(const std::string& id, std::uint64_t gb, double gigaflops = 1) {
  return {id, "owner of " + id, gb * gigabyte, gigaflops * 1e9, 1e9, 1e9};
}

PlanRequest request_of(const Chain& chain, std::vector<PlanPeer> peers) {
  PlanRequest request;
  request.chain = &chain;
  request.peers = std::move(peers);
  request.options.baseline_bytes = 0;
  return request;
}

std::vector<Holding> holdings_of(const Plan& plan) {
  std::vector<Holding> holdings;
  for (const PlacedPeer& peer : plan.peers) holdings.push_back({peer.id, peer.range, peer.dealt});
  return holdings;
}

// The throughput of the ranges of a plan with these speeds.
double throughput_with(const Chain& chain, const Plan& plan, std::vector<PlanPeer> peers) {
  std::sort(peers.begin(), peers.end(), [](const PlanPeer& a, const PlanPeer& b) { return a.id < b.id; });
  std::vector<Holder> holders;
  for (std::size_t i = 0; i < peers.size(); ++i)
    holders.push_back({plan.peers[i].range, peers[i].speed, std::min(peers[i].up, peers[i].down)});
  return best_schedule(chain, holders).throughput;
}

std::vector<std::set<std::string>> owners_of(const Chain& chain, const Plan& plan,
                                             const std::vector<PlanPeer>& peers) {
  std::map<std::string, std::string> owner;
  for (const PlanPeer& peer : peers) owner[peer.id] = peer.owner;
  std::vector<std::set<std::string>> owners(chain.size());
  for (const PlacedPeer& peer : plan.peers) {
    for (std::uint32_t unit = peer.range.first; unit < peer.range.end; ++unit)
      owners[unit].insert(owner[peer.id]);
  }
  return owners;
}

// Every range for every peer: the fewest missing owners, then the most throughput.
// A unit without any owner outweighs all that lack a second one.
std::uint32_t missing_of(std::size_t owners, std::size_t floor, std::uint32_t units) {
  if (owners == 0) return static_cast<std::uint32_t>(floor) * units;
  return static_cast<std::uint32_t>(floor - std::min(owners, floor));
}

struct Optimum {
  std::uint32_t missing = 1000;
  double throughput = 0;
};
void try_all(const Chain& chain, const std::vector<PlanPeer>& peers, std::vector<Holder>& holders,
             Optimum& best) {
  if (holders.size() == peers.size()) {
    std::set<std::string> all;
    for (const PlanPeer& peer : peers) all.insert(peer.owner);
    const std::size_t floor = std::min<std::size_t>(2, all.size());
    std::uint32_t missing = 0;
    for (std::uint32_t unit = 0; unit < chain.size(); ++unit) {
      std::set<std::string> owners;
      for (std::size_t i = 0; i < peers.size(); ++i) {
        if (holders[i].range.holds(unit)) owners.insert(peers[i].owner);
      }
      missing += missing_of(owners.size(), floor, chain.size());
    }
    if (missing > best.missing) return;
    const double throughput = best_schedule(chain, holders).throughput;
    if (missing < best.missing || throughput > best.throughput) best = {missing, throughput};
    return;
  }
  const PlanPeer& peer = peers[holders.size()];
  holders.push_back({{}, peer.speed, std::min(peer.up, peer.down)});
  try_all(chain, peers, holders, best);
  for (std::uint32_t first = 0; first < chain.size(); ++first) {
    for (std::uint32_t end = first + 1; end <= chain.size(); ++end) {
      if (chain.memory({first, end}) > counted_bytes(peer.memory)) continue;
      holders.back().range = {first, end};
      try_all(chain, peers, holders, best);
    }
  }
  holders.pop_back();
}

}  // namespace

class TestPlanner : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void small_plans_are_the_best_of_all() {
    double worst = 1, loosest = 1;
    int optimal = 0, cases = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      Rng rng(seed);
      const Chain chain = plain_chain(3 + static_cast<std::uint32_t>(rng.below(2)));
      std::vector<PlanPeer> peers;
      const std::size_t count = 2 + rng.below(3);
      for (std::size_t i = 0; i < count; ++i) {
        peers.push_back(
            plain_peer("node" + std::to_string(i), 1 + rng.below(chain.size()), 1 + 9 * rng.uniform()));
        peers.back().up = peers.back().down = 0.2 + 6 * rng.uniform();
      }
      if (rng.below(3) == 0) peers[0].owner = peers[1].owner;
      Optimum best;
      std::vector<Holder> holders;
      try_all(chain, peers, holders, best);
      PlanRequest request = request_of(chain, peers);
      request.options.dealing_loss = 0;
      const auto plan = make_plan(request);
      const QByteArray where = QByteArray("seed ") + QByteArray::number(static_cast<qulonglong>(seed));
      if (!plan.ok()) {
        QVERIFY2(best.throughput == 0, where.constData());
        continue;
      }
      std::uint32_t missing = 0;
      std::set<std::string> all;
      for (const PlanPeer& peer : peers) all.insert(peer.owner);
      for (const auto& owners : owners_of(chain, *plan, peers))
        missing += missing_of(owners.size(), std::min<std::size_t>(2, all.size()), chain.size());
      QVERIFY2(missing == best.missing, where.constData());
      QVERIFY2(plan->bound.throughput >= best.throughput * (1 - 1e-6), where.constData());
      if (best.throughput == 0) continue;
      worst = std::min(worst, plan->throughput / best.throughput);
      loosest = std::min(loosest, best.throughput / plan->bound.throughput);
      ++cases;
      if (plan->throughput >= 0.999 * best.throughput) ++optimal;
    }
    qInfo(
        "%d of %d plans are optimal, the worst has %.4f of the optimum; the bound is at most %.2f times the "
        "optimum",
        optimal, cases, worst, 1 / loosest);
    QVERIFY2(worst >= 0.9, qPrintable(QString::number(worst)));
    QVERIFY(optimal * 10 >= cases * 9);
  }

  void memory_is_a_hard_limit_and_owners_are_distinct() {
    const GrowthRules rules = mainnet_rules();
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Rng rng(seed);
      PeerKind kind;
      kind.peers_per_owner = 3;
      const std::vector<PlanPeer> peers = random_peers(rng, 40, kind);
      const Chain chain = chain_of(rules, shape_for(rules, peers));
      PlanRequest request;
      request.chain = &chain;
      request.peers = peers;
      const auto plan = make_plan(request);
      QVERIFY(plan.ok());
      for (std::size_t i = 0; i < peers.size(); ++i) {
        const PlacedPeer& placed = plan->peers[i];
        QCOMPARE(placed.id, peers[i].id);
        if (placed.range.empty()) continue;
        QVERIFY(chain.memory(placed.range) + request.options.baseline_bytes <=
                counted_bytes(peers[i].memory));
      }
      for (const auto& owners : owners_of(chain, *plan, peers)) QVERIFY(owners.size() >= 2);
      QVERIFY(plan->least_owners >= 2);
      QVERIFY(plan->short_ranges.empty());
      QVERIFY(plan->throughput > 0 && plan->throughput <= plan->bound.throughput);
      QVERIFY(std::abs(throughput_with(chain, *plan, peers) / plan->throughput - 1) < 1e-6);
    }
  }

  void every_node_computes_the_same_plan() {
    Rng rng(3);
    const GrowthRules rules = mainnet_rules();
    std::vector<PlanPeer> peers = random_peers(rng, 30);
    const Chain chain = chain_of(rules, shape_for(rules, peers));
    PlanRequest request;
    request.chain = &chain;
    request.peers = peers;
    const Plan first = make_plan(request).value();
    std::reverse(request.peers.begin(), request.peers.end());
    const Plan second = make_plan(request).value();
    QCOMPARE(first.throughput, second.throughput);
    for (std::size_t i = 0; i < peers.size(); ++i) {
      QVERIFY(first.peers[i].range == second.peers[i].range);
      QCOMPARE(first.peers[i].dealt, second.peers[i].dealt);
    }
  }

  void each_unit_has_a_dealt_holder_and_the_beacon_decides() {
    Rng rng(5);
    const GrowthRules rules = mainnet_rules();
    const std::vector<PlanPeer> peers = random_peers(rng, 40);
    const Chain chain = chain_of(rules, shape_for(rules, peers));
    PlanRequest request;
    request.chain = &chain;
    request.peers = peers;
    std::vector<std::set<std::string>> dealt_sets;
    double undealt = 0;
    for (std::uint8_t value = 0; value < 3; ++value) {
      request.beacon = beacon_of(value);
      const Plan plan = make_plan(request).value();
      std::set<std::string> dealt;
      std::uint32_t stages = 0;
      for (std::uint32_t unit = 0; unit < chain.size(); ++unit) {
        bool found = false;
        for (const PlacedPeer& peer : plan.peers) found = found || (peer.dealt && peer.range.holds(unit));
        stages += found ? 1 : 0;
      }
      QCOMPARE(stages, chain.size());
      for (const PlacedPeer& peer : plan.peers) {
        if (peer.dealt) dealt.insert(peer.id);
      }
      QVERIFY(plan.least_owners >= 2);
      undealt = std::max(undealt, plan.throughput);
      QVERIFY(plan.throughput >= 0.989 * undealt);
      dealt_sets.push_back(dealt);
    }
    QVERIFY(dealt_sets[0] != dealt_sets[1] && dealt_sets[1] != dealt_sets[2]);
  }

  void one_copy_is_planned_and_said_to_be_unreplicated() {
    const Chain chain = plain_chain(4);
    const Plan plan = make_plan(request_of(chain, {plain_peer("a", 2), plain_peer("b", 3)})).value();
    QCOMPARE(plan.least_owners, 1u);
    QVERIFY(!plan.short_ranges.empty());
    QVERIFY(plan.throughput > 0);
  }

  // Two nodes hold all units, the last one alone with one of them, although both together hold more of the others.
  void every_unit_has_a_holder_before_any_has_two() {
    std::vector<Unit> units(4, {"unit", 1, 1});
    const std::uint64_t gb = plan::test::gigabyte;
    const Chain chain = Chain::of_units(units, {gb, gb, gb, 2 * gb}, 0, 1).value();
    for (const std::size_t more : {std::size_t{0}, std::size_t{20}}) {  // all plans are tried, and a search
      std::vector<PlanPeer> peers{plain_peer("a", 3), plain_peer("b", 3)};
      for (std::size_t i = 0; i < more; ++i) peers.push_back(plain_peer("small" + std::to_string(i), 0));
      const auto plan = make_plan(request_of(chain, peers));
      QVERIFY2(plan.ok(), plan.ok() ? "" : plan.error().message.c_str());
      QVERIFY(plan->throughput > 0);
      QCOMPARE(plan->least_owners, 1u);
    }
  }

  // As many owners as nodes, and nobody is left out.
  void many_replicas_leave_nobody_out() {
    std::vector<PlanPeer> peers;
    for (int i = 0; i < 20; ++i) peers.push_back(plain_peer("node" + std::to_string(i), 4));
    const Chain chain = plain_chain(4);
    PlanRequest request = request_of(chain, peers);
    request.options.replicas = 16;
    const Plan plan = make_plan(request).value();
    QVERIFY(plan.least_owners >= 16);
    for (const PlacedPeer& peer : plan.peers) QVERIFY(peer.reason != Reason::TooSmall);
    // The first choice, too, in which a search would have to find them a place.
    plan::detail::Problem problem{chain};
    problem.count = problem.owners = 20;
    problem.floor = 2;
    problem.replicas = 16;
    problem.speed.assign(20, 1e9);
    problem.line.assign(20, 1e9);
    problem.memory.assign(20, 4 * plan::test::gigabyte);
    for (std::uint32_t owner = 0; owner < 20; ++owner) problem.owner.push_back(owner);
    const plan::detail::RangeState first = plan::detail::place_ranges(problem, 5);
    for (std::uint32_t peer = 0; peer < 20; ++peer) QVERIFY(!first.range(peer).empty());
  }

  void a_refused_plan_says_where_and_how_much() {
    const Chain large = plain_chain(4, 8);
    const auto one = make_plan(request_of(large, {plain_peer("a", 6), plain_peer("b", 5)}));
    QVERIFY(!one.ok());
    QCOMPARE(one.error().code, ErrorCode::Exhausted);
    QVERIFY2(one.error().message.find("layer 0 needs 8000000000 bytes on one node") != std::string::npos,
             one.error().message.c_str());
    QVERIFY(one.error().message.find("2000000000 bytes are missing") != std::string::npos);
    const Chain chain = plain_chain(4);
    const auto gap = make_plan(request_of(chain, {plain_peer("a", 2), plain_peer("b", 1)}));
    QVERIFY(!gap.ok());
    QVERIFY2(gap.error().message.find("1000000000 bytes of free memory is missing") != std::string::npos,
             gap.error().message.c_str());
    QVERIFY(!make_plan(request_of(chain, {})).ok());
  }

  void bad_peers_are_named() {
    const Chain chain = plain_chain(2);
    PlanPeer slow = plain_peer("slow", 4);
    slow.speed = 0;
    const auto bad = make_plan(request_of(chain, {plain_peer("a", 4), slow}));
    QVERIFY(!bad.ok() && bad.error().message.find("peer 'slow': speed is 0") != std::string::npos);
    const auto twice = make_plan(request_of(chain, {plain_peer("a", 4), plain_peer("a", 4)}));
    QVERIFY(!twice.ok() && twice.error().message.find("two peers have the id 'a'") != std::string::npos);
  }

  void a_present_plan_stays() {
    Rng rng(7);
    const GrowthRules rules = mainnet_rules();
    const std::vector<PlanPeer> peers = random_peers(rng, 40);
    const Chain chain = chain_of(rules, shape_for(rules, peers));
    PlanRequest request;
    request.chain = &chain;
    request.peers = peers;
    const Plan first = make_plan(request).value();
    request.present = holdings_of(first);
    request.beacon = beacon_of(9);
    const Plan second = make_plan(request).value();
    QCOMPARE(second.moved_bytes + second.joined_bytes, std::uint64_t{0});
    for (std::size_t i = 0; i < peers.size(); ++i) {
      QVERIFY(first.peers[i].range == second.peers[i].range);
      if (!second.peers[i].range.empty()) QCOMPARE(second.peers[i].reason, Reason::Kept);
    }
  }

  void churn_moves_little() {
    const GrowthRules rules = mainnet_rules();
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Rng rng(seed);
      std::vector<PlanPeer> peers = random_peers(rng, 60);
      const Chain chain = chain_of(rules, shape_for(rules, peers));
      PlanRequest request;
      request.chain = &chain;
      request.peers = peers;
      const Plan first = make_plan(request).value();
      // A tenth leaves and others come.
      const std::vector<PlanPeer> others = random_peers(rng, 6);
      for (std::size_t i = 0; i < 6; ++i) {
        PlanPeer& peer = peers[rng.below(54)];
        peer = others[i];
        peer.id = "new" + std::to_string(i);
        peer.owner = "new owner" + std::to_string(i);
      }
      request.peers = peers;
      const Plan fresh = make_plan(request).value();
      request.present = holdings_of(first);
      const Plan next = make_plan(request).value();
      std::uint64_t held = 0;
      for (const PlacedPeer& peer : first.peers) {
        if (!peer.range.empty()) held += chain.transfer(peer.range);
      }
      qInfo(
          "seed %llu: moved %.2f %% of the held bytes, newcomers fetch %.2f %%, throughput %.3f of a fresh "
          "plan's",
          static_cast<unsigned long long>(seed),
          100.0 * static_cast<double>(next.moved_bytes) / static_cast<double>(held),
          100.0 * static_cast<double>(next.joined_bytes) / static_cast<double>(held),
          next.throughput / fresh.throughput);
      QVERIFY(next.least_owners >= 2);
      QVERIFY(next.throughput >= fresh.throughput / 1.06);
      // At least the newcomers' ranges have to be fetched; holders that stay add little to that.
      QVERIFY(next.moved_bytes * 100 <= 25 * held);
    }
  }

  void units_get_the_replicas_that_memory_allows() {
    const GrowthRules rules = mainnet_rules();
    for (const std::uint64_t count : {60, 100}) {
      Rng rng(count);
      const std::vector<PlanPeer> peers = random_peers(rng, count);
      PlanOptions five;
      five.replicas = 5;
      const auto make = [&](const compute::ModelShape& shape) {
        return Chain::of_shape(rules, shape, shape.hidden);
      };
      const Chain chain = chain_of(rules, placeable_shape(rules, peers, five, make).shape);
      PlanRequest request;
      request.chain = &chain;
      request.peers = peers;
      const Plan two = make_plan(request).value();
      request.options.replicas = 5;
      const Plan plan = make_plan(request).value();
      const auto fewest = [&](const Plan& of) {
        std::size_t least = peers.size();
        for (const auto& owners : owners_of(chain, of, peers)) least = std::min(least, owners.size());
        return least;
      };
      qInfo("%zu nodes: at least %zu owners instead of %zu, at %.3f of the throughput", count, fewest(plan),
            fewest(two), plan.throughput / two.throughput);
      QVERIFY(fewest(plan) >= 5);
      QVERIFY(fewest(two) < fewest(plan));
      QVERIFY(plan.throughput >= 0.9 * two.throughput);
    }
  }

  // A unit without a second owner comes before all others' third.
  void two_owners_come_before_more() {
    const Chain chain = plain_chain(4);
    std::vector<PlanPeer> peers;
    for (int i = 0; i < 4; ++i) peers.push_back(plain_peer("node" + std::to_string(i), 2));
    PlanRequest request = request_of(chain, peers);
    request.options.replicas = 4;
    QCOMPARE(make_plan(request).value().least_owners, 2u);
  }

  void a_byte_budget_holds() {
    Rng rng(11);
    const GrowthRules rules = mainnet_rules();
    std::vector<PlanPeer> peers = random_peers(rng, 40);
    const Chain chain = chain_of(rules, shape_for(rules, peers));
    PlanRequest request;
    request.chain = &chain;
    request.peers = peers;
    request.present = holdings_of(make_plan(request).value());
    // Speeds change places, so that the present plan is a poor one.
    for (std::size_t i = 0; i < peers.size(); ++i) request.peers[i].speed = peers[peers.size() - 1 - i].speed;
    const double kept = throughput_with(chain,
                                        make_plan([&] {
                                          PlanRequest stay = request;
                                          stay.options.hysteresis = 1e9;
                                          return stay;
                                        }())
                                            .value(),
                                        request.peers);
    const Plan free = make_plan(request).value();
    request.options.migration_bytes = chain.transfer(chain.whole()) / 2;
    const Plan limited = make_plan(request).value();
    qInfo("tokens/s: kept %.1f, with half a copy moved %.1f, free %.1f", kept, limited.throughput,
          free.throughput);
    QVERIFY(limited.moved_bytes <= request.options.migration_bytes);
    QVERIFY(limited.throughput >= kept * (1 - 1e-6));
    QVERIFY(free.throughput >= limited.throughput / 1.06);
  }

  void measured_speeds_undo_false_ones() {
    const GrowthRules rules = mainnet_rules();
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Rng rng(seed);
      const std::vector<PlanPeer> honest = random_peers(rng, 50);
      const Chain chain = chain_of(rules, shape_for(rules, honest));
      std::vector<PlanPeer> declared = honest, counted = honest;
      for (std::size_t i = 0; i < honest.size(); ++i) {
        if (i % 5 == 0) declared[i].speed *= 10;
        // Counterparties measure within 5 %; one of five is a friend who confirms the false speed.
        std::vector<double> measured;
        for (int m = 0; m < 4; ++m) measured.push_back(honest[i].speed * (0.95 + 0.1 * rng.uniform()));
        measured.push_back(declared[i].speed);
        counted[i].speed = counted_speed(declared[i].speed, measured);
      }
      PlanRequest request;
      request.chain = &chain;
      request.peers = honest;
      const double truth = make_plan(request).value().throughput;
      request.peers = declared;
      const double deceived = throughput_with(chain, make_plan(request).value(), honest);
      request.peers = counted;
      const double measured = throughput_with(chain, make_plan(request).value(), honest);
      qInfo("seed %llu: declared %.3f, measured %.3f of the honest plan's throughput",
            static_cast<unsigned long long>(seed), deceived / truth, measured / truth);
      QVERIFY(measured >= 0.95 * truth);
    }
  }

  void counted_speed_is_the_lower_of_declared_and_median() {
    QCOMPARE(counted_speed(5, {}), 5.0);
    QCOMPARE(counted_speed(5, {1, 9, 3}), 3.0);
    QCOMPARE(counted_speed(5, {1, 3, 9, 10}), 3.0);
    QCOMPARE(counted_speed(2, {4, 4, 4}), 2.0);
  }
};

NS_TEST(TestPlanner)
#include "test_planner.moc"
