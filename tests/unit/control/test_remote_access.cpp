// Steering a core from another machine: off by default, by invitation only, gone when taken back.
#include <QFile>
#include <QRegularExpression>
#include <QSet>
#include <QTcpSocket>
#include <QtTest>

#include "core/control/remote_access.h"
#include "tests/support/test_main.h"
#include "tests/unit/control/control_fixture.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

namespace {

const platform::Endpoint any_port_is_fine{platform::IpAddress::v4(127, 0, 0, 1), 1};

// A port that nobody listens at just now.
std::uint16_t free_port() {
  QTcpSocket probe;
  return probe.bind(QHostAddress::LocalHost) ? probe.localPort() : 0;
}

}  // namespace

class TestRemoteAccess : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup() { fixture_.reset(); }
  void off_by_default();
  void the_record_goes_with_the_last_invitation();
  void the_core_tells_where_invited_programs_come_in();
  void record_open_to_others_is_not_believed();
  void invited_program_sees_and_steers();
  void looking_only();
  void every_call_has_a_scope();
  void expired_it_ends_at_once();
  void expired_it_ends_what_it_generates();
  void a_command_that_is_left_generates_no_more_data();
  void a_command_that_is_left_generates_no_more();
  void invited_programs_take_no_place_of_this_users_programs();
  void expired_invitation_opens_no_port();
  void invitation_lasts_over_a_restart_of_the_core();
  void taken_back_it_ends_at_once();
  void strangers_are_refused();
  void programs_without_the_shared_key_get_no_connection();
  void an_invitation_of_an_older_version_is_named();
  void taken_port_leaves_the_local_service();

 private:
  // Makes an invitation to a port of its own, before the core starts.
  void invite_and_start(control::Scope scope = control::Scope::Steer);
  void save(const control::RemoteAccess& access) {
    const auto saved = control::save_remote_access(*fixture_->files, fixture_->data(), access);
    QVERIFY2(saved.ok(), saved.ok() ? "" : saved.error().describe().c_str());
  }
  control::ConnectOptions remote_options() const {
    control::ConnectOptions options = fixture_->options();
    options.data_directory = options.runtime_directory = "/nowhere";
    options.control_file = fixture_->folder.filePath("invitation.json").toStdString();
    return options;
  }
  void write_invitation(const control::ControlFile& file) {
    const auto written = storage::write_file_atomic(*fixture_->files, remote_options().control_file,
                                                    as_bytes(control::format_control_file(file)));
    QVERIFY(written.ok());
  }

  // A client without manners that has the invitation.
  std::unique_ptr<wire::Control::Stub> raw_remote() const {
    const auto file = control::read_control_file(remote_options().control_file);
    if (!file.ok()) qFatal("%s", file.error().describe().c_str());
    const grpc::SslCredentialsOptions tls{file->certificate, file->client_key, file->client_certificate};
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("neuroshard-control");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return wire::Control::NewStub(
        grpc::CreateCustomChannel("ipv4:" + file->address, grpc::SslCredentials(tls), arguments));
  }
  void sign_as_invited(grpc::ClientContext* context) const {
    const auto file = control::read_control_file(remote_options().control_file);
    if (!file.ok()) qFatal("%s", file.error().describe().c_str());
    context->AddMetadata("neuroshard-cookie", file->cookie);
    context->AddMetadata("neuroshard-control", "1.0");
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }

  std::unique_ptr<ControlFixture> fixture_;
  control::RemoteAccess access_;
};

void TestRemoteAccess::init() {
  fixture_ = std::make_unique<ControlFixture>();
  QVERIFY(QDir().mkpath(QString::fromStdString(fixture_->data())));
}

void TestRemoteAccess::invite_and_start(control::Scope scope) {
  auto access = control::make_remote_access({platform::IpAddress::v4(127, 0, 0, 1), free_port()});
  QVERIFY(access.ok());
  access_ = std::move(*access);
  const auto file = control::invite(
      access_, {"laptop", platform::to_text(access_.listen), scope, control::default_invitation_life},
      fixture_->data(), fixture_->entropy, fixture_->clock.wall_now());
  QVERIFY(file.ok());
  write_invitation(*file);
  save(access_);
  QVERIFY(fixture_->start().ok());
}

void TestRemoteAccess::off_by_default() {
  QVERIFY(fixture_->start().ok());
  QCOMPARE(fixture_->server->remote_address(), std::string());
  QVERIFY(fixture_->connect() != nullptr);
}

