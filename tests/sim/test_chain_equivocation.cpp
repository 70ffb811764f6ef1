// Statements that were signed twice, come too late or belong to another history: two votes, vectors or
// contributions of one place expel their signer and nobody else, also when their finder restarts in between. A
// statement that is shown again or belongs elsewhere changes nothing.
#include <QtTest>

#include "tests/sim/chain_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using chain::Verdict;
using test::answer_to;
using test::ChainLab;
using test::contribution_in;
using test::expelled;
using test::Fate;
using test::lab_options;
using test::lab_round;
using test::lab_second;
using test::post_of;
using test::PostKind;

namespace {

// The same post with another content under the same signer's key: what an honest node never signs.
Bytes contradiction(const Bytes& post, PostKind kind, const crypto::KeyPair& key, const Hash256& network) {
  if (kind == PostKind::Vote) {
    auto vote = std::get<chain::SignedVote>(*chain::decode_item(post, network));
    vote.vote.block[0] ^= 1;
    return chain::encode_item(chain::sign_vote(vote.vote, vote.voter, key, network));
  }
  if (kind == PostKind::Vector) {
    auto vector = *chain::decode_vector(ByteSpan(post).subspan(1), chain::max_members, 1);
    vector.contributions[0] ^= 1;
    chain::sign_vector(vector, key, network);
    return chain::encode_item(chain::RoundsPost{rounds::vector_kind, chain::encode_vector(vector)});
  }
  auto posted = *contribution_in(post);
  --posted.contribution.rows[0].tokens;
  chain::sign_contribution(posted.contribution, key, network);
  return post_of(posted);
}

bool is_expelled(ChainLab& lab, std::size_t observer, std::size_t node) {
  const chain::Registry& registry = *lab.world.chain(observer).history()->tip().registry;
  const auto at = std::find_if(registry.wallets().begin(), registry.wallets().end(),
                               [](const chain::WalletRecord& wallet) { return wallet.expelled; });
  const bool any = at != registry.wallets().end();
  return any && registry.find(lab.world.id(node)) == nullptr;
}

class TestChainEquivocation : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void equivocation_expels_data();
  void equivocation_expels();
  void evidence_survives_its_finder_data();
  void evidence_survives_its_finder();
  void a_certificate_convicts_who_voted_otherwise_data();
  void a_certificate_convicts_who_voted_otherwise();
  void what_is_old_or_of_another_history_is_refused();
  void a_statement_puts_no_expulsion_off();
};

void TestChainEquivocation::equivocation_expels_data() {
  QTest::addColumn<int>("kind");
  QTest::addColumn<bool>("split");  // each of the others gets one of the two only
  QTest::newRow("votes") << int(PostKind::Vote) << false;
  QTest::newRow("vectors") << int(PostKind::Vector) << false;
  QTest::newRow("contributions") << int(PostKind::Contribution) << false;
  QTest::newRow("votes, one to each") << int(PostKind::Vote) << true;
  QTest::newRow("vectors, one to each") << int(PostKind::Vector) << true;
  QTest::newRow("contributions, one to each") << int(PostKind::Contribution) << true;
}

void TestChainEquivocation::equivocation_expels() {
  QFETCH(int, kind);
  QFETCH(bool, split);
  constexpr std::size_t all = 5, liar = 4;
  ChainLab* self = nullptr;
  ChainLab lab(lab_options(3, all), false, [&](std::size_t node) -> test::EditingCaller::Edit {
    if (node != liar) return nullptr;
    return [&](const net::Contact& to, PostKind of, Bytes* post) {
      if (int(of) != kind) return Fate::Send;
      const Bytes other = contradiction(*post, of, self->world.key(liar), self->world.network_id());
      for (std::size_t at = 0; at < liar; ++at) {
        if (self->world.id(at) != to.id) continue;
        if (split && at < 2) *post = other;
        if (!split) answer_to(*self, at, liar, other);
      }
      return Fate::Send;
    };
  });
  self = &lab;
  lab.world.set_honest(liar, false);
  lab.world.start_all();
  const bool gone = lab.world.run_until([&] { return expelled(lab, 0) > 0; }, 20 * lab_round);
  QCOMPARE(lab.world.seen().conflicts, 0u);
  // Two votes that nobody sees together can't be proven, and certify nothing either.
  if (!split || kind != int(PostKind::Vote)) {
    QVERIFY2(gone, lab.text("expelled").c_str());
    QVERIFY(is_expelled(lab, 0, liar));
    QCOMPARE(expelled(lab, 0), 1u);
  }
  const std::uint64_t round = lab.world.round(0);
  QVERIFY2(lab.world.run_to_round(round + 3, 3 * 12 * lab_round), lab.text("the others go on").c_str());
  QVERIFY(expelled(lab, 0) <= 1);
  QCOMPARE(lab.world.seen().twice, 0u);
}

