// The agreement on one round, alone: members on a virtual clock and a bus that loses, delays and cuts;
// leaders that die, lie and say two things. Each member would make another body, so that a second certificate
// would show.
#include <QtTest>
#include <map>
#include <memory>
#include <set>

#include "core/base/rng.h"
#include "core/crypto/hash.h"
#include "core/rounds/agreement.h"
#include "core/sim/world.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::rounds;

namespace {

constexpr Duration second = std::chrono::seconds(1);
const Hash256 network{};

crypto::KeyPair key(std::uint64_t seed, std::size_t number) {
  Bytes bytes;
  append_le(bytes, seed);
  append_le(bytes, static_cast<std::uint64_t>(number));
  return crypto::KeyPair::from_seed(crypto::sha256(bytes));
}

struct BusOptions {
  std::uint64_t seed = 1;
  std::size_t members = 4;
  double loss = 0;
  std::size_t quorum = 0;    // 0: the protocol's
  bool local_views = false;  // each part takes those it sees for all: what must not be done
  std::size_t liars = 0;     // leaders that propose two bodies and vote for both
  bool collected = false;    // votes go to the leader only, as in rounds of two levels
};

class Bus {
 public:
  explicit Bus(BusOptions options) : options_(options), rng_(options.seed) {
    std::vector<crypto::PublicKey> keys;
    for (std::size_t i = 0; i < options.members; ++i) keys.push_back(key(options.seed, i).public_key());
    genesis_ = genesis_body({}, {}, keys);
    for (std::size_t i = 0; i < options.members; ++i) {
      auto member = std::make_unique<Member>(*this);
      for (std::size_t k = 0; k < options.members; ++k)
        if (key(options.seed, k).public_key() == genesis_.members[i].key)
          member->key.emplace(key(options.seed, k));
      member->index = i;
      members_.push_back(std::move(member));
    }
    for (auto& member : members_) member->power_on();
    repeat();
  }

  struct Member final : AgreementHost {
    explicit Member(Bus& b) : bus(b) {}
    Bus& bus;
    std::optional<crypto::KeyPair> key;
    std::size_t index = 0;
    int part = 0;
    std::unique_ptr<sim::HostExecutor> executor;
    std::optional<RoundAgreement> agreement;
    Bytes disk;
    std::map<std::size_t, RoundItem> outbox;  // by kind: repeated
    std::optional<RoundCertificate> result;
    std::uint64_t life = 0;
    std::optional<Hash256> refused;  // an anchor that only this one finds wrong

    std::vector<RoundMember> seen_members() const {
      if (!bus.options_.local_views) return bus.genesis_.members;
      std::vector<RoundMember> seen;
      for (const auto& other : bus.members_)
        if (other->part == part) seen.push_back(bus.genesis_.members[other->index]);
      return seen;
    }
    void power_on() {
      executor = std::make_unique<sim::HostExecutor>(bus.world);
      AgreementMemory memory;
      if (!disk.empty()) memory = *decode_agreement_memory(disk, bus.options_.collected);
      ++life;
      agreement.emplace(RoundAgreement::Setup{network,
                                              {},
                                              1,
                                              body_hash(bus.genesis_),
                                              seen_members(),
                                              bus.options_.quorum,
                                              bus.options_.collected},
                        AgreementOptions{4 * second, 30 * second}, *key, *executor, *this, memory);
      static_cast<void>(executor->post([this] {
        if (agreement) agreement->start();
      }));
    }
    void power_off() {
      executor->stop();
      agreement.reset();
      outbox.clear();
      ++life;
    }
    bool liar() const { return index < bus.options_.liars; }

