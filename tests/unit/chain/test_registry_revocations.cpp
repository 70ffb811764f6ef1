// A wallet revokes a node key: from the next block on the node is no member, and the key never registers for this
// wallet again. Only the wallet can do that, in this history, and not without bounds.
#include <QtTest>

#include "core/base/byte_reader.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using namespace neuroshard::chain::testing;

namespace {

// A network of founders, whose first wallet has two nodes with votes.
struct Village {
  ChainFixture chain = ChainFixture(small_rules(VotersMode::Invited, 1));  // without open rows
  std::vector<std::size_t> founders = chain.add_nodes(4);
  std::size_t twin = chain.add_node_of(chain.wallet_index(founders[0]));

  Village() {
    if (!chain.begin(founders).ok() || !chain.join(twin)) qFatal("no village");
    if (!chain.round_of(founders) || !chain.round_of({twin, founders[1]})) qFatal("no rounds");
  }
  std::string refusal(const Statement& statement) const {
    return chain.refusal(ChainFixture::body_of({statement}));
  }
};

void append_key(Bytes& bytes, std::uint32_t number) {
  crypto::PublicKey key{};
  key[0] = static_cast<std::uint8_t>(number >> 8);  // keys ascend by their first bytes
  key[1] = static_cast<std::uint8_t>(number);
  append_array(bytes, key);
}

// The same registry with so many revocations, of wallets of its own: the count is its last field, as there are no open rows.
RegistryPtr with_revocations(const Registry& registry, std::uint32_t count, const crypto::PublicKey& wallet) {
  Bytes bytes = registry.encode();
  bytes.resize(bytes.size() - 4);
  append_le(bytes, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    append_key(bytes, i);
    append_array(bytes, wallet);
    append_le(bytes, std::uint64_t{1000} - i % 1000);  // the oldest one is not the first
  }
  auto read = Registry::decode(bytes);
  if (!read.ok()) qFatal("%s", read.error().message.c_str());
  return *read;
}

}  // namespace

class TestChainRegistryRevocations : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_revoked_node_is_no_member_from_the_next_block_on();
  void its_key_never_registers_for_this_wallet_again();
  void in_mid_round_nothing_of_it_enters_a_close();
  void a_closed_round_keeps_what_it_counted();
  void the_units_of_its_wallet_go_to_its_other_nodes();
  void only_its_wallet_can_revoke_it();
  void it_holds_in_one_history_for_eight_blocks();
  void the_last_voter_is_not_revoked();
  void it_takes_effect_inside_an_epoch();
  void evidence_comes_first_and_later_finds_no_member();
  void a_network_with_few_active_voters_takes_it();
  void it_is_no_presence_change();
  void a_wallet_revokes_a_bounded_number();
  void a_full_registry_forgets_those_that_never_voted();
  void it_is_in_the_root_and_in_the_file();
};

void TestChainRegistryRevocations::a_revoked_node_is_no_member_from_the_next_block_on() {
  Village v;
  const std::size_t stolen = v.founders[3];
  const std::uint32_t number = v.chain.number(stolen);
  QVERIFY(v.chain.revoke(stolen));
  QVERIFY(v.chain.member(stolen) == nullptr);
  QVERIFY(!v.chain.committee()->position(number));
  QCOMPARE(v.chain.committee()->units(), 36u);
  const RevocationRecord* record = v.chain.registry().revocation(v.chain.key(stolen).public_key(),
                                                                 v.chain.wallet_key(stolen).public_key());
  QVERIFY(record != nullptr);
  QCOMPARE(record->height, v.chain.registry().height());
  // A founder's wallet keeps its right to vote.
  QVERIFY(v.chain.wallet(stolen)->founder && !v.chain.is_voter(stolen) && !v.chain.wallet(stolen)->expelled);
  QVERIFY(v.chain.round_of({v.founders[0], v.founders[1], v.founders[2], v.twin}));
  for (const auto& refused : {v.chain.refusal(stolen, Away{}), v.chain.refusal(stolen, Leave{}),
                              v.chain.refusal(stolen, Commit{BeaconChain(Hash256{5}, 9, 9).commitment()})})
    QCOMPARE(refused, std::string("the node is not a member"));
}

