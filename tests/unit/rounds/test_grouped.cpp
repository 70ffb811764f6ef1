// Rounds of two levels, piece by piece: dealing, the body and what is refused of it, the two combinations.
#include <QtTest>
#include <cmath>
#include <set>

#include "core/crypto/hash.h"
#include "core/rounds/chain.h"
#include "core/rounds/grouped_commons.h"
#include "core/rounds/grouped_messages.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::rounds;

namespace {

Hash256 network_of(std::uint8_t value) {
  Hash256 network{};
  network.fill(value);
  return network;
}

crypto::KeyPair key(std::uint64_t number) {
  Bytes bytes;
  append_le(bytes, number);
  return crypto::KeyPair::from_seed(crypto::sha256(bytes));
}

// Members with their keys, in the roster's order.
struct People {
  explicit People(std::size_t n) {
    std::vector<RoundMember> members;
    std::map<net::NodeId, crypto::KeyPair> by_id;
    for (std::size_t i = 0; i < n; ++i) {
      crypto::KeyPair k = key(i);
      members.push_back(make_member(k.public_key()));
      by_id.emplace(members.back().id, std::move(k));
    }
    roster = make_roster(std::move(members));
    for (const RoundMember& member : roster->members) keys.push_back(std::move(by_id.at(member.id)));
    deal = make_deal(network_of(7), 3, {}, roster);
  }
  RosterPtr roster;
  std::vector<crypto::KeyPair> keys;
  std::shared_ptr<const Deal> deal;
  bool all_there = false;  // else one of each sub-group has not contributed

  // The result of a sub-group, signed by `signers` of it.
  GroupResult result(std::uint16_t group, std::size_t signers) const {
    GroupResult result;
    result.group = group;
    RoundBody& body = result.certificate.body;
    body.round = deal->round;
    body.previous = group_beacon(deal->previous, group);
    body.anchor = network_of(static_cast<std::uint8_t>(group + 1));
    body.tokens = 100;
    body.members = *deal->groups[group];
    for (std::uint16_t i = 0; i + (all_there ? 0u : 1u) < body.members.size(); ++i)
      body.contributors.push_back({i, 10, 50, network_of(static_cast<std::uint8_t>(i))});
    const RoundVote vote{VoteStep::Commit, {}, body.round, 0, body_hash(body)};
    for (std::uint16_t i = 0; i < signers; ++i)
      result.certificate.signatures.push_back(
          {i, sign_vote(vote, keys[roster_index(*roster, body.members[i].id)], network_of(1))});
    return result;
  }
  GroupedBody body(std::size_t groups) const {
    GroupedBody body;
    body.round = deal->round;
    body.previous = deal->previous;
    body.roster = roster->hash;
    body.anchor = network_of(9);
    body.tokens = 100 * groups;
    for (std::uint16_t g = 0; g < groups; ++g)
      body.groups.push_back(result(g, quorum_size(deal->groups[g]->size())));
    return body;
  }
};

// The next round of two levels of a chain whose members are these people, signed by enough of them.
RoundLink next_link(People& people, const RoundChain& chain, std::uint64_t rounds_later = 1) {
  people.all_there = true;
  people.deal =
      make_deal(chain.tip_hash(), chain.tip().round + rounds_later, {}, make_roster(chain.members()));
  GroupedBody body = people.body(people.deal->groups.size());
  body.roster = people.deal->roster->hash;
  body.tokens += chain.tip().tokens;
  const auto content = std::make_shared<const Bytes>(encode_grouped_body(body));
  const RoundBody name = grouped_name(body, crypto::sha256(*content));
  RoundQuorum certificate{name, 0, {}};
  const RoundVote vote{VoteStep::Commit, {}, name.round, 0, body_hash(name)};
  for (std::uint16_t i = 0; i < quorum_size(people.keys.size()); ++i)
    certificate.signatures.push_back({i, sign_vote(vote, people.keys[i], network_of(1))});
  return {certificate, content, people.deal->roster};
}

RoundChain chain_of(const People& people) {
  std::vector<crypto::PublicKey> keys;
  for (const RoundMember& member : people.roster->members) keys.push_back(member.key);
  return RoundChain(network_of(1), genesis_body({}, network_of(9), keys));
}

Payload aggregate(std::size_t values, float value, float noise) {
  std::vector<float> delta(values);
  for (std::size_t i = 0; i < values; ++i) delta[i] = value + noise * static_cast<float>(i % 7);
  return std::make_shared<const Bytes>(*outer::encode(aggregate_codec, delta));
}

}  // namespace

