// Refusals and bounds of the control service, each with its reason: callers without the cookie or with
// another certificate, garbage, messages that are too long, slow readers, and hundreds of connections.
#include <QSslConfiguration>
#include <QSslSocket>
#include <QTcpSocket>
#include <QtTest>

#include "core/node/snapshot.h"
#include "tests/support/test_main.h"
#include "tests/unit/control/control_fixture.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestControlLimits : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { fixture_ = std::make_unique<ControlFixture>(); }
  void cleanup() { fixture_.reset(); }
  void wrong_cookie_is_refused();
  void another_certificate_is_refused();
  void only_tls_13_is_spoken();
  void garbage_and_other_protocols_change_nothing();
  void long_messages_are_refused();
  void largest_snapshot_fits();
  void slow_reader_gets_the_latest();
  void reader_that_loses_events_is_told();
  void too_many_watchers_are_refused();
  void hundreds_of_connections_are_bounded();

 private:
  // One Hello of a client without manners.
  grpc::Status hello(const std::string& cookie, std::size_t padding = 0) const {
    grpc::ClientContext context;
    if (!cookie.empty()) context.AddMetadata("neuroshard-cookie", cookie);
    context.AddMetadata("neuroshard-control", "1.0");
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    wire::HelloRequest request;
    request.set_program(std::string(padding, 'x'));
    wire::HelloReply reply;
    return fixture_->raw()->Hello(&context, request, &reply);
  }
  quint16 port() const {
    return static_cast<quint16>(QString::fromStdString(fixture_->server->address()).section(':', 1).toUInt());
  }

  std::unique_ptr<ControlFixture> fixture_;
};

