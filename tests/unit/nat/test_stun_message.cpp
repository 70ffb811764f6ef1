// STUN messages: the test vectors of RFC 5769, what we write, and what we refuse.
#include <QtTest>

#include "core/nat/stun_message.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using namespace neuroshard::nat::stun;

namespace {

// RFC 5769 §2.1: a request with short-term credentials; the padding of USERNAME is blanks.
const char* const sample_request =
    "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74"
    "002400046e0001ff80290008932ff9b151263b36000600096576746a3a68367659202020"
    "000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf";
// §2.2, §2.3: answers with an IPv4 and an IPv6 address.
const char* const sample_v4 =
    "0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a643"
    "000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96";
const char* const sample_v6 =
    "010100482112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220"
    "002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d900080014a382954e4be67bf11784c97c8292c275bfe3ed41"
    "80280004c8fb0b4c";
// §2.4: a request with long-term credentials.
const char* const sample_long_term =
    "000100602112a44278ad3433c6ad72c029da412e00060012e3839ee38388e383aae38383e382afe382b90000"
    "0015001c662f2f3439396b39353464364f4c33346f4c394653547679363473410014000b6578616d706c652e6f726700"
    "00080014f67024656dd64a3e02b8e0712e85c9a28ca89666";
const std::string password = "VOkJxbRl1RmTxUk/WvJxBt";

const TransactionId transaction = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

Bytes hex(const char* text) {
  return from_hex(text).value();
}

bool refused(const Bytes& bytes, const char* why) {
  const auto message = Message::parse(bytes);
  return !message.ok() && message.error().code == ErrorCode::Corrupt &&
         message.error().message.find(why) != std::string::npos;
}

}  // namespace

class TestStunMessage : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_vectors_of_rfc_5769();
  void what_is_written_reads_back();
  void a_signature_covers_what_stands_before_it();
  void codes_of_failures();
  void what_is_refused();
  void sizes_of_messages_in_a_stream();
};

void TestStunMessage::the_vectors_of_rfc_5769() {
  const Bytes request = hex(sample_request);
  const auto asked = Message::parse(request);
  QVERIFY2(asked.ok(), asked.ok() ? "" : asked.error().message.c_str());
  QCOMPARE(asked->message_class(), Class::Request);
  QCOMPARE(asked->method(), Method::Binding);
  QVERIFY(asked->has_fingerprint());
  QVERIFY(asked->text(Attribute::Username) == "evtj:h6vY");
  QVERIFY(asked->text(Attribute::Software) == "STUN test client");
  QVERIFY(asked->authentic(as_bytes(password)));
  QVERIFY(!asked->authentic(as_bytes("another password")));

  for (const auto& [sample, address] :
       {std::pair(sample_v4, "192.0.2.1:32853"),
        std::pair(sample_v6, "[2001:db8:1234:5678:11:2233:4455:6677]:32853")}) {
    const Bytes answer = hex(sample);
    const auto got = Message::parse(answer);
    QVERIFY2(got.ok(), got.ok() ? "" : got.error().message.c_str());
    QCOMPARE(got->message_class(), Class::Success);
    QVERIFY(got->authentic(as_bytes(password)));
    QVERIFY(got->mapped_address().has_value());
    QCOMPARE(to_text(*got->mapped_address()), std::string(address));
  }

  const Bytes long_term = hex(sample_long_term);
  const auto signed_request = Message::parse(long_term);
  QVERIFY(signed_request.ok() && !signed_request->has_fingerprint());
  const auto key = long_term_key(*signed_request->text(Attribute::Username), "example.org", "TheMatrIX");
  QVERIFY(signed_request->authentic(key));
}

