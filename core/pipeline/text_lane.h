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
#include "core/pipeline/messages.h"

namespace neuroshard::pipeline {

class TextLane {
 public:
  // The stage of `range`, whose weights may have been loaded for this call. Asked when a session opens; the stage lives
  // until that session is closed. Nobody else uses its sessions.
  using FindStage = std::function<Expected<compute::Stage*>()>;
  TextLane(FindStage stage, const StageRange& range, const compute::ModelShape& shape);

  const StageRange& range() const { return range_; }  // any thread

  struct Piece {
    std::uint32_t sequences = 0, length = 1;  // as of the work and the route; of a text with positions: these
    bool result_wanted = true;
    WireFormat wire = WireFormat::Fp32;
    std::uint32_t capacity = 0;  // positions of the session; 0: losses are asked for
    std::optional<TextScores> scores;
  };
  // payload as messages.h says: of a stage without the head that of the next stage, with it that of the result, which is
  // empty if no result is wanted.
  struct Output {
    Bytes payload;
    Sums sums;  // with the head
  };
  // Appends a piece, and opens the session with its first one. Of losses: computes the piece by itself.
  Expected<Output> extend(std::uint64_t session, const Piece& piece, ByteSpan payload);
  void close(std::uint64_t session);

 private:
  struct Input;
  Expected<Input> read(const Piece& piece, ByteSpan payload) const;
  Expected<compute::Stage*> stage_of(std::uint64_t session, std::uint32_t capacity);
  Expected<Output> pass_on(compute::Stage& stage, compute::SessionPart& part, const Piece& piece,
                           const Input& input) const;
  Expected<Output> answer(compute::Stage& stage, compute::SessionPart& part, const Piece& piece,
                          const Input& input) const;
  Expected<Output> measure(compute::Stage& stage, const Piece& piece, const Input& input) const;

  const FindStage find_stage_;
  const StageRange range_;
  const std::size_t hidden_, vocab_;
  std::map<std::uint64_t, compute::Stage*> open_;  // by session
};

}  // namespace neuroshard::pipeline
