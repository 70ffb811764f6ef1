// The choices of a stage's routers, and the selection-only biases that balance them (Wang et al. 2024):
//   bias_e += gamma · sign(mean load − load_e)   after a step, over the tokens whose gradients it applied
//
// Legend: L layers of the stage, E experts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neuroshard::model {

class RouterBalance {
 public:
  // gamma 0: no biases are applied or changed.
  RouterBalance(std::size_t layers, std::size_t experts, float gamma);

  // For another range of layers: layers of both ranges keep their counts and biases, the others start anew.
  RouterBalance of_layers(std::size_t own_first, std::size_t first, std::size_t layers) const;

  // [E] of a layer; null without biases. Valid as long as this object, also where it is moved to.
  const float* bias_of(std::size_t layer) const;
  std::vector<float>& biases() { return bias_; }  // [L,E]

  // Tokens that chose each expert in a forward pass of training, [E].
  void add_load(std::size_t layer, const std::vector<std::int64_t>& counts);
  // The same for the gradients that the next step applies.
  void add_step_load(std::size_t layer, const std::vector<std::int64_t>& counts);
  // The first ones since the last reset, [L,E].
  void load(std::uint64_t* counts, bool reset);

  // Updates the biases of a layer that steps.
  void step(std::size_t layer);
  // For gradients that are dropped: forgets the tokens since the last step.
  void drop_step_load();

 private:
  void add(std::vector<std::uint64_t>& load, std::size_t layer,
           const std::vector<std::int64_t>& counts) const;

  std::size_t experts_;
  float gamma_;
  std::vector<std::uint64_t> load_;       // [L,E]
  std::vector<std::uint64_t> step_load_;  // [L,E]
  std::vector<float> bias_;               // [L,E]
};

}  // namespace neuroshard::model
