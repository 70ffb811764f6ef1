#include "core/engine/detail/settings_commands.h"

#include <utility>

#include "core/engine/contribute_state.h"

namespace neuroshard::engine::detail {
namespace {

// The key of the alert that another value of the setting may end; empty: none. Limits that a step could not
// apply have alerts of their own (SessionLimits): a step applies, and reports, only a setting that changed.
std::string alert_of(config::Setting id) {
  switch (id) {
    case config::Setting::MemoryLimit:
    case config::Setting::MaxMicroBatch: return "memory";
    case config::Setting::CpuThreads:
    case config::Setting::IdleCpuThreads:
    case config::Setting::DiskLimit: return config::setting_info(id).name;
    default: return "";
  }
}

}  // namespace

Expected<SettingChange> parse_setting_change(const std::string& name, const std::string& value) {
  SettingChange change;
  NS_ASSIGN_OR_RETURN(change.id, config::find_setting(name));
  change.reset = value.empty();
  NS_ASSIGN_OR_RETURN(
      change.value,
      config::parse_setting(change.id, change.reset ? config::setting_info(change.id).default_text : value));
  return change;
}

SettingsCommands::SettingsCommands(const EngineContext& context) : context_(context) {
  keep_view();
}

Expected<node::CommandId> SettingsCommands::request(SettingChange change) {
  return context_.commands.accept([this, change = std::move(change)](node::CommandId id) mutable {
    change.command = id;
    enqueue(change);
  });
}

bool SettingsCommands::start_next() {
  if (waiting_.empty()) return false;
  const SettingChange change = std::move(waiting_.front());
  waiting_.pop_front();
  context_.jobs.start([this, change](const CancelToken&) { return store(change); },
                      [this, change](const Outcome& outcome) { on_stored(change, outcome); });
  return true;
}

SettingsCommands::Outcome SettingsCommands::store(const SettingChange& change) {
  config::DataDirectory& directory = context_.directory;
  Outcome outcome;
  const config::SettingValue before = directory.settings().value(change.id);
  outcome.stored =
      change.reset ? directory.clear_setting(change.id) : directory.set_setting(change.id, change.value);
  if (outcome.stored.ok() && context_.options.on_settings) context_.options.on_settings(directory.settings());
  outcome.now = directory.settings().value(change.id);
  outcome.changed = outcome.now != before;
  outcome.rules = contribute_rules(directory.settings());
  keep_view();
  return outcome;
}

void SettingsCommands::on_stored(const SettingChange& change, const Outcome& outcome) {
  const bool applied = outcome.stored.ok();
  if (applied && change.id == config::Setting::MemoryLimit)
    context_.publisher.draft().resources.memory_limit_bytes = outcome.now.number;
  if (const std::string alert = alert_of(change.id); applied && outcome.changed && !alert.empty())
    context_.publisher.clear(alert);
  if (listener_) listener_(outcome.rules, applied);
  if (applied) {
    context_.publisher.emit(node::SettingChanged{config::setting_info(change.id).name,
                                                 config::format_setting(change.id, outcome.now)});
    context_.publisher.look_at_http();
    if (change.command != 0) context_.commands.done(change.command);
  } else if (change.command != 0) {
    context_.commands.done(change.command, outcome.stored.error());
  } else {
    context_.services.logger.warning("settings", outcome.stored.error().describe());
  }
}

Expected<void> SettingsCommands::query(node::Reply<std::vector<node::SettingEntry>> reply) {
  return context_.commands.ask([this, reply = std::move(reply)] {
    auto entries = [this] {
      std::lock_guard lock(mutex_);
      return view_;
    }();
    reply(Expected<std::vector<node::SettingEntry>>(std::move(entries)));
  });
}

void SettingsCommands::keep_view() {
  const config::Settings& settings = context_.directory.settings();
  std::vector<node::SettingEntry> entries;
  for (const config::SettingInfo& info : config::settings_table()) {
    node::SettingEntry entry;
    entry.name = info.name;
    entry.value = config::format_setting(info.id, settings.value(info.id));
    entry.default_value = info.default_text;
    entry.type = to_string(info.type);
    entry.help = info.help;
    entry.choices = info.choices;
    entry.origin = to_string(settings.origin(info.id));
    entry.least = info.least;
    entry.most = info.most;
    entry.locked = settings.locked(info.id);
    entry.title = info.label;
    entry.group = info.group;
    entry.unit = info.unit;
    entry.at_restart = info.at_restart;
    entries.push_back(std::move(entry));
  }
  std::lock_guard lock(mutex_);
  view_ = std::move(entries);
}

}  // namespace neuroshard::engine::detail
