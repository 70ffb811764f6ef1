// Beginnings and foreign histories: nodes that begin together, groups that begin apart and meet, and peers that
// claim or forge a history.
#include <QtTest>

#include "core/sim/identities.h"
#include "tests/sim/chain_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using test::ChainLab;
using test::Fate;
using test::lab_options;
using test::lab_round;
using test::lab_second;
using test::PostKind;

namespace {

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

std::size_t histories(ChainLab& lab) {
  std::set<Hash256> genesis;
  for (std::size_t node = 0; node < lab.world.size(); ++node)
    if (lab.world.running(node) && lab.world.chain(node).history() != nullptr)
      genesis.insert(lab.world.chain(node).history()->genesis());
  return genesis.size();
}

bool all_have(ChainLab& lab, std::size_t how_many) {
  for (std::size_t node = 0; node < lab.world.size(); ++node)
    if (lab.world.chain(node).history() == nullptr) return false;
  return histories(lab) == how_many;
}

class TestChainStarts : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void nodes_begin_together_data();
  void nodes_begin_together();
  void two_groups_meet_data();
  void two_groups_meet();
  void claims_change_nothing_data();
  void claims_change_nothing();
  void a_claim_holds_up_no_beginning();
  void silent_keys_hold_up_no_beginning_data();
  void silent_keys_hold_up_no_beginning();
  void a_false_start_of_a_history_refuses_nobody_elses();
  void a_newcomer_keeps_the_whole_chain();
};

void TestChainStarts::nodes_begin_together_data() {
  QTest::addColumn<int>("nodes");
  QTest::addColumn<int>("apart");  // seconds between one start and the next
  QTest::addColumn<double>("loss");
  QTest::newRow("2 at once") << 2 << 0 << 0.0;
  QTest::newRow("3, 4 s apart") << 3 << 4 << 0.0;
  QTest::newRow("4 at once, a third of messages lost") << 4 << 0 << 0.3;
  QTest::newRow("5, 9 s apart") << 5 << 9 << 0.0;
  QTest::newRow("6, 2 s apart, a fifth lost") << 6 << 2 << 0.2;
}

void TestChainStarts::nodes_begin_together() {
  QFETCH(int, nodes);
  QFETCH(int, apart);
  QFETCH(double, loss);
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    auto options = lab_options(seed, static_cast<std::size_t>(nodes));
    options.open_start = true;
    options.network.loss = loss;
    ChainLab lab(options, false);
    for (std::size_t node = 0; node < lab.world.size(); ++node) {
      lab.world.start(node);
      lab.run_for(apart * lab_second);
    }
    QVERIFY2(lab.world.run_until([&] { return all_have(lab, 1); }, 240 * lab_second),
             lab.text("one").c_str());
    QVERIFY2(lab.world.run_to_round(lab.world.round(0) + 3, 60 * lab_round), lab.text("rounds").c_str());
    QCOMPARE(histories(lab), 1u);
    QCOMPARE(lab.world.seen().conflicts, 0u);
  }
}

void TestChainStarts::two_groups_meet_data() {
  QTest::addColumn<int>("rounds");  // of each before they meet
  QTest::addColumn<bool>("merge");
  QTest::newRow("before 8 rounds") << 3 << true;
  QTest::newRow("after 8 rounds") << 9 << false;
}

void TestChainStarts::two_groups_meet() {
  QFETCH(int, rounds);
  QFETCH(bool, merge);
  constexpr std::size_t all = 5, first_of_others = 3;
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    auto options = lab_options(seed, all);
    options.open_start = true;
    ChainLab lab(options, false);
    for (std::size_t node = first_of_others; node < all; ++node) lab.world.set_part(node, 1);
    lab.world.start_all();
    QVERIFY2(lab.world.run_to_round(static_cast<std::uint64_t>(rounds), 60 * lab_round),
             lab.text("apart").c_str());
    QCOMPARE(histories(lab), 2u);
    const Hash256 of_more = lab.world.chain(0).history()->genesis();
    for (std::size_t node = first_of_others; node < all; ++node) lab.world.set_part(node, 0);
    const bool one = lab.world.run_until([&] { return histories(lab) == 1; }, 60 * lab_second);
    QVERIFY2(one == merge, lab.text("met").c_str());
    if (merge) QCOMPARE(lab.world.chain(all - 1).history()->genesis(), of_more);
    const std::uint64_t before = lab.world.seen().rounds;
    lab.run_for(8 * lab_round);
    QVERIFY2(lab.world.seen().rounds >= before + 3, lab.text("rounds after").c_str());
    QCOMPARE(lab.world.seen().conflicts, 0u);
  }
}

