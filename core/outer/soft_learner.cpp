#include "core/outer/soft_learner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::outer {
namespace {

// e^x for x in [−80, 0] and ln x for x ≥ 1, by series in plain fp64: the C library's differ between machines.
double exponential(double x) {
  const double ln2 = 0.693147180559945309417;
  const double turns = std::floor(x / ln2 + 0.5), r = x - turns * ln2;
  double sum = 1;
  for (int k = 14; k >= 1; --k) sum = 1 + r / k * sum;
  return std::ldexp(sum, static_cast<int>(turns));
}
double logarithm(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent), q = (mantissa - 1) / (mantissa + 1), q2 = q * q;
  double sum = 0;
  for (int k = 41; k >= 1; k -= 2) sum = 1.0 / k + q2 * sum;
  return 2 * q * sum + exponent * 0.693147180559945309417;
}

float dot(const float* a, const float* b, std::size_t count) {
  float lanes[8] = {};
  for (std::size_t i = 0; i < count; i += 8)
    for (std::size_t l = 0; l < 8; ++l) lanes[l] += a[i + l] * b[i + l];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Probabilities of the classes for one sample; returns the cross-entropy of `label`.
double classify(const SoftTaskOptions& task, const float* weights, const float* sample, std::uint32_t label,
                std::vector<double>& probabilities) {
  const float* biases = weights + std::size_t{task.classes} * task.features;
  double greatest = -1e300;
  for (std::uint32_t k = 0; k < task.classes; ++k) {
    probabilities[k] =
        double{dot(weights + std::size_t{k} * task.features, sample, task.features)} + biases[k];
    greatest = std::max(greatest, probabilities[k]);
  }
  const double of_label = probabilities[label] - greatest;
  double sum = 0;
  for (double& p : probabilities) sum += p = exponential(std::max(p - greatest, -80.0));
  for (double& p : probabilities) p /= sum;
  return logarithm(sum) - of_label;
}

// Independent streams for what follows from one seed.
Rng stream(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  Rng mixed(seed);
  Rng second(mixed.next() ^ a);
  return Rng(second.next() ^ b);
}

}  // namespace

Expected<std::shared_ptr<const SoftTask>> SoftTask::make(const SoftTaskOptions& options) {
  if (options.features % 8 != 0 || options.features < 8 || options.features > 4096 || options.classes < 2 ||
      options.classes > 256 || options.samples < options.classes || options.samples > 1'000'000 ||
      options.held_out < 1 || options.held_out > 1'000'000 ||
      !(options.separation > 0 && options.separation <= 10))
    return make_error(
        ErrorCode::InvalidArgument,
        "a softmax task needs 8 to 4096 features (a multiple of 8), 2 to 256 classes, at least a "
        "sample of each and at most a million, and a separation above 0");
  std::shared_ptr<SoftTask> task(new SoftTask(options));
  Rng rng = stream(options.seed, 1, 0);
  std::vector<float> means(std::size_t{options.classes} * options.features);
  for (float& value : means) value = options.separation * rng.normal();
  const auto fill = [&](std::vector<float>& samples, std::uint32_t count) {
    samples.resize(std::size_t{count} * options.features);
    for (std::uint32_t s = 0; s < count; ++s) {
      const float* mean = means.data() + std::size_t{s % options.classes} * options.features;
      float* sample = samples.data() + std::size_t{s} * options.features;
      for (std::uint32_t c = 0; c < options.features; c += 4) {
        // Four values of 16 bits each, uniform with variance 1.
        std::uint64_t bits = rng.next();
        for (std::uint32_t i = 0; i < 4; ++i, bits >>= 16)
          sample[c + i] =
              mean[c + i] + (static_cast<float>(bits & 0xffff) - 32767.5f) * (3.46410162f / 65536.0f);
      }
    }
  };
  fill(task->train_, options.samples);
  fill(task->held_out_, options.held_out);
  return std::shared_ptr<const SoftTask>(std::move(task));
}

std::size_t SoftTask::parameters() const {
  return std::size_t{options_.classes} * (std::size_t{options_.features} + 1);
}

