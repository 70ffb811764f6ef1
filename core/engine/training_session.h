// The training of one node: prepare() makes shards from text and a stage from the compute module, and loads
// the checkpoint; every step() trains, evaluates and saves when they are due, and reports. Also opens a
// trained model for generation only.
//
//   NS_ASSIGN_OR_RETURN(auto session, TrainingSession::create(directory, services));
//   NS_ASSIGN_OR_RETURN(SessionInfo info, session->prepare({.text = path}));
//   while (...) NS_ASSIGN_OR_RETURN(StepReport report, session->step(cancel));
//   NS_RETURN_IF_ERROR(session->finish());     // final checkpoint, on the disk when this returns
//
// Repeatable: everything that influences a step is in the checkpoint, so a run that was killed and resumed
// gives the same losses, bit for bit, as an uninterrupted one (same build, same threads). Threads: one, the
// compute thread, from create() to destruction; a thread of the session writes the checkpoints.
// Destroying a session without finish() is safe at any moment: the newest complete checkpoint stays.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/checkpoint/holds.h"
#include "core/compute/module.h"
#include "core/config/data_directory.h"
#include "core/data/dataset.h"
#include "core/data/peer_source.h"
#include "core/data/tokenizer.h"
#include "core/engine/pipeline_trainer.h"
#include "core/engine/round_model.h"
#include "core/engine/text_model.h"
#include "core/engine/training_history.h"
#include "core/storage/disk_budget.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {

// Services that a session needs; all outlive it.
struct TrainingServices {
  storage::FileEnv& files;
  const Clock& clock;
  Logger& logger;
  // The history that the session writes; null: the session opens the directory's state.db itself.
  std::shared_ptr<TrainingHistory> history = nullptr;
  // Outer rounds run beside the training: the memory plan includes their memory.
  bool rounds = false;
  // Called in prepare() where the model has no room in the memory; null: nobody wants to know.
  std::function<void()> no_memory = nullptr;
  // Of a network whose members hold parts of the model; null: this node has no pipeline.
  std::shared_ptr<PipelineTrainer> pipeline = nullptr;
  // Other nodes that may have cached the published data; null: none.
  data::PeerSource* peers = nullptr;
  // Checkpoints that retention keeps; null: none.
  std::shared_ptr<const checkpoint::Holds> held_checkpoints = nullptr;
  // Counts the bytes of checkpoints, beside those of others; null: only checkpoints count.
  std::shared_ptr<storage::DiskBudget> disk = nullptr;
  // Makes the compute module; tests provide a small one.
  std::function<Expected<compute::LoadedModule>(const std::string& kind, const compute::ModuleOptions&,
                                                Logger&)>
      load_module = compute::load_module;
};

struct PrepareProgress {
  enum class Phase : std::uint8_t {
    Scanning,           // done, total: files
    LearningMerges,     // merges of the tokenizer
    Encoding,           // bytes of text
    Finishing,          // writing shards and manifest
    FetchingTokenizer,  // the network's; no count
    LoadingCompute,     // the compute module; no count
    CreatingModel,      // slots
    RestoringModel,     // slots
  };
  Phase phase = Phase::Scanning;
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0: not known
};
// The text for a person: "Learning the tokenizer".
std::string_view to_string(PrepareProgress::Phase phase);

enum class SessionMode : std::uint8_t {
  Train,
  Generate,  // weights only, from the current checkpoint; no gradients, moments or text needed
};

struct PrepareOptions {
  SessionMode mode = SessionMode::Train;
  std::string checkpoint;  // with Generate: read this one; empty: the current one
  std::string text;        // a file or folder to add to the training text; empty: use the data directory's
  // Of a network whose members hold parts of the model: the one that the network has chosen for this node, from 0 on. The
  // data directory keeps it.
  std::optional<std::uint32_t> part;
  // The tokenizer of a network without a publisher, which other nodes have; none: the one of the data directory.
  std::optional<Hash256> tokenizer;
  std::function<void(const PrepareProgress&)> on_progress;  // on the calling thread
  CancelToken cancel;
};

// Facts about the session after prepare(), for the lines that a program prints at start.
struct SessionInfo {
  compute::ModuleInfo compute{};
  compute::ModelShape shape;
  compute::StageRange range;                    // of the model that this node holds
  std::uint32_t part = 0;                       // the part that this is, where the network's model has parts
  std::vector<bool> parts_that_fit;             // by part: the memory plan has room for it
  std::optional<std::uint32_t> too_large_size;  // first_too_large() of the network's sizes
  std::uint64_t parameters = 0;                 // of the whole model
  std::uint64_t active_parameters = 0;          // that one token passes through
  std::uint64_t step = 0;                       // steps done so far
  std::string restored_from;                    // name of the checkpoint; empty: a new model
  std::uint32_t vocabulary = 0;                 // tokens that the tokenizer knows
  bool tokenizer_learned = false;               // during prepare()
  std::uint64_t files_added = 0;                // text files added during prepare()
  std::uint64_t train_tokens = 0;
  std::uint64_t held_out_tokens = 0;  // 0: no validation loss
  std::uint64_t memory_limit = 0;     // bytes in force: the user's, or what the machine had free
  std::uint64_t memory_planned = 0;   // bytes that the plan expects to be resident at the peak
  std::uint32_t micro_batch = 0;      // sequences at once
  std::uint32_t sequences_per_step = 0;
};

