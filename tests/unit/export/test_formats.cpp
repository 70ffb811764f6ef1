// The parts of an export: stored numbers, the vocabulary, GGUF headers both ways, the configuration of a Hugging Face folder.
#include <QtTest>
#include <cmath>
#include <limits>

#include "core/export/gguf_model.h"
#include "core/export/gguf_reader.h"
#include "core/export/gguf_writer.h"
#include "core/export/hugging_face.h"
#include "core/export/hugging_face_reader.h"
#include "core/export/model_export.h"
#include "tests/support/buffer_source.h"
#include "tests/support/checkpoint_sample.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::exporting;

namespace {

std::uint16_t one_half(float value) {
  Bytes out;
  return append_stored(StoredType::F16, {&value, 1}, &out).ok() ? load_le<std::uint16_t>(out.data()) : 0xffff;
}

std::uint16_t one_bf16(float value) {
  Bytes out;
  return append_stored(StoredType::BF16, {&value, 1}, &out).ok() ? load_le<std::uint16_t>(out.data())
                                                                 : 0xffff;
}

Bytes gguf_file(const std::vector<GgufEntry>& entries, const std::vector<GgufTensor>& tensors) {
  GgufWriter writer = GgufWriter::plan(entries, tensors).value();
  Bytes file;
  const GgufWriter::Sink sink = [&](ByteSpan bytes) -> Expected<void> {
    file.insert(file.end(), bytes.begin(), bytes.end());
    return {};
  };
  NS_CHECK(writer.begin(sink).ok());
  for (const GgufTensor& tensor : tensors) {
    std::uint64_t count = 1;
    for (const std::uint64_t dim : tensor.dims) count *= dim;
    NS_CHECK(writer.append(Bytes(static_cast<std::size_t>(stored_bytes(tensor.type, count)), 7), sink).ok());
  }
  NS_CHECK(writer.finish().ok() && file.size() == writer.file_bytes());
  return file;
}

data::Tokenizer tokenizer_of(std::vector<data::Merge> merges) {
  return data::Tokenizer::from_merges(std::move(merges), {}).value();
}

constexpr data::TokenId byte_token(char c) {
  return data::first_byte_token + static_cast<unsigned char>(c);
}

}  // namespace

