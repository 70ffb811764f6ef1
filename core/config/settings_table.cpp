#include "core/config/settings_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "core/base/check.h"
#include "core/base/edit_distance.h"
#include "core/config/former_names.h"
#include "core/rounds/sync.h"

namespace neuroshard::config {
namespace {

constexpr std::uint64_t max_bytes = std::uint64_t{1} << 60;
constexpr std::uint64_t day = 86'400;

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
     false},
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

std::string environment_name(const char* setting) {
  std::string name = std::string("NEUROSHARD_") + setting;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

std::string environment_name(const SettingInfo& info) {
  return environment_name(info.name);
}

}  // namespace neuroshard::config
