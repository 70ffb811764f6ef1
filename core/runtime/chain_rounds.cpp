#include "core/runtime/chain_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/engine/training_data.h"
#include "core/engine/training_memory.h"
#include "core/runtime/chain_decisions.h"
#include "core/runtime/chain_limits.h"
#include "core/runtime/round_rules.h"
#include "core/runtime/standing.h"
#include "core/storage/counted_files.h"
#include "core/storage/file_spool.h"

namespace neuroshard::runtime {
namespace {

constexpr Duration refresh_pause = std::chrono::milliseconds(500);
constexpr Duration raised_settles = std::chrono::seconds(3);
constexpr std::size_t most_pull_bytes = 16u << 10;
constexpr net::RequestLimits reports{
    .per_second = 2, .burst = 16, .group_factor = 8, .bytes_per_second = 64u << 10, .bytes_burst = 1u << 20};
constexpr auto delegation_life = std::chrono::hours(24 * 365 * 10);

net::MethodLimits limits(const net::RequestLimits& of_caller, std::size_t bytes, bool one_lan,
                         std::uint64_t seed) {
  return net::MethodLimits(std::make_shared<net::RequestLimiter>(of_caller, one_lan, seed), bytes);
}

}  // namespace

ChainRounds::ChainRounds(PeerHost& host, data::PeerSource& files, const config::DataDirectory& directory,
                         const RuntimeServices& services, std::shared_ptr<storage::DiskBudget> disk,
                         Interpositions interpositions)
    : host_(host),
      disk_(std::move(disk)),
      counted_files_(storage::make_counted_files(services.files, disk_)),
      services_{*counted_files_, services.entropy, services.clock, services.logger, services.program_version},
      interpositions_(std::move(interpositions)),
      consensus_(directory.profile().consensus),
      network_(directory.network_id()),
      directory_(directory.path()),
      trust_(ChainTrust::read(services.files, directory_, directory.profile())),
      part_(directory, services.files, host.id()),
      size_(consensus_, network_, directory_, services.files, services.logger),
      rows_(consensus_, network_),
      shares_tokenizer_(!engine::has_publisher(directory)),
      spool_(storage::make_file_spool({directory_ + "/spool", engine::round_spool_memory, disk_,
                                       [this] { return trainer_->spare_memory(); }})),
      trainer_(make_round_trainer(consensus_, spool_, services)),
      batches_(std::make_unique<BatchLists>(
          BatchLists::Services{services_.files, host.key(), services.logger, host.executor(), &files},
          directory_ + batch_lists_folder, network_)),
      entries_(host.id(), consensus_.batch_tokens, !config::model_parts(consensus_).empty()),
      notices_(services.logger, host.id(),
               [this](std::uint32_t row) { return rows_.name_of(row, fragments_.size()); }),
      memory_report_(consensus_) {
  for (std::size_t i = 0; interpositions_.other_learner && i < trainer_->fragments(); ++i)
    other_learners_.push_back(interpositions_.other_learner(trainer_->learner(i), host.executor()));
  if (part_.first())
    pipeline_ = std::make_unique<PipelineService>(
        PipelineService::Services{host, services.clock, services.logger, services.entropy}, consensus_,
        network_, part_.first()->index, [this] { return registry(); },
        [this] { return certified_weights(); });
  board_->view.taking_part = true;
  board_->view.phase = "preparing";
  board_->view.inner_steps = trainer_->inner_steps();
}

std::optional<engine::RoundTrainer::Newest> ChainRounds::certified_weights() const {
  auto weights = trainer_->newest();
  const chain::RegistryPtr known = registry();
  if (!weights || !known) return weights;
  const std::uint32_t part = part_.held().value_or(part_.first()->index);
  const auto round = round_of_weights(weights->round, known->rows()[part].changed_round, known->round());
  if (!round) return std::nullopt;
  weights->round = *round;
  return weights;
}

std::shared_ptr<engine::PipelineTrainer> ChainRounds::pipeline() const {
  return pipeline_ ? pipeline_->trainer() : nullptr;
}

std::vector<rounds::RoundLearner*> ChainRounds::learners() {
  std::vector<rounds::RoundLearner*> own;
  for (std::size_t i = 0; i < trainer_->fragments(); ++i)
    own.push_back(other_learners_.empty() ? &trainer_->learner(i) : other_learners_[i].get());
  return rows_.learners(fragments_.size(), own);
}

std::unique_ptr<ChainRounds> ChainRounds::make(PeerHost& host, data::PeerSource& files,
                                               const config::DataDirectory& directory,
                                               const RuntimeServices& services,
                                               std::shared_ptr<storage::DiskBudget> disk,
                                               Interpositions interpositions, ReportingAs as) {
  if (directory.profile().consensus.inner_steps == 0) return nullptr;
  std::unique_ptr<ChainRounds> rounds(
      new ChainRounds(host, files, directory, services, std::move(disk), std::move(interpositions)));
  rounds->listen();
  std::array<std::uint8_t, 8> seed{};
  services.entropy.fill({seed.data(), seed.size()});
  host.run([&] { rounds->open(std::move(as), load_le<std::uint64_t>(seed.data())); });
  return rounds;
}

ChainRounds::~ChainRounds() {
  stop();
}

void ChainRounds::listen() {
  trainer_->listen({&host_.executor(),
                    [this, life = lifetime_.token()](const engine::RoundFacts& facts) {
                      if (life.alive()) on_ready(facts);
                    },
                    [this, life = lifetime_.token()] {
                      if (life.alive() && training() != nullptr) training()->progressed();
                    }});
}

void ChainRounds::stop() {
  trainer_->listen({});
  host_.run([this] {
    if (std::exchange(stopped_, true)) return;
    lifetime_.end();
    host_.member().set_members(nullptr);
    timer_.reset();
    raised_.reset();
    presence_.close();
    methods_.clear();
    if (pipeline_) pipeline_->close();
    close_chain();
    if (work_) work_->close();
    status_.reset();
    executor_.reset();
  });
  // Their threads post to the executor, which keeps running meanwhile.
  other_learners_.clear();
  work_.reset();
  batches_.reset();
}

void ChainRounds::close_chain() {
  chain_.reset();
  presence_.forget_room();
}

chain::RegistryPtr ChainRounds::registry() const {
  const chain::History* history = node() == nullptr ? nullptr : node()->history();
  return history == nullptr ? chain::RegistryPtr() : history->tip().registry;
}

std::function<node::RoundsView()> ChainRounds::view() const {
  return [board = board_] {
    std::lock_guard lock(board->mutex);
    return board->view;
  };
}

std::shared_ptr<node::MemberDecisions> ChainRounds::decisions() {
  return std::make_shared<ChainDecisions>(host_.executor(), lifetime_.token(), [this] {
    if (node() == nullptr) return ChainDecisions::Chain{};
    return ChainDecisions::Chain{node(),          chain_rules(consensus_, network_),
                                 &memory_report_, part_work(consensus_),
                                 host_.id(),      services_.clock.wall_now()};
  });
}

void ChainRounds::limit_memory(std::uint64_t bytes) {
  static_cast<void>(host_.executor().post([this, life = lifetime_.token(), bytes] {
    if (!life.alive()) return;
    part_.limit_memory(bytes);
    raised_.reset();
    if (!part_.has_more_to_offer()) return;
    // The change is answered first, and a person may turn it further.
    raised_ = host_.executor().post_after(raised_settles, [this] {
      services_.logger.info("rounds",
                            "the memory limit was raised: this node starts anew, so that it can offer more");
      offers_more_ = true;
    });
  }));
}

void ChainRounds::watch(node::Node* node) {
  if (status_) status_->watch(node);
}

void ChainRounds::open(ReportingAs as, std::uint64_t seed) {
  wallet_ = as.delegation;
  const bool one_lan = one_lan_ = as.one_lan;
  if (pipeline_) pipeline_->open(seed, one_lan);
  executor_ = std::make_unique<PatientExecutor>(host_.executor());
  peers_ = std::make_unique<MemberPeers>(host_.member());
  host_.member().set_members([this](const net::NodeId& id) {
    const chain::RegistryPtr known = registry();
    const chain::MemberRecord* const member = known == nullptr ? nullptr : known->find(id);
    return member != nullptr && rank_of(*known, *member) != net::PeerRank::Stranger;
  });
  status_ = std::make_unique<RoundsStatus>(host_, consensus_, network_, std::move(as), seed);
  net::MethodTable& methods = host_.member().methods();
  methods_.push_back(methods.add({net::Method::StatusPull}, limits(reports, most_pull_bytes, one_lan, seed),
                                 [this](const net::Caller& from, net::Method, ByteSpan request,
                                        const net::Reply& reply) { status_->answer(from, request, reply); }));
  const auto chain_call = [this](const net::Caller& from, net::Method method, ByteSpan request,
                                 const net::Reply& reply) { on_chain_call(from, method, request, reply); };
  net::MethodLimits post = limits(post_limits, net::max_message_bytes, one_lan, seed);
  post.of_strangers = std::make_shared<net::RequestLimiter>(post_limits_of_stranger, one_lan, seed);
  methods_.push_back(methods.add({net::Method::ChainPost}, post, chain_call));
  methods_.push_back(
      methods.add({net::Method::ChainStatus, net::Method::ChainBlocks, net::Method::ChainRegistry},
                  limits(chain_request_limits, chain_request_bytes, one_lan, seed), chain_call));
  methods_.push_back(methods.add({net::Method::RoundPiece},
                                 limits(piece_limits, piece_request_bytes, one_lan, seed),
                                 [this](const net::Caller& from, net::Method, ByteSpan request,
                                        const net::Reply& reply) { on_piece_call(from, request, reply); }));
  refresh_later();
}

void ChainRounds::on_chain_call(const net::Caller& from, net::Method method, ByteSpan request,
                                const net::Reply& reply) {
  if (node() == nullptr) return reply(make_error(ErrorCode::Busy, "this node is still preparing its model"));
  node()->on_call(from, method, request, reply);
}

void ChainRounds::on_piece_call(const net::Caller& from, ByteSpan request, const net::Reply& reply) {
  if (training() == nullptr)
    return reply(make_error(ErrorCode::Busy, "this node is still preparing its model"));
  training()->on_call(from, request, reply);
}

// ---- The beginning

void ChainRounds::on_ready(const engine::RoundFacts& facts) {
  if (tokenizer_ == facts.tokenizer && part_.is_held(facts)) return part_.take(facts);
  if (reads_beginning_) {
    next_model_ = facts;
    return;
  }
  close_chain();  // of a model with another tokenizer, or of another part
  part_.take(facts);
  if (part_.held()) rows_.hold(*part_.held());
  trouble_.clear();
  auto opened = trust_.ok() ? RunningChain::open(directory_, consensus_, services_, host_.executor())
                            : Expected<std::unique_ptr<RunningChain>>(trust_.error());
  if (!opened.ok()) {
    trouble_ = "this node takes no part in the rounds: " + opened.error().describe();
    services_.logger.error("rounds", trouble_);
    return;
  }
  chain_ = std::move(*opened);
  if (!size_.can_begin(chain_->has_blocks(), host_.clock().monotonic_now())) return;
  tokenizer_ = facts.tokenizer;
  fragments_ = facts.fragments;
  std::vector<std::uint64_t> values;
  for (const rounds::Fragment& fragment : fragments_) values.push_back(fragment.count);
  report_.emplace(values);
  make_room(fragments_);
  if (!work_) work_ = std::make_unique<engine::RoundThread>(host_.executor());
  auto beginning = std::make_shared<ChainBeginning>();
  reads_beginning_ = true;
  work_->run(
      [beginning, disk = disk_,
       first = size_.size() == 0 ? facts.states : std::vector<rounds::Anchor>(fragments_.size()),
       from = BeginningSources{services_.files, chain_->files().rows(), directory_, network_,
                               outer_rules(consensus_, facts.tokenizer), fragments_, chain_->has_blocks(),
                               !consensus_.sizes.empty(), rows_.other_states(spool_)}] {
        disk->measure();
        *beginning = read_beginning(from, first);
      },
      [this, life = lifetime_.token(), beginning] {
        if (!life.alive()) return;
        reads_beginning_ = false;
        if (const auto next = std::exchange(next_model_, std::nullopt)) return on_ready(*next);
        begin(*beginning);
      });
}

// Without a wallet the node works for its own key.
crypto::Delegation ChainRounds::own_delegation() const {
  if (wallet_) return *wallet_;
  const WallTime expires = services_.clock.wall_now() + delegation_life;
  return crypto::delegate(host_.key(), host_.key().public_key(), network_, expires, 1);
}

crypto::PublicKey ChainRounds::wallet_key() const {
  return wallet_ ? wallet_->wallet_key : host_.key().public_key();
}

InvitationSource ChainRounds::invitations() {
  return [this, life = lifetime_.token()](bool with_vote) {
    if (life.alive() && node() != nullptr)
      return trust_->invitation(*node(), wallet_key(), services_.clock.wall_now(), with_vote);
    InvitationParts parts;
    if (life.alive() && trust_.ok()) parts.trust = trust_->anchor();
    if (with_vote) parts.no_vote = "this node still prepares its part in the rounds; try again in a minute";
    return parts;
  };
}

void ChainRounds::begin(ChainBeginning& beginning) {
  if (interpositions_.other_caller)
    other_caller_ = interpositions_.other_caller(host_.member().caller(), host_.key(), network_);
  const RunningChain::Services services{
      host_.key(),     services_,      other_caller_ ? *other_caller_ : host_.member().caller(),
      *peers_,         *executor_,     host_.clock(),
      host_.traffic(), *work_,         *spool_,
      checks_,         batches_.get(), room_.get()};
  const RunningChain::Model model{
      {consensus_, network_, fragments_, *tokenizer_, rows_.rows(), part_.follows_plan(), one_lan_},
      learners(),
      size_.resize()};
  RunningChain::Events events;
  events.blocks.on_block = [this](const std::optional<chain::ChainTip>& before, const chain::ChainTip& tip,
                                  const chain::BlockPtr& block, bool live) {
    rank_members(tip);
    if (before) on_block(*before, tip, block);
    if (!live) return;
    notices_.tell_of_evidence(block->body.evidence);
    ban_equivocators(block->body.evidence);
  };
  events.blocks.on_history = [this](const chain::ChainTip& tip) {
    rank_members(tip);
    report_->on_tip(tip);
  };
  events.anchor = [this](std::uint64_t round, std::uint32_t row, const rounds::Anchor& anchor) {
    on_anchor(round, row, anchor);
  };
  chain_->begin(services, model, own_delegation(), *trust_, beginning, std::move(events));
  presence_.begin();
}

// ---- Blocks and anchors

void ChainRounds::on_block(const chain::ChainTip& before, const chain::ChainTip& tip,
                           const chain::BlockPtr& block) {
  notices_.tell_of_rows(*before.registry, *tip.registry, block->body);
  notices_.tell_of_size(*before.registry, *tip.registry);
  if (!block->body.result) return;
  report_->on_tip(tip);
  entries_.on_block(before, tip, *block);
}

// The node keeps its reserves for the members of the newest block.
void ChainRounds::rank_members(const chain::ChainTip& tip) {
  net::PeerRanks::Members ranks;
  for (const std::uint32_t index : tip.registry->active()) {
    const chain::MemberRecord& member = tip.registry->members()[index];
    const net::PeerRank rank = rank_of(*tip.registry, member);
    if (rank != net::PeerRank::Stranger) ranks[member.id] = rank;
  }
  host_.ranks().set_members(std::move(ranks));
}

// A false result may be a bit that flipped in somebody's memory: nobody is banned for it.
void ChainRounds::ban_equivocators(const std::vector<chain::Evidence>& proven) {
  for (const chain::Evidence& evidence : proven) {
    const net::NodeId id = crypto::node_id(evidence.node);
    if (id != host_.id() && !chain::is_accusation(evidence))
      host_.conduct().fault(net::Caller{id, {}}, net::Fault::Equivocation);
  }
}

// This node holds the state that the registry names.
void ChainRounds::on_anchor(std::uint64_t round, std::uint32_t row, const rounds::Anchor& anchor) {
  chain_->keep(row, round, anchor);
  trouble_.clear();
  const std::string name = rows_.name_of(row, fragments_.size()), prefix = name.empty() ? "" : name + ": ";
  report_->on_anchor(fmt::format("{}round {}", prefix, round), training()->view());
  const outer::AggregateReport* step = training()->states().report(row);
  if (auto entry = entries_.take(row, round, step)) {
    if (!name.empty()) entry->rule = name + (entry->rule.empty() ? "" : ": " + entry->rule);
    services_.logger.info(
        "rounds", fmt::format("{}round {} is certified with anchor {}: {} of {} members contributed", prefix,
                              round, entry->anchor.substr(0, 16), entry->contributors, entry->members));
    status_->on_round(row, std::move(*entry), trainer_->view());
  }
  refresh();
}

// ---- Room on the disk

void ChainRounds::make_room(const std::vector<rounds::Fragment>& fragments) {
  rounds::RoundShape shape = round_shape(consensus_);
  shape.values = 0;
  for (const rounds::Fragment& fragment : fragments) shape.values = std::max(shape.values, fragment.count);
  room_ = std::make_unique<DiskRoom>(disk_, shape, engine::round_spool_memory,
                                     [this] { return trainer_->spare_memory(); });
}

// ---- For people

void ChainRounds::refresh_later() {
  timer_ = host_.executor().post_after(refresh_pause, [this] {
    if (chain_) chain_->files().release();
    if (room_) room_->measure(*work_, host_.clock().monotonic_now());
    if (training() != nullptr) presence_.set_no_room(!training()->view().no_room.empty());
    refresh();
    refresh_later();
  });
}

ChainMoment ChainRounds::moment(const engine::RoundTrainer::View& trainer) const {
  chain::ChainView chain = node()->view();
  if (!shares_tokenizer_) chain.wanted_tokenizer.reset();
  return {std::move(chain),
          registry(),
          training()->view(),
          trainer.resting,
          static_cast<chain::VotersMode>(consensus_.voters),
          host_.id(),
          host_.clock().monotonic_now(),
          services_.clock.wall_now()};
}

void ChainRounds::refresh() {
  const engine::RoundTrainer::View trainer = trainer_->view();
  node::RoundsView view;
  view.taking_part = true;
  view.phase = "preparing";
  view.inner_steps = trainer_->inner_steps();
  view.steps = trainer.work.steps;
  view.waiting_seconds = to_seconds(trainer.rested);
  const double whole = to_seconds(trainer.rested + trainer.trained);
  view.waiting_share = whole > 0 ? view.waiting_seconds / whole : 0;
  view.trouble = trouble_;
  if (pipeline_) {
    view.part = pipeline_->view();
    part_.measured(pipeline_->speed());
  }
  RoundsSeen seen;
  size_.try_again(host_.clock().monotonic_now());
  if (trainer.lacks_memory) size_.lacks_memory(host_.clock().monotonic_now());
  if (node() != nullptr) {
    const ChainMoment now = moment(trainer);
    if (now.chain.wanted_tokenizer) trainer_->want_tokenizer(*now.chain.wanted_tokenizer);
    report_->fill(view, now);
    if (now.registry) view.memory = memory_report_.view(*now.registry, host_.id());
    view.contributors = entries_.contributors();
    if (view.trouble.empty()) view.trouble = now.training.no_room;
    if (view.trouble.empty()) view.trouble = now.training.trouble;
    if (view.trouble.empty()) view.trouble = trust_->trouble(now.chain);
    if (view.trouble.empty() && pipeline_) view.trouble = pipeline_->trouble();
    if (!reads_beginning_) part_.follow_plan(now, *node(), *trainer_, view.part ? &*view.part : nullptr);
    if (now.registry) size_.follow(*now.registry, now.training, part_.larger_fits(), now.at);
    if (size_.waits() && view.trouble.empty())
      view.trouble =
          "the network's model is larger than this node has memory for: raise memory_limit or free some "
          "memory and start anew, or wait until the model shrinks";
    if (trust_->waits_for_founder(now.chain, wallet_key())) view.phase = "waiting for a founder to begin";
    if (now.chain.wanted_tokenizer) view.phase = "taking over the network's tokenizer";
    seen = report_->seen(now);
  }
  if (presence_.has_no_room()) view.phase = "paused until there is room on the disk";
  if (presence_.is_away()) view.phase = "away";
  status_->update(seen, view);
  std::lock_guard lock(board_->mutex);
  board_->view = std::move(view);
}

}  // namespace neuroshard::runtime
