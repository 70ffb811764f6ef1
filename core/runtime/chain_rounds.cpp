#include "core/runtime/chain_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/net/mailbox.h"
#include "core/runtime/round_rules.h"

namespace neuroshard::runtime {
namespace {

constexpr Duration refresh_pause = std::chrono::milliseconds(500);
constexpr Duration away_pause = std::chrono::milliseconds(50);
// The longest wait for voters that do not answer this node's notice that it leaves.
constexpr Duration voters_answer_limit = std::chrono::seconds(2);
constexpr std::size_t contacts_at_a_time = 8;
constexpr std::size_t small_request = 256;
constexpr std::size_t rounds_remembered = 64;
constexpr Duration least_silence = std::chrono::seconds(30);
constexpr Duration least_heartbeat = std::chrono::seconds(10), most_heartbeat = std::chrono::seconds(60);
constexpr auto delegation_life = std::chrono::hours(24 * 365 * 10);

net::MethodLimits limits(double per_second, std::size_t bytes, bool one_lan) {
  net::RequestLimits calls;
  calls.per_second = per_second;
  calls.burst = 10 * per_second;
  return {std::make_shared<net::RequestLimiter>(calls, one_lan), bytes, nullptr};
}

}  // namespace

// The addresses of other members, from their signed records.
class ChainRounds::Peers final : public chain::Peers {
 public:
  explicit Peers(swarm::Member& member) : member_(member) {}
  std::optional<net::Contact> find(const net::NodeId& id) override { return member_.find(id); }
  std::vector<net::Contact> some() override { return member_.some(contacts_at_a_time); }
  bool nobody() const override { return member_.knows_nobody(); }

 private:
  swarm::Member& member_;
};

// The chain can't go on without its own tasks.
class ChainRounds::Patient final : public Executor {
 public:
  explicit Patient(Executor& inner) : inner_(inner), tasks_(std::make_shared<net::Mailbox>(inner)) {}
  ~Patient() override { tasks_->close(); }
  bool post(Task task) override {
    tasks_->put(std::move(task));
    return true;
  }
  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override {
    return inner_.post_after(delay, std::move(task));
  }
  bool on_thread() const override { return inner_.on_thread(); }

 private:
  Executor& inner_;
  const std::shared_ptr<net::Mailbox> tasks_;
};

class ChainRounds::Content final : public chain::BlockContent {
 public:
  explicit Content(ChainRounds& owner) : owner_(owner), rounds_(*owner.training_) {}
  bool is_due(const chain::ChainTip& tip) override { return rounds_.is_due(tip); }
  void make(const chain::ChainTip& tip, std::function<void(chain::Sections)> done) override {
    rounds_.make(tip, std::move(done));
  }
  void judge(const chain::ChainTip& tip, const chain::BlockPtr& block, bool binding,
             std::function<void(bool)> done) override {
    rounds_.judge(tip, block, binding, std::move(done));
  }
  void on_block(const chain::ChainTip& tip, const chain::CertifiedBlock& block, bool live) override {
    if (before_) owner_.on_block(*before_, tip, block.block);
    before_ = tip;
    rounds_.on_block(tip, block, live);
  }
  void on_history(const chain::ChainTip& tip) override {
    before_ = tip;
    owner_.note_joint_anchor(tip);
    rounds_.on_history(tip);
  }
  chain::Verdict on_post(const net::NodeId& from, const chain::RoundsPost& post,
                         const chain::ChainTip& tip) override {
    return rounds_.on_post(from, post, tip);
  }
  Duration deadline() const override { return rounds_.deadline(); }

