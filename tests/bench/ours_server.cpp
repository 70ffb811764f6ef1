// Our side of tests/bench/compare.py: trains through the compute module as the program does, a batch of steps
// for each request. One JSON object a line on standard input, one on standard output for each.
//
//   ours_server PRECISION THREADS [MAX_ISA]     (core/model/cpu_features.h)
//
// hello                         → name, precision, threads, details
// gemm precision side repeats   → seconds, operations; precision "fp32", "bf16" (weights packed once),
//                                 "bf16-plain"
// weights shape alone path seed → writes the initial weights: all slots in canonical order, fp32
// prepare kind shape batch ...  → kind "model" (weights, tokens, learning_rate, clip), "layer" (weights,
//                                 activations, repack), "optimizer" (learning_rate, clip)
// steps count                   → seconds, values: a loss (or, for a layer, a mean product) for each step
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/rng.h"
#include "core/compute/module.h"
#include "tests/bench/plain_product.h"

namespace neuroshard::bench {
namespace {

using compute::Status;
using nlohmann::json;

Expected<void> checked(const Status& status) {
  if (status.ok()) return {};
  return compute::to_error(status);
}

template <typename T>
Expected<std::vector<T>> read_numbers(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return make_error(ErrorCode::NotFound, path + " can't be read");
  std::vector<T> numbers(static_cast<std::size_t>(file.tellg()) / sizeof(T));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(numbers.data()),
            static_cast<std::streamsize>(numbers.size() * sizeof(T)));
  if (!file) return make_error(ErrorCode::Io, path + " can't be read to its end");
  return numbers;
}

compute::ModelShape shape_of(const json& object) {
  compute::ModelShape shape;
  shape.layers = object.at("layers");
  shape.hidden = object.at("hidden");
  shape.head_dim = object.at("head_dim");
  shape.heads = object.at("heads");
  shape.kv_heads = object.at("kv_heads");
  shape.ffn = object.at("ffn");
  shape.experts = object.at("experts");
  shape.experts_per_token = object.at("experts_per_token");
  shape.vocab = object.at("vocab");
  shape.sequence = object.at("sequence");
  return shape;
}

// Slots of the whole model, or of its layers alone.
std::vector<compute::SlotId> slots_of(const compute::ModelShape& shape, bool alone) {
  std::vector<compute::SlotId> slots = compute::model_slots(shape);
  if (!alone) return slots;
  return {slots.begin() + 1, slots.end() - 1};
}

Expected<void> write_weights(const json& request) {
  const compute::ModelShape shape = shape_of(request.at("shape"));
  const std::string path = request.at("path");
  std::ofstream file(path, std::ios::binary);
  for (const compute::SlotId slot : slots_of(shape, request.at("alone"))) {
    std::vector<float> values(compute::slot_parameter_count(shape, slot));
    compute::initialise_slot(shape, slot, Hash256{request.at("seed").get<std::uint8_t>()},
                             {values.data(), values.size()});
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
  }
  file.close();
  if (!file) return make_error(ErrorCode::Io, path + " can't be written");
  return {};
}

// One thing to be timed. turn() returns the seconds spent and appends a value to look at.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual Expected<double> turn(std::vector<double>& values) = 0;
};

class StageSubject : public Subject {
 public:
  StageSubject(const Clock& clock, const json& request)
      : clock_(clock), shape_(shape_of(request.at("shape"))), batch_(request.value("batch", 1u)) {}

  Expected<void> open(compute::Module& module, const json& request) {
    const bool alone = request.at("kind") == "layer";
    compute::StageSpec spec;
    spec.shape = shape_;
    spec.layer_count = shape_.layers;
    spec.embed = spec.head = !alone;
    NS_ASSIGN_OR_RETURN(stage_, compute::make_stage(module, spec));
    NS_ASSIGN_OR_RETURN(const auto weights, read_numbers<float>(request.at("weights")));
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
      const std::uint64_t count = stage_->slot(i).count;
      if (at + count > weights.size()) break;
      NS_RETURN_IF_ERROR(checked(stage_->copy_in(i, compute::SlotBuffer::Parameters, weights.data() + at)));
      at += count;
    }
    if (at != weights.size())
      return make_error(ErrorCode::InvalidArgument, "the weights do not fit the shape");
    stage_->parameters_changed();
    return {};
  }

 protected:
  double seconds_since(MonotonicTime start) const { return to_seconds(clock_.monotonic_now() - start); }

  const Clock& clock_;
  compute::ModelShape shape_;
  std::uint32_t batch_;
  compute::StagePtr stage_;
};

class Training final : public StageSubject {
 public:
  using StageSubject::StageSubject;

