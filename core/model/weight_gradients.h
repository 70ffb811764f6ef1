// The additions of a backward pass to the gradient buffers of weights. They run at once, or are kept for the second half
// of the pass (Qi et al. 2024, arXiv:2401.10241, "zero bubble": a stage sends the gradient of its input on before it
// works on its own weights). Each weight gets the same sums in the same order both ways.
//
// An addition owns the tensors that it reads, so kept ones take memory until run().
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace neuroshard::model {

class WeightGradients {
 public:
  enum class When { AtOnce, Later };
  explicit WeightGradients(When when) : later_(when == When::Later) {}

  // Whether additions are kept: the tensors that they read must then stay as they are.
  bool later() const { return later_; }

  // add(): adds to a gradient buffer. May throw OutOfMemory.
  template <class Add>
  void add(Add add) {
    if (later_) {
      kept_.emplace_back(std::move(add));
    } else {
      add();
    }
  }

  // The kept additions in the order in which they came; each is dropped when it is done. After an exception the
  // gradients hold some of them.
  void run() {
    for (std::function<void()>& addition : kept_) {
      addition();
      addition = nullptr;
    }
    kept_.clear();
  }

 private:
  bool later_;
  std::vector<std::function<void()>> kept_;
};

}  // namespace neuroshard::model
