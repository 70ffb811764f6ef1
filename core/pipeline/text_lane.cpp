#include "core/pipeline/text_lane.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/compute/module.h"

namespace neuroshard::pipeline {
namespace {

std::vector<std::int32_t> read_tokens(ByteSpan bytes) {
  std::vector<std::int32_t> tokens(bytes.size() / sizeof(std::int32_t));
  if (!tokens.empty()) std::memcpy(tokens.data(), bytes.data(), bytes.size());
  return tokens;
}

void append_tokens(const std::vector<std::int32_t>& tokens, Bytes& bytes) {
  for (const std::int32_t token : tokens) append_le(bytes, token);
}

}  // namespace

TextLane::TextLane(FindStage stage, const StageRange& range, const compute::ModelShape& shape)
    : find_stage_(std::move(stage)), range_(range), hidden_(shape.hidden), vocab_(shape.vocab) {}

struct TextLane::Input {
  std::vector<std::int32_t> targets, tokens;
  std::vector<float> rows;
};

Expected<TextLane::Input> TextLane::read(const Piece& piece, ByteSpan payload) const {
  const std::size_t tokens = std::size_t{piece.sequences} * piece.length;
  const bool has_targets = piece.scores || piece.capacity == 0;
  const ByteSpan targets = payload.first(has_targets ? tokens * sizeof(std::int32_t) : 0);
  payload = payload.subspan(targets.size());
  Input input;
  input.targets = read_tokens(targets);
  if (range_.embed) {
    input.tokens = read_tokens(payload);
  } else {
    input.rows.resize(tokens * hidden_);
    NS_RETURN_IF_ERROR(read_rows(piece.wire, payload, hidden_, {input.rows.data(), input.rows.size()}));
  }
  return input;
}

Expected<TextLane::Output> TextLane::extend(std::uint64_t session, const Piece& piece, ByteSpan payload) {
  NS_ASSIGN_OR_RETURN(const Input input, read(piece, payload));
  NS_ASSIGN_OR_RETURN(compute::Stage * stage, stage_of(session, piece.capacity));
  if (piece.capacity == 0) return measure(*stage, piece, input);
  compute::SessionPart part;
  part.session = session;
  part.n = piece.sequences;
  part.tokens = input.tokens.data();
  part.input = input.rows.data();
  return range_.head ? answer(*stage, part, piece, input) : pass_on(*stage, part, piece, input);
}

Expected<compute::Stage*> TextLane::stage_of(std::uint64_t session, std::uint32_t capacity) {
  if (capacity == 0) return find_stage_();
  if (const auto open = open_.find(session); open != open_.end()) return open->second;
  NS_ASSIGN_OR_RETURN(compute::Stage * stage, find_stage_());
  const compute::Status opened = stage->open_session(session, capacity);
  if (!opened.ok()) return compute::to_error(opened);
  open_.emplace(session, stage);
  return stage;
}

Expected<TextLane::Output> TextLane::pass_on(compute::Stage& stage, compute::SessionPart& part,
                                             const Piece& piece, const Input& input) const {
  std::vector<float> rows(piece.sequences * hidden_);
  part.output = rows.data();
  if (const compute::Status extended = stage.extend_sessions(1, &part); !extended.ok())
    return compute::to_error(extended);
  Output output;
  append_tokens(input.targets, output.payload);
  NS_RETURN_IF_ERROR(append_rows(piece.wire, {rows.data(), rows.size()}, hidden_, output.payload));
  return output;
}

Expected<TextLane::Output> TextLane::answer(compute::Stage& stage, compute::SessionPart& part,
                                            const Piece& piece, const Input& input) const {
  std::vector<float> logits(piece.result_wanted ? vocab_ : 0);
  PositionScores scores;
  if (piece.result_wanted) part.logits = logits.data();
  if (piece.result_wanted && piece.scores) {
    scores = PositionScores(piece.sequences, *piece.scores);
    part.scores = scores.view(input.targets.data(), *piece.scores);
  }
  if (const compute::Status extended = stage.extend_sessions(1, &part); !extended.ok())
    return compute::to_error(extended);
  Output output;
  output.sums.tokens = piece.sequences;
  if (piece.result_wanted)
    NS_RETURN_IF_ERROR(append_rows(WireFormat::Fp32, {logits.data(), logits.size()}, vocab_, output.payload));
  append_scores(scores, output.payload);
  return output;
}

Expected<TextLane::Output> TextLane::measure(compute::Stage& stage, const Piece& piece,
                                             const Input& input) const {
  compute::MicroBatch batch;
  batch.batch = piece.sequences;
  batch.sequence = piece.length;
  batch.tokens = range_.embed ? input.tokens.data() : nullptr;
  batch.input = range_.embed ? nullptr : input.rows.data();
  batch.targets = range_.head ? input.targets.data() : nullptr;
  std::vector<float> rows(range_.head ? 0 : input.targets.size() * hidden_);
  compute::ForwardMetrics metrics;
  const compute::Status evaluated = stage.evaluate(batch, range_.head ? nullptr : rows.data(), &metrics);
  if (!evaluated.ok()) return compute::to_error(evaluated);
  Output output;
  output.sums = {metrics.tokens, metrics.target_tokens, metrics.loss_sum, 0, 0};
  if (range_.head) return output;
  append_tokens(input.targets, output.payload);
  NS_RETURN_IF_ERROR(append_rows(piece.wire, {rows.data(), rows.size()}, hidden_, output.payload));
  return output;
}

void TextLane::close(std::uint64_t session) {
  const auto open = open_.extract(session);
  if (!open.empty()) open.mapped()->close_session(session);
}

}  // namespace neuroshard::pipeline
