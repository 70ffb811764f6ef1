// Certificates, their chain, and the messages of a round: what is written is read again, and what somebody
// made up, changed, repeated or copied is refused with its reason.
#include <QtTest>

#include "core/crypto/hash.h"
#include "core/rounds/chain.h"
#include "core/rounds/contributions.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::rounds;

namespace {

Hash256 filled(std::uint8_t value) {
  Hash256 hash{};
  hash.fill(value);
  return hash;
}
const Hash256 network = filled(7);

crypto::KeyPair key(std::uint8_t number) {
  return crypto::KeyPair::from_seed(filled(number));
}

std::vector<crypto::PublicKey> keys(std::uint8_t count, std::uint8_t first = 1) {
  std::vector<crypto::PublicKey> all;
  for (std::uint8_t i = 0; i < count; ++i)
    all.push_back(key(static_cast<std::uint8_t>(first + i)).public_key());
  return all;
}

// Which of the keys `first` … a member is.
crypto::KeyPair key_of(const RoundMember& member) {
  for (std::uint8_t i = 1; i < 100; ++i)
    if (key(i).public_key() == member.key) return key(i);
  qFatal("nobody's key");
}

RoundBody next_body(const RoundChain& chain, std::vector<std::size_t> contributors,
                    std::vector<RoundChange> changes = {}) {
  RoundBody body;
  body.slot = chain.slot();
  body.round = chain.tip().round + 1;
  body.previous = chain.tip_hash();
  body.anchor = filled(static_cast<std::uint8_t>(100 + body.round));
  body.members = chain.members();
  for (const std::size_t i : contributors)
    body.contributors.push_back(
        {static_cast<std::uint16_t>(i), 10, 1000, filled(static_cast<std::uint8_t>(i))});
  body.tokens = chain.tip().tokens + 1000 * contributors.size();
  std::sort(changes.begin(), changes.end(), [](const RoundChange& a, const RoundChange& b) {
    return crypto::node_id(a.key) < crypto::node_id(b.key);
  });
  body.changes = std::move(changes);
  return body;
}

RoundCertificate certify(const RoundBody& body, std::size_t signers, VoteStep step = VoteStep::Commit,
                         const Hash256& net = network) {
  RoundCertificate certificate{body, 3, {}};
  const RoundVote vote{step, body.slot, body.round, 3, body_hash(body)};
  for (std::size_t i = 0; i < signers; ++i)
    certificate.signatures.push_back(
        {static_cast<std::uint16_t>(i), sign_vote(vote, key_of(body.members[i]), net)});
  return certificate;
}

RoundChain chain_of(std::uint8_t members) {
  return RoundChain(network, genesis_body({}, filled(9), keys(members)));
}

ContributionRules rules() {
  ContributionRules r;
  r.network = network;
  r.codec.codec = outer::Codec::Fp32;
  r.values = 8;
  r.inner_steps = 100;
  r.most_tokens = 1000;
  return r;
}

struct Sent {
  Contribution contribution;
  Bytes payload;
};
Sent sent(std::uint8_t from, std::uint8_t value, const std::function<void(Contribution&)>& change = {}) {
  Sent s;
  s.payload = Bytes(40, value);
  Contribution& c = s.contribution;
  c.round = 5;
  c.base = filled(50);
  c.tokens = 900;
  c.steps = 100;
  c.codec = outer::Codec::Fp32;
  c.payload_bytes = s.payload.size();
  c.payload = crypto::sha256(s.payload);
  c.sequence = 5;
  if (change) change(c);
  sign_contribution(c, key(from), network);
  return s;
}

RoundContributions round_five(std::map<net::NodeId, std::uint64_t> sequences = {}) {
  return RoundContributions(rules(), 5, filled(50), genesis_body({}, {}, keys(4)).members,
                            std::move(sequences));
}

}  // namespace

class TestRoundsMessages : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void certificates_are_written_and_read();
  void a_changed_byte_never_passes();
  void too_few_wrong_and_foreign_signatures();
  void members_change_as_the_certificates_say();
  void a_chain_follows_its_members_only();
  void a_chain_with_gaps();
  void a_chain_is_kept();
  void histories_are_compared();
  void leaders_take_turns();
  void every_item_is_written_and_read();
  void contributions_are_refused_with_a_reason_data();
  void contributions_are_refused_with_a_reason();
  void two_payloads_exclude_their_sender();
  void a_copied_payload_is_the_first_ones();
};

