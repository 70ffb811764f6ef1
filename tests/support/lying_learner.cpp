#include "tests/support/lying_learner.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <utility>

#include "core/base/rng.h"
#include "core/outer/codec.h"

namespace neuroshard::test {
namespace {

constexpr Duration look_again = std::chrono::milliseconds(50);
constexpr std::size_t queue = 16;
constexpr double blurring = 0.01;  // of a delta's root mean square
constexpr std::uint64_t longest_payload = std::uint64_t{1} << 30;

using Delta = std::vector<float>;
using Boundary = rounds::RoundLearner::Boundary;
using Done = std::function<void(Expected<Boundary>)>;

Expected<Delta> decoded(ByteSpan payload) {
  NS_ASSIGN_OR_RETURN(const outer::CodecHeader header, outer::read_codec_header(payload));
  Delta delta(static_cast<std::size_t>(header.count));
  NS_RETURN_IF_ERROR(outer::decode(payload, delta));
  return delta;
}

class LyingLearner final : public rounds::RoundLearner {
 public:
  LyingLearner(rounds::RoundLearner& training, Executor& node, storage::FileEnv& files,
               const LiarOptions& options)
      : training_(training),
        node_(node),
        files_(files),
        options_(options),
        thread_(make_thread_executor("ns-liar", queue)) {}
  ~LyingLearner() override {
    alive_.reset();
    thread_.reset();
  }

  void start(Start from) override {
    round_ = from.round;
    training_.start(std::move(from));
  }
  rounds::TrainedWork progress() const override { return training_.progress(); }
  bool ends_early() const override { return training_.ends_early(); }
  std::uint32_t extra_steps() const override { return training_.extra_steps(); }
  void closed() override { training_.closed(); }
  void go_on() override { training_.go_on(); }
  void boundary(rounds::AfterBoundary after, Done done) override {
    training_.boundary(after, [this, alive = std::weak_ptr<bool>(alive_), round = round_,
                               done = std::move(done)](Expected<Boundary> honest) mutable {
      if (alive.expired()) return;
      if (!honest.ok()) return done(std::move(honest));
      auto lie = std::make_shared<Lie>();
      lie->round = round;
      lie->honest = std::move(*honest);
      lie->done = std::move(done);
      if (!thread_->post([this, lie] { show(lie); })) lie->done(std::move(lie->honest));
    });
  }

 private:
  struct Lie {
    std::uint64_t round = 0;
    Boundary honest;
    Done done;
    Duration waited{};
    std::unique_ptr<TimerHandle> timer;
  };

  std::string prefix(std::uint64_t round) const { return fmt::format("{}.", round); }

  // The attacker's own thread.
  void show(const std::shared_ptr<Lie>& lie) {
    const auto shown = storage::copy_to_file(
        files_, options_.folder + "/" + prefix(lie->round) + options_.name, *lie->honest.payload);
    if (!shown.ok()) std::fputs((shown.error().describe() + "\n").c_str(), stderr);
    look(lie);
  }

  void look(const std::shared_ptr<Lie>& lie) {
    std::vector<Delta> sample = shown_of(lie->round);
    if (sample.size() < options_.liars && lie->waited < options_.patience) {
      lie->waited += look_again;
      lie->timer = thread_->post_after(look_again, [this, lie] { look(lie); });
      return;
    }
    Expected<Boundary> result = forged(*lie, sample);
    if (!result.ok()) std::fputs((result.error().describe() + "\n").c_str(), stderr);
    fmt::print(stderr, "{{\"lied\": {}, \"attack\": \"{}\", \"knows\": {}}}\n", lie->round,
               outer::to_string(options_.attack), sample.size());
    auto shared = std::make_shared<Expected<Boundary>>(std::move(result));
    if (!node_.post([lie, shared] { lie->done(std::move(*shared)); }))
      std::fputs("the node's queue is full: this round is without a lie\n", stderr);
  }

