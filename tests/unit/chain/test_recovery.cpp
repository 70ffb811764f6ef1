// A chain goes on without voters that are gone: by a person's decision, with the signatures of all that go on.
#include <QtTest>

#include "core/chain/recovery.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/small_chain.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using small::Chain;

namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Numbers = std::vector<std::uint32_t>;
using Heard = std::set<std::uint32_t>;

MonotonicTime at(Duration since_start) {
  return MonotonicTime(std::chrono::hours(1) + since_start);
}

// One member with its own copy of the chain.
struct Node {
  Chain& chain;
  std::uint32_t number;
  History history;
  Heard heard;
  Duration now = seconds(100);
  Recovery recovery;
  Node(Chain& of, std::uint32_t which, History with)
      : chain(of),
        number(which),
        history(std::move(with)),
        recovery(of.rules, {}, of.parties[which].node, of.checks) {}
  const ChainTip& tip() const { return history.tip(); }
  Recovery::Situation situation() const {
    return {tip(), heard, at(now),
            WallTime(milliseconds(small::first_ms) + std::chrono::duration_cast<milliseconds>(now))};
  }
  Expected<Recovery::Output> without(const Numbers& numbers) {
    std::vector<net::NodeId> ids;
    for (const std::uint32_t each : numbers) ids.push_back(chain.parties[each].id);
    return recovery.continue_without(ids, situation());
  }
  Verdict take(const Recovery::Output& from, Recovery::Output* output) {
    return recovery.take(*from.proposal, situation(), output);
  }
};

struct Fixture {
  Chain chain;
  std::vector<CertifiedBlock> blocks;  // all but the genesis
  History history;
  explicit Fixture(std::size_t founders) : chain(founders), history(chain.begin()) {}
  explicit Fixture(std::vector<small::Party> parties) : chain(std::move(parties)), history(chain.begin()) {}
  void grow(BlockBody body) {
    blocks.push_back(chain.certified(history.tip(), std::move(body)));
    QVERIFY(history.append(blocks.back()).ok());
  }
  void away(std::uint32_t number) { grow(chain.away(history.tip(), number)); }
  // A node that has the first `known` blocks.
  Node node(std::uint32_t number, Heard heard, std::size_t known = SIZE_MAX) {
    History copy = chain.begin();
    for (std::size_t i = 0; i < std::min(known, blocks.size()); ++i) (void)copy.append(blocks[i]);
    Node made(chain, number, std::move(copy));
    made.heard = std::move(heard);
    return made;
  }
};

Numbers continuing_of(const Recovery::Output& output) {
  return output.proposal ? output.proposal->block->body.succession->continuing : Numbers{};
}

}  // namespace

class TestRecovery : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_outlook_says_whether_a_person_is_needed();
  void one_of_two_goes_on_alone();
  void all_that_go_on_sign();
  void a_dormant_voter_counts_among_them();
  void after_thirty_days_of_dormancy_it_does_not();
  void what_the_person_names_is_checked();
  void a_succession_is_not_for_networks_that_go_on();
  void another_person_is_asked();
  void a_node_of_the_same_wallet_signs_at_once();
  void nobody_signs_against_a_voter_that_it_hears();
  void proposals_that_do_not_hold_are_refused();
  void two_decisions_at_once_become_one();
  void the_first_to_return_waits_or_goes_on();
  void the_last_one_out_has_the_certified_blocks();
  void an_unsigned_succession_needs_the_person();
  void a_succession_that_others_adopted_asks_the_person();
  void of_two_successions_units_then_hash_decide();
  void it_is_repeated_and_released();
};

void TestRecovery::the_outlook_says_whether_a_person_is_needed() {
  const auto of = [](std::size_t founders, VotersMode mode, std::uint64_t wallets) {
    Chain chain(founders, mode);
    return outlook(*chain.begin().tip().committee, wallets * units_per_wallet);
  };
  QVERIFY(of(3, VotersMode::Open, 3) == Outlook::Certifies);
  QVERIFY(of(3, VotersMode::Open, 2) == Outlook::AfterStall);
  QVERIFY(of(3, VotersMode::Open, 1) == Outlook::NeedsAPerson);
  QVERIFY(of(2, VotersMode::Invited, 1) == Outlook::NeedsAPerson);
  QVERIFY(of(5, VotersMode::Open, 3) == Outlook::NeedsAPerson);
  QVERIFY(of(5, VotersMode::Invited, 3) == Outlook::AfterStall);
  QVERIFY(of(1, VotersMode::Open, 0) == Outlook::NeedsAPerson);
}

