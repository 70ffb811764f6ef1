// The end of a session that has a text: it sends pieces of tokens through the stages and gets the logits after each, and
// scores if its route asks for them. It has no weights. A stage that is lost is replaced, and the text goes on as if nothing
// had happened.
//
// Threads: the executor's, all members and all calls back. Memory: the tokens of the text.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/pipeline/session_lead.h"

namespace neuroshard::pipeline {

class TextDriver {
 public:
  struct Answer {
    std::vector<float> logits;  // [V], after the last token
    PositionScores scores;      // of all tokens; empty: the route asks for none
  };
  // Corrupt: logits are not finite, or scores are no log-probabilities; the message names the node that gave them.
  using Answered = std::function<void(Expected<Answer>)>;

  // route: with everything but driver, revision and signature; checked, of kind Text. key outlives the driver.
  TextDriver(const Surroundings& surroundings, const crypto::KeyPair& key, Bytes network, Route route,
             LeadEvents events, Duration retry = std::chrono::milliseconds(500));

  void start();
  // Appends tokens; cut into pieces as the route says. targets: of the tokens, −1 where nothing is scored; empty if the
  // route asks for no scores. done: once, in order, unless the driver is destroyed. InvalidArgument: no token, or more
  // than the route's positions; then done is not called.
  Expected<void> extend(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets,
                        Answered done);
  void close();

  const Route& route() const { return lead_.route(); }
  std::uint64_t replaced() const { return lead_.replaced(); }  // hops

 private:
  // A call of extend().
  struct Call {
    Answer answer;
    std::size_t missing = 0;  // results
    Answered done;
  };
  struct Piece {
    std::uint32_t positions = 0;
    std::size_t first = 0;  // position in its call
    SharedBytes payload;
    std::shared_ptr<Call> call;  // null: no result is wanted
  };
  Piece piece(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets,
              std::size_t first) const;
  void pump();
  Error wrong_answer(const Error& error) const;
  void result(const Result& result, const Bytes& payload);

  NextHop hop_;
  SessionLead lead_;
  std::deque<Piece> waiting_;
  std::map<std::uint64_t, Piece> under_way_;  // by index; with a call
  std::uint64_t next_index_ = 0, positions_ = 0;
};

}  // namespace neuroshard::pipeline
