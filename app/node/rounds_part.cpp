#include "app/node/rounds_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/crypto/merkle.h"
#include "core/engine/training_checkpoints.h"
#include "core/rounds/post_conduct.h"

namespace neuroshard::app {
namespace {

constexpr Duration look_period = std::chrono::milliseconds(500);
constexpr Duration check_period = std::chrono::seconds(5);
constexpr Duration patience = std::chrono::seconds(5);
constexpr std::size_t asked_at_a_time = 4;
// The profile's rate that stands for the table by contributors (rounds/step.h).
constexpr std::uint64_t usual_outer_rate_nano = 700'000'000;

// resting: the training waits for the round.
std::string phase_text(const rounds::RoundView& view, bool resting) {
  switch (view.phase) {
    case rounds::RoundPhase::Joining: return view.member ? "fetching the anchor" : "joining";
    case rounds::RoundPhase::Training: return "training";
    case rounds::RoundPhase::Collecting:
      return resting ? "waiting for the other members" : "training on while the others finish the round";
    case rounds::RoundPhase::Agreeing:
      return resting ? "agreeing on the round" : "training on while the members agree on the round";
    case rounds::RoundPhase::Provisional: return "training alone until the others are back";
    case rounds::RoundPhase::Repairing: break;
  }
  return "repairing its anchor";
}

}  // namespace

// Where the other members are, by their signed records.
class RoundsPart::Peers final : public rounds::RoundPeers {
 public:
  Peers(swarm::Member& member, net::Conduct& conduct, Logger& logger)
      : member_(member), conduct_(conduct), logger_(logger) {}
  std::optional<net::Contact> find(const net::NodeId& id) override { return member_.find(id); }
  std::vector<net::Contact> some() override { return member_.some(asked_at_a_time); }
  bool nobody() const override { return member_.knows_nobody(); }
  void proven_liar(const net::NodeId& id) override {
    rounds::blame_for_two_payloads(conduct_, id);
    logger_.warning("rounds",
                    to_hex(id).substr(0, 12) +
                        "… signed two different contributions to one round: it is banned for a while");
  }

