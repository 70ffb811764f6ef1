// The result of a look at the place of releases, with lists that minisign signed and others that it did not.
#include <QtTest>
#include <map>

#include "core/release/look.h"
#include "tests/support/signed_release.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::release;

class TestReleaseLook : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_signed_version_is_believed_data();
  void a_signed_version_is_believed();
  void anything_else_is_refused_data();
  void anything_else_is_refused();
  void an_older_version_than_before_is_refused();
  void what_the_source_says_is_passed_on();
  void only_secure_places_are_accepted_data();
  void only_secure_places_are_accepted();
};

namespace {

class Shelf final : public Source {
 public:
  std::map<std::string, std::string> files;
  Expected<Bytes> fetch(const std::string& url, const CancelToken&) override {
    const auto found = files.find(url);
    if (found == files.end()) return make_error(ErrorCode::Unavailable, "nothing is there");
    return Bytes(found->second.begin(), found->second.end());
  }
};

const std::string url = "https://releases.example/neuroshard";

Expected<Version> look_at(const std::string& signature, const std::optional<Version>& seen = {},
                          const std::string& list = test::release_list) {
  Shelf shelf;
  shelf.files[url + "/SHA256SUMS"] = list;
  shelf.files[url + "/SHA256SUMS.minisig"] = signature;
  return look(parse_place(url + "/", test::release_key).value(), seen, shelf, {});
}

}  // namespace

void TestReleaseLook::a_signed_version_is_believed_data() {
  QTest::addColumn<QByteArray>("signature");
  QTest::addColumn<QByteArray>("version");
  QTest::newRow("newer") << QByteArray(test::signature_newer) << QByteArray("0.3.0");
  QTest::newRow("the same") << QByteArray(test::signature_current) << QByteArray("0.1.0");
  QTest::newRow("tabs and a word more") << QByteArray(test::signature_newest) << QByteArray("0.4.0");
}

void TestReleaseLook::a_signed_version_is_believed() {
  QFETCH(QByteArray, signature);
  QFETCH(QByteArray, version);
  const auto found = look_at(signature.toStdString());
  QVERIFY2(found.ok(), found.ok() ? "" : found.error().message.c_str());
  QCOMPARE(QByteArray::fromStdString(found->text()), version);
}

void TestReleaseLook::anything_else_is_refused_data() {
  QTest::addColumn<QByteArray>("signature");
  QTest::addColumn<QByteArray>("list");
  QTest::addColumn<int>("code");
  const auto row = [](const char* name, const char* signature, ErrorCode code,
                      const QByteArray& list = test::release_list) {
    QTest::newRow(name) << QByteArray(signature) << list << static_cast<int>(code);
  };
  row("another key", test::signature_foreign, ErrorCode::Denied);
  row("the older kind", test::signature_legacy, ErrorCode::Unsupported);
  row("a signature of another file", test::signature_other_file, ErrorCode::Corrupt);
  row("no version", test::signature_no_version, ErrorCode::Corrupt);
  row("two versions", test::signature_two_versions, ErrorCode::Corrupt);
  row("a page instead of a signature", "<html>Welcome</html>", ErrorCode::Corrupt);
  row("nothing", "", ErrorCode::Corrupt);
  row("another list", test::signature_newer, ErrorCode::Denied, "0000  neuroshard.deb\n");
  row("no list", test::signature_newer, ErrorCode::Denied, "");
}

void TestReleaseLook::anything_else_is_refused() {
  QFETCH(QByteArray, signature);
  QFETCH(QByteArray, list);
  QFETCH(int, code);
  const auto found = look_at(signature.toStdString(), {}, list.toStdString());
  QVERIFY(!found.ok());
  QCOMPARE(static_cast<int>(found.error().code), code);
  QVERIFY(!found.error().message.empty());
}

// A server that shows an old list, well signed, would keep people at a version whose faults are known.
void TestReleaseLook::an_older_version_than_before_is_refused() {
  const Version seen = Version::parse("0.3.0").value();
  QVERIFY(look_at(test::signature_newer, seen).ok());
  QVERIFY(look_at(test::signature_newest, seen).ok());
  const auto older = look_at(test::signature_current, seen);
  QVERIFY(!older.ok());
  QCOMPARE(older.error().code, ErrorCode::Denied);
  QVERIFY(older.error().message.find("0.3.0") != std::string::npos);
}

void TestReleaseLook::what_the_source_says_is_passed_on() {
  Shelf empty;
  const auto place = parse_place(url, test::release_key).value();
  QCOMPARE(look(place, {}, empty, {}).error().code, ErrorCode::Unavailable);
  empty.files[url + "/SHA256SUMS"] = test::release_list;
  QCOMPARE(look(place, {}, empty, {}).error().code, ErrorCode::Unavailable);
}

void TestReleaseLook::only_secure_places_are_accepted_data() {
  QTest::addColumn<QByteArray>("address");
  QTest::addColumn<bool>("accepted");
  const auto row = [](const char* address, bool accepted) {
    QTest::newRow(address) << QByteArray(address) << accepted;
  };
  row("https://releases.example/neuroshard", true);
  row("https://releases.example:8443", true);
  row("http://127.0.0.1:8000/releases", true);
  row("http://[::1]:8000", true);
  row("http://releases.example", false);
  row("http://127.0.0.1.releases.example", false);
  row("http://localhost:8000", false);  // a name server says what that is
  row("http://127.0.0.1@releases.example", false);
  row("https://somebody@releases.example", false);
  row("https://", false);
  row("ftp://releases.example", false);
  row("file:///srv/releases", false);
  row("https://releases.example/?who=me", false);
  row("https://releases.example/a b", false);
  row("", false);
}

void TestReleaseLook::only_secure_places_are_accepted() {
  QFETCH(QByteArray, address);
  QFETCH(bool, accepted);
  QCOMPARE(parse_place(address.toStdString(), test::release_key).ok(), accepted);
  QVERIFY(!parse_place(address.toStdString(), "no key").ok());
}

NS_TEST(TestReleaseLook)
#include "test_look.moc"
