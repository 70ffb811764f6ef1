// Gives changed messages to a node's handlers and watches that each is answered once: a call without an answer,
// or with two, is a finding. Counts calls and answers by kind.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/net/method_table.h"
#include "tests/support/message_pool.h"

namespace neuroshard::test {

struct CallCounts {
  std::uint64_t calls = 0, answers = 0, errors = 0, faults = 0;
};

// Threads: one. Calls that are not answered yet may outlive it.
class FuzzTarget {
 public:
  using Handler = std::function<void(const net::Caller& from, net::Method method, ByteSpan request,
                                     const net::Reply& reply)>;
  // Gets the description of what was wrong and the message that was sent last.
  explicit FuzzTarget(Handler handler);
  void call(const net::Caller& from, const Message& message);
  // At the end, when every answer has had the time to come: calls without one are findings.
  void expect_answers();

  std::uint64_t calls() const { return log_->calls; }
  std::uint64_t open() const { return log_->open; }
  const std::map<MessageKind, CallCounts>& counts() const { return log_->counts; }
  const std::vector<std::string>& findings() const { return log_->findings; }

 private:
  struct Log {
    std::uint64_t calls = 0, open = 0;
    std::map<MessageKind, CallCounts> counts;
    std::map<MessageKind, std::uint64_t> waiting;
    std::vector<std::string> findings;
  };
  struct Call;

  const Handler handler_;
  const std::shared_ptr<Log> log_ = std::make_shared<Log>();
};

}  // namespace neuroshard::test
