#include "tests/support/demo_node.h"

#include <algorithm>
#include <cmath>

#include "tests/support/core_settings.h"

namespace neuroshard::testing {
namespace {

constexpr std::uint64_t steps = 1204, target = 5000;
constexpr std::uint32_t layers = 6, experts = 8;

// Noise that is the same everywhere: a fraction of a product.
double noise(std::uint64_t i, double scale) {
  const double x = std::sin(static_cast<double>(i) * 12.9898) * 43758.5453;
  return (x - std::floor(x) - 0.5) * scale;
}

double loss_at(std::uint64_t step) {
  return 2.9 + 5.5 * std::exp(-static_cast<double>(step) / 260.0);
}

void add_series(FakeNode& node) {
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const double loss = loss_at(step) + noise(step, 0.5);
    node.series["loss"].push_back({step, 1, 1, loss, loss, loss});
    const double rate = step < 100 ? 3e-4 * static_cast<double>(step) / 100
                                   : 3e-4 * (0.55 + 0.45 * std::cos(static_cast<double>(step) / 1600));
    node.series["lr"].push_back({step, 1, 1, rate, rate, rate});
    const double norm =
        0.8 + 3 * std::exp(-static_cast<double>(step) / 90.0) + std::abs(noise(step * 7, 0.7));
    node.series["grad_norm"].push_back({step, 1, 1, norm, norm, norm});
    const double speed = (step > 600 && step < 660 ? 5200 : 7100) + noise(step * 3, 500);
    node.series["tokens_per_s"].push_back({step, 1, 1, speed, speed, speed});
    const double seconds = 4096 / speed;
    node.series["step_seconds"].push_back({step, 1, 1, seconds, seconds, seconds});
    if (step % 100 == 0) {
      const double held = loss_at(step) + 0.12;
      node.series["val_loss"].push_back({step, 1, 1, held, held, held});
    }
  }
}

void add_model(FakeNode& node) {
  node.slots.push_back({"embed", "embed", 0, 0, 1'048'576, 16u << 20, true, 1});
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    node.slots.push_back({"layer " + std::to_string(layer), "layer", layer, 0, 262'912, 4u << 20, true, 1});
    for (std::uint32_t expert = 0; expert < experts; ++expert) {
      node.slots.push_back({"expert " + std::to_string(layer) + "." + std::to_string(expert), "expert", layer,
                            expert, 393'216, 6u << 20, true, 1});
      const double even = 1 + noise(layer * 31 + expert * 7 + 3, 1.1);
      node.experts.push_back({layer, expert, even / experts, noise(layer + expert, 0.02), true, 1,
                              static_cast<std::uint64_t>(even * 616'448 * 2 / experts)});
    }
  }
  node.slots.push_back({"head", "head", 0, 0, 1'048'832, 16u << 20, true, 1});
}

void add_checkpoints(FakeNode& node, WallTime now) {
  std::string parent;
  const struct {
    std::uint64_t step;
    int minutes;
    const char* name;
  } saves[] = {{200, 170, "0000000200-df2e427f"},
               {400, 140, "0000000400-1c09ab34"},
               {600, 112, "0000000600-77e1f2d0"},
               {800, 80, "0000000800-a3b4c5d6"},
               {600, 78, ""},
               {1000, 40, "0000001000-5e6f7a8b"},
               {1200, 3, "0000001200-90ab12cd"}};
  for (const auto& save : saves) {
    if (save.name[0] == 0) {  // went back
      parent = "0000000600-77e1f2d0";
      continue;
    }
    node::CheckpointEntry entry;
    entry.name = save.name;
    entry.step = save.step;
    entry.at = now - std::chrono::minutes(save.minutes);
    entry.bytes = 251u << 20;
    entry.loss = loss_at(save.step);
    entry.held_out_loss = loss_at(save.step) + 0.12;
    entry.pinned = save.step == 600;
    entry.hash = std::string(56, 'a') + std::string(save.name).substr(11);
    entry.parent = parent;
    if (save.step < 1000) {
      entry.verified_at = now - std::chrono::minutes(30);
      entry.intact = true;
    }
    parent = save.name;
    node::EvaluationEntry result;
    result.at = entry.at + std::chrono::minutes(1);
    result.checkpoint = entry.name;
    result.checkpoint_hash = entry.hash;
    result.step = save.step;
    result.text = "held-out.txt";
    result.text_hash = std::string(64, 'e');
    result.model = {*entry.held_out_loss, *entry.held_out_loss / 2.6,
                    static_cast<std::uint32_t>(70 + save.step / 20)};
    result.baseline = {5.4, 2.08, 84};
    result.cloze_questions = 200;
    result.cloze_choices = 4;
    node.recorded.evaluations.insert(node.recorded.evaluations.begin(), result);
    node.checkpoints.insert(node.checkpoints.begin(), entry);
  }
}

void add_data(FakeNode& node) {
  node.data.source = "/srv/books";
  node.data.train_tokens = 2'190'000;
  node.data.held_out_tokens = 251'800;
  node.data.text_bytes = 9u << 20;
  node.data.cache_bytes = 5u << 20;
  node.data.cache_limit_bytes = 1u << 30;
  node.data.tokens_seen = steps * 4096;
  node.data.epochs = static_cast<double>(steps) * 4096 / 2'190'000;
  node.data.vocabulary = 4096;
  node.data.merges = 3837;
  node.data.tokenizer_hash = std::string(64, 'b');
  node.data.bytes_per_token = 3.72;
  for (std::uint64_t i = 0; i < 6; ++i)
    node.data.shards.push_back({i, "shard-" + std::to_string(i) + ".pt", i < 5 ? "cached" : "missing",
                                365'000, 1'460'000, i == 2, std::string(64, 'c')});
  node.data.shard_count = node.data.shards.size();
}

void add_logs(FakeNode& node, WallTime now) {
  const struct {
    LogLevel level;
    const char* category;
    const char* message;
  } lines[] = {{LogLevel::Info, "engine", "the data directory is open"},
               {LogLevel::Info, "data", "41 files, 9 MB of text, 2.19M tokens to train on"},
               {LogLevel::Info, "train", "training goes on from step 1000"},
               {LogLevel::Warning, "storage", "saving took 4.1 s; the disk is slow"},
               {LogLevel::Info, "checkpoint", "wrote 0000001200-90ab12cd (251 MiB)"}};
  std::uint64_t sequence = 0;
  for (int round = 0; round < 8; ++round)
    for (const auto& line : lines) {
      node::LogEntry entry;
      entry.sequence = ++sequence;
      entry.at = now - std::chrono::minutes(200) + std::chrono::minutes(4) * static_cast<int>(sequence);
      entry.record.level = line.level;
      entry.record.category = line.category;
      entry.record.message = line.message;
      node.logs.push_back(entry);
    }
}

// The core's own table, with two values that somebody chose and one that the command line fixed.
void add_settings(FakeNode& node) {
  node.settings = core_settings();
  for (node::SettingEntry& entry : node.settings) {
    if (entry.name == "memory_limit") entry.value = "2GiB";
    if (entry.name == "schedule") entry.value = "mon-fri 18-8; sat-sun";
    if (entry.name == "pause_for_programs") entry.value = "obs, steam";
    if (entry.name == "log_level") {
      entry.locked = true;
      entry.origin = "flag";
    } else if (entry.value != entry.default_value) {
      entry.origin = "file";
    }
  }
}

void fill_snapshot(node::Snapshot& next, WallTime now) {
  next.http.address = "http://127.0.0.1:8000";
  next.taken = now;
  next.state = node::RunState::Training;
  next.contributing = true;
  next.identity = {std::string(64, 'd'), "26870dc7719c62a5", "3f2b9a34-6f0f-4e55-9d30-0c60d4a9a7d1", false};
  next.program.version = "0.1.0";
  next.program.started = now - std::chrono::hours(3);
  next.program.network = "solo";
  next.program.data_directory = "/srv/neuroshard";
  next.compute = {"AMD EPYC 7763, 2 cores", "oneDNN 2.6.3 sgemm", "avx2", "fp32", 2};
  next.model = {layers, 256, experts, 2, 4096, 256, 21'970'000, 6'770'000};
  node::StepView step;
  step.step = steps;
  step.loss = loss_at(steps) + noise(steps, 0.5);
  step.learning_rate = 2.4e-4;
  step.gradient_norm = 0.93;
  step.tokens = steps * 4096;
  step.tokens_per_second = 7132;
  step.balance = 1.08;
  step.compute_seconds = 0.498;
  step.optimizer_seconds = 0.052;
  step.data_seconds = 0.004;
  step.waiting_seconds = 0.021;
  next.training.last_step = step;
  next.training.smoothed_loss = loss_at(steps);
  next.training.last_evaluation = node::EvaluationView{1200, loss_at(1200) + 0.12, 1.62};
  next.training.best_evaluation_loss = loss_at(1200) + 0.12;
  next.training.step = steps;
  next.training.target_step = target;
  next.training.data_source = "/srv/books";
  next.training.activity = "training";
  next.checkpoint.newest = "0000001200-90ab12cd";
  next.resources.resident_bytes = 1'430'000'000;
  next.resources.memory_limit_bytes = 2ull << 30;
  next.resources.memory_total_bytes = 16ull << 30;
  next.resources.directory_bytes = 1'830'000'000;
  next.resources.disk_free_bytes = 38'000'000'000;
  next.resources.cpu_share = 0.93;
  next.alerts.push_back({"disk_low", node::Severity::Warning,
                         "Less than 40 GB are free: old checkpoints can be removed.",
                         now - std::chrono::minutes(12)});
}

// Two members lack memory for the next model, and this node is one of them.
node::NetworkMemoryView demo_memory() {
  node::NetworkMemoryView memory;
  memory.members = 6;
  memory.known = memory.needs_room = 5;
  memory.offered_bytes = 14'500'000'000;
  memory.own_bytes = 2'000'000'000;
  memory.tier = "Nano";
  memory.next_tier = "Micro";
  memory.next_tier_bytes = 40'000'000'000;
  memory.present = {layers, 256, 21'970'000, 1'200'000'000, 5, 0, 6, memory.offered_bytes, 83, 0};
  memory.next = {8, 320, 43'120'000, 2'500'000'000, 4, 15'000'000'000, 6, memory.offered_bytes, 66, 75};
  memory.can_change = true;
  memory.results_needed = 4;
  return memory;
}

}  // namespace

std::shared_ptr<FakeNode> make_demo_node(const Clock& clock) {
  auto node = std::make_shared<FakeNode>();
  const WallTime now = clock.wall_now();
  add_series(*node);
  add_model(*node);
  add_checkpoints(*node, now);
  add_data(*node);
  add_logs(*node, now);
  add_settings(*node);
  node->publish([now](node::Snapshot& next) { fill_snapshot(next, now); });
  return node;
}

void join_demo_network(FakeNode& node, const Clock& clock) {
  const WallTime now = clock.wall_now();
  constexpr std::uint64_t newest = 48;
  const auto id_of = [](int number) {
    return std::string(1, "d17b4e"[number]) + std::string(63, "3a95c0"[number]);
  };
  node.rounds.taking_part = true;
  node.rounds.refused = {{"from another anchor", 3}, {"replayed", 1}};
  for (int i = 0; i < 12; ++i) {
    node::RoundEntry round;
    round.round = newest - static_cast<std::uint64_t>(i);
    round.step = steps - 31 - 80 * static_cast<std::uint64_t>(i);
    round.at = now - std::chrono::seconds(40 + 75 * i);
    round.seconds = 75 + noise(round.round, 9);
    round.waited = 6 + noise(round.round * 3, 5);
    round.rule = "clip, centered-clipping";
    round.members = i < 9 ? 6 : 5;
    for (int who = 0; who < 6; ++who) {
      const bool late = (i == 1 && who == 4) || (i == 5 && who == 2);
      round.who.push_back({id_of(who), who == 0, !late, late ? 0u : 80u, late ? 0u : 327'680u, 1.0 / 6,
                           late                 ? "late: its work was not there when the round was closed"
                           : i == 3 && who == 5 ? "left out: not a finite number"
                                                : ""});
      round.contributors += late ? 0 : 1;
    }
    node.rounds.rounds.push_back(round);
  }
  constexpr double loss_offsets[] = {0,     0.02, 0.06,
                                     -0.02, 0.04, -0.04};  // the median of the newest round is 0
  for (int who = 0; who < 6; ++who) {
    node::TrainingNodeEntry one;
    one.id = id_of(who);
    one.wallet = who == 5 ? "" : who == 3 ? "1b2a79cc04de8a11" : "26870dc7719c62a" + std::to_string(who);
    one.mine = who == 0;
    one.counts = one.training = true;
    one.round = who == 2 ? newest - 1 : newest;
    one.agrees = who != 4;
    one.loss = loss_at(newest * 25) + loss_offsets[who];
    one.tokens_per_second = 7132u >> (who % 3);
    one.steps = 3840;
    one.contributed = 46;
    one.synced = static_cast<std::uint32_t>(32 - who);
    one.missed = static_cast<std::uint32_t>(who);
    one.at = now - std::chrono::seconds(7 * who);
    node.rounds.nodes.push_back(one);
  }
  for (std::uint64_t round = 1; round <= newest; ++round)
    node.rounds.losses.push_back({round, loss_at(round * 25) + (round < newest ? noise(round, 0.05) : 0)});
  node.publish([&](node::Snapshot& next) {
    next.program.network = "devnet";
    next.peers = {true, 5, 184'320.0, 92'160.0};
    node::RoundsView& rounds = next.rounds;
    rounds = {};
    rounds.taking_part = rounds.agrees = rounds.member = true;
    rounds.phase = "training";
    rounds.round = newest;
    rounds.anchor = std::string(64, 'b');
    rounds.members = rounds.contributors = 6;
    rounds.steps = 31;
    rounds.inner_steps = 80;
    rounds.certified = 48;
    rounds.contributed = 46;
    rounds.left_out = 2;
    rounds.left_out_reason = "round 31 was closed without this node's work";
    rounds.waiting_seconds = 288;
    rounds.waiting_share = 0.08;
    rounds.bytes_sent = 1'240'000'000;
    rounds.bytes_received = 1'180'000'000;
    rounds.seconds_left = 29;
    rounds.memory = demo_memory();
    node::GlobalTrainingView& global = rounds.global;
    global.reports = global.training_nodes = 6;
    global.wallets = 5;
    global.loss = loss_at(newest * 25);
    global.least_loss = global.loss;
    global.tokens_per_second = 3566;
    global.tokens = 94'371'840;
    global.steps = 23'040;
    global.outer_syncs = newest;
    global.data_shards = 6;
    global.hash_agreement = 5.0 / 6;
    global.agreement_round = newest;
    global.sync_success = 0.94;
    global.loss_trend = "improving";
    global.converging = global.verified = true;
    global.verified_reason =
        "the network loss went from 7.8994 to 2.9542 (-62.6 %; means of three rounds) in the 48 rounds that "
        "this "
        "node has seen; a fall by 10 % counts as shown";
    next.alerts.push_back({"rounds_agreement", node::Severity::Warning,
                           "Only 83 % of the nodes hold the anchor that most have for round 48; another one: "
                           "4c0c0c0c0c0c…. Their "
                           "work does not count until they have the certified anchor; this node has it",
                           now - std::chrono::minutes(2)});
  });
}

}  // namespace neuroshard::testing
