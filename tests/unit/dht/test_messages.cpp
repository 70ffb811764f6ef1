// Messages of the table: read back as written, and nothing shorter, longer or larger than they say is read at
// all.
#include <QtTest>

#include "core/base/rng.h"
#include "core/dht/messages.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::dht;

namespace {

using net::Method;

Record sample_record(std::uint8_t mark) {
  Hash256 seed;
  seed.fill(mark);
  return make_record(crypto::KeyPair::from_seed(seed), {}, "/layers/1", Bytes(20, mark), mark,
                     WallTime(std::chrono::milliseconds(1'800'000'000'000)))
      .value();
}

Request sample_request() {
  Request request;
  request.port = 9001;
  request.target.fill(7);
  request.record = sample_record(1);
  return request;
}

net::Contact contact(std::uint8_t last, std::uint8_t first = 40) {
  net::Contact one;
  one.id.fill(last);
  one.endpoint = {platform::IpAddress::v4(first, 0, 0, last), 9000};
  return one;
}

constexpr Method methods[] = {Method::DhtPing, Method::DhtFindNode, Method::DhtFindValue, Method::DhtStore};

}  // namespace

class TestMessages : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void requests_are_read_back();
  void requests_of_a_wrong_length_are_refused();
  void answers_are_read_back();
  void answers_of_a_wrong_length_are_refused();
  void counts_over_the_limit_are_refused();
  void nobody_is_sent_to_a_private_network();
  void noise_is_refused_quietly();
};

void TestMessages::requests_are_read_back() {
  for (const Method method : methods) {
    const Request request = sample_request();
    const auto back = decode_request(method, encode_request(method, request));
    QVERIFY(back.ok());
    QCOMPARE(back->port, request.port);
    if (method == Method::DhtFindNode || method == Method::DhtFindValue)
      QVERIFY(back->target == request.target);
    if (method == Method::DhtStore) QVERIFY(back->record == request.record);
  }
}

void TestMessages::requests_of_a_wrong_length_are_refused() {
  for (const Method method : methods) {
    Bytes bytes = encode_request(method, sample_request());
    for (std::size_t size = 0; size < bytes.size(); ++size)
      QVERIFY(!decode_request(method, ByteSpan(bytes).first(size)).ok());
    bytes.push_back(0);
    QVERIFY(!decode_request(method, bytes).ok());
    bytes.pop_back();
    bytes[0] = 2;
    QCOMPARE(decode_request(method, bytes).error().code, ErrorCode::Unsupported);
  }
}

void TestMessages::answers_are_read_back() {
  const Record one = sample_record(1), two = sample_record(2);
  const Bytes bytes = encode_found(Method::DhtFindValue, {&one, &two}, {contact(1), contact(2)});
  const auto found = decode_found(Method::DhtFindValue, bytes, false);
  QVERIFY(found.ok());
  QCOMPARE(found->records.size(), 2u);
  QVERIFY(found->records[0] == one && found->records[1] == two);
  QCOMPARE(found->contacts.size(), 2u);
  QVERIFY(found->contacts[1] == contact(2));
  const platform::Endpoint seen = contact(9).endpoint;
  QVERIFY(decode_endpoint(encode_endpoint(seen)).value() == seen);
}

void TestMessages::answers_of_a_wrong_length_are_refused() {
  const Record one = sample_record(1);
  Bytes bytes = encode_found(Method::DhtFindValue, {&one}, {contact(1)});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    QVERIFY(!decode_found(Method::DhtFindValue, ByteSpan(bytes).first(size), false).ok());
  bytes.push_back(0);
  QVERIFY(!decode_found(Method::DhtFindValue, bytes, false).ok());
}

void TestMessages::counts_over_the_limit_are_refused() {
  Bytes bytes = {static_cast<std::uint8_t>(max_contacts + 1)};
  bytes.resize(1 + 50 * (max_contacts + 1));
  QVERIFY(!decode_found(Method::DhtFindNode, bytes, false).ok());
  QVERIFY(!decode_found(Method::DhtFindValue, Bytes{static_cast<std::uint8_t>(max_answer_records + 1)}, false)
               .ok());
}

void TestMessages::nobody_is_sent_to_a_private_network() {
  net::Contact no_port = contact(3);
  no_port.endpoint.port = 0;
  const Bytes bytes =
      encode_found(Method::DhtFindNode, {}, {contact(1), contact(2, 10), contact(4, 127), no_port});
  QCOMPARE(decode_found(Method::DhtFindNode, bytes, false)->contacts.size(), 1u);
  QCOMPARE(decode_found(Method::DhtFindNode, bytes, true)->contacts.size(), 3u);
}

void TestMessages::noise_is_refused_quietly() {
  Rng rng(11);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes(rng.below(300));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng.below(i % 2 == 0 ? 256 : 4));
    for (const Method method : methods) {
      if (const auto request = decode_request(method, bytes); request.ok()) {
        QVERIFY(encode_request(method, *request) == bytes);
        ++accepted;
      }
      if (const auto found = decode_found(method, bytes, true); found.ok()) {
        QVERIFY(found->records.empty());  // they begin with a mark that noise does not have
        QVERIFY(found->contacts.size() <= bytes.size() / 50);
        ++accepted;
      }
    }
    accepted += decode_endpoint(bytes).ok() ? 1 : 0;
  }
  // About 200 of 180,000 have a length that fits, and a version or a number of contacts.
  QVERIFY2(accepted > 0 && accepted < 400, QByteArray::number(accepted).constData());
}

NS_TEST(TestMessages)
#include "test_messages.moc"
