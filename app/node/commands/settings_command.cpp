// neuroshardd settings list | get | set | reset, and set: through a running core, otherwise in the directory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/commands/open_directory.h"

namespace neuroshard::app {
namespace {

using config::Setting;
using config::SettingInfo;
using config::Settings;

// An effective setting from any source.
struct Shown {
  std::string value, origin;
  bool locked = false;
};
using AllShown = std::vector<std::pair<Setting, Shown>>;

Shown shown(const Settings& settings, Setting id) {
  return {config::format_setting(id, settings.value(id)), std::string(config::to_string(settings.origin(id))),
          settings.locked(id)};
}

void show_setting(const SettingInfo& info, const Shown& setting, CommandContext& context) {
  nlohmann::ordered_json object = {{"name", info.name}, {"value", setting.value}};
  if (config::is_number(info.type)) {
    const auto parsed = config::parse_setting(info.id, setting.value);
    if (parsed.ok()) object["number"] = parsed->number;
  }
  object["type"] = std::string(config::to_string(info.type));
  object["class"] = std::string(config::to_string(info.setting_class));
  object["default"] = info.default_text;
  object["least"] = info.least;
  object["most"] = info.most;
  object["choices"] = info.choices;
  object["origin"] = setting.origin;
  object["locked"] = setting.locked;
  object["flag"] = config::flag_name(info);
  object["environment"] = config::environment_name(info);
  object["help"] = info.help;
  context.output.json_line(object);
  context.output.line(
      fmt::format("{:<30} {:<10} {:<14} {}", info.name, setting.value, setting.origin, info.help));
}

// Reads the settings of the core that runs on the directory.
Expected<AllShown> ask_settings(CoreClient& client) {
  using Entries = std::vector<node::SettingEntry>;
  NS_ASSIGN_OR_RETURN(const Entries entries,
                      client.ask<Entries>([](node::Node& node, node::Reply<Entries> reply) {
                        return node.query_settings(std::move(reply));
                      }));
  AllShown all;
  for (const node::SettingEntry& entry : entries) {
    // A core of another version may have settings that this program does not know.
    if (const auto id = config::find_setting(entry.name); id.ok())
      all.emplace_back(*id, Shown{entry.value, entry.origin, entry.locked});
  }
  return all;
}

// Reads the settings of the directory or of the core that runs on it. Without a directory these are the
// defaults, so that the table can be read before the first run.
Expected<AllShown> read_settings(CommandContext& context) {
  const auto in_core = [&]() -> Expected<AllShown> {
    NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
    return ask_settings(*client);
  };
  if (!context.control_file.empty()) return in_core();
  Settings settings;
  if (auto opened = open_data_directory(context, OpenMode::Existing); opened.ok()) {
    settings = opened->directory->settings();
  } else if (opened.error().code == ErrorCode::Busy) {
    return in_core();
  } else if (opened.error().code == ErrorCode::NotFound) {
    NS_ASSIGN_OR_RETURN(
        const auto profile,
        config::load_network_profile(context.files, context.profile.empty() ? "solo" : context.profile));
    NS_ASSIGN_OR_RETURN(settings, Settings::resolve({&profile, nullptr, config::process_environment, {}}));
  } else {
    return std::move(opened).error();
  }
  AllShown all;
  for (const SettingInfo& info : config::settings_table())
    all.emplace_back(info.id, shown(settings, info.id));
  return all;
}

Expected<void> list_settings(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const AllShown settings, read_settings(context));
  for (const auto& [id, setting] : settings) show_setting(config::setting_info(id), setting, context);
  return {};
}

Expected<Setting> named(const std::string& name) {
  auto id = config::find_setting(name);
  if (id.ok()) return id;
  return make_error(ErrorCode::InvalidArgument, id.error().message);
}

Expected<void> get_setting(const std::string& name, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Setting id, named(name));
  NS_ASSIGN_OR_RETURN(const AllShown settings, read_settings(context));
  for (const auto& [other, setting] : settings) {
    if (other != id) continue;
    if (context.json) {
      show_setting(config::setting_info(id), setting, context);
    } else {
      context.output.line(setting.value);
    }
    return {};
  }
  return make_error(ErrorCode::Unsupported,
                    fmt::format("the running core has no setting {}: upgrade it", name));
}