 private:
  ChainRounds& owner_;
  rounds::TrainingRounds& rounds_;
  std::optional<chain::ChainTip> before_;
};

struct ChainRounds::Known {
  std::vector<rounds::Anchor> first;                   // by row; null: the model is made again later
  std::vector<std::optional<engine::StateFile>> kept;  // by row
  std::vector<Hash256> hashes;                         // of `first`
  std::vector<std::string> notes;                      // for the log
};

ChainRounds::ChainRounds(PeerHost& host, const config::DataDirectory& directory,
                         const RuntimeServices& services, Interpositions interpositions)
    : host_(host),
      services_(services),
      interpositions_(std::move(interpositions)),
      consensus_(directory.profile().consensus),
      sync_(rounds::sync_choice(consensus_.sync).value_or(rounds::SyncChoice{})),
      network_(directory.network_id()),
      directory_(directory.path()),
      trainer_(make_round_trainer(consensus_, services)),
      anchors_(trainer_->fragments()) {
  for (std::size_t i = 0; interpositions_.other_learner && i < trainer_->fragments(); ++i)
    other_learners_.push_back(interpositions_.other_learner(trainer_->learner(i), host.executor()));
  board_->view.taking_part = true;
  board_->view.phase = "preparing";
  board_->view.inner_steps = trainer_->inner_steps();
}

std::unique_ptr<ChainRounds> ChainRounds::make(PeerHost& host, const config::DataDirectory& directory,
                                               const RuntimeServices& services, Interpositions interpositions,
                                               ReportingAs as) {
  if (directory.profile().consensus.inner_steps == 0) return nullptr;
  std::unique_ptr<ChainRounds> rounds(new ChainRounds(host, directory, services, std::move(interpositions)));
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
                      if (life.alive() && training_) training_->progressed();
                    }});
}

void ChainRounds::stop() {
  trainer_->listen({});
  host_.run([this] {
    if (std::exchange(stopped_, true)) return;
    lifetime_.end();
    timer_.reset();
    away_timer_.reset();
    away_.reset();
    methods_.clear();
    node_.reset();
    content_.reset();
    training_.reset();
    status_.reset();
    executor_.reset();
    files_.reset();
    own_files_.reset();
  });
  // Their threads post to the executor, which keeps running meanwhile.
  other_learners_.clear();
  work_.reset();
}

std::function<node::RoundsView()> ChainRounds::view() const {
  return [board = board_] {
    std::lock_guard lock(board->mutex);
    return board->view;
  };
}

void ChainRounds::watch(node::Node* node) {
  if (status_) status_->watch(node);
}

void ChainRounds::open(ReportingAs as, std::uint64_t seed) {
  wallet_ = as.delegation;
  const bool one_lan = as.one_lan;
  executor_ = std::make_unique<Patient>(host_.executor());
  peers_ = std::make_unique<Peers>(host_.member());
  status_ = std::make_unique<RoundsStatus>(host_, consensus_, network_, std::move(as), seed);
  net::MethodTable& methods = host_.member().methods();
  methods_.push_back(methods.add({net::Method::StatusPull}, {},
                                 [this](const net::Caller& from, net::Method, ByteSpan request,
                                        const net::Reply& reply) { status_->answer(from, request, reply); }));
  const auto chain_call = [this](const net::Caller& from, net::Method method, ByteSpan request,
                                 const net::Reply& reply) { on_chain_call(from, method, request, reply); };
  methods_.push_back(
      methods.add({net::Method::ChainPost}, limits(100, net::max_message_bytes, one_lan), chain_call));
  methods_.push_back(
      methods.add({net::Method::ChainStatus, net::Method::ChainBlocks, net::Method::ChainRegistry},
                  limits(20, small_request, one_lan), chain_call));
  methods_.push_back(methods.add({net::Method::RoundPiece}, limits(500, small_request, one_lan),
                                 [this](const net::Caller& from, net::Method, ByteSpan request,
                                        const net::Reply& reply) { on_piece_call(from, request, reply); }));
  refresh_later();
}

void ChainRounds::on_chain_call(const net::Caller& from, net::Method method, ByteSpan request,
                                const net::Reply& reply) {
  if (!node_) return reply(make_error(ErrorCode::Busy, "this node is still preparing its model"));
  node_->on_call(from, method, request, reply);
}

