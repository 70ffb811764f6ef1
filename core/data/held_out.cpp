#include "core/data/held_out.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace neuroshard::data {
namespace {

std::uint64_t windows_in(const ShardEntry& shard, std::uint32_t sequence) {
  return (shard.tokens - 1) / sequence;
}

bool are_here(const Dataset& dataset, const std::vector<ShardId>& shards) {
  return std::all_of(shards.begin(), shards.end(), [&](ShardId id) { return dataset.is_here(id); });
}

// Those that are here count as used, so that the missing ones take the places of other shards.
Expected<void> fetch_all(Dataset& dataset, const std::vector<ShardId>& shards, const CancelToken& cancel) {
  for (const ShardId id : shards) {
    if (cancel.cancelled())
      return make_error(ErrorCode::Cancelled, "the held-out text is not needed any more");
    NS_RETURN_IF_ERROR(dataset.prefetch(id, cancel));
  }
  if (are_here(dataset, shards)) return {};
  return make_error(ErrorCode::Unsupported,
                    "the disk space for published data has no room for all of the held-out text; raise "
                    "disk_limit and start the node again");
}

}  // namespace

Expected<HeldOut> HeldOut::create(Dataset& dataset, std::uint32_t sequence, std::uint64_t max_tokens) {
  if (sequence == 0) return make_error(ErrorCode::InvalidArgument, "the sequence length must be at least 1");
  std::uint64_t longest = 0;
  for (const ShardEntry& shard : dataset.shards(Split::HeldOut)) longest = std::max(longest, shard.tokens);
  if (longest < 2) {
    return make_error(ErrorCode::NotFound, "this dataset holds out no text, so there is no validation loss");
  }
  HeldOut held_out;
  held_out.dataset_ = &dataset;
  held_out.sequence_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(sequence, longest - 1));
  std::uint64_t total = 0;
  for (const ShardEntry& shard : dataset.shards(Split::HeldOut))
    total += windows_in(shard, held_out.sequence_);
  const std::uint64_t wanted =
      max_tokens == 0 ? total : std::clamp<std::uint64_t>(max_tokens / held_out.sequence_, 1, total);
  held_out.windows_.reserve(static_cast<std::size_t>(wanted));
  std::uint64_t first = 0;  // number of the shard's first window
  std::uint64_t taken = 0;
  for (const ShardEntry& shard : dataset.shards(Split::HeldOut)) {
    const std::uint64_t count = windows_in(shard, held_out.sequence_);
    // Window floor(taken · total / wanted) for taken = 0, 1, …: evenly spaced over all of them.
    for (; taken < wanted; ++taken) {
      const std::uint64_t window = taken * total / wanted;
      if (window >= first + count) break;
      held_out.windows_.push_back({shard.id, (window - first) * held_out.sequence_});
    }
    first += count;
  }
  return held_out;
}

std::vector<ShardId> HeldOut::shards() const {
  std::vector<ShardId> shards;
  for (const Window& window : windows_)
    if (shards.empty() || shards.back() != window.shard) shards.push_back(window.shard);
  return shards;
}

Expected<HeldOut::Part> HeldOut::part(std::size_t first, std::size_t count, const CancelToken& cancel) const {
  if (first >= windows_.size() || count == 0) {
    return make_error(ErrorCode::InvalidArgument, "no held-out window has that number");
  }
  const std::size_t end = first + std::min(count, windows_.size() - first);
  Part part;
  part.batch.sequence_length = sequence_;
  part.batch.sequences = static_cast<std::uint32_t>(end - first);
  part.batch.shard_id = windows_[first].shard;
  std::shared_ptr<const ShardTokens> shard;
  for (std::size_t i = first; i < end; ++i) {
    const Window& window = windows_[i];
    if (!shard || shard->entry.id != window.shard) {
      NS_ASSIGN_OR_RETURN(shard, dataset_->load(window.shard, cancel));
    }
    const std::int32_t* from = shard->tokens.data() + window.start;
    part.batch.tokens.insert(part.batch.tokens.end(), from, from + sequence_);
    part.batch.targets.insert(part.batch.targets.end(), from + 1, from + 1 + sequence_);
    for (std::uint32_t t = 1; t <= sequence_; ++t) {
      part.target_bytes += dataset_->tokenizer().token_bytes(static_cast<TokenId>(from[t])).size();
    }
    if (i == first) part.batch.source = shard->entry.source;
  }
  return part;
}

Expected<void> HeldOutFetch::get(const HeldOut& text) {
  const Error busy = make_error(ErrorCode::Busy, "the held-out text is still being fetched");
  if (result_.valid()) {
    if (result_.wait_for(Duration{}) != std::future_status::ready) return busy;
    last_ = result_.get();
  }
  std::vector<ShardId> shards = text.shards();
  if (are_here(dataset_, shards)) return {};
  if (!last_.ok() && last_.error().code == ErrorCode::Unsupported) return last_;
  if (!begin(std::move(shards))) return busy;
  const Expected<void> failed = std::exchange(last_, Expected<void>());
  return failed.ok() ? Expected<void>(busy) : failed;
}

bool HeldOutFetch::begin(std::vector<ShardId> shards) {
  const auto task = std::make_shared<std::packaged_task<Expected<void>()>>(
      [dataset = &dataset_, shards = std::move(shards), cancel = cancel_.token()] {
        return fetch_all(*dataset, shards, cancel);
      });
  std::future<Expected<void>> result = task->get_future();
  if (!io_.post([task] { (*task)(); })) return false;
  result_ = std::move(result);
  return true;
}

}  // namespace neuroshard::data
