// The compute module's entry and its Module: start-up, instruction sets, memory, threads.
#include "core/compute/module_abi.h"

#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <torch/version.h>

#include <cstdio>
#include <cstring>

#include "core/model/boundary.h"
#include "core/model/cpu_features.h"
#include "core/model/packed_weight.h"
#include "core/model/products.h"
#include "core/model/products_check.h"
#include "core/model/script_model.h"
#include "core/model/stage_boundary.h"
#include "core/model/stage_checks.h"
#include "core/model/tensors.h"
#include "core/model/torch_allocator.h"

namespace neuroshard::model {
namespace {

using compute::Status;

constexpr std::uint32_t largest_yardstick = 8192;

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
  Status gemm_yardstick(const char* precision, std::uint32_t side, std::uint32_t repeats,
                        double* operations) override;
  compute::ScriptModel* open_script(const compute::ScriptHost& host, const compute::ScriptOptions& options,
                                    Status* status) override;
  compute::ScriptBlock* open_script_block(const compute::ScriptHost& host, Status* status) override;

 private:
  MemoryPool pool_;
  compute::ModuleOptions options_;
  compute::ModuleInfo info_{};
  const Backend& bf16();  // without kernels where the processor is not made for it
  Status choose_precision(const char* precision);

  Backend fp32_;
  Backend bf16_;
  const Backend* backend_ = &fp32_;  // of stages made from now on
  std::unique_ptr<TileProducts> tiles_;
  std::atomic<std::uint32_t> threads_{1};
};

Status check_options(const compute::ModuleOptions& options) {
  if (std::strcmp(options.device, "cpu") != 0) {
    return failure(ErrorCode::Unsupported, "This compute module works on the device \"cpu\" only.");
  }
  for (const char* known : {"auto", "fp32", "bf16"}) {
    if (std::strcmp(options.precision, known) == 0) return success();
  }
  return failure(ErrorCode::InvalidArgument, "The precision must be \"auto\", \"fp32\" or \"bf16\".");
}

Status CpuModule::start(const compute::ModuleOptions& options, compute::HostServices& host) {
  if (const Status status = check_options(options); !status.ok()) return status;
  options_ = options;
  const Status limited = limit_instruction_set(options.max_isa);
  if (!limited.ok()) return limited;
  fp32_.kernels = &best_kernels(options.max_isa);
  use_for_tensors(pool_);
  pool_.set_limit(options.memory_limit);
  if (const Status status = set_threads(options.threads); !status.ok()) return status;
  std::snprintf(info_.torch_version, sizeof info_.torch_version, "%s", TORCH_VERSION);
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
    if (const Status chosen = choose_precision(options.precision); !chosen.ok()) return chosen;
    char line[400];
    std::snprintf(line, sizeof line,
                  "matrix products: %s, %s, %s, %u threads on %s, %.0f GFLOP/s in fp32 at start", info_.gemm,
                  info_.isa, info_.precision, threads_.load(), info_.device_name, check.gigaflops);
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
  if (const Status status = set_threads(options.threads); !status.ok()) return status;
  return guarded(threads_.load(), [&] { return choose_precision(options.precision); });
}

// Compiles a pair of products the first time: whether oneDNN has fast ones is not in the processor's flags
// alone.
const Backend& CpuModule::bf16() {
  if (tiles_ != nullptr) return bf16_;
  tiles_ = std::make_unique<TileProducts>();
  const Kernels* kernels = bf16_kernels(options_.max_isa);
  if (kernels != nullptr && tiles_->fast()) bf16_ = {kernels, tiles_.get()};
  return bf16_;
}

Status CpuModule::choose_precision(const char* precision) {
  const bool wanted = std::strcmp(precision, "fp32") != 0;
  const bool use = wanted && bf16().kernels != nullptr;
  if (std::strcmp(precision, "bf16") == 0 && !use) {
    return failure(
        ErrorCode::Unsupported,
        "This processor has no fast bf16 arithmetic (AVX512_BF16 or AMX); use the precision fp32 or auto.");
  }
  backend_ = use ? &bf16_ : &fp32_;
  std::snprintf(info_.precision, sizeof info_.precision, use ? "bf16" : "fp32");
  return success();
}

compute::Stage* CpuModule::create_stage(const compute::StageSpec& spec, Status* status) {
  compute::Stage* stage = nullptr;
  *status = guarded(threads_.load(), [&] {
    if (const Status checked = check_spec(spec); !checked.ok()) return checked;
    stage = new StageBoundary(std::make_unique<NeuroLlm>(spec, *backend_), threads_, pool_);
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

Status CpuModule::gemm_yardstick(const char* precision, std::uint32_t side, std::uint32_t repeats,
                                 double* operations) {
  return guarded(threads_.load(), [&] {
    if (side == 0 || side > largest_yardstick)
      return failure(ErrorCode::InvalidArgument, "The yardstick's side is out of bounds.");
    const bool half = std::strcmp(precision, "bf16") == 0;
    if (half && bf16().kernels == nullptr)
      return failure(ErrorCode::Unsupported, "This processor has no fast bf16 arithmetic.");
    const std::int64_t n = side;
    const Kernels& kernels = half ? *bf16_.kernels : *fp32_.kernels;
    const at::Tensor a = make_activations(kernels, {n, n});
    at::Tensor c = make_activations(kernels, {n, n});
    a.fill_(0.5);
    if (half) {
      PackedWeight b = make_packed_weight(n, n, false);
      const at::Tensor values = make_zeros({n, n});
      values.fill_(0.25);
      pack(kernels, floats(values), b);
      for (std::uint32_t i = 0; i < repeats; ++i) {
        tiles_->multiply({{bf16s(a), bf16s(b.forward), raw(c), n, n, n}}, ProductOutput::Bf16);
      }
    } else {
      for (std::uint32_t i = 0; i < repeats; ++i) multiply_floats(c, a, a);
    }
    *operations += 2.0 * repeats * static_cast<double>(side) * side * side;
    return success();
  });
}

compute::ScriptModel* CpuModule::open_script(const compute::ScriptHost& host,
                                             const compute::ScriptOptions& options, Status* status) {
  compute::ScriptModel* model = nullptr;
  *status = guarded_script("opening and running the model", [&] { model = new LoadedScript(host, options); });
  return model;
}

compute::ScriptBlock* CpuModule::open_script_block(const compute::ScriptHost& host, Status* status) {
  compute::ScriptBlock* block = nullptr;
  *status = guarded_script("reading a block", [&] { block = new LoadedBlock(host); });
  return block;
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