void ChainRounds::on_piece_call(const net::Caller& from, ByteSpan request, const net::Reply& reply) {
  if (!training_) return reply(make_error(ErrorCode::Busy, "this node is still preparing its model"));
  training_->on_call(from, request, reply);
}

// ---- The beginning

void ChainRounds::on_ready(const engine::RoundFacts& facts) {
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
  auto known = std::make_shared<Known>();
  known->first = facts.states;
  known->first.resize(fragments_.size());
  // A state may have gigabytes, so the round thread reads and hashes it.
  work_->run(
      [this, known, rules = outer_rules(consensus_, facts.tokenizer), files = files_.get(),
       begins = files_->block_count() == 0, fragments = fragments_] {
        for (std::uint32_t row = 0; row < fragments.size(); ++row) {
          auto kept = files->load_row(row, fragments[row].count, 0);
          if (!kept.ok() && kept.error().code != ErrorCode::NotFound)
            known->notes.push_back(kept.error().describe());
          known->kept.push_back(kept.ok() ? std::optional(std::move(*kept)) : std::nullopt);
          const std::string former =
              directory_ + "/rounds" +
              (fragments.size() == 1 ? std::string() : fmt::format("/fragment-{}", row + 1));
          if (services_.files.exists(former + "/state")) {
            auto old = engine::read_state_file(services_.files, former + "/state", fragments[row].count, 0);
            const bool offered = begins && old.ok();
            if (offered) known->first[row] = old->state;
            known->notes.push_back(
                fmt::format("{} has rounds of the former format, which are kept there{}", former,
                            offered ? "; a network that this node begins starts with their weights" : ""));
          }
          const auto identity = rounds::anchor_identity(network_, rules, row, 0);
          known->hashes.push_back(known->first[row] ? rounds::hash_of(identity, *known->first[row])
                                                    : Hash256{});
        }
      },
      [this, life = lifetime_.token(), known] {
        if (life.alive()) begin(*known);
      });
}

Expected<void> ChainRounds::open_files() {
  const std::string folder = directory_ + "/chain";
  NS_ASSIGN_OR_RETURN(files_,
                      engine::ChainFiles::open(services_.files, folder, services_.logger, host_.executor()));
  NS_ASSIGN_OR_RETURN(own_files_, engine::RoundFiles::open(services_.files, folder + "/own", services_.logger,
                                                           host_.executor()));
  return {};
}

chain::ChainRules ChainRounds::rules() const {
  chain::ChainRules rules;
  rules.network = network_;
  rules.voters = static_cast<chain::VotersMode>(consensus_.voters);
  rules.rows = rules.fragments = static_cast<std::uint32_t>(fragments_.size());
  rules.most_tokens = consensus_.inner_steps * consensus_.batch_tokens;
  rules.admission_contributions = static_cast<std::uint32_t>(consensus_.admission_contributions);
  rules.block_time = std::chrono::seconds(consensus_.block_time_s);
  rules.stall_after = std::chrono::seconds(consensus_.stall_after_s);
  rules.silent_after = std::max<Duration>(least_silence, 3 * rules.block_time);
  rules.heartbeat = std::clamp<Duration>(rules.block_time, least_heartbeat, most_heartbeat);
  return rules;
}

chain::ChainOptions ChainRounds::chain_options(const Known& known) const {
  chain::ChainOptions options;
  options.rules = rules();
  const WallTime now = services_.clock.wall_now();
  // Without a wallet the node works for its own key.
  options.delegation =
      wallet_ ? *wallet_
              : crypto::delegate(host_.key(), host_.key().public_key(), network_, now + delegation_life, 1);
  options.anchors = known.hashes;
  options.vouch_on_lan = true;
  return options;
}

