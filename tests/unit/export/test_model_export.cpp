// Whole exports: independent Python (tests/golden/export_oracle.py) reads the Hugging Face folder and the GGUF file, computes the
// model in double precision, splits text with the exported tokenizer, and must agree with the compute module and the encoder;
// the weights come back bit for bit; damage, full disks and cancellation leave nothing.
#include <QElapsedTimer>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "core/base/log.h"
#include "core/checkpoint/writer.h"
#include "core/compute/module.h"
#include "core/data/encoder.h"
#include "core/export/hugging_face.h"
#include "core/export/hugging_face_reader.h"
#include "core/export/model_export.h"
#include "tests/support/checkpoint_sample.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/unit/export/small_model.h"

using namespace neuroshard;
using namespace neuroshard::exporting;
using namespace neuroshard::testing;

namespace {

constexpr std::uint32_t positions = 12;

// Logits of the compute module for `tokens`.
std::vector<float> logits(const TinyState& state, const std::vector<std::int32_t>& tokens) {
  static NullLogger logger;
  const auto loaded = compute::load_module("cpu", compute::ModuleOptions{}, logger);
  NS_CHECK(loaded.ok());
  compute::StageSpec spec;
  spec.shape = state.shape;
  spec.layer_count = state.shape.layers;
  spec.embed = spec.head = true;
  spec.trainable = false;
  const compute::StagePtr stage = compute::make_stage(*loaded->module, spec).value();
  for (std::uint32_t i = 0; i < stage->slot_count(); ++i) {
    const compute::SlotId id = stage->slot(i).id;
    for (const TinyState::Buffers& slot : state.slots)
      if (slot.id == id)
        NS_CHECK(stage->copy_in(i, compute::SlotBuffer::Parameters, slot.parameters.data()).ok());
  }
  stage->parameters_changed();
  compute::MicroBatch batch;
  batch.batch = 1;
  batch.sequence = static_cast<std::uint32_t>(tokens.size());
  batch.tokens = tokens.data();
  std::vector<float> result(tokens.size() * state.shape.vocab);
  NS_CHECK(stage->logits(batch, result.data()).ok());
  return result;
}

QJsonArray numbers(Span<const float> values) {
  QJsonArray array;
  for (const float value : values) array.append(double{value});
  return array;
}

}  // namespace

class TestModelExport : public QObject {
  Q_OBJECT

  checkpoint::Entry save(storage::FileEnv& env, const std::string& root, const TinyState& state) {
    auto writer = checkpoint::Writer::open(env, key_, root).value();
    NS_CHECK(writer.save(tiny_manifest(120, state.shape), state.view()).ok());
    return checkpoint::Catalogue(env, root).current().value().value();
  }

  ExportRequest request(const checkpoint::Entry& entry, const char* format, std::string path) const {
    return {entry, parse_export_format(format).value(), tokenizer_.get(), std::move(path)};
  }

  // The same texts by our encoder: [{text, ids}].
  QJsonArray encoded_texts() const {
    data::Encoder encoder(tokenizer_);
    QJsonArray texts;
    for (const char* text : {"the other hello  12the\n\n  x", " the the", "it's   we'll 'tis\t\ttab",
                             "caf\u00e9 \u4f60\u597d 12\u00b2", "\U0001F600 \U0001F468\u200D\U0001F469", "",
                             "a\u00a0\u2003b \u2028c  "}) {
      QJsonArray ids;
      for (const data::TokenId id : encoder.encode(as_bytes(std::string_view(text))))
        ids.append(static_cast<int>(id));
      texts.append(QJsonObject{{"text", QString::fromUtf8(text)}, {"ids", ids}});
    }
    return texts;
  }

 private Q_SLOTS:
  void init() { disk_ = MemoryFileEnv(); }