void TestStunMessage::what_is_written_reads_back() {
  for (const char* text : {"192.0.2.7:443", "[2001:db8::7]:1"}) {
    const auto endpoint = platform::parse_endpoint(text).value();
    MessageWriter writer(Class::Success, Method::ConnectionAttempt, transaction);
    writer.add_xor_address(Attribute::XorPeerAddress, endpoint)
        .add_number(Attribute::ConnectionId, 0xdeadbeef);
    writer.add(Attribute::Software, "five!").sign_sha256(as_bytes("key")).add_fingerprint();
    const auto message = Message::parse(writer.bytes());
    QVERIFY2(message.ok(), message.ok() ? "" : message.error().message.c_str());
    QCOMPARE(message->message_class(), Class::Success);
    QCOMPARE(message->method(), Method::ConnectionAttempt);
    QVERIFY(message->transaction() == transaction);
    QVERIFY(message->xor_address(Attribute::XorPeerAddress) == endpoint);
    QVERIFY(message->number(Attribute::ConnectionId) == 0xdeadbeef);
    QVERIFY(message->text(Attribute::Software) == "five!");
    QVERIFY(message->authentic(as_bytes("key")) && !message->authentic(as_bytes("yek")));
  }
}

void TestStunMessage::a_signature_covers_what_stands_before_it() {
  MessageWriter writer(Class::Success, Method::Binding, transaction);
  writer.add_number(Attribute::Lifetime, 600).sign_sha1(as_bytes("key"));
  writer.add_xor_address(Attribute::XorMappedAddress, platform::parse_endpoint("192.0.2.7:443").value());
  const auto message = Message::parse(writer.bytes());
  QVERIFY(message.ok() && message->authentic(as_bytes("key")));
  QVERIFY(message->number(Attribute::Lifetime) == 600u);
  QVERIFY(!message->mapped_address());  // added by whoever stood between
  Bytes altered = writer.bytes();
  altered[header_bytes + 7] ^= 1;
  QVERIFY(Message::parse(altered).ok() && !Message::parse(altered)->authentic(as_bytes("key")));
}

void TestStunMessage::codes_of_failures() {
  MessageWriter writer(Class::Failure, Method::Allocate, transaction);
  writer.add_failure(438, "Stale Nonce");
  const auto message = Message::parse(writer.bytes());
  QVERIFY(message->failure().has_value());
  QCOMPARE(message->failure()->code, 438);
  QVERIFY(message->failure()->reason == "Stale Nonce");
  for (const Bytes& wrong : {Bytes{0, 0, 2, 0}, Bytes{0, 0, 7, 0}, Bytes{0, 0, 4, 100}, Bytes{0, 0, 4}}) {
    MessageWriter other(Class::Failure, Method::Allocate, transaction);
    other.add(Attribute::ErrorCode, wrong);
    QVERIFY(!Message::parse(other.bytes())->failure());
  }
}

void TestStunMessage::what_is_refused() {
  const Bytes good = hex(sample_v4);
  for (std::size_t size = 0; size < good.size(); ++size)
    QVERIFY(!Message::parse(ByteSpan(good).first(size)).ok());
  Bytes bytes = good;
  bytes[0] |= 0x80;
  QVERIFY(refused(bytes, "first two bits"));
  bytes = good;
  bytes[4] ^= 1;
  QVERIFY(refused(bytes, "cookie"));
  bytes = good;
  bytes.back() ^= 1;
  QVERIFY(refused(bytes, "fingerprint does not match"));
  bytes = good;
  bytes[header_bytes + 3] = 200;  // an attribute longer than the message
  QVERIFY(refused(bytes, "cut off"));
  MessageWriter many(Class::Indication, Method::Binding, transaction);
  for (std::size_t i = 0; i <= max_attributes; ++i) many.add(Attribute::Software, "");
  QVERIFY(refused(many.bytes(), "attributes"));
  MessageWriter after(Class::Indication, Method::Binding, transaction);
  after.add_fingerprint().add(Attribute::Software, "x");
  QVERIFY(refused(after.bytes(), "fingerprint"));
}

void TestStunMessage::sizes_of_messages_in_a_stream() {
  QCOMPARE(message_size(hex("000100582112a442")).value(), std::size_t{20 + 0x58});
  QVERIFY(!message_size(hex("00010059")).ok());
  QVERIFY(!message_size(hex("0001fffc")).ok());
  QVERIFY(!message_size(hex("474554202f")).ok());  // "GET /"
}

NS_TEST(TestStunMessage)
#include "test_stun_message.moc"
