// Where exceptions stop. Everything that the host calls runs inside guarded().
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/error.h"
#include "core/compute/stage.h"

namespace neuroshard::model {

compute::Status success();
// The text is cut to fit.
compute::Status failure(ErrorCode code, const char* text);

// The context that every call of the module sets up: the thread count of the pool, LibTorch without gradient
// history, and a Status for whatever is thrown.
compute::Status guarded(std::uint32_t threads, const std::function<compute::Status()>& call) noexcept;

}  // namespace neuroshard::model
