// What Byzantine members below a third can do to a round by what they leave out, hold back or copy. Each case
// has a control without the rule that prevents it. NS_LONG=1 takes more seeds.
#include <QtTest>

#include "core/chain/rights.h"
#include "core/sim/identities.h"
#include "tests/sim/chain_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using test::ChainLab;
using test::contribution_in;
using test::Fate;
using test::lab_options;
using test::lab_round;
using test::lab_second;
using test::post_of;
using test::PostKind;

namespace {

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 5 * in_ci : in_ci;
}

// Short rounds: many of them in little time.
ChainWorldOptions brisk_options(std::uint64_t seed, std::size_t nodes) {
  ChainWorldOptions options = lab_options(seed, nodes);
  options.trainer.step_time = lab_second / test::lab_inner_steps;
  options.training.clock.first_deadline = 3 * lab_second;
  return options;
}

// Liars that neither take nor list a victim's contribution, and leave it out where they lead.
void leave_out(ChainLab& lab, std::size_t victim, std::size_t first_liar) {
  const net::NodeId id = lab.world.id(victim);
  for (std::size_t liar = first_liar; liar < lab.world.size(); ++liar) {
    lab.world.set_answers(
        liar, [id](const net::Caller& from, net::Method method, ByteSpan request, const net::Respond&) {
          return method == net::Method::ChainPost && from.id == id && !request.empty() &&
                 request[0] == rounds::contribution_kind;
        });
    lab.world.set_sections(liar, [id](const chain::ChainTip& tip, chain::Sections* sections) {
      if (!sections->close) return;
      const std::uint32_t number = tip.registry->find(id)->number;
      std::erase_if(sections->close->contributions,
                    [&](const auto& entry) { return entry.member == number; });
    });
  }
}

struct Counted {
  std::uint64_t rounds = 0, counted = 0, left_out = 0;
};

class TestChainHostile : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void omission_by_leaders_data();
  void omission_by_leaders();
  void grinding_gains_one_bit();
  void withheld_payloads_data();
  void withheld_payloads();
  void late_contributions_data();
  void late_contributions();
  void copied_payloads_never_count();
  void a_vector_that_no_block_can_have_holds_nothing_up();
  void one_of_three_cannot_blow_up_the_model_data();
  void one_of_three_cannot_blow_up_the_model();
  void attestations_are_refused_where_nobody_needs_them();
};

void TestChainHostile::omission_by_leaders_data() {
  QTest::addColumn<int>("nodes");
  QTest::addColumn<int>("liars");
  QTest::newRow("2 of 9") << 9 << 2;
  QTest::newRow("5 of 16") << 16 << 5;
}

void TestChainHostile::omission_by_leaders() {
  QFETCH(int, nodes);
  QFETCH(int, liars);
  const auto all = static_cast<std::size_t>(nodes), honest = all - static_cast<std::size_t>(liars);
  const auto run = [&](std::uint64_t seed, bool binds, std::uint64_t rounds) {
    auto options = brisk_options(seed, all);
    options.omissions_bind = binds;
    ChainLab lab(options);
    leave_out(lab, 0, honest);
    const bool there = lab.world.run_to_round(rounds, (rounds + 5) * 20 * lab_second);
    const rounds::TrainingView view = lab.world.training(0).view();
    qInfo("%s", lab.text(binds ? "omissions bind" : "omissions don't bind").substr(0, 120).c_str());
    return Counted{there && lab.world.seen().conflicts == 0 ? rounds : 0, view.counted, view.left_out};
  };
  for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
    const Counted with = run(seed, true, 100);
    qInfo("the victim counted %llu times, left out %llu times", (unsigned long long)with.counted,
          (unsigned long long)with.left_out);
    QCOMPARE(with.rounds, 100u);
    QVERIFY2(with.counted >= 98, qPrintable(QString::number(with.counted)));
    const Counted without = run(seed, false, 40);
    qInfo("without the rule it counted %llu times, left out %llu times", (unsigned long long)without.counted,
          (unsigned long long)without.left_out);
    QCOMPARE(without.rounds, 40u);
    QVERIFY2(without.left_out >= 3, qPrintable(QString::number(without.left_out)));
  }
}

