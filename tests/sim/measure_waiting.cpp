// How long training waits for outer rounds over lines of 100 and 10 Mbit/s: the nodes of the chain in the
// simulated world, for a model of 25 million parameters (26 MB a delta at int8): plain, delayed-1 and four
// fragments; and how much of the line that takes in the busiest minute.
//
//   measure_waiting [--members N]… [--line MBIT]… [--training SECONDS]… [--rounds R] [--return AWAY]… [--join
//   1]
//
// --return: instead, how long a member that was away for so many rounds needs until its work is in a
// certificate again, with the same lines; and how long the others' rounds are meanwhile. --join: the same of
// one that was never there and has no state.
//
// A tenth of everything but the speed of the lines: 2.5 million values, a tenth of each time. A round's
// phases and their overlap are what they are at full size, for a tenth of the memory and computing. The
// values are drawn, not learned: only time is looked at here. All members are equally fast, their lines carry
// nothing else, and pieces of deltas pass a line one after the other.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/sim/chain_world.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::sim;  // NOLINT

namespace {

constexpr double scale = 10;
constexpr std::size_t full_values = 25'000'000;
constexpr std::uint32_t inner_steps = 100;
constexpr std::size_t fragments = 4;

Duration scaled(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds / scale));
}

// Weights that move a little each step, another way on each node.
class Drift final : public LocalModel {
 public:
  explicit Drift(std::uint64_t seed) : state_(seed * 2 + 1) {}
  void train(std::uint64_t, std::uint32_t, std::uint32_t steps, Span<float> weights) override {
    const float size = 1e-6f * static_cast<float>(steps);
    for (float& w : weights) {
      state_ ^= state_ << 13;
      state_ ^= state_ >> 7;
      state_ ^= state_ << 17;
      w += size * (static_cast<float>(state_ >> 40) / 8388608.0f - 1);
    }
  }

 private:
  std::uint64_t state_;
};

struct Case {
  std::size_t members = 4;
  double megabits = 100, training_seconds = 60;
  std::uint64_t rounds = 6;
  bool last_is_new = false;
};
struct Result {
  double waiting = 0, round_seconds = 0;
  double megabytes = 0;  // of a node in a round, one way, at full size
  double busiest = 0;    // MB that a node sends in its busiest minute, at most, at full size
  double contributors = 0;
  bool good = false;
};

enum class Kind { Plain, Delayed, Fragments };
std::size_t parts_of(Kind kind) {
  return kind == Kind::Fragments ? fragments : 1;
}

ChainWorldOptions options_of(const Case& c, Kind kind) {
  const auto parts = static_cast<int>(parts_of(kind));
  ChainWorldOptions o;
  o.nodes = c.members;
  o.fragments = parts_of(kind);
  if (c.last_is_new) o.founders = c.members - 1;
  o.network.least_delay = scaled(0.010);  // of each line: 20 to 60 ms from one to the other
  o.network.most_delay = scaled(0.030);
  o.network.bytes_per_second = c.megabits * 1e6 / 8;
  o.network.passes_by = 16 << 10;
  o.network.window = scaled(60);
  o.initial.assign(static_cast<std::size_t>(full_values / scale), 0.0f);
  chain::ChainRules& rules = o.chain.rules;
  rules.most_tokens = 2 * inner_steps;
  rules.admission_contributions = 2;
  rules.block_time = scaled(60);
  rules.stall_after = scaled(600);
  rules.silent_after = scaled(180);
  rules.heartbeat = scaled(60);
  o.chain.tick = scaled(0.2);
  o.chain.sync.poll = scaled(5);
  o.chain.agreement = {scaled(10), scaled(120)};
  o.training.sync = kind == Kind::Plain ? rounds::RoundSync::Plain : rounds::RoundSync::Delayed;
  o.training.inner_steps = inner_steps;
  o.training.tick = scaled(0.2);  // a real node hears of its last step at once
  // Grace and patience: pieces are as large as at full size.
  o.training.clock = {scaled(1800) / parts, std::chrono::seconds(3), std::chrono::seconds(10)};
  o.training.provisional_after = scaled(600);
  o.trainer.inner_steps = inner_steps;
  o.trainer.step_time = scaled(c.training_seconds / inner_steps);
  o.trainer.tokens_per_step = 1;
  o.trainer.most_provisional_steps = 4 * inner_steps;
  o.work_time = scaled(1.5) / parts;  // an outer step and its hash at full size, on two cores
  return o;
}

