// Rounds of fragments (Streaming DiLoCo): each part of the parameters has its own, at its own time, and all
// of it together is one training.
#include <fmt/format.h>

#include <QtTest>

#include <set>

#include "core/outer/codec.h"
#include "core/rounds/grouped_messages.h"
#include "core/sim/fragment_world.h"
#include "core/sim/round_world.h"
#include "core/sim/soft_model.h"
#include "tests/support/test_main.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::sim;  // NOLINT

namespace {

constexpr Duration round_time = std::chrono::seconds(4);
constexpr std::uint32_t inner_steps = 20;

std::shared_ptr<const outer::SoftTask> task() {
  outer::SoftTaskOptions options;
  options.features = 64;
  options.samples = 4096;
  options.held_out = 512;
  options.separation = 0.3f;
  return *outer::SoftTask::make(options);
}

std::unique_ptr<LocalModel> model(std::size_t node, std::uint64_t lives) {
  return std::make_unique<SoftModel>(task(), node, outer::SoftLearnerOptions{}, lives * 100'000);
}

template <class Options>
Options options(std::uint64_t seed) {
  Options o;
  o.seed = seed;
  o.nodes = 4;
  o.initial = task()->initial_weights();
  o.round.sync = rounds::RoundSync::Delayed;
  o.round.rules.network.fill(3);
  o.round.rules.values = o.initial.size();
  o.round.rules.inner_steps = inner_steps;
  o.round.rules.most_tokens = 2 * inner_steps * 32;
  o.round.tick = std::chrono::milliseconds(20);  // each of the four boundaries is seen at a tick
  o.round.first_deadline = 3 * round_time;
  o.round.provisional_after = 3 * round_time;
  o.trainer.inner_steps = inner_steps;
  o.trainer.step_time = round_time / inner_steps;
  o.trainer.tokens_per_step = 32;
  o.trainer.most_provisional_steps = 4 * inner_steps;
  return o;
}

std::string text(const FragmentWorld& world, const char* what) {
  return fmt::format("{}: {} conflicts, {} twice, anchors agree {}", what, world.seen().conflicts,
                     world.seen().twice, world.seen().anchors_agree);
}
bool safe(const FragmentWorld& world) {
  const FragmentWorldSeen seen = world.seen();
  return seen.conflicts == 0 && seen.twice == 0 && seen.anchors_agree;
}

}  // namespace

class TestRoundsFragments : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_parts_are_the_whole();
  void a_call_finds_its_fragment();
  void the_anchors_of_a_round_are_one_name();
  void boundaries_are_spread_over_a_round();
  void learns_as_well_and_hardly_waits();
  void one_fragment_is_a_plain_overlap();
  void one_of_four_dies_and_comes_back();
  void three_join_one_at_once();
  void one_comes_back_and_one_joins();
  void parts_in_two_levels();
};

