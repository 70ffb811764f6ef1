// One HTTP request with libcurl, its body handed on as it comes. Everything that decides about retries is in
// downloader.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/base/bytes.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"

namespace neuroshard::data::detail {

inline constexpr long max_redirects = 5;

struct TransferRequest {
  std::string url;
  std::uint64_t from = 0;  // > 0: ask for the bytes from here on …
  std::string if_range;    // … if the file still has this ETag
  Duration connect_timeout{};
  Duration no_progress_timeout{};
};

// The answer's head, known before the first byte of the body.
struct TransferHead {
  long status = 0;
  std::string etag;
  bool has_range = false;  // Content-Range was given
  std::uint64_t range_start = 0;
  std::uint64_t range_total = 0;  // 0: not told
  std::uint64_t content_length = 0;
  bool has_length = false;
};

struct TransferSink {
  // Once, before the body of a 200 or 206. An error ends the transfer and is its result.
  std::function<Expected<void>(const TransferHead&)> on_head;
  std::function<Expected<void>(ByteSpan)> on_body;
};

// Any answer of the server is a success here; look at the status. Unavailable: no connection, or it broke.
// Timeout: no byte came for no_progress_timeout. Cancelled. Otherwise the sink's error.
Expected<TransferHead> transfer(const TransferRequest& request, const TransferSink& sink, const Clock& clock,
                                const CancelToken& cancel);

}  // namespace neuroshard::data::detail
