// A node that takes part in rounds without training, for measurements of other nodes; not part of the product.
//
//   payload_sender MILLISECONDS FOLDER PROFILE TRACKER
//
// A step takes so many milliseconds and no memory. All else is the product's: votes, payloads, outer steps. Its
// weights are small random values, made from a seed whenever they are read, so a payload has its full size and
// the program stays small whatever the model is. It needs neither LibTorch nor text. It learns its tokenizer from
// the network, so it can't be the first node of one.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

#include "core/base/check.h"
#include "core/engine/training_history.h"
#include "core/engine/training_session.h"
#include "core/platform/file/paths.h"
#include "core/platform/process/heap.h"
#include "core/runtime/node_runtime.h"

namespace {

using namespace neuroshard;  // NOLINT

constexpr float largest_weight = 0.02f;
constexpr auto longest_wait = std::chrono::milliseconds(50);  // for a cancelled step

// A value of [-1, 1) for each place (SplitMix64).
float noise(std::uint64_t seed, std::uint64_t place) {
  std::uint64_t z = seed + (place + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<float>(static_cast<std::int32_t>((z ^ (z >> 31)) >> 32)) / 2147483648.0f;
}

class SentModel final : public engine::RoundModel {
 public:
  SentModel(std::uint64_t parameters, const Hash256& tokenizer, std::uint64_t seed)
      : parameters_(parameters), tokenizer_(tokenizer), seed_(seed) {}

  std::uint64_t parameters() const override { return parameters_; }
  const Hash256& tokenizer_hash() const override { return tokenizer_; }
  Expected<void> read_weights(std::uint64_t first, Span<float> target) override {
    for (std::size_t i = 0; i < target.size(); ++i)
      target[i] = largest_weight * noise(seed_ + round_, first + i);
    return {};
  }
  Expected<void> write_weights(std::uint64_t, Span<const float>) override { return {}; }
  bool fresh_moments() const override { return true; }
  void set_schedule(std::uint64_t, double) override {}
  void synced() override {}
  // Other values in every round, as a payload may not be sent twice.
  void begin_round(std::uint64_t round, const Hash256&) override { round_ = round; }
  void set_places(std::vector<engine::RoundPlace> places, std::uint64_t) override {
    places_ = std::move(places);
  }
  const std::vector<engine::RoundPlace>& places() const override { return no_places_; }

 private:
  const std::uint64_t parameters_;
  const Hash256 tokenizer_;
  const std::uint64_t seed_;
  std::uint64_t round_ = 0;
  std::vector<engine::RoundPlace> places_, no_places_;
};

class SendingSession final : public engine::TrainingSession {
 public:
  SendingSession(const config::DataDirectory& directory, engine::TrainingServices services, Duration step)
      : consensus_(directory.profile().consensus),
        seed_(std::hash<std::string>{}(directory.path())),
        history_(std::move(services.history)),
        step_(step) {}

  Expected<engine::SessionInfo> prepare(const engine::PrepareOptions& options) override {
    info_.shape = config::model_shape(consensus_);
    info_.parameters = compute::model_parameter_count(info_.shape);
    info_.active_parameters = compute::active_parameter_count(info_.shape);
    info_.micro_batch = info_.sequences_per_step = 1;
    model_ = std::make_unique<SentModel>(info_.parameters, options.tokenizer.value_or(Hash256{}), seed_);
    return info_;
  }
  Expected<engine::StepReport> step(const CancelToken& cancel) override {
    for (Duration left = step_; left > Duration::zero(); left -= longest_wait) {
      if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
      std::this_thread::sleep_for(std::min<Duration>(left, longest_wait));
    }
    engine::StepReport report;
    report.step = ++steps_;
    report.tokens = consensus_.batch_tokens;
    report.total_tokens = steps_ * consensus_.batch_tokens;
    return report;
  }
  Expected<engine::Validation> evaluate(bool, const CancelToken&) override {
    return make_error(ErrorCode::NotFound, "a sender has no text to evaluate");
  }
  Expected<std::string> save() override { return std::string("nothing"); }
  Expected<void> finish() override { return {}; }
  std::uint64_t steps_done() const override { return steps_; }
  const engine::SessionInfo& info() const override { return info_; }
  compute::Stage& stage() override {
    NS_CHECK(false);
    std::abort();
  }
  engine::TextModel& text_model() override {
    NS_CHECK(false);
    std::abort();
  }
  const data::Tokenizer& tokenizer() const override { return tokenizer_; }
  engine::TrainingHistory& history() override { return *history_; }
  engine::RoundModel* round_model() override { return model_.get(); }

 private:
  const config::ConsensusPart consensus_;
  const std::uint64_t seed_;
  const std::shared_ptr<engine::TrainingHistory> history_;
  const Duration step_;
  engine::SessionInfo info_;
  std::unique_ptr<SentModel> model_;
  data::Tokenizer tokenizer_;
  std::uint64_t steps_ = 0;
};

Expected<void> run(Duration step, const std::string& folder, const std::string& profile,
                   const std::string& tracker) {
  platform::keep_heap_small();
  SystemClock clock;
  crypto::SystemEntropy entropy;
  const auto files = storage::make_posix_file_env();
  FileLogOptions log;
  log.path = folder + "/logs/neuroshardd.log";
  const auto logger = make_file_logger(log);
  config::DataDirectoryOptions directory;
  directory.path = folder;
  directory.profile = profile;
  NS_ASSIGN_OR_RETURN(auto opened, config::DataDirectory::open(directory, {*files, entropy, clock, *logger}));
  runtime::RuntimeOptions options;
  options.runtime_directory = platform::runtime_directory(platform::process_environment());
  options.join.sources = {tracker};
  options.join.address = "127.0.0.1";
  options.join.port = 0;
  options.join.lan = true;
  options.make_session =
      [step](config::DataDirectory& of,
             engine::TrainingServices services) -> Expected<std::unique_ptr<engine::TrainingSession>> {
    return std::unique_ptr<engine::TrainingSession>(
        std::make_unique<SendingSession>(of, std::move(services), step));
  };
  NS_ASSIGN_OR_RETURN(const auto running, runtime::NodeRuntime::start(
                                              std::move(opened), {*files, entropy, clock, *logger, "sender"},
                                              std::move(options)));
  return running->run({}, {}, [](const runtime::Event& event) {
    if (!std::holds_alternative<runtime::Ready>(event)) return;
    std::puts("{\"peers\": true}");
    std::fflush(stdout);
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t milliseconds = 0;
  const char* const text = argc == 5 ? argv[1] : "";
  const char* const end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, milliseconds);
  if (error != std::errc() || at != end) {
    std::fputs("payload_sender MILLISECONDS FOLDER PROFILE TRACKER\n", stderr);
    return 2;
  }
  const Expected<void> ran = run(std::chrono::milliseconds(milliseconds), argv[2], argv[3], argv[4]);
  if (ran.ok()) return 0;
  std::fputs((ran.error().describe() + "\n").c_str(), stderr);
  return 1;
}
