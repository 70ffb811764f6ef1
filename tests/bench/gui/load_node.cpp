#include "tests/bench/gui/load_node.h"

#include <cmath>

namespace neuroshard::testing {
namespace {

constexpr std::uint64_t kept_lines = 100'000;

node::SettingEntry setting(int number) {
  node::SettingEntry entry;
  entry.name = "setting_" + std::to_string(number);
  entry.title = "Setting " + std::to_string(number);
  entry.help = "what it does; 0 = no limit";
  entry.type = number % 3 == 0 ? "bytes" : number % 3 == 1 ? "integer" : "choice";
  entry.value = entry.default_value = number % 3 == 0 ? "2GiB" : number % 3 == 1 ? "7" : "on";
  if (number % 3 == 2) entry.choices = "on|off";
  entry.most = 1u << 30;
  static const char* groups[] = {"Limits", "Power", "Training", "Storage", "Network", "Advanced"};
  entry.group = groups[number % 6];
  return entry;
}

}  // namespace

// As much as a long-lived node has: what a page shows must not depend on starting small.
LoadNode::LoadNode() : executor_(make_thread_executor("load", 4096)) {
  const auto past = [this](int minutes) { return clock_.wall_now() - std::chrono::minutes(minutes); };
  for (int i = 0; i < 400; ++i) {
    node::CheckpointEntry entry;
    entry.name = "checkpoint-" + std::to_string(400 - i);
    entry.parent = i < 399 ? "checkpoint-" + std::to_string(399 - i) : "";
    entry.step = static_cast<std::uint64_t>(400 - i) * 50;
    entry.at = past(10 * i);
    entry.bytes = 140u << 20;
    entry.loss = 2.0 + i * 0.01;
    entry.hash = "00112233445566778899aabbccddeeff";
    checkpoints.push_back(entry);
  }
  for (int i = 0; i < 40; ++i) settings.push_back(setting(i));
  for (std::uint32_t layer = 0; layer < 12; ++layer) {
    slots.push_back({"layer " + std::to_string(layer), "layer", layer, 0, 1'000'000, 16'000'000, true, 1});
    for (std::uint32_t expert = 0; expert < 8; ++expert) {
      slots.push_back({"expert " + std::to_string(layer) + "." + std::to_string(expert), "expert", layer,
                       expert, 500'000, 8'000'000, true, 1});
      experts.push_back({layer, expert, 0.125, 0, true, 1, 1000});
    }
  }
  for (const char* name : {"loss", "val_loss", "lr", "grad_norm", "tokens_per_s", "step_seconds"}) {
    auto& buckets = series[name];
    for (std::uint64_t i = 0; i < node::max_series_buckets; ++i) {
      const double value =
          2 + 6 * std::exp(-static_cast<double>(i) / 800) + 0.1 * std::sin(static_cast<double>(i));
      buckets.push_back({i * 25, 25, 25, value - 0.1, value + 0.1, value});
    }
  }
  data.source = "/books";
  data.train_tokens = 1'000'000'000;
  data.vocabulary = 32'000;
  for (std::uint64_t i = 0; i < node::max_page; ++i)
    data.shards.push_back(
        {i, "shard-" + std::to_string(i), "cached", 2'500'000, 5u << 20, i == 7, "aabbccdd"});
  data.shard_count = data.shards.size();
  publish([this](node::Snapshot& s) {
    s.state = node::RunState::Training;
    s.taken = clock_.wall_now();
    s.model = {12, 512, 8, 2, 32'000, 512, 120'000'000, 40'000'000};
    s.compute = {"cpu", "oneDNN sgemm", "AVX2", "fp32", 2};
    s.training.step = 20'000;
    s.training.smoothed_loss = 2.2;
    s.checkpoint.newest = "checkpoint-400";
    s.resources.resident_bytes = std::uint64_t{3} << 30;
    s.resources.memory_total_bytes = std::uint64_t{24} << 30;
  });
}

LoadNode::~LoadNode() {
  stop();
}

void LoadNode::start(int changes_per_second, int log_lines_per_second) {
  per_second_ = changes_per_second;
  lines_before_ = log_lines();
  log_start_ = clock_.monotonic_now().time_since_epoch().count();
  lines_per_second_ = log_lines_per_second;
  if (changes_per_second > 0) static_cast<void>(executor_->post([this] { change(); }));
}

void LoadNode::stop() {
  lines_before_ = log_lines();
  lines_per_second_ = 0;
  per_second_ = 0;
}

std::uint64_t LoadNode::log_lines() const {
  const std::int64_t now = clock_.monotonic_now().time_since_epoch().count();
  const double seconds = static_cast<double>(now - log_start_.load()) * 1e-9;
  return lines_before_.load() + static_cast<std::uint64_t>(seconds * lines_per_second_.load());
}

void LoadNode::change() {
  const int rate = per_second_.load();
  if (rate == 0) return;
  const std::uint64_t number = ++changes_;
  node::StepView step;
  step.step = 20'000 + number;
  step.loss = 2 + 0.3 * std::sin(static_cast<double>(number) * 0.01);
  step.learning_rate = 6e-4;
  step.gradient_norm = 1;
  step.tokens = step.step * 8192;
  step.tokens_per_second = 7000 + static_cast<double>(number % 100);
  step.compute_seconds = 0.9;
  step.optimizer_seconds = 0.1;
  publish([this, &step](node::Snapshot& s) {
    s.taken = clock_.wall_now();
    s.training.last_step = step;
    s.training.step = step.step;
    s.training.smoothed_loss = step.loss;
    s.resources.cpu_share = 0.5 + 0.001 * static_cast<double>(step.step % 100);
  });
  emit(node::StepFinished{step, std::nullopt});
  if (number % 100 == 0) emit(node::CheckpointWritten{"checkpoint-400"});
  timer_ = executor_->post_after(std::chrono::nanoseconds(1'000'000'000 / rate), [this] { change(); });
}

Expected<void> LoadNode::query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) {
  const bool taken = executor_->post([this, query, reply = std::move(reply)] {
    const std::uint64_t written = log_lines();
    const std::uint64_t oldest = written > kept_lines ? written - kept_lines + 1 : 1;
    node::LogPage page;
    std::uint64_t next = query.after + 1;
    if (next < oldest) {
      if (query.after != 0) page.dropped = oldest - next;
      next = oldest;
    }
    static const char* categories[] = {"train", "checkpoint", "data", "control"};
    for (; next <= written && page.entries.size() < query.limit; ++next) {
      const LogLevel level = next % 50 == 0 ? LogLevel::Warning : LogLevel::Info;
      page.entries.push_back(
          {next,
           clock_.wall_now(),
           {level, categories[next % 4],
            "step " + std::to_string(next) + ": loss 2.345, 7123 tokens/s, gradient norm 0.87"}});
    }
    page.next = page.entries.empty() ? query.after : page.entries.back().sequence;
    page.more = next <= written;
    reply(std::move(page));
  });
  if (!taken) return make_error(ErrorCode::Busy, "too many questions");
  return {};
}

}  // namespace neuroshard::testing
