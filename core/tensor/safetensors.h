// The safetensors file format: a little-endian u64 header length, a JSON header, then the tensors' bytes
// (https://huggingface.co/docs/safetensors, "Format"). Strict both ways, and streaming: neither side holds
// the data.
//
// The reader requires, beyond the published rules: every tensor aligned to its element within the
// data, the data tiled from its first to its last byte without hole or overlap, no name twice, nothing
// unknown in a tensor's entry. The writer adds: keys sorted, the header padded with spaces so that
// the data starts at a multiple of 64; one input gives one sequence of bytes. C++17.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace neuroshard::tensor {

// Bounds. A header is parsed as a stream: what it makes us keep is proportional to its own bytes.
inline constexpr std::uint64_t max_header_bytes = 100'000'000;  // the public implementation's cap
inline constexpr std::size_t max_tensors = 1'000'000;
inline constexpr std::size_t max_dims = 8;
inline constexpr std::size_t max_name_bytes = 1024;
inline constexpr std::size_t max_metadata_entries = 4096;
inline constexpr std::uint64_t data_alignment = 64;

// Random access to somebody's bytes: a file, a buffer.  Threads: as the implementation says.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // Fills the whole target or fails.
  virtual Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) = 0;
};

struct TensorSpec {
  std::string name;
  DType type = DType::F32;
  Dims dims;
};

struct TensorEntry {
  TensorSpec spec;
  std::uint64_t begin = 0;  // from the start of the data
  std::uint64_t bytes = 0;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorEntry> tensors;  // by begin, without gaps
  std::uint64_t data_offset = 0;     // from the start of the file
  std::uint64_t data_bytes = 0;

  // Null when there is none. O(log n).
  const TensorEntry* find(const std::string& name) const;
  // Sorted positions in `tensors`, by name; filled by the parser.
  std::vector<std::uint32_t> by_name;
};

// prefix: the first bytes of the file, at least the length field and the header (more is ignored); file_size:
// of the whole file. Errors: Corrupt, Unsupported (element type), Exhausted (a bound above).
Expected<SafetensorsHeader> parse_safetensors_header(ByteSpan prefix, std::uint64_t file_size);
Expected<SafetensorsHeader> read_safetensors_header(ByteSource& source);
// The tensor's bytes; target must have exactly entry.bytes.
Expected<void> read_tensor(ByteSource& source, const SafetensorsHeader& header, const TensorEntry& entry,
                           MutableByteSpan target);

// Lays out a file, then passes its bytes on to a sink, in order.
//
//   NS_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::plan(specs, metadata));
//   NS_RETURN_IF_ERROR(writer.begin(sink));
//   for (each tensor, in the order of specs) NS_RETURN_IF_ERROR(writer.append(bytes, sink));
//   NS_RETURN_IF_ERROR(writer.finish());
class SafetensorsWriter {
 public:
  using Sink = std::function<Expected<void>(ByteSpan)>;

  // The data is laid out in the order given; put wider element types first, so that each is aligned (else
  // InvalidArgument, as for a name twice or out of bounds).
  static Expected<SafetensorsWriter> plan(Span<const TensorSpec> tensors,
                                          const std::map<std::string, std::string>& metadata);

  std::uint64_t file_bytes() const { return header_.size() + data_bytes_; }
  Expected<void> begin(const Sink& sink);
  // Any number of bytes at a time: a whole slot, a part of a tensor. More than planned is a bug of the
  // caller.
  Expected<void> append(ByteSpan bytes, const Sink& sink);
  // InvalidArgument if bytes are missing.
  Expected<void> finish() const;

 private:
  SafetensorsWriter() = default;
  Bytes header_;  // length field, JSON, padding
  std::uint64_t data_bytes_ = 0;
  std::uint64_t appended_ = 0;
};

}  // namespace neuroshard::tensor