  void independent_readers_compute_the_same_model_data() {
    QTest::addColumn<unsigned>("experts");
    QTest::newRow("dense") << 1u;
    QTest::newRow("mixture") << 4u;
  }
  void independent_readers_compute_the_same_model() {
    QFETCH(const unsigned, experts);
    if (!QFile::exists("/usr/bin/python3")) QSKIP("python3 is not installed");
    QTemporaryDir folder;
    const std::string root = folder.path().toStdString();
    const auto env = storage::make_posix_file_env();
    TinyState state(1, small_shape(experts));
    fill(state);
    const checkpoint::Entry entry = save(*env, root + "/c", state);
    for (const char* format : {"huggingface", "gguf"}) {
      const auto written = export_model(*env, request(entry, format, root + "/" + format));
      QVERIFY2(written.ok(), written.ok() ? "" : written.error().describe().c_str());
    }
    std::vector<std::int32_t> tokens;
    for (std::uint32_t i = 0; i < positions; ++i) tokens.push_back(static_cast<std::int32_t>(i * 37 % 273));
    const std::vector<float> ours = logits(state, tokens);
    QJsonArray ids;
    for (const std::int32_t token : tokens) ids.append(token);
    QFile expected(folder.filePath("expected.json"));
    QVERIFY(expected.open(QIODevice::WriteOnly));
    expected.write(QJsonDocument(QJsonObject{{"tokens", ids},
                                             {"logits", numbers({ours.data(), ours.size()})},
                                             {"texts", encoded_texts()}})
                       .toJson());
    expected.close();
    QProcess python;
    python.start("/usr/bin/python3",
                 {qEnvironmentVariable("NS_SOURCE_DIR") + "/tests/golden/export_oracle.py",
                  folder.filePath("huggingface"), folder.filePath("gguf"), expected.fileName()});
    QVERIFY(python.waitForFinished(60'000));
    QVERIFY2(python.exitCode() == 0, python.readAllStandardError().constData());
    QVERIFY(python.readAllStandardOutput().startsWith("agrees"));
  }

  void weights_come_back_bit_for_bit() {
    TinyState state = finite_state();
    const checkpoint::Entry entry = save(disk_, "/c", state);
    QVERIFY(export_model(disk_, request(entry, "huggingface", "/hf")).ok());
    auto model = HuggingFaceModel::open(disk_, "/hf");
    QVERIFY2(model.ok(), model.ok() ? "" : model.error().describe().c_str());
    QVERIFY(checkpoint::same_shape(model->shape(), state.shape));
    for (const TinyState::Buffers& slot : buffers_of(state)) {
      std::vector<float> values(slot.parameters.size());
      QVERIFY(model->read_slot(slot.id, {values.data(), values.size()}).ok());
      QVERIFY(std::memcmp(values.data(), slot.parameters.data(), values.size() * sizeof(float)) == 0);
    }
  }

  void one_export_gives_one_sequence_of_bytes() {
    const checkpoint::Entry entry = save(disk_, "/c", finite_state());
    for (const char* format : {"gguf", "gguf:f16", "gguf:bf16", "gguf:q8_0"}) {
      QVERIFY(export_model(disk_, request(entry, format, "/a")).ok());
      const auto bytes = export_model(disk_, request(entry, format, "/b"));  // over the earlier one
      QVERIFY(bytes.ok());
      QVERIFY(storage::read_file(disk_, "/a", 1 << 24).value() ==
              storage::read_file(disk_, "/b", 1 << 24).value());
      QCOMPARE(disk_.open_read("/b").value()->size(), *bytes);
    }
  }

  // In linear time: a search for each token among the earlier ones takes minutes.
  void the_vocabulary_stands_in_the_order_of_its_ids() {
    for (const std::size_t count : {std::size_t{300}, std::size_t{200'000}}) {
      Vocabulary vocabulary;
      std::string expected = "\"vocab\":{";
      for (std::size_t id = 0; id < count; ++id) {
        const std::string number = std::to_string(id);
        vocabulary.tokens.push_back("token " + number);
        vocabulary.kinds.push_back(TokenKind::Normal);
        expected += (id > 0 ? ",\"token " : "\"token ") + number + "\":" + number;
      }
      QElapsedTimer timer;
      timer.start();
      const auto texts = hugging_face_texts(tiny_manifest(1), "id", vocabulary, StoredType::F32);
      QVERIFY2(timer.elapsed() < 20'000, qPrintable(QString::number(timer.elapsed())));
      QCOMPARE(texts[0].name, std::string("tokenizer.json"));
      QVERIFY(texts[0].content.find(expected + "},\"merges\":[]") != std::string::npos);
    }
  }

  void damage_full_disks_and_cancellation_leave_nothing() {
    const checkpoint::Entry entry = save(disk_, "/c", finite_state());
    CancelSource cancel;
    cancel.cancel();
    for (const char* format : {"gguf", "huggingface"}) {
      FaultFileEnv full(disk_, {.room_bytes = 20'000});
      QCOMPARE(export_model(full, request(entry, format, "/out")).error().code, ErrorCode::Exhausted);
      QCOMPARE(export_model(disk_, request(entry, format, "/out"), {}, cancel.token()).error().code,
               ErrorCode::Cancelled);
    }
    const std::string weights = entry.path + "/weights.safetensors";
    disk_.flip(weights, disk_.open_read(weights).value()->size() - 1);
    for (const char* format : {"gguf", "huggingface"})
      QCOMPARE(export_model(disk_, request(entry, format, "/out")).error().code, ErrorCode::Corrupt);
    QVERIFY(!disk_.exists("/out") && !disk_.exists("/out.tmp-0000000000000000"));
  }

  void what_other_programs_do_not_know_is_refused() {
    TinyState state = finite_state();
    state.extra = {0.0f, 0.25f};
    const auto biased = export_model(disk_, request(save(disk_, "/c", state), "gguf", "/out"));
    QCOMPARE(biased.error().code, ErrorCode::InvalidArgument);
    QVERIFY(biased.error().message.find("balancing biases") != std::string::npos);
    state = finite_state();
    buffers_of(state)[0].parameters[3] = 70'000.0f;
    const auto large = export_model(disk_, request(save(disk_, "/d", state), "gguf:f16", "/out"));
    QCOMPARE(large.error().code, ErrorCode::InvalidArgument);
    QVERIFY(large.error().describe().find("model.embed_tokens.weight") != std::string::npos);
    QVERIFY(!disk_.exists("/out"));
  }

 private:
  static TinyState finite_state() {
    TinyState state(1, small_shape(2));
    fill(state);
    return state;
  }

  crypto::KeyPair key_ = tiny_key();
  std::shared_ptr<const data::Tokenizer> tokenizer_ = small_tokenizer();
  MemoryFileEnv disk_;
};

NS_TEST(TestModelExport)
#include "test_model_export.moc"
