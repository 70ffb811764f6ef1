// The system's resolver behind swarm::NameResolver. It blocks, for many seconds when no server of names
// answers, and can't be stopped: each look-up has a thread of its own, which nobody waits for.
#pragma once

#include <memory>

#include "core/base/executor.h"
#include "core/swarm/first_peer.h"

namespace neuroshard::app {

class NameLookup final : public swarm::NameResolver {
 public:
  // Answers on `executor`, which outlives this.
  explicit NameLookup(Executor& executor);
  // Look-ups under way end in silence.
  ~NameLookup() override;
  void look_up(const std::string& name, Found found) override;

 private:
  struct Gate;
  std::shared_ptr<Gate> gate_;
};

}  // namespace neuroshard::app
