#include "core/data/detail/http_transfer.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string_view>

namespace neuroshard::data::detail {
namespace {

constexpr std::size_t max_etag = 256;
// Of the page that comes with an error or a redirect, which nobody reads: it could go on for ever.
constexpr curl_off_t max_unused_body = 1 << 20;

struct CurlCloser {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct ListFreer {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// State shared by the callbacks of one transfer.
struct State {
  const TransferRequest& request;
  const TransferSink& sink;
  const Clock& clock;
  const CancelToken& cancel;
  TransferHead head;
  bool head_given = false;
  std::optional<Error> error;
  MonotonicTime last_progress;
  curl_off_t last_received = 0;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

bool parse_number(std::string_view text, std::uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_named(std::string_view name, std::string_view lower) {
  if (name.size() != lower.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i] >= 'A' && name[i] <= 'Z' ? static_cast<char>(name[i] + 32) : name[i];
    if (c != lower[i]) return false;
  }
  return true;
}

// "bytes 100-199/200"
void parse_content_range(std::string_view value, TransferHead* head) {
  if (!value.starts_with("bytes ")) return;
  value.remove_prefix(6);
  const std::size_t dash = value.find('-');
  const std::size_t slash = value.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash) return;
  if (!parse_number(value.substr(0, dash), &head->range_start)) return;
  head->has_range = true;
  if (!parse_number(value.substr(slash + 1), &head->range_total)) head->range_total = 0;
}

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
  State& state = *static_cast<State*>(user);
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {
    state.head = {};  // the head of a redirect does not count
    const std::size_t space = line.find(' ');
    std::uint64_t status = 0;
    if (space != std::string_view::npos && parse_number(trimmed(line.substr(space, 4)), &status)) {
      state.head.status = static_cast<long>(status);
    }
    return size;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (is_named(name, "etag") && value.size() <= max_etag) {
    state.head.etag = value;
  } else if (is_named(name, "content-range")) {
    parse_content_range(value, &state.head);
  } else if (is_named(name, "content-length")) {
    state.head.has_length = parse_number(value, &state.head.content_length);
  }
  return size;
}

// Anything but `size` ends the transfer.
std::size_t on_write(char* data, std::size_t, std::size_t size, void* user) {
  State& state = *static_cast<State*>(user);
  if (state.head.status != 200 && state.head.status != 206) return size;  // an error's page is of no use
  if (!state.head_given) {
    state.head_given = true;
    auto result = state.sink.on_head(state.head);
    if (!result.ok()) state.error = std::move(result).error();
  }
  if (!state.error) {
    auto result = state.sink.on_body(ByteSpan(reinterpret_cast<const std::uint8_t*>(data), size));
    if (!result.ok()) state.error = std::move(result).error();
  }
  return state.error ? 0 : size;
}

int on_progress(void* user, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) {
  State& state = *static_cast<State*>(user);
  if (state.cancel.cancelled()) {
    state.error = make_error(ErrorCode::Cancelled, "the download was stopped");
    return 1;
  }
  if (state.head.status != 200 && state.head.status != 206 && received > max_unused_body) {
    state.error = make_error(
        ErrorCode::Unavailable,
        fmt::format("{}: the server answered {} with an endless page", state.request.url, state.head.status));
    return 1;
  }
  const MonotonicTime now = state.clock.monotonic_now();
  if (received != state.last_received) {
    state.last_received = received;
    state.last_progress = now;
  }
  if (now - state.last_progress <= state.request.no_progress_timeout) return 0;
  state.error =
      make_error(ErrorCode::Timeout, fmt::format("received nothing from {} for {:.0f} s", state.request.url,
                                                 to_seconds(state.request.no_progress_timeout)));
  return 1;
}

void set_up(CURL* handle, const TransferRequest& request, curl_slist* headers, State* state) {
  const auto milliseconds = [](Duration d) {
    return static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
  };
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, max_redirects);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "neuroshard");
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request.connect_timeout));
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  if (request.from > 0) {
    // Not CURLOPT_RESUME_FROM: that treats the whole file (after If-Range failed) as an error.
    curl_easy_setopt(handle, CURLOPT_RANGE, (std::to_string(request.from) + "-").c_str());
  }
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, state);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_write);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, state);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, state);
}

}  // namespace

Expected<TransferHead> transfer(const TransferRequest& request, const TransferSink& sink, const Clock& clock,
                                const CancelToken& cancel) {
  const std::unique_ptr<CURL, CurlCloser> handle(curl_easy_init());
  if (!handle) return make_error(ErrorCode::Exhausted, "not enough memory for a download");
  std::unique_ptr<curl_slist, ListFreer> headers;
  if (request.from > 0 && !request.if_range.empty()) {
    headers.reset(curl_slist_append(nullptr, ("If-Range: " + request.if_range).c_str()));
  }
  State state{request, sink, clock, cancel, {}, false, std::nullopt, clock.monotonic_now(), 0};
  set_up(handle.get(), request, headers.get(), &state);
  const CURLcode code = curl_easy_perform(handle.get());
  if (state.error) return std::move(*state.error);
  if (code == CURLE_OK) return state.head;
  const ErrorCode kind = code == CURLE_OPERATION_TIMEDOUT ? ErrorCode::Timeout
                         : code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT
                             ? ErrorCode::InvalidArgument
                             : ErrorCode::Unavailable;
  return make_error(kind, fmt::format("{}: {}", request.url, curl_easy_strerror(code)));
}

}  // namespace neuroshard::data::detail
