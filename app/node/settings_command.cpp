// neuroshardd settings list | get | set | reset
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/open_directory.h"

namespace neuroshard::app {
namespace {

using engine::Setting;
using engine::SettingInfo;
using engine::Settings;

void show_setting(const Settings& settings, const SettingInfo& info, CommandContext& context) {
  const std::string value = engine::format_setting(info.id, settings.value(info.id));
  nlohmann::ordered_json object = {{"name", info.name}, {"value", value}};
  if (info.type != engine::SettingType::Choice) object["number"] = settings.number(info.id);
  object["type"] = std::string(engine::to_string(info.type));
  object["class"] = std::string(engine::to_string(info.setting_class));
  object["default"] = info.default_text;
  object["least"] = info.least;
  object["most"] = info.most;
  object["choices"] = info.choices;
  object["origin"] = std::string(engine::to_string(settings.origin(info.id)));
  object["locked"] = settings.locked(info.id);
  object["flag"] = engine::flag_name(info);
  object["environment"] = engine::environment_name(info);
  object["help"] = info.help;
  context.output.json_line(object);
  context.output.line(fmt::format("{:<30} {:<10} {:<14} {}", info.name, value,
                                  engine::to_string(settings.origin(info.id)), info.help));
}

// Settings of the directory; of a fresh one where there is none yet, so that the table can be read before the
// first run.
Expected<Settings> read_settings(CommandContext& context) {
  auto opened = open_data_directory(context, OpenMode::Existing);
  if (opened.ok()) return opened->directory->settings();
  if (opened.error().code != ErrorCode::NotFound) return std::move(opened).error();
  NS_ASSIGN_OR_RETURN(
      const auto profile,
      engine::load_network_profile(context.files, context.profile.empty() ? "solo" : context.profile));
  return Settings::resolve({&profile, nullptr, engine::process_environment, {}});
}

Expected<void> list_settings(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Settings settings, read_settings(context));
  for (const SettingInfo& info : engine::settings_table()) show_setting(settings, info, context);
  return {};
}

Expected<Setting> named(const std::string& name) {
  auto id = engine::find_setting(name);
  if (id.ok()) return id;
  return make_error(ErrorCode::InvalidArgument, id.error().message);
}

Expected<void> get_setting(const std::string& name, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Setting id, named(name));
  NS_ASSIGN_OR_RETURN(const Settings settings, read_settings(context));
  if (context.json) {
    show_setting(settings, engine::setting_info(id), context);
  } else {
    context.output.line(engine::format_setting(id, settings.value(id)));
  }
  return {};
}

Expected<void> change_setting(const std::string& name, const std::string* text, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Setting id, named(name));
  engine::SettingValue value;
  if (text != nullptr) {
    NS_ASSIGN_OR_RETURN(value, engine::parse_setting(id, *text));
  }
  NS_ASSIGN_OR_RETURN(const OpenedDirectory opened, open_data_directory(context, OpenMode::Create));
  engine::DataDirectory& directory = *opened.directory;
  NS_RETURN_IF_ERROR(text != nullptr ? directory.set_setting(id, value) : directory.clear_setting(id));
  show_setting(directory.settings(), engine::setting_info(id), context);
  return {};
}

}  // namespace

void add_settings_command(CLI::App& root, CommandContext& context) {
  CLI::App& settings =
      add_command(root, "settings", "Show and change the settings of this node",
                  {"neuroshardd settings list", "neuroshardd settings set memory_limit 4GiB"});
  CLI::App& list = add_command(settings, "list", "Every setting: value, where it comes from, meaning",
                               {"neuroshardd settings list --json"});
  set_body(list, context, [&context] { return list_settings(context); });

  struct Arguments {
    std::string name, value;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App& get = add_command(settings, "get", "Show one setting", {"neuroshardd settings get cpu_threads"});
  get.add_option("name", arguments->name, "name of the setting")->required();
  set_body(get, context, [arguments, &context] { return get_setting(arguments->name, context); });

  CLI::App& set = add_command(settings, "set", "Change one setting, kept in settings.toml",
                              {"neuroshardd settings set checkpoint_min_interval 5min"});
  set.add_option("name", arguments->name, "name of the setting")->required();
  set.add_option("value", arguments->value, "the new value")->required();
  set_body(set, context,
           [arguments, &context] { return change_setting(arguments->name, &arguments->value, context); });

  CLI::App& reset = add_command(settings, "reset", "Take one setting back to its default",
                                {"neuroshardd settings reset memory_limit"});
  reset.add_option("name", arguments->name, "name of the setting")->required();
  set_body(reset, context,
           [arguments, &context] { return change_setting(arguments->name, nullptr, context); });
}

}  // namespace neuroshard::app
