// Steering a core from another machine: off by default, by invitation only, gone when taken back.
#include <QFile>
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
  void record_is_read_back_as_written();
  void damaged_records_are_refused_data();
  void damaged_records_are_refused();
  void record_open_to_others_is_not_believed();
  void invitations_are_counted_and_named_within_bounds();
  void invited_program_sees_and_steers();
  void invitation_lasts_over_a_restart_of_the_core();
  void taken_back_it_ends_at_once();
  void strangers_are_refused();
  void taken_port_leaves_the_local_service();

 private:
  // Makes an invitation to a port of its own, before the core starts.
  void invite_and_start();
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

  std::unique_ptr<ControlFixture> fixture_;
  control::RemoteAccess access_;
};

void TestRemoteAccess::init() {
  fixture_ = std::make_unique<ControlFixture>();
  QVERIFY(QDir().mkpath(QString::fromStdString(fixture_->data())));
}

void TestRemoteAccess::invite_and_start() {
  auto access = control::make_remote_access({platform::IpAddress::v4(127, 0, 0, 1), free_port()},
                                            fixture_->clock.wall_now());
  QVERIFY(access.ok());
  access_ = std::move(*access);
  const auto file = control::invite(access_, "laptop", platform::to_text(access_.listen), fixture_->data(),
                                    fixture_->entropy, fixture_->clock.wall_now());
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

void TestRemoteAccess::record_is_read_back_as_written() {
  auto access = control::make_remote_access(any_port_is_fine, fixture_->clock.wall_now());
  QVERIFY(access.ok());
  const auto file = control::invite(*access, "a \"name\"", "host.lan:9", "/d", fixture_->entropy,
                                    fixture_->clock.wall_now());
  QVERIFY(file.ok());
  save(*access);
  const auto read = control::load_remote_access(fixture_->data());
  QVERIFY(read.ok() && read->has_value());
  QCOMPARE(control::format_remote_access(**read), control::format_remote_access(*access));
  QVERIFY(control::find_invitation(**read, file->cookie) != nullptr);
  QVERIFY(control::find_invitation(**read, file->cookie + "0") == nullptr);
  // The record betrays no cookie.
  QVERIFY(control::format_remote_access(*access).find(file->cookie) == std::string::npos);
  QCOMPARE(file->address, std::string("host.lan:9"));
  QCOMPARE(file->certificate, access->certificate);
}

void TestRemoteAccess::damaged_records_are_refused_data() {
  QTest::addColumn<QString>("text");
  QTest::newRow("empty") << "";
  QTest::newRow("list") << "[]";
  QTest::newRow("no port") << R"({"listen":"1.2.3.4","certificate":"c","key":"k","invitations":[]})";
  QTest::newRow("no key") << R"({"listen":"1.2.3.4:5","certificate":"c","invitations":[]})";
  QTest::newRow("invitation of a number")
      << R"({"listen":"1.2.3.4:5","certificate":"c","key":"k","invitations":[7]})";
  QTest::newRow("invitation without a hash")
      << R"({"listen":"1.2.3.4:5","certificate":"c","key":"k","invitations":[{"id":"01234567","name":""}]})";
}

void TestRemoteAccess::damaged_records_are_refused() {
  QFETCH(QString, text);
  const auto parsed = control::parse_remote_access(text.toStdString());
  QVERIFY(!parsed.ok());
  QCOMPARE(parsed.error().code, ErrorCode::Corrupt);
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

void TestRemoteAccess::invitations_are_counted_and_named_within_bounds() {
  auto access = control::make_remote_access(any_port_is_fine, fixture_->clock.wall_now());
  QVERIFY(access.ok());
  const auto more = [&](const std::string& name) {
    return control::invite(*access, name, "h:1", "/d", fixture_->entropy, fixture_->clock.wall_now());
  };
  QCOMPARE(more(std::string(control::max_invitation_name + 1, 'x')).error().code, ErrorCode::InvalidArgument);
  for (std::size_t i = 0; i < control::max_invitations; ++i) QVERIFY(more("x").ok());
  QCOMPARE(more("x").error().code, ErrorCode::Exhausted);
  QVERIFY(control::parse_remote_access(control::format_remote_access(*access)).ok());
  QVERIFY(control::format_remote_access(*access).size() < control::max_remote_access_bytes);
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
  auto other = control::make_remote_access(any_port_is_fine, fixture_->clock.wall_now());
  QVERIFY(other.ok());
  file->cookie = cookie;
  file->certificate = other->certificate;
  write_invitation(*file);
  const auto wrong_key = control::connect(remote_options());
  QCOMPARE(wrong_key->wait_connected(std::chrono::seconds(20), {}).error().code, ErrorCode::Denied);
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