void TestRoundsMessages::certificates_are_written_and_read() {
  const RoundChain chain = chain_of(4);
  const RoundChange join = sign_change(RoundChange::Kind::Join, {}, 0, key(9), network);
  const RoundCertificate certificate = certify(next_body(chain, {0, 2, 3}, {join}), 3);
  const Bytes bytes = encode_quorum(certificate);
  const auto read = decode_quorum(bytes);
  QVERIFY(read.ok());
  QVERIFY(*read == certificate);
  QVERIFY(check_quorum(*read, VoteStep::Commit, network).ok());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    QVERIFY2(!decode_quorum(ByteSpan(bytes).first(size)).ok(), "a part was read as the whole");
  Bytes longer = bytes;
  longer.push_back(0);
  QVERIFY(!decode_quorum(longer).ok());
}

void TestRoundsMessages::a_changed_byte_never_passes() {
  RoundChain chain = chain_of(4);
  const Bytes bytes = encode_quorum(certify(next_body(chain, {0, 1, 2}), 3));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    Bytes changed = bytes;
    changed[i] ^= static_cast<std::uint8_t>(1u << (i % 8));
    const auto read = decode_quorum(changed);
    QVERIFY2(!read.ok() || !chain.add(*read).ok(), qPrintable(QString("byte %1").arg(i)));
  }
  QVERIFY(chain.add(*decode_quorum(bytes)).ok());
}

void TestRoundsMessages::too_few_wrong_and_foreign_signatures() {
  const RoundChain chain = chain_of(4);
  const RoundBody body = next_body(chain, {0, 1, 2, 3});
  QVERIFY(check_quorum(certify(body, 3), VoteStep::Commit, network).ok());
  QVERIFY(!check_quorum(certify(body, 2), VoteStep::Commit, network).ok());  // half are not two thirds
  QVERIFY(!check_quorum(certify(body, 3, VoteStep::Prepare), VoteStep::Commit, network).ok());
  QVERIFY(!check_quorum(certify(body, 3, VoteStep::Commit, filled(8)), VoteStep::Commit, network).ok());
  RoundCertificate twice = certify(body, 2);
  twice.signatures.push_back(twice.signatures.back());
  QVERIFY(!decode_quorum(encode_quorum(twice)).ok());
  RoundCertificate view = certify(body, 3);
  view.view = 4;  // of another view: other votes
  QVERIFY(!check_quorum(view, VoteStep::Commit, network).ok());
  for (std::size_t n = 1; n <= 64; ++n)
    QVERIFY(3 * quorum_size(n) > 2 * n && 3 * (quorum_size(n) - 1) <= 2 * n);
}

void TestRoundsMessages::members_change_as_the_certificates_say() {
  RoundChain chain = chain_of(4);
  const net::NodeId silent = chain.members()[3].id;
  QVERIFY(chain.add(certify(next_body(chain, {0, 1, 2}), 3)).ok());
  QCOMPARE(chain.members().size(), std::size_t(4));
  QCOMPARE(chain.members()[3].missed, std::uint8_t(1));
  const RoundChange join = sign_change(RoundChange::Kind::Join, {}, 1, key(9), network);
  QVERIFY(chain.add(certify(next_body(chain, {0, 1, 2}, {join}), 3)).ok());
  QCOMPARE(chain.members().size(), std::size_t(4));  // one expelled after two rounds, one joined
  QCOMPARE(member_index(chain.members(), silent), std::size_t(4));
  QVERIFY(member_index(chain.members(), crypto::node_id(key(9).public_key())) < 4);
  const crypto::KeyPair leaver = key_of(chain.members()[0]);
  const RoundChange leave = sign_change(RoundChange::Kind::Leave, {}, 2, leaver, network);
  QVERIFY(chain.add(certify(next_body(chain, {0, 1, 2, 3}, {leave}), 3)).ok());
  QCOMPARE(chain.members().size(), std::size_t(3));
  QVERIFY(change_holds(leave, {}, 3, network));
  QVERIFY(!change_holds(leave, {}, 2 + change_life + 1, network));  // an old wish
  QVERIFY(!change_holds(leave, {}, 3, filled(8)));
}

