// Nodes whose disk is full, fails, is lost, or is put back from an old image, and two nodes with one key. The others go on, and
// nobody honest is expelled.
#include <QtTest>

#include "tests/sim/chain_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using test::ChainLab;
using test::expelled;
using test::lab_options;
using test::lab_round;
using test::lab_second;
using test::tell_nothing;

namespace {

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

class TestChainDisks : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_full_disk_holds_up_nobody_and_carries_no_row_data();
  void a_full_disk_holds_up_nobody_and_carries_no_row();
  void a_write_that_fails_holds_up_no_round_data();
  void a_write_that_fails_holds_up_no_round();
  void a_node_without_room_pauses_and_goes_on_data();
  void a_node_without_room_pauses_and_goes_on();
  void an_old_disk_image_expels_nobody_data();
  void an_old_disk_image_expels_nobody();
  void an_old_disk_image_that_signs_at_once_is_found_out();
  void a_lost_disk_with_its_key_expels_nobody();
  void lost_votes_stop_no_network();
  void lost_votes_are_not_cast_again_after_a_power_cut();
  void an_image_of_the_same_height_expels_nobody_data();
  void an_image_of_the_same_height_expels_nobody();
  void an_image_of_the_same_height_that_nobody_questions_is_found_out();
  void of_two_copies_the_later_one_goes_on();
};

// A node with a full disk can't compute its rows: that is no result, so it proposes no carried row. It can't keep votes
// either, so it is silent. It goes on when there is room again. Two of three go on by the stall rule.
void TestChainDisks::a_full_disk_holds_up_nobody_and_carries_no_row_data() {
  QTest::addColumn<int>("nodes");
  QTest::newRow("one of three") << 3;
  QTest::newRow("one of four") << 4;
}

void TestChainDisks::a_full_disk_holds_up_nobody_and_carries_no_row() {
  QFETCH(const int, nodes);
  for (std::uint64_t seed = 1; seed <= seeds(4); ++seed) {
    ChainLab lab(lab_options(seed, static_cast<std::size_t>(nodes)));
    QVERIFY(lab.world.run_to_round(2, 20 * lab_round));
    lab.world.disk(2).spool.full = true;
    QVERIFY2(lab.world.run_until([&] { return lab.world.round(0) >= 6; }, 40 * lab_round),
             lab.text("the others go on").c_str());
    const rounds::TrainingView full = lab.world.training(2).view();
    QVERIFY2(!full.holds && full.trouble.find("disk is full") != std::string::npos, full.trouble.c_str());
    lab.world.disk(2).spool.full = false;
    QVERIFY2(lab.world.run_to_round(10, 40 * lab_round), lab.text("all").c_str());
    lab.run_for(2 * lab_second);
    QVERIFY(lab.world.training(2).view().trouble.empty());
    QCOMPARE(lab.world.agreement_rate(), 1.0);
    QCOMPARE(lab.world.seen().conflicts, 0u);
    QCOMPARE(lab.world.seen().twice, 0u);
    QCOMPARE(lab.world.seen().rows_carried, 0u);
  }
}

void TestChainDisks::a_write_that_fails_holds_up_no_round_data() {
  QTest::addColumn<int>("record");
  QTest::newRow("of the vector") << static_cast<int>(rounds::RoundStore::Record::Vector);
  QTest::newRow("of the contribution") << static_cast<int>(rounds::RoundStore::Record::Contribution);
}

// Neither of two closes a round without the other, so what could not be kept is kept and sent a little later.
void TestChainDisks::a_write_that_fails_holds_up_no_round() {
  QFETCH(const int, record);
  ChainLab lab(lab_options(1, 2));
  QVERIFY(lab.world.run_to_round(2, 20 * lab_round));
  lab.world.disk(1).failing[static_cast<rounds::RoundStore::Record>(record)] = 2;
  const std::uint64_t round = lab.world.round(0);
  QVERIFY2(lab.world.run_to_round(round + 3, 10 * lab_round), lab.text("they go on").c_str());
  QCOMPARE(lab.world.disk(1).failing[static_cast<rounds::RoundStore::Record>(record)], 0);
  QCOMPARE(lab.world.training(1).view().left_out, 0u);
  QVERIFY(lab.world.training(1).view().trouble.empty());
  QCOMPARE(lab.world.seen().conflicts + lab.world.seen().twice, 0u);
}

