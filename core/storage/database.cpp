#include "core/storage/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <limits>

#include "core/base/check.h"

namespace neuroshard::storage {
namespace {

ErrorCode code_of(int result) {
  switch (result & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return ErrorCode::Busy;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return ErrorCode::Denied;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG: return ErrorCode::Exhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return ErrorCode::Corrupt;
    case SQLITE_CANTOPEN: return ErrorCode::NotFound;
    case SQLITE_CONSTRAINT: return ErrorCode::AlreadyExists;
    case SQLITE_IOERR: return ErrorCode::Io;
    default: return ErrorCode::Internal;
  }
}

std::string_view advice(ErrorCode code) {
  switch (code) {
    case ErrorCode::Busy: return "another program has locked it; try again when that program has finished";
    case ErrorCode::Denied: return "it is read-only; check its owner and access rights";
    case ErrorCode::Exhausted: return "the disk or memory is full; free some space";
    case ErrorCode::Corrupt: return "it is damaged or not a database; move it away or restore a backup";
    case ErrorCode::NotFound: return "it cannot be opened; check that the folder exists and is yours";
    case ErrorCode::AlreadyExists: return "a rule of the table forbids this";
    case ErrorCode::Io: return "the disk reported an error; check it";
    default: return "unexpected";
  }
}

Error sqlite_error(sqlite3* connection, int result, std::string_view what, std::string_view path) {
  const ErrorCode code = code_of(result);
  const char* detail = connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(result);
  return make_error(code, fmt::format("cannot {} {}: {} ({})", what, path, advice(code), detail));
}

int blob_size(std::size_t size) {
  NS_CHECK(size <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  return static_cast<int>(size);
}

}  // namespace

Statement& Statement::operator=(Statement&& other) noexcept {
  if (this != &other) {
    sqlite3_finalize(statement_);
    statement_ = std::exchange(other.statement_, nullptr);
  }
  return *this;
}
Statement::~Statement() {
  sqlite3_finalize(statement_);
}

void Statement::bind(int index, std::int64_t value) {
  NS_CHECK(sqlite3_bind_int64(statement_, index, value) == SQLITE_OK);
}
void Statement::bind(int index, double value) {
  NS_CHECK(sqlite3_bind_double(statement_, index, value) == SQLITE_OK);
}
void Statement::bind(int index, std::string_view value) {
  const char* data = value.data() != nullptr ? value.data() : "";
  NS_CHECK(sqlite3_bind_text(statement_, index, data, blob_size(value.size()), SQLITE_TRANSIENT) ==
           SQLITE_OK);
}
void Statement::bind(int index, ByteSpan value) {
  const void* data = value.data() != nullptr ? static_cast<const void*>(value.data()) : "";
  NS_CHECK(sqlite3_bind_blob(statement_, index, data, blob_size(value.size()), SQLITE_TRANSIENT) ==
           SQLITE_OK);
}
void Statement::bind_null(int index) {
  NS_CHECK(sqlite3_bind_null(statement_, index) == SQLITE_OK);
}

Expected<bool> Statement::step() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  sqlite3* connection = sqlite3_db_handle(statement_);
  const char* file = sqlite3_db_filename(connection, "main");
  Error failure = sqlite_error(connection, result, "use", file != nullptr ? file : "the database");
  sqlite3_reset(statement_);
  return failure;
}

Expected<void> Statement::run() {
  for (;;) {
    NS_ASSIGN_OR_RETURN(const bool row, step());
    if (!row) break;
  }
  reset();
  return {};
}

void Statement::reset() {
  sqlite3_reset(statement_);
}

bool Statement::column_is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
std::int64_t Statement::column_int(int column) const {
  return sqlite3_column_int64(statement_, column);
}
double Statement::column_double(int column) const {
  return sqlite3_column_double(statement_, column);
}
std::string_view Statement::column_text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}
ByteSpan Statement::column_blob(int column) const {
  const auto* data = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_, column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Expected<Database> Database::open(const std::string& path, const DatabaseOptions& options) {
  int flags = options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (!options.read_only && options.create) flags |= SQLITE_OPEN_CREATE;
  sqlite3* connection = nullptr;
  const int result = sqlite3_open_v2(path.c_str(), &connection, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(connection, path);  // closes the connection also when opening failed
  if (result != SQLITE_OK) return database.error(result, "open");
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, options.busy_timeout_ms);
  NS_RETURN_IF_ERROR(database.execute("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"));
  if (!options.read_only) {
    NS_RETURN_IF_ERROR(database.execute("PRAGMA journal_mode = WAL;"));
    NS_RETURN_IF_ERROR(
        database.execute(options.durable ? "PRAGMA synchronous = FULL;" : "PRAGMA synchronous = NORMAL;"));
  }
  // The pragmas above do not read the file of a read-only database; this does, and finds a damaged one.
  NS_RETURN_IF_ERROR(database.user_version());
  return database;
}

Database::Database(Database&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)), path_(std::move(other.path_)) {}

