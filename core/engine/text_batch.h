// Generates several texts at once with one model. The texts share every decode step: the model's weights are read once
// for all of them. Texts join and leave between two steps. A prompt is read in pieces, one piece between two steps, so
// that a long prompt does not stop the other texts.
//
// The model reads a window of at most the trained sequence length T: it has not learned later positions. When a text's
// window is full, the batch reads its last 3T/4 tokens again as a new window, so an answer may be longer than T; it
// reads the same part of a longer prompt.
//
// A text does not depend on the others: the same model, prompt, options and build give the same text in any company
// (compute::alike_sessions), as long as its window is not read again because the weights have changed.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/engine/generator.h"

namespace neuroshard::engine {

inline constexpr std::size_t max_batch_texts = compute::alike_sessions;
inline constexpr std::uint64_t max_cache_bytes = std::uint64_t{1}
                                                 << 30;  // of all windows; one is always allowed

class TextBatch {
 public:
  struct Hooks {
    // Texts that join; asked between two steps. Null: none.
    std::function<std::vector<std::shared_ptr<TextWriter>>()> arrivals{};
    // True for a text whose window is read in this turn. Null: all windows are. The turn ends when nobody takes part.
    std::function<bool(const TextWriter&)> takes_part{};
    // Asked between two steps, and obeyed once a text has a new token. Null: the turn lasts until all are complete.
    std::function<bool()> turn_over{};
    // A text has left: complete, cancelled with tokens, or an error: InvalidArgument (a prompt or number out of
    // bounds), Exhausted (memory), Denied (a whole_prompt that is too long), Cancelled (before the first token),
    // those of the stage.
    std::function<void(const std::shared_ptr<TextWriter>&, const Expected<void>&)> on_done{};
  };

  explicit TextBatch(const Clock& clock) : clock_(clock) {}
  TextBatch(const TextBatch&) = delete;
  TextBatch& operator=(const TextBatch&) = delete;

  // While no model is open: takes the texts that join, and ends those that are cancelled.
  void take(const Hooks& hooks);
  bool empty() const { return seats_.empty(); }
  // While no model is open: ends all texts.
  void fail(const Error& error, const Hooks& hooks);

  // One turn, after the session's prepare() in either mode. weights: a number that changes with the weights of the
  // session; windows are kept for the next turn with the same one until drop_windows().
  void write(TrainingSession& session, std::uint64_t weights, const Hooks& hooks);
  // Frees the caches; the windows are read again in the next turn. The model may be another than before.
  void drop_windows(TextModel& model);

 private:
  // A text, its window, and the window's keys and values in the model.
  struct Seat {
    std::shared_ptr<TextWriter> text;
    std::vector<std::int32_t> window{};
    std::size_t read = 0;         // tokens of the window that the cache holds
    std::uint64_t session = 0;    // of the model; 0 = no cache
    std::vector<float> logits{};  // after the last token, once all are read
    std::vector<float> hidden{};  // of the part that is read, where the text wants it
    std::size_t unread() const { return window.size() - read; }
  };
  using Outcome = Expected<void>;

  void begin_turn(TrainingSession& session, std::uint64_t weights);
  void end_turn();
  void end_cancelled();
  void start_windows();
  bool start_window(Seat& seat);
  void sample();
  bool sample(Seat& seat);
  void decode();
  void read_piece();
  Expected<void> read_piece(Seat& seat);
  compute::SessionPart next_part(Seat& seat, std::size_t n) const;
  static void note_read(Seat& seat, std::size_t n);
  void give_up_memory(const Error& error);
  bool goes_on_after(const Error& error);
  void close(Seat& seat);
  std::size_t kept() const;
  std::size_t open_windows() const;
  std::vector<Seat*> seats();
  void leave(Seat& seat, const Outcome& outcome);

  const Clock& clock_;
  std::vector<std::unique_ptr<Seat>> seats_;  // in the order in which the texts came
  std::size_t next_reader_ = 0;               // prompts are read in turn
  std::size_t most_windows_ = max_batch_texts;
  std::uint64_t next_session_ = 1;
  std::uint64_t weights_ = 0;
  // Of the turn.
  TrainingSession* session_ = nullptr;
  const Hooks* hooks_ = nullptr;
  bool progress_ = false;
};

}  // namespace neuroshard::engine