class TestFormats : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void halves_round_to_even() {
    QCOMPARE(one_half(1.0f), std::uint16_t{0x3c00});
    QCOMPARE(one_half(-2.5f), std::uint16_t{0xc100});
    QCOMPARE(one_half(1.0f + 1.0f / 2048), std::uint16_t{0x3c00});  // a tie: to even
    QCOMPARE(one_half(1.0f + 3.0f / 2048), std::uint16_t{0x3c02});
    QCOMPARE(one_half(std::ldexp(1.0f, -24)), std::uint16_t{1});  // the least subnormal
    QCOMPARE(one_half(std::ldexp(1.0f, -25)), std::uint16_t{0});  // a tie: to even
    QCOMPARE(one_half(std::ldexp(3.0f, -25)), std::uint16_t{2});
    QCOMPARE(one_half(std::ldexp(1.0f, -14)), std::uint16_t{0x400});
    QCOMPARE(one_half(65504.0f), std::uint16_t{0x7bff});
    QCOMPARE(one_half(65520.0f), std::uint16_t{0xffff});  // refused
    QCOMPARE(one_half(std::numeric_limits<float>::infinity()), std::uint16_t{0xffff});
  }

  void bf16_keeps_what_fp32_has() {
    QCOMPARE(one_bf16(1.0f), std::uint16_t{0x3f80});
    QCOMPARE(one_bf16(1.0f + 1.0f / 256), std::uint16_t{0x3f80});
    QCOMPARE(one_bf16(1.0f + 3.0f / 256), std::uint16_t{0x3f82});
    QCOMPARE(one_bf16(-std::numeric_limits<float>::infinity()), std::uint16_t{0xff80});
    QVERIFY((one_bf16(std::numeric_limits<float>::quiet_NaN()) & 0x7fff) > 0x7f80);
  }

  void q8_0_is_within_half_a_step() {
    std::vector<float> values(64);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = std::sin(static_cast<float>(i)) * (i < 32 ? 3 : 0);
    Bytes out;
    QVERIFY(append_stored(StoredType::Q8_0, {values.data(), values.size()}, &out).ok());
    QCOMPARE(out.size(), std::size_t{2 * q8_0_block_bytes});
    QCOMPARE(load_le<std::uint16_t>(out.data() + q8_0_block_bytes), std::uint16_t{0});
    const float step = *std::max_element(values.begin(), values.end(),
                                         [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    for (std::size_t i = 0; i < 32; ++i) {
      const auto stored = static_cast<float>(static_cast<std::int8_t>(out[2 + i]));
      QVERIFY(std::fabs(stored * std::fabs(step) / 127 - values[i]) <= 0.51f * std::fabs(step) / 127);
    }
  }

  void formats_have_names_and_limits() {
    QVERIFY(parse_export_format("gguf", "q8_0")->type == StoredType::Q8_0);
    QVERIFY(parse_export_format("gguf:bf16")->type == StoredType::BF16);
    QVERIFY(parse_export_format("huggingface")->type == StoredType::F32);
    for (const char* wrong :
         {"zip", "gguf:f64", "huggingface:q8_0", "safetensors:f16", "checkpoint:bf16", ""})
      QCOMPARE(parse_export_format(wrong).error().code, ErrorCode::InvalidArgument);
  }

  void tokens_are_spelled_as_gpt2_spells_them() {
    const auto vocabulary =
        make_vocabulary(tokenizer_of({{byte_token(' '), byte_token('a')}, {266, byte_token('\n')}}), 270);
    QVERIFY(vocabulary.ok());
    QCOMPARE(vocabulary->tokens[byte_token('a')], std::string("a"));
    QCOMPARE(vocabulary->tokens[266], std::string("\u0120a"));
    QCOMPARE(vocabulary->tokens[267], std::string("\u0120a\u010a"));
    QCOMPARE(vocabulary->tokens[data::first_byte_token + 0xAD], std::string("\u0143"));
    QCOMPARE(vocabulary->merges[1], std::string("\u0120a \u010a"));
    QVERIFY(vocabulary->kinds[2] == TokenKind::Control && vocabulary->kinds[269] == TokenKind::Unused);
    QCOMPARE(std::set<std::string>(vocabulary->tokens.begin(), vocabulary->tokens.end()).size(),
             std::size_t{270});
    QCOMPARE(make_vocabulary(tokenizer_of({}), 265).error().code, ErrorCode::InvalidArgument);
  }

  void two_merges_of_one_spelling_are_refused_by_name() {
    const auto a = byte_token('a');
    const auto refused = make_vocabulary(tokenizer_of({{a, a}, {266, a}, {a, 266}}), 300);
    QCOMPARE(refused.error().code, ErrorCode::InvalidArgument);
    QVERIFY(refused.error().message.find("267 and 268") != std::string::npos);
  }

  void a_gguf_header_is_read_back() {
    const std::vector<GgufEntry> entries = {{"a.text", std::string("\u0120")},
                                            {"a.number", std::uint32_t{7}},
                                            {"a.real", 0.5f},
                                            {"a.long", std::uint64_t{1} << 40},
                                            {"a.on", true},
                                            {"a.texts", std::vector<std::string>{"x", "", "yz"}},
                                            {"a.types", std::vector<std::int32_t>{1, -3}}};
    const Bytes file = gguf_file(
        entries,
        {{"t", {5, 3}, StoredType::F32}, {"u", {64, 1}, StoredType::Q8_0}, {"v", {1}, StoredType::BF16}});
    testing::BufferSource source(file);
    const auto header = read_gguf_header(source);
    QVERIFY2(header.ok(), header.ok() ? "" : header.error().describe().c_str());
    QCOMPARE(header->entries.size(), entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) QVERIFY(header->entries[i].value == entries[i].value);
    QCOMPARE(header->tensor("u")->offset, std::uint64_t{64});
    QCOMPARE(header->tensor("u")->bytes, std::uint64_t{68});
    QCOMPARE(header->data_offset % gguf_alignment, std::uint64_t{0});
    // Every shorter file is refused, up to the padding behind the last tensor.
    for (std::size_t size = 0; size < header->data_offset + header->tensor("v")->offset + 2; ++size) {
      const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      testing::BufferSource part(cut);
      QVERIFY(!read_gguf_header(part).ok());
    }
  }

  void counts_are_checked_before_memory_is_taken() {
    Bytes file;
    append_le(file, gguf_magic);
    append_le(file, gguf_version);
    append_le(file, std::uint64_t{0});
    append_le(file, std::uint64_t{1});
    append_le(file, std::uint64_t{1});
    file.push_back('k');
    append_le(file, static_cast<std::uint32_t>(GgufType::Array));
    append_le(file, static_cast<std::uint32_t>(GgufType::I32));
    append_le(file, std::uint64_t{1} << 60);
    testing::BufferSource source(file);
    QCOMPARE(read_gguf_header(source).error().code, ErrorCode::Corrupt);
  }

  void a_configuration_is_read_back() {
    for (const std::uint32_t experts : {1u, 4u}) {
      checkpoint::Manifest manifest = testing::tiny_manifest(3);
      manifest.architecture.vocab = 300;
      manifest.architecture.experts = experts;
      manifest.architecture.rms_epsilon = 1e-6f;
      const auto vocabulary = make_vocabulary(tokenizer_of({}), 300).value();
      const std::string config =
          hugging_face_texts(manifest, "id", vocabulary, StoredType::F32).back().content;
      const auto shape = parse_hugging_face_config(as_bytes(config));
      QVERIFY2(shape.ok(), shape.ok() ? "" : shape.error().describe().c_str());
      QVERIFY(checkpoint::same_shape(*shape, manifest.architecture));
      std::string tied = config;
      tied.replace(tied.find("\"tie_word_embeddings\": false"), 28, "\"tie_word_embeddings\": true");
      QCOMPARE(parse_hugging_face_config(as_bytes(tied)).error().code, ErrorCode::Unsupported);
    }
    QCOMPARE(parse_hugging_face_config(as_bytes(std::string(1000, '['))).error().code, ErrorCode::Corrupt);
    QCOMPARE(parse_hugging_face_config(as_bytes(R"({"model_type":"gemma"})")).error().code,
             ErrorCode::Unsupported);
  }

  void too_many_experts_for_llama_are_named() {
    checkpoint::Manifest manifest = testing::tiny_manifest(3);
    manifest.architecture.experts = llama_max_experts + 1;
    QVERIFY(gguf_entries(manifest, "id", {}, StoredType::F32).error().message.find("513 experts") !=
            std::string::npos);
  }
};

NS_TEST(TestFormats)
#include "test_formats.moc"