void TestRoundsFragments::the_parts_are_the_whole() {
  for (const std::uint64_t values : {5ull, 650ull, 100'000ull, 25'000'000ull}) {
    for (const std::size_t parts : {1u, 3u, 4u, 5u}) {
      const auto fragments = rounds::cut_fragments(values, parts, inner_steps);
      QCOMPARE(fragments.size(), parts);
      std::uint64_t at = 0;
      std::set<rounds::RoundSlot> slots;
      for (const rounds::Fragment& fragment : fragments) {
        QCOMPARE(fragment.first, at);
        QVERIFY(fragment.count > 0);
        slots.insert(fragment.slot);
        at += fragment.count;
      }
      QCOMPARE(at, values);
      QCOMPARE(slots.size(), parts);
      QCOMPARE(fragments.back().first_steps, inner_steps);
    }
  }
  // No codec's chunk is cut in two.
  for (const rounds::Fragment& fragment : rounds::cut_fragments(25'000'000, 4, inner_steps))
    QCOMPARE(fragment.first % outer::codec_chunk, std::uint64_t(0));
}

void TestRoundsFragments::a_call_finds_its_fragment() {
  rounds::RoundSlot slot;
  slot.layer = 3;
  const Bytes status = rounds::encode_status_request({slot, true}),
              chain = rounds::encode_chain_request({slot, 7}),
              fetch = rounds::encode_fetch_request({slot, rounds::FetchRequest::What::Payload, {}, 0});
  QVERIFY(rounds::slot_of_call(net::Method::RoundStatus, status) == slot);
  QVERIFY(rounds::slot_of_call(net::Method::RoundChain, chain) == slot);
  QVERIFY(rounds::slot_of_call(net::Method::RoundFetch, fetch) == slot);
  rounds::NewViewPost post;
  post.slot = slot;
  post.round = 5;
  const Bytes item = rounds::encode_item(post);
  QVERIFY(rounds::slot_of_call(net::Method::RoundPost, item) == slot);
  // In sub-groups, too; and in each kind of what is said.
  rounds::RoundBody body;
  body.slot = slot;
  body.members.push_back(rounds::make_member(key_of_node(1, 1).public_key()));
  const rounds::RoundQuorum quorum{body, 0, {}};
  rounds::Contribution given;
  given.slot = slot;
  rounds::GroupedBody content;
  content.slot = slot;
  const std::vector<Bytes> posts{
      rounds::encode_item(rounds::ContributionPost{given, {1, 2, 3}}),
      rounds::encode_item(rounds::ProposalPost{0, body, std::nullopt}),
      rounds::encode_item(rounds::ProposalPost{1, body, quorum}),
      rounds::encode_item(rounds::VotePost{{rounds::VoteStep::Prepare, slot, 5, 0, {}}, {}}),
      rounds::encode_item(rounds::CertificatePost{{body, 0, {}}}),
      rounds::encode_item(rounds::ChangePost{slot, {}}),
      rounds::encode_item(rounds::EvidencePost{given, given}),
      rounds::encode_grouped_post(rounds::GroupPost{item}),
      rounds::encode_grouped_post(
          rounds::GroupedProposal{false, 0, {}, rounds::encode_grouped_body(content), std::nullopt}),
      rounds::encode_grouped_post(rounds::GroupedLock{true, quorum}),
      rounds::encode_grouped_post(rounds::GroupedCertificate{false, quorum}),
      rounds::encode_grouped_post(rounds::CollectedVotes{{rounds::VoteStep::Commit, slot, 5, 0, {}}, {{}}}),
      rounds::encode_grouped_post(rounds::GroupResult{1, {body, 0, {}}}),
      rounds::encode_grouped_post(post)};
  for (std::size_t i = 0; i < posts.size(); ++i) {
    QVERIFY2(rounds::slot_of_call(net::Method::RoundPost, posts[i]) == slot, std::to_string(i).c_str());
    for (std::size_t length = 0; length < posts[i].size(); ++length) {
      const auto cut = rounds::slot_of_call(net::Method::RoundPost, ByteSpan(posts[i]).first(length));
      QVERIFY2(!cut || cut == slot, std::to_string(i).c_str());
    }
  }
  QVERIFY(!rounds::slot_of_call(net::Method::RoundPost, status));
  QVERIFY(!rounds::slot_of_call(net::Method::RoundStatus, {}));
  QVERIFY(!rounds::slot_of_call(net::Method::Ping, status));
}

void TestRoundsFragments::the_anchors_of_a_round_are_one_name() {
  const Hash256 first{1}, second{2}, other{3};
  QVERIFY(rounds::joint_anchor(7, {first}) == first);  // nothing is cut
  rounds::JointAnchors anchors(2);
  anchors.add(0, 7, first);
  QVERIFY(!anchors.of_all(7));  // half of it is not known
  anchors.add(0, 8, other);
  anchors.add(1, 7, second);
  const auto seven = anchors.of_all(7);
  QVERIFY(seven == rounds::joint_anchor(7, {first, second}));
  QVERIFY(*seven != rounds::joint_anchor(8, {first, second}) &&
          *seven != rounds::joint_anchor(7, {second, first}));
  QVERIFY(!anchors.of_all(8) && anchors.of(0, 8) == other);
  for (std::uint64_t round = 9; round < 9 + rounds::JointAnchors::rounds_kept; ++round)
    anchors.add(1, round, first);
  QVERIFY(!anchors.of_all(7));
}

void TestRoundsFragments::boundaries_are_spread_over_a_round() {
  FragmentWorld world(options<FragmentWorldOptions>(1), model);
  for (std::size_t i = 0; i < 4; ++i) world.start(i);
  QVERIFY2(world.run_to_round(8, 40 * round_time), text(world, "eight rounds").c_str());
  const double round = to_seconds(round_time);
  for (std::size_t k = 3; k < 8; ++k) {
    for (std::size_t f = 0; f + 1 < 4; ++f) {
      const double apart = world.certified_at(f + 1)[k] - world.certified_at(f)[k];
      QVERIFY2(apart > 0.15 * round && apart < 0.35 * round, qPrintable(QString::number(apart)));
    }
    const double took = world.certified_at(0)[k] - world.certified_at(0)[k - 1];
    QVERIFY2(took > 0.9 * round && took < 1.15 * round, qPrintable(QString::number(took)));
  }
  QVERIFY2(safe(world), text(world, "safe").c_str());
}

void TestRoundsFragments::learns_as_well_and_hardly_waits() {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    RoundWorld whole(options<RoundWorldOptions>(seed), model);
    FragmentWorld parts(options<FragmentWorldOptions>(seed), model);
    for (std::size_t i = 0; i < 4; ++i) {
      whole.start(i);
      parts.start(i);
    }
    QVERIFY(whole.run_to_round(15, 60 * round_time));
    QVERIFY2(parts.run_to_round(15, 60 * round_time), text(parts, "fifteen rounds").c_str());
    const double of_whole = task()->held_out_loss(whole.newest_anchor()->weights);
    const double of_parts = task()->held_out_loss(parts.newest_weights());
    const double waiting = parts.trainer(0).waiting_share();
    const std::string all = fmt::format("seed {}: loss {:.4f} whole, {:.4f} in parts, waiting {:.3f}", seed,
                                        of_whole, of_parts, waiting);
    qInfo("%s", all.c_str());
    QVERIFY2(safe(parts), text(parts, "safe").c_str());
    QVERIFY2(of_parts < 1.03 * of_whole, all.c_str());
    QVERIFY2(waiting < 0.05, all.c_str());
    for (std::size_t f = 0; f < 4; ++f) {
      const std::uint64_t named = parts.steps_named(1, f), trained = parts.trainer(1).steps_trained();
      QVERIFY2(named <= trained && trained - named <= 3 * inner_steps,
               fmt::format("{} named, {} trained", named, trained).c_str());
    }
  }
}

