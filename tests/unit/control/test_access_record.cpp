// The record of invitations to a core: its file, and the bounds of invitations.
#include <QTemporaryDir>
#include <QtTest>
#include <future>

#include "core/control/remote_access.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT

namespace {

const platform::Endpoint any_port_is_fine{platform::IpAddress::v4(127, 0, 0, 1), 1};

}  // namespace

class TestAccessRecord : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { folder_ = std::make_unique<QTemporaryDir>(); }
  void record_is_read_back_as_written();
  void changes_at_the_same_time_all_survive();
  void damaged_records_are_refused_data();
  void damaged_records_are_refused();
  void invitations_are_counted_and_named_within_bounds();
  void invitation_lasts_a_day_to_a_year_data();
  void invitation_lasts_a_day_to_a_year();
  void expired_invitations_make_room();

 private:
  std::string data() const { return folder_->path().toStdString(); }

  std::unique_ptr<QTemporaryDir> folder_;
  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  const std::unique_ptr<storage::FileEnv> files_ = storage::make_posix_file_env();
};

void TestAccessRecord::record_is_read_back_as_written() {
  auto access = control::make_remote_access(any_port_is_fine);
  QVERIFY(access.ok());
  const auto file = control::invite(*access, {.name = "a \"name\"", .address = "host.lan:9"}, "/d", entropy_,
                                    clock_.wall_now());
  QVERIFY(file.ok());
  QVERIFY(control::save_remote_access(*files_, data(), *access).ok());
  const auto read = control::load_remote_access(data());
  QVERIFY(read.ok() && read->has_value());
  QCOMPARE(control::format_remote_access(**read), control::format_remote_access(*access));
  QVERIFY(control::find_invitation(**read, file->cookie) != nullptr);
  QVERIFY(control::find_invitation(**read, file->cookie + "0") == nullptr);
  // The record betrays no cookie.
  QVERIFY(control::format_remote_access(*access).find(file->cookie) == std::string::npos);
  QCOMPARE(file->address, std::string("host.lan:9"));
  QCOMPARE(file->certificate, access->certificate);
}

// The second change begins while the first one is under way, so it must wait and then see the first.
void TestAccessRecord::changes_at_the_same_time_all_survive() {
  const auto add = [this](const std::string& name, const std::function<void()>& meanwhile) {
    const auto change = [&](std::optional<control::RemoteAccess>& access) -> Expected<void> {
      if (!access) {
        NS_ASSIGN_OR_RETURN(access, control::make_remote_access(any_port_is_fine));
      }
      NS_RETURN_IF_ERROR(
          control::invite(*access, {.name = name, .address = "h:1"}, "/d", entropy_, clock_.wall_now()));
      meanwhile();
      return {};
    };
    return control::change_remote_access(*files_, data(), clock_, change);
  };
  bool waits = false;
  std::future<Expected<void>> second;
  const Expected<void> first = add("first", [&] {
    second = std::async(std::launch::async, [&] { return add("second", [] {}); });
    waits = second.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout;
  });
  QVERIFY(first.ok());
  QVERIFY(second.get().ok());
  QVERIFY(waits);
  const auto read = control::load_remote_access(data());
  QVERIFY(read.ok() && read->has_value());
  QCOMPARE((*read)->invitations.size(), std::size_t{2});
  QCOMPARE((*read)->invitations[0].name, std::string("first"));
  QCOMPARE((*read)->invitations[1].name, std::string("second"));
}

