#include <curl/curl.h>
#include <fmt/format.h>

#include "core/release/source.h"

namespace neuroshard::release {
namespace {

constexpr long max_redirects = 5;

struct CurlCloser {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};

struct State {
  const CancelToken& cancel;
  Bytes body;
  bool too_large = false;
};

// Anything but `size` ends the transfer.
std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  State& state = *static_cast<State*>(user);
  state.too_large = size > max_file_bytes - state.body.size();
  if (state.too_large) return 0;
  state.body.insert(state.body.end(), data, data + size);
  return size;
}

// Anything but 0 ends the transfer.
int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<State*>(user)->cancel.cancelled() ? 1 : 0;
}

long milliseconds(Duration duration) {
  return static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

class WebSource final : public Source {
 public:
  explicit WebSource(const WebLimits& limits) : limits_(limits) {}

  Expected<Bytes> fetch(const std::string& url, const CancelToken& cancel) override {
    const std::unique_ptr<CURL, CurlCloser> handle(curl_easy_init());
    if (!handle) return make_error(ErrorCode::Exhausted, "not enough memory for a download");
    State state{cancel, {}, false};
    set_up(handle.get(), url, &state);
    const CURLcode code = curl_easy_perform(handle.get());
    long status = 0;
    curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "the download was stopped");
    if (state.too_large || code == CURLE_FILESIZE_EXCEEDED)
      return make_error(ErrorCode::Corrupt,
                        fmt::format("{} is larger than {} KiB", url, max_file_bytes >> 10));
    if (code == CURLE_OPERATION_TIMEDOUT)
      return make_error(ErrorCode::Timeout, fmt::format("{} did not arrive in time", url));
    if (code != CURLE_OK)
      return make_error(ErrorCode::Unavailable, fmt::format("{}: {}", url, curl_easy_strerror(code)));
    if (status != 200)
      return make_error(ErrorCode::Unavailable, fmt::format("{}: the server answered {}", url, status));
    return std::move(state.body);
  }

 private:
  void set_up(CURL* handle, const std::string& url, State* state) const {
    curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");  // parse_place() decides about the first
    curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(handle, CURLOPT_MAXREDIRS, max_redirects);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);  // a name server that hangs does not hold the program
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(limits_.connect));
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, milliseconds(limits_.whole));
    curl_easy_setopt(handle, CURLOPT_MAXFILESIZE, static_cast<long>(max_file_bytes));
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, state);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, state);
  }

  const WebLimits limits_;
};

}  // namespace

std::unique_ptr<Source> make_web_source(const WebLimits& limits) {
  return std::make_unique<WebSource>(limits);
}

}  // namespace neuroshard::release
