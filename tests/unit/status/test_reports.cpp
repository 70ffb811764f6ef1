// Reports of the training's status: what is written is read again, what somebody made up, changed, kept for
// later or brought from another network is refused, and what follows from many of them for the network does
// not depend on what a few say.
#include <QtTest>
#include <limits>

#include "core/status/gossip.h"
#include "core/status/warnings.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::status;

namespace {

Hash256 filled(std::uint8_t value) {
  Hash256 hash{};
  hash.fill(value);
  return hash;
}
const Hash256 network = filled(7);
const WallTime now{std::chrono::milliseconds(1'700'000'000'000)};
constexpr auto second = std::chrono::seconds(1);

using neuroshard::test::key_numbered;

// Wallets have keys of their own: from 1000 on.
StatusReport report_of(std::uint16_t node, std::optional<std::uint16_t> wallet, const OwnStatus& status,
                       WallTime made = now, const Hash256& net = network) {
  const crypto::KeyPair own = key_numbered(node);
  std::optional<crypto::Delegation> delegation;
  if (wallet)
    delegation = crypto::delegate(key_numbered(static_cast<std::uint16_t>(1000 + *wallet)), own.public_key(),
                                  net, now + std::chrono::hours(1), 1);
  return sign_report(status, made, delegation, own, net);
}

OwnStatus training(double loss, std::uint64_t round = 5, std::uint8_t anchor = 50) {
  OwnStatus status;
  status.round = round;
  status.anchor = filled(anchor);
  status.previous_anchor = filled(static_cast<std::uint8_t>(anchor - 1));
  status.training = true;
  status.steps = 1234;
  status.loss = loss;
  status.tokens_per_second = 2000;
  status.contributed = 4;
  status.synced = 4;
  status.missed = 1;
  status.shard = 3;
  return status;
}

}  // namespace

class TestStatusReports : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_is_written_is_read();
  void what_does_not_hold_is_refused_data();
  void what_does_not_hold_is_refused();
  void a_replayed_report_does_not_take_a_newer_ones_place();
  void a_report_ends_with_its_delegation();
  void the_table_is_bounded();
  void a_liar_does_not_move_the_medians();
  void many_nodes_of_one_wallet_weigh_one();
  void only_members_count_where_they_are_known();
  void agreement_is_with_what_most_hold_or_what_is_certified();
  void warnings_name_the_reason();
  void requests_for_reports_are_canonical();
};

void TestStatusReports::what_is_written_is_read() {
  for (const bool with_wallet : {false, true}) {
    const StatusReport report =
        report_of(1, with_wallet ? std::optional<std::uint16_t>(1) : std::nullopt, training(3.25));
    const Bytes bytes = encode_report(report);
    QCOMPARE(bytes.size(), with_wallet ? max_report_bytes : plain_report_bytes);
    const auto read = decode_report(bytes);
    QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
    QCOMPARE(encode_report(*read), bytes);
    QCOMPARE(*read->status.loss, 3.25);
    QVERIFY(read->status.training);
    QCOMPARE(read->status.steps, std::uint64_t{1234});
    QCOMPARE(*read->status.shard, 3u);
    QVERIFY(check_report(*read, network, now).ok());
    // No byte can be changed unnoticed.
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      Bytes other = bytes;
      other[i] ^= 0x10;
      const auto changed = decode_report(other);
      QVERIFY2(!changed.ok() || !check_report(*changed, network, now).ok(), qPrintable(QString::number(i)));
    }
    QVERIFY(!decode_report(ByteSpan(bytes).first(bytes.size() - 1)).ok());
  }
  // A value that no double can hold is unknown.
  for (const double loss :
       {std::numeric_limits<double>::quiet_NaN(), -1.0, std::numeric_limits<double>::infinity()})
    QVERIFY(!report_of(1, 1, training(loss)).status.loss);
}

void TestStatusReports::what_does_not_hold_is_refused_data() {
  QTest::addColumn<QString>("kind");
  QTest::addColumn<QString>("reason");
  QTest::newRow("another network") << "network"
                                   << "not signed by its node for this network";
  QTest::newRow("another network's wallet") << "wallet network"
                                            << "delegation is for another network";
  QTest::newRow("another node's wallet") << "wallet node"
                                         << "delegation is for another node";
  QTest::newRow("an expired wallet") << "wallet old"
                                     << "delegation has expired";
  QTest::newRow("from the future") << "future"
                                   << "from the future";
  QTest::newRow("too old") << "old"
                           << "too old";
  QTest::newRow("the end of time") << "end"
                                   << "from the future";
  QTest::newRow("the beginning of time") << "beginning"
                                         << "too old";
}

