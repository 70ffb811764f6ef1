#include "core/runtime/rounds_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/crypto/merkle.h"
#include "core/engine/training_checkpoints.h"
#include "core/rounds/post_conduct.h"
#include "core/runtime/round_entry.h"

namespace neuroshard::runtime {
namespace {

constexpr Duration refresh_period = std::chrono::milliseconds(500);
constexpr Duration check_period = std::chrono::seconds(5);
constexpr Duration patience = std::chrono::seconds(5);
constexpr Duration away_check_period = std::chrono::milliseconds(50);
// The longest wait for members that do not answer this node's notice that it leaves.
constexpr Duration answer_limit = std::chrono::seconds(2);
constexpr std::size_t asked_at_a_time = 4;

// resting: the training waits for the end of the round.
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

// The addresses of other members, from their signed records.
class RoundsService::Peers final : public rounds::RoundPeers {
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

RoundsService::RoundsService(PeerHost& host, const config::DataDirectory& directory,
                             const RuntimeServices& services, Interpositions interpositions)
    : host_(host),
      services_(services),
      interpositions_(std::move(interpositions)),
      consensus_(directory.profile().consensus),
      sync_(rounds::sync_choice(consensus_.sync).value_or(rounds::SyncChoice{})),
      network_(directory.network_id()),
      folder_(directory.path() + "/rounds") {
  trainer_ = make_round_trainer(consensus_, services_);
  for (std::size_t i = 0; interpositions_.other_learner && i < trainer_->fragments(); ++i)
    other_learners_.push_back(interpositions_.other_learner(trainer_->learner(i), host.executor()));
  contributors_.resize(trainer_->fragments());
  board_->view.taking_part = true;
  board_->view.phase = "preparing";
  board_->view.inner_steps = trainer_->inner_steps();
}

std::unique_ptr<RoundsService> RoundsService::make(PeerHost& host, const config::DataDirectory& directory,
                                                   const RuntimeServices& services,
                                                   Interpositions interpositions, ReportingAs as) {
  std::unique_ptr<RoundsService> rounds(
      new RoundsService(host, directory, services, std::move(interpositions)));
  rounds->listen();
  std::array<std::uint8_t, 8> seed{};
  services.entropy.fill({seed.data(), seed.size()});
  host.run([&] { rounds->open(std::move(as), load_le<std::uint64_t>(seed.data())); });
  return rounds;
}

RoundsService::~RoundsService() {
  stop();
}

void RoundsService::listen() {
  trainer_->listen({&host_.executor(),
                    [this, life = lifetime_.token()](const engine::RoundFacts& facts) {
                      if (life.alive()) on_ready(facts);
                    },
                    [this, life = lifetime_.token()] {
                      if (life.alive() && nodes_) nodes_->progressed();
                    }});
}

void RoundsService::open(ReportingAs as, std::uint64_t seed) {
  status_ = std::make_unique<RoundsStatus>(host_, consensus_, network_, std::move(as), seed);
  net::MethodTable& methods = host_.member().methods();
  methods_.push_back(methods.add({net::Method::StatusPull}, {},
                                 [this](const net::Caller& from, net::Method, ByteSpan request,
                                        const net::Reply& reply) { status_->answer(from, request, reply); }));
  methods_.push_back(methods.add(
      {net::Method::RoundPost, net::Method::RoundStatus, net::Method::RoundChain, net::Method::RoundFetch},
      {}, [this](const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply) {
        on_call(from, method, request, reply);
      }));
  refresh_later();
}

void RoundsService::on_call(const net::Caller& from, net::Method method, ByteSpan request,
                            const net::Reply& reply) {
  if (!nodes_) return reply(make_error(ErrorCode::Busy, "this node is still preparing its model"));
  nodes_->on_call(from, method, request, rounds::judged(host_.conduct(), from, method, request, reply));
}

void RoundsService::announce_away(MonotonicTime deadline, std::function<void()> done) {
  host_.run([&] {
    away_ = AwayNotice{host_.clock().monotonic_now(), deadline, std::move(done)};
    if (nodes_) nodes_->leave();
    check_away_notice();
  });
}

void RoundsService::check_away_notice() {
  if (!away_ || !away_->done) return;
  const MonotonicTime now = host_.clock().monotonic_now();
  const bool silence = nodes_ && now - away_->begun >= answer_limit && !nodes_->needed();
  if (!nodes_ || nodes_->left() || silence || now >= away_->deadline)
    return std::exchange(away_->done, nullptr)();
  away_timer_ = host_.executor().post_after(away_check_period, [this] { check_away_notice(); });
}

void RoundsService::announce_back() {
  host_.run([this] {
    away_.reset();
    away_timer_.reset();
    if (nodes_) nodes_->rejoin();
  });
}

void RoundsService::stop() {
  trainer_->listen({});
  host_.run([this] {
    if (std::exchange(stopped_, true)) return;
    lifetime_.end();
    timer_.reset();
    away_timer_.reset();
    away_.reset();
    methods_.clear();
    nodes_.reset();
    status_.reset();
  });
  // Their threads post to the executor, which keeps running meanwhile.
  other_learners_.clear();
  work_.reset();
  files_.clear();
}

std::function<node::RoundsView()> RoundsService::view() const {
  return [board = board_] {
    std::lock_guard lock(board->mutex);
    return board->view;
  };
}

void RoundsService::watch(node::Node* node) {
  if (status_) status_->watch(node);
}

// Those of the whole model. Each fragment's endpoint fills in its own (rounds/fragment_nodes.h).
rounds::LevelOptions RoundsService::options() const {
  rounds::LevelOptions both;
  rounds::RoundOptions& options = both.one;
  if (const auto codec = outer::codec_from_name(consensus_.codec); codec.ok())
    options.rules.codec.codec = *codec;
  options.sync = sync_.each;
  options.group_members = static_cast<std::size_t>(consensus_.group_members);
  options.rules.network = network_;
  options.rules.inner_steps = static_cast<std::uint32_t>(consensus_.inner_steps);
  options.rules.most_tokens = consensus_.inner_steps * consensus_.batch_tokens;
  options.outer = outer_rules(consensus_, *tokenizer_);
  return both;
}

void RoundsService::on_ready(const engine::RoundFacts& facts) {
  if (tokenizer_) {
    if (*tokenizer_ != facts.tokenizer)
      trouble_ = "the tokenizer has changed: restart this node to join the rounds with it";
    return;
  }
  if (const auto opened = open_files(); !opened.ok()) {
    trouble_ = "this node takes no part in the rounds: " + opened.error().describe();
    services_.logger.error("rounds", trouble_);
    return;
  }
  tokenizer_ = facts.tokenizer;
  fragments_ = facts.fragments;
  work_ = std::make_unique<engine::RoundThread>(host_.executor());
  peers_ = std::make_unique<Peers>(host_.member(), host_.conduct(), services_.logger);
  // A state may have gigabytes, so the round thread loads it.
  auto known = std::make_shared<std::vector<rounds::KnownState>>();
  for (const rounds::Anchor& state : facts.states) known->push_back({0, state, std::nullopt});
  known->resize(fragments_.size());
  work_->run(
      [known, fragments = fragments_, files = &files_, logger = &services_.logger] {
        for (std::size_t i = 0; i < fragments.size(); ++i) {
          auto kept = (*files)[i]->load_state(fragments[i].count, 0);
          if (kept.ok())
            (*known)[i] = std::move(*kept);
          else if (kept.error().code != ErrorCode::NotFound)
            logger->warning("rounds", kept.error().describe());
        }
      },
      [this, life = lifetime_.token(), known] {
        if (life.alive()) begin(std::move(*known));
      });
}

Expected<void> RoundsService::open_files() {
  files_.clear();
  const std::size_t count = trainer_->fragments();
  for (std::size_t i = 0; i < count; ++i) {
    std::string folder = count == 1 ? folder_ : fmt::format("{}/fragment-{}", folder_, i + 1);
    NS_ASSIGN_OR_RETURN(auto files, engine::RoundFiles::open(services_.files, std::move(folder),
                                                             services_.logger, host_.executor()));
    files_.push_back(std::move(files));
  }
  return {};
}

void RoundsService::begin(std::vector<rounds::KnownState> known) {
  std::array<std::uint8_t, 8> seed{};
  services_.entropy.fill({seed.data(), seed.size()});
  std::vector<rounds::FragmentPart> parts;
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    rounds::RoundLearner* const learner =
        other_learners_.empty() ? &trainer_->learner(i) : other_learners_[i].get();
    parts.push_back({learner, files_[i].get(), std::move(known[i])});
  }
  if (interpositions_.other_caller)
    other_caller_ = interpositions_.other_caller(host_.member().caller(), host_.key(), network_);
  net::PeerCaller& caller = other_caller_ ? *other_caller_ : host_.member().caller();
  nodes_ = std::make_unique<rounds::FragmentNodes>(
      rounds::FragmentServices{host_.key(), caller, *peers_, host_.executor(), host_.clock(), *work_,
                               services_.logger},
      options(), fragments_, std::move(parts), load_le<std::uint64_t>(seed.data()),
      [this](std::size_t fragment, const rounds::RoundChain& chain, const rounds::Anchor& state,
             const rounds::StepResult* step) { on_certified(fragment, chain, state, step); });
  nodes_->start();
  if (away_) nodes_->leave();  // its rounds begin while it is away
}

std::string RoundsService::name_of(std::size_t fragment) const {
  return fragments_.size() == 1 ? "" : fmt::format("fragment {} of {}: ", fragment + 1, fragments_.size());
}

void RoundsService::on_certified(std::size_t fragment, const rounds::RoundChain& chain,
                                 const rounds::Anchor& state, const rounds::StepResult* step) {
  const rounds::RoundBody& body = chain.tip();
  const rounds::GroupedLinkPtr& grouped = chain.tip_grouped();
  files_[fragment]->save_state(chain.tip_link(), state);
  contributors_[fragment] = static_cast<std::uint32_t>(body.contributors.size());
  trouble_.clear();
  if (body.round == 0) return;
  node::RoundEntry entry = round_entry(chain, step, host_.id());
  const std::string name = name_of(fragment);
  // Only "fragment 2 of 4" when the anchor was fetched and no rule has run.
  entry.rule = entry.rule.empty() && !name.empty() ? name.substr(0, name.find(':')) : name + entry.rule;
  status_->on_round(fragment, std::move(entry), trainer_->view());
  if (step != nullptr) note_own_part(fragment, chain, *step);
  services_.logger.info(
      "rounds", fmt::format("{}round {} is certified with anchor {}: {} of {} members contributed{}",
                            name_of(fragment), body.round, to_hex(body.anchor).substr(0, 16),
                            body.contributors.size(), body.members.size(),
                            grouped ? fmt::format(", in {} sub-groups", grouped->body->groups.size()) : ""));
  refresh();
}

// Why this node's work is not in the round, if it is not.
void RoundsService::note_own_part(std::size_t fragment, const rounds::RoundChain& chain,
                                  const rounds::StepResult& step) {
  const rounds::RoundBody& body = chain.tip();
  const bool contributed =
      std::any_of(body.contributors.begin(), body.contributors.end(),
                  [&](const auto& c) { return body.members[c.member].id == host_.id(); });
  if (!contributed) {
    // A node that joins with this round had no work in it yet.
    if (rounds::member_index(body.members, host_.id()) < body.members.size())
      left_out_reason_ =
          fmt::format("{}round {} was closed without this node's work", name_of(fragment), body.round);
    return;
  }
  if (chain.tip_grouped()) return;  // the report is about sub-groups
  for (const outer::Judged& judged : step.report.judged) {
    if (judged.id == host_.id() && judged.refusal != outer::Refusal::None)
      left_out_reason_ =
          fmt::format("{}round {}: {}", name_of(fragment), body.round, outer::to_string(judged.refusal));
  }
}

void RoundsService::refresh_later() {
  timer_ = host_.executor().post_after(refresh_period, [this] {
    check_tokenizer();
    refresh();
    refresh_later();
  });
}

// The first leaf of an anchor names the tokenizer. A node with another tokenizer can never verify the anchors
// of its network, so a person has to know.
void RoundsService::check_tokenizer() {
  const MonotonicTime now = host_.clock().monotonic_now();
  if (!nodes_ || now < next_check_) return;
  const rounds::RoundEndpoint& node = nodes_->node(0);  // all fragments have the same tokenizer
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
    host_.member().caller().call(contact, net::Method::RoundFetch, request,
                                 net::call_deadline(patience, request.size(), net::chunk_bytes),
                                 [this, own, life = lifetime_.token()](const Expected<Bytes>& answer) {
                                   if (life.alive()) compare_tokenizer(own, answer);
                                 });
  }
}

void RoundsService::compare_tokenizer(const Hash256& own, const Expected<Bytes>& answer) {
  if (!answer.ok()) return;
  const auto leaves = rounds::decode_fetch_answer(*answer);
  if (!leaves.ok() || leaves->bytes.size() < own.size() ||
      std::equal(own.begin(), own.end(), leaves->bytes.begin()))
    return;
  const std::string text =
      "the members of this network use another tokenizer than this node, because its text differs. Start "
      "this node with the network's text, in a new data directory";
  if (trouble_ != text) services_.logger.error("rounds", text);
  trouble_ = text;
}

void RoundsService::fill_view(node::RoundsView& view, bool resting) const {
  const rounds::RoundView now = nodes_->view();
  view.phase = phase_text(now, resting);
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

RoundsSeen RoundsService::seen() const {
  RoundsSeen seen;
  if (!nodes_) return seen;
  seen.anchor_of = [nodes = nodes_.get()](std::uint64_t round) { return nodes->anchors().of_all(round); };
  const rounds::RoundView now = nodes_->view();
  for (std::size_t i = 0; i < now.refused.size(); ++i)
    if (now.refused[i] > 0)
      seen.refused.push_back(
          {std::string(rounds::to_string(static_cast<rounds::Verdict>(i))), now.refused[i]});
  if (!nodes_->begun()) return seen;
  seen.begun = true;
  seen.round = now.round;
  seen.tokens = now.tokens;
  seen.contributed = now.contributed;
  seen.failed = now.left_out + now.provisional;
  seen.held_round = nodes_->held_round();
  if (seen.held_round > 0) seen.held_anchor = nodes_->own_anchor(seen.held_round).value_or(Hash256{});
  if (seen.held_round > 1)
    seen.previous_anchor = nodes_->anchors().of_all(seen.held_round - 1).value_or(Hash256{});
  for (std::size_t f = 0; f < nodes_->count(); ++f) {
    seen.values += nodes_->fragment(f).count;
    for (const rounds::RoundMember& member : nodes_->node(f).chain()->members())
      seen.members.insert(member.id);
  }
  seen.exchanging = std::min<std::uint64_t>(now.members, consensus_.group_members);
  if (now.phase == rounds::RoundPhase::Provisional && now.member)
    seen.standstill =
        status::Standstill{now.round + 1, now.members, rounds::quorum_size(now.members), now.missing};
  return seen;
}

void RoundsService::refresh() {
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
  if (nodes_) fill_view(view, training.resting);
  if (away_) view.phase = "away";
  status_->update(seen(), view);
  std::lock_guard lock(board_->mutex);
  board_->view = std::move(view);
}

}  // namespace neuroshard::runtime
