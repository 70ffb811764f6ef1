// The fuzzer itself: bugs that are planted in front of a node are found, and valid messages alone don't find them.
#include <QtTest>

#include "core/rounds/pieces.h"
#include "tests/sim/attacked_world.h"
#include "tests/sim/attacker.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT
using test::AttackedWorld;
using test::Attacker;
using test::FuzzTarget;
using test::Message;

namespace {

// A reader with a bug: whether these bytes would make it go wrong.
using Bug = bool (*)(net::Method method, ByteSpan request, const Hash256& network);

bool reads_beyond_the_end(net::Method method, ByteSpan request, const Hash256&) {
  if (method != net::Method::ChainPost || request.size() < 5 || request[0] != rounds::contribution_kind)
    return false;
  return load_le<std::uint32_t>(request.data() + 1) > request.size() - 5;  // that no reader checks
}

bool believes_a_count(net::Method method, ByteSpan request, const Hash256&) {
  if (method != net::Method::ChainPost || request.size() < 4 || request[0] != 14) return false;
  return load_le<std::uint16_t>(request.data() + 2) > chain::max_relayed_items;
}

bool adds_up_to_nothing(net::Method method, ByteSpan request, const Hash256&) {
  if (method != net::Method::RoundPiece) return false;
  const auto piece = rounds::decode_piece_request(request);
  return piece.ok() && piece->place + (256u << 10) < piece->place;
}

bool trusts_a_signed_height(net::Method method, ByteSpan request, const Hash256& network) {
  if (method != net::Method::ChainPost || request.empty() || request[0] != 8) return false;
  const auto beat = chain::decode_heartbeat(request.subspan(1));
  return beat.ok() && chain::heartbeat_holds(*beat, network) && beat->tip.height > (1u << 20);
}

bool trusts_a_body(net::Method method, ByteSpan request, const Hash256& network) {
  if (method != net::Method::ChainPost || request.empty() || request[0] != 1) return false;
  const auto read = chain::decode_item(request, network);
  if (!read.ok()) return false;
  const auto& close = std::get<chain::Proposal>(*read).block->body.close;
  return close && std::any_of(close->contributions.begin(), close->contributions.end(),
                              [](const chain::ContributionEntry& entry) { return entry.member > 1000; });
}

struct Planted {
  const char* name;
  Bug strikes;
};
constexpr Planted planted[] = {
    {"a length is believed", reads_beyond_the_end},
    {"a count is believed", believes_a_count},
    {"a place overflows", adds_up_to_nothing},
    {"a signature is taken for the truth", trusts_a_signed_height},
    {"a proposal with the right root names a member that is none", trusts_a_body},
};

class TestPlantedBugs : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void planted_bugs_are_found_data();
  void planted_bugs_are_found();
};

void TestPlantedBugs::planted_bugs_are_found_data() {
  QTest::addColumn<int>("number");
  int number = 0;
  for (const Planted& one : planted) QTest::newRow(one.name) << number++;
}

void TestPlantedBugs::planted_bugs_are_found() {
  QFETCH(int, number);
  const Bug bug = planted[number].strikes;
  const std::uint64_t seed = test::first_seed();
  AttackedWorld attacked(test::lab_options(seed, 4), seed);
  sim::ChainWorld& world = attacked.lab.world;
  QVERIFY(world.run_to_round(2, 20 * test::lab_round));
  for (std::uint64_t height = 0; height <= world.chain(0).history()->tip().height(); ++height)
    attacked.pool->learn_block(*world.chain(0).history()->find(height));
  constexpr std::uint64_t most = 500'000, most_valid = 30'000;  // the last bug takes some 50,000
  const auto calls_until_found = [&](bool valid_only) {
    const std::uint64_t limit = valid_only ? most_valid : most;
    Attacker attacker(*attacked.pool, world.world().clock(), seed);
    attacker.valid_only = valid_only;
    for (const Message& message : attacker.own_messages())
      attacked.pool->learn(message.method, message.request);
    // Where the bug strikes, nobody answers.
    FuzzTarget target([&](const net::Caller&, net::Method method, ByteSpan request, const net::Reply& reply) {
      if (!bug(method, request, world.network_id())) reply(Bytes());
    });
    while (target.calls() < limit && target.findings().empty())
      target.call(attacker.from(), attacker.next().message);
    return target.findings().empty() ? limit : target.calls();
  };
  const std::uint64_t found = calls_until_found(false);
  qInfo("found after %llu calls", (unsigned long long)found);
  QVERIFY(found < most);
  QCOMPARE(calls_until_found(true), most_valid);
}

}  // namespace

NS_TEST(TestPlantedBugs)
#include "test_planted_bugs.moc"