// A running core changes its own settings.
Expected<void> change_in_core(Setting id, const std::string& text, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  const SettingInfo& info = config::setting_info(id);
  NS_RETURN_IF_ERROR(client->command([&](node::Node& node) { return node.set_setting(info.name, text); }));
  NS_ASSIGN_OR_RETURN(const AllShown settings, ask_settings(*client));
  for (const auto& [other, setting] : settings)
    if (other == id) show_setting(info, setting, context);
  if (info.at_restart) context.output.note("It takes effect at the next start of the node.");
  return {};
}

Expected<void> change_setting(const std::string& name, const std::string* text, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Setting id, named(name));
  config::SettingValue value;
  if (text != nullptr) {
    NS_ASSIGN_OR_RETURN(value, config::parse_setting(id, *text));
  }
  const auto in_core = [&] {
    return change_in_core(id, text != nullptr ? *text : std::string(), context);  // empty: the default
  };
  if (!context.control_file.empty()) return in_core();
  const auto opened = open_data_directory(context, OpenMode::Create);
  if (!opened.ok()) {
    if (opened.error().code != ErrorCode::Busy) return opened.error();
    return in_core();
  }
  config::DataDirectory& directory = *opened->directory;
  NS_RETURN_IF_ERROR(text != nullptr ? directory.set_setting(id, value) : directory.clear_setting(id));
  show_setting(config::setting_info(id), shown(directory.settings(), id), context);
  return {};
}

}  // namespace

void add_set_command(CLI::App& root, CommandContext& context) {
  auto name = std::make_shared<std::string>();
  auto value = std::make_shared<std::string>();
  CLI::App& set = add_command(root, "set", "Change a setting, also of a running node",
                              {"neuroshardd set memory_limit 2GiB", "neuroshardd set cpu_threads 2"});
  set.add_option("name", *name, "name of the setting, see \"neuroshardd settings list\"")->required();
  set.add_option("value", *value, "the new value")->required();
  set_body(
      set, context, [name, value, &context] { return change_setting(*name, value.get(), context); },
      WorksWith::AnyComputer);
}

void add_settings_command(CLI::App& root, CommandContext& context) {
  CLI::App& settings =
      add_command(root, "settings", "Show and change the settings of this node",
                  {"neuroshardd settings list", "neuroshardd settings set memory_limit 4GiB"});
  CLI::App& list = add_command(settings, "list", "List all settings with value, origin and meaning",
                               {"neuroshardd settings list --json"});
  set_body(
      list, context, [&context] { return list_settings(context); }, WorksWith::AnyComputer);

  struct Arguments {
    std::string name, value;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App& get = add_command(settings, "get", "Show one setting", {"neuroshardd settings get cpu_threads"});
  get.add_option("name", arguments->name, "name of the setting")->required();
  set_body(
      get, context, [arguments, &context] { return get_setting(arguments->name, context); },
      WorksWith::AnyComputer);

  CLI::App& set = add_command(settings, "set", "Change one setting in settings.toml",
                              {"neuroshardd settings set checkpoint_min_interval 5min"});
  set.add_option("name", arguments->name, "name of the setting")->required();
  set.add_option("value", arguments->value, "the new value")->required();
  set_body(
      set, context,
      [arguments, &context] { return change_setting(arguments->name, &arguments->value, context); },
      WorksWith::AnyComputer);

  CLI::App& reset = add_command(settings, "reset", "Reset one setting to its default",
                                {"neuroshardd settings reset memory_limit"});
  reset.add_option("name", arguments->name, "name of the setting")->required();
  set_body(
      reset, context, [arguments, &context] { return change_setting(arguments->name, nullptr, context); },
      WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