// The same training bit for bit as rounds of the whole that overlap: the fragments add nothing but their cut.
void TestRoundsFragments::one_fragment_is_a_plain_overlap() {
  FragmentWorldOptions one = options<FragmentWorldOptions>(2);
  one.fragments = 1;
  FragmentWorld parts(one, model);
  RoundWorld whole(options<RoundWorldOptions>(2), model);
  for (std::size_t i = 0; i < 4; ++i) {
    whole.start(i);
    parts.start(i);
  }
  QVERIFY(whole.run_to_round(1, 20 * round_time));
  QVERIFY(parts.run_to_round(1, 20 * round_time));
  QVERIFY(whole.newest_anchor()->weights == parts.newest_weights());
}

void TestRoundsFragments::one_of_four_dies_and_comes_back() {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    FragmentWorld world(options<FragmentWorldOptions>(seed), model);
    for (std::size_t i = 0; i < 4; ++i) world.start(i);
    Rng rng(seed);
    world.world().run_for(2 * round_time + std::chrono::milliseconds(rng.below(4000)));
    const std::size_t node = rng.below(4);
    world.kill(node);
    world.world().run_for(std::chrono::milliseconds(rng.below(12'000)));
    world.start(node);
    QVERIFY2(world.run_to_round(8, 80 * round_time), text(world, "back").c_str());
    const auto whole = [&] {
      for (std::size_t f = 0; f < 4; ++f)
        if (!world.node(node, f).view().member || world.node(node, f).view().members != 4) return false;
      return world.agree();
    };
    QVERIFY2(world.world().run_until(whole, world.world().now() + 20 * round_time),
             text(world, "one anchor").c_str());
    // From outside each is one node, which says of all fragments what the others say of them.
    for (std::size_t i = 0; i < 4; ++i) {
      const rounds::FragmentNodes& nodes = world.nodes(i);
      const rounds::RoundView view = nodes.view();
      QVERIFY(nodes.begun() && nodes.agrees() && view.member && view.members == 4);
      QVERIFY(view.round >= 8 && nodes.held_round() == view.round);
      QVERIFY(view.anchor == view.own_anchor);
      QVERIFY(world.nodes(0).own_anchor(view.round) == view.anchor);
      QVERIFY(view.contributed == nodes.node(0).view().contributed + nodes.node(1).view().contributed +
                                      nodes.node(2).view().contributed + nodes.node(3).view().contributed);
    }
    QVERIFY2(safe(world), text(world, "safe").c_str());
  }
}

// At some moment each of them is a member of some fragments only. Whoever waited for the others then would
// wait until the deadline of a first round, half an hour.
void TestRoundsFragments::three_join_one_at_once() {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    FragmentWorldOptions one = options<FragmentWorldOptions>(seed);
    one.founders = 1;
    one.round.first_deadline = std::chrono::minutes(30);
    one.trainer.step_time = std::chrono::milliseconds(25);  // joining takes longer than a round
    FragmentWorld world(one, model);
    world.start(0);
    Rng rng(seed);
    world.world().run_for(2 * round_time + std::chrono::milliseconds(rng.below(4000)));
    for (std::size_t i = 1; i < 4; ++i) world.start(i);
    const auto all = [&] {
      for (std::size_t i = 0; i < 4; ++i) {
        const rounds::RoundView view = world.nodes(i).view();
        if (!view.member || view.members != 4 || view.contributed < 8) return false;
      }
      return world.agree();
    };
    QVERIFY2(world.world().run_until(all, world.world().now() + 25 * round_time), text(world, "in").c_str());
    QVERIFY2(safe(world), text(world, "safe").c_str());
  }
}

// Neither knows how long a round takes, so neither closes one before half an hour.
void TestRoundsFragments::one_comes_back_and_one_joins() {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    FragmentWorldOptions two = options<FragmentWorldOptions>(seed);
    two.nodes = 3;
    two.founders = 2;
    two.fragments = 2;
    two.round.first_deadline = std::chrono::minutes(30);
    two.round.provisional_after = std::chrono::seconds(60);
    two.trainer.step_time = std::chrono::milliseconds(25);
    FragmentWorld world(two, model);
    world.start(0);
    world.start(1);
    Rng rng(seed);
    world.world().run_for(2 * round_time + std::chrono::milliseconds(rng.below(2000)));
    world.kill(1);
    world.world().run_for(std::chrono::milliseconds(rng.below(2000)));
    world.start(1);
    world.world().run_for(std::chrono::milliseconds(rng.below(1500)));
    world.start(2);
    const auto all = [&] {
      for (std::size_t i = 0; i < 3; ++i) {
        const rounds::RoundView view = world.nodes(i).view();
        if (!view.member || view.members != 3 || view.contributed < 4) return false;
      }
      return world.agree();
    };
    QVERIFY2(world.world().run_until(all, world.world().now() + 12 * round_time),
             fmt::format("seed {}", seed).c_str());
    QVERIFY2(safe(world), text(world, "safe").c_str());
  }
}

