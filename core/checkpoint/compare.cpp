#include "core/checkpoint/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/checkpoint/detail/layout.h"

namespace neuroshard::checkpoint {
namespace {

constexpr std::size_t piece_floats = detail::chunk_bytes / sizeof(float);
constexpr std::uint64_t progress_step = 16u << 20;

struct Sums {
  double difference = 0, first = 0, second = 0, product = 0;

  void add(const Sums& other) {
    difference += other.difference;
    first += other.first;
    second += other.second;
    product += other.product;
  }
  WeightDistance distance() const {
    WeightDistance result;
    result.distance = std::sqrt(difference);
    if (first > 0) result.relative = std::sqrt(difference / first);
    if (first == 0 && difference > 0) result.relative = 1;
    if (first > 0 && second > 0)
      result.cosine = std::clamp(product / (std::sqrt(first) * std::sqrt(second)), -1.0, 1.0);
    return result;
  }
};

// The weights of one checkpoint, by tensor.
class Weights {
 public:
  static Expected<Weights> open(storage::FileEnv& env, const Entry& entry) {
    if (!entry.complete()) return make_error(ErrorCode::Corrupt, entry.name + ": " + entry.damage);
    NS_ASSIGN_OR_RETURN(auto file, env.open_read(entry.path + "/" + detail::weights_file));
    Weights weights;
    weights.name_ = entry.name;
    weights.source_ = std::make_unique<detail::FileSource>(std::move(file));
    NS_ASSIGN_OR_RETURN(weights.header_, tensor::read_safetensors_header(*weights.source_));
    for (const tensor::TensorEntry& item : weights.header_.tensors) weights.by_name_[item.spec.name] = &item;
    return weights;
  }

  // Where the floats of a parameter begin.
  Expected<std::uint64_t> find(const compute::ParameterInfo& parameter) const {
    const auto at = by_name_.find(parameter.name);
    if (at == by_name_.end() || at->second->spec.type != tensor::DType::F32 ||
        at->second->spec.dims != parameter.dims) {
      return make_error(ErrorCode::Corrupt, fmt::format("{}: the tensor {} is missing or has the wrong shape",
                                                        name_, parameter.name));
    }
    return header_.data_offset + at->second->begin;
  }
  Expected<void> read(std::uint64_t offset, Span<float> values) {
    return source_->read_at(offset,
                            {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(float)});
  }

 private:
  std::string name_;
  std::unique_ptr<detail::FileSource> source_;
  tensor::SafetensorsHeader header_;
  std::unordered_map<std::string, const tensor::TensorEntry*> by_name_;  // into header_'s vector
};

class Comparer {
 public:
  Comparer(Weights first, Weights second, std::uint64_t total, const Progress& progress,
           const CancelToken& cancel)
      : first_(std::move(first)),
        second_(std::move(second)),
        total_(total),
        progress_(progress),
        cancel_(cancel) {}

  Expected<Sums> slot(const std::vector<compute::ParameterInfo>& parameters) {
    Sums sums;
    for (const compute::ParameterInfo& parameter : parameters) {
      NS_ASSIGN_OR_RETURN(std::uint64_t a, first_.find(parameter));
      NS_ASSIGN_OR_RETURN(std::uint64_t b, second_.find(parameter));
      for (std::uint64_t left = parameter.count; left > 0;) {
        if (cancel_.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the end");
        const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece_floats));
        NS_RETURN_IF_ERROR(first_.read(a, {x_.data(), now}));
        NS_RETURN_IF_ERROR(second_.read(b, {y_.data(), now}));
        sums.add(piece(now));
        a += now * sizeof(float);
        b += now * sizeof(float);
        left -= now;
        tell(now * sizeof(float));
      }
    }
    return sums;
  }

 private:
  Sums piece(std::size_t count) const {
    Sums sums;
    for (std::size_t i = 0; i < count; ++i) {
      const double x = x_[i], y = y_[i];
      sums.difference += (y - x) * (y - x);
      sums.first += x * x;
      sums.second += y * y;
      sums.product += x * y;
    }
    return sums;
  }
  void tell(std::uint64_t bytes) {
    done_ += bytes;
    if (!progress_ || (done_ - reported_ < progress_step && done_ != total_)) return;
    reported_ = done_;
    progress_(done_, total_);
  }

  Weights first_, second_;
  const std::uint64_t total_;
  const Progress& progress_;
  const CancelToken& cancel_;
  std::vector<float> x_ = std::vector<float>(piece_floats), y_ = std::vector<float>(piece_floats);
  std::uint64_t done_ = 0, reported_ = 0;
};

bool holds(const Entry& entry, compute::SlotId slot) {
  const auto& slots = entry.manifest.slots;
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

}  // namespace

Expected<Comparison> compare(storage::FileEnv& env, const Entry& first, const Entry& second,
                             const Progress& progress, const CancelToken& cancel) {
  NS_ASSIGN_OR_RETURN(Weights a, Weights::open(env, first));
  NS_ASSIGN_OR_RETURN(Weights b, Weights::open(env, second));
  const compute::ModelShape& shape = first.manifest.architecture;
  if (!same_shape(shape, second.manifest.architecture)) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} and {} hold models of different shapes", first.name, second.name));
  }
  std::vector<compute::SlotId> slots;
  std::uint64_t total = 0;
  for (const compute::SlotId slot : compute::model_slots(shape)) {
    if (!holds(first, slot) || !holds(second, slot)) continue;
    slots.push_back(slot);
    total += compute::slot_parameter_count(shape, slot) * sizeof(float);
  }
  Comparer comparer(std::move(a), std::move(b), total, progress, cancel);
  Comparison result;
  Sums all;
  for (const compute::SlotId slot : slots) {
    NS_ASSIGN_OR_RETURN(const Sums sums, comparer.slot(compute::slot_parameters(shape, slot)));
    all.add(sums);
    result.slots.push_back({slot, sums.distance()});
  }
  result.all = all.distance();
  return result;
}

}  // namespace neuroshard::checkpoint
