// A session of one text at one stage. A repeated piece changes nothing: its result is sent again if it is wanted.
//
// Memory: the pieces that are not computed yet, of losses at most two windows of them, and the logits of the route's window.
// Threads: the executor's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "core/pipeline/hop_session.h"
#include "core/pipeline/text_lane.h"

namespace neuroshard::pipeline {

// Asks its stage for the computation of a piece.
class TextHost {
 public:
  virtual ~TextHost() = default;
  virtual void piece_arrived(const SessionId& session) = 0;
  virtual void text_ended(std::uint64_t number) = 0;  // once; no piece of it arrives any more
};

class TextSession final : public HopSession {
 public:
  // number: of its cache. host outlives the session.
  TextSession(const Surroundings& surroundings, TextHost& host, const Route& route, std::size_t position,
              std::uint64_t number);
  ~TextSession() override;

  Expected<void> work(const Work& work, Bytes payload) override;
  // A driver gives a text up long before its session loses its place.
  bool has_unfinished() const override { return false; }
  void close(std::uint64_t finished_below) override;

  struct Piece {
    Work work;
    SharedBytes payload;
  };
  // The one to compute now; null: none.
  const Piece* next_piece() const { return pieces_.empty() ? nullptr : &pieces_.front(); }
  void computed(TextLane::Output output);
  std::uint64_t number() const { return number_; }
  std::size_t asked() const { return asked_by_.size(); }  // results that the driver may wait for

 private:
  Expected<void> admit_work(const Work& work) const override;
  void returned(const Result& result, Bytes logits) override;
  using Answer = std::pair<Result, SharedBytes>;
  void answer(const Result& result, SharedBytes logits);
  void send(const Answer& answer);
  void end_text();

  TextHost& host_;
  const std::uint64_t number_;
  std::deque<Piece> pieces_;     // arrived, not computed
  std::uint64_t arrived_ = 0;    // pieces; where no cache is kept, not all of them came here
  std::uint64_t positions_ = 0;  // of the pieces that arrived
  std::map<std::uint64_t, std::uint64_t> asked_by_;  // wanted results, and the attachment that asked last
  std::map<std::uint64_t, Answer> answers_;          // that the driver may not have
  bool ended_ = false;                               // the host knows it
};

}  // namespace neuroshard::pipeline