void TestRecovery::one_of_two_goes_on_alone() {
  Fixture f(2);
  Node node = f.node(0, {});
  const auto output = node.without({1});
  QVERIFY(output.ok());
  QVERIFY(output->complete.has_value());
  QVERIFY(output->to.empty());
  QVERIFY(node.recovery.may_adopt(*output->complete->block));
  QVERIFY(node.history.append(*output->complete).ok());
  node.recovery.on_tip(node.tip());
  QCOMPARE(node.tip().committee->size(), std::size_t{1});
  QVERIFY(node.tip().registry->find(1)->presence == Presence::Dormant);
  // It trains on alone.
  QVERIFY(node.history.append(f.chain.certified(node.tip(), f.chain.round_step(node.tip()))).ok());
  QVERIFY(!node.recovery.tick(at(minutes(5))).proposal);
}

void TestRecovery::all_that_go_on_sign() {
  Fixture f(5);
  Node a = f.node(0, {1}), b = f.node(1, {0});
  const auto begun = a.without({2, 3, 4});
  QVERIFY(begun.ok());
  QVERIFY(!begun->complete);
  QCOMPARE(continuing_of(*begun), (Numbers{0, 1}));
  QCOMPARE(begun->to, std::vector<net::NodeId>{f.chain.parties[1].id});

  Recovery::Output output;
  QCOMPARE(b.take(*begun, &output), Verdict::Taken);
  QVERIFY(!output.proposal);
  output = b.recovery.agree(begun->proposal->block->hash, b.situation());
  QVERIFY(output.complete.has_value());
  QCOMPARE(output.to, std::vector<net::NodeId>{f.chain.parties[0].id});
  Recovery::Output completed;
  QCOMPARE(a.take(output, &completed), Verdict::Taken);
  QVERIFY(completed.complete.has_value());
  QCOMPARE(*completed.complete->certificate, *output.complete->certificate);
  QVERIFY(a.history.append(*completed.complete).ok());
  QVERIFY(b.history.append(*output.complete).ok());
  QCOMPARE(a.tip().committee->units(), std::uint64_t{24});
  QCOMPARE(a.take(output, &completed), Verdict::Known);
}

void TestRecovery::a_dormant_voter_counts_among_them() {
  Fixture f(4);
  f.away(2);
  f.away(3);
  Node node = f.node(0, {2});  // hears one that is dormant, and not the other active one
  const auto output = node.without({1});
  QVERIFY(output.ok());
  QCOMPARE(continuing_of(*output), (Numbers{0, 2}));
  // It answers, but does not sign: the person goes on without it too.
  QCOMPARE(continuing_of(*node.without({1, 2})), Numbers{0});
}

// The days count up to the last block: the chain goes on where it stopped.
void TestRecovery::after_thirty_days_of_dormancy_it_does_not() {
  Fixture f(3);
  f.away(2);
  const std::uint64_t away_ms = f.history.tip().block->header.time_ms;
  f.blocks.push_back(f.chain.certified(f.history.tip(), f.chain.round_step(f.history.tip()), {},
                                       away_ms + return_right_ms - 1));
  QVERIFY(f.history.append(f.blocks.back()).ok());
  Node node = f.node(0, {2});
  node.now = std::chrono::hours(24 * 90);
  QCOMPARE(continuing_of(*node.without({1})), (Numbers{0, 2}));

  Fixture late(3);
  late.away(2);
  late.blocks.push_back(late.chain.certified(late.history.tip(), late.chain.round_step(late.history.tip()),
                                             {}, away_ms + return_right_ms));
  QVERIFY(late.history.append(late.blocks.back()).ok());
  Node other = late.node(0, {2});
  QCOMPARE(continuing_of(*other.without({1})), Numbers{0});
}

