// A world of chain nodes for tests: small rounds of some seconds, a small learner, and a text that says how
// every node is when an expectation fails.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/chain/verdict.h"
#include "core/sim/chain_world.h"
#include "core/sim/soft_model.h"
#include "tests/sim/chain_liar.h"

namespace neuroshard::test {

inline constexpr Duration lab_second = std::chrono::seconds(1);
inline constexpr Duration lab_round = 4 * lab_second;
inline constexpr std::uint32_t lab_inner_steps = 20;

inline std::shared_ptr<const outer::SoftTask> lab_task() {
  outer::SoftTaskOptions options;
  options.features = 16;
  options.classes = 4;
  options.samples = 256;
  options.held_out = 64;
  options.separation = 1;  // few samples, yet something that holds for others
  return *outer::SoftTask::make(options);
}

inline sim::ChainWorldOptions lab_options(std::uint64_t seed, std::size_t nodes) {
  sim::ChainWorldOptions o;
  o.seed = seed;
  o.nodes = nodes;
  o.initial = lab_task()->initial_weights();
  chain::ChainRules& rules = o.chain.rules;
  rules.most_tokens = 2 * lab_inner_steps * 12;
  rules.admission_contributions = 2;
  rules.block_time = 5 * lab_second;
  rules.stall_after = 120 * lab_second;
  rules.silent_after = 30 * lab_second;
  rules.heartbeat = 10 * lab_second;
  o.chain.sync.poll = 3 * lab_second;
  o.chain.agreement = {4 * lab_second, 15 * lab_second};
  o.training.clock.first_deadline = 3 * lab_round;
  o.training.clock.most_grace = lab_second;
  o.training.clock.most_row_patience = 5 * lab_second;
  o.training.provisional_after = 2 * lab_round;
  o.training.inner_steps = lab_inner_steps;
  o.trainer.inner_steps = lab_inner_steps;
  o.trainer.step_time = lab_round / lab_inner_steps;
  o.trainer.tokens_per_step = 12;
  o.trainer.most_provisional_steps = 4 * lab_inner_steps;
  return o;
}

inline std::unique_ptr<sim::LocalModel> lab_model(std::size_t node, std::uint64_t lives) {
  return std::make_unique<sim::SoftModel>(lab_task(), node, outer::SoftLearnerOptions{}, lives * 100'000);
}

// How far the network is, and how each node is.
inline std::string text_of(const sim::ChainWorld& world) {
  const sim::ChainWorldSeen& seen = world.seen();
  std::string all =
      fmt::format("{} blocks, {} rounds, {} conflicts, {} twice, {} carried, agreement {}", seen.blocks,
                  seen.rounds, seen.conflicts, seen.twice, seen.rows_carried, world.agreement_rate());
  for (std::size_t i = 0; i < world.size(); ++i) {
    if (!world.running(i)) {
      all += fmt::format("\n  node {} off", i);
      continue;
    }
    auto& lab = const_cast<sim::ChainWorld&>(world);
    const chain::ChainView c = lab.chain(i).view();
    const rounds::TrainingView t = lab.training(i).view();
    all += fmt::format(
        "\n  node {}: {} height {} round {} view {} members {} voters {} committee {} due {} stalled {} "
        "active {} "
        "heard {} | holds {} contributed {} closing {} contributions {} complete {} vectors {} counted {} "
        "left "
        "out {} evidence {}",
        i, chain::to_string(c.state), c.height, c.round, c.view, c.members, c.voters, c.committee,
        c.block_due, c.stalled, c.active_units, c.heard_units, t.holds, t.contributed, t.closing,
        t.contributions, t.complete, t.vectors, t.counted, t.left_out, t.evidence);
    for (const auto& [verdict, count] : t.refused)
      all += fmt::format(" {}:{}", chain::to_string(verdict), count);
  }
  return all;
}

class ChainLab {
 public:
  // The changes that a node makes to its posts; null for an honest one.
  using EditOf = std::function<EditingCaller::Edit(std::size_t node)>;
  explicit ChainLab(const sim::ChainWorldOptions& options, bool start_all = true, EditOf edit_of = nullptr)
      : world(options, lab_model, {},
              [this, edit_of](std::size_t node, net::PeerCaller& out,
                              const crypto::KeyPair&) -> std::unique_ptr<net::PeerCaller> {
                EditingCaller::Edit edit = edit_of ? edit_of(node) : nullptr;
                if (!edit) return nullptr;
                return std::make_unique<EditingCaller>(world.world(), out, std::move(edit));
              }),
        seed_(options.seed) {
    if (start_all) world.start_all();
  }
  void run_for(Duration time) { world.world().run_for(time); }
  // A failure says which seed repeats it.
  std::string text(const char* what) const {
    return fmt::format("seed {}: {}; {}", seed_, what, text_of(world));
  }

  sim::ChainWorld world;

 private:
  const std::uint64_t seed_;
};

// A node's answer to a post, as if `from` had sent it.
inline chain::Verdict answer_to(ChainLab& lab, std::size_t node, std::size_t from, const Bytes& post) {
  chain::Verdict verdict = chain::Verdict::Count_;
  lab.world.chain(node).on_call({lab.world.id(from), {}}, net::Method::ChainPost, post,
                                [&](Expected<Bytes> answer) {
                                  if (answer.ok()) verdict = chain::decode_answer(*answer)->verdict;
                                });
  return verdict;
}

// These nodes tell nobody what they hold of its signatures.
inline void tell_nothing(ChainLab& lab, std::size_t nodes) {
  for (std::size_t node = 0; node < nodes; ++node) {
    lab.world.set_answers(
        node, [&lab, node](const net::Caller&, net::Method method, ByteSpan, const net::Respond& respond) {
          if (method != net::Method::ChainStatus) return false;
          respond(chain::encode_status(lab.world.chain(node).status()));
          return true;
        });
    lab.world.set_honest(node, true);
  }
}

// Wallets, as the observer knows.
inline std::size_t expelled(ChainLab& lab, std::size_t observer) {
  const auto& wallets = lab.world.chain(observer).history()->tip().registry->wallets();
  return static_cast<std::size_t>(
      std::count_if(wallets.begin(), wallets.end(), [](const auto& wallet) { return wallet.expelled; }));
}

}  // namespace neuroshard::test