std::unique_ptr<ChainWorld> make_world(const Case& c, Kind kind) {
  return std::make_unique<ChainWorld>(
      options_of(c, kind), [](std::size_t node, std::uint64_t) { return std::make_unique<Drift>(node + 1); });
}

struct Return {
  double seconds = 0;        // 0: not within two hours
  double round_seconds = 0;  // of the others meanwhile
};

// The last one stops in the middle of a round's training, or comes in the middle of one. It counts once each
// row has its work.
Return come_back(const Case& c, Kind kind, std::uint64_t away) {
  const auto made = make_world(c, kind);
  ChainWorld& world = *made;
  const std::size_t last = c.members - 1, parts = parts_of(kind);
  const Duration long_enough = scaled(7200);
  for (std::size_t i = 0; i < (c.last_is_new ? last : c.members); ++i) world.start(i);
  world.run_to_round(2 * parts, long_enough);
  world.world().run_for(scaled(c.training_seconds / 2));
  if (!c.last_is_new) world.kill(last);
  world.run_to_round((2 + away) * parts, static_cast<int>(1 + away) * long_enough);
  world.world().run_for(scaled(c.training_seconds / 2));
  const MonotonicTime back = world.world().now();
  const std::uint64_t before = world.round(0);
  world.start(last);
  const bool counted =
      world.run_until([&] { return world.training(last).view().counted >= parts; }, long_enough);
  Return result;
  const double seconds = scale * to_seconds(world.world().now() - back);
  if (counted) result.seconds = seconds;
  const auto rounds = static_cast<double>(std::max<std::uint64_t>(1, world.round(0) - before));
  result.round_seconds = seconds * static_cast<double>(parts) / rounds;
  return result;
}

// A round of fragments is one turn of each.
Result measure(const Case& c, Kind kind) {
  const auto made = make_world(c, kind);
  ChainWorld& world = *made;
  const std::size_t parts = parts_of(kind);
  world.start_all();
  Result result;
  result.good = world.run_to_round(c.rounds * parts,
                                   static_cast<int>(c.rounds) * 20 * scaled(c.training_seconds + 600));
  for (std::size_t i = 0; i < c.members; ++i) {
    result.waiting += world.learners(i).waiting_share() / static_cast<double>(c.members);
    const double busiest = scale * world.network().busiest_window(static_cast<Host>(i)) / 1e6;
    result.busiest = std::max(result.busiest, busiest);
  }
  const auto rounds = static_cast<double>(c.rounds);
  result.round_seconds = scale * to_seconds(world.world().now().time_since_epoch()) / rounds;
  result.megabytes = scale * static_cast<double>(world.network().counters().bytes) / 1e6 /
                     static_cast<double>(c.members) / rounds;
  const ChainWorldSeen& seen = world.seen();
  result.good = result.good && seen.conflicts + seen.twice + seen.wrong_anchors == 0;
  result.contributors = static_cast<double>(seen.contributions) / static_cast<double>(seen.rounds);
  return result;
}