void TestRecovery::what_the_person_names_is_checked() {
  Fixture f(4);
  Node node = f.node(0, {1});
  QCOMPARE(node.recovery.continue_without({small::party_of(99).id}, node.situation()).error().code,
           ErrorCode::NotFound);
  QCOMPARE(node.without({0, 2, 3}).error().code, ErrorCode::Denied);  // itself
  QCOMPARE(node.without({1, 2, 3}).error().code, ErrorCode::Denied);  // answers
  QCOMPARE(node.without({2}).error().code, ErrorCode::Unavailable);   // another is silent as well
  QVERIFY(QString::fromStdString(node.without({2}).error().message)
              .contains(QString::fromStdString(to_hex(f.chain.parties[3].id))));
  QVERIFY(node.without({2, 3}).ok());
  // A candidate has no vote to go on with.
  Recovery stranger(f.chain.rules, {}, small::party_of(50).node, f.chain.checks);
  QCOMPARE(stranger.continue_without({f.chain.parties[2].id, f.chain.parties[3].id}, node.situation())
               .error()
               .code,
           ErrorCode::Denied);
}

void TestRecovery::a_succession_is_not_for_networks_that_go_on() {
  Fixture f(3);
  Node node = f.node(0, {1});
  QCOMPARE(node.without({2}).error().code, ErrorCode::Denied);  // two of three: the stall rule does it
  // And another node does not sign it.
  Recovery::Output made;
  SuccessionProposal proposal;
  proposal.block = f.chain.succession(f.history.tip(), {0, 1}).block;
  proposal.signatures = f.chain.sign(*proposal.block, VoteStep::Succession, 0, {1});
  QCOMPARE(node.recovery.take(proposal, node.situation(), &made), Verdict::Inadmissible);
}

void TestRecovery::another_person_is_asked() {
  Fixture f(5);
  Node a = f.node(0, {1}), b = f.node(1, {0});
  const auto begun = *a.without({2, 3, 4});
  Recovery::Output output;
  QVERIFY(b.recovery.asks() == nullptr);
  QCOMPARE(b.take(begun, &output), Verdict::Taken);
  QCOMPARE(b.recovery.asks()->hash, begun.proposal->block->hash);
  QCOMPARE(b.take(begun, &output), Verdict::Known);
  QVERIFY(!output.proposal);
  QVERIFY(!b.recovery.tick(at(minutes(2))).proposal);
  // A person's word about another block is none about this one.
  QVERIFY(!b.recovery.agree(Hash256{1}, b.situation()).proposal);
  QVERIFY(b.recovery.asks() != nullptr);
  QVERIFY(b.recovery.agree(begun.proposal->block->hash, b.situation()).complete.has_value());
  QVERIFY(b.recovery.asks() == nullptr);

  // A new block ends it.
  Node c = f.node(1, {0});
  QCOMPARE(c.take(begun, &output), Verdict::Taken);
  QVERIFY(c.history.append(f.chain.flip(c.tip())).ok());
  c.recovery.on_tip(c.tip());
  QVERIFY(c.recovery.asks() == nullptr);
  QCOMPARE(c.take(begun, &output), Verdict::Past);
}

void TestRecovery::a_node_of_the_same_wallet_signs_at_once() {
  std::vector<small::Party> parties;
  for (const std::uint16_t number : {0, 1, 2}) parties.push_back(small::party_of(number));
  parties.push_back(small::party_of(3, 0));
  Fixture f(std::move(parties));
  // The two nodes of one wallet, whatever their numbers are.
  Numbers own, others;
  const auto& members = f.history.tip().registry->members();
  for (const MemberRecord& member : members) {
    const bool shared = std::count_if(members.begin(), members.end(), [&](const MemberRecord& each) {
                          return each.wallet == member.wallet;
                        }) == 2;
    (shared ? own : others).push_back(member.number);
  }
  Node a = f.node(own[0], {own[1]}), b = f.node(own[1], {own[0]});
  const auto begun = a.without(others);
  QVERIFY(begun.ok());
  Recovery::Output output;
  QCOMPARE(b.take(*begun, &output), Verdict::Taken);
  QVERIFY(output.complete.has_value());
  QVERIFY(a.history.append(*output.complete).ok());
}

