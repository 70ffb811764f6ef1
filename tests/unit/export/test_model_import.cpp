// Hugging Face folders back into checkpoints: an exported folder comes back bit for bit in each type, and what our model does not
// have is refused by name before any weight is read.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "core/checkpoint/writer.h"
#include "core/compute/growth.h"
#include "core/export/hugging_face_tokenizer.h"
#include "core/export/model_export.h"
#include "core/export/model_import.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/unit/export/small_model.h"

using namespace neuroshard;
using namespace neuroshard::exporting;
using namespace neuroshard::testing;
using nlohmann::json;

class TestModelImport : public QObject {
  Q_OBJECT

  void export_to(const char* format, const std::string& path, const checkpoint::Entry& entry) {
    const auto written =
        export_model(disk_, {entry, parse_export_format(format).value(), tokenizer_.get(), path});
    NS_CHECK(written.ok());
  }
  std::string text(const std::string& path) {
    const Bytes bytes = storage::read_file(disk_, path, 1 << 24).value();
    return std::string(as_text(bytes));
  }
  // Changes a JSON file of the folder /hf.
  void change(const char* file, const std::function<void(json&)>& how) {
    const std::string path = std::string("/hf/") + file;
    json object = json::parse(text(path));
    how(object);
    NS_CHECK(storage::write_file_atomic(disk_, path, as_bytes(object.dump())).ok());
  }
  void start(std::uint32_t experts = 2) {
    disk_ = MemoryFileEnv();
    TinyState state(1, small_shape(experts));
    fill(state);
    auto writer = checkpoint::Writer::open(disk_, key_, "/c").value();
    NS_CHECK(writer.save(tiny_manifest(120, state.shape), state.view()).ok());
    entry_ = checkpoint::Catalogue(disk_, "/c").current().value().value();
  }

 private Q_SLOTS:
  void an_export_comes_back_bit_for_bit_data() {
    QTest::addColumn<QByteArray>("format");
    QTest::addColumn<unsigned>("experts");
    for (const unsigned experts : {1u, 4u})
      for (const char* format : {"huggingface", "huggingface:f16", "huggingface:bf16"})
        QTest::addRow("%s of %u", format, experts) << QByteArray(format) << experts;
  }
  void an_export_comes_back_bit_for_bit() {
    QFETCH(const QByteArray, format);
    QFETCH(const unsigned, experts);
    start(experts);
    export_to(format, "/hf", entry_);
    QVERIFY(is_hugging_face_folder(disk_, "/hf") && !is_hugging_face_folder(disk_, entry_.path));
    auto source = open_hugging_face_folder(disk_, "/hf");
    QVERIFY2(source.ok(), source.ok() ? "" : source.error().describe().c_str());
    QVERIFY(tokenizer_->is_prefix_of(source->tokenizer) && source->tokenizer.is_prefix_of(*tokenizer_));
    auto writer = checkpoint::Writer::open(disk_, key_, "/other").value();
    const auto saved = import_model(writer, *source, tiny_manifest(0, source->model.shape()), {});
    QVERIFY2(saved.ok(), saved.ok() ? "" : saved.error().describe().c_str());
    const checkpoint::Catalogue catalogue(disk_, "/other");
    const checkpoint::Entry imported = catalogue.find(saved->name).value();
    QVERIFY(checkpoint::verify(disk_, imported).ok());
    QVERIFY(imported.pinned && imported.manifest.sequence == 0);
    export_to(format, "/again", imported);
    for (const char* file : {"model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json",
                             "generation_config.json"})
      QVERIFY2(text(std::string("/hf/") + file) == text(std::string("/again/") + file), file);
    // Training goes on from it: no moments, no biases.
    TinyState loaded(9, small_shape(experts));
    checkpoint::LoadRequest request = loaded.request();
    bool biases = false;
    request.extra = [&](const checkpoint::ExtraTensor& extra) -> Expected<void> {
      biases = extra.name == "router_bias" &&
               std::all_of(extra.values.begin(), extra.values.end(), [](float v) { return v == 0; });
      return {};
    };
    QVERIFY(checkpoint::load(disk_, imported, request).ok());
    QVERIFY(biases);
    for (const auto& slot : buffers_of(loaded))
      for (const float value : slot.moment2) QCOMPARE(value, 0.0f);
  }

