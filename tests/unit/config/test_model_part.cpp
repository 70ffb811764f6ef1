// The part of the model that a node holds, from its network's profile and its settings.
#include <QtTest>

#include "core/config/model_part.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"
#include "tests/unit/engine/no_sync_file_env.h"

using namespace neuroshard;
using namespace neuroshard::config;

namespace {

ConsensusPart network(const std::string& sync) {
  ConsensusPart consensus = builtin_profile("devnet")->consensus;
  consensus.layers = 6;
  consensus.sync = sync;
  return consensus;
}

Settings chosen(std::uint64_t part) {
  Settings settings;
  const auto set = settings.set(Setting::Part, SettingValue{part, {}});
  if (!set.ok()) qFatal("%s", set.error().message.c_str());
  return settings;
}

}  // namespace

class TestModelPart : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void most_networks_have_none() {
    for (const char* sync : {"plain", "delayed-1", "fragments=4"}) {
      QVERIFY(model_parts(network(sync)).empty());
      QVERIFY(!own_part(network(sync), chosen(2), 1).value());
    }
  }

  void a_setting_chooses_it() {
    const ConsensusPart consensus = network("parts=3");
    for (std::uint32_t i = 0; i < 3; ++i) {
      const auto part = own_part(consensus, chosen(i + 1), 2);
      QVERIFY(part.ok() && *part);
      QCOMPARE((*part)->index, i);
      QCOMPARE((*part)->count, 3u);
      QCOMPARE((*part)->range, model_parts(consensus)[i]);
      QVERIFY(!(*part)->follows_plan);
    }
  }

  void without_a_choice_the_network_chooses() {
    for (const auto& [planned, index] : {std::pair{0u, 0u}, {2u, 2u}, {3u, 0u}, {200u, 2u}}) {
      const auto part = own_part(network("parts=3"), chosen(0), planned);
      QVERIFY(part.ok() && *part && (*part)->follows_plan);
      QCOMPARE((*part)->index, index);
    }
  }

  void a_part_that_the_model_lacks_is_refused_with_those_it_has() {
    const auto part = own_part(network("parts=3"), chosen(4), 0);
    QVERIFY(!part.ok());
    QCOMPARE(part.error().code, ErrorCode::InvalidArgument);
    QVERIFY2(part.error().message.find("no part 4. Its parts are 1: embedding, ") != std::string::npos,
             part.error().message.c_str());
  }

  // The network's choice survives a restart; a damaged file is as none.
  void the_networks_choice_is_kept() {
    const QTemporaryDir folder;
    testing::NoSyncFileEnv files;
    const SystemClock clock;
    NullLogger logger;
    test::CountingEntropy entropy;
    DataDirectoryOptions options;
    options.path = folder.filePath("d").toStdString();
    options.profile = folder.filePath("profile.json").toStdString();
    NetworkProfile profile = *builtin_profile("devnet");
    profile.consensus = network("parts=3");
    profile.consensus.name = "tower";
    QVERIFY(
        storage::write_file_atomic(files, options.profile, as_bytes(format_network_profile(profile))).ok());
    const auto opened = DataDirectory::open(options, {files, entropy, clock, logger});
    QVERIFY2(opened.ok(), opened.ok() ? "" : opened.error().describe().c_str());
    const DataDirectory& directory = **opened;
    QVERIFY(own_part(directory, files).value()->drawn);
    const std::uint32_t first = own_part(directory, files).value()->index;
    QCOMPARE(first, crypto::node_id(directory.node_key().public_key())[0] % 3u);
    for (const std::uint32_t part : {2u, 0u, 1u}) {
      QVERIFY(keep_part(directory, files, part).ok());
      QCOMPARE(own_part(directory, files).value()->index, part);
      QVERIFY(!own_part(directory, files).value()->drawn);
    }
    for (const char* damaged : {"", "0", "x", "-1", "99999999999"}) {
      QVERIFY(storage::write_file_atomic(files, directory.path() + "/part", as_bytes(damaged)).ok());
      QCOMPARE(own_part(directory, files).value()->index, first);
      QVERIFY(own_part(directory, files).value()->drawn);
    }
  }

  // Without memory for the part that its id draws, a node begins with the next one.
  void the_next_part_that_fits() {
    QVERIFY(next_fitting({true, true, true}, 1) == 1u);
    QVERIFY(next_fitting({true, false, true}, 1) == 2u);
    QVERIFY(next_fitting({true, false, false}, 1) == 0u);
    QVERIFY(!next_fitting({false, false}, 1) && !next_fitting({}, 0));
  }

  // All members must agree: a stage refuses another number.
  void micro_batches_divide_a_batch() {
    ConsensusPart consensus = network("parts=3");
    for (const auto& [sequence, batch_tokens, sequences] : {std::tuple{256u, 4096u, 4u},
                                                            {64u, 64u * 12, 12u},
                                                            {64u, 64u * 34, 2u},
                                                            {2048u, 2048u * 3, 1u},
                                                            {32u, 512u, 16u}}) {
      consensus.sequence = sequence;
      consensus.batch_tokens = batch_tokens;
      QCOMPARE(pipeline_sequences(consensus), sequences);
      QCOMPARE(batch_tokens / sequence % pipeline_sequences(consensus), 0u);
    }
  }

  // 16 sequences of 64 tokens are a micro-batch, whose rows take 2 bytes a value. Three parts: 11 are under way.
  void payloads_are_those_of_a_step_and_of_results() {
    ConsensusPart consensus = network("parts=3");
    consensus.sequence = 64;
    const std::uint64_t rows = 2 * 1024 * consensus.hidden;
    const std::vector<compute::StageRange> parts = model_parts(consensus);
    consensus.batch_tokens = 2 * 1024;
    QCOMPARE(part_payload_bytes(consensus, parts[0]), 2 * rows);
    QCOMPARE(part_payload_bytes(consensus, parts[1]), 13 * rows);
    QCOMPARE(part_payload_bytes(consensus, parts[2]), 13 * rows);
    consensus.batch_tokens = 64 * 1024;
    QCOMPARE(part_payload_bytes(consensus, parts[0]), 11 * rows);
    QCOMPARE(part_payload_bytes(consensus, parts[1]), pipeline_bytes(consensus));
  }

  // All drivers of a node together have what a single one needs to keep the parts at work.
  void windows_fill_the_parts_together() {
    QCOMPARE(pipeline_window(3, 1, 1), 8u);
    QCOMPARE(pipeline_window(6, 6, 1), 3u);
    QCOMPARE(pipeline_window(2, 3, 1), 2u);
    QCOMPARE(pipeline_depth(3, 0), 8u);
    QCOMPARE(pipeline_depth(3, 1), 6u);
    QCOMPARE(pipeline_depth(3, 2), 4u);
    for (std::size_t parts = 2; parts <= 8; ++parts)
      for (std::size_t members = parts; members <= 40; ++members) {
        const std::size_t holders = members / parts, drivers = members / holders;
        const std::size_t window = pipeline_window(parts, members, holders);
        QVERIFY(window >= 2 && drivers * window >= 2 * parts + 2);
        QVERIFY(drivers * window <= 2 * parts + 2 + std::max(drivers, 2 * drivers));
      }
  }
};

NS_TEST(TestModelPart)
#include "test_model_part.moc"