namespace {

class Room final : public rounds::RoundRoom {
 public:
  Expected<void> take(std::size_t contributors) override {
    ++asked;
    most = std::max(most, contributors);
    if (left == 0) return make_error(ErrorCode::Exhausted, "the day's budget is used up");
    --left;
    return {};
  }
  Expected<void> check() const override {
    return is_full ? make_error(ErrorCode::Exhausted, "the disk is full") : Expected<void>();
  }
  std::uint64_t left = ~std::uint64_t{0}, asked = 0;
  std::size_t most = 0;
  bool is_full = false;
};

}  // namespace

void TestChainDisks::a_node_without_room_pauses_and_goes_on_data() {
  QTest::addColumn<int>("nodes");
  QTest::newRow("the only one") << 1;
  QTest::newRow("one of two") << 2;
  QTest::newRow("one of four") << 4;
}

// By the limits of its user. It declares itself away, as the runtime does; the others go on.
void TestChainDisks::a_node_without_room_pauses_and_goes_on() {
  QFETCH(const int, nodes);
  Room room;
  auto options = lab_options(3, static_cast<std::size_t>(nodes));
  options.room = [&](std::size_t node) { return node == 0 ? &room : nullptr; };
  ChainLab lab(options);
  QVERIFY(lab.world.run_to_round(3, 20 * lab_round));
  QVERIFY(room.most >= static_cast<std::size_t>(nodes));
  room.left = 0;
  QVERIFY2(lab.world.run_until([&] { return !lab.world.training(0).view().no_room.empty(); }, 20 * lab_round),
           lab.text("it pauses").c_str());
  lab.world.chain(0).set_away(true);
  lab.run_for(2 * lab_round);
  const rounds::TrainingView paused = lab.world.training(0).view();
  const std::uint64_t stands = lab.world.round(static_cast<std::size_t>(nodes) - 1);
  const std::uint64_t received = paused.bytes_received;
  lab.run_for(8 * lab_round);
  const rounds::TrainingView still = lab.world.training(0).view();
  QVERIFY2(!still.contributed && still.no_room == "the day's budget is used up", still.no_room.c_str());
  QCOMPARE(still.bytes_received, received);  // it fetches nothing that it could not keep
  if (nodes > 1)
    QVERIFY2(lab.world.round(1) >= stands + 4, lab.text("the others").c_str());
  else
    QCOMPARE(lab.world.round(0), stands);
  room.left = ~std::uint64_t{0};
  lab.world.chain(0).set_away(false);
  const std::uint64_t from = lab.world.round(static_cast<std::size_t>(nodes) - 1);
  QVERIFY2(lab.world.run_to_round(from + 6, 40 * lab_round), lab.text("all again").c_str());
  lab.run_for(2 * lab_second);
  QVERIFY(lab.world.training(0).view().no_room.empty());
  QCOMPARE(lab.world.seen().contributors.rbegin()->second, static_cast<std::size_t>(nodes));
  QCOMPARE(lab.world.seen().conflicts, 0u);
  QCOMPARE(lab.world.seen().twice, 0u);
  QCOMPARE(lab.world.agreement_rate(), 1.0);
}

void TestChainDisks::an_old_disk_image_expels_nobody_data() {
  QTest::addColumn<double>("seconds");  // into the round at which the node dies
  QTest::addColumn<bool>("same_life");  // the copy is of the same start as the death
  for (const double at : {0.2, 2.0, 4.8, 5.2, 6.0}) {
    QTest::addRow("%.1f s into the round", at) << at << true;
  }
  QTest::addRow("copied before an earlier start") << 4.6 << false;
}