bool measure_row(const Case& c) {
  const Result plain = measure(c, Kind::Plain);
  const Result delayed = measure(c, Kind::Delayed);
  const Result parts = measure(c, Kind::Fragments);
  const bool good = plain.good && delayed.good && parts.good;
  fmt::print(
      "| {} | {:.0f} | {:.0f} s | {:.1f}, {:.1f}, {:.1f} % | {:.0f}, {:.0f}, {:.0f} | {:.1f}, {:.1f}, {:.1f} "
      "| "
      "{:.0f}, {:.0f}, {:.0f} | {:.0f}, {:.0f}, {:.0f}{} |\n",
      c.members, c.megabits, c.training_seconds, 100 * plain.waiting, 100 * delayed.waiting,
      100 * parts.waiting, plain.round_seconds, delayed.round_seconds, parts.round_seconds,
      plain.contributors, delayed.contributors, parts.contributors, plain.megabytes, delayed.megabytes,
      parts.megabytes, plain.busiest, delayed.busiest, parts.busiest, good ? "" : ", **broken**");
  std::fflush(stdout);
  return good;
}

bool measure_return(const Case& c, std::uint64_t away) {
  const Return plain = come_back(c, Kind::Plain, away);
  const Return delayed = come_back(c, Kind::Delayed, away);
  const Return parts = come_back(c, Kind::Fragments, away);
  const auto text = [](const Return& one) {
    return one.seconds > 0 ? fmt::format("{:.0f}", one.seconds) : std::string("**never**");
  };
  fmt::print("| {} | {:.0f} | {:.0f} s | {} | {}, {}, {} | {:.0f}, {:.0f}, {:.0f} |\n", c.members, c.megabits,
             c.training_seconds, c.last_is_new ? std::string("new") : std::to_string(away), text(plain),
             text(delayed), text(parts), plain.round_seconds, delayed.round_seconds, parts.round_seconds);
  std::fflush(stdout);
  return plain.seconds > 0 && delayed.seconds > 0 && parts.seconds > 0;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::size_t> members;
  std::vector<double> lines, trainings;
  std::vector<std::uint64_t> away;
  std::uint64_t rounds = 6;
  for (int i = 1; i < count; i += 2) {
    const std::string flag = arguments[i];
    const double value = i + 1 < count ? std::strtod(arguments[i + 1], nullptr) : 0;
    if (value >= 1 && flag == "--members")
      members.push_back(static_cast<std::size_t>(value));
    else if (value >= 1 && flag == "--line")
      lines.push_back(value);
    else if (value >= 1 && flag == "--training")
      trainings.push_back(value);
    else if (value >= 1 && flag == "--rounds")
      rounds = static_cast<std::uint64_t>(value);
    else if (value >= 1 && flag == "--return")
      away.push_back(static_cast<std::uint64_t>(value));
    else if (value >= 1 && flag == "--join")
      away.push_back(0);
    else
      return fmt::print(stderr,
                        "measure_waiting [--members N]... [--line MBIT]... [--training SECONDS]... "
                        "[--rounds R] [--return AWAY]... [--join 1]\n"),
             64;
  }
  if (members.empty()) members = {4, 8};
  if (lines.empty()) lines = {100, 10};
  if (trainings.empty()) trainings = {60, 300, 900};
  bool good = true;
  const auto begun = std::chrono::steady_clock::now();
  fmt::print("plain, delayed-1, {} fragments\n\n", fragments);
  if (!away.empty())
    fmt::print(
        "| members | line Mbit/s | training of a round | rounds away | seconds until its work counts | a "
        "round "
        "of the others meanwhile |\n|---|---|---|---|---|---|\n");
  for (const std::uint64_t many : away)
    for (const std::size_t n : members)
      for (const double megabits : lines)
        for (const double seconds : trainings)
          good = measure_return({n, megabits, seconds, rounds, many == 0}, many) && good;
  if (!away.empty()) return good ? 0 : 1;
  fmt::print(
      "| members | line Mbit/s | training of a round | waits | a round takes s | of contributors | MB sent "
      "by a "
      "node in a round | in its busiest minute |\n|---|---|---|---|---|---|---|---|\n");
  for (const std::size_t n : members)
    for (const double megabits : lines)
      for (const double seconds : trainings) good = measure_row({n, megabits, seconds, rounds}) && good;
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  fmt::print("\n{} rounds each; {:.0f} s, {} MiB here\n", rounds, wall, used.ru_maxrss / 1024);
  return good ? 0 : 1;
}
