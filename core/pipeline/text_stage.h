// A stage that generates for sessions of drivers: it keeps a cache of keys and values for each text, passes activations
// on, and, with the head, answers with logits. Its output depends only on its weights, so every holder of the same
// weights gives the same text.
//
// When a hop is lost the driver and every earlier stage send all pieces again, in order. A new stage fills its cache
// from them; a stage that has them does nothing.
//
// Memory: for each text its cache, what arrived and was passed on, and the logits of its window. Threads: the
// executor's, all members. The compute thread runs one piece at a time.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "core/net/mailbox.h"
#include "core/pipeline/session_table.h"
#include "core/pipeline/text_lane.h"
#include "core/pipeline/text_session.h"

namespace neuroshard::pipeline {

struct TextStageOptions {
  SessionLimits sessions;
  decltype(SessionRules::admit) admit = nullptr;  // as of SessionRules
};

class TextStage final : private TextHost {
 public:
  // lane: used on `compute` only; it, the table and all surroundings outlive the stage, and a job may run on when it
  // ends.
  TextStage(const Surroundings& surroundings, SessionTable& table, Executor& compute,
            std::shared_ptr<TextLane> lane, TextStageOptions options);
  ~TextStage() override;

  // Its sessions end: the lane has other weights from now on.
  void end_sessions(const Error& reason) { table_.refuse_all(SessionKind::Text, reason); }
  std::size_t sessions() const { return table_.size(SessionKind::Text); }
  // Whether the lane has been told of all texts that ended: before that the lane's weights must not change or go. False:
  // the queue is full; ask again later.
  bool caches_closed() {
    close_ended();
    return ended_.empty();
  }

 private:
  void piece_arrived(const SessionId& session) override;
  void text_ended(std::uint64_t number) override;
  SessionRules rules();
  TextSession* session(const SessionId& id) {
    return static_cast<TextSession*>(table_.find(SessionKind::Text, id));
  }
  void close_ended();
  void pump();
  void computed(const SessionId& id, std::uint64_t number, Expected<TextLane::Output> output);

  const Surroundings around_;
  SessionTable& table_;
  Executor& compute_;
  const std::shared_ptr<net::Mailbox> results_;  // of jobs: a full executor must lose none
  const std::shared_ptr<TextLane> lane_;
  const TextStageOptions options_;
  std::deque<SessionId> turns_;       // of sessions with pieces to compute
  std::vector<std::uint64_t> ended_;  // texts whose caches the lane still keeps
  bool running_ = false;
  std::unique_ptr<TimerHandle> again_;
  std::uint64_t next_number_ = 1;
  Lifetime lifetime_;
};

}  // namespace neuroshard::pipeline
