// The manifest: what is written is read back, and no changed byte passes for the original.
#include <QtTest>

#include "tests/support/checkpoint_sample.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::checkpoint;
using namespace neuroshard::testing;

namespace {
Manifest full_manifest() {
  Manifest manifest = tiny_manifest(120);
  manifest.sequence = 12;
  manifest.parent = "0000000110-01234567";
  manifest.slots = compute::model_slots(manifest.architecture);
  FileRecord weights{"weights.safetensors", 1234, {}};
  weights.sha256.fill(0xab);
  manifest.files = {weights, {"optimizer.safetensors", 99, {}}};
  return manifest;
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  NS_CHECK(at != std::string::npos);
  return text.replace(at, from.size(), to);
}
}  // namespace

class TestManifest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void round_trip() {
    Manifest manifest = full_manifest();
    const crypto::KeyPair key = tiny_key();
    const Bytes bytes = sign_and_encode(manifest, key);
    const auto read = parse_manifest(bytes);
    QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
    QVERIFY(verify_signature(*read).ok());
    QCOMPARE(read->step, manifest.step);
    QCOMPARE(read->sequence, std::uint64_t{12});
    QCOMPARE(read->parent, manifest.parent);
    QCOMPARE(read->loader_position, manifest.loader_position);
    QVERIFY(read->rng == manifest.rng);
    QVERIFY(read->losses.held_out == manifest.losses.held_out);
    QVERIFY(read->slots == manifest.slots);
    QVERIFY(read->instance == crypto::node_id(key.public_key()));
    QVERIFY(read->saved_at == manifest.saved_at);
    QCOMPARE(read->file_bytes(), std::uint64_t{1333});
    QCOMPARE(read->architecture.vocab, manifest.architecture.vocab);
    QCOMPARE(read->architecture.rms_epsilon, manifest.architecture.rms_epsilon);
  }

  void losses_that_are_not_finite_are_left_out() {
    Manifest manifest = full_manifest();
    manifest.losses = {NAN, INFINITY};
    const auto read = parse_manifest(sign_and_encode(manifest, tiny_key()));
    QVERIFY(read.ok());
    QVERIFY(!read->losses.training && !read->losses.held_out);
  }

  void every_flipped_bit_is_noticed() {
    Manifest manifest = full_manifest();
    const Bytes bytes = sign_and_encode(manifest, tiny_key());
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        Bytes flipped = bytes;
        flipped[at] ^= static_cast<std::uint8_t>(1 << bit);
        const auto read = parse_manifest(flipped);
        QVERIFY2(!read.ok() || !verify_signature(*read).ok(), qPrintable(QString::number(at)));
      }
    }
  }

  void every_cut_is_noticed() {
    Manifest manifest = full_manifest();
    const Bytes bytes = sign_and_encode(manifest, tiny_key());
    for (std::size_t size = 0; size < bytes.size(); ++size)
      QVERIFY(!parse_manifest(ByteSpan(bytes).first(size)).ok());
  }

  void another_key_or_network_does_not_pass() {
    Manifest manifest = full_manifest();
    sign_and_encode(manifest, tiny_key());
    Manifest other = manifest;
    other.node_key = tiny_key(8).public_key();
    other.instance = crypto::node_id(other.node_key);
    QVERIFY(!verify_signature(other).ok());
    other = manifest;
    other.network_id.fill(4);
    QVERIFY(!verify_signature(other).ok());
    other = manifest;
    other.instance.fill(1);
    QVERIFY(!verify_signature(other).ok());
  }

  void bad_manifests_are_refused_with_a_word_data() {
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<int>("code");
    const auto row = [](const char* name, const char* from, const char* to,
                        ErrorCode code = ErrorCode::Corrupt) {
      QTest::newRow(name) << QString(from) << QString(to) << static_cast<int>(code);
    };
    row("newer format", "\"format\": 1", "\"format\": 2", ErrorCode::Unsupported);
    row("negative step", "\"step\": 120", "\"step\": -1");
    row("fraction", "\"step\": 120", "\"step\": 1.5");
    row("text for a number", "\"step\": 120", "\"step\": \"120\"");
    row("unknown field", "\"step\": 120", "\"step\": 120, \"xstep\": 1");
    row("missing field", "\"step\": 120,", "");
    row("twice", "\"step\": 120,", "\"step\": 120, \"step\": 120,");
    row("path in a file name", "\"weights.safetensors\"", "\"../weights.safetensors\"");
    row("same file twice", "\"optimizer.safetensors\"", "\"weights.safetensors\"");
    row("impossible model", "\"hidden\": 8", "\"hidden\": 4000000000");
    row("slot outside the model", "\"expert 0.1\"", "\"expert 0.2\"");
    row("same slot twice", "\"expert 0.1\"", "\"expert 0.0\"");
    row("not a slot", "\"embed\"", "\"embedding\"");
    row("spelled otherwise", "\"step\": 120", "\"step\":  120");
    row("short hash", "abab\"", "ab\"");
  }
  void bad_manifests_are_refused_with_a_word() {
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(int, code);
    Manifest manifest = full_manifest();
    const Bytes bytes = sign_and_encode(manifest, tiny_key());
    const std::string text = replaced(std::string(as_text(bytes)), from.toStdString(), to.toStdString());
    const auto read = parse_manifest(as_bytes(text));
    QVERIFY(!read.ok());
    QVERIFY(!read.error().message.empty());
    if (code == static_cast<int>(ErrorCode::Unsupported)) QCOMPARE(static_cast<int>(read.error().code), code);
  }

  void bombs_are_refused() {
    const std::string deep(2'000'000, '[');
    QVERIFY(!parse_manifest(as_bytes(deep)).ok());
    const Bytes large(max_manifest_bytes + 1, ' ');
    QCOMPARE(parse_manifest(large).error().code, ErrorCode::Exhausted);
  }

  void names_sort_by_step() {
    const std::string early = folder_name(90, as_bytes("x"));
    const std::string late = folder_name(1000, as_bytes("x"));
    QVERIFY(early < late);
    QCOMPARE(early, std::string("0000000090-2d711642"));  // SHA-256("x") = 2d711642…
    QVERIFY(is_folder_name(early));
    for (const char* other : {"", "x", "0000000090", "0000000090-2D711642", "0000000090-2d71164", "-2d711642",
                              ".saving", "0000000090-2d711642/..", "00000000901234567890123-2d711642"}) {
      QVERIFY2(!is_folder_name(other), other);
    }
  }
};

NS_TEST(TestManifest)
#include "test_manifest.moc"
