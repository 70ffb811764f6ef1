// A bench for tests of the boundary between outer rounds and training: a model that counts, and a bench
// that trains it step by step.
#pragma once

#include <QtTest>

#include <algorithm>

#include "core/engine/round_trainer.h"
#include "tests/support/manual_executor.h"
#include "tests/support/stored.h"

namespace neuroshard::engine::testing_rounds {

using rounds::Carry;

// Four weights; a step takes 1 from each.
struct CountingModel final : RoundModel {
  std::vector<float> weights{10, 20, 30, 40};
  Hash256 tokenizer{};
  std::uint32_t own_part = 0;
  bool fresh = true, broken = false;
  int writes = 0, written = 0;
  std::uint64_t schedule = 0;
  double factor = 0;
  std::vector<RoundPlace> noted, restored;
  std::uint64_t since_noted = 0, since_restored = 0;
  std::vector<std::uint64_t> synced_at;  // rounds

  std::uint64_t parameters() const override { return weights.size(); }
  const Hash256& tokenizer_hash() const override { return tokenizer; }
  std::uint32_t part() const override { return own_part; }
  Expected<void> read_weights(std::uint64_t first, Span<float> target) override {
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(first), target.size(), target.begin());
    return {};
  }
  Expected<void> write_weights(std::uint64_t first, Span<const float> source) override {
    if (broken) return make_error(ErrorCode::Unavailable, "the device is gone");
    std::copy(source.begin(), source.end(), weights.begin() + static_cast<std::ptrdiff_t>(first));
    ++writes;
    return {};
  }
  void weights_written() override { ++written; }
  bool fresh_moments() const override { return fresh; }
  void set_schedule(std::uint64_t step, double rate_factor) override {
    schedule = step;
    factor = rate_factor;
  }
  void synced() override { synced_at.push_back(noted.back().round); }
  void set_places(std::vector<RoundPlace> places, std::uint64_t since_arrival) override {
    noted = std::move(places);
    since_noted = since_arrival;
  }
  const std::vector<RoundPlace>& places() const override { return restored; }
  std::uint64_t since_arrival() const override { return since_restored; }
  void begin_round(std::uint64_t round, const Hash256& beacon) override { begun.emplace_back(round, beacon); }
  Bytes last_batches(std::uint64_t steps) override { return {static_cast<std::uint8_t>(steps)}; }
  std::vector<std::pair<std::uint64_t, Hash256>> begun;  // rounds with their beacons
};

inline rounds::Anchor anchor_of(const std::vector<float>& weights) {
  return test::state_with(weights);
}

struct TrainerBench {
  SystemClock clock;
  NullLogger logger;
  testing::ManualExecutor executor;
  CountingModel model;
  RoundTrainerOptions options;
  std::shared_ptr<Spool> spool = std::make_shared<MemorySpool>();
  std::unique_ptr<RoundTrainer> trainer;
  std::vector<RoundFacts> facts;
  int progressed = 0;
  std::vector<Expected<rounds::RoundLearner::Boundary>> boundaries;

  explicit TrainerBench(std::uint32_t inner_steps = 3, std::uint32_t fragments = 1) {
    options.inner_steps = inner_steps;
    options.fragments = fragments;
    options.codec.codec = outer::Codec::Fp32;
    options.longest_rest = std::chrono::milliseconds(1);
    make();
  }
  void make() {
    trainer = std::make_unique<RoundTrainer>(options, spool, clock, logger);
    trainer->listen(
        {&executor, [this](const RoundFacts& f) { facts.push_back(f); }, [this] { ++progressed; }});
  }
  void ask(rounds::AfterBoundary after = rounds::AfterBoundary::Rest) { ask(0, after); }
  // At the same time as all others.
  void ask(std::size_t fragment, rounds::AfterBoundary after) {
    ask_first(fragment, after);
    trainer->learner(fragment).closed();
  }
  // Before them.
  void ask_first(std::size_t fragment, rounds::AfterBoundary after) {
    trainer->learner(fragment).boundary(after,
                                        [this](auto result) { boundaries.push_back(std::move(result)); });
  }
  void start(std::size_t fragment, rounds::RoundLearner::Start from) {
    trainer->learner(fragment).start(std::move(from));
  }
  RoundTrainer::Turn turn() { return trainer->before_step().value(); }
  // Steps until it rests, at most `most`.
  int train(int most = 100) {
    int steps = 0;
    for (; steps < most && turn() == RoundTrainer::Turn::Train; ++steps) {
      for (float& w : model.weights) w -= 1;
      trainer->after_step(100);
    }
    executor.run();
    return steps;
  }
  std::vector<float> delta(std::size_t which, std::size_t count = 4) {
    std::vector<float> values(count);
    const auto decoded = outer::decode(options.codec, test::bytes_of(boundaries.at(which)->payload), values);
    if (!decoded.ok()) qFatal("%s", decoded.error().describe().c_str());
    return values;
  }
};

using Weights = std::vector<float>;

}  // namespace neuroshard::engine::testing_rounds
