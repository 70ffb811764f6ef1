// The computation of texts at a stage, on the compute thread: bytes of the wire in, bytes of the wire out.
//
// Errors: what the stage reports; Corrupt: values that are not finite.  Threads: made and destroyed anywhere; all else
// on the compute thread, one at a time.
#pragma once

#include <cstdint>
#include <set>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/compute/stage.h"
#include "core/pipeline/route.h"

namespace neuroshard::pipeline {

class TextLane {
 public:
  // stage: of `range`; outlives the lane. Nobody else uses its sessions.
  TextLane(compute::Stage& stage, const StageRange& range, const compute::ModelShape& shape);

  // Appends a piece, and opens the session with its first one. Rows for the next stage; with the head the logits of the
  // last position, nothing if they are not wanted.
  Expected<Bytes> extend(std::uint64_t session, std::uint32_t positions, WireFormat wire, bool logits,
                         ByteSpan payload, std::uint32_t capacity);
  void close(std::uint64_t session);

 private:
  compute::Stage& stage_;
  const StageRange range_;
  const std::size_t hidden_, vocab_;
  std::set<std::uint64_t> open_;
};

}  // namespace neuroshard::pipeline
