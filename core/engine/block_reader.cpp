#include "core/engine/block_reader.h"

#include <fmt/format.h>

#include "core/engine/block_log.h"
#include "core/engine/detail/block_log_format.h"
#include "core/outer/codec.h"

namespace neuroshard::engine {

BlockReader::BlockReader(std::unique_ptr<storage::ReadableFile> file, std::string path)
    : file_(std::move(file)), path_(std::move(path)), size_(file_->size()), at_(detail::log_head) {}

Expected<BlockReader> BlockReader::open(storage::FileEnv& files, const std::string& path) {
  NS_ASSIGN_OR_RETURN(auto file, files.open_read(path));
  BlockReader reader(std::move(file), path);
  const Error wrong = make_error(ErrorCode::Corrupt, path + " is not a log of blocks of this version");
  if (reader.size_ < detail::log_head) return wrong;
  Bytes head(detail::log_head);
  NS_RETURN_IF_ERROR(reader.file_->read_at(0, head));
  if (as_text(ByteSpan(head).first(detail::log_magic.size())) != detail::log_magic ||
      load_le<std::uint16_t>(head.data() + detail::version_at) != detail::log_version)
    return wrong;
  reader.next_height_ = load_le<std::uint64_t>(head.data() + detail::first_at);
  return reader;
}

Expected<std::optional<Bytes>> BlockReader::next() {
  if (tail_bytes() < detail::block_head) return std::optional<Bytes>();
  Bytes head(detail::block_head);
  NS_RETURN_IF_ERROR(file_->read_at(at_, head));
  const auto length = load_le<std::uint32_t>(head.data());
  const Error damaged =
      make_error(ErrorCode::Corrupt, fmt::format("block {} in {} is damaged", next_height_, path_));
  if (length > longest_block) return damaged;
  if (tail_bytes() < detail::block_head + length) return std::optional<Bytes>();
  Bytes block(length);
  NS_RETURN_IF_ERROR(file_->read_at(at_ + detail::block_head, block));
  if (outer::crc32c(block) != load_le<std::uint32_t>(head.data() + 4)) return damaged;
  at_ += detail::block_head + length;
  ++next_height_;
  return std::optional<Bytes>(std::move(block));
}

}  // namespace neuroshard::engine
