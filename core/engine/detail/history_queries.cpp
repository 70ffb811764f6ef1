#include "core/engine/detail/history_queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/history/series_store.h"

namespace neuroshard::engine::detail {
namespace {

// Maps the name of a series in core/node to its name in the history.
std::string history_name(const std::string& name) {
  if (name == "lr") return "learning_rate";
  if (name == "grad_norm") return "gradient_norm";
  if (name == "tokens_per_s") return "tokens_per_second";
  return name;
}

}  // namespace

Expected<void> check_limit(std::size_t limit, std::size_t most) {
  if (limit >= 1 && limit <= most) return {};
  return make_error(ErrorCode::InvalidArgument, fmt::format("ask for 1 to {} entries, not {}", most, limit));
}

Expected<void> HistoryQueries::series(const node::SeriesQuery& query, node::Reply<node::Series> reply) {
  NS_RETURN_IF_ERROR(check_limit(query.buckets, node::max_series_buckets));
  return reader_.ask([this, query, reply = std::move(reply)] { reader_.answer(reply, read_series(query)); });
}

Expected<void> HistoryQueries::logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) {
  NS_RETURN_IF_ERROR(check_limit(query.limit, node::max_page));
  return reader_.ask([this, query, reply = std::move(reply)] { reader_.answer(reply, read_logs(query)); });
}

Expected<node::Series> HistoryQueries::read_series(const node::SeriesQuery& query) {
  const auto last = static_cast<std::uint64_t>(history::max_position);
  // The query's end is exclusive, the store's is inclusive.
  const std::uint64_t to = query.to_step == 0 ? last : std::min(query.to_step - 1, last);
  NS_ASSIGN_OR_RETURN(
      const auto buckets,
      history_.series(history_name(query.name), static_cast<std::int64_t>(std::min(query.from_step, to)),
                      static_cast<std::int64_t>(to), static_cast<std::uint32_t>(query.buckets)));
  node::Series answer{query.name, {}};
  for (const history::Bucket& bucket : buckets) {
    answer.buckets.push_back({static_cast<std::uint64_t>(bucket.first),
                              static_cast<std::uint64_t>(bucket.width), bucket.count, bucket.min, bucket.max,
                              bucket.mean});
  }
  return answer;
}

Expected<node::LogPage> HistoryQueries::read_logs(const node::LogQuery& query) {
  NS_ASSIGN_OR_RETURN(const auto oldest, history_.events_after(0, 1));
  NS_ASSIGN_OR_RETURN(const auto page,
                      history_.events_after(static_cast<std::int64_t>(query.after),
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

}  // namespace neuroshard::engine::detail
