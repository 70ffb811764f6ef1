// Applies changes of settings in their order, and answers queries for the list of settings.
//
// Threads: query() and request() from any thread; the rest on the core executor. The compute thread changes
// the data directory's settings, because the training session reads them there.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/config/settings.h"
#include "core/contribute/rules.h"
#include "core/engine/detail/command_queue.h"
#include "core/engine/detail/engine_context.h"

namespace neuroshard::engine::detail {

struct SettingChange {
  node::CommandId command = 0;  // 0: part of another command, which a failure here does not end
  config::Setting id{};
  config::SettingValue value;
  bool reset = false;  // to the value that holds without the user's choice
};
// An empty value is a reset.  Errors: NotFound, InvalidArgument.
Expected<SettingChange> parse_setting_change(const std::string& name, const std::string& value);

class SettingsCommands {
 public:
  // Gets the contribute rules after each change; applied: the change is in effect.
  using Listener = std::function<void(const contribute::Rules& rules, bool applied)>;

  explicit SettingsCommands(const EngineContext& context);

  void set_listener(Listener listener) { listener_ = std::move(listener); }
  Expected<node::CommandId> request(SettingChange change);
  // For an accepted command.
  void enqueue(SettingChange change) { waiting_.push_back(std::move(change)); }
  // Starts the job of the next change, if there is one.
  bool start_next();
  Expected<void> query(node::Reply<std::vector<node::SettingEntry>> reply);

 private:
  struct Outcome {
    Expected<void> stored;
    config::SettingValue now;  // in force: after a reset, that of the profile or the default
    bool changed = false;      // it was another value before
    contribute::Rules rules;
  };
  Outcome store(const SettingChange& change);  // compute thread
  void on_stored(const SettingChange& change, const Outcome& outcome);
  void keep_view();

  const EngineContext& context_;
  Listener listener_;
  std::deque<SettingChange> waiting_;

  std::mutex mutex_;
  std::vector<node::SettingEntry> view_;
};

}  // namespace neuroshard::engine::detail