Database& Database::operator=(Database&& other) noexcept {
  if (this != &other) {
    close();
    connection_ = std::exchange(other.connection_, nullptr);
    path_ = std::move(other.path_);
  }
  return *this;
}

Database::~Database() {
  close();
}

void Database::close() {
  // v2: a statement that wrongly outlives the database keeps the connection alive instead of dangling.
  sqlite3_close_v2(std::exchange(connection_, nullptr));
}

Error Database::error(int code, std::string_view what) const {
  return sqlite_error(connection_, code, what, path_);
}

Expected<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v2(connection_, sql.data(), blob_size(sql.size()), &statement, nullptr);
  if (result != SQLITE_OK) return error(result, "use");
  NS_CHECK(statement != nullptr);  // empty text
  return Statement(statement);
}

Expected<void> Database::execute(const char* sql) {
  const int result = sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return error(result, "use");
  return {};
}

std::int64_t Database::last_insert_id() const {
  return sqlite3_last_insert_rowid(connection_);
}
std::int64_t Database::changed_rows() const {
  return sqlite3_changes64(connection_);
}

Expected<std::int32_t> Database::user_version() {
  NS_ASSIGN_OR_RETURN(Statement statement, prepare("PRAGMA user_version"));
  NS_ASSIGN_OR_RETURN(const bool row, statement.step());
  return row ? static_cast<std::int32_t>(statement.column_int(0)) : 0;
}

Expected<void> Database::backup(std::int32_t version) {
  NS_ASSIGN_OR_RETURN(Statement tables, prepare("SELECT count(*) FROM sqlite_schema"));
  NS_ASSIGN_OR_RETURN(const bool row, tables.step());
  const bool empty = !row || tables.column_int(0) == 0;
  tables.reset();
  if (empty || path_ == ":memory:") return {};
  // VACUUM INTO wants a file that does not exist or is empty: an earlier try's backup gets a counter beside
  // it.
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string target = attempt == 0 ? fmt::format("{}.v{}.bak", path_, version)
                                            : fmt::format("{}.v{}.{}.bak", path_, version, attempt);
    NS_ASSIGN_OR_RETURN(Statement copy, prepare("VACUUM INTO ?1"));
    copy.bind(1, std::string_view(target));
    Expected<void> done = copy.run();
    if (done.ok()) return {};
    const bool exists = done.error().message.find("already exists") != std::string::npos;
    if (!exists) return std::move(done).error().with_context("backing up before an upgrade");
  }
  return make_error(ErrorCode::AlreadyExists,
                    fmt::format("there are too many backups beside {}; move the old .bak files away", path_));
}

Expected<void> Database::migrate(Span<const Migration> migrations) {
  std::int32_t newest = 0;
  for (const Migration& migration : migrations) {
    NS_CHECK(migration.to_version > newest);
    newest = migration.to_version;
  }
  NS_ASSIGN_OR_RETURN(std::int32_t version, user_version());
  if (version > newest) {
    return make_error(
        ErrorCode::Unsupported,
        fmt::format("{} was written by a newer version of this program (format {}, this version reads {}); "
                    "install the newer version",
                    path_, version, newest));
  }
  if (version == newest) return {};
  NS_RETURN_IF_ERROR(backup(version));
  for (const Migration& migration : migrations) {
    if (migration.to_version <= version) continue;
    NS_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*this));
    NS_RETURN_IF_ERROR(execute(migration.sql));
    // A pragma takes no bound value; the number is our own.
    NS_RETURN_IF_ERROR(execute(fmt::format("PRAGMA user_version = {}", migration.to_version).c_str()));
    NS_RETURN_IF_ERROR(transaction.commit());
    version = migration.to_version;
  }
  return {};
}

Expected<Transaction> Transaction::begin(Database& database) {
  NS_RETURN_IF_ERROR(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  if (database_ != nullptr)
    (void)database_->execute("ROLLBACK");  // fails only when SQLite already rolled back
}

Expected<void> Transaction::commit() {
  NS_CHECK(database_ != nullptr);
  NS_RETURN_IF_ERROR(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace neuroshard::storage