  std::vector<Delta> shown_of(std::uint64_t round) {
    std::vector<Delta> sample;
    const auto entries = files_.list(options_.folder);
    if (!entries.ok()) return sample;
    for (const storage::DirectoryEntry& entry : *entries) {
      if (entry.name.rfind(prefix(round), 0) != 0) continue;
      const auto payload = storage::read_file(files_, options_.folder + "/" + entry.name, longest_payload);
      if (!payload.ok()) continue;
      auto delta = decoded(*payload);
      if (delta.ok() && (sample.empty() || delta->size() == sample[0].size()))
        sample.push_back(std::move(*delta));
    }
    return sample;
  }

  Expected<Boundary> forged(Lie& lie, std::vector<Delta>& sample) const {
    NS_ASSIGN_OR_RETURN(const Bytes honest_payload, read_all(*lie.honest.payload));
    NS_ASSIGN_OR_RETURN(const outer::CodecHeader header, outer::read_codec_header(honest_payload));
    if (sample.empty()) {  // nothing could be shown
      NS_ASSIGN_OR_RETURN(Delta own, decoded(honest_payload));
      sample.push_back(std::move(own));
    }
    const bool tuned =
        options_.attack == outer::Attack::Alie || options_.attack == outer::Attack::InnerProduct;
    const std::vector<Delta> known =
        tuned ? imagine_honest(sample, options_.honest, lie.round) : std::vector<Delta>{};
    std::vector<Span<const float>> honest;
    for (const Delta& delta : tuned ? known : sample) honest.emplace_back(delta);
    outer::AggregationOptions rule;
    rule.sparse = header.options.codec == outer::Codec::TopK;
    Rng rng(lie.round);
    auto lies = outer::forge(options_.attack, honest, options_.liars, lie.honest.work.tokens, rule, rng);
    blur(lies[0].delta, lie.round);
    Boundary result = lie.honest;
    result.work.tokens = lies[0].tokens;
    NS_ASSIGN_OR_RETURN(Bytes payload, outer::encode(header.options, lies[0].delta));
    result.payload = in_memory(std::move(payload));
    return result;
  }

  // Copies are refused, so each attacker sends the same values in other bytes.
  void blur(Delta& delta, std::uint64_t round) const {
    double squares = 0;
    for (const float value : delta) squares += double{value} * value;
    const double deviation = blurring * std::sqrt(squares / static_cast<double>(delta.size()));
    Rng rng(std::hash<std::string>{}(options_.name) + round);
    for (float& value : delta) value += static_cast<float>(deviation * double{rng.normal()});
  }

  rounds::RoundLearner& training_;
  Executor& node_;
  storage::FileEnv& files_;
  const LiarOptions options_;
  std::uint64_t round_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<Executor> thread_;
};

}  // namespace

std::vector<std::vector<float>> imagine_honest(const std::vector<std::vector<float>>& sample,
                                               std::size_t honest, std::uint64_t seed) {
  const std::size_t values = sample[0].size();
  const double count = static_cast<double>(sample.size());
  std::vector<Delta> all(honest, Delta(values));
  Rng rng(seed);
  for (std::size_t c = 0; c < values; ++c) {
    double mean = 0, squares = 0;
    for (const Delta& delta : sample) mean += double{delta[c]} / count;
    for (const Delta& delta : sample) squares += (delta[c] - mean) * (delta[c] - mean);
    const double deviation = sample.size() < 2 ? std::abs(mean) : std::sqrt(squares / (count - 1));
    for (Delta& one : all) one[c] = static_cast<float>(mean + deviation * double{rng.normal()});
  }
  return all;
}

std::unique_ptr<rounds::RoundLearner> make_lying_learner(rounds::RoundLearner& training, Executor& node,
                                                         storage::FileEnv& files,
                                                         const LiarOptions& options) {
  return std::make_unique<LyingLearner>(training, node, files, options);
}

}  // namespace neuroshard::test