  Expected<void> start(const json& request) {
    options_.learning_rate = request.at("learning_rate");
    options_.clip = request.at("clip");
    options_.tokens = std::uint64_t{batch_} * shape_.sequence;
    NS_ASSIGN_OR_RETURN(const auto windows, read_numbers<std::int32_t>(request.at("tokens")));
    const std::size_t row = shape_.sequence + std::size_t{1};
    if (windows.empty() || windows.size() % (batch_ * row) != 0)
      return make_error(ErrorCode::InvalidArgument, "the tokens are not whole batches");
    for (std::size_t at = 0; at < windows.size(); at += row) {
      const std::int32_t* const window = windows.data() + at;
      tokens_.insert(tokens_.end(), window, window + shape_.sequence);
      targets_.insert(targets_.end(), window + 1, window + row);
    }
    return {};
  }

  Expected<double> turn(std::vector<double>& values) override {
    const MonotonicTime begin = clock_.monotonic_now();
    const std::size_t first = options_.step * options_.tokens % tokens_.size();
    const compute::MicroBatch batch{batch_, shape_.sequence, &tokens_[first], &targets_[first], nullptr};
    compute::ForwardMetrics metrics;
    NS_RETURN_IF_ERROR(checked(stage_->forward(++options_.step, batch, nullptr, &metrics)));
    NS_RETURN_IF_ERROR(checked(stage_->backward(options_.step, nullptr, nullptr)));
    compute::StepMetrics step;
    NS_RETURN_IF_ERROR(checked(stage_->step(options_, &step)));
    values.push_back(metrics.loss_sum / static_cast<double>(metrics.target_tokens));
    return seconds_since(begin);
  }

 private:
  compute::StepOptions options_;
  std::vector<std::int32_t> tokens_, targets_;
};

class LayerPasses final : public StageSubject {
 public:
  using StageSubject::StageSubject;

  Expected<void> start(const json& request) {
    repack_ = request.value("repack", false);
    NS_ASSIGN_OR_RETURN(activations_, read_numbers<float>(request.at("activations")));
    const std::size_t count = std::size_t{batch_} * shape_.sequence * shape_.hidden;
    if (activations_.size() != 2 * count)
      return make_error(ErrorCode::InvalidArgument, "the activations do not fit the shape");
    output_.resize(count);
    gradient_.resize(count);
    return {};
  }

  Expected<double> turn(std::vector<double>& values) override {
    const MonotonicTime begin = clock_.monotonic_now();
    if (repack_) stage_->parameters_changed();
    const compute::MicroBatch batch{batch_, shape_.sequence, nullptr, nullptr, activations_.data()};
    const float* const upstream = activations_.data() + output_.size();
    compute::ForwardMetrics metrics;
    NS_RETURN_IF_ERROR(checked(stage_->forward(++id_, batch, output_.data(), &metrics)));
    const double product = std::inner_product(output_.begin(), output_.end(), upstream, 0.0);
    NS_RETURN_IF_ERROR(checked(stage_->backward(id_, upstream, gradient_.data())));
    stage_->zero_gradients();
    values.push_back(product / static_cast<double>(output_.size()));
    return seconds_since(begin);
  }

 private:
  bool repack_ = false;
  std::uint64_t id_ = 0;
  std::vector<float> activations_, output_, gradient_;
};

// Only the optimizer's step is timed; the gradients that it zeroes are filled before.
class OptimizerSteps final : public StageSubject {
 public:
  using StageSubject::StageSubject;

  void start(const json& request) {
    options_.learning_rate = request.at("learning_rate");
    options_.clip = request.at("clip");
    options_.tokens = 1;
    Rng rng(1);
    for (float& value : pattern_) value = 1e-3f * rng.normal();
  }

  Expected<double> turn(std::vector<double>& values) override {
    for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
      const compute::SlotBuffers slot = stage_->slot(i);
      for (std::uint64_t at = 0; at < slot.count; at += pattern_.size()) {
        const std::uint64_t count = std::min<std::uint64_t>(pattern_.size(), slot.count - at);
        std::copy_n(pattern_.begin(), count, slot.gradient + at);
      }
    }
    const MonotonicTime begin = clock_.monotonic_now();
    ++options_.step;
    compute::StepMetrics metrics;
    NS_RETURN_IF_ERROR(checked(stage_->step(options_, &metrics)));
    values.push_back(metrics.gradient_norm);
    return seconds_since(begin);
  }

 private:
  compute::StepOptions options_;
  std::vector<float> pattern_ = std::vector<float>(4096);
};