  void a_smaller_model_grows() {
    start(2);
    export_to("huggingface", "/hf", entry_);
    auto source = open_hugging_face_folder(disk_, "/hf").value();
    compute::ModelShape larger = source.model.shape();
    larger.layers += 1;
    larger.hidden *= 2;
    larger.heads *= 2;
    larger.kv_heads *= 2;
    larger.ffn *= 2;
    auto writer = checkpoint::Writer::open(disk_, key_, "/other").value();
    const Hash256 seed{7};
    const auto saved = import_model(writer, source, tiny_manifest(0, larger), seed);
    QVERIFY2(saved.ok(), saved.ok() ? "" : saved.error().describe().c_str());
    const checkpoint::Entry imported = checkpoint::Catalogue(disk_, "/other").find(saved->name).value();
    QVERIFY(checkpoint::verify(disk_, imported).ok());
    TinyState loaded(9, larger), before(9, source.model.shape());
    QVERIFY(checkpoint::load(disk_, imported, loaded.request()).ok());
    QVERIFY(checkpoint::load(disk_, entry_, before.request()).ok());
    std::size_t continued = 0;
    for (const auto& slot : buffers_of(loaded)) {
      std::vector<float> old;
      if (const auto from = compute::grown_from(before.shape, larger, slot.id)) {
        for (const auto& other : buffers_of(before))
          if (other.id == *from) old.assign(other.parameters.begin(), other.parameters.end());
        ++continued;
      }
      std::vector<float> expected(slot.parameters.size());
      compute::grow_slot(before.shape, larger, slot.id, {old.data(), old.size()}, seed,
                         {expected.data(), expected.size()});
      QVERIFY(std::equal(expected.begin(), expected.end(), slot.parameters.begin(), slot.parameters.end()));
      for (const float value : slot.moment1) QCOMPARE(value, 0.0f);
    }
    QCOMPARE(continued, compute::model_slots(before.shape).size());
    // The other way round.
    larger.hidden = source.model.shape().hidden / 2;
    const auto refused = import_model(writer, source, tiny_manifest(0, larger), seed);
    QVERIFY(!refused.ok() && refused.error().code == ErrorCode::InvalidArgument);
  }

