#include "core/data/downloader.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "core/crypto/hash.h"
#include "core/data/detail/http_transfer.h"

namespace neuroshard::data {
namespace {

using detail::TransferHead;

constexpr std::size_t read_chunk = 1u << 20;
constexpr std::uint64_t max_etag_file = 256;
// Attempts that each gain a byte could go on for ever; no honest download needs so many.
constexpr std::uint32_t max_total_attempts = 1000;
constexpr Duration cancel_check = std::chrono::milliseconds(50);

// One call of Downloader::fetch.
class Fetch {
 public:
  Fetch(storage::FileEnv& env, const Clock& clock, std::uint64_t seed, const Pause& pause,
        const DownloadRequest& request, const DownloadOptions& options, const CancelToken& cancel,
        const DownloadProgress& on_progress)
      : env_(env),
        clock_(clock),
        pause_(pause),
        request_(request),
        options_(options),
        cancel_(cancel),
        on_progress_(on_progress),
        part_(request.path + ".part"),
        etag_path_(request.path + ".part.etag"),
        rng_(seed ^ load_le<std::uint64_t>(crypto::sha256(as_bytes(std::string_view(request.url))).data())) {}

  Expected<DownloadResult> run() {
    result_.resumed_from = have_ = part_size();
    std::uint32_t without_gain = 0;
    std::uint32_t corrupt = 0;
    while (true) {
      if (cancel_.cancelled()) return make_error(ErrorCode::Cancelled, "the download was stopped");
      const std::uint64_t before = result_.received_bytes;
      ++result_.attempts;
      auto outcome = attempt();
      if (outcome.ok()) return result_;
      Error error = std::move(outcome).error();
      if (error.code == ErrorCode::Corrupt) {
        discard();
        if (++corrupt >= options_.max_corrupt) return error;
      } else if (error.code != ErrorCode::Unavailable && error.code != ErrorCode::Timeout) {
        return error;
      }
      without_gain = result_.received_bytes > before ? 0 : without_gain + 1;
      if (without_gain >= options_.max_attempts || result_.attempts >= max_total_attempts) {
        error.message +=
            fmt::format(" ({} attempts; {} bytes are kept, and the next attempt continues from there)",
                        result_.attempts, have_);
        return error;
      }
      if (!pause_(pause_length(without_gain), cancel_)) {
        return make_error(ErrorCode::Cancelled, "the download was stopped");
      }
    }
  }

 private:
  std::uint64_t part_size() const {
    auto file = env_.open_read(part_);
    return file.ok() ? (*file)->size() : 0;
  }

  std::string stored_etag() const {
    auto bytes = storage::read_file(env_, etag_path_, max_etag_file);
    return bytes.ok() ? std::string(as_text(*bytes)) : std::string();
  }

  void discard() {
    file_.reset();
    (void)env_.remove_file(part_);
    (void)env_.remove_file(etag_path_);
    have_ = 0;
  }

  Duration pause_length(std::uint32_t without_gain) {
    const std::uint32_t doublings = std::min(without_gain, 16u);
    const Duration base = std::min(options_.longest_pause, options_.first_pause * (1 << doublings));
    return std::chrono::duration_cast<Duration>(base * (0.5 + 0.5 * rng_.uniform()));
  }

  Error corrupt(const std::string& problem) const {
    return make_error(ErrorCode::Corrupt, fmt::format("{} {}", request_.url, problem));
  }

  Expected<void> attempt() {
    have_ = part_size();
    total_ = 0;
    const std::string etag = stored_etag();
    // Without ETag or hash nothing could tell whether the rest belongs to the same file.
    if (have_ > 0 && ((etag.empty() && !request_.sha256) || have_ > request_.max_bytes)) discard();
    if (!(request_.size && have_ == *request_.size && have_ > 0)) {
      NS_RETURN_IF_ERROR(receive(etag));
    }
    return finish();
  }

  Expected<void> receive(const std::string& etag) {
    detail::TransferRequest transfer;
    transfer.url = request_.url;
    transfer.from = have_;
    transfer.if_range = etag;
    transfer.connect_timeout = options_.connect_timeout;
    transfer.no_progress_timeout = options_.no_progress_timeout;
    const detail::TransferSink sink{[this](const TransferHead& head) { return begin(head); },
                                    [this](ByteSpan bytes) { return take(bytes); }};
    auto outcome = detail::transfer(transfer, sink, clock_, cancel_);
    // The received bytes stay whatever happened: the next attempt goes on from them.
    if (file_) {
      auto synced = file_->sync();
      auto closed = file_->close();
      file_.reset();
      if (!synced.ok()) return synced;
      if (!closed.ok()) return closed;
    }
    if (!outcome.ok()) return std::move(outcome).error();
    return check_status(outcome->status);
  }

  Expected<void> check_status(long status) {
    if (status == 200 || status == 206) return {};
    const std::string text = fmt::format("{}: the server answered {}", request_.url, status);
    switch (status) {
      case 404:
      case 410: return make_error(ErrorCode::NotFound, text + " (no such file)");
      case 401:
      case 403: return make_error(ErrorCode::Denied, text + " (not allowed)");
      case 416: discard(); return make_error(ErrorCode::Unavailable, text + " (the file became shorter)");
      case 408:
      case 429: return make_error(ErrorCode::Unavailable, text + " (too busy)");
      default: break;
    }
    return make_error(status >= 500 ? ErrorCode::Unavailable : ErrorCode::InvalidArgument, text);
  }

