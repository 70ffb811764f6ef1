// The system's resolver behind swarm::NameResolver. A call of it blocks, for many seconds when no name server
// answers, and can't be stopped. So each look-up has a thread of its own, which nobody waits for.
#pragma once

#include <memory>

#include "core/base/executor.h"
#include "core/swarm/first_peer.h"

namespace neuroshard::runtime {

class NameLookup final : public swarm::NameResolver {
 public:
  // Answers on `executor`, which outlives this.
  explicit NameLookup(Executor& executor);
  // Look-ups under way never answer.
  ~NameLookup() override;
  void look_up(const std::string& name, Found found) override;

 private:
  struct Gate;
  std::shared_ptr<Gate> gate_;
};

}  // namespace neuroshard::runtime