// All beacons that a leader could make of the vectors that it has: any quorum of them, and any contribution in
// the section that is not due. without_rule: due ones may be missing, too.
std::size_t possible_beacons(const chain::ChainTip& tip, const chain::CloseSection& full, bool without_rule) {
  std::set<Hash256> beacons;
  const std::size_t count = full.vectors.size();
  for (std::uint32_t pick = 1; pick < (1u << count); ++pick) {
    chain::CloseSection part = full;
    part.vectors.clear();
    std::uint64_t units = 0;
    for (std::size_t i = 0; i < count; ++i)
      if ((pick >> i & 1u) != 0) {
        part.vectors.push_back(full.vectors[i]);
        units += tip.committee->units_of(full.vectors[i].voter);
      }
    if (!tip.committee->is_quorum(units)) continue;
    const auto due = chain::due_contributors(part.vectors, *tip.committee);
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < full.contributions.size(); ++i) {
      const std::uint32_t member = full.contributions[i].member;
      const bool listed = std::any_of(part.vectors.begin(), part.vectors.end(), [&](const auto& vector) {
        return std::binary_search(vector.members.begin(), vector.members.end(), member);
      });
      if (listed && (without_rule || !std::binary_search(due.begin(), due.end(), member))) free.push_back(i);
    }
    for (std::uint32_t leave = 0; leave < (1u << free.size()); ++leave) {
      chain::CloseSection one = part;
      one.contributions.clear();
      for (std::size_t i = 0; i < full.contributions.size(); ++i) {
        const auto at = std::find(free.begin(), free.end(), i);
        const bool left = at != free.end() && (leave >> (at - free.begin()) & 1u) != 0;
        if (!left) one.contributions.push_back(full.contributions[i]);
      }
      beacons.insert(chain::beacon_after(*tip.registry, *tip.committee, one));
    }
  }
  return beacons.size();
}

// A leader that shows its own contribution to one other only keeps it for itself whether that is in the block:
// one bit. Of the others' contributions it has no choice.
void TestChainHostile::grinding_gains_one_bit() {
  constexpr std::size_t liar = 3;
  std::size_t most = 0, most_without = 0, blocks = 0;
  net::NodeId friend_of_liar{};
  ChainLab lab(lab_options(2, 4), false, [&](std::size_t node) -> test::EditingCaller::Edit {
    if (node != liar) return nullptr;
    return [&](const net::Contact& to, PostKind kind, Bytes*) {
      return kind == PostKind::Contribution && to.id != friend_of_liar ? Fate::Drop : Fate::Send;
    };
  });
  friend_of_liar = lab.world.id(0);
  lab.world.set_sections(liar, [&](const chain::ChainTip& tip, chain::Sections* sections) {
    if (!sections->close) return;
    // A payload that is still on its way to some is in dispute, whoever leads.
    for (const chain::ContributionEntry& entry : sections->close->contributions)
      for (const chain::Vector& vector : sections->close->vectors)
        if (entry.member != tip.registry->find(lab.world.id(liar))->number &&
            !std::binary_search(vector.members.begin(), vector.members.end(), entry.member))
          return;
    ++blocks;
    most = std::max(most, possible_beacons(tip, *sections->close, false));
    most_without = std::max(most_without, possible_beacons(tip, *sections->close, true));
  });
  lab.world.start_all();
  QVERIFY2(lab.world.run_to_round(24, 24 * 4 * lab_round), lab.text("rounds").c_str());
  qInfo("%zu blocks led; at most %zu beacons to choose from, %zu without the rule", blocks, most,
        most_without);
  QVERIFY(blocks >= 3);
  QVERIFY2(most <= 2, qPrintable(QString::number(most)));
  QVERIFY2(most_without >= 8, qPrintable(QString::number(most_without)));
}

void TestChainHostile::withheld_payloads_data() {
  QTest::addColumn<int>("liars");  // that have the payload and give it to nobody else
  QTest::addColumn<bool>("carries");
  QTest::newRow("to nobody") << 1 << false;
  QTest::newRow("to a third") << 3 << false;
  QTest::newRow("to more than half, the control") << 5 << true;
}

// The last node's payload goes to its friends only; none of them answers who asks for pieces.
void TestChainHostile::withheld_payloads() {
  QFETCH(int, liars);
  QFETCH(bool, carries);
  constexpr std::size_t all = 9;
  const std::size_t first_liar = all - static_cast<std::size_t>(liars);
  std::vector<net::NodeId> friends;
  ChainLab lab(lab_options(1, all), false, [&](std::size_t node) -> test::EditingCaller::Edit {
    if (node + 1 != all) return nullptr;
    return [&](const net::Contact& to, PostKind kind, Bytes* post) {
      if (kind != PostKind::Contribution) return Fate::Send;
      if (std::find(friends.begin(), friends.end(), to.id) != friends.end()) return Fate::Send;
      *post = post_of(*contribution_in(*post), false);
      return Fate::Send;
    };
  });
  for (std::size_t node = first_liar; node < all; ++node) {
    friends.push_back(lab.world.id(node));
    lab.world.set_answers(node, [](const net::Caller&, net::Method method, ByteSpan, const net::Respond&) {
      return method == net::Method::RoundPiece;
    });
  }
  lab.world.start_all();
  const bool there = lab.world.run_to_round(6, 8 * 6 * lab_round);
  qInfo("%s", lab.text("withheld").substr(0, 120).c_str());
  QCOMPARE(lab.world.seen().conflicts, 0u);
  if (carries) {
    QVERIFY2(!there || lab.world.seen().rows_carried >= 3, lab.text("carried").c_str());
    return;
  }
  QVERIFY2(there, lab.text("six rounds").c_str());
  QVERIFY2(lab.world.seen().rows_carried <= 1, lab.text("carried").c_str());
  for (const auto& [round, count] : lab.world.seen().contributors) QVERIFY(count >= all - 1);
}