void TestChainRegistryRevocations::its_key_never_registers_for_this_wallet_again() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(3);
  QVERIFY(chain.begin(founders).ok());
  const std::string refused = "the wallet revoked this node key";
  // Of a founder.
  QVERIFY(chain.revoke(founders[2]));
  QCOMPARE(chain.refusal(founders[2], chain.registration(founders[2])), refused);
  Register later = chain.registration(founders[2]);
  later.delegation = crypto::delegate(chain.wallet_key(founders[2]), chain.key(founders[2]).public_key(),
                                      chain.rules().network,
                                      WallTime(std::chrono::milliseconds(ChainFixture::begin_ms * 3)), 99);
  QCOMPARE(chain.refusal(founders[2], later), refused);
  QCOMPARE(chain.refusal(ChainFixture::body_of({chain.revocation(founders[2])})),
           std::string("the wallet has revoked this node key already"));
  // The wallet goes on with another key.
  const std::size_t fresh = chain.add_node_of(chain.wallet_index(founders[2]));
  QVERIFY(chain.join(fresh));
  QVERIFY(chain.is_voter(fresh));
  // Of a candidate, whose wallet nobody remembers.
  const std::size_t candidate = chain.add_node();
  QVERIFY(chain.join(candidate));
  QVERIFY(chain.revoke(candidate));
  QVERIFY(chain.wallet(candidate) == nullptr);
  QCOMPARE(chain.refusal(candidate, chain.registration(candidate)), refused);
  for (int year = 0; year < 12; ++year)
    QVERIFY(chain.say(founders[0], Away{}, 366ull * 24 * 3600 * 1000) && chain.say(founders[0], Back{}));
  QCOMPARE(chain.refusal(candidate, chain.registration(candidate, founders[0], 1)), refused);
  // A thief can use the key for a wallet of its own, and gains nothing that a new key would not give.
  Register own = chain.registration(candidate);
  own.delegation =
      crypto::delegate(test::key_numbered(999), chain.key(candidate).public_key(), chain.rules().network,
                       WallTime(std::chrono::milliseconds(ChainFixture::begin_ms * 2)), 1);
  QCOMPARE(chain.refusal(candidate, own), std::string());
}

void TestChainRegistryRevocations::in_mid_round_nothing_of_it_enters_a_close() {
  Village v;
  const std::size_t stolen = v.founders[3];
  BlockBody with;
  with.close = v.chain.close({{v.founders[0]}, {v.founders[1]}, {v.founders[2]}, {stolen}});
  QCOMPARE(v.chain.refusal(with), std::string());
  // Vectors that name it were signed before; its own is no more from the committee.
  BlockBody left_out = with;
  const std::uint32_t number = v.chain.number(stolen);
  std::erase_if(left_out.close->vectors, [&](const Vector& vector) { return vector.voter == number; });
  BlockBody with_its_vector = with;
  with_its_vector.close->vectors.pop_back();  // of another voter: a committee of four has no five
  QVERIFY(v.chain.revoke(stolen));
  QCOMPARE(v.chain.refusal(with), std::string("a close has too many vectors"));
  QCOMPARE(v.chain.refusal(with_its_vector), std::string("a vector is not from the committee"));
  QCOMPARE(v.chain.refusal(left_out), std::string("a contribution is from no member"));
  std::erase_if(left_out.close->contributions,
                [&](const ContributionEntry& entry) { return entry.member == number; });
  QCOMPARE(v.chain.refusal(left_out), std::string());
}

void TestChainRegistryRevocations::a_closed_round_keeps_what_it_counted() {
  Village v;
  const std::size_t stolen = v.founders[3];
  const std::uint32_t number = v.chain.number(stolen);
  // In one block with the close, which the registry before it judges.
  BlockBody closing = ChainFixture::body_of({v.chain.revocation(stolen)});
  closing.close = v.chain.close({{v.founders[0]}, {v.founders[1]}, {stolen}});
  QVERIFY(v.chain.append(closing).ok());
  const auto& contributors = v.chain.registry().closed()->contributors[0];
  QVERIFY(std::binary_search(contributors.begin(), contributors.end(), number));
  QVERIFY(v.chain.member(stolen) == nullptr);
  BlockBody resulting;
  resulting.result = v.chain.result();
  QVERIFY(v.chain.append(resulting).ok());
  QVERIFY(v.chain.round_of({v.founders[0], v.founders[1], v.founders[2], v.twin}));
}

void TestChainRegistryRevocations::the_units_of_its_wallet_go_to_its_other_nodes() {
  Village v;
  QCOMPARE(v.chain.units(v.founders[0]), 6u);
  QCOMPARE(v.chain.units(v.twin), 6u);
  QVERIFY(v.chain.revoke(v.founders[0]));
  QCOMPARE(v.chain.units(v.twin), 12u);
  QCOMPARE(v.chain.committee()->units(), 48u);
  QVERIFY(v.chain.is_voter(v.twin));
}

