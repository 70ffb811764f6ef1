// The latest immutable view of a node: everything that a screen shows without asking. Plain values. Bounded:
// strings and lists have named limits, so that an encoded snapshot stays under max_snapshot_bytes; what grows
// with time (series, logs, checkpoints) is a query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"

namespace neuroshard::node {

inline constexpr std::size_t max_snapshot_bytes = 64u << 10;
inline constexpr std::size_t max_alerts = 32;   // the most urgent ones are kept
inline constexpr std::size_t max_text = 512;    // characters of any text in a snapshot
inline constexpr std::size_t max_reasons = 16;  // why contributing is paused
inline constexpr std::size_t max_sensors = 16;
inline constexpr std::size_t max_missing = 8;          // silent members of the committee that are named
inline constexpr std::size_t max_other_histories = 4;  // of the network, beside this node's own
inline constexpr std::size_t max_path = 64;            // hops of a pipeline
inline constexpr std::size_t max_key = 64;             // characters of a key, an id or a hash
inline constexpr std::size_t max_sensor_text = 256;    // characters of a sensor's value or note

enum class RunState : std::uint8_t {
  Starting,  // opening, loading the module, preparing data
  Idle,      // nothing to train on, or finished
  Training,
  Paused,    // see Snapshot::pause_reasons
  Stopping,  // final checkpoint
  Failed,    // see Snapshot::alerts
};
std::string_view to_string(RunState state);

enum class Severity : std::uint8_t { Notice, Warning, Critical };
std::string_view to_string(Severity severity);

// A condition that the user should know about until it is over. `key` names the condition, so that it is
// raised once.
struct Alert {
  std::string key;  // "disk_low"
  Severity severity = Severity::Notice;
  std::string message;  // what is wrong and what to do
  WallTime since{};
};

// One reason for a pause. Keys are stable: "user", "snooze", "schedule", "battery", "metered", "idle"
// (someone uses the machine), "program", "full_screen", "hot", "disk", "safe_mode".
struct PauseReason {
  std::string key;
  std::string text;               // for people, with what would end it
  std::optional<WallTime> until;  // when it ends by itself, if that is known
  bool can_override = false;      // "run anyway" makes sense (not for "user", "disk", "safe_mode")
};

// A sensor of the contribute rules. Unknown (the sensor is missing or its lease ran out) is shown as such.
struct SensorView {
  std::string key;    // "battery", "metered", "idle", "full_screen", "program", "temperature"
  std::string value;  // "on battery, 63 %", "12 min without input"; empty = unknown
  std::string note;   // why it is unknown, or what the rule does with it now
};

struct IdentityView {
  std::string node_id;      // 64 hex characters
  std::string wallet_id;    // 16 hex characters; empty without a wallet
  std::string instance_id;  // UUID of the data directory
  bool wallet_protected = false;
};

struct ProgramView {
  std::string version;
  std::uint64_t pid = 0;
  WallTime started{};
  std::string data_directory;
  std::string network;     // name of the profile
  std::string network_id;  // 64 hex characters
  std::string notice;      // a note about this network for the user; empty = none
};

// The device and library that compute; empty strings until the compute module is loaded.
struct ComputeView {
  std::string device;
  std::string kernels;  // "oneDNN 2.6.3 sgemm"
  std::string isa;
  std::string precision;
  std::uint32_t threads = 0;
};

struct ModelView {
  std::uint32_t layers = 0, hidden = 0, experts = 0, experts_per_token = 0, vocab = 0, sequence = 0;
  std::uint64_t parameters = 0;
  std::uint64_t active_parameters = 0;
};

// One training step.
struct StepView {
  std::uint64_t step = 0;  // 1-based count of steps of this model
  double loss = 0;         // nats per token, on training data
  double learning_rate = 0;
  double gradient_norm = 0;
  std::uint64_t tokens = 0;      // all that this model was trained on, with this step
  double tokens_per_second = 0;  // of this step
  double balance = 0;            // router load balance, minimum 1; 0 = dense
  std::uint32_t micro_batch = 0;
  // Where the wall time of this step went, in seconds; they add up to the whole step.
  double data_seconds = 0, compute_seconds = 0, optimizer_seconds = 0, waiting_seconds = 0;
};

// One evaluation on held-out text.
struct EvaluationView {
  std::uint64_t step = 0;
  double loss = 0;                      // nats per token
  std::optional<double> bits_per_byte;  // when the bytes behind the tokens are known
};

struct TrainingView {
  std::optional<StepView> last_step;
  std::optional<double> smoothed_loss;  // exponential mean over about 20 steps
  std::optional<EvaluationView> last_evaluation;
  std::optional<double> best_evaluation_loss;
  std::uint64_t step = 0;         // steps done
  std::uint64_t target_step = 0;  // where this run ends; 0 = no end
  std::string data_source;        // the folder or dataset
  std::string activity;           // "learning the vocabulary", "training", "writing a checkpoint"
  double activity_share = 0;      // 0 … 1 of the activity; 0 when unknown
};

struct CheckpointView {
  std::string newest;    // folder name; empty = none
  WallTime newest_at{};  // when it was saved; 0 = none
};

struct ResourceView {
  std::uint64_t resident_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;  // 0 = none
  std::uint64_t disk_free_bytes = 0;
  std::uint64_t memory_total_bytes = 0;  // of the machine; 0 = unknown
  std::uint64_t directory_bytes = 0;     // what the data directory takes; 0 = not yet known
  std::optional<double> cpu_share;  // of this process, 0 ... 1 of the whole machine, over the last seconds
};

// A restore that can be taken back.
struct UndoView {
  std::string checkpoint;  // what undo would restore; empty = nothing to undo
  std::uint64_t step = 0;
};

// The training of the whole network, from reports that its nodes sign and pass on (core/status); no server
// says any of it. Medians, in which all nodes of one wallet count as one. "The majority" and shares likewise.
struct GlobalTrainingView {
  std::uint32_t reports = 0;                // fresh ones, this node's among them; 0: nothing below is known
  std::uint32_t wallets = 0;                // that count
  std::uint32_t training_nodes = 0;         // that say they train
  std::optional<double> loss;               // network loss: the median for the newest round; nats per token
  std::optional<double> least_loss;         // of the rounds that this node has seen
  std::optional<double> tokens_per_second;  // of the median node
  std::uint64_t tokens = 0;                 // trained by all nodes, as the blocks say
  std::uint64_t steps = 0;                  // the same in inner steps
  std::uint64_t outer_syncs = 0;            // rounds certified
  std::uint32_t data_shards = 0;            // different ones that are being read
  std::optional<double> hash_agreement;     // 0 … 1: share whose certified anchor is the majority's
  std::uint64_t agreement_round = 0;        // of which round
  std::optional<double> sync_success;  // 0 … 1: of the latest rounds' contributions, those that counted
  std::string loss_trend;       // "improving", "stable", "degrading", "insufficient data"; empty = unknown
  bool converging = false;      // agreement of at least one half, and not degrading
  bool verified = false;        // training_verified: see verified_reason
  std::string verified_reason;  // the rule and its result, in words
};

// Another history of the same network, which peers hold.
struct OtherHistory {
  std::string genesis;  // hash, 64 hex characters
  std::uint32_t peers = 0;
};

// The chain on which the members agree (core/chain), as this node sees it.
struct ChainView {
  std::string genesis;           // hash, 64 hex characters; empty: no history yet, and the rest means nothing
  std::uint64_t height = 0;      // of the newest block
  double block_age = 0;          // seconds since the newest block's time
  bool block_due = false;        // something waits for the next block
  bool stalled = false;          // and has waited for so long that fewer votes are enough for some blocks
  std::string voters_mode;       // who may vote: "invited", "founders", "open"
  std::uint32_t voters = 0;      // wallets
  std::uint32_t committee = 0;   // nodes that vote on the next block
  std::uint32_t candidates = 0;  // active members without a vote, whose work was certified
  std::uint64_t active_units = 0, heard_units = 0;  // of the committee; heard lately
  std::uint32_t missing_count = 0;                  // of the committee, not heard lately
  std::vector<std::string> missing;                 // max_missing of them; node ids, 64 hex characters each
  std::string standing;  // of this node: "voter", "candidate", "away", "revoked"; empty: no member
  std::uint32_t contributions = 0, contributions_needed = 0;  // of a candidate, for a vote
  bool needs_voucher = false;
  // The voters that are heard: "certifies" (enough), "after_stall" (enough once the others were silent for long),
  // "needs_a_person" (too few: those return, or this node's person goes on without them).
  std::string outlook;
  double person_needed_seconds = 0;  // for so long the outlook was "needs_a_person"
  // Block hash: members go on without some, or did so while this node was away. Its person decides whether it follows.
  std::string asks_succession;
  std::vector<OtherHistory> others;  // max_other_histories of them
};

// A node on the way of this node's text through the parts of the model. The times of a micro-batch are means of the last
// ones; nothing: none has passed this node yet.
struct HopView {
  std::string node;  // id, 64 hex characters
  std::optional<double> computing_ms;
  std::optional<double> between_ms;  // on the line there and back, and waiting at the node
};

// Why the network would have a node hold another part of the model.
enum class PartReason : std::uint8_t {
  None,
  NoHolder,   // nobody holds that part
  OneWallet,  // one owner's nodes hold it
  SlowPart,   // another part is faster
};

// Of a network whose members hold parts of the model: this node's part, and the pipeline that passes through it.
struct PartView {
  std::uint32_t number = 0, count = 0;  // from 1 on
  std::string holds;                    // "embedding, layers 0 to 3"
  std::vector<std::uint32_t>
      holders;  // by part: active members that hold it, as many as parts once they are known
  // By part, in percent of the fastest: the speed of its holders, as they state it, for the work of the part. Empty: none
  // states one.
  std::vector<std::uint32_t> speeds;
  bool paused = false;         // the pipeline goes around this node
  std::uint32_t sessions = 0;  // of drivers that pass through this node, its own included
  std::uint64_t finished = 0;  // micro-batches of this node's text that passed the whole model
  std::uint64_t replaced = 0;  // nodes on their way that did not answer, and others took their place
  std::uint64_t lost = 0;      // micro-batches of any driver that this node began and that do not count
  std::vector<HopView> path;   // by part, max_path at most; empty: no text of this node is on its way
  // Results of other parts that this node was drawn to check: found right, proven wrong, and those whose holders do not give
  // what they were made of.
  std::uint64_t found_right = 0, found_wrong = 0, withheld = 0;
  std::vector<std::uint32_t>
      checkers;                // by part: nodes drawn to check its newest result; empty: not known yet
  bool follows_plan = false;   // the network chose the part; else the node's owner
  std::uint32_t moves_to = 0;  // number of the part that this node moves to; 0: it stays
  PartReason reason = PartReason::None;  // why it does, or will when its round is over
};

// That a network's members ask for by the memory that they offer.
enum class SizeChange : std::uint8_t { None, Up, Down };

// The memory that the members of the network offer, and the models that it is enough for. Bytes.
struct NetworkMemoryView {
  // Active, of wallets that vote or that a voter vouched for. Where the model can change: those with a share of the votes.
  std::uint32_t members = 0;
  std::uint32_t known = 0;          // of them, those that say what they offer
  std::uint64_t offered_bytes = 0;  // by all of them
  std::uint64_t own_bytes = 0;      // by this node, as the others know it; 0: not said yet
  std::string tier;                 // of the network: "Nano"
  std::string next_tier;            // empty: there is none
  std::uint64_t next_tier_bytes = 0;
  // So many members have to have room for a larger model. Where it can change, their votes count instead (needs_percent).
  std::uint32_t needs_room = 0;
  struct Model {
    std::uint32_t layers = 0, hidden = 0;
    std::uint64_t parameters = 0;
    std::uint64_t member_bytes = 0;   // that each member needs for it, or for its part
    std::uint32_t with_room = 0;      // members that offer that
    std::uint64_t network_bytes = 0;  // that all members together have to offer; 0: no such need
    std::uint32_t members = 0;        // whose offers count here; of the present model also some that are away
    std::uint64_t offered_bytes = 0;  // by them
    std::uint32_t room_percent = 0;   // of the votes, that those with room have
    std::uint32_t needs_percent = 0;  // so much of the votes has to have room; 0: no such need
    // By the rule of the chain, as of now. Without needs: true.
    bool is_enough() const { return room_percent >= needs_percent && offered_bytes >= network_bytes; }
  };
  Model present;
  // The largest that enough members have room for; nothing: the present one, or the model can change.
  std::optional<Model> possible;
  // The one after it; where the model can change, the next larger one. Nothing: the profile has none.
  std::optional<Model> next;
  std::optional<Model> smaller;  // where the model can change: the next smaller one
  // The profile names sizes, and the chain changes the model to the next larger or smaller one. The rest is about that.
  bool can_change = false;
  SizeChange asked = SizeChange::None;  // by the newest results
  std::uint32_t results = 0;            // that asked for it, in a row
  std::uint32_t results_needed = 0;     // in a row, for a change
  bool changing = false;                // the round in progress makes the model of the other size
};

// Outer rounds: what this node trains, made one with what the other members train (core/rounds).
struct RoundsView {
  bool taking_part = false;  // false: the node trains for itself; the rest means nothing
  std::string phase;         // in words: "training", "waiting for the other members"
  std::uint64_t round = 0;   // the newest with a result; 0 = none yet
  std::string anchor;        // hash of the weights that it certifies, 64 hex characters
  bool agrees = false;       // this node's own anchor is that one
  bool member = false;
  std::uint32_t members = 0;
  std::uint32_t contributors = 0;  // of the newest round
  std::uint32_t steps = 0;         // of the round that is being made, by this node
  std::uint32_t inner_steps = 0;   // H: of a whole round
  std::uint64_t certified = 0;     // rounds that this node took part in since its start
  std::uint64_t contributed = 0;   // of its contributions, those that counted
  std::uint64_t left_out = 0;      // and those that did not
  std::string left_out_reason;     // of the newest one
  std::uint64_t fetched = 0;       // anchors fetched from others
  std::uint64_t corruptions = 0;   // own anchors found wrong, and repaired
  double waiting_seconds = 0;      // that training has stood still for the rounds
  double waiting_share = 0;        // 0 … 1 of the time since training began
  std::uint64_t bytes_sent = 0, bytes_received = 0;
  std::string trouble;                 // what keeps it from taking part; empty = nothing
  std::optional<double> seconds_left;  // until this node's own steps of the round are done, at its pace
  bool too_few_to_vote = false;  // newest round: 2 to 4 contributions, a Byzantine peer can't be outvoted
  GlobalTrainingView global;
  ChainView chain;
  std::optional<PartView> part;             // nothing: this node holds the whole model
  std::optional<NetworkMemoryView> memory;  // nothing: this node has no history yet
};

// The other nodes in short; the long answer is query_network().
struct PeersView {
  bool taking_part = false;  // false: this node is alone
  std::uint32_t connected = 0;
  std::optional<double> bytes_in_per_second, bytes_out_per_second;  // over the last ten seconds
};

// The local HTTP server (core/serve), which follows its settings while the node runs.
struct HttpView {
  std::string address;  // "http://127.0.0.1:8000"; empty: it does not listen
  std::string trouble;  // why it does not listen although it is on, and what to do; empty = nothing
  bool operator==(const HttpView&) const = default;
};

struct Snapshot {
  std::uint64_t version = 0;  // rises with every publication
  WallTime taken{};
  RunState state = RunState::Starting;
  bool contributing = true;                  // the one switch
  std::optional<WallTime> snoozed_until;     // paused until then
  std::vector<PauseReason> pause_reasons;    // every active one
  std::optional<WallTime> overridden_until;  // "run anyway": rules are ignored until then
  bool finishing = false;                    // finish() was asked for and the step (the round) still runs
  bool safe_mode = false;                    // run --safe: no training, no compute module
  std::vector<SensorView> sensors;
  IdentityView identity;
  ProgramView program;
  ComputeView compute;
  ModelView model;
  TrainingView training;
  CheckpointView checkpoint;
  UndoView undo;
  ResourceView resources;
  RoundsView rounds;
  PeersView peers;
  HttpView http;
  std::vector<Alert> alerts;  // most urgent first
};

// Cuts texts and lists to their limits, and makes the texts valid UTF-8. A publisher of snapshots calls it
// last.
void bound(Snapshot& snapshot);
// The same for an alert by itself.
void bound(Alert& alert);
// Upper bound of the encoded size: texts plus 16 bytes for each other field.
std::size_t encoded_bytes(const Snapshot& snapshot);

}  // namespace neuroshard::node