rounds::TrainingOptions ChainRounds::training_options() const {
  rounds::TrainingOptions options;
  options.chain = rules();
  options.outer = outer_rules(consensus_, *tokenizer_);
  options.clock.first_deadline /= static_cast<std::int64_t>(fragments_.size());
  for (const rounds::Fragment& fragment : fragments_)
    options.shapes.push_back({fragment.row, fragment.first, fragment.count});
  options.inner_steps = static_cast<std::uint32_t>(consensus_.inner_steps);
  options.sync = sync_.each;
  return options;
}

void ChainRounds::begin(Known& known) {
  for (const std::string& note : known.notes) services_.logger.warning("rounds", note);
  Hash256 beacon_seed{};
  std::array<std::uint8_t, 8> seed{};
  services_.entropy.fill({beacon_seed.data(), beacon_seed.size()});
  services_.entropy.fill({seed.data(), seed.size()});
  std::vector<rounds::RoundLearner*> learners;
  for (std::size_t row = 0; row < fragments_.size(); ++row)
    learners.push_back(other_learners_.empty() ? &trainer_->learner(row) : other_learners_[row].get());
  if (interpositions_.other_caller)
    other_caller_ = interpositions_.other_caller(host_.member().caller(), host_.key(), network_);
  net::PeerCaller& caller = other_caller_ ? *other_caller_ : host_.member().caller();
  training_ = std::make_unique<rounds::TrainingRounds>(
      rounds::TrainingServices{host_.key(), caller, *peers_, *executor_, host_.clock(), std::move(learners),
                               *own_files_, *work_, checks_, services_.logger},
      training_options(), [this](std::uint64_t round, std::uint32_t row, const rounds::Anchor& anchor) {
        on_anchor(round, row, anchor);
      });
  content_ = std::make_unique<Content>(*this);
  node_ = std::make_unique<chain::ChainNode>(
      chain::ChainServices{host_.key(), caller, *peers_, *executor_, host_.clock(), *files_, checks_, nullptr,
                           *content_, services_.logger},
      chain_options(known), beacon_seed, load_le<std::uint64_t>(seed.data()));
  training_->attach(*node_);
  for (std::uint32_t row = 0; row < fragments_.size(); ++row) {
    if (auto& kept = known.kept[row]; kept && files_->block_count() > 0) {
      kept_[row] = kept->round;
      training_->offer(row, kept->round, std::move(kept->state));
    } else if (known.first[row]) {
      training_->offer(row, 0, known.first[row]);
    }
  }
  training_->start();
  node_->start();
  if (away_) node_->go_away();  // its rounds begin while it is away
}

// ---- Blocks and anchors

std::string ChainRounds::name_of(std::uint32_t row) const {
  return fragments_.size() == 1 ? "" : fmt::format("fragment {} of {}: ", row + 1, fragments_.size());
}

// A row's joint anchor is the one of its newest change.
void ChainRounds::note_joint_anchor(const chain::ChainTip& tip) {
  const std::vector<chain::RowRecord>& rows = tip.registry->rows();
  for (std::size_t row = 0; row < rows.size(); ++row)
    anchors_.add(row, tip.registry->round(), rows[row].anchor);
}