enum class Claim { Height, OtherGenesis, Forged };

void TestChainStarts::claims_change_nothing_data() {
  QTest::addColumn<int>("claim");
  QTest::newRow("a million blocks of this history") << int(Claim::Height);
  QTest::newRow("a true history of others with more rounds") << int(Claim::OtherGenesis);
  QTest::newRow("a next block with another block's certificate") << int(Claim::Forged);
}

// The last of five answers who asks for its history with what is not so.
void TestChainStarts::claims_change_nothing() {
  QFETCH(int, claim);
  constexpr std::size_t all = 5, liar = 4;
  ChainLab foreign(lab_options(77, 2));
  if (claim == int(Claim::OtherGenesis)) QVERIFY(foreign.world.run_to_round(12, 40 * lab_round));
  const auto bytes_of = [&](bool lies) {
    ChainLab lab(lab_options(1, all), false);
    std::vector<Bytes> forged;
    std::uint64_t asked = 0;
    lab.world.set_honest(liar, false);
    lab.world.start_all();
    if (!lab.world.run_to_round(2, 20 * lab_round)) return std::optional<double>();
    const Hash256 genesis = lab.world.chain(0).history()->genesis();
    if (lies)
      lab.world.set_answers(
          liar, [&](const net::Caller&, net::Method method, ByteSpan request, const net::Respond& respond) {
            if (method == net::Method::ChainStatus) {
              chain::ChainStatus status = lab.world.chain(liar).status();
              if (claim == int(Claim::OtherGenesis)) status = foreign.world.chain(0).status();
              if (claim == int(Claim::Height)) status.height = status.round = 1'000'000;
              if (claim == int(Claim::Forged)) ++status.height;
              status.tip[0] ^= 1;
              respond(chain::encode_status(status));
              return true;
            }
            if (method != net::Method::ChainBlocks) return false;
            ++asked;
            const auto from = chain::decode_blocks_request(request);
            chain::BlocksAnswer answer;
            chain::CertifiedBlock forged;
            if (claim == int(Claim::OtherGenesis)) {
              for (std::uint64_t at = *from;
                   at < foreign.world.disk(0).blocks.size() && answer.blocks.size() < 16; ++at)
                answer.blocks.emplace_back(*foreign.world.disk(0).blocks[at]);
              answer.more = *from + answer.blocks.size() < foreign.world.disk(0).blocks.size();
            } else {
              // The newest block once more, as if it followed itself.
              const auto block =
                  *chain::decode_certified(*lab.world.disk(liar).blocks.back(), lab.world.network_id());
              chain::BlockHeader header = block.block->header;
              header.previous = block.block->hash;
              header.height = *from;
              ++header.time_ms;
              const auto next =
                  chain::make_block(header, block.block->body, block.block->opening, lab.world.network_id());
              chain::Certificate certificate = *block.certificate;
              certificate.commits.height = header.height;
              certificate.commits.previous = header.previous;
              certificate.commits.block = next->hash;
              forged = chain::make_certified(next, std::move(certificate));
              answer.blocks.emplace_back(*forged.bytes);
              answer.more = true;
            }
            respond(chain::encode_blocks_answer(answer));
            return true;
          });
    const std::uint64_t before = lab.world.network().counters().bytes, round = lab.world.round(0);
    if (!lab.world.run_to_round(round + 6, 40 * lab_round)) return std::optional<double>();
    for (std::size_t node = 0; node < liar; ++node)
      if (lab.world.chain(node).history()->genesis() != genesis) return std::optional<double>();
    if (lab.world.seen().conflicts != 0) return std::optional<double>();
    if (lies) qInfo("asked %llu times", (unsigned long long)asked);
    return std::optional(static_cast<double>(lab.world.network().counters().bytes - before));
  };
  const auto clean = bytes_of(false), lied = bytes_of(true);
  QVERIFY(clean.has_value());
  QVERIFY(lied.has_value());
  qInfo("%.0f bytes, %.0f without claims", *lied, *clean);
  QVERIFY2(*lied < 1.5 * *clean, "traffic");
}