    void broadcast(const RoundItem& item) override {
      std::size_t kind = item.index();
      if (const auto* vote = std::get_if<VotePost>(&item); vote && vote->vote.step == VoteStep::Commit)
        kind = 20;
      outbox.insert_or_assign(kind, item);
      bus.send(*this, item);
      ++bus.sent[index][kind];
      if (bus.after_send && bus.after_send(*this, kind)) bus.dying.insert(index);
    }
    void remember(const AgreementMemory& memory, std::function<void()> then) override {
      bus.world.after(std::chrono::milliseconds(1),
                      [this, now = life, bytes = encode_agreement_memory(memory), then = std::move(then)] {
                        if (now != life) return;
                        disk = bytes;
                        then();
                      });
    }
    void judge(const RoundBody& body) override {
      bus.world.after(
          std::chrono::milliseconds(20),
          [this, now = life, hash = body_hash(body),
           right = (!bus.wrong.count(body.anchor) || index >= bus.wrong_for) && refused != body.anchor] {
            if (now != life || !agreement) return;
            const bool locked = agreement->memory().lock && body_hash(agreement->memory().lock->body) == hash;
            if (bus.disproved_by > index && !right && !locked)
              agreement->disproved(hash);
            else
              agreement->judged(hash, right || locked);
          });
    }
    void make_body() override {
      bus.world.after(std::chrono::milliseconds(50), [this, now = life] {
        if (now == life && agreement) agreement->propose(bus.body_of(*this));
      });
    }
    void locked(const RoundQuorum& quorum) override { broadcast(CertificatePost{quorum}); }
    void certified(const RoundCertificate& certificate) override {
      if (!result) result = certificate;
      bus.certificates.insert(body_hash(certificate.body));
    }
  };

  RoundBody body_of(const Member& member, std::uint8_t variant = 0) const {
    RoundBody body;
    body.round = 1;
    body.previous = body_hash(genesis_);
    body.members = member.seen_members();
    body.contributors = {{0, 1, 1, {}}};
    body.tokens = 1;
    body.anchor.fill(static_cast<std::uint8_t>(member.index + 1));
    body.anchor[1] = variant;
    body.anchor[2] = static_cast<std::uint8_t>(member.life);  // another one after a restart
    if (options_.collected) {
      body.grouped = true;
      body.members.clear();
      body.contributors.clear();
    }
    return body;
  }

  void send(Member& from, const RoundItem& item) {
    for (auto& to : members_) {
      if (to.get() == &from || !meant_for(*to, item)) continue;
      RoundItem said = item;
      if (from.liar() && to->index % 2 == 1) said = other_story(from, item);
      deliver(from, *to, said);
    }
  }
  bool meant_for(const Member& to, const RoundItem& item) const {
    const auto* vote = std::get_if<VotePost>(&item);
    const auto* new_view = std::get_if<NewViewPost>(&item);
    if (!options_.collected || (vote == nullptr && new_view == nullptr)) return true;
    const auto order = leader_order(body_hash(genesis_), 1, {}, genesis_.members);
    return order[(vote != nullptr ? vote->vote.view : new_view->view) % order.size()] == to.index;
  }
  // The same, about another body.
  RoundItem other_story(Member& from, const RoundItem& item) {
    if (const auto* proposal = std::get_if<ProposalPost>(&item); proposal && !proposal->justification) {
      ProposalPost other = *proposal;
      other.body = body_of(from, 1);
      return other;
    }
    if (const auto* vote = std::get_if<VotePost>(&item)) {
      const RoundVote said{vote->vote.step, {}, 1, vote->vote.view, body_hash(body_of(from, 1))};
      return VotePost{said, {vote->signature.member, sign_vote(said, *from.key, network)}};
    }
    return item;
  }
  void deliver(Member& from, Member& to, const RoundItem& item) {
    if (from.part != to.part || rng_.uniform() < options_.loss) return;
    const Duration delay = std::chrono::milliseconds(5 + static_cast<int>(rng_.below(300)));
    auto read = std::make_shared<RoundItem>(item);
    if (!options_.collected) *read = *decode_item(encode_item(item));
    world.after(delay, [&to, &from, read] {
      if (!to.agreement || from.part != to.part) return;
      const net::NodeId& id = from.bus.genesis_.members[from.index].id;
      if (const auto* p = std::get_if<ProposalPost>(&*read)) to.agreement->on_proposal(id, *p);
      if (const auto* v = std::get_if<VotePost>(&*read)) to.agreement->on_vote(*v);
      if (const auto* n = std::get_if<NewViewPost>(&*read)) to.agreement->on_new_view(id, *n);
      if (const auto* l = std::get_if<CertificatePost>(&*read)) to.agreement->on_lock(l->certificate);
    });
  }
  // The outbox of a node says everything again, and who has a certificate gives it to who asks.
  void repeat() {
    for (const std::size_t index : dying) members_[index]->power_off();
    dying.clear();
    for (auto& member : members_) {
      if (!member->agreement) continue;
      for (const auto& [kind, item] : member->outbox) send(*member, item);
      if (member->result) continue;
      Member& other = *members_[rng_.below(members_.size())];
      if (other.result && other.agreement && other.part == member->part && !other.liar())
        member->result = other.result;
    }
    world.after(second, [this] { repeat(); });
  }