void TestRecovery::nobody_signs_against_a_voter_that_it_hears() {
  Fixture f(5);
  Node a = f.node(0, {1}), b = f.node(1, {0, 2});
  const auto begun = *a.without({2, 3, 4});
  Recovery::Output output;
  QCOMPARE(b.take(begun, &output), Verdict::Busy);
  QVERIFY(b.recovery.asks() == nullptr);
  b.heard = {0};
  QCOMPARE(b.take(begun, &output), Verdict::Taken);
  b.heard = {0, 2};  // and before its person has agreed, it is there again
  QVERIFY(!b.recovery.agree(begun.proposal->block->hash, b.situation()).proposal);
}

void TestRecovery::proposals_that_do_not_hold_are_refused() {
  Fixture f(5);
  f.away(4);
  Node a = f.node(0, {1}), b = f.node(1, {0});
  const SuccessionProposal good = *a.without({2, 3})->proposal;
  Recovery::Output output;
  const auto verdict = [&](Node& node, const SuccessionProposal& proposal) {
    return node.recovery.take(proposal, node.situation(), &output);
  };
  SuccessionProposal none = good;
  none.signatures.signatures.clear();
  QCOMPARE(verdict(b, none), Verdict::BadSignature);
  SuccessionProposal forged = good;
  forged.signatures.signatures[0].signature[0] ^= 1;
  QCOMPARE(verdict(b, forged), Verdict::BadSignature);
  SuccessionProposal outsider = good;  // signed by one that it leaves out
  outsider.signatures = f.chain.sign(*good.block, VoteStep::Succession, 0, {2});
  QCOMPARE(verdict(b, outsider), Verdict::Inadmissible);
  SuccessionProposal mixed = good;
  mixed.signatures.step = VoteStep::Commit;
  QCOMPARE(verdict(b, mixed), Verdict::Malformed);
  Node left_out = f.node(2, {});
  QCOMPARE(verdict(left_out, good), Verdict::NotMember);
  Node behind = f.node(1, {0}, 0);
  QCOMPARE(verdict(behind, good), Verdict::Later);
  SuccessionProposal wrong = good;  // another registry than the one that follows
  BlockHeader header = good.block->header;
  header.registry[0] ^= 1;
  wrong.block = make_block(header, good.block->body, good.block->opening, small::network);
  wrong.signatures = f.chain.sign(*wrong.block, VoteStep::Succession, 0, {0});
  QCOMPARE(verdict(b, wrong), Verdict::Inadmissible);
  SuccessionProposal early = good;
  early.block = f.chain.succession(a.tip(), {0, 1}, small::first_ms + 200'000).block;
  early.signatures = f.chain.sign(*early.block, VoteStep::Succession, 0, {0});
  QCOMPARE(verdict(b, early), Verdict::Busy);
  SuccessionProposal never = good;  // a time that is negative as a signed number
  never.block = f.chain.succession(a.tip(), {0, 1}, std::uint64_t{1} << 63).block;
  never.signatures = f.chain.sign(*never.block, VoteStep::Succession, 0, {0});
  QCOMPARE(verdict(b, never), Verdict::Busy);
  QVERIFY(!output.proposal && b.recovery.asks() == nullptr);
  QCOMPARE(verdict(b, good), Verdict::Taken);
}

// Both persons give the same command: the blocks differ by their time, and one of them is signed by both.
void TestRecovery::two_decisions_at_once_become_one() {
  Fixture f(5);
  Node a = f.node(0, {1}), b = f.node(1, {0});
  b.now += seconds(1);
  Recovery::Output of_a = *a.without({2, 3, 4}), of_b = *b.without({2, 3, 4});
  QVERIFY(of_a.proposal->block->hash != of_b.proposal->block->hash);
  Recovery::Output answer_a, answer_b;
  const Verdict by_b = b.take(of_a, &answer_b), by_a = a.take(of_b, &answer_a);
  const bool a_is_lower = of_a.proposal->block->hash < of_b.proposal->block->hash;
  QCOMPARE(by_b, a_is_lower ? Verdict::Taken : Verdict::Busy);
  QCOMPARE(by_a, a_is_lower ? Verdict::Busy : Verdict::Taken);
  const Recovery::Output& answer = a_is_lower ? answer_b : answer_a;
  QVERIFY(answer.complete.has_value());
  QCOMPARE(answer.complete->block->hash, std::min(of_a.proposal->block->hash, of_b.proposal->block->hash));
  QVERIFY(a.history.append(*answer.complete).ok());
  QVERIFY(b.history.append(*answer.complete).ok());
}

// Two nodes leave one after the other. The last one out is the only active voter.
void TestRecovery::the_first_to_return_waits_or_goes_on() {
  Fixture f(2);
  f.away(0);
  Node first = f.node(0, {});
  const ChainTip& tip = first.tip();
  QCOMPARE(tip.committee->units_of(0), std::uint32_t{0});
  QVERIFY(outlook(*tip.committee, 0) == Outlook::NeedsAPerson);
  // It can't say Back by itself.
  const BlockBody back = f.chain.back(tip, 0);
  const BlockPtr alone = f.chain.block(tip, back);
  const Quorum commits = f.chain.sign(*alone, VoteStep::Commit, 0, {0});
  QVERIFY(!first.history.append(make_certified(alone, {commits, {}})).ok());
  // It waits: the other one returns, and its block takes it in.
  Node waits = f.node(0, {1});
  QCOMPARE(waits.without({1}).error().code, ErrorCode::Denied);
  QVERIFY(waits.history.append(f.chain.certified(tip, back, {1})).ok());
  QCOMPARE(waits.tip().committee->size(), std::size_t{2});
  // Or its person goes on without that one.
  const auto output = first.without({1});
  QVERIFY(output.ok() && output->complete);
  QVERIFY(first.history.append(*output->complete).ok());
  QCOMPARE(first.tip().committee->units_of(0), units_per_wallet);
}

void TestRecovery::the_last_one_out_has_the_certified_blocks() {
  Fixture f(2);
  f.away(0);
  Node first = f.node(0, {});
  // Unknown to the first, the last one has gone on before it left.
  f.grow(f.chain.round_step(f.history.tip()));
  QVERIFY(first.history.append(*first.without({1})->complete).ok());
  QVERIFY(first.tip().block->hash != f.history.tip().block->hash);
  QVERIFY(first.history.replace_succession(f.blocks.back()).ok());
  QCOMPARE(first.tip().block->hash, f.history.tip().block->hash);
  QVERIFY(first.recovery.may_adopt(*f.blocks.back().block));
}

void TestRecovery::an_unsigned_succession_needs_the_person() {
  Fixture f(5);
  Node left_out = f.node(2, {});
  const CertifiedBlock made = f.chain.succession(f.history.tip(), {0, 1});
  QVERIFY(!left_out.recovery.may_adopt(*made.block));
  QVERIFY(!left_out.recovery.agree(made.block->hash, left_out.situation()).proposal);
  QVERIFY(left_out.recovery.may_adopt(*made.block));
  QVERIFY(left_out.history.append(made).ok());
  QVERIFY(!left_out.recovery.may_adopt(*f.chain.succession(f.history.tip(), {0, 3}).block));
}

// As of a member that was left out and returns, or of a newcomer.
void TestRecovery::a_succession_that_others_adopted_asks_the_person() {
  Fixture f(5);
  Node left_out = f.node(2, {});
  const CertifiedBlock smaller = f.chain.succession(f.history.tip(), {0});
  const CertifiedBlock made = f.chain.succession(f.history.tip(), {0, 1});
  QVERIFY(left_out.history.check_next(made).ok());
  for (const CertifiedBlock& block : {smaller, made, smaller})
    left_out.recovery.others_adopted(block.block, *left_out.tip().registry);
  QVERIFY(left_out.recovery.asks() == made.block);  // it has more units
  QVERIFY(!left_out.recovery.may_adopt(*made.block));
  QVERIFY(!left_out.recovery.agree(left_out.recovery.asks()->hash, left_out.situation()).proposal);
  QVERIFY(left_out.recovery.asks() == nullptr && left_out.recovery.may_adopt(*made.block));
  QVERIFY(left_out.history.append(made).ok());
  QVERIFY(!left_out.history.check_next(made).ok());
  // A block of its height ends the question.
  Node other = f.node(3, {});
  other.recovery.others_adopted(made.block, *other.tip().registry);
  f.grow(f.chain.round_step(f.history.tip()));
  QVERIFY(other.history.append(f.blocks.back()).ok());
  other.recovery.on_tip(other.tip());
  QVERIFY(other.recovery.asks() == nullptr);
}

void TestRecovery::of_two_successions_units_then_hash_decide() {
  std::vector<small::Party> parties;
  for (const std::uint16_t number : {0, 1, 2, 3}) parties.push_back(small::party_of(number));
  parties.push_back(small::party_of(4, 0));
  Fixture f(std::move(parties));
  const Registry& registry = *f.history.tip().registry;
  std::map<std::uint32_t, Numbers> nodes;
  for (const MemberRecord& member : registry.members()) nodes[member.wallet].push_back(member.number);
  Numbers of_one, of_two;
  for (const auto& [wallet, numbers] : nodes) {
    if (numbers.size() == 2) of_one = numbers;
    if (numbers.size() == 1 && of_two.size() < 2) of_two.push_back(numbers[0]);
  }
  std::sort(of_two.begin(), of_two.end());
  // Units belong to wallets, so two nodes of one have the units of one.
  QCOMPARE(continuing_units(registry, of_one), std::uint64_t{12});
  QCOMPARE(continuing_units(registry, of_two), std::uint64_t{24});
  const CertifiedBlock one = f.chain.succession(f.history.tip(), of_one);
  const CertifiedBlock two = f.chain.succession(f.history.tip(), of_two);
  const CertifiedBlock again = f.chain.succession(f.history.tip(), of_two, small::first_ms + 9000);
  QVERIFY(beats_succession(*two.block, *one.block, registry));
  QVERIFY(!beats_succession(*one.block, *two.block, registry));
  QCOMPARE(beats_succession(*two.block, *again.block, registry), two.block->hash < again.block->hash);
  QVERIFY(beats_succession(*two.block, *again.block, registry) !=
          beats_succession(*again.block, *two.block, registry));
  QVERIFY(!beats_succession(*two.block, *two.block, registry));
  const CertifiedBlock certified = f.chain.flip(f.history.tip());
  QVERIFY(beats_succession(*certified.block, *two.block, registry));
}

void TestRecovery::it_is_repeated_and_released() {
  Fixture f(5);
  Node a = f.node(0, {1});
  const Hash256 block = a.without({2, 3, 4})->proposal->block->hash;
  QVERIFY(!a.recovery.tick(at(a.now + seconds(2))).proposal);
  const auto repeated = a.recovery.tick(at(a.now + seconds(3)));
  QVERIFY(repeated.proposal && repeated.proposal->block->hash == block);
  QVERIFY(!a.recovery.tick(at(a.now + seconds(4))).proposal);
  // While it signs this one, it signs no other.
  SuccessionProposal other;
  other.block = f.chain.succession(f.history.tip(), {0, 4}).block;
  other.signatures = f.chain.sign(*other.block, VoteStep::Succession, 0, {4});
  Recovery::Output output;
  QCOMPARE(a.recovery.take(other, a.situation(), &output), Verdict::Busy);
  a.now += minutes(10);
  QVERIFY(!a.recovery.tick(at(a.now)).proposal);
  QCOMPARE(a.recovery.take(other, {a.tip(), {}, at(a.now), a.situation().wall}, &output), Verdict::Taken);
  QCOMPARE(a.recovery.asks()->hash, other.block->hash);
}

NS_TEST(TestRecovery)
#include "test_recovery.moc"
