// Admission to a vote, and the harm that voters can do to the others by silence: joiners that do nothing, and
// joiners that work for their votes and then vote for nobody or for each other. Each with a control in which
// they have votes that the rules don't give. NS_LONG=1 takes ten times the seeds.
#include <QtTest>

#include "tests/sim/chain_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using chain::VotersMode;
using test::ChainLab;
using test::Fate;
using test::lab_options;
using test::lab_round;
using test::PostKind;

namespace {

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

// Nodes from `first` on say only that they want to be members.
ChainLab::EditOf silent_from(std::size_t first) {
  return [first](std::size_t node) -> test::EditingCaller::Edit {
    if (node < first) return nullptr;
    return [](const net::Contact&, PostKind kind, Bytes*) {
      return kind == PostKind::Statement ? Fate::Send : Fate::Drop;
    };
  };
}

bool is_of_agreement(PostKind kind) {
  return kind == PostKind::Proposal || kind == PostKind::Vote || kind == PostKind::NewView ||
         kind == PostKind::Locked || kind == PostKind::Vector;
}

std::uint64_t rounds_in(ChainLab& lab, Duration time) {
  const std::uint64_t before = lab.world.seen().rounds;
  lab.run_for(time);
  return lab.world.seen().rounds - before;
}

// Units of wallets that nobody vouched for, and of all, in the next block's committee.
std::pair<std::uint64_t, std::uint64_t> unvouched_units(ChainLab& lab) {
  const chain::ChainTip& tip = lab.world.chain(0).history()->tip();
  std::uint64_t units = 0;
  for (const chain::CommitteeMember& member : tip.committee->members())
    if (!tip.registry->wallet(tip.registry->find(member.number)->wallet)->is_trusted()) units += member.units;
  return {units, tip.committee->units()};
}

class TestChainMembers : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void silent_joiners_cost_nothing_data();
  void silent_joiners_cost_nothing();
  void joiners_that_vote_together_own_nothing_data();
  void joiners_that_vote_together_own_nothing();
  void one_voter_lets_few_wallets_vote();
  void a_candidate_with_large_payloads_gets_its_vote_data();
  void a_candidate_with_large_payloads_gets_its_vote();
  void a_candidate_that_is_not_drawn_is_told();
  void a_candidate_takes_a_voters_own_voucher_only();
};

// A free key is a member, too.
void TestChainMembers::a_candidate_takes_a_voters_own_voucher_only() {
  constexpr std::size_t other = 3, candidate = 4;
  auto options = lab_options(1, 5);
  options.founders = 3;
  ChainLab lab(options);
  const auto knows = [&](std::size_t node, std::size_t member) {
    return lab.world.chain(node).history()->tip().registry->find(lab.world.id(member)) != nullptr;
  };
  QVERIFY(lab.world.run_until([&] { return knows(candidate, candidate) && knows(candidate, other); },
                              40 * lab_round));
  const auto voucher_of = [&](std::size_t issuer) {
    chain::HeldVoucher held;
    held.secret = Hash256{5};
    held.voucher.key = crypto::KeyPair::from_seed(held.secret).public_key();
    held.voucher.serial = 1;
    held.voucher.expires_ms = ~std::uint64_t{0} >> 2;
    chain::sign_voucher(held.voucher, lab.world.key(issuer), lab.world.network_id());
    return held;
  };
  const auto offer = [&](std::size_t from, const chain::HeldVoucher& held) {
    return test::answer_to(lab, candidate, from, chain::encode_item(chain::VoucherOffer{held}));
  };
  // It may vote by a block that the candidate has not got yet.
  QCOMPARE(offer(other, voucher_of(other)), chain::Verdict::Later);
  QCOMPARE(offer(other, voucher_of(0)), chain::Verdict::Inadmissible);
  chain::HeldVoucher useless = voucher_of(0);
  useless.secret = Hash256{6};
  QCOMPARE(offer(0, useless), chain::Verdict::Inadmissible);
  chain::HeldVoucher changed = voucher_of(0);
  changed.voucher.serial = 2;
  QCOMPARE(offer(0, changed), chain::Verdict::BadSignature);
  QCOMPARE(offer(0, voucher_of(0)), chain::Verdict::Taken);
  const auto is_vouched = [&] {
    const chain::Registry& registry = *lab.world.chain(0).history()->tip().registry;
    return registry.wallet(registry.find(lab.world.id(candidate))->wallet)->vouched;
  };
  QVERIFY2(lab.world.run_until(is_vouched, 20 * lab_round), lab.text("vouched").c_str());
}