void TestChainEquivocation::evidence_survives_its_finder_data() {
  QTest::addColumn<bool>("kept");
  QTest::newRow("kept") << true;
  QTest::newRow("the record is gone, the control") << false;
}

// Only node 0 sees both contributions. It dies before it can tell anybody.
void TestChainEquivocation::evidence_survives_its_finder() {
  QFETCH(bool, kept);
  constexpr std::size_t all = 5, liar = 4;
  bool lies = true, quiet = true;
  ChainLab* self = nullptr;
  ChainLab lab(lab_options(3, all), false, [&](std::size_t node) -> test::EditingCaller::Edit {
    if (node == 0)
      return [&](const net::Contact&, PostKind, Bytes*) { return quiet && !lies ? Fate::Drop : Fate::Send; };
    if (node != liar) return nullptr;
    return [&](const net::Contact& to, PostKind of, Bytes* post) {
      if (of != PostKind::Contribution || !lies || to.id != self->world.id(0)) return Fate::Send;
      // Beside the true one, which all get.
      const Bytes other = contradiction(*post, of, self->world.key(liar), self->world.network_id());
      if (answer_to(*self, 0, liar, *post) != Verdict::Taken) return Fate::Send;
      lies = false;  // from here on node 0 is quiet
      answer_to(*self, 0, liar, other);
      return Fate::Send;
    };
  });
  self = &lab;
  lab.world.set_honest(liar, false);
  lab.world.start_all();
  QVERIFY(lab.world.run_until([&] { return !lies; }, 10 * lab_round));
  QCOMPARE(lab.world.chain(0).view().evidence, 1u);
  lab.run_for(lab_second);  // it is on the disk
  lab.world.kill(0);
  if (!kept) lab.world.disk(0).records.erase(chain::ChainStore::Record::Evidence);
  quiet = false;
  lab.run_for(lab_second);
  lab.world.start(0);
  const std::uint64_t round = lab.world.round(1);
  QVERIFY2(lab.world.run_to_round(round + 3, 3 * 12 * lab_round), lab.text("three rounds").c_str());
  QCOMPARE(expelled(lab, 1), kept ? 1u : 0u);
  QCOMPARE(is_expelled(lab, 1, liar), kept);
}

void TestChainEquivocation::a_certificate_convicts_who_voted_otherwise_data() {
  QTest::addColumn<bool>("late");
  QTest::newRow("the vote comes first") << false;
  QTest::newRow("the certificate comes first") << true;
}