void TestChainRegistryRevocations::only_its_wallet_can_revoke_it() {
  Village v;
  const std::size_t node = v.founders[3], stranger = v.chain.add_node();
  const BlockReference now{v.chain.registry().height(), v.chain.hash()};
  QCOMPARE(v.refusal(v.chain.revocation_at(node, now, v.chain.wallet_key(v.founders[0]))),
           std::string("the node works for another wallet"));
  QCOMPARE(v.refusal(v.chain.revocation(stranger)), std::string("the node is not a member"));
  QCOMPARE(v.refusal(v.chain.revocation_at(stranger, now, v.chain.wallet_key(node))),
           std::string("the node is not a member"));
  // The node key does not do, and neither does a changed signature.
  QCOMPARE(v.refusal(v.chain.statement(node, Revoke{v.chain.wallet_key(node).public_key()})),
           std::string("a signature of a member's statement does not hold"));
  Statement forged = v.chain.revocation(node);
  forged.signature[9] ^= 1;
  QCOMPARE(v.refusal(forged), std::string("a signature of a member's statement does not hold"));
  QCOMPARE(v.refusal(v.chain.revocation(node)), std::string());
}

void TestChainRegistryRevocations::it_holds_in_one_history_for_eight_blocks() {
  Village v;
  const std::size_t node = v.founders[3];
  ChainFixture other(small_rules(), 500);
  QVERIFY(other.begin(other.add_nodes(2)).ok());
  const std::string refused = "the statement names no recent block of this history";
  QCOMPARE(v.refusal(v.chain.revocation_at(node, {v.chain.registry().height(), other.hash()},
                                           v.chain.wallet_key(node))),
           refused);
  const Statement revocation = v.chain.revocation(node);
  for (int block = 0; block < 7; ++block) QVERIFY(v.chain.join(v.chain.add_node()));
  QCOMPARE(v.refusal(revocation), std::string());
  QVERIFY(v.chain.join(v.chain.add_node()));
  QCOMPARE(v.refusal(revocation), refused);
}

void TestChainRegistryRevocations::the_last_voter_is_not_revoked() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(2);
  QVERIFY(chain.begin(nodes).ok());
  const BlockBody both = ChainFixture::body_of({chain.revocation(nodes[0]), chain.revocation(nodes[1])});
  const std::string refused = "the last active voter can't be revoked";
  QCOMPARE(chain.refusal(both), refused);
  const BlockBody kept =
      applicable(chain.rules(), chain.registry(), chain.hash(), chain.registry().time_ms() + 1, both);
  QCOMPARE(kept.statements.size(), std::size_t{1});
  // A dormant one can be.
  QVERIFY(chain.say(nodes[1], Away{}));
  QCOMPARE(chain.refusal(ChainFixture::body_of({chain.revocation(nodes[0])})), refused);
  QVERIFY(chain.revoke(nodes[1]));
}

void TestChainRegistryRevocations::it_takes_effect_inside_an_epoch() {
  NoChecks checks;
  ChainFixture chain(small_rules(VotersMode::Invited, 1));
  chain.set_checks(checks);
  QVERIFY(chain.begin(chain.add_nodes(520)).ok());
  const std::vector<std::uint32_t> drawn = chain.registry().epoch_committee();
  QCOMPARE(chain.committee()->size(), max_committee);
  QVERIFY(chain.revoke(chain.node_of(drawn[0])));
  QVERIFY(chain.registry().epoch_committee() == drawn);
  QCOMPARE(chain.committee()->size(), max_committee - 1);
  QVERIFY(!chain.committee()->position(drawn[0]));
}

void TestChainRegistryRevocations::evidence_comes_first_and_later_finds_no_member() {
  Village v;
  const std::size_t node = v.founders[3];
  BlockBody both = ChainFixture::body_of({v.chain.revocation(node)});
  both.evidence = {evidence_of(v.chain.contribution(node, 1), v.chain.contribution(node, 2))};
  QCOMPARE(v.chain.refusal(both), std::string("the node is not a member"));
  const BlockBody kept =
      applicable(v.chain.rules(), v.chain.registry(), v.chain.hash(), v.chain.registry().time_ms() + 1, both);
  QVERIFY(kept.statements.empty() && kept.evidence.size() == 1);
  // A thief that equivocates afterwards does not expel the wallet.
  QVERIFY(v.chain.revoke(node));
  BlockBody late;
  late.evidence = both.evidence;
  QCOMPARE(v.chain.refusal(late), std::string("the evidence is against no member"));
}

