// The end of a session that has a text: it sends pieces of tokens through the stages and gets the logits after each. It
// has no weights. A stage that is lost is replaced, and the text goes on as if nothing had happened.
//
// Threads: the executor's, all members and all calls back. Memory: the tokens of the text.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "core/pipeline/session_lead.h"

namespace neuroshard::pipeline {

class TextDriver {
 public:
  using Logits = std::function<void(Span<const float> logits)>;  // [V], after the last token of the piece

  // route: with everything but driver, revision and signature; checked, of kind Text. key outlives the driver.
  TextDriver(const Surroundings& surroundings, const crypto::KeyPair& key, Bytes network, Route route,
             LeadEvents events, Duration retry = std::chrono::milliseconds(500));

  void start();
  // Appends tokens; cut into pieces as the route says. done: once, in order, unless the driver is destroyed.
  // InvalidArgument: no token, or more than the route's positions; then done is not called.
  Expected<void> extend(const std::vector<std::int32_t>& tokens, Logits done);
  void close();

  const Route& route() const { return lead_.route(); }
  std::uint64_t replaced() const { return lead_.replaced(); }  // hops

 private:
  struct Piece {
    std::vector<std::int32_t> tokens;
    Logits done;  // null: only the last piece of a call has a result
  };
  void pump();
  void result(const Result& result, const Bytes& logits);

  NextHop hop_;
  SessionLead lead_;
  std::deque<Piece> waiting_;
  std::map<std::uint64_t, Logits> under_way_;  // by index
  std::uint64_t next_index_ = 0, positions_ = 0;
};

}  // namespace neuroshard::pipeline
