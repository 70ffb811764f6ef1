// The file of the local HTTP server's key: it is made, renewed and removed, and no other file is.
#include <QtTest>
#include <future>

#include "core/runtime/http_service.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"
#include "tests/unit/engine/no_sync_file_env.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT

class TestHttpKey : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { folder_ = std::make_unique<QTemporaryDir>(); }

  void a_key_is_made_renewed_and_removed() {
    const auto made = ask(node::HttpKeyAction::Renew);
    QVERIFY(made.ok());
    QCOMPARE(content(), made->key + "\n");
    const auto renewed = ask(node::HttpKeyAction::Renew);
    QVERIFY(renewed.ok() && renewed->key != made->key);
    QCOMPARE(content(), renewed->key + "\n");
    QVERIFY(ask(node::HttpKeyAction::Remove).ok());
    QVERIFY(!files_.exists(path()));
    QVERIFY(ask(node::HttpKeyAction::Remove).ok());
  }

  void a_persons_own_key_is_shown() {
    write("a-key-of-a-person!\na note\n");
    const auto shown = ask(node::HttpKeyAction::Show);
    QVERIFY2(shown.ok(), shown.ok() ? "" : shown.error().describe().c_str());
    QCOMPARE(shown->key, std::string("a-key-of-a-person!"));
  }

  void a_made_key_is_renewed_data() {
    const QByteArray made = "ns-" + QByteArray(64, 'a');
    QTest::addColumn<QByteArray>("before");
    QTest::newRow("empty") << QByteArray();
    QTest::newRow("no end") << made;
    QTest::newRow("other line end") << QByteArray(made + "\r\n");
  }
  void a_made_key_is_renewed() {
    QFETCH(QByteArray, before);
    write(before.toStdString());
    const auto renewed = ask(node::HttpKeyAction::Renew);
    QVERIFY2(renewed.ok(), renewed.ok() ? "" : renewed.error().describe().c_str());
    QCOMPARE(content(), renewed->key + "\n");
  }

  void another_file_is_left_alone_data() {
    QTest::addColumn<QByteArray>("before");
    QTest::newRow("wallet") << QByteArray("NSWL\0\1\xff a secret of many bytes", 31);
    QTest::newRow("settings") << QByteArray("cpu_threads=2\nmemory_limit=\"2GiB\"\n");
    QTest::newRow("short") << QByteArray("1\n");
    QTest::newRow("one line") << QByteArray("https://example.org/a-page-of-somebody\n");
    QTest::newRow("another program's token") << QByteArray("0123456789abcdef0123456789abcdef\n");
    QTest::newRow("a longer line") << QByteArray("ns-" + QByteArray(66, 'a') + "\n");
    QTest::newRow("two lines") << QByteArray("ns-" + QByteArray(64, 'a') + "\na note\n");
  }
  void another_file_is_left_alone() {
    QFETCH(QByteArray, before);
    write(before.toStdString());
    for (const auto action : {node::HttpKeyAction::Renew, node::HttpKeyAction::Remove}) {
      const auto refused = ask(action);
      QVERIFY(!refused.ok());
      QCOMPARE(refused.error().code, ErrorCode::Denied);
      QVERIFY(refused.error().message.find("http_key_file") != std::string::npos);
      QCOMPARE(content(), before.toStdString());
    }
  }

 private:
  std::string path() const { return folder_->filePath("http.key").toStdString(); }
  void write(const std::string& text) {
    QVERIFY(storage::write_file_atomic(files_, path(), as_bytes(text)).ok());
  }
  std::string content() {
    const auto bytes = storage::read_file(files_, path(), 4096);
    return bytes.ok() ? std::string(as_text(*bytes)) : std::string("error: " + bytes.error().message);
  }
  Expected<node::HttpKey> ask(node::HttpKeyAction action) {
    std::promise<Expected<node::HttpKey>> answer;
    HttpService service(folder_->path().toStdString(), config::Settings(),
                        {files_, entropy_, clock_, logger_, "test"});
    service.key(action, [&answer](Expected<node::HttpKey> key) { answer.set_value(std::move(key)); });
    return answer.get_future().get();
  }

  std::unique_ptr<QTemporaryDir> folder_;
  testing::NoSyncFileEnv files_;
  test::CountingEntropy entropy_;
  SystemClock clock_;
  NullLogger logger_;
};

NS_TEST(TestHttpKey)
#include "test_http_key.moc"
