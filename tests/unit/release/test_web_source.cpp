// Files of a web server: what arrives, what does not, and what the request says about who asks.
#include <QElapsedTimer>
#include <QtTest>

#include "core/release/source.h"
#include "tests/support/release_server.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::release;

class TestReleaseWebSource : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_file_arrives();
  void a_request_says_nothing_about_who_asks();
  void a_large_file_is_refused();
  void an_endless_file_is_refused();
  void what_is_not_there_is_unavailable();
  void a_server_that_hangs_is_left();
  void a_stop_ends_the_wait();
  void a_redirect_to_plain_http_is_not_followed();
};

namespace {

const WebLimits hasty{std::chrono::seconds(5), std::chrono::milliseconds(300)};

ErrorCode failure(const std::string& url, const WebLimits& limits = {}, const CancelToken& cancel = {}) {
  const auto fetched = make_web_source(limits)->fetch(url, cancel);
  return fetched.ok() ? ErrorCode::Internal : fetched.error().code;
}

}  // namespace

void TestReleaseWebSource::a_file_arrives() {
  test::ReleaseServer server;
  const std::string content(max_file_bytes, 'x');
  server.put("SHA256SUMS", content);
  const auto fetched = make_web_source()->fetch(server.url() + "/SHA256SUMS", {});
  QVERIFY2(fetched.ok(), fetched.ok() ? "" : fetched.error().message.c_str());
  QVERIFY(as_text(ByteSpan(*fetched)) == content);
}

void TestReleaseWebSource::a_request_says_nothing_about_who_asks() {
  test::ReleaseServer server;
  server.put("SHA256SUMS", "x");
  QVERIFY(make_web_source()->fetch(server.url() + "/SHA256SUMS", {}).ok());
  const std::set<std::string> expected{"Accept", "Host"};
  QVERIFY(server.headers() == expected);
}

void TestReleaseWebSource::a_large_file_is_refused() {
  test::ReleaseServer server;
  server.put("SHA256SUMS", std::string(max_file_bytes + 1, 'x'));
  QCOMPARE(failure(server.url() + "/SHA256SUMS"), ErrorCode::Corrupt);
}

// Its length was not announced.
void TestReleaseWebSource::an_endless_file_is_refused() {
  test::ReleaseServer server;
  server.put("SHA256SUMS", "endless");
  QCOMPARE(failure(server.url() + "/SHA256SUMS"), ErrorCode::Corrupt);
}

void TestReleaseWebSource::what_is_not_there_is_unavailable() {
  std::string url;
  {
    const test::ReleaseServer server;
    url = server.url() + "/SHA256SUMS";
    QCOMPARE(failure(url), ErrorCode::Unavailable);
  }
  QCOMPARE(failure(url), ErrorCode::Unavailable);  // nobody listens
}

void TestReleaseWebSource::a_server_that_hangs_is_left() {
  test::ReleaseServer server;
  server.put("SHA256SUMS", "hang");
  QCOMPARE(failure(server.url() + "/SHA256SUMS", hasty), ErrorCode::Timeout);
}

void TestReleaseWebSource::a_stop_ends_the_wait() {
  test::ReleaseServer server;
  server.put("SHA256SUMS", "hang");
  CancelSource stop;
  stop.cancel();
  QElapsedTimer spent;
  spent.start();
  QCOMPARE(failure(server.url() + "/SHA256SUMS", {}, stop.token()), ErrorCode::Cancelled);
  QVERIFY(spent.elapsed() < 10'000);  // of 40 s
}

void TestReleaseWebSource::a_redirect_to_plain_http_is_not_followed() {
  test::ReleaseServer server;
  server.put("SHA256SUMS", "to:" + server.url() + "/elsewhere");
  server.put("elsewhere", "x");
  QCOMPARE(failure(server.url() + "/SHA256SUMS"), ErrorCode::Unavailable);
  QCOMPARE(server.requests().size(), std::size_t{1});
}

NS_TEST(TestReleaseWebSource)
#include "test_web_source.moc"