double SoftTask::held_out_loss(Span<const float> weights) const {
  NS_CHECK(weights.size() == parameters());
  std::vector<double> probabilities(options_.classes);
  double sum = 0;
  for (std::uint32_t s = 0; s < options_.held_out; ++s)
    sum += classify(options_, weights.data(), held_out_.data() + std::size_t{s} * options_.features,
                    s % options_.classes, probabilities);
  return sum / options_.held_out;
}

SoftLearner::SoftLearner(std::shared_ptr<const SoftTask> task, std::uint64_t worker,
                         const SoftLearnerOptions& options, std::uint64_t first_step)
    : task_(std::move(task)), worker_(worker), options_(options), step_(first_step) {
  NS_CHECK(task_ && options.batch >= 1);
  weights_ = task_->initial_weights();
  gradient_ = first_moment_ = second_moment_ = weights_;
}

void SoftLearner::start_from(Span<const float> anchor) {
  NS_CHECK(anchor.size() == weights_.size());
  std::copy(anchor.begin(), anchor.end(), weights_.begin());
}

std::uint64_t SoftLearner::train(std::uint32_t steps) {
  for (std::uint32_t s = 0; s < steps; ++s) {
    gradient(weights_, step_, gradient_);
    apply(gradient_);
    ++step_;
  }
  return std::uint64_t{steps} * options_.batch;
}

void SoftLearner::delta(Span<const float> anchor, Span<float> out) const {
  NS_CHECK(anchor.size() == weights_.size() && out.size() == weights_.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = anchor[i] - weights_[i];
}

double SoftLearner::gradient(Span<const float> weights, std::uint64_t step, Span<float> out) const {
  const SoftTaskOptions& task = task_->options();
  NS_CHECK(weights.size() == task_->parameters() && out.size() == weights.size());
  std::fill(out.begin(), out.end(), 0.0f);
  Rng rng = stream(task.seed, 2 + worker_, step);
  const std::uint64_t own = stream(task.seed, 2 + worker_, ~0ull).below(task.classes);
  std::vector<double> probabilities(task.classes);
  double loss = 0;
  for (std::uint32_t b = 0; b < options_.batch; ++b) {
    std::uint64_t s = rng.below(task.samples);
    if (rng.uniform() < double{options_.non_iid}) {
      const std::uint64_t label = (own + rng.below(2)) % task.classes;
      s = s / task.classes * task.classes + label;
      if (s >= task.samples) s -= task.classes;
    }
    const auto label = static_cast<std::uint32_t>(s % task.classes);
    const float* sample = task_->train_.data() + s * task.features;
    loss += classify(task, weights.data(), sample, label, probabilities);
    for (std::uint32_t k = 0; k < task.classes; ++k) {
      const auto error = static_cast<float>((probabilities[k] - (k == label ? 1 : 0)) / options_.batch);
      float* row = out.data() + std::size_t{k} * task.features;
      for (std::uint32_t c = 0; c < task.features; ++c) row[c] += error * sample[c];
      out[std::size_t{task.classes} * task.features + k] += error;
    }
  }
  return loss / options_.batch;
}

void SoftLearner::apply(Span<const float> gradient) {
  const float lr = options_.lr;
  if (options_.inner == SoftLearnerOptions::Inner::Sgd) {
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= lr * gradient[i];
    return;
  }
  ++updates_;
  double power1 = 1, power2 = 1;  // of the decays; from some thousand steps on they are nothing
  for (std::uint64_t k = 0; k < std::min<std::uint64_t>(updates_, 4000); ++k) power1 *= 0.9, power2 *= 0.95;
  const auto correction1 = static_cast<float>(1 / (1 - power1)),
             correction2 = static_cast<float>(1 / (1 - power2));
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const float g = gradient[i];
    first_moment_[i] = 0.9f * first_moment_[i] + 0.1f * g;
    second_moment_[i] = 0.95f * second_moment_[i] + 0.05f * g * g;
    const float size = std::sqrt(second_moment_[i] * correction2) + 1e-8f;
    weights_[i] -= lr * (first_moment_[i] * correction1 / size + options_.weight_decay * weights_[i]);
  }
}

}  // namespace neuroshard::outer
