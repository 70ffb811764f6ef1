// The part of the model that a node holds, from its network's profile and its settings.
#include <QtTest>

#include "core/config/model_part.h"
#include "tests/support/test_main.h"

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
      QVERIFY(!own_part(network(sync), chosen(2)).value());
    }
  }

  void a_setting_chooses_it() {
    const ConsensusPart consensus = network("parts=3");
    for (std::uint32_t i = 0; i < 3; ++i) {
      const auto part = own_part(consensus, chosen(i + 1));
      QVERIFY(part.ok() && *part);
      QCOMPARE((*part)->index, i);
      QCOMPARE((*part)->count, 3u);
      QCOMPARE((*part)->range, model_parts(consensus)[i]);
    }
  }

  void without_a_choice_the_parts_are_named() {
    for (const std::uint64_t none : {0, 4}) {
      const auto part = own_part(network("parts=3"), chosen(none));
      QVERIFY(!part.ok());
      QCOMPARE(part.error().code, ErrorCode::InvalidArgument);
      QVERIFY2(part.error().message.find("--part 1 to 3 (1: embedding, ") != std::string::npos,
               part.error().message.c_str());
    }
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

  // All drivers of a node together have what a single one needs to keep the parts at work.
  void windows_fill_the_parts_together() {
    QCOMPARE(pipeline_window(3, 1, 1), 8u);
    QCOMPARE(pipeline_window(6, 6, 1), 3u);
    QCOMPARE(pipeline_window(2, 3, 1), 2u);
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
