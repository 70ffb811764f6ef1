// Records of the table: what can be published, what is believed, and that no changed byte passes.
#include <QtTest>

#include "core/dht/record.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::dht;

namespace {

Hash256 network(std::uint8_t mark = 0x4e) {
  Hash256 id;
  id.fill(mark);
  return id;
}

using neuroshard::test::key_of;

const WallTime now{std::chrono::milliseconds(1'800'000'000'000)};
const WallTime later = now + std::chrono::hours(1);

Record sample() {
  return make_record(key_of(1), network(), "/values/greeting", Bytes{'h', 'i'}, 7, later).value();
}

}  // namespace

class TestRecord : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_record_is_read_back_and_believed();
  void no_changed_byte_passes();
  void it_counts_in_one_network_and_until_it_expires();
  void paths_data();
  void paths();
  void only_a_node_publishes_its_own_record();
  void keys_differ_by_network_and_path();
  void too_large_a_payload_is_refused();
  void bytes_are_as_documented();
};

void TestRecord::a_record_is_read_back_and_believed() {
  const Record record = sample();
  Bytes bytes = encode_record(record);
  const std::size_t whole = bytes.size();
  bytes.push_back(99);  // what follows is somebody else's
  std::size_t used = 0;
  const auto back = decode_record(bytes, used);
  QVERIFY(back.ok());
  QCOMPARE(used, whole);
  QVERIFY(*back == record);
  QVERIFY(check_record(*back, network(), now).ok());
}

void TestRecord::no_changed_byte_passes() {
  const Bytes good = encode_record(sample());
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const std::uint8_t flip : {0x01, 0x80}) {
      Bytes bad = good;
      bad[i] ^= flip;
      std::size_t used = 0;
      const auto record = decode_record(bad, used);
      QVERIFY2(!record.ok() || !check_record(*record, network(), now).ok(), qPrintable(QString::number(i)));
    }
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    std::size_t used = 0;
    QVERIFY(!decode_record(ByteSpan(good).first(size), used).ok());
  }
}

void TestRecord::it_counts_in_one_network_and_until_it_expires() {
  const Record record = sample();
  QCOMPARE(check_record(record, network(0x4f), now).error().code, ErrorCode::Denied);
  QVERIFY(check_record(record, network(), later - std::chrono::milliseconds(1)).ok());
  const auto expired = check_record(record, network(), later);
  QVERIFY(!expired.ok() && expired.error().message.find("expired") != std::string::npos);
  const Record for_ever =
      make_record(key_of(1), network(), "/layers/1", {}, 1, now + std::chrono::hours(48)).value();
  QVERIFY(!check_record(for_ever, network(), now).ok());
}

void TestRecord::paths_data() {
  QTest::addColumn<QString>("path");
  QTest::addColumn<bool>("good");
  const QString hash(64, 'a');
  for (const QString& path :
       {"/nodes/" + hash, QString("/layers/0"), QString("/layers/63"), QString("/experts/3/7"),
        "/checkpoints/" + hash, QString("/shards/4294967295"), QString("/values/a.b-c_9")})
    QTest::newRow(qPrintable(path)) << path << true;
  for (const QString& path :
       {QString(), QString("/"), QString("layers/1"), QString("/layers/"), QString("/layers/01"),
        QString("/layers/-1"), QString("/layers/1/"), QString("/layers/4294967296"), QString("/experts/3"),
        QString("/experts/3/7/1"), "/nodes/" + hash.chopped(1), "/nodes/" + hash.toUpper(),
        QString("/values/"), QString("/values/A"), "/values/" + QString(65, 'a'), QString("/secrets/1"),
        QString("/values/a/../b")})
    QTest::newRow(qPrintable("bad " + path)) << path << false;
}

void TestRecord::paths() {
  QFETCH(QString, path);
  QFETCH(bool, good);
  QCOMPARE(check_path(path.toStdString()).ok(), good);
}

void TestRecord::only_a_node_publishes_its_own_record() {
  const std::string own = "/nodes/" + to_hex(crypto::node_id(key_of(1).public_key()));
  QVERIFY(make_record(key_of(1), network(), own, {}, 1, later).ok());
  QCOMPARE(make_record(key_of(2), network(), own, {}, 1, later).error().code, ErrorCode::Denied);
  Record stolen = make_record(key_of(2), network(), "/layers/1", {}, 1, later).value();
  stolen.path = own;
  QVERIFY(!check_record(stolen, network(), now).ok());
}

void TestRecord::keys_differ_by_network_and_path() {
  QVERIFY(key_of(network(), "/layers/1") == key_of(network(), "/layers/1"));
  QVERIFY(key_of(network(), "/layers/1") != key_of(network(), "/layers/2"));
  QVERIFY(key_of(network(), "/layers/1") != key_of(network(1), "/layers/1"));
}

void TestRecord::too_large_a_payload_is_refused() {
  QVERIFY(make_record(key_of(1), network(), "/layers/1", Bytes(max_payload_bytes), 1, later).ok());
  const auto large = make_record(key_of(1), network(), "/layers/1", Bytes(max_payload_bytes + 1), 1, later);
  QCOMPARE(large.error().code, ErrorCode::InvalidArgument);
  const std::string longest = "/values/" + std::string(64, 'a');
  const Record full = make_record(key_of(1), network(), longest, Bytes(max_payload_bytes), 1, later).value();
  QVERIFY(encode_record(full).size() <= max_record_bytes);
}

void TestRecord::bytes_are_as_documented() {
  const Bytes bytes = encode_record(sample());
  QCOMPARE(bytes.size(), 60u + 16u + 2u + 64u);
  QCOMPARE(as_text(ByteSpan(bytes).first(4)), std::string_view("NSDR"));
  QCOMPARE(load_le<std::uint16_t>(bytes.data() + 4), 1);
  QCOMPARE(load_le<std::uint16_t>(bytes.data() + 6), 142);
  QCOMPARE(load_le<std::uint64_t>(bytes.data() + 40), 7u);
  QCOMPARE(load_le<std::int64_t>(bytes.data() + 48), to_unix_ms(later));
  QCOMPARE(load_le<std::uint16_t>(bytes.data() + 56), 16);
  QCOMPARE(load_le<std::uint16_t>(bytes.data() + 58), 2);
  QCOMPARE(as_text(ByteSpan(bytes).subspan(60, 18)), std::string_view("/values/greetinghi"));
}

NS_TEST(TestRecord)
#include "test_record.moc"