// One of four claims that it has a history of nobody, and shows no block of it.
void TestChainStarts::a_claim_holds_up_no_beginning() {
  constexpr std::size_t all = 4, liar = 3;
  auto options = lab_options(1, all);
  options.open_start = true;
  ChainLab lab(options, false);
  std::uint8_t times = 0;
  lab.world.set_answers(liar,
                        [&](const net::Caller&, net::Method method, ByteSpan, const net::Respond& respond) {
                          if (method == net::Method::ChainStatus) {
                            chain::ChainStatus status;
                            status.genesis.fill(static_cast<std::uint8_t>(1 + times++ % 200));
                            status.height = status.round = 1000;
                            respond(chain::encode_status(status));
                          } else {
                            respond(make_error(ErrorCode::NotFound, "nothing"));
                          }
                          return true;
                        });
  lab.world.start_all();
  QVERIFY2(lab.world.run_to_round(2, 120 * lab_second), lab.text("three begin").c_str());
  QCOMPARE(lab.world.chain(0).view().voters, 3u);
}

// Keys that say hello to beginning nodes, and nothing else. They keep coming, and repeat what they said.
class SilentKeys {
 public:
  // below: no key has a higher node id, so all of them are to propose first.
  SilentKeys(ChainLab& lab, std::uint8_t prefixes, bool below) : lab_(lab), prefixes_(prefixes) {
    if (!below) return;
    for (std::size_t node = 0; node < lab.world.size(); ++node)
      below_ = std::min(below_.value_or(lab.world.id(node)), lab.world.id(node));
  }
  void say_hello(std::size_t fresh) {
    for (std::size_t i = 0; i < fresh; ++i) make();
    for (const auto& [caller, hello] : hellos_)
      for (std::size_t node = 0; node < lab_.world.size(); ++node)
        lab_.world.chain(node).on_call(caller, net::Method::ChainPost, hello, [](net::Answer) {});
  }
  std::size_t size() const { return hellos_.size(); }

 private:
  void make() {
    crypto::KeyPair key = key_of_node(77, ++made_);
    while (below_ && *below_ < crypto::node_id(key.public_key())) key = key_of_node(77, ++made_);
    const Hash256& network = lab_.world.network_id();
    chain::Register registration;
    registration.delegation =
        crypto::delegate(key_of_node(78, made_), key.public_key(), network,
                         lab_.world.world().clock().wall_now() + std::chrono::hours(24 * 200), 1);
    registration.beacon = {Hash256{9}, 1, 4096};
    chain::Statement founder;
    founder.what = registration;
    chain::sign_statement(founder, key, network);
    const auto number = static_cast<std::uint8_t>(hellos_.size());
    const platform::IpAddress ip = platform::IpAddress::v4(50, 1, number % prefixes_, number);
    hellos_.push_back(
        {{founder_id(key), {ip, 9000}}, chain::encode_item(chain::GenesisHello{founder, lab_tokenizer})});
  }
  static net::NodeId founder_id(const crypto::KeyPair& key) { return crypto::node_id(key.public_key()); }

  static constexpr Hash256 lab_tokenizer{};
  ChainLab& lab_;
  const std::uint8_t prefixes_;
  std::optional<net::NodeId> below_;
  std::size_t made_ = 0;
  std::vector<std::pair<net::Caller, Bytes>> hellos_;
};

void TestChainStarts::silent_keys_hold_up_no_beginning_data() {
  QTest::addColumn<int>("first");  // keys that are there from the start on
  QTest::addColumn<int>("prefixes");
  QTest::addColumn<bool>("below");
  QTest::newRow("no keys") << 0 << 1 << false;
  QTest::newRow("of one prefix") << 40 << 1 << false;
  QTest::newRow("of eight prefixes, first everywhere") << 70 << 8 << false;
  QTest::newRow("of eight prefixes, with lower ids") << 70 << 8 << true;
}