void ChainRounds::on_block(const chain::ChainTip& before, const chain::ChainTip& tip,
                           const chain::BlockPtr& block) {
  if (!block->body.result) return;
  note_joint_anchor(tip);
  const chain::ClosedRound& closed = *before.registry->closed();
  for (std::size_t i = 0; i < block->body.result->rows.size(); ++i) {
    const chain::RowResult& row = block->body.result->rows[i];
    const std::uint64_t round = block->body.result->round;
    if (row.carried) {
      services_.logger.info("rounds", fmt::format("{}round {} leaves the anchor as it is: its work goes into "
                                                  "the next one",
                                                  name_of(row.row), round));
      continue;
    }
    Result result;
    result.row = row.row;
    result.entry.round = round;
    result.entry.anchor = to_hex(row.anchor);
    const auto& counted = closed.contributors[i];
    result.entry.contributors = newest_[row.row] = static_cast<std::uint32_t>(counted.size());
    result.entry.too_few_to_vote = counted.size() >= 2 && counted.size() <= 4;
    for (const chain::WalletRecord& wallet : tip.registry->wallets())
      result.entry.tokens += wallet.counted_tokens;
    for (const chain::MemberRecord& member : before.registry->members()) {
      const bool in = std::binary_search(counted.begin(), counted.end(), member.number);
      if (!in && member.presence != chain::Presence::Active) continue;
      ++result.entry.members;
      node::RoundMemberEntry entry{to_hex(member.id), member.id == host_.id(), in, 0, 0, std::nullopt, {}};
      for (const chain::ContributionEntry& one : closed.contributions)
        if (one.member == member.number) entry.tokens = one.tokens;
      entry.steps =
          static_cast<std::uint32_t>(entry.tokens / std::max<std::uint64_t>(1, consensus_.batch_tokens));
      if (!in) entry.note = entry.tokens > 0 ? "a candidate, or late with its work" : "nothing contributed";
      result.entry.who.push_back(std::move(entry));
    }
    std::stable_partition(result.entry.who.begin(), result.entry.who.end(),
                          [](const node::RoundMemberEntry& one) { return one.contributed; });
    results_[round] = std::move(result);
    while (results_.size() > rounds_remembered) results_.erase(results_.begin());
  }
}

// This node holds the state that the registry names. The block that names it may go to the disk after it.
void ChainRounds::on_anchor(std::uint64_t round, std::uint32_t row, const rounds::Anchor& anchor) {
  const auto kept = kept_.find(row);
  if (kept == kept_.end() || kept->second != round) {
    kept_[row] = round;
    files_->save_row(row, round, anchor);
  }
  trouble_.clear();
  const rounds::TrainingView now = training_->view();
  if (now.holds) files_->release();
  if (const auto found = results_.find(round); found != results_.end() && found->second.row == row) {
    node::RoundEntry entry = std::move(found->second.entry);
    results_.erase(found);
    entry.fetched = now.fetched_anchors > fetched_;
    if (fragments_.size() > 1) entry.rule = fmt::format("fragment {} of {}", row + 1, fragments_.size());
    services_.logger.info(
        "rounds",
        fmt::format("{}round {} is certified with anchor {}: {} of {} members contributed", name_of(row),
                    round, entry.anchor.substr(0, 16), entry.contributors, entry.members));
    status_->on_round(row, std::move(entry), trainer_->view());
  }
  fetched_ = now.fetched_anchors;
  if (now.left_out > left_out_)
    left_out_reason_ = fmt::format("{}round {} was closed without this node's work", name_of(row), round);
  left_out_ = now.left_out;
  refresh();
}

// ---- Presence

void ChainRounds::announce_away(MonotonicTime deadline, std::function<void()> done) {
  host_.run([&] {
    away_ = AwayNotice{host_.clock().monotonic_now(), deadline, std::move(done)};
    if (node_) node_->go_away();
    check_away_notice();
  });
}

// The others go on without this node, or nobody is there who could.
bool ChainRounds::may_go() const {
  if (!node_ || node_->is_away()) return true;
  const chain::ChainView now = node_->view();
  if (now.committee <= 1) return true;
  const bool silence = now.committee - now.missing.size() <= 1;
  return silence && host_.clock().monotonic_now() - away_->begun >= voters_answer_limit;
}

void ChainRounds::check_away_notice() {
  if (!away_ || !away_->done) return;
  if (may_go() || host_.clock().monotonic_now() >= away_->deadline)
    return std::exchange(away_->done, nullptr)();
  away_timer_ = host_.executor().post_after(away_pause, [this] { check_away_notice(); });
}

void ChainRounds::announce_back() {
  host_.run([this] {
    away_.reset();
    away_timer_.reset();
    if (node_) node_->come_back();
  });
}

// ---- For people

void ChainRounds::refresh_later() {
  timer_ = host_.executor().post_after(refresh_pause, [this] {
    if (files_) files_->release();
    refresh();
    refresh_later();
  });
}

