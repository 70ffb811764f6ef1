// Shows the training of a node for `train` and `run`: JSON lines for programs; for people a start line, then
// a live progress line on a terminal or a line every few seconds elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/node/output/output.h"
#include "app/node/output/progress.h"
#include "core/base/clock.h"
#include "core/node/node.h"

namespace neuroshard::app {

// Threads: the command's.
class TrainingView {
 public:
  // step_lines: with --json, one object per step on standard output.
  TrainingView(node::Node& node, Output& output, const Clock& clock, bool step_lines);

  void show(const node::Event& event);
  // Takes the live line away, so that other text can be written.
  void clear() { progress_.clear(); }

  std::uint64_t steps_seen() const { return steps_seen_; }
  // For people, at the end: losses, speed, what to do next.
  void show_summary(const std::string& data_dir);

 private:
  void show_start(const node::Prepared& prepared);
  void show_step(const node::StepFinished& step);
  void show_step_line(const node::StepFinished& step);

  node::Node& node_;
  Output& output_;
  const Clock& clock_;
  const bool step_lines_;
  ProgressLine progress_;
  std::uint64_t first_step_ = 0;  // done before this run
  std::uint64_t steps_seen_ = 0;
  std::optional<double> first_loss_;
  std::optional<node::EvaluationView> evaluation_;
  std::optional<MonotonicTime> line_at_;
};

}  // namespace neuroshard::app