class TestRoundsGrouped : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void everybody_is_dealt_into_one_sub_group();
  void a_dealing_follows_from_the_round_before();
  void a_body_comes_back_as_it_was();
  void what_is_not_signed_is_refused();
  void a_certificate_counts_members_not_sub_groups();
  void who_misses_two_rounds_goes();
  void one_bad_sub_group_does_not_steer();
  void posts_come_back_as_they_were();
  void a_chain_has_rounds_of_two_levels();
  void a_newcomer_is_shown_a_few_of_them();
  void what_a_chain_does_not_take();
};

void TestRoundsGrouped::everybody_is_dealt_into_one_sub_group() {
  for (std::size_t n = 1; n <= max_grouped_members; ++n) {
    const std::size_t groups = group_count(n);
    if (n < least_grouped_members) {
      QCOMPARE(groups, std::size_t(1));
      continue;
    }
    QVERIFY2(n / groups >= 8 && (n + groups - 1) / groups <= max_group_members,
             qPrintable(QString::number(n)));
    QVERIFY(groups <= outer::max_contributions);
  }
  const People people(101);
  std::set<net::NodeId> seen;
  for (std::size_t g = 0; g < people.deal->groups.size(); ++g) {
    QCOMPARE(people.deal->groups[g]->size(), people.deal->speakers[g].size());
    for (const RoundMember& member : *people.deal->groups[g]) {
      QVERIFY(seen.insert(member.id).second);
      QCOMPARE(std::size_t(people.deal->group_of[roster_index(*people.roster, member.id)]), g);
    }
  }
  QCOMPARE(seen.size(), std::size_t(101));
}

