// The world of a scenario: its rules and times, and what its nodes send through.
#include <algorithm>

#include "core/sim/scenario_run.h"
#include "core/sim/soft_model.h"

namespace neuroshard::sim {
namespace {

using std::chrono::seconds;

constexpr std::uint8_t proposal_kind = 1, statement_kind = 6;  // core/chain/messages.h

bool is_post(net::Method method, const Bytes& request, std::uint8_t kind) {
  return method == net::Method::ChainPost && !request.empty() && request[0] == kind;
}

}  // namespace

// The way out of an honest node: attackers overhear it, and it dies where the scenario wants that.
class ScenarioRun::LeaderWatch final : public net::PeerCaller {
 public:
  LeaderWatch(ScenarioRun& run, std::size_t node, net::PeerCaller& out) : run_(run), node_(node), out_(out) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    if (run_.lie_ && method == net::Method::ChainPost) run_.heard_.listen(request);
    if (is_post(method, request, proposal_kind) && run_.dies_with_proposal(node_)) return;
    out_.call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  ScenarioRun& run_;
  const std::size_t node_;
  net::PeerCaller& out_;
};

class ScenarioRun::SilentCaller final : public net::PeerCaller {
 public:
  explicit SilentCaller(net::PeerCaller& out) : out_(out) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    const bool post = method == net::Method::ChainPost;
    if (post && !is_post(method, request, statement_kind)) return;
    out_.call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  net::PeerCaller& out_;
};

ChainWorldOptions ScenarioRun::world_options() const {
  ChainWorldOptions o;
  o.seed = options_.seed;
  o.nodes = options_.nodes;
  o.fragments = options_.sync.fragments;
  if (is("late-joiner")) o.founders = options_.nodes - 1;
  if (is("silent-joiners")) o.founders = options_.nodes - byzantine_;
  o.network.loss = options_.loss + (is("lossy") ? 0.3 : 0.0);
  o.initial = task_->initial_weights();
  o.trainer.inner_steps = o.training.inner_steps = options_.inner_steps;
  o.trainer.step_time = scenario_step_time;
  o.trainer.tokens_per_step = learner_.batch;
  o.trainer.codec = o.training.outer.codec = options_.codec;
  o.trainer.most_provisional_steps = 4 * options_.inner_steps;
  o.training.outer.aggregation = rule_;
  o.training.sync = options_.sync.each;
  o.training.clock = {3 * round_time(), seconds(2), seconds(10)};
  o.training.provisional_after = 2 * round_time();
  chain::ChainRules& rules = o.chain.rules;
  if (is("silent-joiners")) rules.voters = chain::VotersMode::Open;
  rules.most_tokens = std::uint64_t{options_.inner_steps} * learner_.batch * 2;
  rules.admission_contributions = 2;
  rules.block_time = seconds(3);
  rules.silent_after = std::max<Duration>(seconds(15), 4 * round_time());
  rules.heartbeat = rules.silent_after / 4;
  // Longer than a cut: no half goes on alone.
  rules.stall_after = std::max<Duration>(seconds(60), 2 * scenario_rounds_apart * round_time());
  o.chain.sync.poll = seconds(3);
  o.chain.agreement = {seconds(3), seconds(20)};
  if (rule_.sparse) {
    o.trainer.error_feedback_beta = 0.95f;
    o.training.outer.mu = 0;
    o.training.outer.lr = 1.0f;
  }
  return o;
}

std::unique_ptr<net::PeerCaller> ScenarioRun::make_caller(std::size_t node, net::PeerCaller& out,
                                                          const crypto::KeyPair& key) {
  if (is_byzantine(node) && is("silent-joiners")) return std::make_unique<SilentCaller>(out);
  if (is_byzantine(node) && lie_) {
    ByzantineCaller::Facts facts;
    facts.network = world_->network_id();
    facts.codec = options_.codec;
    facts.values = task_->parameters();
    facts.tip = [this, node]() -> std::optional<chain::ChainTip> {
      const chain::History* history = world_->chain(node).history();
      return history == nullptr ? std::nullopt : std::optional(history->tip());
    };
    facts.answered = [this](chain::Verdict verdict) { ++answers_[verdict]; };
    return std::make_unique<ByzantineCaller>(*lie_, out, key, heard_, std::move(facts));
  }
  if (lie_ || is("leader-killed")) return std::make_unique<LeaderWatch>(*this, node, out);
  return nullptr;
}

void ScenarioRun::make_world() {
  if (const auto attack = attack_of(options_.name))
    attack_.emplace(*attack, byzantine_, std::uint64_t{options_.inner_steps} * learner_.batch, rule_,
                    options_.seed, [this] { return honest_deltas(); });
  world_ = std::make_unique<ChainWorld>(
      world_options(),
      [this](std::size_t node, std::uint64_t lives) -> std::unique_ptr<LocalModel> {
        return std::make_unique<SoftModel>(task_, node, learner_, lives * 1'000'000);
      },
      [this](std::size_t node) -> RoundTrainer::Distortion {
        if (!attack_ || !is_byzantine(node)) return nullptr;
        return attack_->distortion(node - (options_.nodes - byzantine_));
      },
      [this](std::size_t node, net::PeerCaller& out, const crypto::KeyPair& key) {
        return make_caller(node, out, key);
      });
  world_->world().stop_with(options_.stop);
  for (std::size_t node = options_.nodes - byzantine_; node < options_.nodes; ++node) {
    world_->set_honest(node, false);
    if (lie_ != Lie::ViewJump) continue;
    world_->set_answers(
        node, [this, node, times = std::uint64_t{0}](const net::Caller& from, net::Method method, ByteSpan,
                                                     const net::Respond& respond) mutable {
          if (method != net::Method::ChainStatus) return false;
          chain::ChainStatus status = world_->chain(node).status();
          status.view = false_view(from.id, times++);
          respond(chain::encode_status(status));
          return true;
        });
  }
}

}  // namespace neuroshard::sim
