// The safetensors reader and writer: a round trip keeps every byte, and every way in which a file can lie is
// refused.
#include <QtTest>

#include "core/tensor/safetensors.h"
#include "tests/support/buffer_source.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::tensor;
using neuroshard::testing::BufferSource;

namespace {

Bytes make_file(const std::vector<TensorSpec>& specs, const std::map<std::string, std::string>& metadata,
                const Bytes& data) {
  auto writer = SafetensorsWriter::plan(specs, metadata).value();
  Bytes file;
  const SafetensorsWriter::Sink sink = [&](ByteSpan bytes) -> Expected<void> {
    file.insert(file.end(), bytes.begin(), bytes.end());
    return {};
  };
  NS_CHECK(writer.begin(sink).ok() && writer.append(data, sink).ok() && writer.finish().ok());
  NS_CHECK(file.size() == writer.file_bytes());
  return file;
}

Bytes with_header(const std::string& json, std::size_t data_bytes) {
  Bytes file;
  append_le<std::uint64_t>(file, json.size());
  file.insert(file.end(), json.begin(), json.end());
  file.resize(file.size() + data_bytes);
  return file;
}

Expected<SafetensorsHeader> parse(const Bytes& file) {
  return parse_safetensors_header(file, file.size());
}

}  // namespace