void TestChainRegistryRevocations::a_network_with_few_active_voters_takes_it() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(5);
  QVERIFY(chain.begin(nodes).ok());
  for (const std::size_t at : {4, 3, 2}) QVERIFY(chain.say(nodes[at], Away{}));
  QVERIFY(chain.registry().is_restricted());
  QVERIFY(chain.revoke(nodes[1]));
  QCOMPARE(chain.committee()->size(), std::size_t{1});
  QVERIFY(chain.revoke(nodes[4]));
}

void TestChainRegistryRevocations::it_is_no_presence_change() {
  Village v;
  BlockBody body = ChainFixture::body_of({v.chain.statement(v.founders[1], Away{})});
  QVERIFY(body.is_presence_only());
  body.statements.push_back(v.chain.revocation(v.founders[3]));
  QVERIFY2(!body.is_presence_only(), "a stall quorum would suffice");
}

void TestChainRegistryRevocations::a_wallet_revokes_a_bounded_number() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(2);
  QVERIFY(chain.begin(founders).ok());
  std::vector<std::size_t> nodes;
  for (std::size_t i = 0; i <= max_wallet_revocations; ++i)
    nodes.push_back(chain.add_node_of(chain.wallet_index(founders[1])));
  BlockBody joining, leaving;
  for (const std::size_t node : nodes)
    joining.statements.push_back(chain.statement(node, chain.registration(node)));
  QVERIFY(chain.append(joining).ok());
  for (const std::size_t node : nodes) leaving.statements.push_back(chain.revocation(node));
  QCOMPARE(chain.refusal(leaving),
           std::string("the wallet has revoked as many nodes as it can: move to a new wallet"));
  leaving.statements.pop_back();
  QVERIFY(chain.append(leaving).ok());
  QCOMPARE(chain.registry().revocations().size(), max_wallet_revocations);
  // Others have room.
  QVERIFY(!chain.revoke(founders[1]));
  const std::size_t other = chain.add_node();
  QVERIFY(chain.join(other) && chain.revoke(other));
}

void TestChainRegistryRevocations::a_full_registry_forgets_those_that_never_voted() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(3);
  QVERIFY(chain.begin(founders).ok());
  const auto revoke_in = [&](const Registry& full, std::size_t node) {
    const BlockBody body = ChainFixture::body_of({chain.revocation(node)});
    SignatureChecks checks;
    return apply_body(chain.rules(), full, chain.hash(), full.time_ms() + 1, body, checks);
  };
  const RegistryPtr strangers = with_revocations(chain.registry(), max_revocations, {});
  const auto next = revoke_in(*strangers, founders[2]);
  QVERIFY2(next.ok(), next.ok() ? "" : next.error().message.c_str());
  const std::vector<RevocationRecord>& kept = next->registry->revocations();
  QCOMPARE(kept.size(), max_revocations);
  QVERIFY(next->registry->revocation(chain.key(founders[2]).public_key(),
                                     chain.wallet_key(founders[2]).public_key()) != nullptr);
  // The first one of the oldest height is gone.
  QVERIFY(strangers->revocations()[999].height == 1 && kept[999].height != 1);
  QVERIFY(Registry::decode(next->registry->encode()).ok());

  const RegistryPtr voters =
      with_revocations(chain.registry(), max_revocations, chain.wallet_key(founders[1]).public_key());
  const auto refused = revoke_in(*voters, founders[2]);
  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().message, std::string("the registry has no room for a revocation"));
}

void TestChainRegistryRevocations::it_is_in_the_root_and_in_the_file() {
  Village v;
  const Registry& registry = v.chain.registry();
  const RegistryPtr one = with_revocations(registry, 1, {}), two = with_revocations(registry, 2, {});
  QVERIFY(one->root() != registry.root() && two->root() != one->root());
  QVERIFY(with_revocations(registry, 0, {})->root() == registry.root());
  QCOMPARE((*Registry::decode(two->encode()))->revocations(), two->revocations());
  // Ascending, each once.
  const Bytes right = two->encode();
  Bytes twice = right;
  std::copy(right.end() - 144, right.end() - 72, twice.end() - 72);
  QCOMPARE(Registry::decode(twice).error().message,
           std::string("the registry's records contradict each other"));
  Bytes older = right;
  older[4] = 1;
  QCOMPARE(Registry::decode(older).error().code, ErrorCode::Unsupported);
}

NS_TEST(TestChainRegistryRevocations)
#include "test_registry_revocations.moc"