  bool all_decided(std::size_t from = 0) const {
    return std::all_of(members_.begin() + static_cast<std::ptrdiff_t>(from), members_.end(),
                       [](const auto& m) { return !m->agreement || m->result; });
  }
  bool run_until_decided(Duration limit, std::size_t from = 0) {
    return world.run_until([this, from] { return all_decided(from); }, world.now() + limit);
  }
  // Those of liars do not count: they may believe what they like.
  std::size_t different_results() const {
    std::set<Hash256> results;
    for (const auto& member : members_)
      if (member->result && !member->liar()) results.insert(body_hash(member->result->body));
    return results.size();
  }

  sim::World world;
  std::vector<std::unique_ptr<Member>> members_;
  std::set<Hash256> certificates;  // all that anybody ever put together
  std::set<Hash256> wrong;         // anchors that no honest member finds right
  std::size_t wrong_for = 64;      // so many members, the first ones
  std::size_t disproved_by = 0;    // of those, so many have proof for all
  std::function<bool(Member&, std::size_t kind)> after_send;
  std::map<std::size_t, std::map<std::size_t, int>> sent;
  std::set<std::size_t> dying;
  RoundBody genesis_;

 private:
  const BusOptions options_;
  Rng rng_;
};

std::string seed_text(std::uint64_t seed) {
  return "seed " + std::to_string(seed);
}

// How many different certificates there are at the end of a cut that heals.
std::size_t certificates_after_a_cut(BusOptions options, bool* decided = nullptr) {
  Bus bus(options);
  Rng rng(options.seed + 1000);
  bus.world.run_for(std::chrono::milliseconds(rng.below(2000)));
  for (auto& member : bus.members_) member->part = static_cast<int>(rng.below(2));
  if (options.local_views)
    for (auto& member : bus.members_) {
      member->power_off();
      member->power_on();
    }
  bus.world.run_for(second * static_cast<int>(5 + rng.below(60)));
  for (auto& member : bus.members_) member->part = 0;
  const bool all = bus.run_until_decided(10 * 60 * second);
  if (decided != nullptr) *decided = all;
  return bus.certificates.size();
}

}  // namespace

class TestRoundsAgreement : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void members_agree_in_the_first_view();
  void a_silent_leader_is_replaced();
  void a_wrong_proposal_is_not_signed();
  void a_refused_proposal_costs_a_moment();
  void who_refuses_alone_waits_for_the_others();
  void early_proposals_lead_nobody_astray();
  void a_leader_that_has_lost_its_proposal_gives_up();
  void a_disproved_proposal_is_not_waited_for();
  void what_a_quorum_prepared_is_certified_all_the_same();
  void a_leader_dies_at_every_stage();
  void members_restart_at_any_moment();
  void cuts_and_losses_never_make_two();
  void liars_below_a_third_never_make_two();
  void collected_votes_decide_and_never_make_two();
  void without_a_quorum_there_are_two();
  void with_local_views_there_are_two();
  void memory_is_written_and_read();
};

void TestRoundsAgreement::members_agree_in_the_first_view() {
  for (std::size_t n : {1u, 2u, 3u, 4u, 7u, 16u}) {
    Bus bus({n, n});
    QVERIFY(bus.run_until_decided(3 * second));
    QCOMPARE(bus.certificates.size(), std::size_t(1));
    for (const auto& member : bus.members_) {
      QCOMPARE(member->result->view, 0u);
      QVERIFY(check_quorum(*member->result, VoteStep::Commit, network).ok());
    }
  }
}

