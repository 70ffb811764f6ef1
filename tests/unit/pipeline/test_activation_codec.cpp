// Rows of activations as bytes and back.
#include <QtTest>
#include <cmath>
#include <limits>

#include "core/base/rng.h"
#include "core/pipeline/activation_codec.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::pipeline;

namespace {

constexpr std::size_t hidden = 24, rows = 5;

std::vector<float> values_of(std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(rows * hidden);
  for (float& value : values) value = (static_cast<float>(rng.below(20001)) - 10000.0f) / 977.0f;
  return values;
}

}  // namespace

class TestActivationCodec : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void there_and_back_data() {
    QTest::addColumn<int>("format");
    QTest::addColumn<int>("bytes");
    QTest::addColumn<double>("error");  // relative to the largest value of the row
    QTest::newRow("fp32") << 0 << 4 * 24 << 0.0;
    QTest::newRow("bf16") << 1 << 2 * 24 << 1.0 / 256;
    QTest::newRow("int8") << 2 << 4 + 24 << 0.5 / 127 * 1.0001;
  }
  void there_and_back() {
    QFETCH(int, format);
    QFETCH(int, bytes);
    QFETCH(double, error);
    const auto wire = static_cast<WireFormat>(format);
    const std::vector<float> values = values_of(1);
    Bytes encoded = {0xAA};  // appended to what is there
    QVERIFY(append_rows(wire, {values.data(), values.size()}, hidden, encoded).ok());
    QCOMPARE(encoded.size(), 1 + rows * static_cast<std::size_t>(bytes));
    QCOMPARE(encoded_bytes(wire, rows, hidden), encoded.size() - 1);
    std::vector<float> read(values.size());
    QVERIFY(read_rows(wire, ByteSpan(encoded).subspan(1), hidden, {read.data(), read.size()}).ok());
    for (std::size_t row = 0; row < rows; ++row) {
      float most = 0;
      for (std::size_t i = 0; i < hidden; ++i) most = std::max(most, std::abs(values[row * hidden + i]));
      for (std::size_t i = 0; i < hidden; ++i) {
        const std::size_t at = row * hidden + i;
        QVERIFY(std::abs(read[at] - values[at]) <= error * most);
      }
    }
  }

  void zeros_and_tiny_rows() {
    std::vector<float> values(2 * hidden, 0.0f);
    for (std::size_t i = 0; i < hidden; ++i) values[hidden + i] = std::numeric_limits<float>::denorm_min();
    Bytes encoded;
    QVERIFY(append_rows(WireFormat::Int8, {values.data(), values.size()}, hidden, encoded).ok());
    std::vector<float> read(values.size(), 1.0f);
    QVERIFY(read_rows(WireFormat::Int8, encoded, hidden, {read.data(), read.size()}).ok());
    for (const float value : read) QVERIFY(std::abs(value) < 1e-30f);
  }

  void numbers_that_are_none_are_refused() {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      for (int format = 0; format < wire_formats; ++format) {
        std::vector<float> values = values_of(2);
        values[40] = bad;
        Bytes encoded = {1, 2};
        const auto appended =
            append_rows(static_cast<WireFormat>(format), {values.data(), values.size()}, hidden, encoded);
        QVERIFY(!appended.ok() && appended.error().code == ErrorCode::Corrupt);
        QCOMPARE(encoded.size(), std::size_t{2});
      }
    }
    // Of a peer: an infinite scale, a value of ones.
    Bytes hostile(encoded_bytes(WireFormat::Int8, 1, hidden), 0x01);
    const float infinite = std::numeric_limits<float>::infinity();
    std::memcpy(hostile.data(), &infinite, sizeof infinite);
    std::vector<float> read(hidden);
    QVERIFY(!read_rows(WireFormat::Int8, hostile, hidden, {read.data(), read.size()}).ok());
    QVERIFY(!read_rows(WireFormat::Bf16, Bytes(2 * hidden, 0xFF), hidden, {read.data(), read.size()}).ok());
    QVERIFY(!read_rows(WireFormat::Fp32, Bytes(4 * hidden, 0xFF), hidden, {read.data(), read.size()}).ok());
  }

  // A value that bf16 can't hold is an error, not an infinity at the other end.
  void bf16_does_not_overflow() {
    const std::vector<float> values(hidden, std::numeric_limits<float>::max());
    Bytes encoded;
    QVERIFY(!append_rows(WireFormat::Bf16, {values.data(), values.size()}, hidden, encoded).ok());
    QVERIFY(append_rows(WireFormat::Fp32, {values.data(), values.size()}, hidden, encoded).ok());
  }
};

NS_TEST(TestActivationCodec)
#include "test_activation_codec.moc"
