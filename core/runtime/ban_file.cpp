#include "core/runtime/ban_file.h"

#include <fmt/format.h>

namespace neuroshard::runtime {

BanFile::BanFile(storage::FileEnv& files, const std::string& data_directory, Logger& logger)
    : files_(files), logger_(logger), path_(data_directory + "/peers.bans") {}

Bytes BanFile::read() const {
  if (!files_.exists(path_)) return {};
  auto bans = storage::read_file(files_, path_, net::max_ban_file_bytes);
  if (bans.ok()) return std::move(*bans);
  logger_.warning("swarm", fmt::format("{} is not used: {}", path_, bans.error().message));
  return {};
}

void BanFile::save(const net::BanList& bans, MonotonicTime now) {
  if (!written_ || now - *written_ >= pause) save_now(bans, now);
}

void BanFile::save_now(const net::BanList& bans, MonotonicTime now) {
  const std::uint64_t changes = bans.changes();
  if (changes == saved_) return;
  const auto written = storage::write_file_atomic(files_, path_, bans.encode());
  if (!written.ok()) logger_.warning("swarm", "the bans were not saved: " + written.error().describe());
  saved_ = changes;
  written_ = now;
}

}  // namespace neuroshard::runtime