void TestRoundsAgreement::a_silent_leader_is_replaced() {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Bus bus({seed, 7});
    const auto order = leader_order(body_hash(bus.genesis_), 1, {}, bus.genesis_.members);
    bus.members_[order[0]]->power_off();
    bus.members_[order[1]]->power_off();
    QVERIFY2(bus.run_until_decided(60 * second), seed_text(seed).c_str());
    QCOMPARE(bus.certificates.size(), std::size_t(1));
  }
}

void TestRoundsAgreement::a_wrong_proposal_is_not_signed() {
  Bus bus({3, 4});
  const auto order = leader_order(body_hash(bus.genesis_), 1, {}, bus.genesis_.members);
  const Hash256 anchor = bus.body_of(*bus.members_[order[0]]).anchor;
  bus.wrong.insert(anchor);
  QVERIFY(bus.run_until_decided(60 * second));
  for (const auto& member : bus.members_) QVERIFY(member->result->body.anchor != anchor);
}

// A view lasts four seconds. As long as it would the members wait for a leader that is silent, not for one
// whose proposal they refuse; and of three one that refuses is enough, because it takes all.
void TestRoundsAgreement::a_refused_proposal_costs_a_moment() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const std::size_t n : {2u, 3u, 4u, 7u}) {
      Bus bus({seed, n});
      const auto order = leader_order(body_hash(bus.genesis_), 1, {}, bus.genesis_.members);
      const Hash256 anchor = bus.body_of(*bus.members_[order[0]]).anchor;
      if (n <= 3)
        bus.members_[order[1]]->refused = anchor;
      else
        bus.wrong.insert(anchor);
      QVERIFY2(bus.run_until_decided(std::chrono::milliseconds(3500)), seed_text(seed).c_str());
      for (const auto& member : bus.members_) QVERIFY(member->result->body.anchor != anchor);
    }
  }
}

// Of four one is dead, so the round needs all others; one of them refuses what the first leader proposes. If
// it went through views by itself, it would be further on whenever the others came to one.
void TestRoundsAgreement::who_refuses_alone_waits_for_the_others() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bus bus({seed, 4});
    const auto order = leader_order(body_hash(bus.genesis_), 1, {}, bus.genesis_.members);
    bus.members_[order[2]]->refused = bus.body_of(*bus.members_[order[0]]).anchor;
    bus.members_[order[3]]->power_off();
    // The others' first view, and the next one with all its messages.
    QVERIFY2(bus.run_until_decided(7 * second), seed_text(seed).c_str());
    QCOMPARE(bus.members_[order[0]]->result->view, 1u);
  }
}

// The leaders of the next views lie, too, and have told a member already what it will refuse. It is one view
// ahead all the same, not as many as they have proposals.
void TestRoundsAgreement::early_proposals_lead_nobody_astray() {
  Bus bus({5, 7});
  const auto order = leader_order(body_hash(bus.genesis_), 1, {}, bus.genesis_.members);
  Bus::Member& alone = *bus.members_[order[6]];
  for (auto& member : bus.members_) member->part = member.get() == &alone ? 0 : 1;
  bus.world.run_for(std::chrono::milliseconds(100));
  for (std::uint32_t view = 0; view < 5; ++view) {
    const Bus::Member& leader = *bus.members_[order[view]];
    ProposalPost post{view, bus.body_of(leader, 7), {}};
    bus.wrong.insert(post.body.anchor);
    QCOMPARE(alone.agreement->on_proposal(bus.genesis_.members[leader.index].id, post), Verdict::Taken);
  }
  bus.world.run_for(3 * second);
  QCOMPARE(alone.agreement->view(), 1u);
  // When its first view would have been over it has no more patience with the second leader.
  bus.world.run_for(2 * second);
  QCOMPARE(alone.agreement->view(), 2u);
}

