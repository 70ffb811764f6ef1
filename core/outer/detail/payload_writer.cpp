#include "core/outer/detail/payload_writer.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::outer::detail {

PayloadWriter::PayloadWriter(const CodecKernels& kernels, ByteSpan head, ByteSink& sink)
    : kernels_(kernels),
      sink_(sink),
      checksum_(kernels.crc32c(0, head.data(), head.size())),
      buffer_(std::make_unique_for_overwrite<std::uint8_t[]>(most)) {
  NS_CHECK(head.size() + sizeof checksum_ == codec_header_bytes);
  std::copy(head.begin(), head.end(), header_);
}

Expected<std::uint8_t*> PayloadWriter::room(std::size_t bytes) {
  NS_CHECK(bytes <= most);
  if (held_ + bytes > most) NS_RETURN_IF_ERROR(flush());
  std::uint8_t* const place = buffer_.get() + held_;
  held_ += bytes;
  return place;
}

Expected<void> PayloadWriter::put(ByteSpan bytes) {
  while (!bytes.empty()) {
    const ByteSpan part = bytes.first(std::min(bytes.size(), most - held_ > 0 ? most - held_ : most));
    NS_ASSIGN_OR_RETURN(std::uint8_t* const place, room(part.size()));
    std::copy(part.begin(), part.end(), place);
    bytes = bytes.subspan(part.size());
  }
  return {};
}

Expected<std::uint64_t> PayloadWriter::finish() {
  NS_RETURN_IF_ERROR(flush());
  store_le(header_ + codec_header_bytes - sizeof checksum_, checksum_);
  NS_RETURN_IF_ERROR(sink_.write_at(0, header_));
  return written_;
}

Expected<void> PayloadWriter::flush() {
  if (held_ == 0) return {};
  checksum_ = kernels_.crc32c(checksum_, buffer_.get(), held_);
  NS_RETURN_IF_ERROR(sink_.write_at(written_, {buffer_.get(), held_}));
  written_ += held_;
  held_ = 0;
  return {};
}

}  // namespace neuroshard::outer::detail