void TestChainHostile::late_contributions_data() {
  QTest::addColumn<int>("late");
  QTest::addColumn<bool>("half");
  QTest::newRow("a third after the vectors") << 3 << false;
  QTest::newRow("a third with half of the payloads") << 3 << true;
}

void TestChainHostile::late_contributions() {
  QFETCH(int, late);
  QFETCH(bool, half);
  constexpr std::size_t all = 9;
  const std::size_t first_late = all - static_cast<std::size_t>(late);
  bool is_late = true;
  ChainLab lab(lab_options(1, all), false, [&](std::size_t node) -> test::EditingCaller::Edit {
    if (node < first_late) return nullptr;
    return [&, half](const net::Contact& to, PostKind kind, Bytes* post) {
      if (kind != PostKind::Contribution || !is_late) return Fate::Send;
      if (!half) return Fate{true, 40 * lab_second};
      if (to.id[0] % 2 == 0) *post = post_of(*contribution_in(*post), false);
      return Fate::Send;
    };
  });
  if (half)
    for (std::size_t node = first_late; node < all; ++node)
      lab.world.set_answers(node,
                            [&](const net::Caller& from, net::Method method, ByteSpan, const net::Respond&) {
                              return is_late && method == net::Method::RoundPiece && from.id[0] % 2 == 0;
                            });
  lab.world.start_all();
  QVERIFY2(lab.world.run_to_round(5, 5 * 8 * lab_round), lab.text("late").c_str());
  QCOMPARE(lab.world.seen().conflicts, 0u);
  QCOMPARE(lab.world.seen().twice, 0u);
  QCOMPARE(lab.world.seen().rows_carried, 0u);
  const std::uint64_t counted = lab.world.training(first_late).view().counted;
  if (!half) QVERIFY2(counted <= 1, lab.text("too late to count").c_str());
  for (std::size_t node = 0; node < first_late; ++node)
    QVERIFY2(lab.world.training(node).view().counted >= 4, lab.text("the others count").c_str());
  // In time again: all count again.
  is_late = false;
  const std::uint64_t round = lab.world.round(0);
  QVERIFY2(lab.world.run_to_round(round + 4, 4 * 8 * lab_round), lab.text("in time").c_str());
  for (std::size_t node = first_late; node < all; ++node)
    QVERIFY2(lab.world.training(node).view().counted >= 2, lab.text("all count").c_str());
  QCOMPARE(lab.world.seen().twice, 0u);
}

// A candidate shows another member's payload, which it overheard, under its own name.
void TestChainHostile::copied_payloads_never_count() {
  constexpr std::size_t founders = 8, copier = 8;
  const auto certified = [&](bool copies) {
    std::optional<rounds::PostedContribution> heard;
    auto options = lab_options(1, founders + 1);
    options.founders = founders;
    ChainLab* world = nullptr;
    ChainLab lab(options, false, [&](std::size_t node) -> test::EditingCaller::Edit {
      if (node == 0)
        return [&](const net::Contact&, PostKind kind, Bytes* post) {
          if (kind == PostKind::Contribution) heard = contribution_in(*post);
          return Fate::Send;
        };
      if (node != copier || !copies) return nullptr;
      return [&](const net::Contact&, PostKind kind, Bytes* post) {
        if (kind != PostKind::Contribution) return Fate::Send;
        auto own = contribution_in(*post);
        if (!heard || heard->contribution.round != own->contribution.round) return Fate::Drop;
        own->contribution.rows = heard->contribution.rows;
        own->payloads = heard->payloads;
        chain::sign_contribution(own->contribution, world->world.key(copier), world->world.network_id());
        *post = post_of(*own);
        return Fate::Send;
      };
    });
    world = &lab;
    if (copies) lab.world.set_honest(copier, false);
    lab.world.start_all();
    if (!lab.world.run_to_round(6, 6 * 8 * lab_round)) return std::optional<std::uint32_t>();
    const chain::MemberRecord* member =
        lab.world.chain(0).history()->tip().registry->find(lab.world.id(copier));
    return std::optional(member == nullptr ? 0u : member->contributions);
  };
  QCOMPARE(certified(true), std::optional(0u));
  const auto honest = certified(false);  // the control: its own work counts
  QVERIFY(honest && *honest >= 3);
}