void TestRemoteAccess::the_record_goes_with_the_last_invitation() {
  const auto change = [this](const control::AccessChange& how) {
    return control::change_remote_access(*fixture_->files, fixture_->data(), fixture_->clock, how);
  };
  const std::string path = control::remote_access_path(fixture_->data());
  QVERIFY(change([](auto& access) -> Expected<void> {
            NS_ASSIGN_OR_RETURN(access, control::make_remote_access(any_port_is_fine));
            return {};
          }).ok());
  QVERIFY(!fixture_->files->exists(path));
  invite_and_start();
  const auto refused = change([](auto& access) -> Expected<void> {
    access->invitations.clear();
    return make_error(ErrorCode::NotFound, "no such invitation");
  });
  QCOMPARE(refused.error().code, ErrorCode::NotFound);
  QVERIFY(fixture_->files->exists(path));
  QVERIFY(change([](auto& access) -> Expected<void> {
            access->invitations.clear();
            return {};
          }).ok());
  QVERIFY(!fixture_->files->exists(path));
}

void TestRemoteAccess::the_core_tells_where_invited_programs_come_in() {
  invite_and_start();
  QVERIFY(control::listens_for(fixture_->file(), access_));
  control::RemoteAccess moved = access_;
  moved.listen.port = 1;
  QVERIFY(!control::listens_for(fixture_->file(), moved));
  const auto other_key = control::make_remote_access(access_.listen);
  QVERIFY(other_key.ok());
  QVERIFY(!control::listens_for(fixture_->file(), *other_key));
  // An invitation to a core that began without one.
  fixture_->server.reset();
  QVERIFY(QFile::remove(QString::fromStdString(control::remote_access_path(fixture_->data()))));
  QVERIFY(fixture_->start().ok());
  save(access_);
  QVERIFY(!control::listens_for(fixture_->file(), access_));
}

void TestRemoteAccess::record_open_to_others_is_not_believed() {
  invite_and_start();
  fixture_->server.reset();
  QFile record(QString::fromStdString(control::remote_access_path(fixture_->data())));
  QVERIFY(record.setPermissions(record.permissions() | QFileDevice::ReadOther));
  QCOMPARE(control::load_remote_access(fixture_->data()).error().code, ErrorCode::Denied);
  QVERIFY(fixture_->start().ok());
  QCOMPARE(fixture_->server->remote_address(), std::string());
}

void TestRemoteAccess::looking_only() {
  invite_and_start(control::Scope::Look);
  const auto remote = control::connect(remote_options());
  QVERIFY(remote->wait_connected(std::chrono::seconds(20), {}).ok());
  const auto can = [](const control::RemoteNode& node) {
    const auto all = node.link().capabilities;
    return std::find(all.begin(), all.end(), "steer") != all.end();
  };
  QVERIFY(!can(*remote));
  QVERIFY(can(*fixture_->connect()));
  const bool before = fixture_->node.snapshot()->contributing;
  Events events(*remote);
  const auto id = remote->set_contributing(!before);
  QVERIFY(id.ok());
  const auto done = events.done(*id);
  QVERIFY(done && done->error);
  QCOMPARE(done->error->code, ErrorCode::Denied);
  QVERIFY2(done->error->message.find("--scope steer") != std::string::npos, done->error->message.c_str());
  QCOMPARE(fixture_->node.snapshot()->contributing, before);
  QCOMPARE(remote->link().state, control::LinkState::Connected);  // it still sees
}

// Every rpc of the protocol, called without a message: nobody without a cookie gets anywhere, and an invitation
// to look gets to the calls that are named here. A new call has to be named, or this fails.
void TestRemoteAccess::every_call_has_a_scope() {
  const QSet<QString> look{
      "Hello",         "Watch",        "QuerySeries", "QueryLogs",        "QueryCheckpoints",
      "QuerySettings", "QueryPrune",   "QuerySlots",  "QueryExperts",     "QueryData",
      "QueryTokens",   "QueryNetwork", "QueryRounds", "QueryEvaluations", "QueryWhatIf"};
  const QSet<QString> steer{
      "Command",         "Run",        "Cancel", "ReportSession", "TestReachability", "QueryInvitation",
      "ContinueNetwork", "RevokeNode", "HttpKey"};
  QFile proto(NS_CONTROL_PROTO);
  QVERIFY(proto.open(QIODevice::ReadOnly));
  static const QRegularExpression rpc("^\\s*rpc (\\w+)\\(", QRegularExpression::MultilineOption);
  QSet<QString> all;
  const QString text = QString::fromUtf8(proto.readAll());
  for (auto match = rpc.globalMatch(text); match.hasNext();) all << match.next().captured(1);
  QCOMPARE(all, look + steer);

  invite_and_start(control::Scope::Look);
  const std::string cookie = control::read_control_file(remote_options().control_file)->cookie;
  const auto denied = [&](const QString& name, const std::string& with) {
    return fixture_->call_without_message(name.toStdString(), with).error_code() ==
           grpc::StatusCode::PERMISSION_DENIED;
  };
  for (const QString& name : all) {
    QVERIFY2(denied(name, ""), qPrintable(name));
    QVERIFY2(denied(name, std::string(cookie.size(), '0')), qPrintable(name));
    QVERIFY2(denied(name, cookie) == steer.contains(name), qPrintable(name));
    QVERIFY2(!denied(name, fixture_->file().cookie), qPrintable(name));
  }
}