// Node 0 gets no commits but a false one of the liar, and later the certificate that needs the liar's other one.
// All that get its proof pass it on.
void TestChainEquivocation::a_certificate_convicts_who_voted_otherwise() {
  QFETCH(bool, late);
  constexpr std::size_t all = 5, liar = 4;
  ChainLab* self = nullptr;
  std::vector<Bytes> false_votes;
  bool lies = false;
  ChainLab lab(lab_options(3, all), false, [&](std::size_t node) -> test::EditingCaller::Edit {
    return [&, node](const net::Contact& to, PostKind of, Bytes* post) {
      if (node == 0 && of == PostKind::Vote && lies) {
        const auto vote = std::get<chain::SignedVote>(*chain::decode_item(*post, self->world.network_id()));
        return vote.vote.step == chain::VoteStep::Commit ? Fate::Drop : Fate::Send;
      }
      if (!lies || to.id != self->world.id(0) || of != PostKind::Vote) return Fate::Send;
      const auto vote = std::get<chain::SignedVote>(*chain::decode_item(*post, self->world.network_id()));
      if (vote.vote.step != chain::VoteStep::Commit) return Fate::Send;
      if (node != liar) return Fate::Drop;
      *post = contradiction(*post, of, self->world.key(liar), self->world.network_id());
      false_votes.push_back(*post);
      return late ? Fate::Drop : Fate::Send;
    };
  });
  self = &lab;
  lab.world.set_honest(liar, false);
  lab.world.start_all();
  QVERIFY2(lab.world.run_to_round(2, 20 * lab_round), lab.text("two rounds").c_str());
  lies = true;
  const std::uint64_t before = lab.world.height(0);
  QVERIFY2(lab.world.run_until([&] { return lab.world.height(0) == before + 1; }, 20 * lab_round),
           lab.text("the certificate").c_str());
  lies = false;
  QVERIFY(!false_votes.empty());
  if (late) {
    QCOMPARE(lab.world.chain(0).view().evidence, 0u);
    QCOMPARE(answer_to(lab, 0, liar, false_votes.front()), Verdict::Equivocation);
  }
  QCOMPARE(lab.world.chain(0).view().evidence, 1u);
  QVERIFY2(lab.world.run_until([&] { return expelled(lab, 1) == 1; }, 20 * lab_round),
           lab.text("expelled").c_str());
  QVERIFY(is_expelled(lab, 1, liar));
  QCOMPARE(lab.world.seen().conflicts, 0u);
}

void TestChainEquivocation::what_is_old_or_of_another_history_is_refused() {
  constexpr std::size_t all = 4;
  std::vector<Bytes> posts[2];
  const auto listen = [&](int which) -> ChainLab::EditOf {
    return [&posts, which](std::size_t node) -> test::EditingCaller::Edit {
      if (node != 1) return nullptr;
      return [&posts, which](const net::Contact&, PostKind kind, Bytes* post) {
        if (kind == PostKind::Statement || kind == PostKind::Contribution || kind == PostKind::Vector ||
            kind == PostKind::Vote)
          posts[which].push_back(*post);
        return Fate::Send;
      };
    };
  };
  // The same nodes, another genesis: its anchors differ.
  auto elsewhere = lab_options(5, all);
  elsewhere.initial[0] += 1;
  ChainLab other(elsewhere, true, listen(0)), lab(lab_options(5, all), true, listen(1));
  QCOMPARE(other.world.id(1), lab.world.id(1));
  QVERIFY2(other.world.run_to_round(3, 20 * lab_round), other.text("elsewhere").c_str());
  other.world.chain(1).set_away(true);
  QVERIFY(other.world.run_until([&] { return other.world.chain(1).is_away(); }, 60 * lab_second));
  QVERIFY2(lab.world.run_to_round(3, 20 * lab_round), lab.text("here").c_str());
  QVERIFY(other.world.chain(0).history()->genesis() != lab.world.chain(0).history()->genesis());
  // Away is the last statement; it is said here, too, and then not true any more.
  lab.world.chain(1).set_away(true);
  QVERIFY(lab.world.run_until([&] { return lab.world.chain(1).is_away(); }, 60 * lab_second));
  lab.world.chain(1).set_away(false);
  QVERIFY(lab.world.run_until([&] { return !lab.world.chain(1).is_away(); }, 60 * lab_second));
  QVERIFY2(lab.world.run_to_round(lab.world.round(0) + 6, 40 * lab_round), lab.text("later").c_str());
  const auto try_all = [&](const std::vector<Bytes>& all_posts, const char* what) {
    std::map<Verdict, int> verdicts;
    for (const Bytes& post : all_posts) ++verdicts[answer_to(lab, 0, 1, post)];
    QString seen;
    for (const auto& [verdict, count] : verdicts)
      seen +=
          QString("%1: %2; ").arg(QString::fromStdString(std::string(chain::to_string(verdict)))).arg(count);
    qInfo("%s: %s", what, qPrintable(seen));
    return verdicts.count(Verdict::Taken) == 0;
  };
  QVERIFY(posts[0].size() > 10 && posts[1].size() > 10);
  QVERIFY(try_all(posts[0], "another history"));
  posts[1].resize(posts[1].size() / 2);
  QVERIFY(try_all(posts[1], "old"));
  QVERIFY(!lab.world.chain(1).is_away());

  // Two votes for one place of the other history prove nothing here; for a place of this one they do.
  const auto two_votes = [&](ChainLab& at) {
    const chain::ChainTip& tip = at.world.chain(0).history()->tip();
    chain::Vote vote{chain::VoteStep::Prepare, tip.height() + 1, tip.block->hash, 0, Hash256{1}};
    const std::uint32_t number = tip.registry->find(at.world.id(1))->number;
    const crypto::KeyPair& key = at.world.key(1);
    const auto first = chain::sign_vote(vote, number, key, at.world.network_id());
    vote.block[0] = 2;
    const auto second = chain::sign_vote(vote, number, key, at.world.network_id());
    return chain::encode_item(chain::EvidencePost{chain::evidence_of(key.public_key(), first, second)});
  };
  QCOMPARE(answer_to(lab, 0, 2, two_votes(other)), Verdict::Inadmissible);
  lab.run_for(2 * lab_round);
  QCOMPARE(expelled(lab, 0), 0u);
  const Bytes proof = two_votes(lab);
  // One node gets it and passes it on.
  QCOMPARE(answer_to(lab, 0, 2, proof), Verdict::Taken);
  lab.run_for(lab_second / 2);
  for (const std::size_t node : {2, 3}) QVERIFY(lab.world.chain(node).view().evidence > 0);
  lab.run_for(4 * lab_round);
  QCOMPARE(expelled(lab, 0), 1u);
}

