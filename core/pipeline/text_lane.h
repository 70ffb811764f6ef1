// The computation of texts at a stage, on the compute thread: bytes of the wire in, bytes of the wire out.
//
// Errors: what the stage reports; Corrupt: values that are not finite.  Threads: made and destroyed anywhere; all else
// on the compute thread, one at a time, unless a comment says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/compute/stage.h"
#include "core/pipeline/route.h"

namespace neuroshard::pipeline {

class TextLane {
 public:
  // The stage of `range`, whose weights may have been loaded for this call. Asked when a session opens; the stage lives
  // until that session is closed. Nobody else uses its sessions.
  using FindStage = std::function<Expected<compute::Stage*>()>;
  TextLane(FindStage stage, const StageRange& range, const compute::ModelShape& shape);

  const StageRange& range() const { return range_; }  // any thread

  // Appends a piece, and opens the session with its first one. Rows for the next stage; with the head the logits of the
  // last position, nothing if they are not wanted.
  Expected<Bytes> extend(std::uint64_t session, std::uint32_t positions, WireFormat wire, bool logits,
                         ByteSpan payload, std::uint32_t capacity);
  void close(std::uint64_t session);

 private:
  const FindStage find_stage_;
  const StageRange range_;
  const std::size_t hidden_, vocab_;
  std::map<std::uint64_t, compute::Stage*> open_;  // by session
};

}  // namespace neuroshard::pipeline
