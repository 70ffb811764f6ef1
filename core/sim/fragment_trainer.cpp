#include "core/sim/fragment_trainer.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::sim {
namespace {

// The world's disks are in memory: reading never fails.
std::vector<float> weights_of(const rounds::Anchor& anchor) {
  return outer::read_all(anchor->weights()).value();
}

}  // namespace

class FragmentTrainer::Part final : public rounds::RoundLearner {
 public:
  Part(FragmentTrainer& all, const rounds::Fragment& fragment) : all_(all), fragment_(fragment) {}

  void start(Start from) override {
    all_.change([&] {
      const std::size_t count = static_cast<std::size_t>(fragment_.count);
      float* const local = all_.local_.data() + fragment_.first;
      std::vector<float> next = weights_of(from.anchor);
      NS_CHECK(next.size() == count);
      const bool everything = from.carry == rounds::Carry::Everything;
      std::vector<float> base;
      if (everything && anchor_) base = weights_of(anchor_);
      if (from.carry == rounds::Carry::SinceBoundary) base = at_boundary_;
      // As the real one: who is back begins all fragments at once, and ends them one after the other.
      steps_ = starts_++ == 0 ? fragment_.first_steps : all_.options_.inner_steps;
      extra_ = 0;
      if (base.empty()) {
        begun_ = all_.trained_;
      } else if (!everything) {
        begun_ = boundary_;
        const std::uint64_t carried = all_.trained_ - boundary_;
        extra_ = static_cast<std::uint32_t>(
            rounds::counted_lead(std::min(carried, lead_.value_or(carried)), all_.options_.inner_steps));
      }
      lead_.reset();
      for (std::size_t i = 0; !base.empty() && i < count; ++i) next[i] -= base[i] - local[i];
      std::copy(next.begin(), next.end(), local);
      anchor_ = std::move(from.anchor);
      at_boundary_.clear();
      end_ = begun_ + steps_ + extra_;
    });
  }
  bool ends_early() const override {
    if (!anchor_) return false;
    const std::uint32_t steps = progress().steps;
    return (steps_ < all_.options_.inner_steps && steps >= steps_ + extra_) ||
           (steps >= rounds::least_steps(all_.options_.inner_steps) && all_.rests_long());
  }
  rounds::TrainedWork progress() const override {
    if (!anchor_) return {};
    const std::uint64_t steps = all_.trained_ + all_.due() - begun_;
    return {static_cast<std::uint32_t>(steps), steps * all_.options_.tokens_per_step};
  }
  void boundary(rounds::AfterBoundary after, std::function<void(Expected<Boundary>)> done) override {
    all_.change([&] {
      const auto local = all_.local_.begin() + static_cast<std::ptrdiff_t>(fragment_.first);
      at_boundary_.assign(local, local + static_cast<std::ptrdiff_t>(fragment_.count));
      boundary_ = all_.trained_;
      end_ = boundary_ + (after == rounds::AfterBoundary::TrainOn ? all_.options_.inner_steps : 0);
    });
    std::vector<float> delta = weights_of(anchor_);
    for (std::size_t i = 0; i < delta.size(); ++i) delta[i] -= at_boundary_[i];
    const std::uint64_t steps = boundary_ - begun_;
    Expected<Bytes> payload = outer::encode(all_.options_.codec, delta);
    Expected<Boundary> result =
        payload.ok() ? Expected<Boundary>(Boundary{
                           in_memory(std::move(*payload)),
                           {static_cast<std::uint32_t>(steps), steps * all_.options_.tokens_per_step}})
                     : Expected<Boundary>(payload.error());
    static_cast<void>(
        all_.executor_.post([done = std::move(done), result = std::move(result)] { done(result); }));
  }
  void go_on() override {
    all_.change([&] { end_ = begun_ + all_.options_.most_provisional_steps; });
  }
  std::uint32_t extra_steps() const override { return extra_; }
  void closed() override { lead_ = at_boundary_.empty() ? 0 : all_.trained_ + all_.due() - boundary_; }
  bool begun() const { return anchor_ != nullptr; }
  std::uint64_t end() const { return end_; }
  // So many are worth giving.
  std::uint64_t least_end() const {
    return std::min<std::uint64_t>(end_, begun_ + rounds::least_steps(all_.options_.inner_steps));
  }

 private:
  FragmentTrainer& all_;
  const rounds::Fragment fragment_;
  rounds::Anchor anchor_;
  std::vector<float> at_boundary_;
  std::uint64_t begun_ = 0, boundary_ = 0, end_ = 0;  // in steps of the training
  std::uint64_t starts_ = 0, steps_ = 0;              // of the round, for this node
  std::uint32_t extra_ = 0;
  std::optional<std::uint64_t> lead_;  // steps from the boundary until the others had done theirs
};

FragmentTrainer::FragmentTrainer(World& world, Executor& executor, LocalModel& model, TrainerOptions options,
                                 const std::vector<rounds::Fragment>& fragments, std::vector<float> initial)
    : world_(world), executor_(executor), model_(model), options_(options), local_(std::move(initial)) {
  for (const rounds::Fragment& fragment : fragments) {
    NS_CHECK(fragment.first + fragment.count <= local_.size());
    parts_.push_back(std::make_unique<Part>(*this, fragment));
  }
}

FragmentTrainer::~FragmentTrainer() = default;

rounds::RoundLearner& FragmentTrainer::learner(std::size_t fragment) {
  return *parts_.at(fragment);
}

bool FragmentTrainer::runs() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->begun(); });
}

std::uint64_t FragmentTrainer::end() const {
  std::uint64_t end = parts_.front()->end();
  for (const auto& part : parts_) end = std::min(end, part->end());
  for (const auto& part : parts_) end = std::max(end, part->least_end());
  return runs() ? end : 0;
}

bool FragmentTrainer::rests_long() const {
  constexpr Duration patience = std::chrono::milliseconds(1500);
  const std::uint64_t last = end();
  if (!runs() || parts_.size() == 1 || last > trained_ + due()) return false;
  const std::uint64_t left = last > trained_ ? last - trained_ : 0;
  return world_.now() - since_ >= static_cast<Duration::rep>(left) * options_.step_time + patience;
}

std::uint64_t FragmentTrainer::due() const {
  const std::uint64_t last = end();
  if (last <= trained_) return 0;
  return std::min<std::uint64_t>(last - trained_,
                                 static_cast<std::uint64_t>((world_.now() - since_) / options_.step_time));
}

void FragmentTrainer::catch_up() {
  const std::uint64_t steps = due();
  if (steps == 0) return;
  model_.train(1, static_cast<std::uint32_t>(trained_), static_cast<std::uint32_t>(steps), local_);
  trained_ += steps;
  since_ += static_cast<Duration::rep>(steps) * options_.step_time;
}

template <class F>
void FragmentTrainer::change(F f) {
  catch_up();
  const bool rested = end() <= trained_;
  f();
  if (rested) since_ = world_.now();
  if (!first_ && runs()) first_ = world_.now();
}

double FragmentTrainer::waiting_share() const {
  const double all = first_ ? to_seconds(world_.now() - *first_) : 0;
  return all <= 0 ? 0 : 1 - static_cast<double>(steps_trained()) * to_seconds(options_.step_time) / all;
}

}  // namespace neuroshard::sim
