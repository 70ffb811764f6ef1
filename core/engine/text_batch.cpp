#include "core/engine/text_batch.h"

#include <algorithm>

#include "core/compute/memory_estimate.h"
#include "core/compute/module.h"

namespace neuroshard::engine {
namespace {

constexpr std::size_t prompt_piece = 256;  // tokens; the other texts wait for one piece at a time

std::size_t windows_in_memory(const compute::ModelShape& shape) {
  const std::uint64_t window = std::max<std::uint64_t>(
      1, compute::estimate_session_bytes(shape, compute::Precision::Fp32, shape.sequence));
  return std::clamp<std::uint64_t>(max_cache_bytes / window, 1, max_batch_texts);
}

}  // namespace

std::vector<TextBatch::Seat*> TextBatch::seats() {
  std::vector<Seat*> all;
  for (const auto& seat : seats_) all.push_back(seat.get());
  return all;
}

std::size_t TextBatch::open_windows() const {
  return static_cast<std::size_t>(
      std::count_if(seats_.begin(), seats_.end(), [](const auto& seat) { return seat->session != 0; }));
}

// Tokens of a full window that begin the next one: at least the one just added.
std::size_t TextBatch::kept() const {
  const std::size_t capacity = session_->info().shape.sequence;
  return std::max<std::size_t>(1, capacity - capacity / 4);
}

void TextBatch::close(Seat& seat) {
  if (seat.session != 0 && session_ != nullptr) session_->text_model().close_session(seat.session);
  seat.session = 0;
  seat.read = 0;
}

void TextBatch::leave(Seat& seat, const Outcome& outcome) {
  close(seat);
  progress_ = true;
  if (session_ != nullptr) most_windows_ = windows_in_memory(session_->info().shape);
  seat.text->pause(clock_.monotonic_now());
  const std::shared_ptr<TextWriter> text = seat.text;
  seats_.erase(
      std::find_if(seats_.begin(), seats_.end(), [&](const auto& own) { return own.get() == &seat; }));
  if (hooks_->on_done) hooks_->on_done(text, outcome);
}

void TextBatch::take(const Hooks& hooks) {
  hooks_ = &hooks;
  if (hooks.arrivals) {
    for (std::shared_ptr<TextWriter>& text : hooks.arrivals()) {
      seats_.push_back(std::make_unique<Seat>());
      seats_.back()->text = std::move(text);
    }
  }
  end_cancelled();
}

void TextBatch::end_cancelled() {
  for (Seat* seat : seats()) {
    if (!seat->text->cancelled()) continue;
    // Cancellation discards only a text without tokens; generated tokens stay.
    if (seat->text->result().tokens == 0) {
      leave(*seat, make_error(ErrorCode::Cancelled, "stopped before the first token"));
    } else {
      seat->text->end(/*stopped=*/true);
      leave(*seat, {});
    }
  }
}

void TextBatch::fail(const Error& error, const Hooks& hooks) {
  hooks_ = &hooks;
  for (Seat* seat : seats()) leave(*seat, error);
}

void TextBatch::drop_windows(TextModel& model) {
  for (const auto& seat : seats_) {
    if (seat->session != 0) model.close_session(seat->session);
    seat->session = 0;
    seat->read = 0;
  }
}

void TextBatch::begin_turn(TrainingSession& session, std::uint64_t weights) {
  if (weights != weights_) drop_windows(session.text_model());
  weights_ = weights;
  session_ = &session;
  most_windows_ = windows_in_memory(session.info().shape);
  progress_ = false;
  for (const auto& seat : seats_)
    if (seat->session != 0) seat->text->resume(clock_.monotonic_now());
}

void TextBatch::end_turn() {
  for (const auto& seat : seats_) seat->text->pause(clock_.monotonic_now());
  session_ = nullptr;
}

void TextBatch::write(TrainingSession& session, std::uint64_t weights, const Hooks& hooks) {
  begin_turn(session, weights);
  while (true) {
    take(hooks);
    if (seats_.empty()) break;
    start_windows();
    if (open_windows() == 0 && hooks.takes_part) break;
    sample();
    if (progress_ && hooks.turn_over && hooks.turn_over()) break;
    decode();
    read_piece();
  }
  end_turn();
}

// Gives windows to texts in the order in which they came. A text that finds no memory waits for another to leave.
void TextBatch::start_windows() {
  for (Seat* seat : seats()) {
    if (seat->session != 0) continue;
    if (hooks_->takes_part && !hooks_->takes_part(*seat->text)) continue;
    if (open_windows() >= most_windows_) return;
    if (!start_window(*seat)) return;
  }
}

bool TextBatch::start_window(Seat& seat) {
  const compute::ModelShape& shape = session_->info().shape;
  if (!seat.text->begun()) {
    if (const auto begun = seat.text->begin(session_->tokenizer(), shape.sequence); !begun.ok()) {
      leave(seat, begun);
      return true;
    }
  }
  seat.text->resume(clock_.monotonic_now());
  if (seat.window.empty()) {
    const std::vector<std::int32_t>& tokens = seat.text->tokens();
    const std::size_t count = tokens.size() > shape.sequence ? kept() : tokens.size();
    seat.window.assign(tokens.end() - static_cast<std::ptrdiff_t>(count), tokens.end());
  }
  seat.logits.resize(shape.vocab);
  const Expected<void> opened = session_->text_model().open_session(
      next_session_, shape.sequence, seat.text->asked_scores(session_->tokenizer().vocab_size()));
  if (opened.ok()) {
    seat.session = next_session_++;
    return true;
  }
  if (opened.error().code == ErrorCode::Exhausted && open_windows() > 0) return false;
  leave(seat, opened);
  return true;
}

// One token for each text whose window is read.
void TextBatch::sample() {
  for (Seat* seat : seats()) {
    if (seat->session == 0 || seat->unread() > 0) continue;
    if (sample(*seat)) progress_ = true;
  }
}

bool TextBatch::sample(Seat& seat) {
  const MonotonicTime now = clock_.monotonic_now();
  seat.text->prompt_is_read(now);
  if (!seat.text->wants_tokens()) {
    seat.text->end(/*stopped=*/false);
    leave(seat, {});
    return true;
  }
  const Expected<bool> complete = seat.text->next_token(seat.logits, session_->tokenizer());
  if (!complete.ok() || *complete) {
    if (complete.ok()) seat.text->end(/*stopped=*/false);
    leave(seat, complete.ok() ? Outcome() : Outcome(complete.error()));
    return true;
  }
  if (seat.window.size() == session_->info().shape.sequence) {
    close(seat);
    seat.window.erase(seat.window.begin(), seat.window.end() - static_cast<std::ptrdiff_t>(kept() - 1));
  }
  seat.window.push_back(seat.text->tokens().back());
  return true;
}

// The call that reads the next n tokens of a window.
compute::SessionPart TextBatch::next_part(Seat& seat, std::size_t n) const {
  compute::SessionPart part;
  part.session = seat.session;
  part.n = static_cast<std::uint32_t>(n);
  part.tokens = seat.window.data() + seat.read;
  if (n == seat.unread() && seat.text->wants_tokens()) part.logits = seat.logits.data();
  if (seat.text->wants_hidden()) {
    seat.hidden.resize(n * session_->info().shape.hidden);
    part.hidden = seat.hidden.data();
  }
  return part;
}

void TextBatch::note_read(Seat& seat, std::size_t n) {
  if (seat.text->wants_hidden())
    seat.text->add_hidden(seat.read, seat.hidden.size() / n, Span<const float>(seat.hidden));
  seat.read += n;
}

// All texts that have one token to read: one call of the model.
void TextBatch::decode() {
  std::vector<Seat*> readers;
  std::vector<compute::SessionPart> parts;
  for (Seat* seat : seats()) {
    if (seat->session == 0 || seat->unread() != 1) continue;
    readers.push_back(seat);
    parts.push_back(next_part(*seat, 1));
  }
  if (parts.empty()) return;
  const Expected<void> extended =
      session_->text_model().extend_sessions(static_cast<std::uint32_t>(parts.size()), parts.data());
  if (extended.ok()) {
    for (Seat* seat : readers) note_read(*seat, 1);
    return;
  }
  if (goes_on_after(extended.error())) return;
  for (Seat* seat : readers) leave(*seat, extended);
}

// The texts stay, and read their windows again.
bool TextBatch::goes_on_after(const Error& error) {
  if (error.code == ErrorCode::Exhausted) {
    give_up_memory(error);
    return true;
  }
  if (error.code != ErrorCode::Cancelled) return false;
  drop_windows(session_->text_model());
  progress_ = true;
  return true;
}

// The text that came last waits until another has left, so that the others can go on.
void TextBatch::give_up_memory(const Error& error) {
  const std::size_t open = open_windows();
  const auto last =
      std::find_if(seats_.rbegin(), seats_.rend(), [](const auto& seat) { return seat->session != 0; });
  if (open <= 1) return leave(**last, error);
  close(**last);
  most_windows_ = open - 1;
}

// One piece of one text that has more to read.
void TextBatch::read_piece() {
  for (std::size_t tried = 0; tried < seats_.size(); ++tried) {
    next_reader_ = (next_reader_ + 1) % seats_.size();
    Seat& seat = *seats_[next_reader_];
    if (seat.session == 0 || seat.unread() < 2) continue;
    const Expected<void> read = read_piece(seat);
    if (read.ok() || goes_on_after(read.error())) return;
    return leave(seat, read);
  }
}

Expected<void> TextBatch::read_piece(Seat& seat) {
  const std::size_t n = std::min(prompt_piece, seat.unread());
  compute::SessionPart part = next_part(seat, n);
  TextWriter::PromptScores scores =
      seat.text->wanted_scores(seat.read, n, session_->tokenizer().vocab_size());
  if (!scores.targets.empty()) part.scores = scores.view();
  NS_RETURN_IF_ERROR(session_->text_model().extend_sessions(1, &part));
  note_read(seat, n);
  if (!scores.targets.empty()) {
    seat.text->echo_scores(scores, session_->tokenizer());
    progress_ = true;
  }
  return {};
}

}  // namespace neuroshard::engine
