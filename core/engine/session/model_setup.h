// Prepares a session: imports the text, loads the compute module within the user's limits, plans memory,
// makes the model, and continues from the current checkpoint or starts a new model.
//
// Errors are those of TrainingSession::prepare().  Threads: the compute thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/manifest.h"
#include "core/data/loader.h"
#include "core/data/text_import.h"
#include "core/engine/session/session_parts.h"

namespace neuroshard::engine::detail {

class ModelSetup {
 public:
  // Both outlive the object. `parts` already has its history.
  ModelSetup(SessionParts& parts, const PrepareOptions& options) : parts_(parts), options_(options) {}

  // Once. Fills every part; without training, loader, loop and checkpoints stay empty.
  Expected<void> run();
  // Alerts for the first report.
  std::vector<SessionAlert> take_alerts() { return std::move(alerts_); }

 private:
  // Parts of run(), in order.
  Expected<void> choose_part();
  Expected<void> prepare_text();
  void note_import(const data::ImportResult& result);
  Expected<void> load_compute();
  Expected<void> settle_precision(compute::ModuleOptions options);
  Expected<void> make_model();
  Expected<void> keep_drawn_part();
  Expected<void> restore();
  Expected<void> initialise();
  Expected<void> take_over(const checkpoint::Manifest& manifest, const std::string& name);
  bool is_in_other_text(const checkpoint::Manifest& manifest, const data::LoaderPosition& position) const;
  Expected<void> history_restored();
  bool passes_over_checkpoint();
  void keep_before_change(checkpoint::Catalogue& catalogue, const checkpoint::Entry& entry);
  void keep_micro_batch(const TrainerState& saved, std::uint32_t micro_batch);
  Expected<void> prepare_training();

  TrainingMemoryRequest memory_request() const;  // once the dataset is open
  // Changes the part to one that has room, where the node's id draws one that has none. Exhausted: the model has no room, and the
  // rounds know it.
  Expected<TrainingMemory> plan_memory(std::uint64_t least_resident);
  std::vector<bool> parts_that_fit(std::uint64_t least_resident) const;
  TrainingMemoryRequest memory_request(const config::ConsensusPart& consensus,
                                       const compute::StageRange& range) const;
  bool size_fits(std::uint32_t size) const;
  const config::ConsensusPart& consensus() const { return parts_.directory.profile().consensus; }
  config::Settings settings() const { return parts_.directory.settings(); }
  void report(PrepareProgress::Phase phase, std::uint64_t done, std::uint64_t total) const;

  SessionParts& parts_;
  const PrepareOptions& options_;
  std::vector<SessionAlert> alerts_;
  bool is_part_ = false;
  std::optional<std::uint32_t> drawn_;  // the part that the node's id draws, where none was kept
  std::optional<checkpoint::Entry>
      of_other_model_;  // the newest checkpoint, after a move or a change of size
};

}  // namespace neuroshard::engine::detail
