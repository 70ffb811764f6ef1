#include "core/pipeline/text_lane.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/compute/module.h"

namespace neuroshard::pipeline {

TextLane::TextLane(FindStage stage, const StageRange& range, const compute::ModelShape& shape)
    : find_stage_(std::move(stage)), range_(range), hidden_(shape.hidden), vocab_(shape.vocab) {}

Expected<Bytes> TextLane::extend(std::uint64_t session, std::uint32_t positions, WireFormat wire, bool logits,
                                 ByteSpan payload, std::uint32_t capacity) {
  auto open = open_.find(session);
  if (open == open_.end()) {
    NS_ASSIGN_OR_RETURN(compute::Stage * stage, find_stage_());
    const compute::Status opened = stage->open_session(session, capacity);
    if (!opened.ok()) return compute::to_error(opened);
    open = open_.emplace(session, stage).first;
  }
  std::vector<std::int32_t> tokens;
  std::vector<float> input, output(range_.head ? (logits ? vocab_ : 0) : positions * hidden_);
  compute::SessionPart part;
  part.session = session;
  part.n = positions;
  if (range_.embed) {
    tokens.resize(positions);
    std::memcpy(tokens.data(), payload.data(), payload.size());
    part.tokens = tokens.data();
  } else {
    input.resize(positions * hidden_);
    NS_RETURN_IF_ERROR(read_rows(wire, payload, hidden_, {input.data(), input.size()}));
    part.input = input.data();
  }
  if (!range_.head) part.output = output.data();
  if (range_.head && logits) part.logits = output.data();
  const compute::Status extended = open->second->extend_sessions(1, &part);
  if (!extended.ok()) return compute::to_error(extended);
  Bytes bytes;
  const WireFormat format = range_.head ? WireFormat::Fp32 : wire;
  if (!output.empty())
    NS_RETURN_IF_ERROR(
        append_rows(format, {output.data(), output.size()}, range_.head ? vocab_ : hidden_, bytes));
  return bytes;
}

void TextLane::close(std::uint64_t session) {
  const auto open = open_.extract(session);
  if (!open.empty()) open.mapped()->close_session(session);
}

}  // namespace neuroshard::pipeline
