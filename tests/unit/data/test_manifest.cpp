// manifest.json: canonical bytes, signatures, and every way in which one can lie.
#include <QtTest>
#include <algorithm>

#include "core/data/manifest.h"
#include "core/data/manifest_store.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/dataset_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::testing;

namespace {

Manifest example() {
  Manifest manifest;
  manifest.network_id = Bytes(32, 0xab);
  manifest.tokenizer_hash.fill(3);
  manifest.created_ms = 1'700'000'000'000;
  manifest.updated_ms = 1'700'000'000'001;
  manifest.shards = {shard_of(0, 100), shard_of(1, 50, Split::HeldOut), shard_of(7, 25)};
  return manifest;
}

std::string text_of(const Manifest& manifest) {
  return std::string(as_text(encode_manifest(manifest)));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) qFatal("the manifest has no %s", from.c_str());
  return text.replace(at, from.size(), to);
}

}  // namespace

class TestManifest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void round_trip() {
    const std::string text = text_of(example());
    const auto parsed = parse_manifest(as_bytes(text));
    QVERIFY2(parsed.ok(), parsed.ok() ? "" : parsed.error().describe().c_str());
    QCOMPARE(text_of(*parsed), text);
    QCOMPARE(parsed->total_tokens(), std::uint64_t{175});
    QCOMPARE(parsed->of(Split::HeldOut).size(), std::size_t{1});
    QCOMPARE(parsed->find(7)->tokens, std::uint64_t{25});
    QVERIFY(parsed->find(6) == nullptr);
  }

  void unknown_fields_survive() {
    const std::string text =
        replaced(text_of(example()), "\"created_ms\"", "\"licence\": {\"a\": [1]}, \"created_ms\"");
    const auto parsed = parse_manifest(as_bytes(text));
    QVERIFY(parsed.ok());
    QVERIFY(text_of(*parsed).find("licence") != std::string::npos);
  }

  void lies_are_named_data() {
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("word");
    QTest::newRow("duplicate id") << "\"id\": 7"
                                  << "\"id\": 1"
                                  << "listed twice";
    QTest::newRow("negative size") << "\"size\": 1500"
                                   << "\"size\": -1500"
                                   << "negative";
    QTest::newRow("huge size") << "\"size\": 1500"
                               << "\"size\": 99999999999999"
                               << "at most";
    QTest::newRow("size is a fraction") << "\"size\": 1500"
                                        << "\"size\": 1500.5"
                                        << "whole number";
    QTest::newRow("size below its tokens") << "\"size\": 1500"
                                           << "\"size\": 100"
                                           << "too small";
    QTest::newRow("no tokens") << "\"tokens\": 25,\n      \"url\""
                               << "\"tokens\": 0,\n      \"url\""
                               << "tokens";
    QTest::newRow("total tokens") << "\"tokens\": 175"
                                  << "\"tokens\": 176"
                                  << "add up";
    QTest::newRow("total shards") << "\"shards\": 3"
                                  << "\"shards\": 4"
                                  << "add up";
    QTest::newRow("short hash") << "\"sha256\": \"01"
                                << "\"sha256\": \""
                                << "SHA-256";
    QTest::newRow("split") << "held-out"
                           << "test"
                           << "held-out";
    QTest::newRow("climbing url") << "shard_7.pt"
                                  << "../shard_7.pt"
                                  << "url";
    QTest::newRow("absolute path") << "shard_7.pt"
                                   << "/etc/passwd"
                                   << "url";
    QTest::newRow("other scheme") << "shard_7.pt"
                                  << "file:///etc/passwd"
                                  << "url";
    QTest::newRow("url with a space") << "shard_7.pt"
                                      << "shard 7.pt"
                                      << "url";
    QTest::newRow("missing field") << "\"network_id\""
                                   << "\"network\""
                                   << "network_id";
    QTest::newRow("version") << "\"format_version\": 1"
                             << "\"format_version\": 2"
                             << "version 2";
    QTest::newRow("not json") << "{"
                              << ""
                              << "JSON";
  }
  void lies_are_named() {
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, word);
    const std::string text = replaced(text_of(example()), from.toStdString(), to.toStdString());
    const auto parsed = parse_manifest(as_bytes(text));
    QVERIFY(!parsed.ok());
    QVERIFY2(parsed.error().message.find(word.toStdString()) != std::string::npos,
             parsed.error().message.c_str());
  }

  void deep_nesting_is_refused() {
    const std::string deep = "{\"a\":" + std::string(100'000, '[');
    QVERIFY(!parse_manifest(as_bytes(deep)).ok());
  }

  void damaged_manifests_are_errors_not_crashes() {
    const std::string text = text_of(example());
    Rng rng(2);
    for (int i = 0; i < 2000; ++i) {
      std::string damaged = text;
      for (std::uint64_t n = rng.below(3) + 1; n > 0; --n) {
        damaged[static_cast<std::size_t>(rng.below(damaged.size()))] = static_cast<char>(rng.next());
      }
      (void)parse_manifest(as_bytes(damaged));
    }
  }

  void signatures_bind_key_network_and_bytes() {
    const auto publisher = key_of(1);
    const Bytes bytes = encode_manifest(example());
    const Bytes signature = encode_manifest_signature(sign_manifest(publisher, example(), bytes));
    QVERIFY(open_manifest(bytes, signature, {}).ok());
    QVERIFY(open_manifest(bytes, signature, {publisher.public_key(), Bytes(32, 0xab)}).ok());
    const auto other_key = open_manifest(bytes, signature, {key_of(2).public_key(), {}});
    QVERIFY(other_key.error().code == ErrorCode::Denied);
    const auto other_network = open_manifest(bytes, signature, {publisher.public_key(), Bytes(32, 1)});
    QVERIFY(other_network.error().code == ErrorCode::Denied);
    const std::string changed = replaced(std::string(as_text(bytes)), "\"created_ms\"", " \"created_ms\"");
    const auto tampered = open_manifest(as_bytes(changed), signature, {});
    QVERIFY(tampered.error().code == ErrorCode::Denied);
    QVERIFY(tampered.error().message.find("signature") != std::string::npos);
    QVERIFY(!parse_manifest_signature(as_bytes(std::string_view("{}"))).ok());
  }

  // Two files can't change in one instant: every moment of a stop must leave the old or the new manifest.
  void a_power_cut_leaves_the_old_or_the_new_manifest() {
    const auto key = key_of(1);
    Manifest next = example();
    next.updated_ms += 5;
    using neuroshard::testing::PowerCut;
    for (const PowerCut kind :
         {PowerCut::OnlySynced, PowerCut::NamesWithoutData, PowerCut::TornData, PowerCut::Everything}) {
      bool done = false;
      for (std::uint64_t stop = 0; !done; ++stop) {
        neuroshard::testing::MemoryFileEnv memory;
        QVERIFY(memory.create_directories("/data").ok() && memory.sync_directory("/").ok());
        QVERIFY(store_manifest(memory, "/data", example(), key).ok());
        neuroshard::testing::Faults faults;
        faults.stop_at = stop;
        neuroshard::testing::FaultFileEnv env(memory, faults);
        done = store_manifest(env, "/data", next, key).ok();
        memory.power_cut(kind);
        const auto found = load_manifest(memory, "/data", {key.public_key(), {}});
        QVERIFY2(found.ok(), found.ok() ? "" : found.error().describe().c_str());
        QVERIFY(found->updated_ms == next.updated_ms || (!done && found->updated_ms == example().updated_ms));
        // And the next attempt succeeds.
        QVERIFY(store_manifest(memory, "/data", next, key).ok());
        QCOMPARE(load_manifest(memory, "/data", {}).value().updated_ms, next.updated_ms);
        QVERIFY(stop < 100);
      }
    }
  }
};

NS_TEST(TestManifest)
#include "test_manifest.moc"
