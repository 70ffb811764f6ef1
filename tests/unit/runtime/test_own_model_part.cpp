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
    const auto directory =
        open(grows ? std::vector<config::ModelGrowth>{{8, 128, 6, 6}} : std::vector<config::ModelGrowth>{},
             at_start);
    OwnModelPart part(*directory, files_, net::NodeId{});
    QVERIFY(!part.has_more_to_offer());
    part.limit_memory(now);
    QCOMPARE(part.has_more_to_offer(), more);
    part.limit_memory(at_start);
    QVERIFY(!part.has_more_to_offer());
  }

  // An offer can't tell two sizes apart that need the same: the node offers too little for both, and goes along to the first.
  void without_room_for_a_size_it_offers_too_little_for_those_of_the_same_need() {
    const auto directory = open({{6, 128, 4, 8}, {8, 128, 4, 9}}, 0);
    OwnModelPart part(*directory, files_, net::NodeId{});
    QVERIFY(!part.offered_tiers());
    engine::RoundFacts facts;
    facts.memory_limit = 8 * gib;
    part.take(facts);
    QVERIFY(part.larger_fits() && part.offered_tiers() == 17u);
    facts.too_large_size = 2;
    part.take(facts);
    QVERIFY(part.larger_fits() && part.offered_tiers() == 3u);
    facts.too_large_size = 1;
    part.take(facts);
    QVERIFY(!part.larger_fits() && part.offered_tiers() == 3u);
  }

 private:
  std::unique_ptr<config::DataDirectory> open(const std::vector<config::ModelGrowth>& sizes,
                                              std::uint64_t memory_limit) {
    config::NetworkProfile profile = *config::builtin_profile("devnet");
    profile.consensus.name = "village";
    profile.consensus.sizes = sizes;
    config::DataDirectoryOptions options;
    options.path = folder_.filePath("d" + QString::number(++opened_)).toStdString();
    options.environment = nullptr;
    options.profile = folder_.filePath("profile.json").toStdString();
    options.setting_flags = {{config::Setting::MemoryLimit, std::to_string(memory_limit)}};
    const std::string text = config::format_network_profile(profile);
    if (!storage::write_file_atomic(files_, options.profile, as_bytes(text)).ok()) qFatal("no profile");
    auto directory = config::DataDirectory::open(options, {files_, entropy_, clock_, logger_});
    if (!directory.ok()) qFatal("%s", directory.error().message.c_str());
    return std::move(*directory);
  }

  const QTemporaryDir folder_;
  int opened_ = 0;
  testing::NoSyncFileEnv files_;
  test::CountingEntropy entropy_;
  SystemClock clock_;
  NullLogger logger_;
};

NS_TEST(TestOwnModelPart)
#include "test_own_model_part.moc"
