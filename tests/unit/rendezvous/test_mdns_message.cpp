// Multicast DNS as bytes: what we write is what the RFCs say, what others may write is read, and what is
// broken is refused.
#include <QtTest>

#include "core/rendezvous/mdns_message.h"
#include "tests/support/test_main.h"

using namespace neuroshard;              // NOLINT
using namespace neuroshard::rendezvous;  // NOLINT

class TestMdnsMessage : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_question_is_that_of_the_rfc();
  void an_answer_is_read_back();
  void a_goodbye_names_nobody();
  void answers_of_other_programs_are_read();
  void other_services_are_none_of_ours();
  void every_truncation_is_refused();
  void names_that_lead_in_circles_are_refused();
  void a_flood_of_services_is_bounded();
};

namespace {

MdnsService service() {
  MdnsService one;
  one.instance = "0123456789abcdef";
  one.network_id.fill(0xab);
  one.port = 29000;
  one.address = platform::IpAddress::v4(192, 168, 1, 7);
  return one;
}

Bytes bytes_of(std::string_view text) {
  return Bytes(text.begin(), text.end());
}

}  // namespace

void TestMdnsMessage::the_question_is_that_of_the_rfc() {
  // Written out by hand from RFC 1035 §4.1: header, _neuroshard._tcp.local, PTR, IN.
  using namespace std::string_view_literals;
  QCOMPARE(encode_mdns_question(),
           bytes_of("\0\0\0\0\0\1\0\0\0\0\0\0\x0b_neuroshard\4_tcp\5local\0\0\x0c\0\1"sv));
  const auto read = decode_mdns(encode_mdns_question());
  QVERIFY(read.ok() && read->question && read->services.empty());
}

void TestMdnsMessage::an_answer_is_read_back() {
  const Bytes bytes = encode_mdns_answer(service(), 120);
  QVERIFY(bytes.size() < 400);
  const auto read = decode_mdns(bytes);
  QVERIFY(read.ok() && !read->question);
  QCOMPARE(read->services.size(), std::size_t{1});
  QCOMPARE(read->services[0].instance, service().instance);
  QCOMPARE(read->services[0].port, service().port);
  QVERIFY(read->services[0].network_id == service().network_id);
  MdnsService without = service();
  without.address = {};
  QVERIFY(encode_mdns_answer(without, 120).size() < bytes.size());
}

void TestMdnsMessage::a_goodbye_names_nobody() {
  const auto read = decode_mdns(encode_mdns_answer(service(), 0));
  QVERIFY(read.ok() && read->services.empty());
}

void TestMdnsMessage::answers_of_other_programs_are_read() {
  // A responder that compresses names (pointers to offset 12 and 40), writes capitals and puts TXT first.
  using namespace std::string_view_literals;
  Bytes bytes = bytes_of("\0\0\x84\0\0\0\0\1\0\0\0\2"sv);
  const Bytes owner = bytes_of("\x0b_NeuroShard\4_TCP\5local\0"sv);  // at 12, 24 bytes
  bytes.insert(bytes.end(), owner.begin(), owner.end());
  const Bytes pointer = bytes_of("\0\x0c\0\1\0\0\0\x78\0\5\2ab\xc0\x0c"sv);  // its data, "ab" …, begins at 46
  bytes.insert(bytes.end(), pointer.begin(), pointer.end());
  const std::size_t instance = 12 + owner.size() + 10;
  const auto point = [&] {
    bytes.push_back(0xc0);
    bytes.push_back(static_cast<std::uint8_t>(instance));
  };
  point();
  const std::string text = "network=" + std::string(64, 'c');
  for (const int byte : {0, 16, 0x80, 1, 0, 0, 0, 120, 0, static_cast<int>(text.size()) + 5, 3})
    bytes.push_back(static_cast<std::uint8_t>(byte));
  for (const char c : "a=b"sv) bytes.push_back(static_cast<std::uint8_t>(c));
  bytes.push_back(static_cast<std::uint8_t>(text.size()));
  bytes.insert(bytes.end(), text.begin(), text.end());
  point();
  for (const int byte : {0, 33, 0x80, 1, 0, 0, 0, 120, 0, 9, 0, 0, 0, 0, 0x23, 0x28, 1, 104, 0})
    bytes.push_back(static_cast<std::uint8_t>(byte));
  const auto read = decode_mdns(bytes);
  QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
  QCOMPARE(read->services.size(), std::size_t{1});
  QCOMPARE(read->services[0].instance, std::string("ab"));
  QCOMPARE(read->services[0].port, std::uint16_t{9000});
  QCOMPARE(read->services[0].network_id[31], std::uint8_t{0xcc});
}

void TestMdnsMessage::other_services_are_none_of_ours() {
  using namespace std::string_view_literals;
  Bytes bytes = bytes_of("\0\0\0\0\0\1\0\0\0\0\0\0\4_ipp\4_tcp\5local\0\0\x0c\0\1"sv);
  const auto read = decode_mdns(bytes);
  QVERIFY(read.ok() && !read->question && read->services.empty());
}

void TestMdnsMessage::every_truncation_is_refused() {
  for (const Bytes& whole : {encode_mdns_answer(service(), 120), encode_mdns_question()})
    for (std::size_t length = 0; length < whole.size(); ++length)
      QVERIFY2(!decode_mdns(ByteSpan(whole).first(length)).ok(), std::to_string(length).c_str());
}

void TestMdnsMessage::names_that_lead_in_circles_are_refused() {
  using namespace std::string_view_literals;
  QVERIFY(!decode_mdns(bytes_of("\0\0\0\0\0\1\0\0\0\0\0\0\xc0\x0c\0\x0c\0\1"sv)).ok());
  QVERIFY(!decode_mdns(bytes_of("\0\0\0\0\0\1\0\0\0\0\0\0\1a\xc0\x0c\0\x0c\0\1"sv)).ok());
  QVERIFY(!decode_mdns(bytes_of("\0\0\0\0\xff\xff\0\0\0\0\0\0\0\0\x0c\0\1"sv)).ok());
}

void TestMdnsMessage::a_flood_of_services_is_bounded() {
  Bytes all = encode_mdns_answer(service(), 120);
  const Bytes head(all.begin(), all.begin() + 12);
  all.resize(12);
  int records = 0;
  for (int i = 0; i < 25; ++i) {
    MdnsService one = service();
    one.instance = "node" + std::to_string(i);
    one.address = {};
    const Bytes more = encode_mdns_answer(one, 120);
    all.insert(all.end(), more.begin() + 12, more.end());
    records += 3;
  }
  all[7] = static_cast<std::uint8_t>(records);
  const auto read = decode_mdns(all);
  QVERIFY(read.ok());
  QCOMPARE(read->services.size(), max_mdns_services);
}

NS_TEST(TestMdnsMessage)
#include "test_mdns_message.moc"
