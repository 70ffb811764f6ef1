// The cost of a stranger's messages to a node of the chain. The control sends the same messages in a member's name.
#include <QtTest>

#include "core/chain/stranger_fetches.h"
#include "core/rounds/round_posts.h"
#include "core/sim/identities.h"
#include "tests/sim/chain_lab.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using test::ChainLab;
using test::lab_options;
using test::lab_round;
using test::lab_second;

namespace {

constexpr int messages = 200;

// Items that look right until their signature is checked, from the newest block on.
struct Forger {
  explicit Forger(ChainLab& at) : lab(at), tip(at.world.chain(0).history()->tip()) {}

  Bytes heartbeat(int number) const {
    chain::Heartbeat beat;
    beat.node = lab.world.key(2).public_key();
    beat.tip = {tip.height(), tip.block->hash};
    beat.time_ms = static_cast<std::uint64_t>(to_unix_ms(lab.world.world().clock().wall_now())) +
                   static_cast<std::uint64_t>(number);
    beat.boot = beat.incarnation = 1;
    beat.signature.fill(static_cast<std::uint8_t>(number));
    return chain::encode_item(beat);
  }
  Bytes relayed(const std::vector<Bytes>& items) const {
    return chain::encode_item(chain::RelayedPost{chain::RelayPath::Nowhere, items});
  }
  // A commit of the next height, as the voter would sign it.
  Bytes vote(int number) const {
    chain::SignedVote vote;
    vote.vote = {chain::VoteStep::Prepare, tip.height() + 1, tip.block->hash, 0, Hash256{}};
    vote.vote.block.fill(static_cast<std::uint8_t>(number));
    vote.voter = tip.registry->find(lab.world.id(2))->number;
    vote.signature.fill(static_cast<std::uint8_t>(number));
    return chain::encode_item(vote);
  }
  Bytes contribution(int number) const {
    Bytes bytes(200, static_cast<std::uint8_t>(number));
    return chain::encode_item(chain::RoundsPost{rounds::contribution_kind, bytes});
  }

  ChainLab& lab;
  const chain::ChainTip tip;
};

struct Cost {
  std::uint64_t checks = 0;
  int malformed = 0, not_member = 0;
};

Cost send(ChainLab& lab, const net::NodeId& from, const std::function<Bytes(int)>& item) {
  Cost cost;
  const std::uint64_t before = lab.world.cost(0).checks;
  net::Caller caller{from, {platform::IpAddress::v4(40, 1, 1, 1), 9000}};
  for (int i = 0; i < messages; ++i)
    lab.world.chain(0).on_call(caller, net::Method::ChainPost, item(i), [&](net::Answer answer) {
      const auto verdict = chain::decode_answer(*answer.with)->verdict;
      cost.malformed += answer.fault == net::Fault::Malformed || verdict == chain::Verdict::Malformed;
      cost.not_member += verdict == chain::Verdict::NotMember;
    });
  cost.checks = lab.world.cost(0).checks - before;
  return cost;
}

}  // namespace

class TestChainStrangers : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void signatures_of_a_stranger_are_not_checked_data();
  void signatures_of_a_stranger_are_not_checked();
  void a_strangers_word_fetches_little();
  void a_candidate_that_comes_and_goes_makes_few_blocks();
};

void TestChainStrangers::signatures_of_a_stranger_are_not_checked_data() {
  QTest::addColumn<QString>("kind");
  QTest::newRow("heartbeats of others") << "heartbeat";
  QTest::newRow("relayed heartbeats") << "relayed";
  QTest::newRow("bundles") << "bundle";
  QTest::newRow("votes") << "vote";
  QTest::newRow("contributions") << "contribution";
}