Expected<double> gemm(compute::Module& module, const std::string& precision, std::uint32_t side,
                      std::uint32_t repeats) {
  if (precision == "bf16-plain") return plain_bf16_products(side, repeats);
  double operations = 0;
  NS_RETURN_IF_ERROR(checked(module.gemm_yardstick(precision.c_str(), side, repeats, &operations)));
  return operations;
}

class Server {
 public:
  Server(const compute::LoadedModule& loaded, const Clock& clock) : loaded_(loaded), clock_(clock) {}

  Expected<json> answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "hello") {
      const compute::ModuleInfo& info = loaded_.info;
      return json{{"name", "NeuroShard"},
                  {"precision", info.precision},
                  {"threads", info.threads},
                  {"details", std::string("kernels ") + info.isa + ", " + info.gemm}};
    }
    if (what == "weights") {
      NS_RETURN_IF_ERROR(write_weights(request));
      return json::object();
    }
    if (what == "gemm") return timed_gemm(request);
    if (what == "prepare") {
      subject_.reset();  // its memory first
      NS_ASSIGN_OR_RETURN(subject_, prepare(request));
      return json{{"choices", json::object()}};
    }
    if (what == "steps" && subject_ != nullptr) return steps(request.at("count"));
    return make_error(ErrorCode::InvalidArgument, "unknown request " + what);
  }

 private:
  Expected<std::unique_ptr<Subject>> prepare(const json& request) {
    const std::string kind = request.at("kind");
    const auto open = [&](auto subject) -> Expected<std::unique_ptr<Subject>> {
      NS_RETURN_IF_ERROR(subject->open(*loaded_.module, request));
      using Kind = typename decltype(subject)::element_type;
      if constexpr (std::is_same_v<Kind, OptimizerSteps>) {
        subject->start(request);
      } else {
        NS_RETURN_IF_ERROR(subject->start(request));
      }
      return std::unique_ptr<Subject>(std::move(subject));
    };
    if (kind == "model") return open(std::make_unique<Training>(clock_, request));
    if (kind == "layer") return open(std::make_unique<LayerPasses>(clock_, request));
    if (kind == "optimizer") return open(std::make_unique<OptimizerSteps>(clock_, request));
    return make_error(ErrorCode::InvalidArgument, "unknown kind " + kind);
  }

  // One product first, untimed.
  Expected<json> timed_gemm(const json& request) {
    NS_RETURN_IF_ERROR(gemm(*loaded_.module, request.at("precision"), request.at("side"), 1));
    const MonotonicTime begin = clock_.monotonic_now();
    NS_ASSIGN_OR_RETURN(const double operations, gemm(*loaded_.module, request.at("precision"),
                                                      request.at("side"), request.at("repeats")));
    return json{{"seconds", to_seconds(clock_.monotonic_now() - begin)}, {"operations", operations}};
  }

  Expected<json> steps(std::uint32_t count) {
    double seconds = 0;
    std::vector<double> values;
    for (std::uint32_t i = 0; i < count; ++i) {
      NS_ASSIGN_OR_RETURN(const double turn, subject_->turn(values));
      seconds += turn;
    }
    return json{{"seconds", seconds}, {"values", values}};
  }

  compute::LoadedModule loaded_;
  const Clock& clock_;
  std::unique_ptr<Subject> subject_;
};

int serve(const std::string& precision, std::uint32_t threads, const std::string& max_isa) {
  NullLogger logger;
  const SystemClock clock;
  compute::ModuleOptions options;
  options.threads = threads;
  precision.copy(options.precision, sizeof options.precision - 1);
  max_isa.copy(options.max_isa, sizeof options.max_isa - 1);
  const auto loaded = compute::load_module("cpu", options, logger);
  if (!loaded.ok()) {
    std::cerr << loaded.error().describe() << '\n';
    return 1;
  }
  Server server(*loaded, clock);
  std::string line;
  while (std::getline(std::cin, line)) {
    // Missing or wrong fields: the driver's mistake, told to it.
    Expected<json> result = make_error(ErrorCode::InvalidArgument, "not a request: " + line);
    try {
      result = server.answer(json::parse(line));
    } catch (const json::exception& failed) {
      result = make_error(ErrorCode::InvalidArgument, failed.what());
    }
    std::cout << (result.ok() ? *result : json{{"error", result.error().describe()}}).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace neuroshard::bench

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::cerr << "usage: ours_server fp32|bf16 THREADS [MAX_ISA]\n";
    return 64;
  }
  return neuroshard::bench::serve(argv[1], static_cast<std::uint32_t>(std::atoi(argv[2])),
                                  argc == 4 ? argv[3] : "");
}