void TestControlLimits::wrong_cookie_is_refused() {
  QVERIFY(fixture_->start().ok());
  const std::string cookie = fixture_->file().cookie;
  QCOMPARE(cookie.size(), std::size_t{64});
  QVERIFY(hello(cookie).ok());
  QCOMPARE(hello("").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  QCOMPARE(hello(cookie.substr(0, 63)).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  QCOMPARE(hello(std::string(64, '0')).error_code(), grpc::StatusCode::PERMISSION_DENIED);

  // A control.json with another cookie: RemoteNode says why it gives up.
  control::ControlFile file = fixture_->file();
  file.cookie = std::string(64, '0');
  QVERIFY(storage::write_file_atomic(*fixture_->files,
                                     control::control_file_path(fixture_->runtime(), fixture_->data()),
                                     as_bytes(control::format_control_file(file)))
              .ok());
  const auto remote = control::connect(fixture_->options());
  const auto refused = remote->wait_connected(std::chrono::seconds(20), {});
  QCOMPARE(refused.error().code, ErrorCode::Denied);
  QVERIFY(refused.error().message.find("cookie") != std::string::npos);
  QCOMPARE(remote->link().state, control::LinkState::Refused);
}

void TestControlLimits::another_certificate_is_refused() {
  QVERIFY(fixture_->start().ok());
  ControlFixture other;
  QVERIFY(other.start().ok());
  // The other service's certificate with this one's address: as if another program had taken the port.
  control::ControlFile file = fixture_->file();
  file.certificate = other.file().certificate;
  QVERIFY(storage::write_file_atomic(*fixture_->files,
                                     control::control_file_path(fixture_->runtime(), fixture_->data()),
                                     as_bytes(control::format_control_file(file)))
              .ok());
  const auto remote = control::connect(fixture_->options());
  const auto refused = remote->wait_connected(std::chrono::seconds(20), {});
  QCOMPARE(refused.error().code, ErrorCode::Denied);
  QVERIFY2(refused.error().message.find("certificate") != std::string::npos, refused.error().message.c_str());
  QVERIFY(fixture_->node.commands().empty());
}

void TestControlLimits::only_tls_13_is_spoken() {
  QVERIFY(fixture_->start().ok());
  for (const auto protocol : {QSsl::TlsV1_3, QSsl::TlsV1_2}) {
    QSslSocket socket;
    QSslConfiguration configuration = socket.sslConfiguration();
    configuration.setProtocol(protocol);
    configuration.setPeerVerifyMode(QSslSocket::VerifyNone);
    configuration.setAllowedNextProtocols({"h2"});
    socket.setSslConfiguration(configuration);
    socket.connectToHostEncrypted("127.0.0.1", port());
    QCOMPARE(socket.waitForEncrypted(10'000), protocol == QSsl::TlsV1_3);
    if (protocol == QSsl::TlsV1_3) QCOMPARE(socket.sessionProtocol(), QSsl::TlsV1_3);
  }
}

void TestControlLimits::garbage_and_other_protocols_change_nothing() {
  QVERIFY(fixture_->start().ok());
  for (const QByteArray& bytes :
       {QByteArray("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), QByteArray(100'000, '\xff'),
        QByteArray("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}) {
    QTcpSocket socket;
    socket.connectToHost("127.0.0.1", port());
    QVERIFY(socket.waitForConnected(5'000));
    socket.write(bytes);
    QVERIFY(socket.state() == QTcpSocket::UnconnectedState || socket.waitForDisconnected(10'000));
  }
  QVERIFY(fixture_->connect() != nullptr);
}

void TestControlLimits::long_messages_are_refused() {
  QVERIFY(fixture_->start().ok());
  const grpc::Status status = hello(fixture_->file().cookie, 1u << 20);
  QCOMPARE(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto remote = fixture_->connect();
  QCOMPARE(remote->set_setting("cpu_threads", std::string(100'000, '1')).error().code,
           ErrorCode::InvalidArgument);
  QVERIFY(fixture_->node.commands().empty());
}

void TestControlLimits::largest_snapshot_fits() {
  fixture_->node.publish([](node::Snapshot& next) {
    const std::string text(10'000, 'x');
    for (int i = 0; i < 100; ++i) {
      next.alerts.push_back({text + std::to_string(i), node::Severity::Warning, text, {}});
      next.pause_reasons.push_back({text, text, WallTime(std::chrono::milliseconds(1)), true});
      next.sensors.push_back({text, text, text});
    }
    next.training.data_source = next.training.activity = next.program.data_directory = next.program.notice =
        next.undo.checkpoint = text;
  });
  QVERIFY(fixture_->start().ok());
  grpc::ClientContext context;
  fixture_->sign(&context);
  const auto reader = fixture_->raw()->Watch(&context, wire::WatchRequest());
  wire::Update update;
  QVERIFY(reader->Read(&update));
  QVERIFY(update.snapshot().full());
  QCOMPARE(update.snapshot().alerts().alert_size(), static_cast<int>(node::max_alerts));
  QVERIFY2(update.ByteSizeLong() <= node::max_snapshot_bytes,
           QByteArray::number(int(update.ByteSizeLong())).constData());
  // A change is small: the alerts do not travel again.
  fixture_->node.publish([](node::Snapshot& next) { next.training.step = 5; });
  QVERIFY(reader->Read(&update));
  QVERIFY(!update.snapshot().full());
  QVERIFY(!update.snapshot().has_alerts());
  QVERIFY(!update.snapshot().has_identity());
  QCOMPARE(update.snapshot().training().step(), std::uint64_t{5});
  QVERIFY(update.ByteSizeLong() < 2'000);
  context.TryCancel();
}

void TestControlLimits::slow_reader_gets_the_latest() {
  control::ServerLimits limits;
  limits.period = std::chrono::milliseconds(1);
  QVERIFY(fixture_->start(limits).ok());
  grpc::ClientContext context;
  fixture_->sign(&context);
  wire::WatchRequest request;
  request.set_events(true);
  const auto stub = fixture_->raw();
  const auto reader = stub->Watch(&context, request);
  wire::Update update;
  QVERIFY(reader->Read(&update));
  // Nobody reads while 20,000 large snapshots (30 kB each: 600 MB) and as many steps come. A quick reader
  // beside it shows that the service goes on.
  const auto quick = fixture_->connect();
  QVERIFY(quick != nullptr);
  const std::string text(node::max_text, 'y');
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    fixture_->node.publish([&](node::Snapshot& next) {
      next.training.step = i;
      next.alerts.clear();
      for (std::size_t a = 0; a < node::max_alerts; ++a)
        next.alerts.push_back({std::to_string(a), node::Severity::Notice, text + std::to_string(i), {}});
    });
    fixture_->node.emit(node::StepFinished{node::StepView{i}, std::nullopt});
  }
  QVERIFY(until([&] { return quick->snapshot()->training.step == 20'000; }));
  int snapshots = 0;
  std::uint64_t last = 0, dropped = 0;
  while (last != 20'000 && reader->Read(&update)) {
    dropped = std::max(dropped, update.dropped_steps());
    if (!update.has_snapshot()) continue;
    ++snapshots;
    if (update.snapshot().has_training()) last = update.snapshot().training().step();
  }
  QCOMPARE(last, std::uint64_t{20'000});
  qInfo("%d of 20,000 snapshots reached the slow reader, %llu steps were dropped", snapshots,
        static_cast<unsigned long long>(dropped));
  QVERIFY(snapshots < 1'000);
  QVERIFY(dropped > 0);
  context.TryCancel();
}

void TestControlLimits::reader_that_loses_events_is_told() {
  control::ServerLimits limits;
  limits.events = 8;
  limits.period = std::chrono::hours(1);
  QVERIFY(fixture_->start(limits).ok());
  grpc::ClientContext context;
  fixture_->sign(&context);
  wire::WatchRequest request;
  request.set_events(true);
  const auto stub = fixture_->raw();
  const auto reader = stub->Watch(&context, request);
  wire::Update update;
  QVERIFY(reader->Read(&update));
  const std::string text(1'000, 'z');
  for (int i = 0; i < 20'000; ++i)
    fixture_->node.emit(node::AlertRaised{{std::to_string(i), node::Severity::Notice, text, {}}});
  while (reader->Read(&update)) {
  }
  const grpc::Status status = reader->Finish();
  QCOMPARE(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  QVERIFY(status.error_message().find("too slowly") != std::string::npos);
}

void TestControlLimits::too_many_watchers_are_refused() {
  control::ServerLimits limits;
  limits.watchers = 2;
  QVERIFY(fixture_->start(limits).ok());
  const auto first = fixture_->connect();
  auto second = fixture_->connect();
  QVERIFY(first && second);
  const auto third = control::connect(fixture_->options());
  const auto refused = third->wait_connected(std::chrono::milliseconds(300), {});
  QCOMPARE(refused.error().code, ErrorCode::Exhausted);
  QVERIFY(refused.error().message.find("2 programs already follow") != std::string::npos);
  second.reset();  // a place is free again
  QVERIFY(third->wait_connected(std::chrono::seconds(20), {}).ok());
}

void TestControlLimits::hundreds_of_connections_are_bounded() {
  QVERIFY(fixture_->start().ok());
  const auto descriptors = [] { return QDir("/proc/self/fd").count(); };
  const auto remote = fixture_->connect();
  const auto before = descriptors();
  {
    std::vector<std::unique_ptr<QTcpSocket>> silent;
    for (int i = 0; i < 400; ++i) {  // both ends are in this process: more would be its own limit
      silent.push_back(std::make_unique<QTcpSocket>());
      silent.back()->connectToHost("127.0.0.1", port());
      QVERIFY(silent.back()->waitForConnected(5'000));
    }
    // The service keeps a bounded number open, with two descriptors for each.
    const auto bound = before + 400 * 2 + 64 * 2 + 40;
    QVERIFY2(descriptors() < bound, QByteArray::number(static_cast<int>(descriptors())).constData());
    // Connected clients are not disturbed.
    const Events events(*remote);
    QVERIFY(!events.done(*remote->finish())->error);
    int closed = 0;
    QVERIFY(until([&] {
      closed = 0;
      for (const auto& socket : silent) {
        socket->waitForReadyRead(0);
        closed += socket->state() == QTcpSocket::UnconnectedState ? 1 : 0;
      }
      return closed >= 400 - 64;
    }));
  }
  // Their places are free again.
  QVERIFY(fixture_->connect() != nullptr);
}

NS_TEST(TestControlLimits)
#include "test_limits.moc"
