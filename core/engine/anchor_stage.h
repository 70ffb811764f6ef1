// A stage that generates texts with the weights of a certified anchor, beside the one that trains: all holders of a part
// have the same anchor, so a text does not depend on which of them computes it. The stage takes memory from the first
// text until release().
//
// Threads: the compute thread.
#pragma once

#include <functional>

#include "core/compute/module.h"
#include "core/rounds/step.h"

namespace neuroshard::engine {

class AnchorStage {
 public:
  // Makes the stage, without gradients. Exhausted: there is no memory for it beside the training.
  using Make = std::function<Expected<compute::StagePtr>()>;
  explicit AnchorStage(Make make) : make_(std::move(make)) {}

  // anchor: of the stage's slots. Takes effect with the next stage(); no session of an earlier anchor may be open then.
  void use(rounds::Anchor anchor) { wanted_ = std::move(anchor); }
  // With the anchor's weights, which are read now if they are not there. NotFound: no anchor yet. Other errors: those of
  // making the stage and of reading the anchor.
  Expected<compute::Stage*> stage();
  // Frees the memory, sessions included.
  void release();

 private:
  Expected<void> load();

  const Make make_;
  rounds::Anchor wanted_, loaded_;
  compute::StagePtr stage_;
};

}  // namespace neuroshard::engine