void TestChainStrangers::signatures_of_a_stranger_are_not_checked() {
  QFETCH(QString, kind);
  ChainLab lab(lab_options(5, 4));
  QVERIFY(lab.world.run_to_round(1, 60 * lab_round));
  const Forger forger(lab);
  const auto item = [&](int i) -> Bytes {
    if (kind == "heartbeat") return forger.heartbeat(i);
    if (kind == "relayed") return forger.relayed({forger.heartbeat(i)});
    if (kind == "bundle") return forger.relayed(std::vector<Bytes>(100, forger.heartbeat(i)));
    if (kind == "vote") return forger.vote(i);
    return forger.contribution(i);
  };
  const net::NodeId stranger = crypto::node_id(test::key_of(99).public_key());
  const Cost of_stranger = send(lab, stranger, item);
  // The one whose votes they are sends its own.
  const Cost of_member = send(lab, lab.world.id(kind == "vote" ? 2 : 1), item);
  qInfo("%d messages of %s: %d signature checks and %d read for a stranger, %d checks for a member", messages,
        qPrintable(kind), static_cast<int>(of_stranger.checks), of_stranger.malformed,
        static_cast<int>(of_member.checks));
  QCOMPARE(of_stranger.checks, 0u);
  QCOMPARE(of_stranger.malformed, 0);
  if (kind == "contribution")
    QCOMPARE(of_member.malformed, messages);  // it is decoded
  else
    QVERIFY(of_member.checks >= static_cast<std::uint64_t>(messages));
  lab.run_for(4 * lab_round);
  QVERIFY2(lab.world.run_to_round(3, 60 * lab_round), lab.text("rounds go on").c_str());
}

// A stranger says all the time that it has a newer block, and answers with megabytes of nothing.
void TestChainStrangers::a_strangers_word_fetches_little() {
  constexpr std::size_t stranger = 4;
  auto options = lab_options(5, 5);
  options.founders = 4;
  options.network.bytes_per_second = 100e6;
  ChainLab lab(options, false, [](std::size_t node) -> test::EditingCaller::Edit {
    if (node != stranger) return nullptr;  // it registers nowhere
    return [](const net::Contact&, test::PostKind, Bytes*) { return test::Fate::Drop; };
  });
  std::uint64_t answered = 0, asked = 0;
  lab.world.set_answers(
      stranger, [&](const net::Caller& from, net::Method method, ByteSpan, const net::Respond& respond) {
        if (method != net::Method::ChainBlocks) return false;
        const Bytes nothing(3u << 20, 7);
        if (from.id == lab.world.id(0)) {
          ++asked;
          answered += nothing.size();
        }
        respond(nothing);
        return true;
      });
  lab.world.start_all();
  QVERIFY(lab.world.run_to_round(1, 60 * lab_round));
  const net::Caller caller{lab.world.id(stranger), endpoint_of_node(stranger)};
  asked = answered = 0;
  constexpr int seconds = 60;
  for (int i = 0; i < 20 * seconds; ++i) {
    const std::uint64_t height = lab.world.height(0) + 100;
    const Bytes post = chain::encode_item(chain::CertifiedPost{height, Hash256{9}, std::nullopt});
    lab.world.chain(0).on_call(caller, net::Method::ChainPost, post, [](net::Answer) {});
    lab.run_for(lab_second / 20);
  }
  qInfo("%llu requests, %.1f MiB in %d s", (unsigned long long)asked,
        static_cast<double>(answered) / (1 << 20), seconds);
  // As much as its limits allow, and an answer that is under way.
  const auto most =
      chain::fetches_of_stranger.bytes_burst + seconds * chain::fetches_of_stranger.bytes_per_second;
  QVERIFY(asked >= 1);
  QVERIFY2(static_cast<double>(answered) <= most + (3u << 20), qPrintable(QString::number(answered)));
  QVERIFY2(lab.world.run_to_round(lab.world.round(0) + 2, 60 * lab_round), lab.text("rounds go on").c_str());
}

// Its key costs nothing, and each block costs all voters two writes.
void TestChainStrangers::a_candidate_that_comes_and_goes_makes_few_blocks() {
  constexpr std::size_t candidate = 3;
  auto options = lab_options(5, 4);
  options.founders = 3;
  ChainLab lab(options);
  QVERIFY(lab.world.run_until([&] { return !lab.world.chain(candidate).is_away(); }, 60 * lab_round));
  const std::uint64_t blocks = lab.world.seen().blocks, rounds = lab.world.seen().rounds;
  constexpr int seconds = 60;
  for (int i = 0; i < 10 * seconds; ++i) {
    lab.world.chain(candidate).set_away(!lab.world.chain(candidate).is_away());
    lab.run_for(lab_second / 10);
  }
  const std::uint64_t of_rounds = 2 * (lab.world.seen().rounds + 1 - rounds);
  const std::uint64_t others = seconds / 5 + 1;  // block_time
  QVERIFY2(lab.world.seen().blocks - blocks <= of_rounds + others, lab.text("few blocks").c_str());
  QVERIFY2(lab.world.run_to_round(lab.world.round(0) + 2, 60 * lab_round), lab.text("rounds go on").c_str());
}

NS_TEST(TestChainStrangers)
#include "test_chain_strangers.moc"
