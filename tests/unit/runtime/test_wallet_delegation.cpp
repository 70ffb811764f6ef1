// When a running node starts anew for the delegation of its wallet.
#include <QtTest>

#include "core/runtime/wallet_delegation.h"
#include "tests/support/test_main.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT

namespace {

WallTime day(int number) {
  return WallTime(std::chrono::hours(24 * (20'000 + number)));
}

bool due(int ends, int started, int now) {
  crypto::Delegation delegation;
  delegation.expires = day(ends);
  return renewal_is_due(delegation, day(started), day(now));
}

}  // namespace

class TestWalletDelegation : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_node_that_runs_on_starts_anew_in_time() {
    QVERIFY(!due(365, 0, 334));
    QVERIFY(due(365, 0, 335));
    QVERIFY(due(91, 0, 61));
  }
  // Without the wallet's passphrase the next start would be no better.
  void one_that_could_not_be_renewed_is_left_alone() {
    QVERIFY(!due(90, 0, 89));
    QVERIFY(!due(10, 0, 0));
  }
  void the_owner_is_told_weeks_before_the_end() {
    crypto::Delegation delegation;
    delegation.expires = day(365);
    const auto notice = [&](int now) {
      return QString::fromStdString(delegation_notice(delegation, "/data/d", day(now)));
    };
    // One that the node can renew is renewed a month before.
    QVERIFY(due(365, 0, 335) && notice(335).isEmpty());
    for (const int now : {337, 351, 364}) {
      QVERIFY2(notice(now).contains("neuroshardd wallet delegate --data-dir /data/d"),
               qPrintable(notice(now)));
      QVERIFY2(notice(now).contains("ends on 2025-10-04"), qPrintable(notice(now)));
    }
    QVERIFY2(notice(365).contains("ended on 2025-10-04"), qPrintable(notice(365)));
  }
  void a_clock_that_was_behind_at_the_start_makes_it_due() {
    QVERIFY(due(100, -1000, 80));
    QVERIFY(!due(100, -1000, -999));
  }
};

NS_TEST(TestWalletDelegation)
#include "test_wallet_delegation.moc"
