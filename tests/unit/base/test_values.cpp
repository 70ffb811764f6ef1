// The small value types: Expected, Error, Span, bytes and hex, little-endian integers, Amount, cancel tokens,
// clocks.
#include <QtTest>
#include <limits>
#include <string>
#include <vector>

#include "core/base/amount.h"
#include "core/base/byte_chain.h"
#include "core/base/bytes.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "tests/support/test_main.h"

using namespace neuroshard;

class TestValues : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void expected_holds_one_of_two();
  void expected_macros_return_early();
  void expected_moves_without_copying();
  void error_context_reads_from_outside_in();
  void every_code_has_a_name();
  void span_views_without_owning();
  void a_chain_is_read_in_order_and_keeps_its_pieces();
  void hex_round_trip_and_refusals();
  void little_endian_integers();
  void amount_text_data();
  void amount_text();
  void amount_refuses_data();
  void amount_refuses();
  void amount_arithmetic_is_checked();
  void cancel_token_is_shared();
  void manual_clock_moves_when_told();
};

namespace {

Expected<int> half(int n) {
  if (n % 2 != 0) return make_error(ErrorCode::InvalidArgument, "odd");
  return n / 2;
}

Expected<void> require_even(int n) {
  NS_RETURN_IF_ERROR(half(n));
  return {};
}

Expected<int> quarter(int n) {
  NS_ASSIGN_OR_RETURN(const int once, half(n));
  NS_ASSIGN_OR_RETURN(const int twice, half(once));
  return twice;
}

}  // namespace

void TestValues::expected_holds_one_of_two() {
  const Expected<int> good = half(8);
  QVERIFY(good.ok() && good);
  QCOMPARE(*good, 4);
  QCOMPARE(good.value_or(-1), 4);
  const Expected<int> bad = half(7);
  QVERIFY(!bad.ok());
  QCOMPARE(bad.error().code, ErrorCode::InvalidArgument);
  QCOMPARE(bad.value_or(-1), -1);
  // A type that converts to and from others does not confuse the two.
  const Expected<std::string> text = std::string("value");
  QCOMPARE(text->size(), std::size_t{5});
}

void TestValues::expected_macros_return_early() {
  QCOMPARE(quarter(12).value(), 3);
  QCOMPARE(quarter(6).error().message, std::string("odd"));
  QVERIFY(require_even(2).ok());
  QVERIFY(!require_even(3).ok());
}

void TestValues::expected_moves_without_copying() {
  Expected<std::unique_ptr<int>> source = std::make_unique<int>(5);
  const std::unique_ptr<int> moved = std::move(source).value();
  QCOMPARE(*moved, 5);
}

void TestValues::error_context_reads_from_outside_in() {
  Error error = make_error(ErrorCode::Corrupt, "wrong checksum");
  QCOMPARE(error.describe(), std::string("wrong checksum"));
  error = std::move(error).with_context("parsing shard 3");
  error = std::move(error).with_context("reading manifest");
  QCOMPARE(error.describe(), std::string("reading manifest: parsing shard 3: wrong checksum"));
  QCOMPARE(error.code, ErrorCode::Corrupt);
}

void TestValues::every_code_has_a_name() {
  for (int code = 0; code <= static_cast<int>(ErrorCode::Internal); ++code) {
    QVERIFY(to_string(static_cast<ErrorCode>(code)) != "unknown");
  }
  QVERIFY(to_string(static_cast<ErrorCode>(999)) == "unknown");
}

void TestValues::span_views_without_owning() {
  std::vector<int> values = {1, 2, 3, 4, 5};
  const Span<int> all(values);
  all[0] = 10;
  QCOMPARE(values[0], 10);
  QCOMPARE(all.size_bytes(), 5 * sizeof(int));
  QCOMPARE(all.first(2).back(), 2);
  QCOMPARE(all.last(2).front(), 4);
  QCOMPARE(all.subspan(1, 3).size(), std::size_t{3});
  QCOMPARE(all.subspan(5).size(), std::size_t{0});
  const Span<const int> constant = all;
  int sum = 0;
  for (const int value : constant) sum += value;
  QCOMPARE(sum, 24);
  // A temporary may be viewed, never changed.
  static_assert(std::is_convertible_v<std::vector<int>, Span<const int>>);
  static_assert(!std::is_convertible_v<std::vector<int>, Span<int>>);
  static_assert(!std::is_convertible_v<const std::vector<int>&, Span<int>>);
  QVERIFY(Span<int>().empty());
}

void TestValues::hex_round_trip_and_refusals() {
  Bytes all(256);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  const std::string text = to_hex(all);
  QCOMPARE(text.substr(0, 8), std::string("00010203"));
  QVERIFY(from_hex(text).value() == all);
  QVERIFY(from_hex("DEADbeef").value() == (Bytes{0xde, 0xad, 0xbe, 0xef}));
  QVERIFY(from_hex("").value().empty());
  for (const char* wrong : {"0", "0g", "g0", " 00", "0x00", "\xc3\xa4"}) {
    const auto bytes = from_hex(wrong);
    QVERIFY(!bytes.ok());
    QCOMPARE(bytes.error().code, ErrorCode::InvalidArgument);
    QVERIFY(bytes.error().message.find(wrong) == std::string::npos);
  }
  QVERIFY(hash_from_hex(std::string(64, 'a')).ok());
  QVERIFY(!hash_from_hex(std::string(62, 'a')).ok());
  QVERIFY(!hash_from_hex(std::string(66, 'a')).ok());
}

