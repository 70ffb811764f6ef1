// Signatures of minisign: what the program itself made is accepted, and nothing that differs from it.
#include <QtTest>

#include "core/crypto/minisign.h"
#include "tests/support/signed_release.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::crypto;

class TestMinisign : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_minisign_signed_is_accepted();
  void any_changed_bit_is_refused();
  void another_key_is_refused();
  void the_older_kind_is_refused();
  void a_truncated_signature_is_refused();
  void a_huge_signature_is_refused();
  void odd_lines_are_refused_data();
  void odd_lines_are_refused();
  void line_ends_of_other_systems_are_accepted();
  void only_keys_are_keys();
};

namespace {

MinisignKey key() {
  return parse_minisign_key(test::release_key).value();
}

MinisignSignature signature() {
  return parse_minisign_signature(as_bytes(test::signature_newer)).value();
}

ErrorCode refusal(const MinisignKey& by, ByteSpan file, const MinisignSignature& with) {
  const auto verified = verify_minisign(by, file, with);
  return verified.ok() ? ErrorCode::Internal : verified.error().code;
}

}  // namespace

void TestMinisign::what_minisign_signed_is_accepted() {
  QCOMPARE(signature().trusted_comment, std::string("version:0.3.0 file:SHA256SUMS"));
  QCOMPARE(to_hex(key().id),
           std::string("3204d04a07ef9178"));  // minisign prints it as a number: 7891EF074AD00432
  QVERIFY(verify_minisign(key(), as_bytes(test::release_list), signature()).ok());
}

// Of the file, of the parts of the signature and of the comment.
void TestMinisign::any_changed_bit_is_refused() {
  const std::string file = test::release_list;
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    QCOMPARE(refusal(key(), as_bytes(changed), signature()), ErrorCode::Denied);
  }
  const auto refuses = [&](const std::function<void(MinisignSignature&, std::size_t)>& change,
                           std::size_t size) {
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      MinisignSignature changed = signature();
      change(changed, bit);
      if (refusal(key(), as_bytes(file), changed) != ErrorCode::Denied) return false;
    }
    return true;
  };
  const auto flip = [](auto& bytes, std::size_t bit) {
    using Byte = std::decay_t<decltype(bytes[0])>;
    bytes[bit / 8] = static_cast<Byte>(bytes[bit / 8] ^ (1 << bit % 8));
  };
  QVERIFY(refuses([&](auto& s, std::size_t bit) { flip(s.key_id, bit); }, 8));
  QVERIFY(refuses([&](auto& s, std::size_t bit) { flip(s.of_hash, bit); }, 64));
  QVERIFY(refuses([&](auto& s, std::size_t bit) { flip(s.of_all, bit); }, 64));
  QVERIFY(refuses([&](auto& s, std::size_t bit) { flip(s.trusted_comment, bit); },
                  signature().trusted_comment.size()));
  QCOMPARE(refusal(key(), as_bytes(file + "\n"), signature()), ErrorCode::Denied);
  QCOMPARE(refusal(key(), {}, signature()), ErrorCode::Denied);
}

void TestMinisign::another_key_is_refused() {
  const MinisignKey foreign = parse_minisign_key(test::foreign_key).value();
  const auto of_foreign = parse_minisign_signature(as_bytes(test::signature_foreign)).value();
  QVERIFY(verify_minisign(foreign, as_bytes(test::release_list), of_foreign).ok());
  const auto refused = verify_minisign(key(), as_bytes(test::release_list), of_foreign);
  QCOMPARE(refused.error().code, ErrorCode::Denied);
  QVERIFY(refused.error().message.find("another key") != std::string::npos);
  // The id of a key is no secret: a forger copies it.
  MinisignSignature forged = of_foreign;
  forged.key_id = key().id;
  QCOMPARE(refusal(key(), as_bytes(test::release_list), forged), ErrorCode::Denied);
}

void TestMinisign::the_older_kind_is_refused() {
  const auto parsed = parse_minisign_signature(as_bytes(test::signature_legacy));
  QCOMPARE(parsed.error().code, ErrorCode::Unsupported);
}

void TestMinisign::a_truncated_signature_is_refused() {
  const std::string whole = test::signature_newer;
  for (std::size_t length = 0; length + 1 < whole.size(); ++length)
    QVERIFY2(!parse_minisign_signature(as_bytes(whole.substr(0, length))).ok(),
             std::to_string(length).c_str());
  QVERIFY(parse_minisign_signature(as_bytes(whole.substr(0, whole.size() - 1)))
              .ok());  // only the last line's end
}

void TestMinisign::a_huge_signature_is_refused() {
  const std::string whole = test::signature_newer;
  const std::string comment(max_minisign_bytes, 'x');
  const auto parsed = parse_minisign_signature(as_bytes("untrusted comment: " + comment + whole));
  QCOMPARE(parsed.error().code, ErrorCode::Corrupt);
  QVERIFY(parsed.error().message.find("too large") != std::string::npos);
}

void TestMinisign::odd_lines_are_refused_data() {
  QTest::addColumn<QByteArray>("from");
  QTest::addColumn<QByteArray>("to");
  QTest::newRow("no untrusted comment") << QByteArray("untrusted ") << QByteArray("trusted ");
  QTest::newRow("no trusted comment") << QByteArray("\ntrusted comment: ") << QByteArray("\ncomment: ");
  QTest::newRow("unknown kind") << QByteArray("\nRUQ") << QByteArray("\nRVQ");
  QTest::newRow("no padding") << QByteArray("MQg=\n") << QByteArray("MQg\n");
  QTest::newRow("leftover bits") << QByteArray("MQg=\n") << QByteArray("MQh=\n");
  QTest::newRow("a space in base64") << QByteArray("\nRUQ") << QByteArray("\n RUQ");
  QTest::newRow("a fifth line") << QByteArray("/DDQ==\n") << QByteArray("/DDQ==\nmore\n");
  QTest::newRow("a zero byte") << QByteArray("version") << QByteArray("ver\0sion", 8);
}

void TestMinisign::odd_lines_are_refused() {
  QFETCH(QByteArray, from);
  QFETCH(QByteArray, to);
  QByteArray text(test::signature_newer);
  QVERIFY(text.contains(from));
  text.replace(from, to);
  const auto parsed = parse_minisign_signature(as_bytes(text.toStdString()));
  QCOMPARE(parsed.error().code, ErrorCode::Corrupt);
}

void TestMinisign::line_ends_of_other_systems_are_accepted() {
  QByteArray text(test::signature_newer);
  text.replace("\n", "\r\n");
  const auto parsed = parse_minisign_signature(as_bytes(text.toStdString()));
  QVERIFY(parsed.ok() && verify_minisign(key(), as_bytes(test::release_list), *parsed).ok());
}

void TestMinisign::only_keys_are_keys() {
  const std::string text = test::release_key;
  for (std::size_t length = 0; length < text.size(); ++length)
    QVERIFY(!parse_minisign_key(text.substr(0, length)).ok());
  QVERIFY(!parse_minisign_key(text + "A").ok());
  QVERIFY(!parse_minisign_key(text + "\n").ok());
  QVERIFY(!parse_minisign_key("RU" + text.substr(2)).ok());  // a signature's kind
  QCOMPARE(parse_minisign_key("hello").error().code, ErrorCode::InvalidArgument);
}

NS_TEST(TestMinisign)
#include "test_minisign.moc"