// One of five lists a member that there is not. Its vector is signed well, yet each close with it would be refused.
void TestChainHostile::a_vector_that_no_block_can_have_holds_nothing_up() {
  constexpr std::size_t all = 5, liar = 4;
  constexpr std::uint64_t rounds_made = 6;
  const auto seconds_of = [](std::uint64_t seed, bool lies) {
    Hash256 network{};
    const crypto::KeyPair key = key_of_node(seed, liar);
    ChainLab lab(brisk_options(seed, all), false, [&](std::size_t node) -> test::EditingCaller::Edit {
      if (node != liar || !lies) return nullptr;
      return [&](const net::Contact&, PostKind kind, Bytes* post) {
        if (kind != PostKind::Vector) return Fate::Send;
        auto vector = *chain::decode_vector(ByteSpan(*post).subspan(1), all, 1);
        vector.members.push_back(1000);
        vector.payloads = {chain::Bitmap::of_ones(vector.members.size())};
        chain::sign_vector(vector, key, network);
        *post = chain::encode_item(chain::RoundsPost{rounds::vector_kind, chain::encode_vector(vector)});
        return Fate::Send;
      };
    });
    network = lab.world.network_id();
    lab.world.start_all();
    if (lies) lab.world.set_honest(liar, false);
    const MonotonicTime begun = lab.world.world().now();
    if (!lab.world.run_to_round(rounds_made, 600 * lab_second)) return 1e9;
    return to_seconds(lab.world.world().now() - begun);
  };
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    const double clean = seconds_of(seed, false), lied = seconds_of(seed, true);
    qInfo("seed %llu: %.1f s for %llu rounds, %.1f s without the attacker's vectors",
          (unsigned long long)seed, lied, (unsigned long long)rounds_made, clean);
    QVERIFY2(lied < 2 * clean, qPrintable(QString::number(lied)));
  }
}

void TestChainHostile::one_of_three_cannot_blow_up_the_model_data() {
  QTest::addColumn<bool>("limited");
  QTest::newRow("norms of earlier rounds") << true;
  QTest::newRow("control: the plain mean") << false;
}

// Three contributors are too few for a robust rule. One of them trains for ten rounds as the others do, and then sends its delta a hundred times as
// long in the wrong direction.
void TestChainHostile::one_of_three_cannot_blow_up_the_model() {
  QFETCH(const bool, limited);
  constexpr std::uint64_t honest_rounds = 10, rounds = 24;
  ChainWorldOptions options = brisk_options(1, 3);
  if (!limited)
    options.training.outer.aggregation.choice = outer::RuleChoice{outer::Rule::WeightedMean, false, false};
  const auto distortion = [](std::size_t node) -> RoundTrainer::Distortion {
    if (node != 2) return nullptr;
    return [](std::uint64_t round, Span<float> delta, std::uint64_t*) {
      for (float& value : delta) value *= round > honest_rounds ? -100.0f : 1.0f;
    };
  };
  ChainWorld world(options, test::lab_model, distortion);
  world.start_all();
  const auto loss = [&] { return test::lab_task()->held_out_loss(world.newest_weights()); };
  QVERIFY(world.run_to_round(honest_rounds, honest_rounds * lab_round));
  const double before = loss();
  QVERIFY(world.run_to_round(rounds, rounds * lab_round));
  qInfo("loss %.3f before, %.3f after the attack", before, loss());
  QCOMPARE(world.seen().rows_carried, 0u);
  QCOMPARE(world.seen().contributors.at(rounds), std::size_t{3});
  if (limited)
    QVERIFY(loss() < before + 0.2);
  else
    QVERIFY(loss() > before + 1);
}

// All members hold all rows and compute them, so nobody takes another's word, nor keeps or verifies it.
void TestChainHostile::attestations_are_refused_where_nobody_needs_them() {
  ChainLab lab(lab_options(1, 2));
  QVERIFY2(lab.world.run_to_round(2, 20 * lab_round), lab.text("two rounds").c_str());
  const chain::ChainTip& tip = lab.world.chain(0).history()->tip();
  chain::Attestation attestation;
  attestation.voter = tip.registry->find(lab.world.id(1))->number;
  attestation.opening = tip.opening;
  attestation.round = tip.registry->round() + 1;
  attestation.rows = {chain::carried_row(0)};
  chain::sign_attestation(attestation, lab.world.key(1), lab.world.network_id());
  const chain::RoundsPost post{rounds::attestation_kind, chain::encode_attestation(attestation)};
  QCOMPARE(test::answer_to(lab, 0, 1, chain::encode_item(post)), chain::Verdict::Inadmissible);
}

}  // namespace

NS_TEST(TestChainHostile)
#include "test_chain_hostile.moc"
