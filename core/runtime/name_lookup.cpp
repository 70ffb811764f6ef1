#include "core/runtime/name_lookup.h"

#include <mutex>
#include <system_error>
#include <thread>

#include "core/platform/socket/resolve.h"

namespace neuroshard::runtime {

struct NameLookup::Gate {
  std::mutex mutex;
  Executor* executor;  // null: closed
};

NameLookup::NameLookup(Executor& executor) : gate_(std::make_shared<Gate>()) {
  gate_->executor = &executor;
}

NameLookup::~NameLookup() {
  const std::lock_guard lock(gate_->mutex);
  gate_->executor = nullptr;
}

void NameLookup::look_up(const std::string& name, Found found) {
  using Answer = Expected<std::vector<platform::Endpoint>>;
  const auto answer = [gate = gate_, found = std::move(found)](Answer result) {
    const std::lock_guard lock(gate->mutex);
    if (gate->executor == nullptr) return;
    // The answer is lost when the queue is full. It has room for more answers than there are sources.
    static_cast<void>(
        gate->executor->post([found, result = std::move(result)]() mutable { found(std::move(result)); }));
  };
  try {
    std::thread([answer, name] { answer(platform::resolve(name)); }).detach();
  } catch (const std::system_error&) {
    answer(make_error(ErrorCode::Exhausted, "can't start a thread for the name lookup"));
  }
}

}  // namespace neuroshard::runtime