// A copy of the disk of round 3 is put back at round 9, with neither the newer votes nor the newer contribution.
// How many proofs of equivocation the others have at the end; nothing: it did not go on as it must.
std::optional<std::uint64_t> proofs_after_restoring(std::uint64_t seed, double seconds, bool same_life,
                                                    bool asks, std::string* text) {
  auto options = lab_options(seed, 3);  // nothing goes on without the third
  if (!asks) options.chain.sync.ask_for = Duration{};
  ChainLab lab(options);
  if (!asks) tell_nothing(lab, 2);
  if (!lab.world.run_to_round(3, 20 * lab_round)) return std::nullopt;
  const ChainDisk image = lab.world.disk(2);
  if (!same_life) {
    lab.world.kill(2);
    lab.world.start(2);
  }
  if (!lab.world.run_to_round(9, 40 * lab_round)) return std::nullopt;
  lab.run_for(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  lab.world.kill(2);
  lab.world.disk(2) = image;
  lab.world.start(2);
  const bool goes_on = lab.world.run_to_round(14, 60 * lab_round);
  lab.run_for(2 * lab_second);
  *text = lab.text("restored");
  std::uint64_t proofs = expelled(lab, 0);
  for (std::size_t node = 0; node < 3; ++node) proofs += lab.world.chain(node).view().evidence;
  if (!asks) return proofs;
  const bool votes = lab.world.chain(0).history()->tip().committee->position(lab.world.id(2)).has_value();
  const bool right = goes_on && votes && lab.world.training(2).view().counted >= 2 &&
                     lab.world.seen().conflicts + lab.world.seen().twice == 0 &&
                     lab.world.agreement_rate() == 1.0;
  return right ? std::optional(proofs) : std::nullopt;
}

// It asks how far the others are before it signs, and lets the height and the round pass in which it could
// contradict itself.
void TestChainDisks::an_old_disk_image_expels_nobody() {
  QFETCH(double, seconds);
  QFETCH(bool, same_life);
  std::string text;
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    const auto proofs = proofs_after_restoring(seed, seconds, same_life, true, &text);
    QVERIFY2(proofs == std::optional<std::uint64_t>(0), text.c_str());
  }
}

// The control: a node that signs at once.
void TestChainDisks::an_old_disk_image_that_signs_at_once_is_found_out() {
  std::string text;
  std::uint64_t proofs = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    for (const double at : {3.6, 4.0, 4.4, 4.8, 5.2})
      proofs += proofs_after_restoring(seed, at, true, false, &text).value_or(0);
  qInfo("%llu proofs", (unsigned long long)proofs);
  QVERIFY(proofs > 0);
}

Duration in_seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// A person kept the key and nothing else. Planted: is_first_start() that looks at the boot alone lets the node
// believe the first answer.
void TestChainDisks::a_lost_disk_with_its_key_expels_nobody() {
  for (std::uint64_t seed = 1; seed <= seeds(3); ++seed)
    for (const double at : {0.3, 3.6, 3.9, 4.1, 4.5}) {
      ChainLab lab(lab_options(seed, 5));
      QVERIFY2(lab.world.run_to_round(4, 40 * lab_round), lab.text("four rounds").c_str());
      lab.run_for(in_seconds(at));
      lab.world.kill(2);
      lab.world.disk(2) = ChainDisk();
      lab.world.start(2);
      QVERIFY2(lab.world.run_to_round(8, 40 * lab_round), lab.text("goes on").c_str());
      lab.run_for(2 * lab_second);
      const std::string text = lab.text("lost disk");
      QVERIFY2(!lab.world.chain(2).view().runs_twice, text.c_str());
      QVERIFY2(lab.world.seen().conflicts + lab.world.seen().twice == 0, text.c_str());
      for (std::size_t node = 0; node < 5; ++node)
        QVERIFY2(lab.world.chain(node).view().evidence == 0, text.c_str());
    }
}

