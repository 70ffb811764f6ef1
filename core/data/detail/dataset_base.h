// Code shared by the two kinds of dataset: the lists of shards and the small cache of loaded ones.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace neuroshard::data::detail {

inline constexpr std::size_t max_loaded_shards =
    2;  // 10 MB each; training and evaluation alternate between two

class DatasetBase : public Dataset {
 public:
  DatasetBase(storage::FileEnv& env, Manifest manifest, std::shared_ptr<const Tokenizer> tokenizer);

  const Manifest& manifest() const override { return manifest_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const std::vector<ShardEntry>& shards(Split split) const override {
    return split == Split::Train ? train_ : held_out_;
  }
  Expected<std::shared_ptr<const ShardTokens>> load(ShardId id, const CancelToken& cancel) override;

 protected:
  // Makes the shard's file available and returns its path.
  virtual Expected<std::string> fetch(const ShardEntry& entry, const CancelToken& cancel) = 0;
  // The fetched file turned out not to be what the manifest says. True: it is removed, and the next fetch()
  // gets another one.
  virtual bool discard(const ShardEntry& entry) {
    (void)entry;
    return false;
  }

  storage::FileEnv& env_;

 private:
  Expected<std::vector<std::int32_t>> read(const ShardEntry& entry, const CancelToken& cancel);

  const Manifest manifest_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<ShardEntry> train_;
  std::vector<ShardEntry> held_out_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<const ShardTokens>> loaded_;  // newest first
  std::set<ShardId> discarded_;  // damaged and not read since: a second damaged copy is an error
};

}  // namespace neuroshard::data::detail
