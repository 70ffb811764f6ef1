// Events as plain structs that carry their data: a handler needs no call back into the node. State is
// latest-wins (a slow reader may miss steps and reads the snapshot); CommandDone and alerts are never
// dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/node/queries.h"
#include "core/node/snapshot.h"

namespace neuroshard::node {

// Names one accepted command until its CommandDone.
using CommandId = std::uint64_t;

struct StateChanged {
  RunState state = RunState::Starting;
  std::optional<Error> error;  // with Failed
};
// Training is about to begin or to go on.
struct Prepared {
  std::uint64_t step = 0;     // steps done so far
  std::string restored_from;  // name of the checkpoint; empty: a new model
  std::uint64_t train_tokens = 0;
  std::uint64_t held_out_tokens = 0;
  std::uint32_t vocabulary = 0;
  std::uint64_t files_added = 0;  // of text, just now
};
struct StepFinished {
  StepView step;
  std::optional<EvaluationView> evaluation;  // when this step was evaluated
};
// Preparing and other long activities.
struct ActivityProgress {
  std::string activity;
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0 = unknown
};
struct CheckpointWritten {
  std::string name;  // the folder's; it is on the disk
};
// A checkpoint was written, removed, pinned, imported or verified: lists are to be asked for again.
struct CheckpointsChanged {};
// How far a command is: long work such as verify, compare, export, import, restore. At most ten a second.
struct CommandProgress {
  CommandId id = 0;
  std::string activity;  // "reading checkpoint-…", for people
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0 = unknown
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
  std::optional<Error> error;  // none = success; Cancelled after cancel()
  CommandResult result;        // the result of the command; monostate for most
};
// The node has shut down. The last event.
struct Ended {
  std::optional<Error> error;  // of the final checkpoint
};

using Event = std::variant<StateChanged, Prepared, StepFinished, ActivityProgress, CheckpointWritten,
                           CheckpointsChanged, CommandProgress, SettingChanged, AlertRaised, AlertCleared,
                           CommandDone, Ended>;

}  // namespace neuroshard::node