  void what_the_model_does_not_have_is_named_data() {
    using Change = std::function<void(json&)>;
    QTest::addColumn<QByteArray>("file");
    QTest::addColumn<Change>("how");
    QTest::addColumn<QByteArray>("named");
    const auto row = [](const char* name, const char* file, Change how) {
      QTest::newRow(name) << QByteArray(file) << std::move(how) << QByteArray(name);
    };
    row("sliding_window", "config.json", [](json& c) { c["sliding_window"] = 4096; });
    row("rope_scaling", "config.json", [](json& c) {
      c["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
    });
    row("(rope_parameters)", "config.json", [](json& c) {
      c["rope_parameters"] = {{"rope_type", "yarn"}, {"rope_theta", 1e4}, {"factor", 2.0}};
    });
    row("rope_parameters that is not an object", "config.json",
        [](json& c) { c["rope_parameters"] = "default"; });
    row("tie_word_embeddings", "config.json", [](json& c) { c["tie_word_embeddings"] = true; });
    row("rope_scaling", "config.json", [](json& c) { c["rope_scaling"] = {{"type", "linear"}}; });
    row("qwen2", "config.json", [](json& c) { c["model_type"] = "qwen2"; });
    row("activation", "config.json", [](json& c) { c["hidden_act"] = "gelu"; });
    row("num_hidden_layers", "config.json", [](json& c) { c.erase("num_hidden_layers"); });
    row("normalizer", "tokenizer.json", [](json& t) { t["normalizer"] = {{"type", "NFC"}}; });
    row("add_prefix_space", "tokenizer.json", [](json& t) { t["pre_tokenizer"]["add_prefix_space"] = true; });
    row("pre_tokenizer", "tokenizer.json", [](json& t) { t["pre_tokenizer"] = {{"type", "Metaspace"}}; });
    row("WordPiece", "tokenizer.json", [](json& t) { t["model"]["type"] = "WordPiece"; });
    row("byte_fallback", "tokenizer.json", [](json& t) { t["model"]["byte_fallback"] = true; });
    row("unknown tokens", "tokenizer.json", [](json& t) { t["model"]["merges"].push_back("x yz"); });
    row("another id", "tokenizer.json",
        [](json& t) { std::swap(t["model"]["vocab"]["a"], t["model"]["vocab"]["b"]); });
    row("room for", "tokenizer.json", [](json& t) { t["model"]["vocab"]["surplus"] = 1; });
  }
  void what_the_model_does_not_have_is_named() {
    QFETCH(const QByteArray, file);
    QFETCH(const std::function<void(json&)>, how);
    QFETCH(QByteArray, named);
    if (named == "WordPiece") named = "BPE";
    start();
    export_to("huggingface", "/hf", entry_);
    change(file.constData(), how);
    const auto refused = open_hugging_face_folder(disk_, "/hf");
    QVERIFY(!refused.ok());
    QVERIFY(refused.error().code == ErrorCode::Unsupported || refused.error().code == ErrorCode::Corrupt);
    QVERIFY2(refused.error().message.find(named.toStdString()) != std::string::npos,
             refused.error().message.c_str());
    QVERIFY2(refused.error().message.find(file.toStdString()) != std::string::npos,
             refused.error().message.c_str());
  }

  void newer_spellings_of_merges_are_read() {
    start();
    export_to("huggingface", "/hf", entry_);
    change("tokenizer.json", [](json& t) {
      for (json& merge : t["model"]["merges"]) {
        const auto words = merge.get<std::string>();
        merge = {words.substr(0, words.find(' ')), words.substr(words.find(' ') + 1)};
      }
    });
    QVERIFY(open_hugging_face_folder(disk_, "/hf").ok());
  }

  void newer_spellings_of_the_rotation_are_read() {
    start();
    export_to("huggingface", "/hf", entry_);
    const float theta = open_hugging_face_folder(disk_, "/hf").value().model.shape().rope_theta;
    change("config.json", [](json& c) {
      c.erase("rope_theta");
      c["rope_parameters"] = {{"rope_theta", 5e5}, {"rope_type", "default"}};
    });
    QCOMPARE(open_hugging_face_folder(disk_, "/hf").value().model.shape().rope_theta, 5e5f);
    change("config.json", [theta](json& c) {
      c["rope_theta"] = theta;
      c["rope_parameters"] = {{"type", "default"}};
      c["rope_scaling"] = {{"rope_type", "default"}};
    });
    QCOMPARE(open_hugging_face_folder(disk_, "/hf").value().model.shape().rope_theta, theta);
  }

  void the_usual_epsilon_is_that_of_the_kind_data() {
    QTest::addColumn<unsigned>("experts");
    QTest::addColumn<float>("epsilon");
    QTest::newRow("llama") << 1u << 1e-6f;
    QTest::newRow("mixtral") << 2u << 1e-5f;
  }
  void the_usual_epsilon_is_that_of_the_kind() {
    QFETCH(const unsigned, experts);
    QFETCH(const float, epsilon);
    start(experts);
    export_to("huggingface", "/hf", entry_);
    change("config.json", [](json& c) { c.erase("rms_norm_eps"); });
    QCOMPARE(open_hugging_face_folder(disk_, "/hf").value().model.shape().rms_epsilon, epsilon);
  }

  void missing_key_value_heads_are_those_of_the_kind_data() {
    QTest::addColumn<unsigned>("experts");
    QTest::addColumn<bool>("is_null");
    QTest::addColumn<unsigned>("heads");
    QTest::newRow("llama") << 1u << false << 16u;
    QTest::newRow("llama, null") << 1u << true << 16u;
    QTest::newRow("mixtral") << 2u << false << 8u;
    QTest::newRow("mixtral, null") << 2u << true << 16u;
  }
  void missing_key_value_heads_are_those_of_the_kind() {
    QFETCH(const unsigned, experts);
    QFETCH(const bool, is_null);
    QFETCH(const unsigned, heads);
    start(experts);
    export_to("huggingface", "/hf", entry_);
    change("config.json", [is_null](json& c) {
      c["num_attention_heads"] = 16;  // of a width of 32
      c["head_dim"] = 2;
      c.erase("num_key_value_heads");
      if (is_null) c["num_key_value_heads"] = nullptr;
    });
    const std::string file = text("/hf/config.json");
    const auto shape = parse_hugging_face_config(as_bytes(file));
    QVERIFY2(shape.ok(), shape.ok() ? "" : shape.error().describe().c_str());
    QCOMPARE(shape->kv_heads, heads);
  }

  void weights_are_finite_data() {
    QTest::addColumn<QByteArray>("format");
    QTest::addColumn<QByteArray>("last");  // the bytes of the last value
    QTest::newRow("not a number") << QByteArray("huggingface") << QByteArray::fromHex("0000c07f");
    QTest::newRow("infinite f16") << QByteArray("huggingface:f16") << QByteArray::fromHex("007c");
    QTest::newRow("infinite bf16") << QByteArray("huggingface:bf16") << QByteArray::fromHex("80ff");
  }
  void weights_are_finite() {
    QFETCH(const QByteArray, format);
    QFETCH(const QByteArray, last);
    start();
    export_to(format, "/hf", entry_);
    std::string file = text("/hf/model.safetensors");
    file.replace(file.size() - static_cast<std::size_t>(last.size()), std::string::npos, last.toStdString());
    QVERIFY(storage::write_file_atomic(disk_, "/hf/model.safetensors", as_bytes(file)).ok());
    auto source = open_hugging_face_folder(disk_, "/hf").value();
    auto writer = checkpoint::Writer::open(disk_, key_, "/other").value();
    const auto refused = import_model(writer, source, tiny_manifest(0, source.model.shape()), {});
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::Corrupt);
    const std::string& said = refused.error().message;
    QVERIFY2(said.find("has a value that is not a finite number") != std::string::npos, said.c_str());
    QVERIFY(disk_.list("/other")->empty());
  }

