#include "core/data/detail/published_files.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::data::detail {
namespace {

constexpr const char* category = "data";
constexpr Duration passed_over = std::chrono::minutes(1);
// With others to ask, a publisher that does not answer is not waited for any longer.
constexpr std::uint32_t attempts_beside_peers = 2;

bool is_away(const Error& error) {
  return error.code == ErrorCode::Unavailable || error.code == ErrorCode::Timeout;
}

}  // namespace

PublishedFiles::PublishedFiles(storage::FileEnv& env, const Clock& clock, Logger& logger,
                               const RemoteDatasetOptions& options)
    : clock_(clock),
      logger_(logger),
      options_(options),
      download_(options.download),
      downloader_(env, clock, static_cast<std::uint64_t>(to_unix_ms(clock.wall_now()))) {
  if (options_.peers != nullptr)
    download_.max_attempts = std::min(download_.max_attempts, attempts_beside_peers);
}

bool PublishedFiles::skips_publisher() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return options_.peers != nullptr && away_since_ && clock_.monotonic_now() - *away_since_ < passed_over;
}

void PublishedFiles::note(const Expected<void>& outcome, bool peers_help) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (outcome.ok()) {
    if (away_since_) logger_.info(category, "the publisher is reachable again");
    away_since_.reset();
  } else if (is_away(outcome.error())) {
    if (!away_since_ && peers_help)
      logger_.warning(category,
                      fmt::format("the publisher is not reachable; asking other nodes for its data: {}",
                                  outcome.error().describe()));
    away_since_ = clock_.monotonic_now();
  }
}

std::string PublishedFiles::trouble() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!away_since_) return {};
  return options_.peers != nullptr ? "is not reachable; asking other nodes" : "is not reachable";
}

Expected<void> PublishedFiles::from_publisher(const DownloadRequest& request, const CancelToken& cancel) {
  auto fetched = downloader_.fetch(request, download_, cancel);
  const Expected<void> outcome = fetched.ok() ? Expected<void>() : std::move(fetched).error();
  note(outcome, options_.peers != nullptr);
  return outcome;
}

Expected<void> PublishedFiles::get(const DownloadRequest& request, std::optional<ShardId> shard,
                                   const CancelToken& cancel) {
  Expected<void> published =
      make_error(ErrorCode::Unavailable, "the publisher was not reachable a moment ago");
  if (!skips_publisher()) published = from_publisher(request, cancel);
  if (published.ok() || options_.peers == nullptr || !request.sha256) return published;
  const ErrorCode code = published.error().code;
  // A publisher that lost a file, or gives a wrong one: others may have the right one.
  if (!is_away(published.error()) && code != ErrorCode::NotFound && code != ErrorCode::Corrupt &&
      code != ErrorCode::Denied)
    return published;
  PeerFile file;
  file.sha256 = *request.sha256;
  file.size = request.size;
  file.max_bytes = request.max_bytes;
  file.path = request.path;
  file.shard = shard;
  const auto given = options_.peers->fetch(file, cancel);
  if (given.ok()) {
    logger_.info(category, fmt::format("received {} from other nodes", shard ? fmt::format("shard {}", *shard)
                                                                             : std::string("the tokenizer")));
    return given;
  }
  if (given.error().code != ErrorCode::Unavailable) return given;
  Error error = std::move(published).error();
  error.message += "; other nodes: " + given.error().message;
  return error;
}

}  // namespace neuroshard::data::detail