void TestChainMembers::silent_joiners_cost_nothing_data() {
  QTest::addColumn<int>("honest");
  QTest::addColumn<int>("silent");
  QTest::newRow("2 against 3") << 3 << 2;
  QTest::newRow("16 against 34") << 34 << 16;
}

void TestChainMembers::silent_joiners_cost_nothing() {
  QFETCH(int, honest);
  QFETCH(int, silent);
  const auto founders = static_cast<std::size_t>(honest), all = founders + static_cast<std::size_t>(silent);
  const Duration time = founders > 16 ? 10 * lab_round : 30 * lab_round;
  const std::uint64_t most_seeds = founders > 16 ? 1 : 2;
  // The voters wait a grace for a member's first contribution in its first eight rounds.
  const Duration first_rounds = 12 * lab_round;
  for (std::uint64_t seed = 1; seed <= seeds(most_seeds); ++seed) {
    std::uint64_t alone = 0, joined = 0, with_votes = 0;
    {
      ChainLab lab(lab_options(seed, founders));
      lab.run_for(first_rounds);
      alone = rounds_in(lab, time);
    }
    {
      auto options = lab_options(seed, all);
      options.founders = founders;
      options.chain.rules.voters = VotersMode::Open;
      ChainLab lab(options, true, silent_from(founders));
      for (std::size_t node = founders; node < all; ++node) lab.world.set_honest(node, false);
      lab.run_for(first_rounds);
      joined = rounds_in(lab, time);
      const chain::ChainView view = lab.world.chain(0).view();
      QCOMPARE(view.members, all);
      QCOMPARE(view.voters, founders);
      QCOMPARE(view.committee, founders);
    }
    {
      // The control: the genesis gives them votes.
      ChainLab lab(lab_options(seed, all), true, silent_from(founders));
      for (std::size_t node = founders; node < all; ++node) lab.world.set_honest(node, false);
      with_votes = rounds_in(lab, time);
    }
    const QString seen = QString("seed %1: %2 rounds alone, %3 with joiners, %4 with votes")
                             .arg(seed)
                             .arg(alone)
                             .arg(joined)
                             .arg(with_votes);
    qInfo("%s", qPrintable(seen));
    QVERIFY2(alone >= 2 && joined + 1 >= alone, qPrintable(seen));
    QVERIFY2(2 * with_votes <= joined, qPrintable(seen));
  }
}

void TestChainMembers::joiners_that_vote_together_own_nothing_data() {
  QTest::addColumn<int>("mode");
  QTest::addColumn<bool>("for_each_other");
  for (const bool together : {false, true}) {
    const char* how = together ? "vote for each other" : "never vote";
    QTest::addRow("invited, %s", how) << int(VotersMode::Invited) << together;
    QTest::addRow("founders, %s", how) << int(VotersMode::Founders) << together;
    QTest::addRow("open, %s", how) << int(VotersMode::Open) << together;
  }
}

// Sixteen joiners contribute properly. Then they send nothing of the agreement, or only to each other.
void TestChainMembers::joiners_that_vote_together_own_nothing() {
  QFETCH(int, mode);
  QFETCH(bool, for_each_other);
  constexpr std::size_t founders = 8, all = 24;
  constexpr Duration time = 24 * lab_round;
  std::vector<net::NodeId> others;
  const ChainLab::EditOf edit_of = [&](std::size_t node) -> test::EditingCaller::Edit {
    if (node < founders) return nullptr;
    return [&, for_each_other](const net::Contact& to, PostKind kind, Bytes*) {
      if (!is_of_agreement(kind)) return Fate::Send;
      const bool own = std::find(others.begin(), others.end(), to.id) != others.end();
      return for_each_other && own ? Fate::Send : Fate::Drop;
    };
  };
  const auto start = [&](ChainLab& lab) {
    others.clear();
    for (std::size_t node = founders; node < all; ++node) {
      others.push_back(lab.world.id(node));
      lab.world.set_honest(node, false);
    }
    lab.world.start_all();
  };
  auto options = lab_options(1, all);
  options.chain.rules.voters = static_cast<VotersMode>(mode);
  options.founders = founders;
  ChainLab lab(options, false, edit_of);
  start(lab);
  std::size_t most_voters = 0;
  for (int part = 0; part < 12; ++part) {
    lab.run_for(time / 12);
    most_voters = std::max(most_voters, lab.world.chain(0).view().voters);
    const auto [unvouched, units] = unvouched_units(lab);
    QVERIFY2(4 * unvouched < units, lab.text("a quarter").c_str());
  }
  const std::uint64_t rounds = lab.world.seen().rounds;
  qInfo("%s", lab.text("joiners").substr(0, 100).c_str());
  qInfo("%zu voters at most", most_voters);
  QCOMPARE(lab.world.seen().conflicts, 0u);
  QVERIFY2(rounds >= 4, lab.text("rounds").c_str());
  const bool open = mode == int(VotersMode::Open);
  QCOMPARE(most_voters > founders, open);  // there the work counts, yet never for a quarter
  if (!open) QVERIFY2(rounds >= 10, lab.text("nobody else votes").c_str());

  // The control: with votes as founders have them, two thirds of the units are theirs, and nothing goes on.
  options.founders = all;
  ChainLab owned(options, false, edit_of);
  start(owned);
  owned.run_for(time);
  QVERIFY2(owned.world.seen().rounds == 0, owned.text("owned").c_str());
}