void TestStatusReports::what_does_not_hold_is_refused() {
  QFETCH(QString, kind);
  QFETCH(QString, reason);
  StatusReport report = report_of(1, 1, training(3));
  const auto resign = [&](const crypto::Delegation& delegation) {
    report = sign_report(training(3), now, delegation, key_numbered(1), network);
  };
  const auto word = [](std::uint16_t node, const Hash256& net, WallTime until) {
    return crypto::delegate(key_numbered(1001), key_numbered(node).public_key(), net, until, 1);
  };
  if (kind == "network") report = report_of(1, std::nullopt, training(3), now, filled(8));
  if (kind == "wallet network") resign(word(1, filled(8), now + 100 * second));
  if (kind == "wallet node") resign(word(2, network, now + 100 * second));
  if (kind == "wallet old") resign(word(1, network, now));
  if (kind == "future") report = report_of(1, 1, training(3), now + 61 * second);
  if (kind == "old") report = report_of(1, 1, training(3), now - 301 * second);
  if (kind == "end") report = report_of(1, 1, training(3), WallTime::max());
  if (kind == "beginning") report = report_of(1, 1, training(3), WallTime::min());
  const auto held = check_report(report, network, now);
  QVERIFY(!held.ok());
  QVERIFY2(QString::fromStdString(held.error().message).contains(reason), held.error().message.c_str());
  StatusTable table(network);
  QVERIFY(table.take(report, now) != Taken::New);
  QVERIFY(table.all().empty());
}

void TestStatusReports::a_replayed_report_does_not_take_a_newer_ones_place() {
  StatusTable table(network);
  const StatusReport older = report_of(1, 1, training(9), now - 20 * second);
  const StatusReport newer = report_of(1, 1, training(3), now - 10 * second);
  QCOMPARE(table.take(newer, now), Taken::New);
  QCOMPARE(table.take(newer, now), Taken::Known);
  QCOMPARE(table.take(older, now), Taken::Known);
  QCOMPARE(*table.find(newer.id())->status.loss, 3.0);
  // When it has gone stale, the older one is staler.
  table.drop_old(now + 291 * second);
  QVERIFY(table.all().empty());
  QCOMPARE(table.take(older, now + 291 * second), Taken::Old);
}

// No fault of the node that sends it on.
void TestStatusReports::a_report_ends_with_its_delegation() {
  StatusTable table(network);
  const WallTime end = now + std::chrono::hours(1);
  const StatusReport report = report_of(1, 1, training(3), end - 10 * second);
  QCOMPARE(table.take(report, end - second), Taken::New);
  table.drop_old(end - second);
  QCOMPARE(table.all().size(), std::size_t{1});
  table.drop_old(end);
  QVERIFY(table.all().empty());
  QCOMPARE(table.take(report, end), Taken::Old);
  // A delegation of another node is a fault, whatever its date.
  const crypto::Delegation foreign =
      crypto::delegate(key_numbered(1001), key_numbered(2).public_key(), network, end, 1);
  const StatusReport false_report = sign_report(training(3), end - second, foreign, key_numbered(1), network);
  QCOMPARE(table.take(false_report, end), Taken::Denied);
}

void TestStatusReports::the_table_is_bounded() {
  StatusTable table(network, {12, 3});
  for (std::uint16_t node = 0; node < 5; ++node) {
    QCOMPARE(table.take(report_of(node, 1, training(3)), now), node < 3 ? Taken::New : Taken::NoRoom);
    QCOMPARE(table.take(report_of(static_cast<std::uint16_t>(100 + node), std::nullopt, training(3)), now),
             node < 3 ? Taken::New : Taken::NoRoom);
  }
  for (std::uint16_t wallet = 2; wallet < 12; ++wallet)
    table.take(report_of(static_cast<std::uint16_t>(200 + wallet), wallet, training(3)), now);
  QCOMPARE(table.all().size(), std::size_t{12});
  // There is always room for a member, and for what is newer of somebody known.
  const StatusReport member = report_of(50, 1, training(3));
  table.set_members({member.id()});
  QCOMPARE(table.take(member, now), Taken::New);
  QCOMPARE(table.all().size(), std::size_t{12});
  QVERIFY(table.find(member.id()) != nullptr);
  QCOMPARE(table.take(report_of(50, 1, training(2), now + second), now), Taken::New);
  QCOMPARE(table.take(report_of(50, 1, training(2), now + 61 * second), now), Taken::Future);
  // One that does not hold is not even checked where there is no room, and takes nobody's place.
  const StatusReport forged = report_of(70, 1, training(3), now, filled(8));
  QCOMPARE(table.take(forged, now), Taken::NoRoom);
  table.set_members({member.id(), forged.id()});
  QCOMPARE(table.take(forged, now), Taken::Denied);
  QCOMPARE(table.all().size(), std::size_t{12});
}

