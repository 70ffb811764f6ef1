// The snapshot stays small whatever is put into it.
#include <QtTest>

#include "core/node/node.h"
#include "tests/support/test_main.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::node;  // NOLINT

class TestSnapshot : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void everything_too_long_still_fits();
  void texts_are_cut_between_characters();
  void bytes_that_are_no_text_are_replaced();
  void most_urgent_alerts_stay();
};

namespace {

Snapshot overfull() {
  Snapshot snapshot;
  const std::string long_text(100'000, 'x');
  for (int i = 0; i < 100; ++i) {
    snapshot.alerts.push_back({long_text, Severity::Warning, long_text, {}});
    snapshot.pause_reasons.push_back({long_text, long_text, WallTime{}, true});
    snapshot.sensors.push_back({long_text, long_text, long_text});
  }
  for (std::string* text :
       {&snapshot.identity.node_id, &snapshot.identity.wallet_id, &snapshot.identity.instance_id,
        &snapshot.program.version, &snapshot.program.data_directory, &snapshot.program.network,
        &snapshot.program.network_id, &snapshot.program.notice, &snapshot.compute.device,
        &snapshot.compute.kernels, &snapshot.compute.isa, &snapshot.compute.precision,
        &snapshot.training.data_source, &snapshot.training.activity, &snapshot.checkpoint.newest,
        &snapshot.undo.checkpoint}) {
    *text = long_text;
  }
  node::RoundsView& rounds = snapshot.rounds;
  for (std::string* text :
       {&rounds.phase, &rounds.anchor, &rounds.left_out_reason, &rounds.trouble, &rounds.chain.genesis,
        &rounds.chain.voters_mode, &rounds.chain.standing, &rounds.chain.outlook,
        &rounds.chain.asks_succession, &rounds.global.loss_trend, &rounds.global.verified_reason,
        &snapshot.http.address, &snapshot.http.trouble, &rounds.part.emplace().holds}) {
    *text = long_text;
  }
  rounds.chain.missing.assign(100, long_text);
  rounds.chain.others.assign(100, {long_text, 1});
  rounds.part->path.assign(100, {long_text, 1.5, 2.5});
  rounds.part->holders.assign(100'000, 1);
  rounds.part->speeds = rounds.part->checkers = rounds.part->holders;
  return snapshot;
}

}  // namespace

void TestSnapshot::everything_too_long_still_fits() {
  Snapshot snapshot = overfull();
  QVERIFY(encoded_bytes(snapshot) > max_snapshot_bytes);
  bound(snapshot);
  QVERIFY(encoded_bytes(snapshot) <= max_snapshot_bytes);
  QCOMPARE(snapshot.alerts.size(), max_alerts);
  QCOMPARE(snapshot.pause_reasons.size(), max_reasons);
  QCOMPARE(snapshot.sensors.size(), max_sensors);
  QCOMPARE(snapshot.rounds.part->path.size(), max_path);
  for (const auto* by_part :
       {&snapshot.rounds.part->holders, &snapshot.rounds.part->speeds, &snapshot.rounds.part->checkers})
    QCOMPARE(by_part->size(), max_path);
}

void TestSnapshot::texts_are_cut_between_characters() {
  Snapshot snapshot;
  while (snapshot.program.notice.size() < 2 * max_text) snapshot.program.notice += "€";  // three bytes each
  bound(snapshot);
  QVERIFY(snapshot.program.notice.size() <= max_text);
  QCOMPARE(snapshot.program.notice.size() % 3, std::size_t{0});
}

// A receiver refuses a message with other texts.
void TestSnapshot::bytes_that_are_no_text_are_replaced() {
  Snapshot snapshot;
  snapshot.program.data_directory = "/srv/caf\xE9";
  bound(snapshot);
  QCOMPARE(snapshot.program.data_directory, std::string("/srv/caf\xEF\xBF\xBD"));
}

void TestSnapshot::most_urgent_alerts_stay() {
  Snapshot snapshot;
  for (std::size_t i = 0; i < max_alerts; ++i) {
    snapshot.alerts.push_back({"note " + std::to_string(i), Severity::Notice, {}, {}});
  }
  snapshot.alerts.push_back({"disk", Severity::Critical, {}, {}});
  bound(snapshot);
  QCOMPARE(snapshot.alerts.front().key, std::string("disk"));
  QCOMPARE(snapshot.alerts.size(), max_alerts);
}

NS_TEST(TestSnapshot)
#include "test_snapshot.moc"
