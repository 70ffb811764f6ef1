// A small node to train: a network profile of a tiny model, simple text, and a data directory in a temporary
// folder.
#pragma once

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/rng.h"
#include "core/engine/training_session.h"
#include "tests/unit/engine/jumping_clock.h"
#include "tests/unit/engine/no_sync_file_env.h"

namespace neuroshard::testing {

// Keys and words that are the same in every run.
class SeededEntropy final : public crypto::Entropy {
 public:
  void fill(MutableByteSpan target) override {
    for (auto& byte : target) byte = static_cast<std::uint8_t>(rng_.next());
  }

 private:
  Rng rng_{7};
};

inline void write_text(const std::string& path, const std::string& text) {
  QFile file(QString::fromStdString(path));
  NS_CHECK(file.open(QIODevice::WriteOnly));
  file.write(text.data(), static_cast<qint64>(text.size()));
}

// Sentences of few words: easy to learn.
inline std::string simple_text(std::uint64_t seed, int sentences) {
  const char* const who[] = {"the cat", "the dog", "a bird", "my friend"};
  const char* const does[] = {"sees", "likes", "finds", "follows"};
  const char* const what[] = {"the red ball", "a small house", "the old tree", "some water"};
  Rng rng(seed);
  std::string text;
  for (int i = 0; i < sentences; ++i) {
    text += std::string(who[rng.below(4)]) + ' ' + does[rng.below(4)] + ' ' + what[rng.below(4)] + ".\n";
  }
  return text;
}

struct TinyNetwork {
  std::uint64_t layers = 1, hidden = 16, head_dim = 8, experts = 2, vocab = 300, sequence = 16,
                batch_tokens = 128;
  std::uint64_t router_bias_gamma_nano = 1'000'000;
  std::uint64_t inner_steps = 0;  // more: a network with rounds, which needs a gamma of 0
};

// A folder with text, profile and data directories; a session over one of them.
class TrainingFixture {
 public:
  explicit TrainingFixture(const TinyNetwork& network = {}) {
    auto profile = config::builtin_profile("solo");
    NS_CHECK(profile.ok());
    config::ConsensusPart& c = profile->consensus;
    c.name = "tiny";
    c.layers = network.layers;
    c.hidden = network.hidden;
    c.head_dim = network.head_dim;
    c.heads_per_kv_head = 2;
    c.experts = network.experts;
    c.experts_per_token = std::min<std::uint64_t>(2, network.experts);
    c.vocab = network.vocab;
    c.sequence = network.sequence;
    c.batch_tokens = network.batch_tokens;
    c.router_bias_gamma_nano = network.router_bias_gamma_nano;
    if (network.inner_steps > 0) {
      c.inner_steps = network.inner_steps;
      c.sync = "plain";
      c.codec = "int8";
      c.outer_learning_rate_nano = 700'000'000;
      c.outer_momentum_nano = 900'000'000;
    }
    c.peak_learning_rate_nano = 10'000'000;
    c.warmup_steps = 5;
    c.decay_steps = 1000;
    write_text(path("tiny.json"), config::format_network_profile(*profile));
    write_text(path("text.txt"), simple_text(1, 1500));
  }

  std::string path(const std::string& name) const {
    return folder_.filePath(QString::fromStdString(name)).toStdString();
  }
  void copy(const std::string& from, const std::string& to) const {
    std::filesystem::copy(path(from), path(to), std::filesystem::copy_options::recursive);
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(path(name)); }

  Expected<std::unique_ptr<config::DataDirectory>> open(const std::string& name) {
    config::DataDirectoryOptions options;
    options.path = path(name);
    options.profile = path("tiny.json");
    options.environment = nullptr;
    options.setting_flags = {{config::Setting::CheckpointMinInterval, "0s"},
                             {config::Setting::CheckpointEverySteps, "5"},
                             {config::Setting::EvalIntervalSteps, "10"},
                             {config::Setting::EvalTokens, "200"},
                             {config::Setting::CpuThreads, "1"}};
    for (const auto& [setting, value] : settings) options.setting_flags.emplace_back(setting, value);
    return config::DataDirectory::open(options, {files_, entropy_, clock_, logger_});
  }

  std::map<config::Setting, std::string> settings;  // beside those above
  storage::FileEnv& files() { return files_; }
  const Clock& clock() const { return clock_; }
  void jump(Duration by) { clock_.jump(by); }
  Logger& logger() { return logger_; }

 private:
  QTemporaryDir folder_;
  NoSyncFileEnv files_;
  SeededEntropy entropy_;
  JumpingClock clock_;
  NullLogger logger_;
};

}  // namespace neuroshard::testing