void TestStatusReports::a_liar_does_not_move_the_medians() {
  StatusTable table(network);
  for (std::uint16_t node = 1; node <= 5; ++node)
    QCOMPARE(table.take(report_of(node, node, training(3.0 + 0.01 * node)), now), Taken::New);
  const double honest = summarise(table).loss->loss;
  for (const double absurd : {1e-6, 4294.0}) {
    OwnStatus lie = training(absurd);
    lie.tokens_per_second = 0xffffffff;
    lie.synced = 0;
    lie.missed = rounds_remembered;
    lie.round = std::numeric_limits<std::uint64_t>::max();
    StatusTable with = table;
    QCOMPARE(with.take(report_of(66, 66, lie), now), Taken::New);
    const Summary summary = summarise(with);
    QVERIFY(std::abs(summary.loss->loss - honest) <= 0.0100001);
    QCOMPARE(summary.loss->round, std::uint64_t{5});
    QCOMPARE(*summary.tokens_per_second, 2000.0);
    QCOMPARE(*summary.sync_success, 0.8);
    QCOMPARE(summary.round, std::uint64_t{5});
    QVERIFY(summary.agreement);
    QCOMPARE(summary.agreement->round, std::uint64_t{5});
    QCOMPARE(summary.agreement->share, 1.0);
  }
}

void TestStatusReports::many_nodes_of_one_wallet_weigh_one() {
  StatusTable table(network);
  for (std::uint16_t node = 1; node <= 4; ++node)
    QCOMPARE(table.take(report_of(node, node, training(3.0 + 0.01 * node)), now), Taken::New);
  for (std::uint16_t liar = 100; liar < 120; ++liar)
    QCOMPARE(table.take(report_of(liar, 66, training(50, 5, 99)), now), Taken::New);
  const Summary summary = summarise(table);
  QCOMPARE(summary.counted, 24u);
  QCOMPARE(summary.wallets, 5u);
  QVERIFY(summary.loss->loss < 3.1);
  QVERIFY(std::abs(summary.agreement->share - 0.8) < 1e-9);
  QCOMPARE(summary.agreement->dissenters().size(), std::size_t{20});
  // Without a wallet it is no better.
  StatusTable none(network);
  for (std::uint16_t node = 1; node <= 4; ++node)
    none.take(report_of(node, node, training(3.0 + 0.01 * node)), now);
  for (std::uint16_t liar = 100; liar < 120; ++liar) none.take(report_of(liar, {}, training(50, 5, 99)), now);
  QVERIFY(summarise(none).loss->loss < 3.1);
}

void TestStatusReports::only_members_count_where_they_are_known() {
  StatusTable table(network);
  std::set<net::NodeId> members;
  for (std::uint16_t node = 1; node <= 2; ++node) {
    const StatusReport report = report_of(node, node, training(3));
    members.insert(report.id());
    table.take(report, now);
  }
  for (std::uint16_t liar = 100; liar < 120; ++liar) table.take(report_of(liar, liar, training(50)), now);
  QCOMPARE(summarise(table).loss->loss, 50.0);  // anybody may make wallets
  table.set_members(members);
  QCOMPARE(summarise(table).loss->loss, 3.0);
  QCOMPARE(summarise(table).counted, 2u);
  QCOMPARE(summarise(table).reports, 22u);
}