// Four nodes, and 200 keys of strangers in the first minutes.
void TestChainStarts::silent_keys_hold_up_no_beginning() {
  QFETCH(int, first);
  QFETCH(int, prefixes);
  QFETCH(bool, below);
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    auto options = lab_options(seed, 4);
    options.open_start = true;
    ChainLab lab(options);
    SilentKeys keys(lab, static_cast<std::uint8_t>(prefixes), below);
    lab.run_for(4 * lab_second);  // then they have asked each other for a history
    keys.say_hello(static_cast<std::size_t>(first));
    int seconds = 4;
    for (; !all_have(lab, 1) && seconds < 600; seconds += 2) {
      if (first > 0) keys.say_hello(keys.size() < 200 ? 2 : 0);
      lab.run_for(2 * lab_second);
    }
    qInfo("seed %llu: a genesis after %d s, %zu keys", (unsigned long long)seed, seconds, keys.size());
    QVERIFY2(all_have(lab, 1), lab.text("one").c_str());
    QVERIFY2(seconds <= 240, qPrintable(QString::number(seconds)));
    QCOMPARE(lab.world.chain(0).view().voters, 4u);
    QVERIFY2(lab.world.run_to_round(2, 60 * lab_round), lab.text("rounds").c_str());
  }
}

// Two of four voters name the true genesis to a newcomer and give another one.
void TestChainStarts::a_false_start_of_a_history_refuses_nobody_elses() {
  ChainLab foreign(lab_options(77, 2));
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    auto options = lab_options(seed, 5);
    options.founders = 4;
    ChainLab lab(options, false);
    for (std::size_t node = 0; node < 4; ++node) lab.world.start(node);
    QVERIFY2(lab.world.run_to_round(2, 20 * lab_round), lab.text("four train").c_str());
    const Bytes false_start = *foreign.world.disk(0).blocks.front();
    for (const std::size_t liar : {2, 3})
      lab.world.set_answers(
          liar, [&](const net::Caller&, net::Method method, ByteSpan, const net::Respond& respond) {
            if (method != net::Method::ChainBlocks) return false;
            respond(chain::encode_blocks_answer({false, {false_start}}));
            return true;
          });
    lab.world.disk(4).blocks.clear();
    lab.world.start(4);
    const Hash256 genesis = lab.world.chain(0).history()->genesis();
    const bool follows = lab.world.run_until(
        [&] {
          const chain::History* own = lab.world.chain(4).history();
          return own != nullptr && own->genesis() == genesis && lab.world.round(4) + 1 >= lab.world.round(0);
        },
        90 * lab_second);
    QVERIFY2(follows, lab.text("the newcomer").c_str());
  }
}

// The chain is longer than what a node has of it in memory. After a restart the newcomer goes on from its disk.
void TestChainStarts::a_newcomer_keeps_the_whole_chain() {
  auto options = lab_options(1, 5);
  options.founders = 4;
  ChainLab lab(options, false);
  for (std::size_t node = 0; node < 4; ++node) lab.world.start(node);
  QVERIFY2(
      lab.world.run_until([&] { return lab.world.height(0) > chain::blocks_kept + 50; }, 400 * lab_round),
      lab.text("a long chain").c_str());
  lab.world.disk(4).blocks.clear();
  lab.world.start(4);
  const auto follows = [&] {
    return lab.world.run_until([&] { return lab.world.round(4) + 1 >= lab.world.round(0); }, 90 * lab_second);
  };
  QVERIFY2(follows(), lab.text("the newcomer").c_str());
  lab.run_for(3 * lab_round);
  const ChainDisk& disk = lab.world.disk(4);
  QCOMPARE(disk.first, std::uint64_t{0});
  QVERIFY2(disk.blocks.size() + 2 >= lab.world.height(4), lab.text("on its disk").c_str());
  lab.world.kill(4);
  const std::uint64_t kept = lab.world.disk(4).blocks.size();
  lab.world.start(4);
  QCOMPARE(lab.world.height(4) + 1, kept);
  QVERIFY2(follows(), lab.text("after a restart").c_str());
  QCOMPARE(lab.world.seen().conflicts, 0u);
}

}  // namespace

NS_TEST(TestChainStarts)
#include "test_chain_starts.moc"
