// The SQLite wrapper: values, transactions, errors in words, and migration that only goes forward.
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include "core/storage/database.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::storage;

namespace {
const Migration first_only[] = {
    {1, "CREATE TABLE peer (name TEXT PRIMARY KEY, score REAL, seen INTEGER, blob BLOB);"}};
const Migration both[] = {first_only[0],
                          {2,
                           "ALTER TABLE peer ADD COLUMN note TEXT DEFAULT 'none';"
                           "CREATE TABLE extra (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"}};
const Migration broken[] = {first_only[0], {2, "CREATE TABLE more (x); THIS IS NOT SQL;"}};

std::int64_t count(Database& database, const char* sql) {
  auto statement = database.prepare(sql).value();
  return statement.step().value() ? statement.column_int(0) : -1;
}
void add_peer(Database& database, std::string_view name) {
  auto insert =
      database.prepare("INSERT INTO peer (name, score, seen, blob) VALUES (?1, ?2, ?3, ?4)").value();
  insert.bind(1, name);
  insert.bind(2, 0.5);
  insert.bind(3, std::int64_t{1} << 40);
  const std::uint8_t blob[] = {0, 1, 255};
  insert.bind(4, ByteSpan(blob));
  QVERIFY(insert.run().ok());
}
}  // namespace

class TestDatabase : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    path_ = folder_->path().toStdString() + "/state.db";
  }

  void values_round_trip() {
    auto database = Database::open(path_).value();
    QVERIFY(database.migrate(first_only).ok());
    const std::string hostile = "x'); DROP TABLE peer; --";
    add_peer(database, hostile);
    auto find = database.prepare("SELECT name, score, seen, blob FROM peer WHERE name = ?1").value();
    find.bind(1, std::string_view(hostile));
    QVERIFY(find.step().value());
    QCOMPARE(std::string(find.column_text(0)), hostile);
    QCOMPARE(find.column_double(1), 0.5);
    QCOMPARE(find.column_int(2), std::int64_t{1} << 40);
    QCOMPARE(find.column_blob(3).size(), std::size_t{3});
    QCOMPARE(find.column_blob(3)[2], std::uint8_t{255});
    QVERIFY(!find.step().value());
    find.reset();
    find.bind_null(1);
    QVERIFY(!find.step().value());
  }

  void survives_reopening_in_wal() {
    {
      auto database = Database::open(path_, {.durable = true}).value();
      QVERIFY(database.migrate(first_only).ok());
      add_peer(database, "a");
    }
    auto again = Database::open(path_).value();
    QCOMPARE(count(again, "SELECT count(*) FROM peer"), std::int64_t{1});
    auto mode = again.prepare("PRAGMA journal_mode").value();
    QVERIFY(mode.step().value());
    QCOMPARE(std::string(mode.column_text(0)), std::string("wal"));
  }

  void transactions_are_all_or_nothing() {
    auto database = Database::open(path_).value();
    QVERIFY(database.migrate(first_only).ok());
    {
      auto transaction = Transaction::begin(database).value();
      add_peer(database, "a");
    }
    QCOMPARE(count(database, "SELECT count(*) FROM peer"), std::int64_t{0});
    {
      auto transaction = Transaction::begin(database).value();
      add_peer(database, "a");
      QVERIFY(transaction.commit().ok());
    }
    QCOMPARE(count(database, "SELECT count(*) FROM peer"), std::int64_t{1});
  }

  void errors_have_codes() {
    auto database = Database::open(path_).value();
    QVERIFY(database.migrate(first_only).ok());
    add_peer(database, "a");
    auto insert = database.prepare("INSERT INTO peer (name) VALUES ('a')").value();
    QCOMPARE(insert.run().error().code, ErrorCode::AlreadyExists);
    auto reader = Database::open(path_, {.read_only = true}).value();
    QCOMPARE(reader.execute("DELETE FROM peer").error().code, ErrorCode::Denied);
    QCOMPARE(Database::open(path_ + "/none/x").error().code, ErrorCode::NotFound);
    auto transaction = Transaction::begin(database).value();
    auto second = Database::open(path_, {.busy_timeout_ms = 0}).value();
    QCOMPARE(Transaction::begin(second).error().code, ErrorCode::Busy);
  }

  void a_damaged_file_is_said_to_be_damaged() {
    QFile file(QString::fromStdString(path_));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(QByteArray(4096, 'x'));
    file.close();
    QCOMPARE(Database::open(path_).error().code, ErrorCode::Corrupt);
  }

  void migrates_forward_after_a_backup() {
    {
      auto database = Database::open(path_).value();
      QVERIFY(database.migrate(first_only).ok());
      add_peer(database, "kept");
    }
    auto database = Database::open(path_).value();
    QVERIFY(database.migrate(both).ok());
    QCOMPARE(database.user_version().value(), 2);
    QCOMPARE(count(database, "SELECT count(*) FROM peer WHERE name = 'kept' AND note = 'none'"),
             std::int64_t{1});
    auto backup = Database::open(path_ + ".v1.bak", {.create = false}).value();
    QCOMPARE(backup.user_version().value(), 1);
    QCOMPARE(count(backup, "SELECT count(*) FROM peer"), std::int64_t{1});
    QVERIFY(database.migrate(both).ok());  // nothing to do
  }

  void a_failed_migration_changes_nothing() {
    auto database = Database::open(path_).value();
    QVERIFY(database.migrate(first_only).ok());
    add_peer(database, "kept");
    QVERIFY(!database.migrate(broken).ok());
    QVERIFY(!database.migrate(broken)
                 .ok());  // the second try finds the first one's backup and still fails cleanly
    QCOMPARE(database.user_version().value(), 1);
    QCOMPARE(count(database, "SELECT count(*) FROM sqlite_schema WHERE name = 'more'"), std::int64_t{0});
    QCOMPARE(count(database, "SELECT count(*) FROM peer"), std::int64_t{1});
  }

  void a_newer_database_is_refused_and_kept() {
    auto database = Database::open(path_).value();
    QVERIFY(database.migrate(both).ok());
    const auto refused = database.migrate(first_only);
    QCOMPARE(refused.error().code, ErrorCode::Unsupported);
    QVERIFY(refused.error().message.find("newer version") != std::string::npos);
    QCOMPARE(database.user_version().value(), 2);
  }

 private:
  std::unique_ptr<QTemporaryDir> folder_;
  std::string path_;
};

NS_TEST(TestDatabase)
#include "test_database.moc"