  Expected<void> begin(const TransferHead& head) {
    const bool rest = head.status == 206;
    if (rest && (!head.has_range || head.range_start != have_)) {
      return corrupt("sent a different range than requested");
    }
    total_ = rest ? head.range_total : head.has_length ? head.content_length : 0;
    if (request_.size && total_ != 0 && total_ != *request_.size) {
      return corrupt(fmt::format("has {} bytes; {} were expected", total_, *request_.size));
    }
    if (total_ > request_.max_bytes) {
      return corrupt(fmt::format("has {} bytes; at most {} are accepted", total_, request_.max_bytes));
    }
    if (request_.size) total_ = *request_.size;
    if (rest) {
      NS_ASSIGN_OR_RETURN(file_, env_.open_append(part_));
      return {};
    }
    // The whole file from its start: either nothing was here, or it has changed since.
    have_ = 0;
    (void)env_.remove_file(etag_path_);
    NS_ASSIGN_OR_RETURN(file_, env_.open_write(part_, true));
    const bool strong = head.etag.size() > 2 && head.etag.front() == '"';
    return strong ? storage::write_file_atomic(env_, etag_path_, as_bytes(std::string_view(head.etag)))
                  : Expected<void>();
  }

  Expected<void> take(ByteSpan bytes) {
    const std::uint64_t limit = request_.size ? *request_.size : request_.max_bytes;
    if (bytes.size() > limit - std::min(limit, have_)) {
      return corrupt(fmt::format("sends more than the {} expected bytes", limit));
    }
    NS_RETURN_IF_ERROR(file_->append(bytes));
    have_ += bytes.size();
    result_.received_bytes += bytes.size();
    if (on_progress_) on_progress_(have_, total_);
    return {};
  }

  // Size and hash, then the name.
  Expected<void> finish() {
    NS_ASSIGN_OR_RETURN(const auto file, env_.open_read(part_));
    // Not corrupt: a server may send less than it was asked for, or end by closing. The rest is asked for
    // next.
    const std::uint64_t promised = request_.size ? *request_.size : total_;
    if (file->size() < promised) {
      return make_error(ErrorCode::Unavailable, fmt::format("{}: the server ended after {} of {} bytes",
                                                            request_.url, file->size(), promised));
    }
    if (request_.size && file->size() != *request_.size) {
      return corrupt(fmt::format("has {} bytes; {} were expected", file->size(), *request_.size));
    }
    if (request_.sha256) {
      NS_ASSIGN_OR_RETURN(const Hash256 hash, hash_of(*file));
      if (hash != *request_.sha256) {
        return corrupt(
            fmt::format("is not the expected content: its SHA-256 is {}, and should be {}. It was discarded.",
                        to_hex(hash), to_hex(*request_.sha256)));
      }
    }
    NS_RETURN_IF_ERROR(env_.rename(part_, request_.path));
    if (env_.exists(etag_path_)) (void)env_.remove_file(etag_path_);
    const std::size_t slash = request_.path.rfind('/');
    return env_.sync_directory(slash == std::string::npos ? "." : request_.path.substr(0, slash));
  }

  static Expected<Hash256> hash_of(storage::ReadableFile& file) {
    crypto::Sha256 hash;
    Bytes buffer(static_cast<std::size_t>(std::min<std::uint64_t>(read_chunk, file.size())));
    for (std::uint64_t at = 0; at < file.size(); at += buffer.size()) {
      buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), file.size() - at)));
      NS_RETURN_IF_ERROR(file.read_at(at, buffer));
      hash.update(buffer);
    }
    return hash.finish();
  }

  storage::FileEnv& env_;
  const Clock& clock_;
  const Pause& pause_;
  const DownloadRequest& request_;
  const DownloadOptions& options_;
  const CancelToken& cancel_;
  const DownloadProgress& on_progress_;
  const std::string part_;
  const std::string etag_path_;
  Rng rng_;
  DownloadResult result_;
  std::unique_ptr<storage::WritableFile> file_;
  std::uint64_t have_ = 0;   // bytes of the part
  std::uint64_t total_ = 0;  // of the file, 0 while unknown
};

}  // namespace

Pause make_pause() {
  return [](Duration length, const CancelToken& cancel) {
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock<std::mutex> lock(mutex);
    while (length.count() > 0 && !cancel.cancelled()) {
      const Duration slice = std::min(length, cancel_check);
      never.wait_for(lock, slice);
      length -= slice;
    }
    return !cancel.cancelled();
  };
}

Downloader::Downloader(storage::FileEnv& env, const Clock& clock, std::uint64_t seed, Pause pause)
    : env_(env), clock_(clock), seed_(seed), pause_(std::move(pause)) {}

Expected<DownloadResult> Downloader::fetch(const DownloadRequest& request, const DownloadOptions& options,
                                           const CancelToken& cancel, const DownloadProgress& on_progress) {
  if (!request.url.starts_with("http://") && !request.url.starts_with("https://")) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} is not an http:// or https:// address", request.url));
  }
  return Fetch(env_, clock_, seed_, pause_, request, options, cancel, on_progress).run();
}

std::string resolve_url(const std::string& base, const std::string& reference) {
  if (reference.find("://") != std::string::npos) return reference;
  const std::string plain = base.substr(0, base.find_first_of("?#"));
  const std::size_t scheme = plain.find("://");
  const std::size_t slash = plain.rfind('/');
  if (scheme == std::string::npos || slash == std::string::npos || slash < scheme + 3)
    return plain + "/" + reference;
  return plain.substr(0, slash + 1) + reference;
}

}  // namespace neuroshard::data
