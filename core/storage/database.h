// SQLite, wrapped: one connection, prepared statements with bound values, transactions, and schema migration
// by user_version. Opened in WAL mode with foreign keys on. SQLite's own header stays out of ours.
//
// Threads: a Database and its statements belong to one thread at a time.
// Errors: NotFound, Denied (read-only), Exhausted (disk full), Busy (locked by another process), Corrupt (not
// a database, or damaged), AlreadyExists (a constraint was violated), Unsupported (written by a newer
// program), Io.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"

struct sqlite3;
struct sqlite3_stmt;

namespace neuroshard::storage {

// A prepared statement. Values are bound, never pasted into the text. Must not outlive its Database.
//
//   NS_ASSIGN_OR_RETURN(Statement find, database.prepare("SELECT name FROM peers WHERE age > ?1"));
//   find.bind(1, std::int64_t{30});
//   for (;;) { NS_ASSIGN_OR_RETURN(bool row, find.step()); if (!row) break; use(find.column_text(0)); }
class Statement {
 public:
  Statement(Statement&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  // index is the number in ?1, ?2 …; an index that the text lacks is a bug. Text and blobs are copied.
  void bind(int index, std::int64_t value);
  void bind(int index, double value);
  void bind(int index, std::string_view value);
  void bind(int index, ByteSpan value);
  void bind_null(int index);

  // True: a row stands ready. False: done; the statement may be reset and used again.
  Expected<bool> step();
  // step() until done, then reset(): for statements that return nothing.
  Expected<void> run();
  // Back to the start; bound values stay.
  void reset();

  // Columns count from 0; valid until the next step() or reset(). NULL reads as 0, 0.0, "" or no bytes.
  bool column_is_null(int column) const;
  std::int64_t column_int(int column) const;
  double column_double(int column) const;
  std::string_view column_text(int column) const;
  ByteSpan column_blob(int column) const;

 private:
  friend class Database;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  sqlite3_stmt* statement_ = nullptr;
};

// One step forward of a schema. Its text may hold several statements; it runs inside a transaction.
struct Migration {
  std::int32_t to_version = 0;
  const char* sql = "";
};

struct DatabaseOptions {
  bool read_only = false;
  bool create = true;
  // false: after a power cut the last transactions may be missing, but the database is whole (history,
  // caches). true: a committed transaction is on the disk.
  bool durable = false;
  std::int32_t busy_timeout_ms = 5000;
};

class Database {
 public:
  // ":memory:" opens a private database in memory.
  static Expected<Database> open(const std::string& path, const DatabaseOptions& options = {});
  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;
  ~Database();

  Expected<Statement> prepare(std::string_view sql);
  // Constant text only, several statements allowed. Whatever carries a value is prepared and bound.
  Expected<void> execute(const char* sql);

  std::int64_t last_insert_id() const;
  std::int64_t changed_rows() const;
  const std::string& path() const { return path_; }

  Expected<std::int32_t> user_version();
  // Brings the schema forward. migrations: ascending to_version. A database that holds something is
  // first copied to "<path>.v<old version>.bak"; each step is one transaction, so a failure leaves the
  // version before it. Unsupported when the database is newer than the last migration; it is then left as it
  // is.
  Expected<void> migrate(Span<const Migration> migrations);

 private:
  Database(sqlite3* connection, std::string path) : connection_(connection), path_(std::move(path)) {}
  Error error(int code, std::string_view what) const;
  Expected<void> backup(std::int32_t version);
  void close();

  sqlite3* connection_ = nullptr;
  std::string path_;
};

// BEGIN IMMEDIATE now; rolls back on destruction unless committed. No nesting.
class Transaction {
 public:
  static Expected<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Expected<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace neuroshard::storage
