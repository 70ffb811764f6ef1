#include "core/pipeline/text_session.h"

namespace neuroshard::pipeline {

TextSession::TextSession(const Surroundings& surroundings, TextHost& host, const Route& route,
                         std::size_t position, std::uint64_t number)
    : HopSession(surroundings, route, position), host_(host), number_(number) {}

TextSession::~TextSession() {
  end_text();
}

// A repeated piece is one that arrived; a new one is the next.
Expected<void> TextSession::admit_work(const Work& work) const {
  const auto refuse = [](const char* text) { return make_error(ErrorCode::InvalidArgument, text); };
  const bool keeps = !route().asks_for_losses();
  if (keeps && work.index > arrived_) return refuse("a piece of the text is missing");
  if (keeps && work.index == arrived_ && positions_ + work.sequences > route().positions)
    return refuse("the text is longer than its session");
  if (work.index >= arrived_ && work.result_wanted() && work.index - work.finished_below >= route().window)
    return refuse("more pieces of the text are under way than its session has");
  // The earlier hop says itself what is finished, so its word does not bound what waits here.
  if (!keeps && work.index >= arrived_ && pieces_.size() >= 2 * std::size_t{route().window})
    return refuse("more pieces of the text wait here than its session has");
  return {};
}

Expected<void> TextSession::work(const Work& work, Bytes payload) {
  if (work.result_wanted()) {
    // The driver has the result of an older piece, so nobody waits for it again.
    if (work.index >= arrived_ || asked_by_.contains(work.index)) asked_by_[work.index] = attachment();
    answers_.erase(answers_.begin(), answers_.lower_bound(work.finished_below));
    asked_by_.erase(asked_by_.begin(), asked_by_.lower_bound(work.finished_below));
    if (route().asks_for_losses()) next().forget_below(work.finished_below);
  }
  if (work.index < arrived_) {  // a repetition
    if (const auto answered = answers_.find(work.index); answered != answers_.end()) send(answered->second);
    return {};
  }
  arrived_ = work.index + 1;
  positions_ += work.sequences;
  pieces_.push_back({work, std::make_shared<const Bytes>(std::move(payload))});
  host_.piece_arrived(route().session);
  return {};
}

void TextSession::computed(TextLane::Output output) {
  const Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  auto payload = std::make_shared<const Bytes>(std::move(output.payload));
  if (!is_last()) return next().send(piece.work, std::move(payload));
  if (piece.work.result_wanted()) answer({piece.work.index, output.sums}, std::move(payload));
}

void TextSession::returned(const Result& result, Bytes logits) {
  answer(result, std::make_shared<const Bytes>(std::move(logits)));
}

void TextSession::answer(const Result& result, SharedBytes logits) {
  if (!asked_by_.contains(result.index)) return;  // finished meanwhile
  send(answers_[result.index] = {result, std::move(logits)});
}

// Without the stream that asked nothing is sent: the hop asks again when it is back.
void TextSession::send(const Answer& answer) {
  const auto asked = asked_by_.find(answer.first.index);
  if (earlier() != nullptr && asked != asked_by_.end() && asked->second == attachment())
    earlier()->send(encode_message(answer.first), answer.second);
}

void TextSession::close(std::uint64_t finished_below) {
  pieces_.clear();
  HopSession::close(finished_below);
  end_text();
}

// The table destroys a closed session some time later, when its stage may have other weights.
void TextSession::end_text() {
  if (!std::exchange(ended_, true)) host_.text_ended(number_);
}

}  // namespace neuroshard::pipeline
