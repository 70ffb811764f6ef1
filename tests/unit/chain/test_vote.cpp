// Votes, quorums and certificates: canonical bytes, bounded sizes, and signatures that hold for one thing only.
#include <QtTest>

#include "core/chain/rules.h"
#include "core/chain/verdict.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/samples.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using test::key_of;

class TestChainVote : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_format_is_canonical();
  void a_signature_holds_for_its_vote_only();
  void a_signature_holds_for_its_step_only();
  void a_vote_without_views_has_view_zero();
  void signers_ascend_and_are_bounded();
  void a_lock_is_for_the_certified_block();
  void every_verdict_has_a_text();
};

void TestChainVote::every_format_is_canonical() {
  for (const VoteStep step : {VoteStep::Prepare, VoteStep::Commit, VoteStep::Succession, VoteStep::Genesis}) {
    const Bytes bytes = encode_vote(samples::vote(60, 1, step));
    QCOMPARE(bytes.size(), signed_vote_bytes);
    QCOMPARE(samples::format_fault(bytes, samples::reencoder(decode_vote, encode_vote)), std::string());
    QCOMPARE(samples::format_fault(encode_quorum(samples::quorum(step)),
                                   samples::reencoder(decode_quorum, encode_quorum)),
             std::string());
  }
  Certificate certificate{samples::quorum(VoteStep::Commit), {}};
  const auto reencode = samples::reencoder(decode_certificate, encode_certificate);
  QCOMPARE(samples::format_fault(encode_certificate(certificate), reencode), std::string());
  certificate.lock = samples::quorum(VoteStep::Prepare);
  QCOMPARE(samples::format_fault(encode_certificate(certificate), reencode), std::string());
  QVERIFY(*decode_certificate(encode_certificate(certificate)) == certificate);
}

void TestChainVote::a_signature_holds_for_its_vote_only() {
  const SignedVote vote = samples::vote();
  const crypto::PublicKey key = key_of(1).public_key();
  QVERIFY(vote_holds(vote, key, samples::network));
  QVERIFY(!vote_holds(vote, key, samples::filled(8)));
  QVERIFY(!vote_holds(vote, key_of(2).public_key(), samples::network));
  SignedVote other = vote;
  other.vote.previous = samples::filled(99);
  QVERIFY2(!vote_holds(other, key, samples::network), "a vote holds in another history");
  other = vote;
  other.vote.height += 1;
  QVERIFY(!vote_holds(other, key, samples::network));
  other = vote;
  other.vote.view += 1;
  QVERIFY(!vote_holds(other, key, samples::network));
  other = vote;
  other.vote.block = samples::filled(99);
  QVERIFY(!vote_holds(other, key, samples::network));
}

void TestChainVote::a_signature_holds_for_its_step_only() {
  constexpr VoteStep steps[] = {VoteStep::Prepare, VoteStep::Commit, VoteStep::Succession, VoteStep::Genesis};
  for (const VoteStep made : steps) {
    for (const VoteStep claimed : steps) {
      Vote vote = samples::vote().vote;
      vote.view = 0;
      vote.step = made;
      SignedVote sent = sign_vote(vote, 1, key_of(1), samples::network);
      sent.vote.step = claimed;
      QCOMPARE(vote_holds(sent, key_of(1).public_key(), samples::network), made == claimed);
    }
  }
}

void TestChainVote::a_vote_without_views_has_view_zero() {
  SignedVote vote = samples::vote(60, 1, VoteStep::Genesis);
  QVERIFY(decode_vote(encode_vote(vote)).ok());
  vote.vote.view = 1;
  QVERIFY(!decode_vote(encode_vote(vote)).ok());
}

void TestChainVote::signers_ascend_and_are_bounded() {
  Quorum quorum = samples::quorum();
  std::swap(quorum.signatures[0], quorum.signatures[1]);
  QVERIFY(!decode_quorum(encode_quorum(quorum)).ok());
  quorum = samples::quorum();
  quorum.signatures[1].voter = quorum.signatures[0].voter;
  QVERIFY2(!decode_quorum(encode_quorum(quorum)).ok(), "a voter counts twice");

  quorum.signatures.clear();
  for (std::uint32_t i = 0; i < max_committee; ++i) quorum.signatures.push_back({i, {}});
  QVERIFY(decode_quorum(encode_quorum(quorum)).ok());
  quorum.signatures.push_back({static_cast<std::uint32_t>(max_committee), {}});
  QVERIFY(!decode_quorum(encode_quorum(quorum)).ok());
}

void TestChainVote::a_lock_is_for_the_certified_block() {
  const auto is_read = [](const Quorum& commits, const Quorum& lock) {
    return decode_certificate(encode_certificate({commits, lock})).ok();
  };
  const Quorum commits = samples::quorum(VoteStep::Commit), lock = samples::quorum(VoteStep::Prepare);
  QVERIFY(is_read(commits, lock));
  QVERIFY(!is_read(commits, commits));
  QVERIFY(!is_read(samples::quorum(VoteStep::Genesis), lock));
  Quorum other = lock;
  other.block = samples::filled(99);
  QVERIFY(!is_read(commits, other));
  other = lock;
  other.previous = samples::filled(99);
  QVERIFY(!is_read(commits, other));
  other = lock;
  other.view = 1;  // of an earlier view: a lock may be that
  QVERIFY(is_read(commits, other));
  QVERIFY2(!decode_certificate(encode_certificate({lock, {}})).ok(), "prepares certify a block");
}

void TestChainVote::every_verdict_has_a_text() {
  for (int i = 0; i < static_cast<int>(Verdict::Count_); ++i)
    QVERIFY(!to_string(static_cast<Verdict>(i)).empty());
}

NS_TEST(TestChainVote)
#include "test_vote.moc"