class TestSafetensors : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void round_trip() {
    const std::vector<TensorSpec> specs = {{"z.wide", DType::I64, {2}},
                                           {"a.weight", DType::F32, {2, 3}},
                                           {"scalar", DType::F32, {}},
                                           {"empty", DType::F32, {0, 7}},
                                           {"bytes", DType::U8, {3}}};
    Bytes data(16 + 24 + 4 + 0 + 3);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i * 7 + 1);
    const Bytes file = make_file(specs, {{"format", "pt"}, {"note", "ünïcode \" \\"}}, data);
    const auto header = parse(file);
    QVERIFY2(header.ok(), header.ok() ? "" : header.error().message.c_str());
    QCOMPARE(header->data_offset % data_alignment, std::uint64_t{0});
    QCOMPARE(header->metadata.at("note"), std::string("ünïcode \" \\"));
    QCOMPARE(header->tensors.size(), specs.size());
    BufferSource source(file);
    std::size_t at = 0;
    for (const TensorSpec& spec : specs) {
      const TensorEntry* entry = header->find(spec.name);
      QVERIFY(entry != nullptr);
      QVERIFY(entry->spec.dims == spec.dims && entry->spec.type == spec.type);
      Bytes found(static_cast<std::size_t>(entry->bytes));
      QVERIFY(read_tensor(source, *header, *entry, found).ok());
      QVERIFY(std::equal(found.begin(), found.end(), data.begin() + static_cast<std::ptrdiff_t>(at)));
      at += found.size();
    }
    QVERIFY(header->find("absent") == nullptr);
    QVERIFY(make_file(specs, {{"note", "ünïcode \" \\"}, {"format", "pt"}}, data) ==
            file);  // one input, one file
  }

  void an_empty_file_is_legal() {
    const Bytes file = make_file({}, {}, {});
    QCOMPARE(parse(file)->tensors.size(), std::size_t{0});
  }

  void every_cut_is_noticed() {
    const Bytes file = make_file({{"a", DType::F32, {4}}, {"b", DType::U8, {2}}}, {{"k", "v"}}, Bytes(18));
    for (std::size_t size = 0; size < file.size(); ++size) {
      BufferSource cut(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)));
      QVERIFY2(!read_safetensors_header(cut).ok(), qPrintable(QString::number(size)));
    }
    Bytes longer = file;
    longer.push_back(0);
    QVERIFY(!parse(longer).ok());
  }

  // No flip of a header byte crashes, and none makes the reader see tensors outside the file.
  void every_flip_is_harmless() {
    const Bytes file = make_file({{"a", DType::F32, {4}}, {"b", DType::U8, {2}}}, {{"k", "v"}}, Bytes(18));
    const std::uint64_t header_end = parse(file)->data_offset;
    for (std::size_t at = 0; at < header_end; ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        Bytes flipped = file;
        flipped[at] ^= static_cast<std::uint8_t>(1 << bit);
        const auto header = parse(flipped);
        if (!header.ok()) continue;
        for (const TensorEntry& entry : header->tensors) {
          QVERIFY(header->data_offset + entry.begin + entry.bytes <= flipped.size());
        }
      }
    }
  }

  void lies_are_refused_data() {
    QTest::addColumn<QString>("json");
    QTest::addColumn<int>("data_bytes");
    const auto row = [](const char* name, const char* json, int bytes) {
      QTest::newRow(name) << QString(json) << bytes;
    };
    const char* a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
    const auto with_a = [&](const char* rest) { return QString("{") + a + rest + "}"; };
    QTest::newRow("overlap") << with_a(R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]})") << 12;
    QTest::newRow("same place") << with_a(R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})") << 8;
    QTest::newRow("hole") << with_a(R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]})") << 20;
    QTest::newRow("named twice") << with_a(R"(,"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]})") << 16;
    QTest::newRow("metadata twice") << with_a(R"(,"__metadata__":{},"__metadata__":{})") << 8;
    QTest::newRow("metadata key twice") << with_a(R"(,"__metadata__":{"k":"1","k":"2"})") << 8;
    QTest::newRow("metadata not text") << with_a(R"(,"__metadata__":{"k":1})") << 8;
    QTest::newRow("unused end") << with_a("") << 9;
    QTest::newRow("beyond the end") << with_a("") << 7;
    QTest::newRow("trailing text") << with_a("") + "{}" << 8;
    QTest::newRow("deep") << with_a(R"(,"b":)") + QString(100'000, '[') << 8;
    row("hole at the start", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12);
    row("backwards", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8);
    row("size and shape differ", R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8);
    row("overflow", R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})", 0);
    row("overflow beside zero",
        R"({"a":{"dtype":"F32","shape":[0,18446744073709551615,9],"data_offsets":[0,0]}})", 0);
    row("beyond 64 bits", R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}})", 8);
    row("negative", R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8);
    row("fraction", R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8);
    row("three offsets", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", 8);
    row("one offset", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8);
    row("no type", R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8);
    row("unknown type", R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8);
    row("unknown key", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", 8);
    row("key twice", R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
    row("misaligned",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
        5);
    row("too many dimensions", R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1);
    row("a list", R"([1])", 0);
    row("a tensor that is a number", R"({"a":1})", 0);
    row("not JSON", R"({"a":)", 0);
  }
  void lies_are_refused() {
    QFETCH(QString, json);
    QFETCH(int, data_bytes);
    const auto header = parse(with_header(json.toStdString(), static_cast<std::size_t>(data_bytes)));
    QVERIFY(!header.ok());
    QVERIFY(!header.error().message.empty());
  }

  // A length field that claims the world must cost nothing.
  void a_huge_header_length_is_refused_before_allocation() {
    for (const std::uint64_t claim :
         {~std::uint64_t{0}, std::uint64_t{1} << 62, max_header_bytes + 1, std::uint64_t{100}}) {
      Bytes file;
      append_le(file, claim);
      file.resize(64);
      BufferSource source(file);
      const auto header = read_safetensors_header(source);
      QVERIFY(!header.ok());
      QCOMPARE(header.error().code, claim > max_header_bytes ? ErrorCode::Exhausted : ErrorCode::Corrupt);
    }
  }

  void the_writer_refuses_what_the_reader_would() {
    const std::vector<TensorSpec> twice = {{"a", DType::F32, {1}}, {"a", DType::F32, {1}}};
    QCOMPARE(SafetensorsWriter::plan(twice, {}).error().code, ErrorCode::InvalidArgument);
    const std::vector<TensorSpec> misaligned = {{"a", DType::U8, {1}}, {"b", DType::F32, {1}}};
    QCOMPARE(SafetensorsWriter::plan(misaligned, {}).error().code, ErrorCode::InvalidArgument);
    const std::vector<TensorSpec> reserved = {{"__metadata__", DType::U8, {1}}};
    QCOMPARE(SafetensorsWriter::plan(reserved, {}).error().code, ErrorCode::InvalidArgument);
    const std::vector<TensorSpec> huge = {
        {"a", DType::F32, {std::uint64_t{1} << 40, std::uint64_t{1} << 40}}};
    QVERIFY(!SafetensorsWriter::plan(huge, {}).ok());
    auto writer = SafetensorsWriter::plan(std::vector<TensorSpec>{{"a", DType::F32, {1}}}, {}).value();
    QVERIFY(!writer.finish().ok());
  }
};

NS_TEST(TestSafetensors)
#include "test_safetensors.moc"