 private:
  swarm::Member& member_;
  net::Conduct& conduct_;
  Logger& logger_;
};

RoundsPart::RoundsPart(PeerHost& host, const config::DataDirectory& directory, Logger& logger,
                       CommandContext& context)
    : host_(host),
      logger_(logger),
      context_(context),
      consensus_(directory.profile().consensus),
      sync_(rounds::sync_choice(consensus_.sync).value_or(rounds::SyncChoice{})),
      network_(directory.network_id()),
      folder_(directory.path() + "/rounds") {
  engine::RoundTrainerOptions trainer;
  trainer.inner_steps = static_cast<std::uint32_t>(consensus_.inner_steps);
  trainer.fragments = sync_.fragments;
  if (const auto codec = outer::codec_from_name(consensus_.codec); codec.ok()) trainer.codec.codec = *codec;
  if (config::is_sparse(consensus_)) trainer.error_feedback_beta = config::sparse_error_feedback_beta;
  trainer_ = std::make_shared<engine::RoundTrainer>(trainer, context.clock, logger);
  for (std::size_t i = 0; context.other_learner && i < trainer_->fragments(); ++i)
    other_learners_.push_back(context.other_learner(trainer_->learner(i), host.executor()));
  contributors_.resize(trainer_->fragments());
  board_->view.taking_part = true;
  board_->view.phase = "preparing";
  board_->view.inner_steps = trainer.inner_steps;
}

std::unique_ptr<RoundsPart> RoundsPart::make(PeerHost& host, const config::DataDirectory& directory,
                                             Logger& logger, CommandContext& context, ReportingAs as) {
  if (directory.profile().consensus.inner_steps == 0) return nullptr;
  std::unique_ptr<RoundsPart> part(new RoundsPart(host, directory, logger, context));
  const auto guarded = [alive = std::weak_ptr<bool>(part->alive_)](auto f) {
    return [alive, f = std::move(f)](const auto&... values) {
      if (!alive.expired()) f(values...);
    };
  };
  RoundsPart* const raw = part.get();
  part->trainer_->listen({&host.executor(),
                          guarded([raw](const engine::RoundFacts& facts) { raw->on_ready(facts); }),
                          guarded([raw] {
                            if (raw->nodes_) raw->nodes_->progressed();
                          })});
  std::array<std::uint8_t, 8> seed{};
  context.entropy.fill({seed.data(), seed.size()});
  host.run([&] {
    part->status_ = std::make_unique<RoundsStatus>(host, part->consensus_, part->network_, std::move(as),
                                                   load_le<std::uint64_t>(seed.data()));
    net::MethodTable& methods = host.member().methods();
    raw->methods_.push_back(
        methods.add({net::Method::StatusPull}, {},
                    [raw](const net::Caller& from, net::Method, ByteSpan request, const net::Reply& reply) {
                      raw->status_->answer(from, request, reply);
                    }));
    raw->methods_.push_back(methods.add(
        {net::Method::RoundPost, net::Method::RoundStatus, net::Method::RoundChain, net::Method::RoundFetch},
        {}, [raw](const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply) {
          if (!raw->nodes_)
            return reply(make_error(ErrorCode::Busy, "this node is still preparing its model"));
          raw->nodes_->on_call(from, method, request,
                               rounds::judged(raw->host_.conduct(), from, method, request, reply));
        }));
    raw->timer_ = host.executor().post_after(look_period, [raw] { raw->look(); });
  });
  return part;
}

RoundsPart::~RoundsPart() {
  stop();
}

void RoundsPart::leave() {
  host_.run([this] {
    if (nodes_) nodes_->leave();
  });
}

bool RoundsPart::left() {
  bool gone = true;
  host_.run([this, &gone] { gone = !nodes_ || nodes_->left(); });
  return gone;
}

bool RoundsPart::needed() {
  bool needed = false;
  host_.run([this, &needed] { needed = nodes_ && nodes_->needed(); });
  return needed;
}

void RoundsPart::stop() {
  trainer_->listen({});
  host_.run([this] {
    if (std::exchange(stopped_, true)) return;
    alive_.reset();
    timer_.reset();
    methods_.clear();
    nodes_.reset();
    status_.reset();
  });
  // Their threads speak with the executor, so it goes on meanwhile.
  other_learners_.clear();
  work_.reset();
  files_.clear();
}

std::function<node::RoundsView()> RoundsPart::view() const {
  return [board = board_] {
    std::lock_guard lock(board->mutex);
    return board->view;
  };
}

void RoundsPart::watch(node::Node* node) {
  if (status_) status_->watch(node);
}

// Of the whole model; what is a fragment's own is filled in by its node (rounds/fragment_nodes.h).
rounds::LevelOptions RoundsPart::options() const {
  rounds::LevelOptions both;
  rounds::RoundOptions& options = both.one;
  if (const auto codec = outer::codec_from_name(consensus_.codec); codec.ok())
    options.rules.codec.codec = *codec;
  options.sync = sync_.each;
  options.group_members = static_cast<std::size_t>(consensus_.group_members);
  options.rules.network = network_;
  options.rules.inner_steps = static_cast<std::uint32_t>(consensus_.inner_steps);
  options.rules.most_tokens = consensus_.inner_steps * consensus_.batch_tokens;
  options.outer.codec = options.rules.codec;
  options.outer.aggregation.sparse = config::is_sparse(consensus_);
  options.outer.mu = static_cast<float>(config::from_nano(consensus_.outer_momentum_nano));
  if (consensus_.outer_learning_rate_nano != usual_outer_rate_nano)
    options.outer.lr = static_cast<float>(config::from_nano(consensus_.outer_learning_rate_nano));
  options.outer.architecture_version = engine::first_architecture_version;
  options.outer.tokenizer = *tokenizer_;
  return both;
}

void RoundsPart::on_ready(const engine::RoundFacts& facts) {
  if (tokenizer_) {
    if (*tokenizer_ != facts.tokenizer)
      trouble_ = "the tokenizer has changed: start this node again, so that it joins the rounds with it";
    return;
  }
  if (const auto opened = open_files(); !opened.ok()) {
    trouble_ = "this node takes no part in the rounds: " + opened.error().describe();
    logger_.error("rounds", trouble_);
    return;
  }
  tokenizer_ = facts.tokenizer;
  fragments_ = facts.fragments;
  work_ = std::make_unique<engine::RoundThread>(host_.executor());
  peers_ = std::make_unique<Peers>(host_.member(), host_.conduct(), logger_);
  // States of gigabytes take their time.
  auto known = std::make_shared<std::vector<rounds::KnownState>>();
  for (const rounds::Anchor& state : facts.states) known->push_back({0, state, std::nullopt});
  known->resize(fragments_.size());
  work_->run(
      [known, fragments = fragments_, files = &files_, logger = &logger_] {
        for (std::size_t i = 0; i < fragments.size(); ++i) {
          auto kept = (*files)[i]->load_state(fragments[i].count, 0);
          if (kept.ok())
            (*known)[i] = std::move(*kept);
          else if (kept.error().code != ErrorCode::NotFound)
            logger->warning("rounds", kept.error().describe());
        }
      },
      [this, alive = std::weak_ptr<bool>(alive_), known] {
        if (!alive.expired()) begin(std::move(*known));
      });
}

Expected<void> RoundsPart::open_files() {
  files_.clear();
  const std::size_t count = trainer_->fragments();
  for (std::size_t i = 0; i < count; ++i) {
    std::string folder = count == 1 ? folder_ : fmt::format("{}/fragment-{}", folder_, i + 1);
    NS_ASSIGN_OR_RETURN(
        auto files, engine::RoundFiles::open(context_.files, std::move(folder), logger_, host_.executor()));
    files_.push_back(std::move(files));
  }
  return {};
}

void RoundsPart::begin(std::vector<rounds::KnownState> known) {
  std::array<std::uint8_t, 8> seed{};
  context_.entropy.fill({seed.data(), seed.size()});
  std::vector<rounds::FragmentPart> parts;
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    rounds::RoundLearner* const learner =
        other_learners_.empty() ? &trainer_->learner(i) : other_learners_[i].get();
    parts.push_back({learner, files_[i].get(), std::move(known[i])});
  }
  if (context_.other_caller)
    other_caller_ = context_.other_caller(host_.member().caller(), host_.key(), network_);
  net::PeerCaller& caller = other_caller_ ? *other_caller_ : host_.member().caller();
  nodes_ = std::make_unique<rounds::FragmentNodes>(
      rounds::FragmentServices{host_.key(), caller, *peers_, host_.executor(), host_.clock(), *work_,
                               logger_},
      options(), fragments_, std::move(parts), load_le<std::uint64_t>(seed.data()),
      [this](std::size_t fragment, const rounds::RoundChain& chain, const rounds::Anchor& state,
             const rounds::StepResult* step) { on_certified(fragment, chain, state, step); });
  nodes_->start();
}