void TestRoundsMessages::a_chain_follows_its_members_only() {
  RoundChain chain = chain_of(4);
  // Strangers who certify among themselves: a local view of who is a member.
  RoundBody strangers = next_body(chain, {0, 1, 2, 3});
  strangers.members = genesis_body({}, {}, keys(4, 20)).members;
  QVERIFY(check_quorum(certify(strangers, 4), VoteStep::Commit, network).ok());
  QCOMPARE(chain.add(certify(strangers, 4)).error().code, ErrorCode::Denied);
  // Two of the four, who take themselves for all.
  RoundBody half = next_body(chain, {0, 1});
  half.members.resize(2);
  QCOMPARE(chain.add(certify(half, 2)).error().code, ErrorCode::Denied);
  RoundBody elsewhere = next_body(chain, {0, 1, 2});
  elsewhere.previous = filled(1);
  QCOMPARE(chain.add(certify(elsewhere, 3)).error().code, ErrorCode::Denied);
  const RoundCertificate good = certify(next_body(chain, {0, 1, 2}), 3);
  QVERIFY(chain.add(good).ok());
  QCOMPARE(chain.add(good).error().code, ErrorCode::AlreadyExists);
}

// Years of rounds: a newcomer gets the changes of members and the newest, and needs no more.
void TestRoundsMessages::a_chain_with_gaps() {
  RoundChain chain = chain_of(3);
  for (int round = 1; round <= 300; ++round) {
    std::vector<RoundChange> changes;
    if (round == 50) changes.push_back(sign_change(RoundChange::Kind::Join, {}, 49, key(9), network));
    const std::size_t n = chain.members().size();
    std::vector<std::size_t> all(n);
    std::iota(all.begin(), all.end(), std::size_t(0));
    QVERIFY(chain.add(certify(next_body(chain, all, changes), quorum_size(n))).ok());
  }
  ChainAnswer answer = chain.answer(0);
  QCOMPARE(answer.links.front().certificate.body.round, std::uint64_t(0));
  RoundChain newcomer(network, answer.links.front().certificate.body);
  QVERIFY(newcomer.genesis() == chain.genesis());
  std::size_t carried = 0;
  for (bool first = true;; first = false) {
    const auto read = decode_chain_answer(encode_chain_answer(answer));
    QVERIFY(read.ok());
    for (std::size_t i = first ? 1 : 0; i < read->links.size(); ++i, ++carried)
      QVERIFY(newcomer.add(read->links[i].certificate).ok());
    if (!read->more) break;
    answer = chain.answer(newcomer.tip().round + 1);
  }
  QVERIFY(newcomer.tip_hash() == chain.tip_hash());
  QVERIFY2(carried <= recent_certificates + 2, qPrintable(QString::number(carried)));
  // Without the change of members, the later ones are not believed.
  RoundChain other(network, chain.answer(0).links.front().certificate.body);
  QCOMPARE(other.add(chain.tip_link().certificate).error().code, ErrorCode::Denied);
}

void TestRoundsMessages::a_chain_is_kept() {
  RoundChain chain = chain_of(4);
  for (int i = 0; i < 3; ++i) QVERIFY(chain.add(certify(next_body(chain, {0, 1, 2, 3}), 3)).ok());
  const Bytes bytes = chain.encode();
  const auto read = RoundChain::decode(network, bytes);
  QVERIFY(read.ok());
  QVERIFY(read->tip_hash() == chain.tip_hash() && read->members() == chain.members());
  for (std::size_t i = 0; i < bytes.size(); i += 13) {
    Bytes torn = bytes;
    torn[i] ^= 1;
    QVERIFY(!RoundChain::decode(network, torn).ok());
    QVERIFY(!RoundChain::decode(network, ByteSpan(bytes).first(i)).ok());
  }
}