void TestRoundsGrouped::a_dealing_follows_from_the_round_before() {
  const People people(60);
  const auto again = make_deal(network_of(7), 3, {}, people.roster);
  const auto other = make_deal(network_of(8), 3, {}, people.roster);
  QCOMPARE(again->group_of, people.deal->group_of);
  QVERIFY(other->group_of != people.deal->group_of);
  QVERIFY(make_deal(network_of(7), 4, {}, people.roster)->group_of != people.deal->group_of);
  // Two that were together are rarely together again.
  std::size_t together = 0, still = 0;
  for (std::size_t i = 0; i < 60; ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (people.deal->group_of[i] == people.deal->group_of[j]) {
        ++together;
        still += other->group_of[i] == other->group_of[j];
      }
  QVERIFY(3 * still < together);
}

void TestRoundsGrouped::a_body_comes_back_as_it_was() {
  const People people(40);
  GroupedBody body = people.body(4);
  const auto joiner = key(1000);
  body.changes.push_back(sign_change(RoundChange::Kind::Join, {}, 2, joiner, network_of(1)));
  const Bytes bytes = encode_grouped_body(body);
  const auto read = decode_grouped_body(bytes, *people.deal);
  QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
  QCOMPARE(encode_grouped_body(*read), bytes);
  QVERIFY(check_groups(*read, *people.deal, network_of(1)).ok());
  // Linear in the members: no list of them, none of their signatures twice.
  QVERIFY2(bytes.size() < 110 * 40 + 400, qPrintable(QString::number(bytes.size())));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    QVERIFY2(!decode_grouped_body(ByteSpan(bytes).first(size), *people.deal).ok(),
             "a part was read as the whole");
  Bytes longer = bytes;
  longer.push_back(0);
  QVERIFY(!decode_grouped_body(longer, *people.deal).ok());
  // What any byte says matters: it is refused, or another body with wrong signatures.
  GroupedCommons commons(network_of(1));
  for (std::size_t at = 0; at < bytes.size(); at += 5) {
    Bytes changed = bytes;
    changed[at] ^= 1;
    const auto other = decode_grouped_body(changed, *people.deal);
    QVERIFY(!other.ok() || encode_grouped_body(*other) == changed);
  }
  const auto elsewhere = make_deal(network_of(8), 3, {}, people.roster);
  QCOMPARE(decode_grouped_body(bytes, *elsewhere).error().code, ErrorCode::Denied);
}

void TestRoundsGrouped::what_is_not_signed_is_refused() {
  const People people(40);
  GroupedBody body = people.body(4);
  const std::size_t members = people.deal->groups[1]->size();
  QVERIFY(check_groups(body, *people.deal, network_of(1)).ok());
  QVERIFY(!check_groups(body, *people.deal, network_of(2)).ok());
  body.groups[1] = people.result(1, quorum_size(members) - 1);
  QCOMPARE(check_groups(body, *people.deal, network_of(1)).error().code, ErrorCode::Denied);
  body.groups[1] = people.result(1, quorum_size(members));
  body.groups[1].certificate.body.anchor[0] ^= 1;
  QVERIFY(!check_groups(body, *people.deal, network_of(1)).ok());
  // A sub-group's certificate means nothing in another one's place.
  body = people.body(4);
  std::swap(body.groups[0].certificate, body.groups[1].certificate);
  QVERIFY(!check_groups(body, *people.deal, network_of(1)).ok());
  // Somebody else's wish to leave.
  body = people.body(4);
  RoundChange change = sign_change(RoundChange::Kind::Leave, {}, 2, people.keys[0], network_of(1));
  body.changes = {change};
  QVERIFY(check_groups(body, *people.deal, network_of(1)).ok());
  body.changes[0].key = people.keys[1].public_key();
  QVERIFY(!check_groups(body, *people.deal, network_of(1)).ok());
}

// All of four sub-groups of five: more than two thirds of the sub-groups, and not of the members when one of
// the signatures is missing.
void TestRoundsGrouped::a_certificate_counts_members_not_sub_groups() {
  const People people(40);
  GroupedCommons commons(network_of(1));
  const auto content = std::make_shared<const Bytes>(encode_grouped_body(people.body(4)));
  RoundQuorum certificate{grouped_name(people.body(4), crypto::sha256(*content)), 2, {}};
  const RoundVote vote{VoteStep::Commit, {}, 3, 2, body_hash(certificate.body)};
  for (std::uint16_t i = 0; i < quorum_size(40); ++i)
    certificate.signatures.push_back({i, sign_vote(vote, people.keys[i], network_of(1))});
  const auto link = commons.link(certificate, content, *people.deal);
  QVERIFY2(link.ok(), link.ok() ? "" : link.error().message.c_str());
  QCOMPARE((*link)->tip, body_hash(certificate.body));
  auto fewer = certificate;
  fewer.signatures.pop_back();
  QCOMPARE(commons.link(fewer, content, *people.deal).error().code, ErrorCode::Denied);
  auto prepares = certificate;
  const RoundVote prepare{VoteStep::Prepare, {}, 3, 2, body_hash(certificate.body)};
  for (auto& s : prepares.signatures) s.signature = sign_vote(prepare, people.keys[s.member], network_of(1));
  QVERIFY(!commons.link(prepares, content, *people.deal).ok());
  QVERIFY(commons.check(prepares, VoteStep::Prepare, *people.deal).ok());
  // Another content under the same certificate.
  GroupedBody other = people.body(4);
  other.anchor[0] ^= 1;
  QVERIFY(!commons.link(certificate, std::make_shared<const Bytes>(encode_grouped_body(other)), *people.deal)
               .ok());
}

void TestRoundsGrouped::who_misses_two_rounds_goes() {
  const People people(40);
  const GroupedBody body = people.body(4);  // of five sub-groups; the last of each did not contribute
  const RosterPtr next = next_roster(*people.deal, body);
  QCOMPARE(next->members.size(), std::size_t(40));
  std::size_t missed = 0;
  for (const RoundMember& member : next->members) missed += member.missed;
  QCOMPARE(missed, std::size_t(4));  // nobody of the sub-group that is left out
  Deal later = *people.deal;
  later.roster = next;
  const RosterPtr last = next_roster(later, body);
  QCOMPARE(last->members.size(), std::size_t(36));
  GroupedBody joined = body;
  joined.changes = {sign_change(RoundChange::Kind::Join, {}, 2, key(1000), network_of(1)),
                    sign_change(RoundChange::Kind::Leave, {}, 2, people.keys[0], network_of(1))};
  const RosterPtr changed = next_roster(*people.deal, joined);
  QCOMPARE(changed->members.size(), std::size_t(40));
  QVERIFY(roster_index(*changed, crypto::node_id(key(1000).public_key())) < 40);
  QCOMPARE(roster_index(*changed, people.roster->members[0].id), std::size_t(40));
  QVERIFY(changed->hash != next->hash);
  const auto read = decode_roster(encode_roster(*changed));
  QVERIFY(read.ok() && (*read)->hash == changed->hash);
}

void TestRoundsGrouped::one_bad_sub_group_does_not_steer() {
  constexpr std::size_t values = 300;
  OuterState before;
  before.weights.assign(values, 0.0f);
  before.momentum.assign(values, 0.0f);
  OuterRules rules;
  rules.lr = 1.0f;
  rules.mu = 0.0f;
  for (const std::size_t groups : {3u, 4u, 5u, 8u, 20u}) {
    std::vector<GroupInput> inputs;
    for (std::size_t g = 0; g < groups; ++g)
      inputs.push_back({static_cast<std::uint16_t>(g), 100, 8,
                        g == 1 ? aggregate(values, -500.0f, 1) : aggregate(values, 1.0f, 0.01f)});
    const auto step = make_top_step(rules, {}, before, inputs, 1000);
    QVERIFY(step.ok());
    for (const float weight : step->state->weights)
      QVERIFY2(weight < -0.2f && weight > -1.5f, qPrintable(QString::number(weight)));
  }
  // Two can't outvote each other: the mean, and no more than that is promised.
  const auto two =
      make_top_step(rules, {}, before,
                    {{0, 100, 8, aggregate(values, 1.0f, 0)}, {1, 200, 8, aggregate(values, 3.0f, 0)}}, 1000);
  QVERIFY(two.ok() && std::fabs(two->state->weights[0] + 7.0f / 3) < 0.05f);
  auto rubbish = std::make_shared<Bytes>(*aggregate(values, 1, 0));
  rubbish->back() ^= 1;
  QCOMPARE(make_top_step(rules, {}, before, {{0, 1, 8, rubbish}}, 1).error().code, ErrorCode::Denied);
}

void TestRoundsGrouped::posts_come_back_as_they_were() {
  const People people(20);
  RoundQuorum quorum{grouped_name(people.body(2), network_of(3)), 4, {{1, {}}, {19, {}}}};
  CollectedVotes votes{{VoteStep::Prepare, {}, 3, 1, network_of(4)}, {{2, {}}, {9, {}}}};
  const std::vector<GroupedPost> posts = {GroupPost{{1, 2, 3}},
                                          GroupedProposal{true, 2, {}, {9, 9}, quorum},
                                          GroupedProposal{false, 0, {}, {9}, std::nullopt},
                                          GroupedLock{true, quorum},
                                          GroupedCertificate{false, quorum},
                                          votes,
                                          people.result(1, 7),
                                          NewViewPost{{}, 3, 2, quorum}};
  for (const GroupedPost& post : posts) {
    const Bytes bytes = encode_grouped_post(post);
    const auto read = decode_grouped_post(bytes);
    QVERIFY2(read.ok(), qPrintable(QString::number(post.index())));
    QCOMPARE(read->index(), post.index());
    QCOMPARE(encode_grouped_post(*read), bytes);
    QVERIFY(!decode_item(bytes).ok());  // small groups refuse it
    if (post.index() == 0) continue;    // whatever is in it is for decode_item
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto part = decode_grouped_post(ByteSpan(bytes).first(size));
      QVERIFY(!part.ok() || encode_grouped_post(*part).size() == size);
    }
  }
  // What a small group would take for its own.
  QVERIFY(!decode_quorum(encode_quorum(quorum)).ok());
  QVERIFY(decode_quorum(encode_quorum(quorum), true).ok());
}

