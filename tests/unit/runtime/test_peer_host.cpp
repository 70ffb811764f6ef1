// A host of peers where the process may open few files.
#include <QtTest>
#include <mutex>

#include "core/net/refusals.h"
#include "core/platform/socket/tcp_socket.h"
#include "core/runtime/peer_host.h"
#include "tests/support/keys.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT

namespace {

class FileWarnings final : public Logger {
 public:
  void write(const LogRecord& record) override {
    const std::lock_guard lock(mutex_);
    if (record.level == LogLevel::Warning && record.message.find("this process may open") == 0)
      texts_.push_back(record.message);
  }
  std::vector<std::string> texts() const {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

}  // namespace

class TestPeerHost : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { warnings_ = std::make_unique<FileWarnings>(); }
  void few_files_are_told_where_others_connect_data();
  void few_files_are_told_where_others_connect();
  void the_bounds_of_few_files_hold();

 private:
  std::unique_ptr<PeerHost> start(std::size_t open_files, bool listens) {
    PeerHostOptions options;
    if (listens) options.listen = platform::Endpoint{platform::IpAddress::v4(127, 0, 0, 1), 0};
    options.member = false;
    options.swarm.one_lan = true;
    options.swarm.network_id = Hash256{7};
    options.open_files = open_files;
    auto host =
        PeerHost::start(test::key_of(1), {files_, entropy_, clock_, *warnings_, "test"}, std::move(options));
    if (!host.ok()) qFatal("host: %s", host.error().message.c_str());
    return std::move(*host);
  }

  testing::MemoryFileEnv files_;
  crypto::SystemEntropy entropy_;
  SystemClock clock_;
  std::unique_ptr<FileWarnings> warnings_;
};

void TestPeerHost::few_files_are_told_where_others_connect_data() {
  QTest::addColumn<int>("files");
  QTest::addColumn<bool>("listens");
  QTest::addColumn<bool>("told");
  QTest::newRow("few") << 256 << true << true;
  QTest::newRow("enough") << 4096 << true << false;
  QTest::newRow("few, but nobody connects") << 256 << false << false;
}

void TestPeerHost::few_files_are_told_where_others_connect() {
  QFETCH(int, files);
  QFETCH(bool, listens);
  QFETCH(bool, told);
  const auto host = start(static_cast<std::size_t>(files), listens);
  const std::vector<std::string> texts = warnings_->texts();
  QCOMPARE(texts.size(), std::size_t{told ? 1u : 0u});
  if (told) QVERIFY2(texts[0].find("may open 256 files") != std::string::npos, texts[0].c_str());
}

// Of connections that say nothing: four wait, and each further one shows the oldest out.
void TestPeerHost::the_bounds_of_few_files_hold() {
  const auto host = start(16, true);
  std::vector<platform::TcpSocket> silent;
  for (int i = 0; i < 6; ++i) {
    auto socket = platform::TcpSocket::dial(host->endpoint());
    QVERIFY(socket.ok());
    silent.push_back(std::move(*socket));
  }
  QVERIFY(testing::until([&] { return host->refusals().of(net::Refusal::TooManyConnections) == 2; }));
}

NS_TEST(TestPeerHost)
#include "test_peer_host.moc"