// It notes what it proposes, and dies before anybody hears of it: after the restart it makes another body,
// and may not propose that in the same view.
void TestRoundsAgreement::a_leader_that_has_lost_its_proposal_gives_up() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bus bus({seed, 3});
    const auto order = leader_order(body_hash(bus.genesis_), 1, {}, bus.genesis_.members);
    Bus::Member& leader = *bus.members_[order[0]];
    leader.part = 1;
    QVERIFY(bus.world.run_until(
        [&] { return !leader.disk.empty() && decode_agreement_memory(leader.disk)->prepared.has_value(); },
        bus.world.now() + second));
    leader.power_off();
    leader.power_on();
    leader.part = 0;
    QVERIFY2(bus.run_until_decided(std::chrono::milliseconds(3500)), seed_text(seed).c_str());
  }
}

// Who judges it wrong waits for a tenth of the view; who has proof that all will hear of does not.
void TestRoundsAgreement::a_disproved_proposal_is_not_waited_for() {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Bus bus({seed, 8});
    const auto order = leader_order(body_hash(bus.genesis_), 1, {}, bus.genesis_.members);
    // Of two leaders, one after the other.
    for (const std::size_t leader : {order[0], order[1]})
      bus.wrong.insert(bus.body_of(*bus.members_[leader]).anchor);
    bus.disproved_by = 64;
    QVERIFY2(bus.run_until_decided(std::chrono::milliseconds(3900)), seed_text(seed).c_str());
    QCOMPARE(bus.certificates.size(), std::size_t(1));
    for (const auto& member : bus.members_) {
      QCOMPARE(member->result->view, 2u);
      QVERIFY(bus.wrong.count(member->result->body.anchor) == 0);
    }
  }
}

// A liar shows the proof to fewer than a third in time: they go on, and can't keep the others from it.
void TestRoundsAgreement::what_a_quorum_prepared_is_certified_all_the_same() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bus bus({seed, 7, seed % 2 == 0 ? 0.2 : 0.0});
    const std::size_t leader = leader_order(body_hash(bus.genesis_), 1, {}, bus.genesis_.members)[0];
    bus.wrong.insert(bus.body_of(*bus.members_[leader]).anchor);
    bus.wrong_for = bus.disproved_by = 2;
    QVERIFY2(bus.run_until_decided(60 * second), seed_text(seed).c_str());
    QVERIFY2(bus.certificates.size() == 1, seed_text(seed).c_str());
    if (seed % 2 == 1 && leader >= 2) QCOMPARE(bus.members_[3]->result->view, 0u);
  }
}

// Kinds of items: 1 proposal, 2 prepare, 3 new view, 20 commit.
void TestRoundsAgreement::a_leader_dies_at_every_stage() {
  for (const std::size_t stage : {1u, 2u, 20u}) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Bus bus({seed, 4 + seed % 4, 0.1});
      const std::size_t leader = leader_order(body_hash(bus.genesis_), 1, {}, bus.genesis_.members)[0];
      bus.after_send = [leader, stage](Bus::Member& member, std::size_t kind) {
        return member.index == leader && kind == stage;
      };
      QVERIFY2(bus.run_until_decided(5 * 60 * second), seed_text(seed).c_str());
      bus.after_send = nullptr;
      bus.members_[leader]->power_off();
      bus.members_[leader]->power_on();
      QVERIFY2(bus.run_until_decided(5 * 60 * second), seed_text(seed).c_str());
      QVERIFY2(bus.certificates.size() == 1, seed_text(seed).c_str());
    }
  }
}

void TestRoundsAgreement::members_restart_at_any_moment() {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Bus bus({seed, 4 + seed % 3, 0.2});
    Rng rng(seed);
    for (int i = 0; i < 12; ++i) {
      bus.world.run_for(std::chrono::milliseconds(rng.below(1500)));
      Bus::Member& member = *bus.members_[rng.below(bus.members_.size())];
      if (member.agreement) member.power_off();
      if (rng.below(3) > 0 || i > 9) member.power_on();
    }
    for (auto& member : bus.members_)
      if (!member->agreement) member->power_on();
    QVERIFY2(bus.run_until_decided(10 * 60 * second), seed_text(seed).c_str());
    QVERIFY2(bus.certificates.size() == 1, seed_text(seed).c_str());
  }
}

