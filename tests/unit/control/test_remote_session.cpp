// A connection that breaks without an end: a message that no program can read, and a core that is gone
// without a word. The program learns of both and connects again.
#include <QTcpServer>
#include <QTcpSocket>
#include <QtTest>
#include <atomic>

#include "core/control/detail/call_rules.h"
#include "core/control/detail/tls_identity.h"
#include "core/platform/file/private_directory.h"
#include "core/platform/process/process_identity.h"
#include "tests/support/test_main.h"
#include "tests/unit/control/control_fixture.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

namespace {

// Its first stream has an event that does not parse. All streams stay open until the program leaves.
class UnreadableCore final : public wire::Control::Service {
 public:
  grpc::Status Hello(grpc::ServerContext*, const wire::HelloRequest* request,
                     wire::HelloReply* reply) override {
    *reply->mutable_control() = request->control();
    return grpc::Status::OK;
  }
  grpc::Status Watch(grpc::ServerContext* context, const wire::WatchRequest*,
                     grpc::ServerWriter<wire::Update>* writer) override {
    const int stream = ++streams;
    ++open;
    wire::Update update;
    update.mutable_snapshot()->set_full(true);
    update.mutable_snapshot()->mutable_training()->set_step(static_cast<std::uint64_t>(stream));
    writer->Write(update);
    if (stream == 1) {
      update.mutable_event()->mutable_checkpoint_written()->set_name("B\xFC");
      writer->Write(update);
    }
    until([context] { return context->IsCancelled(); });
    --open;
    return grpc::Status::CANCELLED;
  }

  std::atomic<int> streams = 0, open = 0;
};

// Passes bytes between a program and a core until it is cut. Then both ends stay open, and nothing arrives,
// as if one computer had lost its network.
class Relay {
 public:
  explicit Relay(const std::string& core) {
    const quint16 port = QString::fromStdString(core).section(':', 1).toUShort();
    QObject::connect(&server_, &QTcpServer::newConnection, &server_, [this, port] {
      while (QTcpSocket* program = server_.nextPendingConnection()) {
        auto* to_core = new QTcpSocket(program);
        to_core->connectToHost(QHostAddress::LocalHost, port);
        if (!to_core->waitForConnected(5'000)) continue;
        pass(program, to_core);
        pass(to_core, program);
      }
    });
    listens_ = server_.listen(QHostAddress::LocalHost);
  }
  bool listens() const { return listens_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(server_.serverPort()); }
  void cut() { cut_ = true; }

 private:
  void pass(QTcpSocket* from, QTcpSocket* to) {
    const auto copy = [this, from, to] {
      if (!cut_ && from->bytesAvailable() > 0) to->write(from->readAll());
    };
    QObject::connect(from, &QTcpSocket::readyRead, to, copy);
    copy();  // of what came first
  }

  bool listens_ = false, cut_ = false;
  QTcpServer server_;
};

}  // namespace

class TestRemoteSession : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { fixture_ = std::make_unique<ControlFixture>(); }
  void cleanup() { fixture_.reset(); }
  void a_message_that_does_not_parse_ends_the_connection();
  void a_core_that_is_gone_without_a_word_is_noticed();

 private:
  bool write(const control::ControlFile& file) const {
    return storage::write_file_atomic(*fixture_->files,
                                      control::control_file_path(fixture_->runtime(), fixture_->data()),
                                      as_bytes(control::format_control_file(file)))
        .ok();
  }
  std::unique_ptr<ControlFixture> fixture_;
};

void TestRemoteSession::a_message_that_does_not_parse_ends_the_connection() {
  control::detail::prepare_grpc();
  const auto identity = control::detail::make_tls_identity();
  QVERIFY(identity.ok());
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  tls.pem_key_cert_pairs.push_back({identity->key, identity->certificate});
  UnreadableCore core;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port);
  builder.RegisterService(&core);
  const auto server = builder.BuildAndStart();
  QVERIFY(server != nullptr);
  control::ControlFile file;
  file.process = platform::own_process();
  file.started = fixture_->clock.wall_now();
  file.address = "127.0.0.1:" + std::to_string(port);
  file.certificate = identity->certificate;
  file.cookie = std::string(64, '0');
  file.data_directory = fixture_->data();
  QVERIFY(platform::make_private_directory(fixture_->runtime()).ok());
  QVERIFY(write(file));

  const auto remote = control::connect(fixture_->options());
  std::atomic<bool> lost = false;
  const auto watch = remote->watch_link([&] {
    if (remote->link().state == control::LinkState::Lost) lost = true;
  });
  QVERIFY(until([&] { return lost.load(); }));
  QVERIFY(until([&] {
    return remote->link().state == control::LinkState::Connected && remote->snapshot()->training.step == 2;
  }));
  // The core has its place for a watcher back.
  QVERIFY(until([&] { return core.open == 1; }));
}

void TestRemoteSession::a_core_that_is_gone_without_a_word_is_noticed() {
  QVERIFY(fixture_->start().ok());
  control::ControlFile file = fixture_->file();
  Relay relay(file.address);
  QVERIFY(relay.listens());
  file.address = relay.address();
  QVERIFY(write(file));
  control::ConnectOptions options = fixture_->options();
  options.quiet = std::chrono::seconds(1);
  const auto remote = control::connect(options);
  QTRY_VERIFY_WITH_TIMEOUT(remote->link().state == control::LinkState::Connected, 20'000);
  relay.cut();
  QTRY_VERIFY_WITH_TIMEOUT(remote->link().state == control::LinkState::Lost, 20'000);
  QVERIFY2(remote->link().error->describe().find("does not answer") != std::string::npos,
           remote->link().error->describe().c_str());
}

NS_TEST(TestRemoteSession)
#include "test_remote_session.moc"
