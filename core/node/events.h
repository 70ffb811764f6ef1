// What happened, as plain structs that carry their data: a handler needs no call back into the node. State is
// latest-wins (a slow reader may miss steps and reads the snapshot); CommandDone and alerts are never
// dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/node/snapshot.h"

namespace neuroshard::node {

// Names one accepted command until its CommandDone.
using CommandId = std::uint64_t;

struct StateChanged {
  RunState state = RunState::Starting;
};
struct StepFinished {
  StepView step;
};
struct Evaluated {
  EvaluationView evaluation;
};
// Preparing and other long activities.
struct ActivityProgress {
  std::string activity;
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0 = unknown
};
struct CheckpointWritten {
  std::string name;  // the folder's
  std::uint64_t step = 0;
  std::uint64_t bytes = 0;
};
struct SettingChanged {
  std::string name;
  std::string value;
};
struct AlertRaised {
  Alert alert;
};
struct AlertCleared {
  std::string key;
};
struct CommandDone {
  CommandId id = 0;
  std::optional<Error> error;  // none = success
};

using Event = std::variant<StateChanged, StepFinished, Evaluated, ActivityProgress, CheckpointWritten,
                           SettingChanged, AlertRaised, AlertCleared, CommandDone>;

}  // namespace neuroshard::node
