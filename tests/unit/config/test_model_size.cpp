// The sizes that a network's model may grow to: in its profile, in its parts, and in a data directory.
#include <QtTest>

#include "core/compute/growth.h"
#include "core/config/model_part.h"
#include "core/config/model_size.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"
#include "tests/unit/engine/no_sync_file_env.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::config;  // NOLINT

namespace {

// Its first size is 4x128; a head has the width 32.
NetworkProfile village(const std::vector<ModelGrowth>& sizes = {
                           {6, 128, 4, 12}, {6, 256, 4, 12}, {9, 512, 9, 40}}) {
  NetworkProfile profile = *builtin_profile("devnet");
  profile.consensus.name = "village";
  profile.consensus.sizes = sizes;
  return profile;
}

std::string refusal(const ConsensusPart& consensus) {
  const auto valid = validate(consensus);
  return valid.ok() ? "valid" : valid.error().message;
}

bool has(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return true;
  qWarning("%s", text.c_str());
  return false;
}

}  // namespace

class TestModelSize : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    options_ = {};
    options_.path = folder_->filePath("d").toStdString();
    options_.environment = nullptr;
    options_.profile = folder_->filePath("profile.json").toStdString();
    const std::string text = format_network_profile(village());
    QVERIFY(storage::write_file_atomic(files_, options_.profile, as_bytes(text)).ok());
  }

  void sizes_are_part_of_the_network() {
    const NetworkProfile profile = village(), without = village({});
    QVERIFY(network_id(profile.consensus) != network_id(without.consensus));
    QVERIFY(canonical_text(without.consensus).find("sizes") == std::string::npos);
    QVERIFY(format_network_profile(without).find("sizes") == std::string::npos);
    QCOMPARE(canonical_text(profile.consensus),
             canonical_text(without.consensus) + "sizes=6x128@4/12,6x256@4/12,9x512@9/40\n");
    ConsensusPart founded = profile.consensus;
    founded.founders = {std::string(64, 'a')};
    QVERIFY(has(canonical_text(founded), "a\nsizes=6x128@4/12,"));
    const auto read = parse_network_profile(as_bytes(format_network_profile(profile)));
    QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
    QVERIFY(read->consensus.sizes == profile.consensus.sizes);
    QCOMPARE(network_id(read->consensus), network_id(profile.consensus));
  }

  void the_present_size_is_no_part_of_the_profile() {
    const NetworkProfile first = village();
    for (std::uint64_t size = 1; size <= 3; ++size) {
      NetworkProfile later = first;
      later.consensus = at_size(later.consensus, size);
      QCOMPARE(format_network_profile(later), format_network_profile(first));
      QCOMPARE(network_id(later.consensus), network_id(first.consensus));
      QVERIFY(validate(later.consensus).ok());
      const compute::ModelShape shape = model_shape(later.consensus);
      QCOMPARE(std::uint64_t{shape.layers}, first.consensus.sizes[size - 1].layers);
      QCOMPARE(std::uint64_t{shape.hidden}, first.consensus.sizes[size - 1].hidden);
      QCOMPARE(shape.heads, shape.hidden / 32);
      QCOMPARE(shape.ffn, 2 * shape.hidden);
      QVERIFY(compute::check_growth(model_shape(at_size(first.consensus, size - 1)), shape).ok());
      QCOMPARE(pipeline_bytes(later.consensus),
               pipeline_bytes(first.consensus) / first.consensus.hidden * shape.hidden);
    }
    QCOMPARE(model_shape(first.consensus).layers, 4u);
  }

  void bad_sizes_are_named_data() {
    QTest::addColumn<QString>("sizes");  // as the file has them
    QTest::addColumn<QString>("says");
    QTest::newRow("none") << ""
                          << "left out when it has none";
    QTest::newRow("no size") << "6-128"
                             << "'6-128', which is not a size like 6x192@4/12";
    QTest::newRow("no memory") << "6x128"
                               << "not a size";
    QTest::newRow("one memory") << "6x128@4"
                                << "not a size";
    QTest::newRow("more behind") << "6x128@4/12/1"
                                 << "not a size";
    QTest::newRow("space") << "6x128@4/12 "
                           << "not a size";
    QTest::newRow("leading zero") << "06x128@4/12"
                                  << "not a size";
    QTest::newRow("sign") << "6x+128@4/12"
                          << "not a size";
    QTest::newRow("negative") << "-6x128@4/12"
                              << "not a size";
    QTest::newRow("beyond 64 bits") << "18446744073709551616x128@4/12"
                                    << "not a size";
    QTest::newRow("two in one") << "6x128@4/12,8x128@4/12"
                                << "not a size";
    QTest::newRow("long") << QString(400, '6') << "holds '" + QString(80, '6') + "',";
    QTest::newRow("too deep") << "4294967300x128@4/12"
                              << "at most 1024 layers";
    QTest::newRow("too wide") << "6x4294967424@4/12"
                              << "at most 1024 layers of width 65536";
    QTest::newRow("the first again") << "4x128@4/12"
                                     << "deeper or wider than 4x128";
    QTest::newRow("the same again") << "6x128@4/12 6x128@4/12"
                                    << "deeper or wider than 6x128";
    QTest::newRow("narrower") << "6x96@4/12"
                              << "deeper or wider than 4x128";
    QTest::newRow("flatter") << "6x128@4/12 5x256@4/12"
                             << "has 5x256, which must be deeper or wider";
    QTest::newRow("no whole heads") << "6x130@4/12"
                                    << "multiple of head_dim, 32";
    QTest::newRow("heads and key heads") << "4x288@4/12"
                                         << "no model can have";
    QTest::newRow("another key head") << "4x192@4/12 4x256@4/12"
                                      << "does not continue the size before it";
    QTest::newRow("too large a model") << "1024x65536@4/12"
                                       << "no model can have";
    QTest::newRow("no memory of a member") << "6x128@0/12"
                                           << "of a member must be between 1 and 262144";
    QTest::newRow("no memory of all") << "6x128@4/0"
                                      << "of all members must be between 1 and 262144";
    QTest::newRow("much memory") << "6x128@4/262145"
                                 << "of all members must be between 1 and 262144";
    QTest::newRow("less of a member") << "6x128@4/12 8x128@3/12"
                                      << "of a member must be at least 4";
    QTest::newRow("less of all") << "6x128@4/12 8x128@4/11"
                                 << "of all members must be at least 12";
    QStringList many;
    for (int i = 5; i < 70; ++i) many << QString("%1x128@1/1").arg(i);
    QTest::newRow("many") << many.join(' ') << "at most 64";
  }

  void bad_sizes_are_named() {
    QFETCH(QString, sizes);
    QFETCH(QString, says);
    NetworkProfile profile = village({{6, 128, 4, 12}});
    const std::string good = format_network_profile(profile);
    std::string list;
    for (const QString& size :
         sizes.split(' ', says.contains("not a size") ? Qt::KeepEmptyParts : Qt::SkipEmptyParts))
      list += (list.empty() ? "\"" : ", \"") + size.toStdString() + "\"";
    std::string text = good;
    const std::size_t begin = text.find('[', text.find("\"sizes\"")), end = text.find(']', begin);
    const auto read = parse_network_profile(as_bytes(text.replace(begin + 1, end - begin - 1, list)));
    QVERIFY(parse_network_profile(as_bytes(good)).ok() && !read.ok());
    QCOMPARE(read.error().code, ErrorCode::InvalidArgument);
    QVERIFY(has(read.error().message, "profile field 'sizes' "));
    QVERIFY(has(read.error().message, says.toStdString()));
  }

  void not_every_network_can_have_sizes() {
    const ConsensusPart good = village().consensus;
    QCOMPARE(refusal(good), std::string("valid"));
    ConsensusPart consensus = good;
    consensus.grows = 0;
    QVERIFY(has(refusal(consensus), "'sizes' must be empty where grows is 0"));
    consensus = good;
    consensus.inner_steps = 0;
    consensus.sync = consensus.codec = "none";
    QVERIFY(has(refusal(consensus), "'sizes' must be empty in a network without an outer loop"));
    consensus = good;
    consensus.sync = "fragments=2";
    QVERIFY(has(refusal(consensus), "rounds of fragments end at different steps"));
    for (const char* sync : {"plain", "delayed-1", "parts=4"}) {
      consensus.sync = sync;
      QCOMPARE(refusal(consensus), std::string("valid"));
    }
    consensus.ffn_percent = 75;
    consensus.sizes = {{6, 288, 1, 1}};
    consensus.heads_per_kv_head = 1;
    QCOMPARE(refusal(consensus), std::string("valid"));
    consensus.head_dim = 2;
    consensus.sizes = {{6, 130, 1, 1}};
    QVERIFY(has(refusal(consensus), "75 %, ffn_percent, must be a whole number"));
    consensus = good;
    consensus.sizes.clear();
    for (std::uint64_t i = 0; i < 64; ++i) consensus.sizes.push_back({5 + i, 128, 1, 1});
    QCOMPARE(refusal(consensus), std::string("valid"));
    consensus.sizes.push_back({100, 128, 1, 1});
    QVERIFY(has(refusal(consensus), "at most 64"));
  }

  // A member keeps its part: nobody fetches another one because the model changes its size.
  void parts_of_a_larger_model_continue_the_same_parts() {
    ConsensusPart consensus =
        village({{6, 128, 1, 1}, {7, 256, 1, 1}, {16, 256, 1, 1}, {17, 512, 1, 1}}).consensus;
    for (const char* sync : {"parts=2", "parts=3", "parts=4"}) {
      consensus.sync = sync;
      for (std::uint64_t size = 1; size <= consensus.sizes.size(); ++size) {
        const ConsensusPart before = at_size(consensus, size - 1), after = at_size(consensus, size);
        const compute::ModelShape smaller = model_shape(before), larger = model_shape(after);
        const auto old_parts = model_parts(before), parts = model_parts(after);
        QCOMPARE(parts.size(), old_parts.size());
        QVERIFY(parts.front().embed && parts.back().head);
        std::uint32_t next = 0;
        for (std::size_t p = 0; p < parts.size(); ++p) {
          QVERIFY(parts[p].layer_count >= 1);
          QCOMPARE(parts[p].first_layer, next);
          next += parts[p].layer_count;
          std::size_t continued = 0;
          for (const compute::SlotId slot : compute::slots_of(larger, parts[p])) {
            const auto from = compute::grown_from(smaller, larger, slot);
            if (!from) continue;
            ++continued;
            QVERIFY(compute::holds(old_parts[p], *from));
          }
          QCOMPARE(continued, compute::slots_of(smaller, old_parts[p]).size());
          // The layers that a smaller model keeps.
          for (std::uint32_t layer = 0; layer < smaller.layers; ++layer) {
            const compute::SlotId kept{compute::SlotKind::Layer, layer * larger.layers / smaller.layers, 0};
            QCOMPARE(compute::holds(parts[p], kept),
                     compute::holds(old_parts[p], {compute::SlotKind::Layer, layer, 0}));
          }
        }
        QCOMPARE(next, larger.layers);
      }
      QVERIFY(model_parts(at_size(consensus, 0)) ==
              compute::cut_model(model_shape(at_size(consensus, 0)), model_parts(consensus).size()));
    }
  }

  void a_directory_keeps_the_size() {
    {
      const auto directory = open();
      QVERIFY2(directory.ok(), directory.ok() ? "" : directory.error().describe().c_str());
      QVERIFY2(!QFileInfo::exists(size_file()), "the first size needs no file");
      QCOMPARE((*directory)->profile().consensus.size, std::uint64_t{0});
      QVERIFY(keep_size((*directory)->path(), files_, (*directory)->profile().consensus, 2).ok());
      QCOMPARE((*directory)->profile().consensus.size, std::uint64_t{0});
      const auto none = keep_size((*directory)->path(), files_, (*directory)->profile().consensus, 4);
      QCOMPARE(none.error().code, ErrorCode::InvalidArgument);
      QVERIFY(has(none.error().message, "no size 4; the last one is 3"));
    }
    QCOMPARE(as_text(*storage::read_file(files_, size_file().toStdString(), 9)), std::string_view("2\n"));
    for (const std::string& profile : {options_.profile, std::string()}) {
      options_.profile = profile;
      const auto directory = open();
      QVERIFY2(directory.ok(), directory.ok() ? "" : directory.error().describe().c_str());
      QCOMPARE((*directory)->profile().consensus.size, std::uint64_t{2});
      QCOMPARE(model_shape((*directory)->profile().consensus).hidden, 256u);
      QCOMPARE((*directory)->network_id(), network_id(village().consensus));
    }
    const auto directory = open();
    QVERIFY(keep_size((*directory)->path(), files_, (*directory)->profile().consensus, 0).ok());
    QCOMPARE(read_size((*directory)->path(), files_, village().consensus).value(), std::uint64_t{0});
  }

  void a_size_that_the_network_lacks_is_damage() {
    QVERIFY(open().ok());
    for (const char* damaged : {"4\n", "3", "", "\n", "x\n", "-1\n", "1 \n", "1\n\n", "999999999999\n"}) {
      QVERIFY(storage::write_file_atomic(files_, size_file().toStdString(), as_bytes(damaged)).ok());
      const auto refused = open();
      QVERIFY2(!refused.ok(), damaged);
      QCOMPARE(refused.error().code, ErrorCode::Corrupt);
      QVERIFY(has(refused.error().describe(), "d/size holds no size of this network's model"));
      QVERIFY(has(refused.error().message, "0 to 3; restore the file from a backup, or remove it"));
    }
    QVERIFY(QFile::remove(size_file()));
    QVERIFY(open().ok());
  }

 private:
  Expected<std::unique_ptr<DataDirectory>> open() {
    return DataDirectory::open(options_, {files_, entropy_, clock_, logger_});
  }
  QString size_file() const { return folder_->filePath("d/size"); }

  std::unique_ptr<QTemporaryDir> folder_;
  testing::NoSyncFileEnv files_;
  test::CountingEntropy entropy_;
  SystemClock clock_;
  NullLogger logger_;
  DataDirectoryOptions options_;
};

NS_TEST(TestModelSize)
#include "test_model_size.moc"