  void foreign_tensors_are_named() {
    start(2);
    export_to("huggingface", "/hf", entry_);
    change("config.json", [](json& c) { c["num_local_experts"] = 3; });
    QVERIFY(open_hugging_face_folder(disk_, "/hf").error().message.find("block_sparse_moe.gate") !=
            std::string::npos);
    change("config.json", [](json& c) {
      c["num_local_experts"] = 2;
      c["num_hidden_layers"] = 1;
    });
    const auto surplus = open_hugging_face_folder(disk_, "/hf");
    QCOMPARE(surplus.error().code, ErrorCode::Unsupported);
    QVERIFY2(surplus.error().message.find("model.layers.1") != std::string::npos,
             surplus.error().message.c_str());
    QVERIFY(disk_.remove_file("/hf/model.safetensors").ok());
    QVERIFY(storage::write_file_atomic(disk_, "/hf/model.safetensors.index.json", as_bytes("{}")).ok());
    QVERIFY(open_hugging_face_folder(disk_, "/hf").error().message.find("several files") !=
            std::string::npos);
  }

  void a_stop_leaves_nothing() {
    start();
    export_to("huggingface", "/hf", entry_);
    auto source = open_hugging_face_folder(disk_, "/hf").value();
    auto writer = checkpoint::Writer::open(disk_, key_, "/other").value();
    CancelSource cancel;
    cancel.cancel();
    const auto stopped =
        import_model(writer, source, tiny_manifest(0, source.model.shape()), {}, {}, cancel.token());
    QCOMPARE(stopped.error().code, ErrorCode::Cancelled);
    QVERIFY(disk_.list("/other")->empty());
  }

 private:
  crypto::KeyPair key_ = tiny_key();
  std::shared_ptr<const data::Tokenizer> tokenizer_ = small_tokenizer();
  MemoryFileEnv disk_;
  checkpoint::Entry entry_;
};

NS_TEST(TestModelImport)
#include "test_model_import.moc"
