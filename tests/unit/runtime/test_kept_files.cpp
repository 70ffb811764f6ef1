// The files in which a node keeps how it joined its network: D/peers.port, D/peers.invited and D/peers.bans.
#include <QtTest>

#include "core/runtime/ban_file.h"
#include "core/runtime/invited_peers.h"
#include "core/runtime/kept_port.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT

class TestKeptFiles : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void a_port_stands_in_for_the_wanted_one_only();
  void a_damaged_port_is_ignored_data();
  void a_damaged_port_is_ignored();
  void invited_peers_come_back();
  void wrong_lines_are_left_out();
  void bans_are_written_once_a_minute_and_at_the_stop();

 private:
  void write(const std::string& path, std::string_view text) {
    QVERIFY(storage::write_file_atomic(files_, path, as_bytes(text)).ok());
  }

  testing::MemoryFileEnv files_;
  NullLogger logger_;
};

void TestKeptFiles::init() {
  files_ = testing::MemoryFileEnv();
  QVERIFY(files_.create_directories("/d").ok());
}

void TestKeptFiles::a_port_stands_in_for_the_wanted_one_only() {
  QVERIFY(!read_kept_port(files_, "/d", 9000, logger_));
  QVERIFY(keep_port(files_, "/d", 9000, 40'000).ok());
  QCOMPARE(read_kept_port(files_, "/d", 9000, logger_), std::optional<std::uint16_t>(40'000));
  QVERIFY(!read_kept_port(files_, "/d", 9001, logger_));
}

void TestKeptFiles::a_damaged_port_is_ignored_data() {
  QTest::addColumn<QByteArray>("text");
  QTest::newRow("empty") << QByteArray();
  QTest::newRow("one number") << QByteArray("9000");
  QTest::newRow("no port") << QByteArray("9000 \n");
  QTest::newRow("port 0") << QByteArray("9000 0\n");
  QTest::newRow("no port number") << QByteArray("9000 70000\n");
  QTest::newRow("no end of line") << QByteArray("9000 40000");
  QTest::newRow("two ends") << QByteArray("9000 40000\n\n");
  QTest::newRow("negative") << QByteArray("-1 40000\n");
  QTest::newRow("two spaces") << QByteArray("9000  40000\n");
  QTest::newRow("three numbers") << QByteArray("9000 40000 1\n");
}

void TestKeptFiles::a_damaged_port_is_ignored() {
  QFETCH(QByteArray, text);
  write(kept_port_path("/d"), text.toStdString());
  QVERIFY(!read_kept_port(files_, "/d", 9000, logger_));
}

void TestKeptFiles::invited_peers_come_back() {
  const std::vector<std::string> peers{std::string(64, 'a') + "@192.0.2.1:9000", "host.example.org:29000"};
  QVERIFY(read_invited_peers(files_, "/d", logger_).empty());
  QVERIFY(keep_invited_peers(files_, "/d", peers).ok());
  QCOMPARE(read_invited_peers(files_, "/d", logger_), peers);
}

void TestKeptFiles::wrong_lines_are_left_out() {
  write("/d/peers.invited", "192.0.2.1:9000\nno place\nabc@192.0.2.2:9000\n192.0.2.3:9000");
  const std::vector<std::string> expected{"192.0.2.1:9000", "192.0.2.3:9000"};
  QCOMPARE(read_invited_peers(files_, "/d", logger_), expected);
}

void TestKeptFiles::bans_are_written_once_a_minute_and_at_the_stop() {
  ManualClock clock;
  net::BanList bans(clock);
  BanFile file(files_, "/d", logger_);
  QVERIFY(file.read().empty());
  const auto kept = [&] {
    net::BanList read(clock);
    const Bytes bytes = file.read();
    if (!bytes.empty() && !read.restore(bytes).ok()) return std::size_t{1000};
    return read.all().size();
  };
  file.save(bans, clock.monotonic_now());
  QVERIFY(!files_.exists("/d/peers.bans"));
  std::uint8_t banned = 0;
  const auto ban_another = [&] {
    net::NodeId id{};
    id.fill(++banned);
    bans.ban(id, std::chrono::hours(1), "a test");
  };
  ban_another();
  file.save(bans, clock.monotonic_now());
  QCOMPARE(kept(), std::size_t{1});
  // Strangers get one ban after the other.
  for (int i = 0; i < 11; ++i) {
    clock.advance(std::chrono::seconds(5));
    ban_another();
    file.save(bans, clock.monotonic_now());
    QCOMPARE(kept(), std::size_t{1});
  }
  clock.advance(std::chrono::seconds(5));
  file.save(bans, clock.monotonic_now());
  QCOMPARE(kept(), std::size_t{12});
  ban_another();
  file.save_now(bans, clock.monotonic_now());
  QCOMPARE(kept(), std::size_t{13});
}

NS_TEST(TestKeptFiles)
#include "test_kept_files.moc"
