#include "core/engine/block_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/engine/detail/block_log_format.h"
#include "core/outer/codec.h"

namespace neuroshard::engine {
namespace {

using detail::block_head;
using detail::log_head;
using detail::log_magic;
using detail::log_version;
constexpr std::size_t copied_at_once = 1u << 20;
constexpr int most_kept_logs = 1000;

Bytes head_of(std::uint64_t first) {
  Bytes head(log_magic.begin(), log_magic.end());
  append_le(head, log_version);
  append_le(head, first);
  return head;
}

}  // namespace

BlockLog::BlockLog(storage::FileEnv& files, std::string path, Logger& logger)
    : files_(files), path_(std::move(path)), folder_(path_.substr(0, path_.rfind('/'))), logger_(logger) {}

Expected<std::unique_ptr<BlockLog>> BlockLog::open(storage::FileEnv& files, std::string path,
                                                   Logger& logger) {
  std::unique_ptr<BlockLog> log(new BlockLog(files, std::move(path), logger));
  if (!files.exists(log->path_)) {
    NS_RETURN_IF_ERROR(log->write_head());
    return log;
  }
  NS_RETURN_IF_ERROR(log->load());
  return log;
}

std::uint64_t BlockLog::begin_of(std::uint64_t index) const {
  return index == 0 ? log_head : ends_[static_cast<std::size_t>(index - 1)];
}

std::uint64_t BlockLog::end() const {
  return begin_of(ends_.size());
}

Expected<void> BlockLog::load() {
  NS_ASSIGN_OR_RETURN(const auto file, files_.open_read(path_));
  const std::uint64_t size = file->size();
  Bytes head(log_head);
  const bool has_head = size >= log_head;
  if (has_head) NS_RETURN_IF_ERROR(file->read_at(0, head));
  if (!has_head || as_text(ByteSpan(head).first(log_magic.size())) != log_magic ||
      load_le<std::uint16_t>(head.data() + detail::version_at) != log_version) {
    logger_.warning("chain",
                    path_ + " is not a log of blocks of this version: it is kept under another name");
    ends_ = {log_head};  // whatever it has
    return restart(0);
  }
  first_ = load_le<std::uint64_t>(head.data() + detail::first_at);
  while (end() + block_head <= size) {
    Bytes block_begin(block_head);
    NS_RETURN_IF_ERROR(file->read_at(end(), block_begin));
    const auto length = load_le<std::uint32_t>(block_begin.data());
    if (length > longest_block || end() + block_head + length > size) break;
    Bytes block(length);
    NS_RETURN_IF_ERROR(file->read_at(end() + block_head, block));
    if (outer::crc32c(block) != load_le<std::uint32_t>(block_begin.data() + 4)) break;
    ends_.push_back(end() + block_head + length);
  }
  if (end() == size) return {};
  logger_.warning("chain", fmt::format("{} ends with {} bytes that are no whole block: they are cut off, and "
                                       "the other members have what was in them",
                                       path_, size - end()));
  return rewrite(end());
}

Expected<std::uint64_t> BlockLog::index_of(std::uint64_t height) const {
  if (next_first_ || height < first_ || height - first_ >= ends_.size())
    return make_error(ErrorCode::NotFound, fmt::format("the log has no block {}", height));
  return height - first_;
}

Expected<Bytes> BlockLog::read(std::uint64_t height) const {
  NS_ASSIGN_OR_RETURN(const std::uint64_t index, index_of(height));
  const std::uint64_t begin = begin_of(index);
  NS_ASSIGN_OR_RETURN(const auto file, files_.open_read(path_));
  Bytes head(block_head), block(static_cast<std::size_t>(begin_of(index + 1) - begin - block_head));
  NS_RETURN_IF_ERROR(file->read_at(begin, head));
  NS_RETURN_IF_ERROR(file->read_at(begin + block_head, block));
  if (outer::crc32c(block) != load_le<std::uint32_t>(head.data() + 4))
    return make_error(ErrorCode::Corrupt, fmt::format("block {} in {} is damaged", height, path_));
  return block;
}

Expected<Bytes> BlockLog::read_beginning(std::uint64_t height, std::size_t most) const {
  NS_ASSIGN_OR_RETURN(const std::uint64_t index, index_of(height));
  const std::uint64_t begin = begin_of(index) + block_head;
  NS_ASSIGN_OR_RETURN(const auto file, files_.open_read(path_));
  Bytes bytes(static_cast<std::size_t>(std::min<std::uint64_t>(most, begin_of(index + 1) - begin)));
  NS_RETURN_IF_ERROR(file->read_at(begin, bytes));
  return bytes;
}

Expected<void> BlockLog::append(std::uint64_t height, ByteSpan block) {
  if (next_first_) NS_RETURN_IF_ERROR(begin_anew());
  if (height < first_ || height - first_ > ends_.size() || block.size() > longest_block)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("block {} does not follow in {}", height, path_));
  if (height - first_ < ends_.size()) NS_RETURN_IF_ERROR(cut(height - first_));
  if (!is_whole_) NS_RETURN_IF_ERROR(rewrite(end()));
  if (!file_) {
    NS_ASSIGN_OR_RETURN(file_, files_.open_append(path_));
  }
  Bytes head;
  append_le(head, static_cast<std::uint32_t>(block.size()));
  append_le(head, outer::crc32c(block));
  is_whole_ = false;
  NS_RETURN_IF_ERROR(file_->append(head));
  NS_RETURN_IF_ERROR(file_->append(block));
  NS_RETURN_IF_ERROR(file_->sync());
  is_whole_ = true;
  ends_.push_back(end() + block_head + block.size());
  return {};
}