// A condition that a person should know of and that does not stop the training.
struct SessionAlert {
  LogLevel level = LogLevel::Warning;
  std::string category;  // "checkpoint", "memory", "data"
  std::string text;
};

struct StepSeconds {
  double data = 0;  // waiting for the batch
  double forward_backward = 0;
  double optimizer = 0;
  double checkpoint_stall =
      0;  // training waited for a checkpoint's copy; copying and writing continue beside it
  double evaluation = 0;
};

struct Validation {
  double loss = 0;  // nats per token
  double bits_per_byte = 0;
  std::uint64_t tokens = 0;
  bool complete = false;           // over all held-out text, not an evenly spaced part
  std::string split = "held-out";  // which text: never trained on
};

struct StepReport {
  std::uint64_t step = 0;          // 1-based: this many steps are done
  double loss = 0;                 // nats per token, of the training batch
  std::uint64_t tokens = 0;        // of this step
  std::uint64_t total_tokens = 0;  // since the model began
  double tokens_per_second = 0;    // data, passes and optimizer; not evaluation and stalls
  double learning_rate = 0;
  double gradient_norm = 0;  // before clipping
  double balance = 0;        // router load balance, minimum 1; 0: dense
  double z = 0;
  std::uint32_t clipped_slots = 0;
  std::vector<std::uint64_t>
      router_load;  // [layers · experts] tokens of this step, layer-major; empty: dense
  std::uint32_t micro_batch = 0;
  StepSeconds seconds;
  std::optional<Validation> validation;  // when this step was evaluated
  bool checkpoint_started = false;       // this step's state was copied and is being written
  std::string checkpoint_saved;  // name of one that reached the disk since the last report; else empty
  std::vector<SessionAlert> alerts;
};

class TrainingSession {
 public:
  // The data directory, open and locked, outlives the session.
  static Expected<std::unique_ptr<TrainingSession>> create(config::DataDirectory& directory,
                                                           TrainingServices services);
  virtual ~TrainingSession() = default;

  // Once, before anything else. Imports the text, loads the compute module within the user's thread and
  // memory limits, plans memory, makes the model, and continues from the current checkpoint if there is one.
  // Errors: NotFound (no text, or in Generate no checkpoint; names what to provide), Exhausted (memory: names
  // the missing MiB; disk), Corrupt and InvalidArgument (a checkpoint of another network, shape or
  // tokenizer), Cancelled, Io; Unavailable or Timeout, see text_is_away().
  virtual Expected<SessionInfo> prepare(const PrepareOptions& options) = 0;

  // One inner step. Errors: Cancelled (within one micro-batch; the unfinished step is discarded), Corrupt
  // (numbers are not finite), Exhausted (memory, even with one sequence at a time), Unavailable or Timeout (see
  // text_is_away()), Busy (so, too: the text is still being fetched). After an error the model is as before the
  // step. A checkpoint that can't be written (disk full, read-only) raises an alert, and the session tries the
  // next one as usual.
  virtual Expected<StepReport> step(const CancelToken& cancel) = 0;

  // CPU threads from the next step on, at most those that the process may use; 0 = from the settings.
  virtual void limit_threads(std::uint32_t threads) { static_cast<void>(threads); }

  // The held-out loss now: over all held-out text, or over the setting's evenly spaced part. NotFound when
  // nothing is held out. Unavailable: the session holds a part of the model only. Busy, in a network with
  // rounds: the text is still being fetched; otherwise the call waits for it, and tries once more if it does not
  // come.
  virtual Expected<Validation> evaluate(bool complete, const CancelToken& cancel) = 0;

  // Saves now, regardless of the policy, and waits until it is on the disk; returns the checkpoint's name.
  virtual Expected<std::string> save() = 0;
  // Clean stop: saves if the state has changed since the last checkpoint, waits for the writer, writes the
  // history. Queries still work afterwards; step() does not.
  virtual Expected<void> finish() = 0;

  // True when the last prepare() or step() failed because the source of the text did not answer, or has not
  // given it yet: the same step may work later, or prepare() of another session.
  virtual bool text_is_away() const { return false; }

  // Steps done so far.
  virtual std::uint64_t steps_done() const = 0;
  // After prepare().
  virtual const SessionInfo& info() const = 0;
  // Owned by the session. Between steps, on this thread.
  virtual compute::Stage& stage() = 0;
  // For generation. Owned by the session, or by its pipeline.
  virtual TextModel& text_model() = 0;
  virtual const data::Tokenizer& tokenizer() const = 0;
  // The training text; null: unknown.
  virtual const data::Dataset* dataset() const { return nullptr; }
  // The shard that the last step read.
  virtual std::optional<data::ShardId> shard_in_use() const { return std::nullopt; }
  // Series: "loss" "val_loss" "bits_per_byte" "learning_rate" "gradient_norm" "tokens_per_second"
  // "step_seconds" "balance", by step.
  virtual TrainingHistory& history() = 0;
  // The trainer of outer rounds; null: the session takes no part in rounds. Owned by the session, after
  // prepare().
  virtual RoundModel* round_model() { return nullptr; }
};

}  // namespace neuroshard::engine