// Neither of two goes on without the other.
void TestChainDisks::lost_votes_stop_no_network() {
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed)
    for (const double at : {0.3, 3.9, 4.1, 4.5}) {
      ChainLab lab(lab_options(seed, 2));
      QVERIFY2(lab.world.run_to_round(3, 40 * lab_round), lab.text("three rounds").c_str());
      lab.run_for(in_seconds(at));
      lab.world.kill(1);
      lab.world.disk(1).records.erase(chain::ChainStore::Record::Votes);
      lab.world.start(1);
      if (at < 1) {
        // No block is due yet, and the one that votes again begins none.
        const auto votes = [&] { return lab.world.chain(1).view().state == chain::NodeState::Voting; };
        QVERIFY2(lab.world.run_until(votes, lab_round / 2), lab.text("votes").c_str());
        lab.run_for(2 * lab_second);
        QVERIFY2(!lab.world.chain(0).view().block_due, lab.text("idle").c_str());
      }
      const std::uint64_t round = lab.world.round(0);
      QVERIFY2(lab.world.run_to_round(round + 3, 60 * lab_round), lab.text("goes on").c_str());
      const std::string text = lab.text("lost votes");
      QVERIFY2(!lab.world.chain(1).view().lacks_votes, text.c_str());
      QVERIFY2(lab.world.seen().conflicts + lab.world.seen().twice == 0, text.c_str());
      for (std::size_t node = 0; node < 2; ++node)
        QVERIFY2(lab.world.chain(node).view().evidence == 0, text.c_str());
    }
}

// The others have forgotten what they took of it, so that they hold none is no answer.
void TestChainDisks::lost_votes_are_not_cast_again_after_a_power_cut() {
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed)
    for (const double at : {3.9, 4.1, 4.3, 4.5}) {
      ChainLab lab(lab_options(seed, 4));
      QVERIFY2(lab.world.run_to_round(3, 40 * lab_round), lab.text("three rounds").c_str());
      lab.run_for(in_seconds(at));
      for (std::size_t node = 0; node < 4; ++node) lab.world.kill(node);
      lab.world.disk(1).records.erase(chain::ChainStore::Record::Votes);
      lab.world.start_all();
      const std::uint64_t height = lab.world.height(1);
      bool votes = false;
      const auto is_over = [&] {
        const chain::ChainView view = lab.world.chain(1).view();
        votes = votes || (view.state == chain::NodeState::Voting && view.height == height);
        return view.height > height;
      };
      QVERIFY2(lab.world.run_until(is_over, 20 * lab_round), lab.text("the next block").c_str());
      QVERIFY2(!votes, lab.text("it abstains").c_str());
      const std::uint64_t round = lab.world.round(0);
      QVERIFY2(lab.world.run_to_round(round + 3, 60 * lab_round), lab.text("goes on").c_str());
      const std::string text = lab.text("a power cut");
      QVERIFY2(lab.world.seen().conflicts + lab.world.seen().twice == 0, text.c_str());
      for (std::size_t node = 0; node < 4; ++node)
        QVERIFY2(lab.world.chain(node).view().evidence == 0, text.c_str());
    }
}

// The image has the newest block, and neither the votes on the next one nor what was signed for the round. How
// many proofs of equivocation there are at the end; nothing: the nodes did not go on as they must.
std::optional<std::uint64_t> proofs_after_an_image(std::uint64_t seed, double copied, double put_back,
                                                   bool same_life, bool told, std::string* text) {
  ChainLab lab(lab_options(seed, 3));
  if (!told) tell_nothing(lab, 2);
  if (!lab.world.run_to_round(4, 40 * lab_round)) return std::nullopt;
  lab.run_for(in_seconds(copied));
  const ChainDisk image = lab.world.disk(2);
  if (!same_life) {
    lab.world.kill(2);
    lab.world.start(2);
  }
  lab.run_for(in_seconds(put_back));
  lab.world.kill(2);
  lab.world.disk(2) = image;
  lab.world.start(2);
  const bool goes_on = lab.world.run_to_round(8, 40 * lab_round);
  lab.run_for(2 * lab_second);
  *text = lab.text("restored");
  std::uint64_t proofs = expelled(lab, 0);
  for (std::size_t node = 0; node < 3; ++node) proofs += lab.world.chain(node).view().evidence;
  if (!told) return proofs;
  *text += " goes on " + std::to_string(goes_on) + " proofs " + std::to_string(proofs) + " runs twice " +
           std::to_string(lab.world.chain(2).view().runs_twice);
  const bool right = goes_on && !lab.world.chain(2).view().runs_twice && lab.world.agreement_rate() == 1.0 &&
                     lab.world.seen().conflicts + lab.world.seen().twice == 0;
  return right ? std::optional(proofs) : std::nullopt;
}