void TestRoundsMessages::histories_are_compared() {
  RoundStatus none, one, more, low;
  none.tokens = 1'000'000;
  none.genesis = filled(1);
  one.round = 1;
  one.tokens = 10;
  one.genesis = filled(5);
  more = one;
  more.tokens = 11;
  more.genesis = filled(6);
  low = one;
  low.genesis = filled(4);
  QVERIFY(better_branch(one, none) && !better_branch(none, one));  // certified beats provisional
  QVERIFY(better_branch(more, one) && !better_branch(one, more));
  QVERIFY(better_branch(low, one) && !better_branch(one, low));
  RoundStatus shared = one;
  shared.shared_rounds = 1;
  QVERIFY(better_branch(shared, more) && !better_branch(more, shared));  // signed by others, too
  QVERIFY(!better_branch(one, one));
}

void TestRoundsMessages::leaders_take_turns() {
  const auto members = genesis_body({}, {}, keys(8)).members;
  std::vector<int> first(8);
  for (std::uint64_t round = 1; round <= 400; ++round) {
    const auto order = leader_order(filled(3), round, {}, members);
    auto sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < 8; ++i) QCOMPARE(sorted[i], i);
    ++first[order[0]];
  }
  for (const int count : first) QVERIFY2(count > 20 && count < 90, qPrintable(QString::number(count)));
}

void TestRoundsMessages::every_item_is_written_and_read() {
  const RoundChain chain = chain_of(4);
  const RoundBody body = next_body(chain, {0, 1, 2});
  const RoundQuorum lock = certify(body, 3, VoteStep::Prepare);
  const Sent a = sent(1, 1), b = sent(1, 2);
  const RoundVote vote{VoteStep::Commit, {RoundSlot::Kind::Layer, 3, 0}, 7, 2, filled(4)};
  const RoundItem items[] = {ContributionPost{a.contribution, a.payload},
                             ContributionPost{a.contribution, {}},
                             ProposalPost{2, body, std::nullopt},
                             ProposalPost{4, body, lock},
                             VotePost{vote, {2, sign_vote(vote, key(1), network)}},
                             NewViewPost{{}, 1, 5, std::nullopt},
                             NewViewPost{{}, 1, 5, lock},
                             CertificatePost{certify(body, 4)},
                             ChangePost{{}, sign_change(RoundChange::Kind::Leave, {}, 1, key(2), network)},
                             EvidencePost{a.contribution, b.contribution}};
  for (const RoundItem& item : items) {
    const Bytes bytes = encode_item(item);
    const auto read = decode_item(bytes);
    QVERIFY(read.ok());
    QCOMPARE(read->index(), item.index());
    QVERIFY(encode_item(*read) == bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      // A payload may be left out as a whole: it is fetched then.
      if (item.index() == 0 && size == 1 + contribution_bytes) continue;
      QVERIFY(!decode_item(ByteSpan(bytes).first(size)).ok());
    }
  }
  RoundStatus status{3, filled(1), filled(2), 99, filled(3), 4, RoundPhase::Agreeing, true};
  QVERIFY(*decode_status(encode_status(status)) == status);
  QVERIFY(decode_status(encode_status({})).ok());
  const FetchRequest fetch{{}, FetchRequest::What::Chunk, filled(1), 12};
  QVERIFY(encode_fetch_request(*decode_fetch_request(encode_fetch_request(fetch))) ==
          encode_fetch_request(fetch));
}

void TestRoundsMessages::contributions_are_refused_with_a_reason_data() {
  QTest::addColumn<int>("kind");
  QTest::addColumn<int>("verdict");
  const auto row = [](const char* name, int kind, Verdict verdict) {
    QTest::newRow(name) << kind << static_cast<int>(verdict);
  };
  row("good", 0, Verdict::Taken);
  row("of another slot", 1, Verdict::OtherSlot);
  row("of the last round", 2, Verdict::PastRound);
  row("of the next round", 3, Verdict::LaterRound);
  row("from another anchor", 4, Verdict::StaleBase);
  row("too few steps", 5, Verdict::TooFewSteps);
  row("just enough steps", 6, Verdict::Taken);
  row("no tokens", 7, Verdict::TooManyTokens);
  row("more tokens than a number should have", 8, Verdict::TooManyTokens);
  row("another codec", 9, Verdict::OtherCodec);
  row("too large", 10, Verdict::TooLarge);
  row("empty", 11, Verdict::TooLarge);
  row("a stranger's", 12, Verdict::NotMember);
  row("signed by another", 13, Verdict::BadSignature);
  row("changed after it was signed", 14, Verdict::BadSignature);
  row("of another network", 15, Verdict::BadSignature);
  row("a used sequence", 16, Verdict::Replayed);
}