// A voter gives vouchers to four friends at once: its wallet lets one vote in eight rounds.
void TestChainMembers::a_candidate_with_large_payloads_gets_its_vote_data() {
  QTest::addColumn<bool>("shown");
  QTest::newRow("the founder shows its contribution") << true;
  QTest::newRow("control: it does not") << false;
}

// Payloads that do not travel with the contribution are for contributors only, so a candidate must know that the
// single voter is one.
void TestChainMembers::a_candidate_with_large_payloads_gets_its_vote() {
  QFETCH(bool, shown);
  auto options = lab_options(1, 2);
  options.founders = 1;
  ChainLab lab(options, false, [shown](std::size_t node) -> test::EditingCaller::Edit {
    return [node, shown](const net::Contact&, PostKind kind, Bytes* post) {
      if (kind != PostKind::Contribution) return Fate::Send;
      *post = test::post_of(*test::contribution_in(*post), false);
      return node == 0 && !shown ? Fate::Drop : Fate::Send;
    };
  });
  lab.world.start(0);
  QVERIFY2(lab.world.run_to_round(1, 10 * lab_round), lab.text("founder").c_str());
  const auto expires =
      static_cast<std::uint64_t>(to_unix_ms(lab.world.world().clock().wall_now())) + 3'600'000;
  const auto voucher = lab.world.chain(0).give_voucher(expires);
  QVERIFY(voucher.ok());
  lab.world.set_voucher(1, *voucher);
  lab.world.start(1);
  lab.run_for(12 * lab_round);
  QVERIFY2((lab.world.chain(0).view().voters == 2) == shown, lab.text("candidate").c_str());
}

// The page Training shows it, so that its owner does not look for a fault.
void TestChainMembers::a_candidate_that_is_not_drawn_is_told() {
  constexpr std::size_t founders = 4;
  auto options = lab_options(1, founders + 1);
  options.founders = founders;
  options.chain.rules.most_candidates = 0;
  ChainLab lab(options);
  const auto trouble = [&lab](std::size_t node) { return lab.world.training(node).view().trouble; };
  const bool told = lab.world.run_until(
      [&] { return trouble(founders).find("draws 0 of them, and not this one") != std::string::npos; },
      20 * lab_round);
  QVERIFY2(told, lab.text("not told").c_str());
  for (std::size_t node = 0; node < founders; ++node) QCOMPARE(trouble(node), std::string());
  QCOMPARE(lab.world.training(founders).view().counted, std::uint64_t{0});
}

void TestChainMembers::one_voter_lets_few_wallets_vote() {
  constexpr std::size_t founders = 5, all = 9;
  auto options = lab_options(1, all);
  options.founders = founders;
  ChainLab lab(options, false);
  for (std::size_t node = 0; node < founders; ++node) lab.world.start(node);
  QVERIFY2(lab.world.run_to_round(1, 10 * lab_round), lab.text("founders").c_str());
  const auto expires =
      static_cast<std::uint64_t>(to_unix_ms(lab.world.world().clock().wall_now())) + 3'600'000;
  for (std::size_t node = founders; node < all; ++node) {
    const auto voucher = lab.world.chain(0).give_voucher(expires);
    QVERIFY(voucher.ok());
    lab.world.set_voucher(node, *voucher);
    lab.world.start(node);
  }
  QVERIFY2(lab.world.run_to_round(7, 40 * lab_round), lab.text("one of them").c_str());
  QCOMPARE(lab.world.chain(0).view().members, all);
  QCOMPARE(lab.world.chain(0).view().voters, founders + 1);
  QVERIFY2(lab.world.run_to_round(16, 80 * lab_round), lab.text("the next one").c_str());
  QCOMPARE(lab.world.chain(0).view().voters, founders + 2);
  QCOMPARE(lab.world.seen().conflicts, 0u);
}

}  // namespace

NS_TEST(TestChainMembers)
#include "test_chain_members.moc"