std::string RoundsPart::name_of(std::size_t fragment) const {
  return fragments_.size() == 1 ? "" : fmt::format("fragment {} of {}: ", fragment + 1, fragments_.size());
}

void RoundsPart::on_certified(std::size_t fragment, const rounds::RoundChain& chain,
                              const rounds::Anchor& state, const rounds::StepResult* step) {
  const rounds::RoundBody& body = chain.tip();
  const rounds::GroupedLinkPtr& grouped = chain.tip_grouped();
  files_[fragment]->save_state(chain.tip_link(), state);
  contributors_[fragment] = static_cast<std::uint32_t>(body.contributors.size());
  trouble_.clear();
  status_->certified(fragment, name_of(fragment), chain, step, trainer_->view());
  if (body.round == 0) return;
  const bool in = std::any_of(body.contributors.begin(), body.contributors.end(),
                              [&](const auto& c) { return body.members[c.member].id == host_.id(); });
  // Whoever came with this round had no part in it yet.
  const bool member = rounds::member_index(body.members, host_.id()) < body.members.size();
  if (step != nullptr && !in && member)
    left_out_reason_ =
        fmt::format("{}round {} was closed without this node's work", name_of(fragment), body.round);
  if (step != nullptr && in && !grouped) {
    for (const outer::Judged& judged : step->report.judged) {
      if (judged.id == host_.id() && judged.refusal != outer::Refusal::None)
        left_out_reason_ =
            fmt::format("{}round {}: {}", name_of(fragment), body.round, outer::to_string(judged.refusal));
    }
  }
  logger_.info("rounds",
               fmt::format("{}round {} is certified with anchor {}: {} of {} members contributed{}",
                           name_of(fragment), body.round, to_hex(body.anchor).substr(0, 16),
                           body.contributors.size(), body.members.size(),
                           grouped ? fmt::format(", in {} sub-groups", grouped->body->groups.size()) : ""));
  refresh();
}

