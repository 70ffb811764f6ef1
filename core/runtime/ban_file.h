// D/peers.bans: the bans of this node (net/ban_list.h), for its next start. Strangers decide when bans change, so
// the file is written once a minute at most, and at the stop.
//
// Threads: one. Errors are warnings in the log; a file that can't be written is not tried again before the next
// change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/net/ban_list.h"
#include "core/storage/file_env.h"

namespace neuroshard::runtime {

class BanFile {
 public:
  static constexpr Duration pause = std::chrono::minutes(1);

  // All outlive it.
  BanFile(storage::FileEnv& files, const std::string& data_directory, Logger& logger);

  // Empty when there is none, or it can't be read.
  Bytes read() const;
  // The list is as the file says.
  void note_saved(const net::BanList& bans) { saved_ = bans.changes(); }
  // Writes a list that has changed, unless the last write was a moment ago.
  void save(const net::BanList& bans, MonotonicTime now);
  // The same without the wait.
  void save_now(const net::BanList& bans, MonotonicTime now);

 private:
  storage::FileEnv& files_;
  Logger& logger_;
  const std::string path_;
  std::uint64_t saved_ = 0;  // BanList::changes() when it was written
  std::optional<MonotonicTime> written_;
};

}  // namespace neuroshard::runtime
