// This node's posts of a round: who gets what, each once, and nothing of the round before.
#include <QtTest>
#include <map>

#include "core/base/byte_source.h"
#include "core/rounds/own_posts.h"
#include "core/rounds/round_posts.h"
#include "tests/support/test_main.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::rounds;  // NOLINT
using Reach = chain::ChainPort::Reach;

namespace {

struct PostedItem {
  chain::RoundsPost item;
  Reach reach;
  std::vector<net::NodeId> only;
};

// Holds the posts on their way, by key.
struct Outbox final : chain::ChainPort {
  void post(std::uint64_t key, const chain::RoundsPost& item, Reach reach,
            const std::vector<net::NodeId>& only) override {
    items.insert_or_assign(key, PostedItem{item, reach, only});
    ++posted;
  }
  void drop_post(std::uint64_t key) override { items.erase(key); }
  void advance() override {}
  void set_ready(bool) override {}
  void add_evidence(const chain::Evidence&) override {}
  bool may_sign(std::uint64_t) const override { return true; }
  Expected<Hash256> beacon_reveal(std::uint64_t) override { return Hash256{}; }

  std::map<std::uint64_t, PostedItem> items;
  int posted = 0;
};

chain::Contribution own_contribution() {
  chain::Contribution contribution;
  contribution.round = 4;
  contribution.rows = {{0, 500, 3, Hash256{1}}};
  return contribution;
}

}  // namespace

class TestOwnPosts : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    outbox_ = Outbox();
    posts_ = OwnPosts();
    posts_.attach(outbox_);
  }
  void a_contribution_goes_with_its_small_payloads();
  void larger_payloads_are_refused_in_a_post();
  void one_member_gets_it_once_and_without_payloads();
  void vectors_and_attestations_are_for_voters();
  void a_closed_round_needs_no_vector();
  void a_new_round_takes_all_back();

 private:
  Outbox outbox_;
  OwnPosts posts_;
};

void TestOwnPosts::a_contribution_goes_with_its_small_payloads() {
  posts_.contribution(own_contribution(), {in_memory(Bytes{7, 8, 9})});
  const PostedItem& posted = outbox_.items.at(contribution_key);
  QCOMPARE(posted.reach, Reach::AskedFor);
  QCOMPARE(posted.item.kind, contribution_kind);
  const auto read = decode_contribution_post(posted.item.bytes, 1);
  QVERIFY(read.has_value());
  QVERIFY(read->contribution == own_contribution());
  QCOMPARE(read->payloads.size(), std::size_t{1});
  QCOMPARE(read->payloads.front().second, (Bytes{7, 8, 9}));
}

void TestOwnPosts::larger_payloads_are_refused_in_a_post() {
  const auto post_with = [](std::size_t payload_bytes) {
    Bytes bytes;
    append_part(bytes, chain::encode_contribution(own_contribution()));
    bytes.push_back(1);
    append_le(bytes, own_contribution().rows[0].row);
    append_part(bytes, Bytes(payload_bytes, 7));
    return bytes;
  };
  QVERIFY(decode_contribution_post(post_with(most_inline_payloads), 1).has_value());
  QVERIFY(!decode_contribution_post(post_with(most_inline_payloads + 1), 1).has_value());
}

void TestOwnPosts::one_member_gets_it_once_and_without_payloads() {
  const net::NodeId id{5};
  posts_.contribution_to(3, id, own_contribution());
  const PostedItem& posted = outbox_.items.at(candidate_key(3));
  QCOMPARE(posted.reach, Reach::Only);
  QCOMPARE(posted.only, std::vector<net::NodeId>{id});
  QVERIFY(decode_contribution_post(posted.item.bytes, 1)->payloads.empty());
  posts_.contribution_to(3, id, own_contribution());
  QCOMPARE(outbox_.posted, 1);
  posts_.contribution_to(4, net::NodeId{6}, own_contribution());
  QCOMPARE(outbox_.items.size(), std::size_t{2});
}

void TestOwnPosts::vectors_and_attestations_are_for_voters() {
  posts_.vector({});
  posts_.attestation({});
  for (const auto& [key, kind] : {std::pair{vector_key, vector_kind}, {attestation_key, attestation_kind}}) {
    QCOMPARE(outbox_.items.at(key).reach, Reach::Voters);
    QCOMPARE(outbox_.items.at(key).item.kind, kind);
  }
}

void TestOwnPosts::a_closed_round_needs_no_vector() {
  posts_.contribution(own_contribution(), {});
  posts_.vector({});
  posts_.closed();
  QVERIFY(!outbox_.items.contains(vector_key));
  QVERIFY(outbox_.items.contains(contribution_key));  // others may still need it
}

void TestOwnPosts::a_new_round_takes_all_back() {
  posts_.contribution(own_contribution(), {});
  posts_.contribution_to(3, net::NodeId{5}, own_contribution());
  posts_.vector({});
  posts_.attestation({});
  QCOMPARE(outbox_.items.size(), std::size_t{4});
  posts_.open();
  QVERIFY(outbox_.items.empty());
  posts_.contribution_to(3, net::NodeId{5}, own_contribution());  // of the new round
  QVERIFY(outbox_.items.contains(candidate_key(3)));
}

NS_TEST(TestOwnPosts)
#include "test_own_posts.moc"
