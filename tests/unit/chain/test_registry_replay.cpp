// The registry is a pure function of the blocks: random chains give the same roots on every path. Prints what a
// block of 10,000 members costs.
#include <QtTest>

#include <chrono>

#include "core/base/rng.h"
#include "core/chain/history.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::NoChecks;
using neuroshard::chain::testing::Received;
using neuroshard::chain::testing::small_rules;
using neuroshard::chain::testing::Work;

namespace {

// Blocks of random valid content. Not every choice is valid: what the registry refuses is left out.
class RandomChain {
 public:
  RandomChain(std::uint64_t seed, VotersMode mode) : rng_(seed), chain_(rules_of(mode)) {
    const auto founders = chain_.add_nodes(3 + rng_.below(4));
    NS_CHECK(chain_.begin(founders).ok());
    nodes_ = founders;
  }
  void step() {
    BlockBody body = collected();
    const std::uint64_t after = 1 + rng_.below(rng_.below(8) == 0 ? 3'000'000'000u : 100'000u);
    if (rng_.below(3) != 0) add_round(body);
    BlockBody kept = applicable(chain_.rules(), chain_.registry(), chain_.hash(),
                                chain_.registry().time_ms() + after, body);
    if (kept.empty()) return;
    if (!chain_.append(kept, after).ok()) ++refused_;
  }
  const ChainFixture& chain() const { return chain_; }
  std::size_t refused() const { return refused_; }

 private:
  static ChainRules rules_of(VotersMode mode) {
    ChainRules rules = small_rules(mode, 3);
    rules.fragments = 2;
    return rules;
  }
  std::size_t any() { return nodes_[rng_.below(nodes_.size())]; }
  void add_round(BlockBody& body) {
    if (chain_.registry().closed()) {
      body.result = chain_.result(rng_.next() >> 2);
      return;
    }
    std::vector<Work> works;
    for (const std::size_t node : nodes_) {
      const MemberRecord* member = chain_.member(node);
      if (member == nullptr || member->next_beacon || rng_.below(4) == 0) continue;
      if (member->registered_height > chain_.registry().opening_height() || member->beacon.first_round != 1)
        continue;
      works.push_back({node, rng_.below(1000)});
    }
    Received received;
    received.payload = [this](std::size_t, std::size_t, std::size_t) { return rng_.below(5) != 0; };
    body.close = chain_.close(works, received);
  }
  BlockBody collected() {
    BlockBody body;
    for (std::uint64_t i = rng_.below(4); i > 0; --i) body.statements.push_back(statement());
    if (rng_.below(10) == 0) {
      const std::size_t node = any();
      if (chain_.member(node) != nullptr) body.silent = {chain_.number(node)};
      const BlockBody alone{{}, {}, {}, {}, body.silent, {}, {}};
      if (!chain_.refusal(alone).empty()) body.silent.clear();
    }
    if (rng_.below(12) == 0) {
      const std::size_t node = any();
      if (chain_.member(node) != nullptr)
        body.evidence = {evidence_of(chain_.contribution(node, 1), chain_.contribution(node, 2))};
    }
    return body;
  }
  Statement statement() {
    const std::size_t node = any();
    const std::size_t issuer = any();
    switch (rng_.below(9)) {
      case 0:
      case 1: {
        const std::size_t fresh =
            rng_.below(3) == 0 ? chain_.add_node_of(chain_.wallet_index(node)) : chain_.add_node();
        nodes_.push_back(fresh);
        return chain_.statement(fresh, chain_.registration(fresh));
      }
      case 2: {
        nodes_.push_back(chain_.add_node());
        return chain_.statement(nodes_.back(), chain_.registration(nodes_.back(), issuer, serial_++));
      }
      case 3: return chain_.statement(node, chain_.vouch(node, issuer, serial_++));
      case 4: return chain_.statement(node, Away{});
      case 5: return chain_.statement(node, Leave{});
      case 6: return chain_.revocation(node);
      case 7:
        return chain_.statement(node,
                                Commit{{Hash256{1}, chain_.registry().round() + 3 + rng_.below(3), 50}});
      default: return chain_.statement(node, Back{});
    }
  }

  Rng rng_;
  ChainFixture chain_;
  std::vector<std::size_t> nodes_;
  std::uint32_t serial_ = 1;
  std::size_t refused_ = 0;
};

double seconds_of(const std::function<void()>& work) {
  const auto begin = SystemClock().monotonic_now();
  work();
  return to_seconds(SystemClock().monotonic_now() - begin);
}

}  // namespace

class TestChainRegistryReplay : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void random_chains_have_one_registry_data();
  void random_chains_have_one_registry();
  void ten_thousand_members();
};

void TestChainRegistryReplay::random_chains_have_one_registry_data() {
  QTest::addColumn<quint64>("seed");
  QTest::addColumn<int>("mode");
  for (const VotersMode mode : {VotersMode::Invited, VotersMode::Founders, VotersMode::Open}) {
    for (quint64 seed = 1; seed <= 4; ++seed)
      QTest::addRow("mode %d, seed %llu", static_cast<int>(mode), seed) << seed << static_cast<int>(mode);
  }
}

