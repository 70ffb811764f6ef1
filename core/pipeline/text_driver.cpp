#include "core/pipeline/text_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/pipeline/activation_codec.h"

namespace neuroshard::pipeline {

TextDriver::TextDriver(const Surroundings& surroundings, const crypto::KeyPair& key, Bytes network,
                       Route route, LeadEvents events, Duration retry)
    : hop_(surroundings, {[this](const Result& done, const Bytes& logits) { result(done, logits); },
                          [this](const Lost& one) { lead_.lost(one); }}),
      lead_(surroundings, key, std::move(network), std::move(route), std::move(events), hop_, retry) {}

void TextDriver::start() {
  lead_.start();
}

Expected<void> TextDriver::extend(const std::vector<std::int32_t>& tokens,
                                  const std::vector<std::int32_t>& targets, Answered done) {
  if (tokens.empty()) return make_error(ErrorCode::InvalidArgument, "there is no token to append");
  if (tokens.size() > route().positions - positions_)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the text has {} positions, and {} tokens more do not fit",
                                  route().positions, tokens.size()));
  if (targets.size() != (route().scores ? tokens.size() : 0))
    return make_error(ErrorCode::InvalidArgument, "there must be a target for each token that is scored");
  positions_ += tokens.size();
  auto call = done ? std::make_shared<Call>() : nullptr;
  if (call && route().scores) call->answer.scores = PositionScores(tokens.size(), *route().scores);
  if (call) call->done = std::move(done);
  for (std::size_t at = 0; at < tokens.size(); at += route().sequences) {
    waiting_.push_back(piece(tokens, targets, at));
    // The logits are those of the last piece, the scores those of all.
    const bool last = at + route().sequences >= tokens.size();
    if (!call || (!last && !route().scores)) continue;
    waiting_.back().call = call;
    ++call->missing;
  }
  pump();
  return {};
}

TextDriver::Piece TextDriver::piece(const std::vector<std::int32_t>& tokens,
                                    const std::vector<std::int32_t>& targets, std::size_t first) const {
  const std::size_t end = std::min(tokens.size(), first + route().sequences);
  auto payload = std::make_shared<Bytes>();
  for (std::size_t i = first; i < std::min(end, targets.size()); ++i) append_le(*payload, targets[i]);
  for (std::size_t i = first; i < end; ++i) append_le(*payload, tokens[i]);
  return {static_cast<std::uint32_t>(end - first), first, std::move(payload), nullptr};
}

void TextDriver::pump() {
  const auto has_room = [this] {
    return under_way_.empty() || next_index_ - under_way_.begin()->first < route().window;
  };
  while (!waiting_.empty() && (waiting_.front().call == nullptr || has_room())) {
    Piece piece = std::move(waiting_.front());
    waiting_.pop_front();
    const std::uint64_t index = next_index_++;
    const bool wanted = piece.call != nullptr;
    const SharedBytes payload = piece.payload;
    const std::uint32_t positions = piece.positions;
    if (wanted) under_way_.emplace(index, std::move(piece));
    hop_.send({index, wanted ? index : index + 1, positions}, payload);
  }
}

Error TextDriver::wrong_answer(const Error& error) const {
  return make_error(error.code, fmt::format("{}… with the last part of the model: {}",
                                            to_hex(route().hops.back().node).substr(0, 12), error.message));
}

void TextDriver::result(const Result& result, const Bytes& payload) {
  const auto found = under_way_.extract(result.index);
  if (found.empty()) return;
  const Piece& piece = found.mapped();
  pump();
  Call& call = *piece.call;
  if (!call.done) return;  // another piece has failed
  const ByteSpan bytes(payload.data(), payload.size());
  const std::size_t scored = route().scores ? scores_bytes(piece.positions, *route().scores) : 0;
  if (scored > 0) {
    const auto scores = read_scores(bytes.last(scored), piece.positions, *route().scores);
    if (!scores.ok()) return std::exchange(call.done, nullptr)(wrong_answer(scores.error()));
    scores->copy_to(piece.first, call.answer.scores);
  }
  if (--call.missing > 0) return;
  std::vector<float>& logits = call.answer.logits;
  logits.resize((bytes.size() - scored) / sizeof(float));
  const auto read = read_rows(WireFormat::Fp32, bytes.first(bytes.size() - scored), logits.size(),
                              {logits.data(), logits.size()});
  if (read.ok()) return call.done(std::move(call.answer));
  call.done(wrong_answer(make_error(ErrorCode::Corrupt, "a logit is not a finite number")));
}

void TextDriver::close() {
  lead_.stop();
  hop_.close(next_index_);
}

}  // namespace neuroshard::pipeline