void TestValues::little_endian_integers() {
  Bytes bytes;
  append_le(bytes, std::uint16_t{0x1234});
  append_le(bytes, std::int32_t{-2});
  append_le(bytes, std::uint64_t{0x0102030405060708});
  QCOMPARE(to_hex(bytes), std::string("3412feffffff0807060504030201"));
  QCOMPARE(load_le<std::uint16_t>(bytes.data()), std::uint16_t{0x1234});
  QCOMPARE(load_le<std::int32_t>(bytes.data() + 2), std::int32_t{-2});
  QCOMPARE(load_le<std::uint64_t>(bytes.data() + 6), std::uint64_t{0x0102030405060708});
  QCOMPARE(load_le<std::int64_t>(Bytes(8, 0xff).data()), std::int64_t{-1});
}

void TestValues::amount_text_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<qint64>("units");
  QTest::addColumn<QString>("shortest");
  QTest::newRow("zero") << "0" << qint64{0} << "0";
  QTest::newRow("whole") << "12" << qint64{1'200'000'000} << "12";
  QTest::newRow("half") << "12.50" << qint64{1'250'000'000} << "12.5";
  QTest::newRow("smallest") << "0.00000001" << qint64{1} << "0.00000001";
  QTest::newRow("largest") << "92233720368.54775807" << std::numeric_limits<qint64>::max()
                           << "92233720368.54775807";
  QTest::newRow("leading zeros") << "007.1" << qint64{710'000'000} << "7.1";
}

void TestValues::amount_text() {
  QFETCH(QString, text);
  QFETCH(qint64, units);
  QFETCH(QString, shortest);
  const Amount amount = Amount::parse(text.toStdString()).value();
  QCOMPARE(qint64{amount.units()}, units);
  QCOMPARE(QString::fromStdString(amount.to_string()), shortest);
  QVERIFY(Amount::parse(amount.to_string()).value() == amount);
}

void TestValues::amount_refuses_data() {
  QTest::addColumn<QString>("text");
  for (const char* text : {"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", " 1", "1 ", "1.2.3", "0.123456789",
                           "0x10", "92233720368.54775808", "99999999999999999999"}) {
    QTest::newRow(*text == '\0' ? "empty" : text) << text;
  }
}

void TestValues::amount_refuses() {
  QFETCH(QString, text);
  QVERIFY(!Amount::parse(text.toStdString()).ok());
}

void TestValues::amount_arithmetic_is_checked() {
  const Amount most = Amount::from_units(std::numeric_limits<std::int64_t>::max());
  const Amount least = Amount::from_units(std::numeric_limits<std::int64_t>::min());
  const Amount one = Amount::from_units(1);
  QCOMPARE(one.plus(one).value().units(), std::int64_t{2});
  QCOMPARE(most.plus(one).error().code, ErrorCode::Exhausted);
  QCOMPARE(least.minus(one).error().code, ErrorCode::Exhausted);
  // Rounds down, also below zero; the product is wider than 64 bits.
  QCOMPARE(Amount::from_units(10).scaled(1, 3).value().units(), std::int64_t{3});
  QCOMPARE(Amount::from_units(-10).scaled(1, 3).value().units(), std::int64_t{-4});
  QCOMPARE(most.scaled(1'000'000, 1'000'000).value(), most);
  QCOMPARE(most.scaled(2, 1).error().code, ErrorCode::Exhausted);
  QCOMPARE(least.to_string(), std::string("-92233720368.54775808"));
  QVERIFY(one < most);
}

void TestValues::cancel_token_is_shared() {
  CancelSource source;
  const CancelToken token = source.token();
  const CancelToken copy = token;
  QVERIFY(!copy.cancelled());
  source.cancel();
  QVERIFY(token.cancelled() && copy.cancelled());
  QVERIFY(!CancelToken().cancelled());
}

void TestValues::manual_clock_moves_when_told() {
  ManualClock clock;
  const MonotonicTime start = clock.monotonic_now();
  const WallTime wall = clock.wall_now();
  clock.advance(std::chrono::milliseconds(2500));
  QCOMPARE(to_seconds(clock.monotonic_now() - start), 2.5);
  QCOMPARE(to_unix_ms(clock.wall_now()) - to_unix_ms(wall), std::int64_t{2500});
  const SystemClock system;
  const MonotonicTime first = system.monotonic_now();
  QVERIFY(first <= system.monotonic_now());
  QVERIFY(to_unix_ms(system.wall_now()) > 1'600'000'000'000);
}

void TestValues::a_chain_is_read_in_order_and_keeps_its_pieces() {
  const Bytes whole = {1, 2, 3, 4, 5};
  QVERIFY(ByteChain().empty());
  QVERIFY(ByteChain().bytes().empty());
  QVERIFY(ByteChain(Bytes()).empty());
  QVERIFY(ByteChain(whole).bytes() == whole);

  auto owner = std::make_shared<std::vector<Bytes>>(std::vector<Bytes>{{1, 2}, {}, {3, 4, 5}});
  const std::weak_ptr<std::vector<Bytes>> kept = owner;
  std::vector<ByteSpan> pieces;
  for (const Bytes& piece : *owner) pieces.emplace_back(piece);
  std::optional<ByteChain> chain(ByteChain(std::move(pieces), std::move(owner)));
  std::optional<ByteChain> copy = chain;
  QCOMPARE(chain->size(), std::size_t{5});
  chain.reset();
  QVERIFY(!kept.expired());
  Bytes place(5);
  copy->copy_to(place.data());
  QVERIFY(place == whole);
  QVERIFY(copy->bytes() == whole);
  copy.reset();
  QVERIFY(kept.expired());
}

NS_TEST(TestValues)
#include "test_values.moc"