void TestChainDisks::an_image_of_the_same_height_expels_nobody_data() {
  QTest::addColumn<double>("copied");    // seconds into the round
  QTest::addColumn<double>("put_back");  // seconds later
  QTest::addColumn<bool>("same_life");   // false: the node was restarted in between
  for (const bool same_life : {true, false})
    for (const double copied : {0.3, 3.9, 4.1, 4.5})
      for (const double put_back : {0.3, 0.6, 1.0})
        QTest::addRow("copied at %.1f s, put back %.1f s later%s", copied, put_back,
                      same_life ? "" : ", after a restart")
            << copied << put_back << same_life;
}

void TestChainDisks::an_image_of_the_same_height_expels_nobody() {
  QFETCH(double, copied);
  QFETCH(double, put_back);
  QFETCH(bool, same_life);
  std::string text;
  for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
    const auto proofs = proofs_after_an_image(seed, copied, put_back, same_life, true, &text);
    QVERIFY2(proofs == std::optional<std::uint64_t>(0), text.c_str());
  }
}

// The control: nobody tells the restored node what it signed.
void TestChainDisks::an_image_of_the_same_height_that_nobody_questions_is_found_out() {
  std::string text;
  std::uint64_t proofs = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (const double copied : {3.9, 4.1, 4.5})
      for (const double put_back : {0.3, 0.6, 1.0})
        proofs += proofs_after_an_image(seed, copied, put_back, true, false, &text).value_or(0);
  qInfo("%llu proofs", (unsigned long long)proofs);
  QVERIFY(proofs > 0);
}

// A peer shows a heartbeat of a later start: another process has this node's key.
void TestChainDisks::of_two_copies_the_later_one_goes_on() {
  ChainLab lab(lab_options(1, 4));
  QVERIFY(lab.world.run_to_round(3, 20 * lab_round));
  const chain::ChainTip& tip = lab.world.chain(0).history()->tip();
  const auto show = [&](const crypto::KeyPair& signer, std::uint64_t boot) {
    chain::Heartbeat other;
    other.tip = {tip.height(), tip.block->hash};
    other.boot = boot;
    other.incarnation = 77;
    chain::sign_heartbeat(other, signer, lab.world.network_id());
    other.node = lab.world.key(3).public_key();
    // The other copy asks everybody, as a node does that starts.
    for (std::size_t node = 0; node < 3; ++node)
      lab.world.chain(node).on_call({lab.world.id(3), {}}, net::Method::ChainStatus,
                                    chain::encode_status_request({true, other}), [](Expected<Bytes>) {});
    lab.run_for(10 * lab_second);
    return lab.world.chain(3).view().runs_twice;
  };
  QVERIFY2(!show(lab.world.key(2), 9), "a heartbeat that another key signed counts");
  QVERIFY2(show(lab.world.key(3), 10), lab.text("a later start").c_str());
  QVERIFY(lab.world.chain(3).view().state == chain::NodeState::Following);
  QVERIFY2(lab.world.run_to_round(lab.world.round(0) + 3, 40 * lab_round), lab.text("three go on").c_str());
  // Its person stops the other one and starts this one again.
  lab.world.kill(3);
  lab.world.start(3);
  QVERIFY2(lab.world.run_to_round(lab.world.round(0) + 4, 40 * lab_round), lab.text("four go on").c_str());
  QVERIFY(!lab.world.chain(3).view().runs_twice);
  QVERIFY2(lab.world.run_until([&] { return !lab.world.chain(3).is_away(); }, 20 * lab_round),
           lab.text("votes again").c_str());
  QCOMPARE(expelled(lab, 0), 0u);
}

}  // namespace

NS_TEST(TestChainDisks)
#include "test_chain_disks.moc"
