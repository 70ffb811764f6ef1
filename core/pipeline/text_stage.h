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

#include "core/pipeline/session_table.h"
#include "core/pipeline/text_lane.h"
#include "core/pipeline/text_session.h"

namespace neuroshard::pipeline {

struct TextStageOptions {
  StageRange range;
  SessionLimits sessions;
  Bytes network;
  decltype(SessionRules::admit) admit = nullptr;  // as of SessionRules
};

class TextStage final : private TextHost {
 public:
  // lane: used on `compute` only; it and all surroundings outlive the stage, and a job may run on when it ends.
  TextStage(const Surroundings& surroundings, Executor& compute, std::shared_ptr<TextLane> lane,
            TextStageOptions options);
  ~TextStage() override;

  void take(const net::NodeId& from, std::shared_ptr<net::PeerStream> stream) {
    table_.take(from, std::move(stream));
  }
  void pause(const Error& reason) { table_.pause(reason); }
  void resume() { table_.resume(); }
  std::size_t sessions() const { return table_.size(); }

 private:
  void piece_arrived(const SessionId& session) override;
  void text_ended(std::uint64_t number) override;
  SessionRules rules();
  TextSession* session(const SessionId& id) { return static_cast<TextSession*>(table_.find(id)); }
  void pump();
  void computed(const SessionId& id, std::uint64_t number, Expected<Bytes> output);

  const Surroundings around_;
  Executor& compute_;
  const std::shared_ptr<TextLane> lane_;
  const TextStageOptions options_;
  std::deque<SessionId> turns_;  // of sessions with pieces to compute
  bool running_ = false;
  std::uint64_t next_number_ = 1;
  Lifetime lifetime_;
  SessionTable table_;  // last: its sessions speak to this when they end
};

}  // namespace neuroshard::pipeline