void TestRemoteAccess::expired_it_ends_at_once() {
  invite_and_start();
  const auto remote = control::connect(remote_options());
  QVERIFY(remote->wait_connected(std::chrono::seconds(20), {}).ok());
  access_.invitations[0].expires = fixture_->clock.wall_now();
  save(access_);
  QVERIFY(until([&] { return remote->link().state == control::LinkState::Refused; }));
  QCOMPARE(remote->link().error->code, ErrorCode::Denied);
  QVERIFY2(remote->link().error->message.find("expired") != std::string::npos,
           remote->link().error->message.c_str());
}

void TestRemoteAccess::expired_it_ends_what_it_generates() {
  invite_and_start();
  fixture_->node.hold_commands();
  const auto stub = raw_remote();
  grpc::ClientContext context;
  sign_as_invited(&context);
  wire::CommandRequest request;
  request.mutable_generate()->set_prompt("once");
  const auto reader = stub->Run(&context, request);
  wire::CommandUpdate update;
  QVERIFY(reader->Read(&update));
  QVERIFY(fixture_->node.held("generate") != 0);
  access_.invitations[0].expires = fixture_->clock.wall_now();
  save(access_);
  while (reader->Read(&update)) {
  }
  QCOMPARE(reader->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  QVERIFY(until([&] { return fixture_->node.held("generate") == 0; }));
}

void TestRemoteAccess::a_command_that_is_left_generates_no_more_data() {
  QTest::addColumn<bool>("expires");
  QTest::newRow("it expires") << true;
  QTest::newRow("the caller goes") << false;
}

void TestRemoteAccess::a_command_that_is_left_generates_no_more() {
  QFETCH(bool, expires);
  invite_and_start();
  fixture_->node.hold_commands();
  const auto stub = raw_remote();
  grpc::ClientContext context;
  sign_as_invited(&context);
  auto call = std::async(std::launch::async, [&] {
    wire::CommandRequest request;
    request.mutable_generate()->set_prompt("once");
    wire::CommandReply reply;
    return stub->Command(&context, request, &reply).error_code();
  });
  const bool begun = until([&] { return fixture_->node.held("generate") != 0; });
  if (expires) {
    access_.invitations[0].expires = fixture_->clock.wall_now();
    save(access_);
  } else {
    context.TryCancel();
  }
  const grpc::StatusCode code = call.get();
  QVERIFY(begun);
  QCOMPARE(code, expires ? grpc::StatusCode::PERMISSION_DENIED : grpc::StatusCode::CANCELLED);
  QVERIFY(until([&] { return fixture_->node.held("generate") == 0; }));
}

void TestRemoteAccess::invited_programs_take_no_place_of_this_users_programs() {
  invite_and_start(control::Scope::Look);
  struct Watching {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<wire::Update>> reader;
  };
  const auto stub = raw_remote();
  std::vector<std::unique_ptr<Watching>> all;
  std::size_t served = 0;
  for (std::size_t i = 0; i < control::ServerLimits().watchers; ++i) {
    all.push_back(std::make_unique<Watching>());
    sign_as_invited(&all.back()->context);
    all.back()->reader = stub->Watch(&all.back()->context, wire::WatchRequest());
    wire::Update update;
    if (all.back()->reader->Read(&update)) ++served;
  }
  QCOMPARE(served, control::ServerLimits().invited_watchers / 2);
  const auto local = fixture_->connect();
  QVERIFY(local != nullptr);
  const Events events(*local);
  const auto id = local->set_contributing(false);
  QVERIFY(id.ok());
  const auto done = events.done(*id);
  QVERIFY(done && !done->error);
  // A place that is given back can be taken again.
  for (const auto& one : all) one->context.TryCancel();
  const auto remote = control::connect(remote_options());
  QVERIFY(remote->wait_connected(std::chrono::seconds(20), {}).ok());
}

void TestRemoteAccess::expired_invitation_opens_no_port() {
  invite_and_start();
  fixture_->server.reset();
  access_.invitations[0].expires = fixture_->clock.wall_now();
  save(access_);
  QVERIFY(fixture_->start().ok());
  QCOMPARE(fixture_->server->remote_address(), std::string());
}

void TestRemoteAccess::invited_program_sees_and_steers() {
  invite_and_start();
  QCOMPARE(fixture_->server->remote_address(), platform::to_text(access_.listen));
  const auto remote = control::connect(remote_options());
  const auto connected = remote->wait_connected(std::chrono::seconds(20), {});
  QVERIFY2(connected.ok(), connected.ok() ? "" : connected.error().describe().c_str());
  QCOMPARE(remote->link().build, std::string("1.2.3"));
  Events events(*remote);
  const auto id = remote->set_contributing(false);
  QVERIFY(id.ok());
  const auto done = events.done(*id);
  QVERIFY(done && !done->error);
  QVERIFY(!remote->snapshot()->contributing);
  QVERIFY(fixture_->connect() != nullptr);  // this machine's programs come in as ever
}

void TestRemoteAccess::invitation_lasts_over_a_restart_of_the_core() {
  invite_and_start();
  const auto remote = control::connect(remote_options());
  QVERIFY(remote->wait_connected(std::chrono::seconds(20), {}).ok());
  fixture_->server.reset();
  QVERIFY(until([&] { return remote->link().state == control::LinkState::Lost; }));
  QVERIFY(fixture_->start().ok());
  QVERIFY(until([&] { return remote->link().state == control::LinkState::Connected; }));
}

void TestRemoteAccess::taken_back_it_ends_at_once() {
  invite_and_start();
  const auto remote = control::connect(remote_options());
  QVERIFY(remote->wait_connected(std::chrono::seconds(20), {}).ok());
  access_.invitations.clear();
  save(access_);
  QVERIFY(until([&] { return remote->link().state == control::LinkState::Refused; }));
  QCOMPARE(remote->link().error->code, ErrorCode::Denied);
}

void TestRemoteAccess::strangers_are_refused() {
  invite_and_start();
  auto file = control::read_control_file(remote_options().control_file);
  QVERIFY(file.ok());
  const std::string cookie = file->cookie;
  file->cookie = std::string(cookie.size(), '0');
  write_invitation(*file);
  const auto wrong_cookie = control::connect(remote_options());
  QCOMPARE(wrong_cookie->wait_connected(std::chrono::seconds(20), {}).error().code, ErrorCode::Denied);

  // An impostor at the address has another key.
  auto other = control::make_remote_access(any_port_is_fine);
  QVERIFY(other.ok());
  file->cookie = cookie;
  file->certificate = other->certificate;
  write_invitation(*file);
  const auto wrong_key = control::connect(remote_options());
  QCOMPARE(wrong_key->wait_connected(std::chrono::seconds(20), {}).error().code, ErrorCode::Denied);
}

// A right cookie is of no use either: TLS ends before the first byte of a call.
void TestRemoteAccess::programs_without_the_shared_key_get_no_connection() {
  invite_and_start();
  const auto file = control::read_control_file(remote_options().control_file);
  QVERIFY(file.ok());
  const auto other = control::make_remote_access(any_port_is_fine);
  QVERIFY(other.ok());
  const auto served = [&](const std::string& certificate, const std::string& key) {
    grpc::SslCredentialsOptions tls{file->certificate, key, certificate};
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("neuroshard-control");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel =
        grpc::CreateCustomChannel("ipv4:" + file->address, grpc::SslCredentials(tls), arguments);
    grpc::ClientContext context;
    context.AddMetadata("neuroshard-cookie", file->cookie);
    context.AddMetadata("neuroshard-control", "1.0");
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    wire::HelloReply reply;
    return wire::Control::NewStub(channel)->Hello(&context, wire::HelloRequest(), &reply).ok();
  };
  QVERIFY(served(file->client_certificate, file->client_key));
  QVERIFY(!served("", ""));
  QVERIFY(!served(other->client_certificate, other->client_key));
}

void TestRemoteAccess::an_invitation_of_an_older_version_is_named() {
  invite_and_start();
  auto file = control::read_control_file(remote_options().control_file);
  QVERIFY(file.ok());
  file->client_certificate.clear();
  file->client_key.clear();
  write_invitation(*file);
  const auto read = control::read_control_file(remote_options().control_file);
  QVERIFY(!read.ok());
  QCOMPARE(read.error().code, ErrorCode::Unsupported);
  QVERIFY2(read.error().message.find("control invite") != std::string::npos, read.error().message.c_str());
}

void TestRemoteAccess::taken_port_leaves_the_local_service() {
  invite_and_start();
  ControlFixture second;
  QVERIFY(QDir().mkpath(QString::fromStdString(second.data())));
  QVERIFY(control::save_remote_access(*second.files, second.data(), access_).ok());
  QVERIFY(second.start().ok());
  QCOMPARE(second.server->remote_address(), std::string());
  QVERIFY(second.connect() != nullptr);
}

NS_TEST(TestRemoteAccess)
#include "test_remote_access.moc"