void TestRoundsMessages::contributions_are_refused_with_a_reason() {
  QFETCH(int, kind);
  QFETCH(int, verdict);
  Sent s = sent(kind == 12 ? 30 : 1, 1, [kind](Contribution& c) {
    switch (kind) {
      case 1: c.slot.kind = RoundSlot::Kind::Head; break;
      case 2: c.round = 4; break;
      case 3: c.round = 6; break;
      case 4: c.base = filled(51); break;
      case 5: c.steps = 4; break;
      case 6: c.steps = 5; break;
      case 7: c.tokens = 0; break;
      case 8: c.tokens = std::uint64_t{1} << 60; break;
      case 9: c.codec = outer::Codec::Int8; break;
      case 10: c.payload_bytes = 1u << 20; break;
      case 11: c.payload_bytes = 0; break;
      case 16: c.sequence = 4; break;
      default: break;
    }
  });
  if (kind == 13) s.contribution.signature = sent(2, 1).contribution.signature;
  if (kind == 14) s.contribution.tokens = 901;
  if (kind == 15) sign_contribution(s.contribution, key(1), filled(8));
  RoundContributions round = round_five({{crypto::node_id(key(1).public_key()), 4}});
  QCOMPARE(static_cast<int>(round.take(s.contribution)), verdict);
  QCOMPARE(round.announced(), std::size_t(verdict == 0 ? 1 : 0));
  if (verdict == 0) {
    QCOMPARE(static_cast<int>(round.take(s.contribution)), static_cast<int>(Verdict::Known));
    QCOMPARE(round.announced(), std::size_t(1));
    QVERIFY(!round.take_payload(Bytes(40, 99)));
    QVERIFY(!round.usable(crypto::node_id(key(1).public_key())));
    QVERIFY(round.take_payload(s.payload));
    QVERIFY(round.usable(crypto::node_id(key(1).public_key())));
  }
}

void TestRoundsMessages::two_payloads_exclude_their_sender() {
  RoundContributions round = round_five();
  const Sent a = sent(1, 1), b = sent(1, 2), other = sent(2, 3);
  QCOMPARE(round.take(a.contribution), Verdict::Taken);
  QCOMPARE(round.take(other.contribution), Verdict::Taken);
  QVERIFY(round.take_payload(a.payload) && round.take_payload(other.payload));
  QCOMPARE(round.take(b.contribution), Verdict::TwoPayloads);
  QCOMPARE(round.usable_count(), std::size_t(1));
  QCOMPARE(round.evidence().size(), std::size_t(1));
  // The evidence convinces a member that saw only one of them, or none; made-up evidence does not.
  const EvidencePost evidence = round.evidence().front();
  RoundContributions elsewhere = round_five();
  QCOMPARE(elsewhere.take(b.contribution), Verdict::Taken);
  EvidencePost forged = evidence;
  forged.second.signature[0] ^= 1;
  QCOMPARE(elsewhere.take_evidence(forged), Verdict::BadSignature);
  QCOMPARE(elsewhere.take_evidence({a.contribution, a.contribution}), Verdict::Malformed);
  QCOMPARE(elsewhere.take_evidence({a.contribution, other.contribution}), Verdict::Malformed);
  QCOMPARE(elsewhere.announced(), std::size_t(1));
  QCOMPARE(elsewhere.take_evidence(evidence), Verdict::Taken);
  QCOMPARE(elsewhere.announced(), std::size_t(0));
}

void TestRoundsMessages::a_copied_payload_is_the_first_ones() {
  RoundContributions round = round_five();
  const Sent a = sent(1, 1), copy = sent(2, 1);
  QCOMPARE(round.take(a.contribution), Verdict::Taken);
  QCOMPARE(round.take(copy.contribution), Verdict::Copied);
  QVERIFY(round.take_payload(a.payload));
  QCOMPARE(round.usable_count(), std::size_t(1));
  QVERIFY(round.usable(crypto::node_id(key(1).public_key())));
}

NS_TEST(TestRoundsMessages)
#include "test_messages.moc"