void RoundsPart::look() {
  look_for_another_tokenizer();
  refresh();
  timer_ = host_.executor().post_after(look_period, [this] { look(); });
}

// An anchor's first leaf names the tokenizer: one that differs can never be checked here, and nobody would
// know why.
void RoundsPart::look_for_another_tokenizer() {
  const MonotonicTime now = host_.clock().monotonic_now();
  if (!nodes_ || now < next_check_) return;
  const rounds::RoundEndpoint& node = nodes_->node(0);  // it is the same tokenizer for all
  if (node.chain() == nullptr) return;
  next_check_ = now + check_period;
  const rounds::RoundBody& tip = node.chain()->tip();
  if (node.state_round() == tip.round && node.state()) return;
  rounds::OuterRules rules;
  rules.architecture_version = engine::first_architecture_version;
  rules.tokenizer = *tokenizer_;
  const std::uint64_t values = nodes_->fragment(0).count;
  const Bytes header =
      outer::anchor_header(rounds::anchor_identity(network_, rules, tip.slot, tip.round), values, values, 0);
  const Hash256 own = crypto::merkle_leaf(header);
  const Bytes request =
      rounds::encode_fetch_request({tip.slot, rounds::FetchRequest::What::Leaves, tip.anchor, 0});
  for (const net::Contact& contact : peers_->some()) {
    host_.member().caller().call(
        contact, net::Method::RoundFetch, request,
        net::call_deadline(patience, request.size(), net::chunk_bytes),
        [this, own, alive = std::weak_ptr<bool>(alive_)](Expected<Bytes> answer) {
          if (alive.expired() || !answer.ok()) return;
          const auto leaves = rounds::decode_fetch_answer(*answer);
          if (!leaves.ok() || leaves->bytes.size() < own.size() ||
              std::equal(own.begin(), own.end(), leaves->bytes.begin()))
            return;
          const std::string text =
              "the members of this network train with another tokenizer than this node: its text is not "
              "theirs. Give this node the network's text, in a new data directory";
          if (trouble_ != text) logger_.error("rounds", text);
          trouble_ = text;
        });
  }
}

void RoundsPart::refresh() {
  const engine::RoundTrainer::View training = trainer_->view();
  node::RoundsView view;
  view.taking_part = true;
  view.phase = "preparing";
  view.inner_steps = trainer_->inner_steps();
  view.steps = training.work.steps;
  view.waiting_seconds = to_seconds(training.rested);
  const double whole = to_seconds(training.rested + training.trained);
  view.waiting_share = whole > 0 ? view.waiting_seconds / whole : 0;
  view.trouble = trouble_;
  if (nodes_) {
    const rounds::RoundView now = nodes_->view();
    view.phase = phase_text(now, training.resting);
    view.round = now.round;
    if (nodes_->begun() && now.anchor != Hash256{}) view.anchor = to_hex(now.anchor);
    view.agrees = nodes_->agrees();
    view.member = now.member;
    view.members = static_cast<std::uint32_t>(now.members);
    view.contributors = *std::min_element(contributors_.begin(), contributors_.end());
    view.certified = now.certified;
    view.contributed = now.contributed;
    view.left_out = now.left_out;
    view.left_out_reason = left_out_reason_;
    view.fetched = now.fetched_anchors;
    view.corruptions = now.corruptions;
    view.bytes_sent = now.bytes_sent;
    view.bytes_received = now.bytes_received;
  }
  status_->look(nodes_.get(), view);
  std::lock_guard lock(board_->mutex);
  board_->view = std::move(view);
}

}  // namespace neuroshard::app