// Each part's members are dealt into sub-groups of their own, and one node dies and comes back.
void TestRoundsFragments::parts_in_two_levels() {
  auto o = options<FragmentWorldOptions>(1);
  o.nodes = 8;
  o.fragments = 2;
  o.round.group_members = 4;
  FragmentWorld world(o, model);
  for (std::size_t i = 0; i < o.nodes; ++i) world.start(i);
  QVERIFY2(world.run_to_round(5, 60 * round_time), text(world, "five rounds").c_str());
  const std::size_t groups = rounds::group_count(o.nodes, o.round.group_members);
  QVERIFY(groups > 1);
  for (std::size_t f = 0; f < o.fragments; ++f) QCOMPARE(world.node(0, f).view().groups, groups);
  const FragmentWorldSeen before = world.seen();
  QVERIFY2(before.contributions >= 7 * before.certificates,
           fmt::format("{} in {}", before.contributions, before.certificates).c_str());
  world.kill(7);
  QVERIFY2(world.run_to_round(7, 60 * round_time), text(world, "without one").c_str());
  world.start(7);
  QVERIFY2(world.run_to_round(10, 80 * round_time), text(world, "it is back").c_str());
  QVERIFY(world.world().run_until([&] { return world.agree(); }, world.world().now() + 4 * round_time));
  QVERIFY2(safe(world), text(world, "safe").c_str());
  QVERIFY(task()->held_out_loss(world.newest_weights()) < task()->held_out_loss(o.initial));
}

NS_TEST(TestRoundsFragments)
#include "test_rounds_fragments.moc"