void TestChainRegistryReplay::random_chains_have_one_registry() {
  QFETCH(quint64, seed);
  QFETCH(int, mode);
  RandomChain walk(seed, static_cast<VotersMode>(mode));
  for (int i = 0; i < 80; ++i) walk.step();
  const ChainFixture& chain = walk.chain();
  QVERIFY(chain.blocks().size() > 40);
  QVERIFY(chain.registry().round() > 5);
  QCOMPARE(walk.refused(), std::size_t{0});

  SignatureChecks checks;
  const Hash256& network = chain.rules().network;
  RegistryPtr fresh = *genesis_registry(chain.rules(), *chain.blocks()[0], checks);
  RegistryPtr decoded = fresh;  // written and read back after each block
  for (std::size_t i = 1; i < chain.blocks().size(); ++i) {
    const Hash256 before = chain.blocks()[i - 1]->hash;
    const auto block = decode_block(encode_block(*chain.blocks()[i]), network);
    QVERIFY(block.ok());
    const auto next = apply_block(chain.rules(), *fresh, before, **block, checks);
    QVERIFY2(next.ok(), next.ok() ? "" : next.error().message.c_str());
    fresh = *next;
    const auto other = apply_block(chain.rules(), *decoded, before, **block, checks);
    QVERIFY2(other.ok(), other.ok() ? "" : other.error().message.c_str());
    QVERIFY((*other)->root() == fresh->root());
    decoded = *Registry::decode((*other)->encode());
    QVERIFY(decoded->root() == fresh->root());
    const CommitteePtr a = make_committee(chain.rules(), *fresh), b = make_committee(chain.rules(), *decoded);
    QCOMPARE(a->units(), b->units());
    QCOMPARE(a->leader(0), b->leader(0));
  }
  QVERIFY(fresh->root() == chain.registry().root());
}

void TestChainRegistryReplay::ten_thousand_members() {
  NoChecks checks;
  ChainRules rules = small_rules(VotersMode::Invited, 1);
  ChainFixture chain(rules);
  chain.set_checks(checks);
  constexpr std::size_t count = 10'000;
  GenesisSection genesis;
  const BeaconChain beacon(Hash256{7}, 1, 16);
  for (std::size_t i = 0; i < count; ++i) {
    Statement founder;
    store_le(founder.node.data(), static_cast<std::uint32_t>(i));
    std::reverse(founder.node.begin(), founder.node.begin() + 4);  // ascending
    Register what;
    what.delegation.node_key = founder.node;
    what.delegation.wallet_key = founder.node;
    what.delegation.network_id = rules.network;
    what.delegation.expires = WallTime(std::chrono::milliseconds(2 * ChainFixture::begin_ms));
    what.beacon = beacon.commitment();
    founder.what = what;
    genesis.founders.push_back(founder);
  }
  genesis.anchors.emplace_back();
  BlockBody body;
  body.genesis = genesis;
  std::optional<Proposed> first;
  const double begun =
      seconds_of([&] { first = *apply_genesis(rules, ChainFixture::begin_ms, body, checks); });
  QCOMPARE(first->registry->members().size(), count);
  const Registry& registry = *first->registry;
  const Hash256 hash = block_hash(first->header, rules.network);
  const CommitteePtr committee = make_committee(rules, registry);
  QCOMPARE(committee->size(), max_committee);

  BlockBody closing;
  closing.close.emplace();
  closing.close->round = 1;
  std::vector<std::uint32_t> numbers;
  for (const MemberRecord& member : registry.members()) {
    numbers.push_back(member.number);
    ContributionEntry entry;
    entry.member = member.number;
    entry.tokens = 500;
    entry.reveal = *beacon.reveal(1);
    closing.close->contributions.push_back(entry);
  }
  for (const CommitteeMember& voter : committee->members()) {
    Vector vector;
    vector.opening = hash;
    vector.round = 1;
    vector.voter = voter.number;
    vector.members = numbers;
    vector.payloads.assign(1, Bitmap(numbers.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i) vector.payloads[0].set(i);
    closing.close->vectors.push_back(std::move(vector));
  }
  std::optional<Proposed> closed, resulted, presence;
  const double closing_time = seconds_of(
      [&] { closed = *apply_body(rules, registry, hash, ChainFixture::begin_ms + 1, closing, checks); });
  const Hash256 closed_hash = block_hash(closed->header, rules.network);
  QCOMPARE(closed->registry->closed()->contributors[0].size(), count);
  BlockBody resulting;
  resulting.result = ResultSection{1, {{0, false, Hash256{1}, Hash256{1}, 1}}};
  const double result_time = seconds_of([&] {
    resulted =
        *apply_body(rules, *closed->registry, closed_hash, ChainFixture::begin_ms + 2, resulting, checks);
  });
  const Hash256 result_hash = block_hash(resulted->header, rules.network);
  BlockBody silent;
  silent.silent = {committee->members()[0].number};
  const double silent_time = seconds_of([&] {
    presence =
        *apply_body(rules, *resulted->registry, result_hash, ChainFixture::begin_ms + 3, silent, checks);
  });
  QCOMPARE(presence->registry->round(), 1u);
  qInfo(
      "10,000 members, without signatures: genesis %.3f s, close %.3f s, result %.3f s, presence %.3f s; "
      "registry %.2f MB, body of the close %.2f MB",
      begun, closing_time, result_time, silent_time,
      static_cast<double>(presence->registry->encode().size()) / 1e6,
      static_cast<double>(encode_body(closing).size()) / 1e6);
}

NS_TEST(TestChainRegistryReplay)
#include "test_registry_replay.moc"