void TestRoundsAgreement::cuts_and_losses_never_make_two() {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    bool decided = false;
    const std::size_t certificates =
        certificates_after_a_cut({seed, 4 + seed % 5, seed % 2 == 0 ? 0.3 : 0.0}, &decided);
    QVERIFY2(certificates == 1, seed_text(seed).c_str());
    QVERIFY2(decided, seed_text(seed).c_str());
  }
}

void TestRoundsAgreement::liars_below_a_third_never_make_two() {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    const std::size_t liars = 1 + seed % 2;
    Bus bus({seed, 3 * liars + 1, 0.1, 0, false, liars});
    QVERIFY2(bus.run_until_decided(10 * 60 * second, liars), seed_text(seed).c_str());
    QVERIFY2(bus.different_results() == 1, seed_text(seed).c_str());
  }
}

// Whether all decide after restarts at any moment is another matter: views that have drifted apart are not
// brought together.
void TestRoundsAgreement::collected_votes_decide_and_never_make_two() {
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    BusOptions options{seed, 4 + seed % 5, seed % 2 == 0 ? 0.2 : 0.0};
    options.collected = true;
    Bus quiet(options);
    QVERIFY2(quiet.run_until_decided(10 * 60 * second), seed_text(seed).c_str());
    QVERIFY2(quiet.certificates.size() == 1, seed_text(seed).c_str());
    QVERIFY2(certificates_after_a_cut(options) <= 1, seed_text(seed).c_str());
    options.members = 7;
    options.liars = 2;
    Bus lying(options);
    lying.run_until_decided(3 * 60 * second, 2);
    QVERIFY2(lying.different_results() <= 1, seed_text(seed).c_str());
    options.liars = 0;
    Bus restarting(options);
    Rng rng(seed);
    for (int i = 0; i < 12; ++i) {
      restarting.world.run_for(std::chrono::milliseconds(rng.below(1500)));
      Bus::Member& member = *restarting.members_[rng.below(7)];
      if (member.agreement) member.power_off();
      member.power_on();
    }
    restarting.run_until_decided(3 * 60 * second);
    QVERIFY2(restarting.certificates.size() <= 1, seed_text(seed).c_str());
  }
  std::size_t broken = 0;
  for (std::uint64_t seed = 1; seed <= 200 && broken == 0; ++seed) {
    BusOptions options{seed, 6};
    options.collected = true;
    options.quorum = 2;
    if (certificates_after_a_cut(options) > 1) ++broken;
  }
  QVERIFY2(broken > 0, "a quorum of two of six never made two certificates: the test does not see them");
}

// The controls: what the rules are for shows when they are taken away.
void TestRoundsAgreement::without_a_quorum_there_are_two() {
  std::size_t broken = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    BusOptions options{seed, 6};
    options.quorum = 2;
    if (certificates_after_a_cut(options) > 1) ++broken;
  }
  QVERIFY2(broken > 0, "a quorum of two of six never made two certificates: the test does not see them");
}

void TestRoundsAgreement::with_local_views_there_are_two() {
  std::size_t broken = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    BusOptions options{seed, 6};
    options.local_views = true;
    if (certificates_after_a_cut(options) > 1) ++broken;
  }
  QVERIFY2(broken > 0, "local views never made two certificates: the test does not see them");
}

void TestRoundsAgreement::memory_is_written_and_read() {
  Bus bus({5, 4});
  QVERIFY(bus.run_until_decided(3 * second));
  for (const auto& member : bus.members_) {
    const auto memory = decode_agreement_memory(member->disk);
    QVERIFY(memory.ok());
    QVERIFY(memory->lock && memory->prepared);
    QVERIFY(encode_agreement_memory(*memory) == member->disk);
    for (std::size_t i = 0; i < member->disk.size(); ++i)
      QVERIFY(!decode_agreement_memory(ByteSpan(member->disk).first(i)).ok());
  }
}

NS_TEST(TestRoundsAgreement)
#include "test_agreement.moc"
