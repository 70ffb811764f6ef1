// The compute module's entry and its Module: start-up, instruction sets, memory, threads.
#include "core/compute/module_abi.h"

#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <torch/version.h>

#include <cstdio>
#include <cstring>

#include "core/model/boundary.h"
#include "core/model/cpu_features.h"
#include "core/model/products.h"
#include "core/model/products_check.h"
#include "core/model/stage_boundary.h"
#include "core/model/tensors.h"
#include "core/model/torch_allocator.h"

namespace neuroshard::model {
namespace {

using compute::Status;

class CpuModule final : public compute::Module {
 public:
  Status start(const compute::ModuleOptions& options, compute::HostServices& host);
  // The options of a later load: what can still change.
  Status adopt(const compute::ModuleOptions& options);

  compute::ModuleInfo info() const override {
    compute::ModuleInfo info = info_;
    info.threads = threads_.load();
    return info;
  }
  compute::Stage* create_stage(const compute::StageSpec& spec, Status* status) override;
  Status set_threads(std::uint32_t threads) override;
  void set_memory_limit(std::uint64_t bytes) override { pool_.set_limit(bytes); }
  compute::MemoryUse memory(bool reset_peak) override { return {pool_.live(), pool_.peak(reset_peak)}; }
  Status gemm(std::uint32_t m, std::uint32_t n, std::uint32_t k, const float* a, const float* b,
              float* c) override;

 private:
  MemoryPool pool_;
  compute::ModuleOptions options_;
  compute::ModuleInfo info_{};
  const Kernels* kernels_ = nullptr;
  std::atomic<std::uint32_t> threads_{1};
};

Status check_options(const compute::ModuleOptions& options) {
  if (std::strcmp(options.device, "cpu") != 0) {
    return failure(ErrorCode::Unsupported, "This compute module works on the device \"cpu\" only.");
  }
  if (std::strcmp(options.precision, "fp32") != 0) {
    return failure(ErrorCode::Unsupported, "This compute module works in the precision \"fp32\" only.");
  }
  return success();
}

Status CpuModule::start(const compute::ModuleOptions& options, compute::HostServices& host) {
  if (const Status status = check_options(options); !status.ok()) return status;
  options_ = options;
  const Status limited = limit_instruction_set(options.max_isa);
  if (!limited.ok()) return limited;
  kernels_ = &best_kernels(options.max_isa);
  use_for_tensors(pool_);
  pool_.set_limit(options.memory_limit);
  if (const Status status = set_threads(options.threads); !status.ok()) return status;
  std::snprintf(info_.torch_version, sizeof info_.torch_version, "%s", TORCH_VERSION);
  std::snprintf(info_.precision, sizeof info_.precision, "fp32");
  describe_processor(info_);
  return guarded(threads_.load(), [&] {
    const ProductsCheck check = check_products(host);
    if (!check.correct) {
      return failure(ErrorCode::Internal,
                     "A matrix product came out wrong at start; this machine or its libraries can't be "
                     "trusted with training.");
    }
    if (!check.torch_uses_onednn) {
      return failure(ErrorCode::Internal,
                     "LibTorch does not use this module's matrix products; another BLAS was loaded into the "
                     "process first.");
    }
    char line[400];
    std::snprintf(line, sizeof line, "matrix products: %s, %s, fp32, %u threads on %s, %.0f GFLOP/s at start",
                  info_.gemm, info_.isa, threads_.load(), info_.device_name, check.gigaflops);
    host.log(1, line);
    return success();
  });
}

Status CpuModule::adopt(const compute::ModuleOptions& options) {
  if (const Status status = check_options(options); !status.ok()) return status;
  if (std::strcmp(options.max_isa, options_.max_isa) != 0) {
    return failure(
        ErrorCode::Unsupported,
        "The compute module already runs with another instruction set; restart the program to change it.");
  }
  pool_.set_limit(options.memory_limit);
  return set_threads(options.threads);
}

compute::Stage* CpuModule::create_stage(const compute::StageSpec& spec, Status* status) {
  compute::Stage* stage = nullptr;
  *status = guarded(threads_.load(), [&] {
    if (const Status checked = check_spec(spec); !checked.ok()) return checked;
    stage = new StageBoundary(std::make_unique<NeuroLlm>(spec, *kernels_), threads_);
    return success();
  });
  return stage;
}

Status CpuModule::set_threads(std::uint32_t threads) {
  const std::uint32_t available = available_threads();
  const std::uint32_t wanted = threads == 0 ? available : threads;
  if (wanted > max_threads)
    return failure(ErrorCode::InvalidArgument, "The number of threads is out of bounds.");
  threads_ = wanted;
  return guarded(wanted, [&] {
    at::set_num_threads(static_cast<int>(wanted));
    return success();
  });
}

Status CpuModule::gemm(std::uint32_t m, std::uint32_t n, std::uint32_t k, const float* a, const float* b,
                       float* c) {
  return guarded(threads_.load(), [&] {
    if (m == 0 || n == 0 || k == 0)
      return failure(ErrorCode::InvalidArgument, "A product needs sizes above 0.");
    at::Tensor result = wrap_floats(c, {m, n});
    multiply(result, wrap_floats(a, {m, k}), wrap_floats(b, {k, n}));
    return success();
  });
}

}  // namespace

// LibTorch can't be unloaded or started twice, so there is one module per process, made at the first call.
compute::Module* open_module(const compute::ModuleOptions& options, compute::HostServices& host,
                             Status& status) {
  static CpuModule* module = nullptr;
  if (module != nullptr) {
    status = module->adopt(options);
    return status.ok() ? module : nullptr;
  }
  auto fresh = std::make_unique<CpuModule>();
  status = fresh->start(options, host);
  // Once LibTorch's allocator points at the module's pool it has to stay, even after a failure.
  CpuModule* started = fresh.release();
  if (status.ok()) module = started;
  return module;
}

}  // namespace neuroshard::model

extern "C" __attribute__((visibility("default"))) neuroshard::compute::Module* neuroshard_compute_module(
    std::uint32_t abi_version, const char* build_id, neuroshard::compute::HostServices* host,
    const neuroshard::compute::ModuleOptions* options, neuroshard::compute::Status* status) {
  using neuroshard::ErrorCode;
  if (abi_version != neuroshard::compute::module_abi_version ||
      std::strcmp(build_id, NS_COMPUTE_BUILD_ID) != 0) {
    *status = neuroshard::model::failure(ErrorCode::Unsupported,
                                         "The compute module belongs to another build of NeuroShard.");
    return nullptr;
  }
  neuroshard::compute::Module* module = nullptr;
  *status = neuroshard::model::guarded(1, [&] {
    neuroshard::compute::Status opened;
    module = neuroshard::model::open_module(*options, *host, opened);
    return opened;
  });
  return module;
}
