#include "tests/support/fuzz_target.h"

#include <fmt/format.h>

#include <utility>

namespace neuroshard::test {
namespace {

constexpr std::size_t most_shown = 64;  // bytes of a message, in a finding

std::string shown(ByteSpan bytes) {
  const ByteSpan head = bytes.subspan(0, std::min(bytes.size(), most_shown));
  return fmt::format("{} bytes: {}{}", bytes.size(), to_hex(head), head.size() < bytes.size() ? "…" : "");
}

}  // namespace

// One call; its last copy goes when nobody can answer any more.
struct FuzzTarget::Call {
  Call(std::shared_ptr<Log> to, const Message& message)
      : log(std::move(to)), kind(kind_of(message.method, message.request)), text(shown(message.request)) {
    ++log->calls;
    ++log->open;
    ++log->waiting[kind];
    ++log->counts[kind].calls;
  }
  ~Call() {
    if (!answered) {
      close();
      log->findings.push_back(fmt::format("{} is dropped without an answer: {}", to_string(kind), text));
    }
  }
  void close() {
    answered = true;
    --log->open;
    --log->waiting[kind];
  }
  void answer(const net::Answer& answer) {
    if (answered) {
      log->findings.push_back(fmt::format("{} is answered twice: {}", to_string(kind), text));
      return;
    }
    close();
    CallCounts& counts = log->counts[kind];
    ++(answer.with.ok() ? counts.answers : counts.errors);
    if (answer.fault) ++counts.faults;
  }
  const std::shared_ptr<Log> log;
  const MessageKind kind;
  const std::string text;
  bool answered = false;
};

FuzzTarget::FuzzTarget(Handler handler) : handler_(std::move(handler)) {}

void FuzzTarget::call(const net::Caller& from, const Message& message) {
  const auto call = std::make_shared<Call>(log_, message);
  handler_(from, message.method, message.request,
           [call](const net::Answer& answer) { call->answer(answer); });
}

void FuzzTarget::expect_answers() {
  for (const auto& [kind, count] : log_->waiting)
    if (count > 0)
      log_->findings.push_back(fmt::format("{} calls {} have no answer", count, to_string(kind)));
}

}  // namespace neuroshard::test