void TestAccessRecord::damaged_records_are_refused_data() {
  QTest::addColumn<QString>("text");
  QTest::newRow("empty") << "";
  QTest::newRow("list") << "[]";
  QTest::newRow("no port")
      << R"({"listen":"1.2.3.4","certificate":"c","key":"k","client_certificate":"d","client_key":"l","invitations":[]})";
  QTest::newRow("no key") << R"({"listen":"1.2.3.4:5","certificate":"c","invitations":[]})";
  QTest::newRow("no key of invited programs")
      << R"({"listen":"1.2.3.4:5","certificate":"c","key":"k","client_certificate":"d","invitations":[]})";
  QTest::newRow("invitation of a number")
      << R"({"listen":"1.2.3.4:5","certificate":"c","key":"k","client_certificate":"d","client_key":"l","invitations":[7]})";
  const auto invitation = [](const QString& name, const QString& fields) {
    QTest::newRow(qPrintable(name))
        << QString(
               R"({"listen":"1.2.3.4:5","certificate":"c","key":"k","client_certificate":"d","client_key":"l",)"
               R"("invitations":[{"id":"01234567","name":"","cookie_sha256":"%1",%2}]})")
               .arg(QString(64, 'a'), fields);
  };
  invitation("unknown scope", R"("scope":"all","made":1,"expires":2)");
  invitation("no scope", R"("made":1,"expires":2)");
  invitation("no expiry", R"("scope":"look","made":1)");
  QTest::newRow("invitation without a hash")
      << R"({"listen":"1.2.3.4:5","certificate":"c","key":"k","client_certificate":"d","client_key":"l","invitations":[{"id":"01234567","name":""}]})";
}

void TestAccessRecord::damaged_records_are_refused() {
  QFETCH(QString, text);
  const auto parsed = control::parse_remote_access(text.toStdString());
  QVERIFY(!parsed.ok());
  QCOMPARE(parsed.error().code, ErrorCode::Corrupt);
}

void TestAccessRecord::invitations_are_counted_and_named_within_bounds() {
  auto access = control::make_remote_access(any_port_is_fine);
  QVERIFY(access.ok());
  const auto more = [&](const std::string& name) {
    return control::invite(*access, {.name = name, .address = "h:1"}, "/d", entropy_, clock_.wall_now());
  };
  QCOMPARE(more(std::string(control::max_invitation_name + 1, 'x')).error().code, ErrorCode::InvalidArgument);
  for (std::size_t i = 0; i < control::max_invitations; ++i) QVERIFY(more("x").ok());
  QCOMPARE(more("x").error().code, ErrorCode::Exhausted);
  QVERIFY(control::parse_remote_access(control::format_remote_access(*access)).ok());
  QVERIFY(control::format_remote_access(*access).size() < control::max_remote_access_bytes);
}

void TestAccessRecord::invitation_lasts_a_day_to_a_year_data() {
  QTest::addColumn<int>("days");
  QTest::addColumn<bool>("permitted");
  QTest::newRow("none") << 0 << false;
  QTest::newRow("negative") << -1 << false;
  QTest::newRow("a day") << 1 << true;
  QTest::newRow("a year") << 365 << true;
  QTest::newRow("longer") << 366 << false;
}

void TestAccessRecord::invitation_lasts_a_day_to_a_year() {
  QFETCH(int, days);
  QFETCH(bool, permitted);
  auto access = control::make_remote_access(any_port_is_fine);
  QVERIFY(access.ok());
  const auto file = control::invite(*access, {.name = "", .address = "h:1", .life = std::chrono::days(days)},
                                    "/d", entropy_, clock_.wall_now());
  QCOMPARE(file.ok(), permitted);
  QCOMPARE(access->invitations.size(), std::size_t{permitted ? 1u : 0u});
  if (!permitted) QCOMPARE(file.error().code, ErrorCode::InvalidArgument);
}

void TestAccessRecord::expired_invitations_make_room() {
  const WallTime now = clock_.wall_now();
  auto access = control::make_remote_access(any_port_is_fine);
  QVERIFY(access.ok());
  const auto more = [&](WallTime at) {
    return control::invite(*access, {.name = "", .address = "h:1", .life = std::chrono::days(1)}, "/d",
                           entropy_, at);
  };
  for (std::size_t i = 0; i < control::max_invitations; ++i) QVERIFY(more(now).ok());
  QVERIFY(!more(now + std::chrono::hours(23)).ok());
  QVERIFY(more(now + std::chrono::hours(24)).ok());
  QCOMPARE(access->invitations.size(), std::size_t{1});
}

NS_TEST(TestAccessRecord)
#include "test_access_record.moc"
