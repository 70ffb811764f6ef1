#include "core/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "core/base/week_hours.h"
#include "core/config/former_names.h"
#include "core/contribute/rules.h"
#include "core/platform/socket/resolve.h"
#include "core/rounds/sync.h"

namespace neuroshard::config {
namespace {

constexpr std::uint64_t kib = 1024, mib = kib * 1024, gib = mib * 1024, tib = gib * 1024;
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 60;
constexpr std::uint64_t day = 86'400;
constexpr std::size_t max_programs_text = 2048;
constexpr std::size_t max_text = 508;  // of a TURN user's name (RFC 8489 §14.3), and enough for a path

using T = SettingType;
using K = SettingClass;
using S = Setting;
constexpr std::array<SettingInfo, setting_count> table{{
    {S::CpuThreads, "cpu_threads", T::Integer, K::Limit, 0, 1024, "0", "",
     "CPU threads to compute with; 0 = all usable", "CPU threads", "Limits", "", false},
    {S::MemoryLimit, "memory_limit", T::Bytes, K::Limit, 0, max_bytes, "0", "",
     "memory of the whole process, kept within 5 %; 0 = no limit", "Memory", "Limits", "B", false},
    {S::DiskLimit, "disk_limit", T::Bytes, K::Limit, 0, max_bytes, "0", "",
     "disk space for data, checkpoints and rounds: the next checkpoint deletes older ones above it, and "
     "rounds pause; "
     "0 = no limit",
     "Disk space", "Limits", "B", false},
    {S::Device, "device", T::Choice, K::Setting, 0, 0, "cpu", "cpu", "device that computes", "Device",
     "Advanced", "", true},
    {S::Precision, "precision", T::Choice, K::Setting, 0, 0, "auto", "auto|fp32|bf16",
     "arithmetic: bf16 is faster where the processor has units for it, fp32 exact; auto = bf16 there",
     "Precision", "Advanced", "", true},
    {S::MaxMicroBatch, "max_micro_batch", T::Integer, K::Setting, 1, 1024, "8", "",
     "largest number of sequences at once; less where memory is short", "Largest micro-batch", "Training", "",
     false},
    {S::GenerationShare, "generation_share", T::Integer, K::Setting, 5, 95, "50", "",
     "share of the time for generating text while the node trains; training has the rest, and all of it "
     "while "
     "nobody asks for text",
     "Share for generated text", "Training", "%", false},
    {S::Part, "part", T::Integer, K::Setting, 0, rounds::most_profile_parts, "0", "",
     "part of the model that this node holds, where the network's members hold parts (1 is the first); 0 = "
     "the network chooses, and moves the node where it is needed",
     "Part of the model", "Training", "", true},
    {S::CheckpointMinInterval, "checkpoint_min_interval", T::Seconds, K::Setting, 0, day, "10min", "",
     "shortest time between two automatic checkpoints", "Time between checkpoints", "Storage", "s", false},
    {S::CheckpointEverySteps, "checkpoint_every_steps", T::Integer, K::Setting, 1, 1'000'000, "10", "",
     "steps between two automatic checkpoints", "Steps between checkpoints", "Storage", "", false},
    {S::CheckpointKeepLast, "checkpoint_keep_last", T::Integer, K::Setting, 1, 10'000, "3", "",
     "newest checkpoints to keep, beside the best and the pinned ones", "Checkpoints to keep", "Storage", "",
     true},
    {S::CheckpointDailyWriteBudget, "daily_write_budget", T::Bytes, K::Limit, 0, max_bytes, "50GiB", "",
     "bytes that automatic checkpoints and rounds may write per day: then checkpoints wait, and rounds "
     "pause; 0 = no "
     "limit",
     "Daily writes", "Storage", "B", false},
    {S::EvalIntervalSteps, "eval_interval_steps", T::Integer, K::Setting, 0, 1'000'000, "100", "",
     "steps between two evaluations on held-out text; 0 = never", "Steps between evaluations", "Training", "",
     false},
    {S::EvalTokens, "eval_tokens", T::Integer, K::Setting, 1, 1'000'000'000, "16384", "",
     "tokens of held-out text per evaluation", "Tokens per evaluation", "Training", "", true},
    {S::ShardTokens, "shard_tokens", T::Integer, K::Setting, 1'024, 2'500'000, "2500000", "",
     "tokens in one shard of imported text", "Tokens per shard", "Advanced", "", true},
    {S::LogLevel, "log_level", T::Choice, K::Setting, 0, 0, "info", "debug|info|warning|error",
     "lowest level that is written to the log", "Log level", "Advanced", "", true},
    {S::Contribute, "contribute", T::Choice, K::Setting, 0, 0, "on", "on|off",
     "train while the node runs; off = pause until it is on again (the command train ignores it)",
     "Contribute", "Training", "", false},
    {S::Schedule, "schedule", T::Hours, K::Setting, 0, 0, "always", "",
     "hours of the week in which a running node trains, in local time: always, never, \"mon-fri 18-8; "
     "sat-sun\"",
     "Hours", "Schedule", "", false},
    {S::PauseOnBattery, "pause_on_battery", T::Choice, K::Setting, 0, 0, "always", "always|low|never",
     "pause while the computer runs on battery: always, only when the charge is low, or never",
     "On battery, pause", "Power", "", false},
    {S::BatteryLowPercent, "battery_low_percent", T::Integer, K::Setting, 1, 100, "50", "",
     "charge below which the battery counts as low", "Low charge", "Power", "%", false},
    {S::PauseOnMetered, "pause_on_metered", T::Choice, K::Setting, 0, 0, "on", "on|off",
     "pause while the network connection is metered (needs the desktop app)", "Pause on metered connections",
     "Network", "", false},
    {S::PauseInFullScreen, "pause_in_full_screen", T::Choice, K::Setting, 0, 0, "on", "on|off",
     "pause while a program fills the screen (needs the desktop app)", "Pause in full screen", "Schedule", "",
     false},
    {S::PauseForPrograms, "pause_for_programs", T::Programs, K::Setting, 0, 0, "", "",
     "pause while one of these programs runs: names, separated by commas; empty = none", "Pause for programs",
     "Schedule", "", false},
    {S::OnlyWhenIdle, "only_when_idle", T::Choice, K::Setting, 0, 0, "off", "on|off",
     "train only while the computer is idle; unknown counts as in use (needs the desktop app)",
     "Only when idle", "Schedule", "", false},
    {S::IdleAfter, "idle_after", T::Seconds, K::Setting, 10, day, "3min", "",
     "time without keyboard and mouse input after which the computer counts as idle", "Idle after",
     "Schedule", "s", false},
    {S::IdleCpuThreads, "idle_cpu_threads", T::Integer, K::Limit, 0, 1024, "0", "",
     "CPU threads while the computer is idle; 0 = the same as otherwise", "CPU threads when idle", "Limits",
     "", false},
    {S::TemperatureLimit, "temperature_limit", T::Integer, K::Limit, 0, 110, "0", "",
     "pause while the processor is at least this hot; 0 = no limit", "Temperature", "Limits", "°C", false},
    {S::ListenPort, "listen_port", T::Integer, K::Setting, 0, 65'535, "0", "",
     "port at which peers reach this node; a free one if it is taken; 0 = the network's default",
     "Port for peers", "Network", "", true},
    {S::OpenPort, "open_port", T::Choice, K::Setting, 0, 0, "on", "on|off",
     "ask the router to open the port for peers (UPnP, NAT-PMP) and to close it on exit",
     "Open the port at the router", "Network", "", true},
    {S::RelayForOthers, "relay_for_others", T::Choice, K::Setting, 0, 0, "on", "on|off",
     "relay connections for nodes behind closed routers, within limits, while this node is reachable "
     "from outside",
     "Relay for others", "Network", "", true},
    {S::TurnServer, "turn_server", T::Text, K::Setting, 0, 0, "", "",
     "your own TURN server that relays TCP (host:port; coturn uses 3478), for a node behind a closed router; "
     "empty = none, other nodes relay",
     "TURN server", "Network", "", true},
    {S::TurnUser, "turn_user", T::Text, K::Setting, 0, 0, "", "", "user name at the TURN server", "TURN user",
     "Network", "", true},
    {S::TurnPasswordFile, "turn_password_file", T::Path, K::Setting, 0, 0, "turn.password", "",
     "file whose first line is the password at the TURN server; a relative path starts in the data "
     "directory",
     "TURN password file", "Network", "", true},
    {S::ServeFiles, "serve_files", T::Choice, K::Setting, 0, 0, "on", "on|off",
     "serve cached data and the newest checkpoints to other nodes of the network; a checkpoint is kept "
     "while a node fetches it",
     "Serve files to others", "Network", "", true},
    {S::LocalDiscovery, "local_discovery", T::Choice, K::Setting, 0, 0, "on", "on|off",
     "find nodes of the same network on the local network (multicast DNS) and be found there; private "
     "networks only",
     "Find local nodes", "Network", "", true},
    {S::MainlineRendezvous, "mainline_rendezvous", T::Choice, K::Setting, 0, 0, "on", "on|off",
     "when no other node is found, look for nodes in the public BitTorrent DHT and list this node's address "
     "there",
     "Use the BitTorrent DHT", "Network", "", true},
    {S::UploadLimit, "upload_limit", T::Bytes, K::Limit, 0, max_bytes, "0", "",
     "bytes per second to peers, 64KiB or more to be useful; 0 = no limit", "Upload rate", "Limits", "B/s",
     false},
    {S::DownloadLimit, "download_limit", T::Bytes, K::Limit, 0, max_bytes, "0", "",
     "bytes per second from peers, 64KiB or more to be useful; 0 = no limit", "Download rate", "Limits",
     "B/s", false},
    {S::MonthlyData, "monthly_data", T::Bytes, K::Limit, 0, max_bytes, "0", "",
     "bytes to and from peers in a calendar month; 0 = no limit", "Data per month", "Limits", "B", false},
    {S::Http, "http", T::Choice, K::Setting, 0, 0, "off", "on|off",
     "local HTTP server for OpenAI clients and Prometheus, on 127.0.0.1 only, with a key", "Local HTTP",
     "Local HTTP", "", false},
    {S::HttpPort, "http_port", T::Integer, K::Setting, 0, 65'535, "8000", "",
     "port of the local HTTP server; 0 = any free one", "Local HTTP port", "Local HTTP", "", false},
    {S::HttpKeyFile, "http_key_file", T::Path, K::Setting, 0, 0, "http.key", "",
     "file whose first line is the key of the local HTTP server, made when it is missing; a relative path "
     "starts "
     "in the data directory",
     "Local HTTP key file", "Local HTTP", "", false},
}};

constexpr bool table_in_order() {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (static_cast<std::size_t>(table[i].id) != i) return false;
  }
  return true;
}
static_assert(table_in_order(), "settings_table() is indexed by Setting");

struct Unit {
  const char* suffix;  // lower case
  std::uint64_t factor;
};
constexpr std::array<Unit, 14> byte_units{{{"", 1},
                                           {"b", 1},
                                           {"k", kib},
                                           {"kb", kib},
                                           {"kib", kib},
                                           {"m", mib},
                                           {"mb", mib},
                                           {"mib", mib},
                                           {"g", gib},
                                           {"gb", gib},
                                           {"gib", gib},
                                           {"t", tib},
                                           {"tb", tib},
                                           {"tib", tib}}};
constexpr std::array<Unit, 8> second_units{
    {{"", 1}, {"s", 1}, {"sec", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", day}, {"day", day}}};
constexpr std::array<Unit, 1> no_units{{{"", 1}}};

Span<const Unit> units_of(SettingType type) {
  if (type == T::Bytes) return {byte_units.data(), byte_units.size()};
  if (type == T::Seconds) return {second_units.data(), second_units.size()};
  return {no_units.data(), no_units.size()};
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return result;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// The permitted values, for error messages.
std::string allowed(const SettingInfo& info) {
  const auto bound = [&info](std::uint64_t number) { return format_setting(info.id, {number, {}}); };
  switch (info.type) {
    case T::Choice: return fmt::format("one of {}", info.choices);
    case T::Bytes:
      return fmt::format("a size like 512MiB or 4GiB, between {} and {}", bound(info.least),
                         bound(info.most));
    case T::Seconds:
      return fmt::format("a time like 30s or 10min, between {} and {}", bound(info.least), bound(info.most));
    case T::Hours: return "hours of the week";
    case T::Programs: return "names of programs";
    case T::Text:
    case T::Path: return "one line";
    case T::Integer: break;
  }
  return fmt::format("a whole number between {} and {}", info.least, info.most);
}

Error wrong_value(const SettingInfo& info, std::string_view text) {
  return make_error(ErrorCode::InvalidArgument, fmt::format("{} can't be '{}'; it must be {}", info.name,
                                                            text.substr(0, 100), allowed(info)));
}

bool is_choice(const SettingInfo& info, std::string_view word) {
  std::string_view rest = info.choices;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('|'), rest.size());
    if (rest.substr(0, end) == word) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// As it is: settings.toml is written without escapes and read as ASCII.
Expected<SettingValue> parse_line(const SettingInfo& info, std::string_view text) {
  const auto refused = [&info](std::string why) {
    return make_error(ErrorCode::InvalidArgument, fmt::format("{}: {}", info.name, why));
  };
  if (text.size() > max_text) return refused(fmt::format("it takes at most {} characters", max_text));
  const bool sound = std::all_of(text.begin(), text.end(),
                                 [](char c) { return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\'; });
  if (!sound) return refused("only letters, digits and signs of ASCII, without \" and \\");
  if (info.id == S::TurnServer && !text.empty())
    if (const auto place = platform::check_place(std::string(text)); !place.ok())
      return refused(place.error().message);
  return SettingValue{0, std::string(text)};
}

// In its regular form, so that equal values are equal texts.
Expected<SettingValue> parse_text(const SettingInfo& info, std::string_view text) {
  const auto named = [&info](Error error) {
    error.message = fmt::format("{}: {}", info.name, error.message);
    return error;
  };
  if (info.type == T::Hours) {
    auto hours = WeekHours::parse(text);
    if (!hours.ok()) return named(std::move(hours).error());
    return SettingValue{0, hours->text()};
  }
  if (text.size() > max_programs_text) {
    return named(
        make_error(ErrorCode::InvalidArgument,
                   fmt::format("a list of programs takes at most {} characters", max_programs_text)));
  }
  const auto programs = contribute::parse_programs(text);
  if (!programs.ok()) return named(programs.error());
  std::string joined;
  for (const std::string& name : *programs) joined += (joined.empty() ? "" : ", ") + name;
  return SettingValue{0, joined};
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

bool is_number(SettingType type) {
  return type == T::Integer || type == T::Bytes || type == T::Seconds;
}

std::string_view to_string(SettingType type) {
  switch (type) {
    case T::Integer: return "integer";
    case T::Bytes: return "bytes";
    case T::Seconds: return "seconds";
    case T::Choice: return "choice";
    case T::Hours: return "hours";
    case T::Programs: return "programs";
    case T::Text: return "text";
    case T::Path: return "path";
  }
  return "unknown";
}

std::string_view to_string(SettingClass setting_class) {
  return setting_class == K::Limit ? "limit" : "setting";
}

std::string_view to_string(SettingOrigin origin) {
  switch (origin) {
    case SettingOrigin::BuiltIn: return "built-in";
    case SettingOrigin::Profile: return "profile";
    case SettingOrigin::File: return "settings.toml";
    case SettingOrigin::Environment: return "environment";
    case SettingOrigin::Flag: return "flag";
  }
  return "unknown";
}

Span<const SettingInfo> settings_table() {
  return {table.data(), table.size()};
}

const SettingInfo& setting_info(Setting id) {
  NS_CHECK(id < Setting::Count);
  return table[static_cast<std::size_t>(id)];
}

Expected<Setting> find_setting(std::string_view name) {
  for (const FormerName& former : former_names)
    if (name == former.name) return former.id;
  const SettingInfo* nearest = table.data();
  std::size_t least = std::numeric_limits<std::size_t>::max();
  const std::string_view head = name.substr(0, 64);  // a bound on the work for nonsense
  for (const SettingInfo& info : table) {
    if (name == info.name) return info.id;
    if (const std::size_t distance = edit_distance(head, info.name); distance < least) {
      least = distance;
      nearest = &info;
    }
  }
  const std::string hint = least <= 3 ? fmt::format("did you mean {}? ", nearest->name) : std::string();
  return make_error(ErrorCode::NotFound,
                    fmt::format("there is no setting '{}'; {}See \"neuroshardd settings list\"", head, hint));
}

std::string flag_name(const SettingInfo& info) {
  std::string name = std::string("--") + info.name;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

namespace {

std::string variable_of(const char* setting) {
  std::string name = std::string("NEUROSHARD_") + setting;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

}  // namespace

std::string environment_name(const SettingInfo& info) {
  return variable_of(info.name);
}

Expected<SettingValue> parse_setting(Setting id, std::string_view text) {
  const SettingInfo& info = setting_info(id);
  const std::string_view trimmed = trim(text);
  if (info.type == T::Hours || info.type == T::Programs) return parse_text(info, trimmed);
  if (info.type == T::Text || info.type == T::Path) return parse_line(info, trimmed);
  if (trimmed.size() > 64) return wrong_value(info, trimmed);
  const std::string word = lower(trimmed);
  if (info.type == T::Choice) {
    if (!is_choice(info, word)) return wrong_value(info, trimmed);
    return SettingValue{0, word};
  }
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (failed != std::errc() || word.empty()) return wrong_value(info, trimmed);
  const std::string_view suffix =
      trim(std::string_view(end, static_cast<std::size_t>(word.data() + word.size() - end)));
  for (const Unit& unit : units_of(info.type)) {
    if (suffix != unit.suffix) continue;
    if (number > std::numeric_limits<std::uint64_t>::max() / unit.factor) return wrong_value(info, trimmed);
    number *= unit.factor;
    if (number < info.least || number > info.most) return wrong_value(info, trimmed);
    return SettingValue{number, {}};
  }
  return wrong_value(info, trimmed);
}

std::string format_setting(Setting id, const SettingValue& value) {
  const SettingInfo& info = setting_info(id);
  if (!is_number(info.type)) return value.word;
  if (value.number != 0 && info.type == T::Bytes) {
    for (const auto& [factor, suffix] :
         {std::pair{tib, "TiB"}, std::pair{gib, "GiB"}, std::pair{mib, "MiB"}, std::pair{kib, "KiB"}}) {
      if (value.number % factor == 0) return fmt::format("{}{}", value.number / factor, suffix);
    }
  }
  if (value.number != 0 && info.type == T::Seconds) {
    for (const auto& [factor, suffix] :
         {std::pair{std::uint64_t{3600}, "h"}, std::pair{std::uint64_t{60}, "min"}}) {
      if (value.number % factor == 0) return fmt::format("{}{}", value.number / factor, suffix);
    }
    return fmt::format("{}s", value.number);
  }
  return fmt::format("{}", value.number);
}

Settings::Settings() {
  for (const SettingInfo& info : table) {
    auto value = parse_setting(info.id, info.default_text);
    NS_CHECK(value.ok());
    put(info.id, std::move(*value), SettingOrigin::BuiltIn);
  }
}

void Settings::put(Setting id, SettingValue value, SettingOrigin origin) {
  entries_[static_cast<std::size_t>(id)] = {std::move(value), origin};
}

Expected<Settings> Settings::resolve(const Sources& sources) {
  Settings settings;
  if (sources.profile != nullptr) {
    const DirectoryPart& directory = sources.profile->directory;
    settings.put(S::CheckpointMinInterval, {directory.checkpoint_min_interval, {}}, SettingOrigin::Profile);
  }
  if (sources.file != nullptr) {
    for (const auto& [id, value] : *sources.file) settings.put(id, value, SettingOrigin::File);
  }
  if (sources.environment != nullptr) {
    std::vector<std::pair<Setting, std::string>> variables;
    for (const FormerName& former : former_names) variables.emplace_back(former.id, variable_of(former.name));
    for (const SettingInfo& info : table) variables.emplace_back(info.id, environment_name(info));
    for (const auto& [id, variable] : variables) {
      const auto text = sources.environment(variable);
      if (!text) continue;
      auto value = parse_setting(id, *text);
      if (!value.ok()) return std::move(value).error().with_context("environment variable " + variable);
      settings.put(id, std::move(*value), SettingOrigin::Environment);
    }
  }
  for (const auto& [id, text] : sources.flags) {
    auto value = parse_setting(id, text);
    if (!value.ok()) return std::move(value).error().with_context("flag " + flag_name(setting_info(id)));
    settings.put(id, std::move(*value), SettingOrigin::Flag);
  }
  return settings;
}

Expected<void> Settings::set(Setting id, const SettingValue& value) {
  if (locked(id)) {
    const SettingInfo& info = setting_info(id);
    return make_error(ErrorCode::Denied,
                      fmt::format("{} is fixed to {} by {}; take that away to change it", info.name,
                                  format_setting(id, this->value(id)),
                                  origin(id) == SettingOrigin::Flag
                                      ? "the flag " + flag_name(info)
                                      : "the environment variable " + environment_name(info)));
  }
  put(id, value, SettingOrigin::File);
  return {};
}

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace neuroshard::config