void TestStatusReports::agreement_is_with_what_most_hold_or_what_is_certified() {
  StatusTable table(network);
  QVERIFY(!summarise(table).agreement);
  // One is a round ahead: the others have said nothing of round 6.
  table.take(report_of(1, 1, training(3, 6, 51)), now);
  table.take(report_of(2, 2, training(3, 5, 50)), now);
  table.take(report_of(3, 3, training(3, 5, 50)), now);
  QCOMPARE(summarise(table).agreement->round, std::uint64_t{5});
  QCOMPARE(summarise(table).agreement->share, 1.0);
  // Another follows, with another anchor.
  table.take(report_of(2, 2, training(3, 6, 77), now + second), now + second);
  const auto split = summarise(table).agreement;
  QCOMPARE(split->round, std::uint64_t{6});
  QVERIFY(std::abs(split->share - 2.0 / 3) < 1e-9);
  QCOMPARE(split->dissenters(), std::vector<net::NodeId>{report_of(2, 2, {}).id()});
  // Where nodes are far from each other, the certificates say what is right.
  StatusTable apart(network);
  apart.take(report_of(1, 1, training(3, 40, 140)), now);
  apart.take(report_of(2, 2, training(3, 30, 130)), now);
  apart.take(report_of(3, 3, training(3, 20, 99)), now);
  apart.take(report_of(4, 4, training(3, 90, 190)), now);  // further than this node knows
  QVERIFY(!summarise(apart).agreement);
  const CertifiedAnchor certified = [](std::uint64_t round) -> std::optional<Hash256> {
    if (round > 40) return std::nullopt;
    return filled(static_cast<std::uint8_t>(100 + round));
  };
  const auto compared = summarise(apart, certified).agreement;
  QCOMPARE(compared->round, std::uint64_t{40});
  QCOMPARE(compared->agrees.size(), std::size_t{3});
  QCOMPARE(compared->dissenters(), std::vector<net::NodeId>{report_of(3, 3, {}).id()});
  // A node whose own certificates are not those of most is not right because of them.
  StatusTable most(network);
  for (std::uint16_t node = 1; node <= 3; ++node) most.take(report_of(node, node, training(3, 6, 51)), now);
  QCOMPARE(summarise(most, [](std::uint64_t) { return filled(77); }).agreement->share, 1.0);
  // Before the first round there is nothing to agree on.
  StatusTable early(network);
  OwnStatus first = training(9, 0);
  first.anchor = first.previous_anchor = {};
  early.take(report_of(1, 1, first), now);
  QVERIFY(!summarise(early).agreement);
}

