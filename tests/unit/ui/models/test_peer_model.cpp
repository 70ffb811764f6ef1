// The table of peers: what it says of each, how it sorts, and that rows stay through updates.
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QSortFilterProxyModel>
#include <QtTest>

#include "tests/support/test_main.h"
#include "ui/models/peer_model.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

namespace {

node::PeerEntry peer(const std::string& id, std::optional<double> round_trip, std::uint64_t in = 0) {
  node::PeerEntry entry;
  entry.id = id;
  entry.address = "192.0.2.1:9000";
  entry.way = "direct";
  entry.connected = round_trip.has_value();
  entry.round_trip = round_trip;
  entry.bytes_in = in;
  return entry;
}

}  // namespace

class TestPeerModel : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { model_ = std::make_unique<PeerModel>(); }
  void says_what_is_known_and_a_dash_for_the_rest();
  void sorts_by_number_with_the_unknown_last();
  void rows_stay_through_updates();
  void bans_come_with_their_reasons();

 private:
  QString text(int row, int column) const {
    return model_->index(row, column).data(Qt::DisplayRole).toString();
  }
  std::unique_ptr<PeerModel> model_;
};

void TestPeerModel::says_what_is_known_and_a_dash_for_the_rest() {
  node::PeerEntry known = peer("aaaa", 0.012, 2048);
  known.way = "relayed";
  known.version = "0.1.0";
  known.memory_bytes = std::uint64_t{4} << 30;
  known.tokens_per_second = 1200;
  known.upload = 1024;
  node::PeerEntry away = peer("bbbb", std::nullopt);
  away.problem = "the peer can't be reached";
  model_->set_entries({known, away}, {});
  QCOMPARE(text(0, PeerModel::State), QStringLiteral("connected"));
  QCOMPARE(text(0, PeerModel::Latency), QStringLiteral("12\u00a0ms"));
  QCOMPARE(text(0, PeerModel::Way), QStringLiteral("relayed"));
  known.way = "turn";
  model_->set_entries({known, away}, {});
  QCOMPARE(text(0, PeerModel::Way), QStringLiteral("relayed (TURN)"));
  QCOMPARE(text(0, PeerModel::Version), QStringLiteral("0.1.0"));
  QCOMPARE(text(0, PeerModel::In), QStringLiteral("2.00\u00a0KiB"));
  QCOMPARE(text(0, PeerModel::Line), QStringLiteral("↓ —  ↑ 1.00\u00a0KiB/s"));
  QCOMPARE(text(1, PeerModel::State), QStringLiteral("the peer can't be reached"));
  for (const int column :
       {PeerModel::Latency, PeerModel::Version, PeerModel::Memory, PeerModel::Speed, PeerModel::Line})
    QCOMPARE(text(1, column), QStringLiteral("—"));
}

void TestPeerModel::sorts_by_number_with_the_unknown_last() {
  model_->set_entries({peer("aa", 0.2), peer("bb", std::nullopt), peer("cc", 0.03)}, {});
  QSortFilterProxyModel sorted;
  sorted.setSourceModel(model_.get());
  sorted.setSortRole(PeerModel::SortRole);
  sorted.sort(PeerModel::Latency);
  QStringList order;
  for (int row = 0; row < 3; ++row) order << sorted.index(row, PeerModel::Id).data().toString();
  QCOMPARE(order, QStringList({"cc", "aa", "bb"}));
}

void TestPeerModel::rows_stay_through_updates() {
  QAbstractItemModelTester tester(model_.get(), QAbstractItemModelTester::FailureReportingMode::QtTest);
  model_->set_entries({peer("bb", 0.1), peer("dd", 0.1)}, {});
  const QPersistentModelIndex kept = model_->index(1, 0);
  QSignalSpy reset(model_.get(), &QAbstractItemModel::modelReset);
  model_->set_entries({peer("aa", 0.1), peer("cc", 0.1), peer("dd", 0.5)}, {});
  QCOMPARE(model_->rowCount(), 3);
  QVERIFY(kept.isValid());
  QCOMPARE(kept.data().toString(), QStringLiteral("dd"));
  QCOMPARE(text(2, PeerModel::Latency), QStringLiteral("500\u00a0ms"));
  model_->set_entries({}, {});
  QCOMPARE(model_->rowCount(), 0);
  QVERIFY(!kept.isValid());
  QCOMPARE(reset.count(), 0);
}

void TestPeerModel::bans_come_with_their_reasons() {
  model_->set_entries({peer("aa", 0.1)},
                      {{"aa", WallTime{}, "garbage"}, {"zz", WallTime{}, "floods <b>us</b>"}});
  QCOMPARE(model_->rowCount(), 2);
  QCOMPARE(text(0, PeerModel::State), QStringLiteral("banned: garbage"));
  QCOMPARE(text(1, PeerModel::State), QStringLiteral("banned: floods <b>us</b>"));
}

NS_TEST(TestPeerModel)
#include "test_peer_model.moc"
