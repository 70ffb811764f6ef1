// A TLS client's offer, read by the listener from a stranger's bytes.
#include <QtTest>

#include "core/platform/socket/client_hello.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::platform;

namespace {

void append(Bytes& to, const Bytes& what) {
  to.insert(to.end(), what.begin(), what.end());
}

// Behind its length, of so many bytes.
Bytes counted(std::size_t bytes, const Bytes& what) {
  Bytes all;
  for (std::size_t i = bytes; i-- > 0;) all.push_back(static_cast<std::uint8_t>(what.size() >> (8 * i)));
  append(all, what);
  return all;
}

Bytes extension(std::uint8_t type, const Bytes& data) {
  Bytes all{0, type};
  append(all, counted(2, data));
  return all;
}

// extensions: none are there at all where this is empty.
Bytes hello(const Bytes& extensions) {
  Bytes body(2 + 32, 7);
  append(body, counted(1, Bytes(32, 1)));           // session
  append(body, counted(2, {0x13, 0x01, 0xc0, 9}));  // cipher suites
  append(body, counted(1, {0}));                    // compression
  if (!extensions.empty()) append(body, counted(2, extensions));
  Bytes message{1};
  append(message, counted(3, body));
  Bytes record{22, 3, 1};
  append(record, counted(2, message));
  return record;
}

Bytes offering(const Bytes& versions) {
  Bytes extensions = extension(16, counted(2, counted(1, {'h', '2'})));
  append(extensions, extension(43, counted(1, versions)));
  return hello(extensions);
}

}  // namespace

class TestClientHello : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_is_offered();
  void what_can_not_be_read_is_not_known();
};

void TestClientHello::what_is_offered() {
  QCOMPARE(offered_tls(offering({3, 4})), OfferedTls::Tls13);
  QCOMPARE(offered_tls(offering({0x7a, 0x7a, 3, 4, 3, 3})), OfferedTls::Tls13);
  QCOMPARE(offered_tls(offering({3, 3, 3, 2})), OfferedTls::Older);
  QCOMPARE(offered_tls(hello(extension(16, {1, 2, 3}))), OfferedTls::Older);
  QCOMPARE(offered_tls(hello({})), OfferedTls::Older);
}

void TestClientHello::what_can_not_be_read_is_not_known() {
  const Bytes good = offering({3, 4});
  for (std::size_t length = 0; length < good.size(); ++length)  // the rest is in another record
    QCOMPARE(offered_tls(ByteSpan(good).first(length)), OfferedTls::Unknown);
  QCOMPARE(offered_tls(offering({3})), OfferedTls::Unknown);
  QCOMPARE(offered_tls(Bytes(200, 0)), OfferedTls::Unknown);
  QCOMPARE(offered_tls(Bytes(200, 0xff)), OfferedTls::Unknown);
  // Whatever is changed in it is read without harm, and mostly changes nothing.
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int value : {0, 1, 0x7f, 0xff}) {
      Bytes other = good;
      other[at] = static_cast<std::uint8_t>(value);
      static_cast<void>(offered_tls(other));
    }
}

NS_TEST(TestClientHello)
#include "test_client_hello.moc"