// The evidence against a member arrives together with the member's own statement *away*. A block can contain only one
// of them.
void TestChainEquivocation::a_statement_puts_no_expulsion_off() {
  constexpr std::size_t all = 5, liar = 4;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    ChainLab lab(lab_options(seed, all));
    QVERIFY(lab.world.run_to_round(2, 20 * lab_round));
    const Hash256& network = lab.world.network_id();
    const chain::ChainTip& tip = lab.world.chain(0).history()->tip();
    const crypto::KeyPair& key = lab.world.key(liar);
    const std::uint32_t number = tip.registry->find(lab.world.id(liar))->number;
    const auto vote = [&](std::uint8_t block) {
      Hash256 hash{};
      hash.fill(block);
      return chain::sign_vote({chain::VoteStep::Prepare, tip.height() + 1, tip.block->hash, 0, hash}, number,
                              key, network);
    };
    chain::Statement away;
    away.reference = {tip.height(), tip.block->hash};
    away.what = chain::Away{};
    chain::sign_statement(away, key, network);
    const Bytes evidence =
        chain::encode_item(chain::EvidencePost{chain::evidence_of(key.public_key(), vote(1), vote(2))});
    const Bytes statement = chain::encode_item(chain::StatementPost{away});
    lab.world.set_honest(liar, false);
    lab.world.kill(liar);
    // A node looks for a block as soon as it has one of the two, so each node gets both at the same moment.
    for (std::size_t node = 0; node < liar; ++node) {
      QCOMPARE(answer_to(lab, node, liar, evidence), Verdict::Taken);
      QCOMPARE(answer_to(lab, node, liar, statement), Verdict::Taken);
    }
    const MonotonicTime begun = lab.world.world().now();
    const std::uint64_t height = lab.world.height(0);
    const bool expels = lab.world.run_until([&] { return is_expelled(lab, 0, liar); }, 300 * lab_second);
    const double seconds = to_seconds(lab.world.world().now() - begun);
    qInfo("seed %llu: expelled after %.1f s and %llu blocks", (unsigned long long)seed, seconds,
          (unsigned long long)(lab.world.height(0) - height));
    QVERIFY2(expels, lab.text("expelled").c_str());
    QVERIFY2(seconds <= 20, qPrintable(QString::number(seconds)));
    QVERIFY2(lab.world.run_to_round(lab.world.round(0) + 2, 20 * lab_round), lab.text("rounds").c_str());
    QCOMPARE(lab.world.seen().conflicts, 0u);
  }
}

}  // namespace

NS_TEST(TestChainEquivocation)
#include "test_chain_equivocation.moc"