std::string ChainRounds::phase(const chain::ChainView& chain, const rounds::TrainingView& training,
                               bool resting) const {
  const chain::History* history = node_->history();
  if (history == nullptr) return "joining";
  if (!training.holds) return "fetching the anchor";
  if (training.provisional || chain.stalled) return "training alone until the others are back";
  if (history->tip().registry->closed())
    return resting ? "agreeing on the round" : "training on while the members agree on the round";
  if (training.contributed)
    return resting ? "waiting for the other members" : "training on while the others finish the round";
  return "training";
}

void ChainRounds::fill_view(node::RoundsView& view, bool resting) const {
  const chain::ChainView chain = node_->view();
  const rounds::TrainingView training = training_->view();
  view.phase = phase(chain, training, resting);
  view.certified = training.rounds;
  view.contributed = training.counted;
  view.left_out = training.left_out;
  view.left_out_reason = left_out_reason_;
  view.fetched = training.fetched_anchors;
  view.bytes_sent = chain.bytes_sent;
  view.bytes_received = training.bytes_received;
  if (chain.failed_saves > 0 && view.trouble.empty())
    view.trouble = "the chain can't be written to the disk: free some space, or look at the log";
  if (node_->history() == nullptr) return;
  const chain::Registry& registry = *node_->history()->tip().registry;
  view.round = registry.round();
  if (const auto anchor = anchors_.of_all(view.round)) view.anchor = to_hex(*anchor);
  view.agrees = training.holds;
  view.member = chain.member && chain.active;
  for (const chain::MemberRecord& member : registry.members())
    if (member.presence == chain::Presence::Active) ++view.members;
  for (const auto& [row, contributors] : newest_)
    view.contributors = view.contributors == 0 ? contributors : std::min(view.contributors, contributors);
}

RoundsSeen ChainRounds::seen() const {
  RoundsSeen seen;
  if (!node_) return seen;
  const rounds::TrainingView training = training_->view();
  for (const auto& [verdict, count] : training.refused)
    seen.refused.push_back({std::string(chain::to_string(verdict)), count});
  seen.anchor_of = [this](std::uint64_t round) { return anchors_.of_all(round); };
  if (node_->history() == nullptr) return seen;
  const chain::ChainView chain = node_->view();
  const chain::Registry& registry = *node_->history()->tip().registry;
  seen.begun = true;
  seen.round = registry.round();
  for (const chain::WalletRecord& wallet : registry.wallets()) seen.tokens += wallet.counted_tokens;
  for (const chain::MemberRecord& member : registry.members())
    if (member.presence == chain::Presence::Active) seen.members.insert(member.id);
  seen.contributed = training.counted;
  seen.failed = training.left_out;
  if (!held_.empty()) {
    const auto& [round, anchor] = *held_.rbegin();
    seen.held_round = round;
    if (round > 0) seen.held_anchor = anchor;
    if (const auto before = held_.find(round - 1); before != held_.end() && round > 1)
      seen.previous_anchor = before->second;
  }
  seen.exchanging = seen.members.size();
  for (const rounds::Fragment& fragment : fragments_) seen.values += fragment.count;
  if ((training.provisional || chain.stalled) && chain.voter)
    seen.standstill = status::Standstill{seen.round + 1, chain.committee,
                                         2 * chain.committee / 3 + 1, chain.missing};
  return seen;
}

void ChainRounds::refresh() {
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
  if (node_) {
    fill_view(view, training.resting);
    if (view.agrees)
      if (const auto joint = anchors_.of_all(view.round)) held_[view.round] = *joint;
    while (held_.size() > rounds_remembered) held_.erase(held_.begin());
  }
  if (away_) view.phase = "away";
  status_->update(seen(), view);
  std::lock_guard lock(board_->mutex);
  board_->view = std::move(view);
}

}  // namespace neuroshard::runtime
