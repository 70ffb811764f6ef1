// The bounds of connections under a limit of open files.
#include <QtTest>
#include <limits>

#include "core/nat/relay_server.h"
#include "core/platform/socket/tls_listener.h"
#include "core/runtime/connection_room.h"
#include "tests/support/test_main.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT

class TestConnectionRoom : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_wide_limit_lowers_nothing();
  void a_narrow_limit_leaves_files_to_the_rest_data();
  void a_narrow_limit_leaves_files_to_the_rest();
  void a_node_that_does_not_relay_has_more_peers();
  void some_of_each_kind_always_fit();
};

void TestConnectionRoom::a_wide_limit_lowers_nothing() {
  for (const std::size_t files :
       {std::size_t{4096}, std::size_t{65'536}, std::numeric_limits<std::size_t>::max()}) {
    const ConnectionRoom room = connection_room(files, true);
    QVERIFY(!room.lowered);
    QCOMPARE(room.peers, platform::TlsListenerLimits().connections);
    QCOMPARE(room.waiting, platform::TlsListenerLimits().waiting);
    QCOMPARE(room.relayed, nat::RelayLimits().connections);
  }
}

void TestConnectionRoom::a_narrow_limit_leaves_files_to_the_rest_data() {
  QTest::addColumn<int>("files");
  QTest::addColumn<int>("reserved");
  QTest::newRow("the usual soft limit") << 1024 << 512;
  QTest::newRow("2048") << 2048 << 512;
  QTest::newRow("very few") << 256 << 128;
}

void TestConnectionRoom::a_narrow_limit_leaves_files_to_the_rest() {
  QFETCH(int, files);
  QFETCH(int, reserved);
  const ConnectionRoom room = connection_room(static_cast<std::size_t>(files), true);
  QVERIFY(room.lowered);
  QVERIFY(room.peers >= 4 && room.waiting >= 4 && room.relayed >= 4);
  QVERIFY(2 * room.peers + room.waiting + room.relayed <= static_cast<std::size_t>(files - reserved));
}

void TestConnectionRoom::a_node_that_does_not_relay_has_more_peers() {
  QVERIFY(connection_room(1024, false).peers > connection_room(1024, true).peers);
  QVERIFY(!connection_room(2048, false).lowered);
}

void TestConnectionRoom::some_of_each_kind_always_fit() {
  for (const std::size_t files : {std::size_t{0}, std::size_t{16}}) {
    const ConnectionRoom room = connection_room(files, true);
    QVERIFY(room.lowered);
    QCOMPARE(room.peers, std::size_t{4});
    QCOMPARE(room.waiting, std::size_t{4});
    QCOMPARE(room.relayed, std::size_t{4});
  }
}

NS_TEST(TestConnectionRoom)
#include "test_connection_room.moc"