void TestStatusReports::warnings_name_the_reason() {
  StatusTable table(network);
  for (std::uint16_t node = 1; node <= 4; ++node)
    table.take(report_of(node, node, training(3, 5, node == 4 ? 99 : 50)), now);
  const net::NodeId odd = report_of(4, 4, {}).id();
  OwnRounds own;
  own.self = report_of(1, 1, {}).id();
  own.synced = 9;
  own.missed = 1;
  const auto one = warnings_of(summarise(table), own);
  QCOMPARE(one.size(), std::size_t{1});
  QCOMPARE(one[0].key, std::string("rounds_agreement"));
  QVERIFY2(one[0].text.find("Only 75 %") != std::string::npos, one[0].text.c_str());
  QVERIFY(one[0].text.find(to_hex(odd).substr(0, 12)) != std::string::npos);
  QVERIFY(one[0].text.find("this node has it") != std::string::npos);
  own.self = odd;
  QVERIFY(warnings_of(summarise(table), own)[0].text.find("This node is among them") != std::string::npos);
  // Below the threshold, with the reason; three rounds are too few to say.
  StatusTable good(network);
  good.take(report_of(1, 1, training(3)), now);
  QVERIFY(warnings_of(summarise(good), own).empty());
  own.standstill = Standstill{24, 3, 3, {odd}};
  const auto still = warnings_of(summarise(good), own);
  QCOMPARE(still.size(), std::size_t{1});
  QCOMPARE(still[0].key, std::string("rounds_standstill"));
  QVERIFY2(still[0].text.find("round 24 needs all 3 members") != std::string::npos, still[0].text.c_str());
  QVERIFY2(still[0].text.find("no message comes from " + to_hex(odd).substr(0, 12)) != std::string::npos,
           still[0].text.c_str());
  own.standstill = Standstill{24, 20, 14, {}};
  QVERIFY(warnings_of(summarise(good), own)[0].text.find("needs 14 of 20 members") != std::string::npos);
  own.standstill = Standstill{24, 2, 2, {odd}, true};
  const auto person = warnings_of(summarise(good), own);
  QVERIFY2(
      person[0].text.find("network continue --without " + to_hex(odd).substr(0, 12)) != std::string::npos,
      person[0].text.c_str());
  QVERIFY(person[0].text.size() <= 512);  // of an alert
  own.standstill.reset();
  own.voucher_awaited_seconds = voucher_patience_seconds - 1;
  QVERIFY(warnings_of(summarise(good), own).empty());
  own.voucher_awaited_seconds = voucher_patience_seconds;
  own.other_histories = 1;
  own.asks_succession = true;
  std::vector<std::string> keys;
  for (const Warning& warning : warnings_of(summarise(good), own)) keys.push_back(warning.key);
  QCOMPARE(keys, (std::vector<std::string>{"rounds_succession", "rounds_history", "rounds_voucher"}));
  own = {own.self, 2, 2, "round 7 was closed without this node's work", {}, 0, {}};
  const auto low = warnings_of(summarise(good), own);
  QCOMPARE(low.size(), std::size_t{1});
  QCOMPARE(low[0].key, std::string("rounds_sync"));
  QVERIFY(low[0].text.find("round 7 was closed") != std::string::npos);
  own.synced = 0;
  own.missed = 4;
  QVERIFY(warnings_of(summarise(good), own)[0].text.find("None of this node's last 4 rounds counted") == 0);
  own.missed = 2;
  own.synced = 1;
  QVERIFY(warnings_of(summarise(good), own).empty());
  own = {own.self, 8, 0, {}, "another tokenizer", 2, {}};
  const auto told = warnings_of(summarise(good), own);
  QCOMPARE(told.size(), std::size_t{2});
  QCOMPARE(told[0].text, std::string("another tokenizer"));
  QVERIFY(told[1].text.find("2 times") != std::string::npos);
  // Eight that send 25 MB each over 10 Mbit/s in rounds of a minute; with longer ones there is nothing to
  // say, nor while the line's speed is not known.
  own = {own.self, 8, 0, {}, {}, 0, {}, {7 * 25'000'000, 1'250'000, 60}};
  const auto line = warnings_of(summarise(good), own);
  QCOMPARE(line.size(), std::size_t{1});
  QCOMPARE(line[0].key, std::string("rounds_line"));
  for (const char* part : {"175 MB", "2 minutes", "10.0 Mbit/s", "60 s", "inner_steps"})
    QVERIFY2(line[0].text.find(part) != std::string::npos, line[0].text.c_str());
  own.need = {90'000, 65'536, 0.25};  // a small network's figures are none of 0
  const auto small = warnings_of(summarise(good), own);
  for (const char* part : {"0.09 MB", "1.4 s", "0.5 Mbit/s", "0.2 s"})
    QVERIFY2(small[0].text.find(part) != std::string::npos, small[0].text.c_str());
  own.need = {7 * 25'000'000, 1'250'000, 300};
  QVERIFY(warnings_of(summarise(good), own).empty());
  own.need = {7 * 25'000'000, 0, 60};
  QVERIFY(warnings_of(summarise(good), own).empty());
  // Of most others.
  OwnStatus poor = training(3);
  poor.synced = 1;
  poor.missed = 5;
  StatusTable slow(network);
  for (std::uint16_t node = 1; node <= 4; ++node) slow.take(report_of(node, node, poor), now);
  own = {own.self, 8, 0, {}, {}, 0, {}};
  QCOMPARE(warnings_of(summarise(slow), own).at(0).key, std::string("rounds_sync"));
}

void TestStatusReports::requests_for_reports_are_canonical() {
  PullRequest request;
  request.own = report_of(1, 1, training(3));
  request.first = 10;
  request.last = 1000;
  request.known = {{10, 5}, {20, 6}, {1000, 7}};
  const Bytes bytes = encode_pull(request);
  const auto read = decode_pull(bytes);
  QVERIFY(read.ok());
  QCOMPARE(encode_pull(*read), bytes);
  QVERIFY(read->known == request.known);
  const auto refused = [&](const PullRequest& other) { return !decode_pull(encode_pull(other)).ok(); };
  PullRequest twice = request, outside = request, turned = request;
  twice.known = {{10, 5}, {10, 6}};
  outside.known = {{9, 5}};
  turned.first = 1001;
  QVERIFY(refused(twice));
  QVERIFY(refused(outside));
  QVERIFY(refused(turned));
  QVERIFY(!decode_pull(ByteSpan(bytes).first(bytes.size() - 1)).ok());
  Bytes many = bytes;
  store_le(many.data() + 2 + max_report_bytes + 16, std::uint16_t{257});
  QVERIFY(!decode_pull(many).ok());
  const StatusReport one = *request.own;
  Bytes answer = encode_reports({&one, &one});
  QVERIFY(decode_reports(answer).ok());
  answer[0] = 33;
  QVERIFY(!decode_reports(answer).ok());
  answer[0] = 1;
  QVERIFY(!decode_reports(answer).ok());
}

NS_TEST(TestStatusReports)
#include "test_reports.moc"
