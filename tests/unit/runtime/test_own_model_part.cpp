// The memory that a node offers: a raised limit asks for a new start, where the network's model grows with it.
#include <QTemporaryDir>
#include <QtTest>

#include "core/runtime/own_model_part.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"
#include "tests/unit/engine/no_sync_file_env.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT

namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

}  // namespace

class TestOwnModelPart : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_raised_limit_asks_for_a_new_start_data() {
    QTest::addColumn<bool>("grows");
    QTest::addColumn<quint64>("at_start");  // 0: no limit
    QTest::addColumn<quint64>("now");
    QTest::addColumn<bool>("more");
    QTest::newRow("raised") << true << quint64(gib) << quint64(3 * gib) << true;
    QTest::newRow("no limit any more") << true << quint64(gib) << quint64(0) << true;
    QTest::newRow("lowered") << true << quint64(3 * gib) << quint64(gib) << false;
    QTest::newRow("another setting changed") << true << quint64(gib) << quint64(gib) << false;
    QTest::newRow("from no limit to one") << true << quint64(0) << quint64(64 * gib) << false;
    QTest::newRow("within the same 500 MB") << true << quint64(gib) << quint64(gib + (gib >> 4)) << false;
    QTest::newRow("the model keeps its size") << false << quint64(gib) << quint64(3 * gib) << false;
  }
  void a_raised_limit_asks_for_a_new_start() {
    QFETCH(bool, grows);
    QFETCH(quint64, at_start);
    QFETCH(quint64, now);
    QFETCH(bool, more);
    const QTemporaryDir folder;
    config::NetworkProfile profile = *config::builtin_profile("devnet");
    profile.consensus.name = "village";
    if (grows) profile.consensus.sizes = {{8, 128, 6, 6}};
    config::DataDirectoryOptions options;
    options.path = folder.filePath("d").toStdString();
    options.environment = nullptr;
    options.profile = folder.filePath("profile.json").toStdString();
    options.setting_flags = {{config::Setting::MemoryLimit, std::to_string(at_start)}};
    const std::string text = config::format_network_profile(profile);
    QVERIFY(storage::write_file_atomic(files_, options.profile, as_bytes(text)).ok());
    const auto directory = config::DataDirectory::open(options, {files_, entropy_, clock_, logger_});
    QVERIFY2(directory.ok(), directory.ok() ? "" : directory.error().message.c_str());
    OwnModelPart part(**directory, files_, net::NodeId{});
    QVERIFY(!part.has_more_to_offer());
    part.limit_memory(now);
    QCOMPARE(part.has_more_to_offer(), more);
    part.limit_memory(at_start);
    QVERIFY(!part.has_more_to_offer());
  }

 private:
  testing::NoSyncFileEnv files_;
  test::CountingEntropy entropy_;
  SystemClock clock_;
  NullLogger logger_;
};

NS_TEST(TestOwnModelPart)
#include "test_own_model_part.moc"