void TestRoundsGrouped::a_chain_has_rounds_of_two_levels() {
  People people(20);
  RoundChain chain = chain_of(people);
  GroupedCommons commons(network_of(1));
  for (int round = 1; round <= 3; ++round) QVERIFY(chain.add(next_link(people, chain), commons).ok());
  // As if all were one group.
  QCOMPARE(chain.tip().round, std::uint64_t(3));
  QCOMPARE(chain.tip().members.size(), std::size_t(20));
  QCOMPARE(chain.tip().contributors.size(), std::size_t(20));
  QVERIFY(chain.tip().anchor == network_of(9) && chain.tip_grouped() != nullptr);
  const auto kept = RoundChain::decode(network_of(1), chain.encode());
  QVERIFY(kept.ok());
  QVERIFY(kept->tip_hash() == chain.tip_hash() && kept->members() == chain.members() &&
          kept->tip() == chain.tip() && kept->genesis() == chain.genesis());
  const auto link = decode_link(encode_link(chain.tip_link()));
  QVERIFY(link.ok() && *link == chain.tip_link());
}

void TestRoundsGrouped::a_newcomer_is_shown_a_few_of_them() {
  People people(17);
  RoundChain chain = chain_of(people);
  GroupedCommons commons(network_of(1));
  for (int round = 1; round <= 30; ++round) QVERIFY(chain.add(next_link(people, chain), commons).ok());
  const auto answer = decode_chain_answer(encode_chain_answer(chain.answer(0)));
  QVERIFY(answer.ok() && !answer->more);
  QVERIFY2(answer->links.size() <= recent_grouped + 2, qPrintable(QString::number(answer->links.size())));
  RoundChain newcomer(network_of(1), answer->links.front().certificate.body);
  for (std::size_t i = 1; i < answer->links.size(); ++i)
    QVERIFY(newcomer.add(answer->links[i], commons).ok());
  QVERIFY(newcomer.tip_hash() == chain.tip_hash() && newcomer.members() == chain.members());
}