Expected<void> BlockLog::cut(std::uint64_t count) {
  if (next_first_) NS_RETURN_IF_ERROR(begin_anew());
  if (count >= ends_.size()) return {};
  NS_RETURN_IF_ERROR(rewrite(begin_of(count)));
  ends_.resize(static_cast<std::size_t>(count));
  return {};
}

// The first `bytes` of the file as a new file in its place.
Expected<void> BlockLog::rewrite(std::uint64_t bytes) {
  file_.reset();
  const std::string fresh = path_ + ".new";
  NS_ASSIGN_OR_RETURN(const auto from, files_.open_read(path_));
  NS_ASSIGN_OR_RETURN(const auto to, files_.open_write(fresh));
  for (std::uint64_t at = 0; at < bytes;) {
    Bytes piece(static_cast<std::size_t>(std::min<std::uint64_t>(copied_at_once, bytes - at)));
    NS_RETURN_IF_ERROR(from->read_at(at, piece));
    NS_RETURN_IF_ERROR(to->append(piece));
    at += piece.size();
  }
  NS_RETURN_IF_ERROR(to->sync());
  NS_RETURN_IF_ERROR(to->close());
  NS_RETURN_IF_ERROR(files_.rename(fresh, path_));
  NS_RETURN_IF_ERROR(files_.sync_directory(folder_));
  is_whole_ = true;
  return {};
}

Expected<void> BlockLog::write_head() {
  return storage::write_file_atomic(files_, path_, head_of(first_));
}

Expected<void> BlockLog::restart(std::uint64_t first) {
  next_first_ = first;
  return begin_anew();
}

Expected<void> BlockLog::begin_anew() {
  file_.reset();
  if (!ends_.empty()) {
    int number = 1;
    while (number < most_kept_logs && files_.exists(fmt::format("{}.{}", path_, number))) ++number;
    NS_RETURN_IF_ERROR(files_.rename(path_, fmt::format("{}.{}", path_, number)));
  }
  first_ = *next_first_;
  ends_.clear();
  is_whole_ = true;
  NS_RETURN_IF_ERROR(write_head());
  next_first_.reset();
  return {};
}

}  // namespace neuroshard::engine
