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
  void a_clock_that_was_behind_at_the_start_makes_it_due() {
    QVERIFY(due(100, -1000, 80));
    QVERIFY(!due(100, -1000, -999));
  }
};

NS_TEST(TestWalletDelegation)
#include "test_wallet_delegation.moc"
