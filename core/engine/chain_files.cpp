#include "core/engine/chain_files.h"

#include <fmt/format.h>

#include <utility>

namespace neuroshard::engine {
namespace {

constexpr std::uint64_t longest_record = std::uint64_t{64} << 20;
constexpr std::size_t writes_under_way = 1024;
constexpr std::size_t most_held = 64;      // blocks
constexpr std::size_t states_waiting = 3;  // of a row

}  // namespace

ChainFiles::ChainFiles(storage::FileEnv& files, std::string folder, std::size_t earlier, Logger& logger,
                       Executor& node)
    : files_(files),
      folder_(std::move(folder)),
      rows_{files, folder_, earlier},
      logger_(logger),
      node_(std::make_shared<net::Mailbox>(node)),
      disk_(make_thread_executor("ns-chain-disk", writes_under_way)) {}

ChainFiles::~ChainFiles() {
  release();
  disk_.reset();
}

Expected<std::unique_ptr<ChainFiles>> ChainFiles::open(storage::FileEnv& files, std::string folder,
                                                       std::size_t earlier, Logger& logger, Executor& node) {
  NS_RETURN_IF_ERROR(files.create_directories(folder));
  std::unique_ptr<ChainFiles> all(new ChainFiles(files, std::move(folder), earlier, logger, node));
  NS_ASSIGN_OR_RETURN(all->log_, BlockLog::open(files, all->folder_ + "/blocks", logger));
  all->first_ = all->log_->first();
  all->count_ = all->log_->count();
  return all;
}

std::string ChainFiles::path(Record record) const {
  switch (record) {
    case Record::Votes: return folder_ + "/votes";
    case Record::Local: return folder_ + "/local";
    case Record::Evidence: return folder_ + "/evidence";
    case Record::Snapshot: return folder_ + "/snapshot";
    case Record::Resume: break;
  }
  return folder_ + "/resume";
}

std::string RowFiles::path(std::uint32_t row, std::size_t age) const {
  return age == 0 ? fmt::format("{}/row-{}", folder, row) : fmt::format("{}/row-{}.{}", folder, row, age);
}

Expected<StateFile> RowFiles::load(std::uint32_t row, std::size_t age, std::uint64_t values,
                                   std::uint64_t bias) const {
  return read_state_file(files, path(row, age), values, bias);
}

void ChainFiles::tell(Done done, Expected<void> result) {
  node_->put([done = std::move(done), result = std::move(result)] { done(result); });
}

void ChainFiles::on_disk(std::function<Expected<void>()> write, Done done) {
  if (disk_->post([this, write = std::move(write), done] { tell(done, write()); })) return;
  tell(done, make_error(ErrorCode::Busy, "the disk is too slow for the chain"));
}

// ---- Records

Expected<Bytes> ChainFiles::load(Record record) {
  if (!files_.exists(path(record))) return make_error(ErrorCode::NotFound, "nothing is saved yet");
  return storage::read_file(files_, path(record), longest_record);
}

void ChainFiles::save(Record record, Bytes bytes, Done done) {
  if (record == Record::Votes) release();
  auto shared = std::make_shared<const Bytes>(std::move(bytes));
  on_disk([this, to = path(record), shared] { return storage::write_file_atomic(files_, to, *shared); },
          std::move(done));
}

// ---- Blocks

Expected<Bytes> ChainFiles::load_block(std::uint64_t height) {
  if (const auto at = memory_.find(height); at != memory_.end()) return *at->second;
  std::lock_guard lock(log_mutex_);
  if (logs_on_disk_ != logs_) return make_error(ErrorCode::NotFound, "the log is not on the disk yet");
  return log_->read(height);
}

Expected<Bytes> ChainFiles::load_beginning(std::uint64_t height, std::size_t most) {
  if (memory_.find(height) != memory_.end()) return ChainStore::load_beginning(height, most);
  std::lock_guard lock(log_mutex_);
  if (logs_on_disk_ != logs_) return make_error(ErrorCode::NotFound, "the log is not on the disk yet");
  return log_->read_beginning(height, most);
}

void ChainFiles::append_block(std::uint64_t height, chain::BlockBytes block, Done done) {
  if (height < first_ || height - first_ > count_)
    return tell(std::move(done), make_error(ErrorCode::InvalidArgument, "the block does not follow"));
  count_ = height - first_ + 1;
  memory_[height] = block;
  held_.push_back({height, std::move(block), std::move(done)});
  if (held_.size() >= most_held) release();
}

void ChainFiles::release() {
  if (held_.empty()) return;
  auto blocks = std::make_shared<std::vector<Block>>(std::exchange(held_, {}));
  const bool posted = disk_->post([this, blocks] {
    const Expected<void> result = write_blocks(*blocks);
    for (const Block& block : *blocks) tell(block.done, result);
  });
  if (posted) return;
  logger_.warning("chain", "the disk is too slow: blocks are saved later");
  held_.insert(held_.begin(), blocks->begin(), blocks->end());
}

void ChainFiles::written(std::uint64_t height, const chain::BlockBytes& bytes) {
  const auto at = memory_.find(height);
  if (at != memory_.end() && at->second == bytes) memory_.erase(at);
}

Expected<void> ChainFiles::write_blocks(const std::vector<Block>& blocks) {
  failed_.insert(failed_.end(), blocks.begin(), blocks.end());
  while (!failed_.empty()) {
    const Block& block = failed_.front();
    {
      std::lock_guard lock(log_mutex_);
      NS_RETURN_IF_ERROR(log_->append(block.height, *block.bytes));
    }
    node_->put([this, life = lifetime_.token(), height = block.height, bytes = block.bytes] {
      if (life.alive()) written(height, bytes);
    });
    failed_.pop_front();
  }
  return {};
}

void ChainFiles::begin_log(std::uint64_t first_height, Done done) {
  release();
  first_ = first_height;
  count_ = 0;
  memory_.clear();
  const std::uint64_t number = ++logs_;
  on_disk(
      [this, first_height, number] {
        failed_.clear();
        std::lock_guard lock(log_mutex_);
        logs_on_disk_ = number;
        return log_->restart(first_height);
      },
      std::move(done));
}

void ChainFiles::drop_last(Done done) {
  if (count_ == 0) return tell(std::move(done), make_error(ErrorCode::NotFound, "the log is empty"));
  release();
  --count_;
  memory_.erase(first_ + count_);
  on_disk(
      [this, count = count_]() -> Expected<void> {
        std::lock_guard lock(log_mutex_);
        while (!failed_.empty() && failed_.back().height >= log_->first() + count) failed_.pop_back();
        return log_->cut(count);
      },
      std::move(done));
}

// ---- Rows

void ChainFiles::save_row(std::uint32_t row, std::uint64_t round, rounds::Anchor state) {
  {
    std::lock_guard lock(states_mutex_);
    std::deque<StateFile>& waiting = states_[row];
    StateFile file{round, std::move(state), {}};
    if (waiting.size() >= states_waiting) {
      waiting.back() = std::move(file);
      return;
    }
    waiting.push_back(std::move(file));
  }
  on_disk([this, row] { return write_row(row); },
          [this, life = lifetime_.token(), round](const Expected<void>& written) {
            if (!life.alive() || written.ok()) return;
            logger_.warning("chain", fmt::format("the state of round {} was not saved for a restart: {}",
                                                 round, written.error().describe()));
          });
}

void ChainFiles::forget_row(std::uint32_t row) {
  on_disk(
      [this, row]() -> Expected<void> {
        for (std::size_t age = 0; age <= rows_.earlier; ++age)
          if (const std::string path = rows_.path(row, age); files_.exists(path))
            NS_RETURN_IF_ERROR(files_.remove_file(path));
        return {};
      },
      [this, life = lifetime_.token()](const Expected<void>& removed) {
        if (life.alive() && !removed.ok())
          logger_.warning("chain",
                          "the state of a former part stays on the disk: " + removed.error().describe());
      });
}

Expected<void> ChainFiles::write_row(std::uint32_t row) {
  StateFile file;
  {
    std::lock_guard lock(states_mutex_);
    std::deque<StateFile>& waiting = states_[row];
    if (waiting.empty()) return {};
    file = std::move(waiting.front());
    waiting.pop_front();
  }
  const std::string newest = rows_.path(row, 0);
  if (rows_.earlier == 0) {
    NS_RETURN_IF_ERROR(write_state_file(files_, newest, file));
    return files_.sync_directory(folder_);
  }
  // Whole before the others move on: a disk that stays full takes none of them away. After a crash in between the newest
  // state may be missing, and no block on the disk names it.
  const std::string fresh = newest + ".0";
  NS_RETURN_IF_ERROR(write_state_file(files_, fresh, file));
  for (std::size_t age = rows_.earlier; age > 0; --age)
    if (const std::string newer = rows_.path(row, age - 1); files_.exists(newer))
      NS_RETURN_IF_ERROR(files_.rename(newer, rows_.path(row, age)));
  NS_RETURN_IF_ERROR(files_.rename(fresh, newest));
  return files_.sync_directory(folder_);
}

}  // namespace neuroshard::engine