void TestRoundsGrouped::what_a_chain_does_not_take() {
  People people(17);
  const RoundChain chain = chain_of(people);
  GroupedCommons commons(network_of(1));
  const auto refused = [&](const RoundLink& link) {
    RoundChain copy = chain;
    const auto added = copy.add(link, commons);
    return !added.ok() && added.error().code == ErrorCode::Denied && copy.tip_hash() == chain.tip_hash();
  };
  RoundLink good = next_link(people, chain);
  RoundLink without = good;
  without.content = nullptr;
  QVERIFY(refused(without));
  RoundLink unsigned_ = good;
  unsigned_.certificate.signatures.pop_back();
  QVERIFY(refused(unsigned_));
  RoundLink other = good;
  Bytes changed = *good.content;
  changed[80] ^= 1;  // of the roster's hash or the anchor
  other.content = std::make_shared<const Bytes>(changed);
  QVERIFY(refused(other));
  // Over a gap its members have to be shown, and to be those that are known.
  RoundLink later = next_link(people, chain, 2);
  RoundLink bare = later;
  bare.roster = nullptr;
  QVERIFY(refused(bare));
  People others(18);
  RoundLink foreign = later;
  foreign.roster = others.roster;
  QVERIFY(refused(foreign));
  // Too few for two levels, whatever they sign.
  People few(9);
  RoundChain of_few = chain_of(few);
  QCOMPARE(of_few.add(next_link(few, of_few), commons).error().code, ErrorCode::Denied);
  RoundChain copy = chain;
  QVERIFY(copy.add(good, commons).ok() && copy.add(good, commons).error().code == ErrorCode::AlreadyExists);
}

NS_TEST(TestRoundsGrouped)
#include "test_grouped.moc"
