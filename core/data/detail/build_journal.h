// The finished part of an interrupted `genesis build`: OUT/.work/plan.json identifies its text and settings,
// OUT/.work/done.jsonl has one line per finished shard. A torn last line is dropped; its shard is written
// again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/data/detail/shard_encoder.h"
#include "core/data/manifest.h"
#include "core/storage/file_env.h"

namespace neuroshard::data::detail {

inline constexpr const char* work_folder = ".work";

struct FinishedShard {
  ShardEntry entry;
  std::uint32_t stream = 0;  // 2 · source + (held out ? 1 : 0)
  CorpusPosition position;   // where the stream goes on
};

class BuildJournal {
 public:
  BuildJournal(storage::FileEnv& env, const std::string& output_directory)
      : env_(env), folder_(output_directory + "/" + work_folder) {}

  // Of the interrupted build; empty if there is none.
  Expected<std::string> plan();
  Expected<void> start(const std::string& plan);
  // In the order in which they were finished.
  Expected<std::vector<FinishedShard>> finished();
  // On the disk when this returns.
  Expected<void> append(const FinishedShard& shard);
  Expected<void> remove();

 private:
  std::string plan_path() const { return folder_ + "/plan.json"; }
  std::string done_path() const { return folder_ + "/done.jsonl"; }

  storage::FileEnv& env_;
  const std::string folder_;
};

}  // namespace neuroshard::data::detail
