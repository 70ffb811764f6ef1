// Lays out a GGUF file, then passes its bytes on to a sink, in order. It holds the header only, never the data.
//
//   NS_ASSIGN_OR_RETURN(GgufWriter writer, GgufWriter::plan(entries, tensors));
//   NS_RETURN_IF_ERROR(writer.begin(sink));
//   for (each tensor, in order) NS_RETURN_IF_ERROR(writer.append(bytes, sink)), any number of pieces;
//   NS_RETURN_IF_ERROR(writer.finish());
// Threads: one.
#pragma once

#include <functional>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/export/gguf.h"

namespace neuroshard::exporting {

class GgufWriter {
 public:
  using Sink = std::function<Expected<void>(ByteSpan)>;

  // Offsets and sizes of the tensors are filled in. InvalidArgument: no dimension or more than 4, a name twice, a row
  // that Q8_0 does not divide.
  static Expected<GgufWriter> plan(const std::vector<GgufEntry>& entries, std::vector<GgufTensor> tensors);

  std::uint64_t file_bytes() const;
  Expected<void> begin(const Sink& sink);
  // Bytes of the present tensor; padding follows when it is complete. More than planned is a bug of the caller.
  Expected<void> append(ByteSpan bytes, const Sink& sink);
  // InvalidArgument: bytes are missing.
  Expected<void> finish() const;

 private:
  Bytes header_;
  std::vector<GgufTensor> tensors_;
  std::size_t tensor_ = 0;     // that is being written
  std::uint64_t written_ = 0;  // bytes of it
};

}  // namespace neuroshard::exporting
