// The engine's queries: read on the reading thread, whatever the compute thread does, answered on the core
// thread.
#include <fmt/format.h>

#include <algorithm>

#include "core/checkpoint/catalogue.h"
#include "core/engine/detail/checkpoint_entry.h"
#include "core/engine/detail/engine_core.h"
#include "core/engine/training_history.h"
#include "core/history/series_store.h"

namespace neuroshard::engine::detail {
namespace {

Expected<void> check_limit(std::size_t limit, std::size_t most) {
  if (limit >= 1 && limit <= most) return {};
  return make_error(ErrorCode::InvalidArgument, fmt::format("ask for 1 to {} entries, not {}", most, limit));
}

// What the seam calls a series, and what the history calls it.
std::string history_name(const std::string& name) {
  if (name == "lr") return "learning_rate";
  if (name == "grad_norm") return "gradient_norm";
  if (name == "tokens_per_s") return "tokens_per_second";
  return name;
}

}  // namespace

Expected<void> EngineCore::ask_reader(std::function<void()> question) {
  if (refusing_.load()) return make_error(ErrorCode::Cancelled, "the node is shutting down");
  if (reader_->post(std::move(question))) return {};
  return make_error(ErrorCode::Busy, "too many questions are waiting; try again in a moment");
}

Expected<void> EngineCore::ask_core(std::function<void()> question) {
  if (refusing_.load()) return make_error(ErrorCode::Cancelled, "the node is shutting down");
  if (core_->post(std::move(question))) return {};
  return make_error(ErrorCode::Busy, "the node has too much to do; try again in a moment");
}

Expected<void> EngineCore::query_series(const node::SeriesQuery& query, node::Reply<node::Series> reply) {
  NS_RETURN_IF_ERROR(check_limit(query.buckets, node::max_series_buckets));
  return ask_reader([this, query, reply = std::move(reply)] { reply_on_core(reply, read_series(query)); });
}

Expected<void> EngineCore::query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) {
  NS_RETURN_IF_ERROR(check_limit(query.limit, node::max_page));
  return ask_reader([this, query, reply = std::move(reply)] { reply_on_core(reply, read_logs(query)); });
}

Expected<void> EngineCore::query_checkpoints(const node::CheckpointQuery& query,
                                             node::Reply<node::CheckpointPage> reply) {
  NS_RETURN_IF_ERROR(check_limit(query.limit, node::max_page));
  return ask_reader(
      [this, query, reply = std::move(reply)] { reply_on_core(reply, read_checkpoints(query)); });
}

Expected<void> EngineCore::query_settings(node::Reply<std::vector<node::SettingEntry>> reply) {
  return ask_core([this, reply = std::move(reply)] {
    auto entries = [this] {
      std::lock_guard lock(settings_mutex_);
      return settings_view_;
    }();
    reply(Expected<std::vector<node::SettingEntry>>(std::move(entries)));
  });
}

void EngineCore::keep_settings_view() {
  const config::Settings& settings = directory_->settings();
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
  std::lock_guard lock(settings_mutex_);
  settings_view_ = std::move(entries);
}

Expected<node::Series> EngineCore::read_series(const node::SeriesQuery& query) {
  const auto last = static_cast<std::uint64_t>(history::max_position);
  // The seam's end is open, the store's is not.
  const std::uint64_t to = query.to_step == 0 ? last : std::min(query.to_step - 1, last);
  NS_ASSIGN_OR_RETURN(
      const auto buckets,
      history_->series(history_name(query.name), static_cast<std::int64_t>(std::min(query.from_step, to)),
                       static_cast<std::int64_t>(to), static_cast<std::uint32_t>(query.buckets)));
  node::Series answer{query.name, {}};
  for (const history::Bucket& bucket : buckets) {
    answer.buckets.push_back({static_cast<std::uint64_t>(bucket.first),
                              static_cast<std::uint64_t>(bucket.width), bucket.count, bucket.min, bucket.max,
                              bucket.mean});
  }
  return answer;
}

Expected<node::LogPage> EngineCore::read_logs(const node::LogQuery& query) {
  NS_ASSIGN_OR_RETURN(const auto oldest, history_->events_after(0, 1));
  NS_ASSIGN_OR_RETURN(const auto page,
                      history_->events_after(static_cast<std::int64_t>(query.after),
                                             static_cast<std::uint32_t>(query.limit), query.least));
  node::LogPage answer;
  answer.next = static_cast<std::uint64_t>(page.next);
  answer.more = page.more;
  if (query.after != 0 && !oldest.events.empty()) {
    const auto first = static_cast<std::uint64_t>(oldest.events.front().sequence);
    answer.dropped = first > query.after + 1 ? first - query.after - 1 : 0;
  }
  for (const history::Event& event : page.events) {
    answer.entries.push_back({static_cast<std::uint64_t>(event.sequence),
                              WallTime(std::chrono::milliseconds(event.time_ms)),
                              {event.level, event.category, event.text}});
  }
  return answer;
}

Expected<node::CheckpointPage> EngineCore::read_checkpoints(const node::CheckpointQuery& query) {
  NS_ASSIGN_OR_RETURN(const auto entries, catalogue().list());
  auto at = entries.begin();
  if (!query.after.empty()) {
    at = std::find_if(entries.begin(), entries.end(),
                      [&query](const auto& entry) { return entry.name == query.after; });
    if (at != entries.end()) ++at;
  }
  node::CheckpointPage page;
  for (; at != entries.end() && page.entries.size() < query.limit; ++at) {
    page.entries.push_back(checkpoint_entry(*at));
  }
  page.more = at != entries.end();
  return page;
}

Expected<void> EngineCore::query_network(node::Reply<node::NetworkView> reply) {
  return ask_core([this, reply = std::move(reply)] {
    if (options_.network == nullptr) return reply(node::NetworkView{});
    options_.network->view(reply);
  });
}

Expected<void> EngineCore::query_rounds(node::Reply<node::RoundsReport> reply) {
  return ask_core([this, reply = std::move(reply)] {
    if (!options_.rounds_report) return reply(node::RoundsReport{});
    options_.rounds_report(reply);
  });
}

Expected<void> EngineCore::test_reachability() {
  if (options_.network == nullptr)
    return make_error(ErrorCode::Unsupported, "this node has joined no network, so nobody can be asked");
  options_.network->test_reachability();
  return {};
}

}  // namespace neuroshard::engine::detail
