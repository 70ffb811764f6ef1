#include "core/model/boundary.h"

#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <omp.h>

#include <cstdio>
#include <cstring>

#include "core/model/experts.h"
#include "core/model/memory_pool.h"

namespace neuroshard::model {
namespace {

compute::Status out_of_memory(const OutOfMemory& error) {
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  char text[240];
  if (error.limit() == 0) {
    std::snprintf(text, sizeof text, "The system has no memory left for %.1f MiB more; %.1f MiB are in use.",
                  mib(error.wanted()), mib(error.live()));
  } else {
    std::snprintf(text, sizeof text,
                  "The memory limit of %.1f MiB does not allow %.1f MiB more; %.1f MiB are in use. Raise the "
                  "limit or use "
                  "a smaller micro-batch.",
                  mib(error.limit()), mib(error.wanted()), mib(error.live()));
  }
  return failure(ErrorCode::Exhausted, text);
}

}  // namespace

compute::Status success() {
  return compute::Status();
}

compute::Status failure(ErrorCode code, const char* text) {
  compute::Status status;
  status.code = 1 + static_cast<std::int32_t>(code);
  std::snprintf(status.message, sizeof status.message, "%s", text);
  return status;
}

compute::Status guarded(std::uint32_t threads, const std::function<compute::Status()>& call) noexcept {
  try {
    omp_set_num_threads(static_cast<int>(threads));  // a setting of the calling thread, so at every call
    const c10::InferenceMode no_history;
    return call();
  } catch (const OutOfMemory& error) {
    return out_of_memory(error);
  } catch (const ProviderFailure& error) {
    return error.status();
  } catch (const std::bad_alloc&) {
    return failure(ErrorCode::Exhausted, "The system has no memory left.");
  } catch (const c10::Error& error) {
    return failure(ErrorCode::Internal, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return failure(ErrorCode::Internal, error.what());
  } catch (...) {
    return failure(ErrorCode::Internal, "The compute module failed for an unknown reason.");
  }
}

}  // namespace neuroshard::model
