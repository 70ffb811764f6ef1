// Which verdicts on a node's posts are faults of the node, and which an honest one gets.
#include <QtTest>

#include "core/rounds/post_conduct.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::rounds;

namespace {

crypto::KeyPair key_of(std::uint8_t number) {
  Hash256 seed{};
  seed.fill(number);
  return crypto::KeyPair::from_seed(seed);
}

const crypto::KeyPair poster = key_of(1), other = key_of(2);

net::Caller caller() {
  return {crypto::node_id(poster.public_key()), {platform::IpAddress::v4(11, 0, 0, 1), 9000}};
}

Bytes contribution_of(const crypto::KeyPair& key) {
  ContributionPost post;
  post.contribution.key = key.public_key();
  return encode_item(post);
}

}  // namespace

class TestPostConduct : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void two_payloads_are_told_by_who_has_the_proof();
  void the_proof_bans_at_once();
  void who_passes_on_is_not_the_liar();
  void only_lies_are_faults();
  void what_can_not_be_read();

 private:
  // The node answers a post with this verdict.
  void answer(ByteSpan request, const Expected<Bytes>& verdict, net::Method method = net::Method::RoundPost) {
    bool told = false;
    judged(conduct_, caller(), method, request, [&](const Expected<Bytes>& said) {
      told = said.ok() == verdict.ok() && (!said.ok() || *said == *verdict);
    })(verdict);
    QVERIFY(told);  // the caller hears the same
  }
  double points() const { return conduct_.points(caller().id); }

  ManualClock clock_;
  net::BanList bans_{clock_};
  net::Conduct conduct_{bans_, clock_, false};
};

void TestPostConduct::two_payloads_are_told_by_who_has_the_proof() {
  answer(contribution_of(poster), encode_post_answer({Verdict::TwoPayloads, 3}));
  QVERIFY(!bans_.reason(caller().id));
  QCOMPARE(points(), 0.0);
}

void TestPostConduct::the_proof_bans_at_once() {
  blame_for_two_payloads(conduct_, crypto::node_id(other.public_key()));
  const auto reason = bans_.reason(crypto::node_id(other.public_key()));
  QVERIFY(reason.has_value());
  QVERIFY2(reason->find("two different contributions to one round") != std::string::npos, reason->c_str());
  QCOMPARE(conduct_.faults(net::Fault::TwoPayloads), std::uint64_t{1});
  QVERIFY(!bans_.reason(caller().id));  // who brought the proof
  clock_.advance(std::chrono::minutes(59));
  QVERIFY(bans_.reason(crypto::node_id(other.public_key())).has_value());
  clock_.advance(std::chrono::minutes(2));
  QVERIFY(!bans_.reason(crypto::node_id(other.public_key())));
}

void TestPostConduct::who_passes_on_is_not_the_liar() {
  answer(contribution_of(other), encode_post_answer({Verdict::TwoPayloads, 3}));
  QVERIFY(!bans_.reason(caller().id));
  QCOMPARE(points(), 0.0);
}

void TestPostConduct::only_lies_are_faults() {
  for (int value = 0; value < static_cast<int>(Verdict::Count_); ++value) {
    const auto verdict = static_cast<Verdict>(value);
    if (verdict == Verdict::BadSignature) continue;
    for (int i = 0; i < 20; ++i) answer(contribution_of(poster), encode_post_answer({verdict, 3}));
    QVERIFY2(points() == 0, std::string(to_string(verdict)).c_str());
  }
  answer(contribution_of(poster), make_error(ErrorCode::Busy, "later"));
  answer(Bytes{1, 2, 3}, encode_post_answer({Verdict::Malformed, 3}), net::Method::RoundFetch);
  QCOMPARE(points(), 0.0);
  answer(contribution_of(poster), encode_post_answer({Verdict::BadSignature, 3}));
  QCOMPARE(points(), 50.0);
}

void TestPostConduct::what_can_not_be_read() {
  clock_.advance(std::chrono::hours(48));
  for (int i = 0; i < 4; ++i) answer(Bytes{9, 9, 9}, encode_post_answer({Verdict::Malformed, 0}));
  QVERIFY(!bans_.reason(caller().id));
  answer(Bytes{9, 9, 9}, encode_post_answer({Verdict::Malformed, 0}));
  QVERIFY(bans_.reason(caller().id).has_value());
}

NS_TEST(TestPostConduct)
#include "test_post_conduct.moc"
