// ChainWorld: what a node stands on, and its life.
#include "core/sim/chain_world.h"

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/sim/identities.h"

namespace neuroshard::sim {

class ChainWorld::Directory final : public chain::Peers {
 public:
  Directory(const ChainWorld& world, std::uint64_t seed) : world_(world), rng_(seed) {}
  std::optional<net::Contact> find(const net::NodeId& id) override {
    const auto at = world_.by_id_.find(id);
    if (at == world_.by_id_.end()) return std::nullopt;
    return net::Contact{id, endpoint_of_node(at->second)};
  }
  std::vector<net::Contact> some() override {
    std::vector<net::Contact> contacts;
    for (std::size_t i = 0; i < world_.options_.contacts; ++i) {
      const std::size_t node = rng_.below(world_.hosts_.size());
      contacts.push_back({world_.hosts_[node]->id, endpoint_of_node(node)});
    }
    return contacts;
  }

 private:
  const ChainWorld& world_;
  Rng rng_;
};

// A write is on the disk when it is done, and lost with the node before.
class ChainWorld::Store final : public chain::ChainStore {
 public:
  Store(ChainWorld& world, Host& host) : world_(world), host_(host), disk_(host.disk), alive_(host.alive) {}
  Expected<Bytes> load(Record record) override {
    const auto at = disk_.records.find(record);
    if (at == disk_.records.end()) return make_error(ErrorCode::NotFound, "nothing kept");
    return *at->second;
  }
  void save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) override {
    host_.cost.written += bytes.size();
    later([this, record, bytes = world_.disks_.hold(std::move(bytes)), done = std::move(done)] {
      if (disk_.spool.full) return done(full_disk());
      disk_.records[record] = bytes;
      done({});
    });
  }
  std::uint64_t first_block() const override { return disk_.first; }
  std::uint64_t block_count() const override { return disk_.blocks.size(); }
  Expected<Bytes> load_block(std::uint64_t height) override {
    if (height < disk_.first || height - disk_.first >= disk_.blocks.size())
      return make_error(ErrorCode::NotFound, "no such block");
    return *disk_.blocks[height - disk_.first];
  }
  void append_block(std::uint64_t height, chain::BlockBytes block,
                    std::function<void(Expected<void>)> done) override {
    host_.cost.written += block->size();
    write_log(
        [this, height, block = std::move(block)] {
          NS_CHECK(height == disk_.first + disk_.blocks.size());  // a log has no gaps
          disk_.blocks.push_back(block);
        },
        std::move(done));
  }
  void begin_log(std::uint64_t first_height, std::function<void(Expected<void>)> done) override {
    write_log(
        [this, first_height] {
          disk_.blocks.clear();
          disk_.first = first_height;
        },
        std::move(done));
  }
  void drop_last(std::function<void(Expected<void>)> done) override {
    write_log([this] { disk_.blocks.pop_back(); }, std::move(done));
  }

 private:
  using Done = std::function<void(Expected<void>)>;
  static Expected<void> full_disk() {
    return make_error(ErrorCode::Exhausted, "the disk is full; free some space");
  }
  void later(std::function<void()> work) {
    world_.world_.after(world_.options_.disk_time, [alive = alive_, work = std::move(work)] {
      if (!alive.expired()) work();
    });
  }
  // Changes that a full disk refused are written before the next one.
  void write_log(std::function<void()> change, Done done) {
    later([this, change = std::move(change), done = std::move(done)] {
      refused_.push_back(change);
      if (disk_.spool.full) return done(full_disk());
      for (const auto& each : std::exchange(refused_, {})) each();
      done({});
    });
  }
  ChainWorld& world_;
  Host& host_;
  ChainDisk& disk_;
  const std::weak_ptr<bool> alive_;
  std::vector<std::function<void()>> refused_;
};

class ChainWorld::RoundsStore final : public rounds::RoundStore {
 public:
  RoundsStore(World& world, Host& host, Duration time)
      : world_(world), host_(host), disk_(host.disk), time_(time), alive_(host.alive) {}
  Expected<ByteSourcePtr> load(Record record) override {
    const auto at = disk_.rounds.find(record);
    if (at == disk_.rounds.end()) return make_error(ErrorCode::NotFound, "nothing kept");
    return at->second;
  }
  void save(Record record, ByteSourcePtr bytes, std::function<void(Expected<void>)> done) override {
    host_.cost.written += bytes->size();
    world_.after(time_,
                 [this, alive = alive_, record, bytes = std::move(bytes), done = std::move(done)]() mutable {
                   if (alive.expired()) return;
                   if (int& failing = disk_.failing[record]; failing > 0) {
                     --failing;
                     return done(make_error(ErrorCode::Io, "the disk did not write"));
                   }
                   disk_.rounds[record] = std::move(bytes);
                   done({});
                 });
  }

 private:
  World& world_;
  Host& host_;
  ChainDisk& disk_;
  const Duration time_;
  const std::weak_ptr<bool> alive_;
};

class ChainWorld::Work final : public rounds::RoundWork {
 public:
  Work(World& world, Duration time, const std::shared_ptr<bool>& alive)
      : world_(world), time_(time), alive_(alive) {}
  void run(std::function<void()> job, std::function<void()> done) override {
    world_.after(time_, [alive = alive_, job = std::move(job), done = std::move(done)] {
      if (alive.expired()) return;
      job();
      done();
    });
  }

 private:
  World& world_;
  const Duration time_;
  const std::weak_ptr<bool> alive_;
};

// Counts what a node sends, and the answers that it gets.
class ChainWorld::CountingCaller final : public net::PeerCaller {
 public:
  CountingCaller(net::PeerCaller& out, Host& host) : out_(out), host_(host), alive_(host.alive) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    ++host_.cost.messages;
    host_.cost.bytes += request.size();
    out_.call(peer, method, std::move(request), deadline,
              [this, alive = alive_, done = std::move(done)](Expected<Bytes> answer) {
                if (!alive.expired() && answer.ok()) host_.cost.received += answer->size();
                done(std::move(answer));
              });
  }

 private:
  net::PeerCaller& out_;
  Host& host_;
  const std::weak_ptr<bool> alive_;
};

class ChainWorld::Watched final : public chain::BlockContent {
 public:
  Watched(ChainWorld& world, std::size_t node, rounds::TrainingRounds& rounds)
      : world_(world), node_(node), rounds_(rounds) {}
  bool is_due(const chain::ChainTip& tip) override { return rounds_.is_due(tip); }
  void make(const chain::ChainTip& tip, std::function<void(chain::Sections)> done) override {
    const ChangeSections& change = world_.hosts_[node_]->change_sections;
    if (!change) return rounds_.make(tip, std::move(done));
    rounds_.make(tip, [&change, tip, done = std::move(done)](chain::Sections sections) {
      change(tip, &sections);
      done(std::move(sections));
    });
  }
  void judge(const chain::ChainTip& tip, const chain::BlockPtr& block, bool binding,
             std::function<void(bool)> done) override {
    const bool lies = world_.hosts_[node_]->change_sections != nullptr;
    rounds_.judge(tip, block, binding && world_.options_.omissions_bind && !lies, std::move(done));
  }
  void on_block(const chain::ChainTip& tip, const chain::CertifiedBlock& block, bool live) override {
    if (before_) {
      world_.saw_block(node_, *before_, block);
      count(*before_, block);
    }
    before_ = tip;
    rounds_.on_block(tip, block, live);
  }
  void on_history(const chain::ChainTip& tip) override {
    before_ = tip;
    rounds_.on_history(tip);
  }
  chain::Verdict on_post(const net::NodeId& from, const chain::RoundsPost& post,
                         const chain::ChainTip& tip) override {
    return rounds_.on_post(from, post, tip);
  }
  chain::Verdict on_accusation(const net::NodeId& from, const chain::Evidence& evidence,
                               const chain::ChainTip& tip) override {
    return rounds_.on_accusation(from, evidence, tip);
  }
  chain::SignedByMember signed_by(const net::NodeId& member) const override {
    return rounds_.signed_by(member);
  }
  Duration deadline() const override { return rounds_.deadline(); }

 private:
  // The registry after a block is computed once, by the first node. Each of the others would check the block's
  // signatures for itself, but for those that it remembers (chain/remembered_checks.h).
  void count(const chain::ChainTip& before, const chain::CertifiedBlock& block) {
    Host& host = *world_.hosts_[node_];
    const chain::BlockBody& body = block.block->body;
    host.counted.add(body.statements.size() + body.evidence.size());
    if (!body.close) return;
    const rounds::TrainingView view = host.training->view();
    const bool votes = before.committee->position(host.id).has_value();
    const auto add = [&](std::size_t all, std::size_t known) {
      if (all > (votes ? known : 0)) host.counted.add(all - (votes ? known : 0));
    };
    add(body.close->contributions.size(), view.contributions);
    add(body.close->vectors.size(), view.vectors);
  }

  ChainWorld& world_;
  const std::size_t node_;
  rounds::TrainingRounds& rounds_;
  std::optional<chain::ChainTip> before_;
};

ChainWorld::Host::Host(crypto::KeyPair pair, crypto::KeyPair wallet_pair, SharedChecks& shared)
    : key(std::move(pair)),
      wallet(std::move(wallet_pair)),
      id(crypto::node_id(key.public_key())),
      counted(shared) {}
ChainWorld::Host::~Host() = default;

void ChainWorld::Host::end() {
  chain.reset();
  watched.reset();
  training.reset();
  caller.reset();
  counting.reset();
  work.reset();
  rounds_store.reset();
  store.reset();
  directory.reset();
  learners.reset();
  model.reset();
  executor.reset();
}

// ---- A node's life

void ChainWorld::start_all() {
  for (std::size_t node = 0; node < hosts_.size(); ++node) start(node);
}

void ChainWorld::start(std::size_t node) {
  Host& host = *hosts_.at(node);
  NS_CHECK(host.alive == nullptr);
  host.end();  // what is left of an earlier life
  host.alive = std::make_shared<bool>(true);
  ++host.lives;
  if (options_.rows_of) host.rows = options_.rows_of(node);
  std::erase_if(host.disk.anchors, [&host](const auto& kept) { return !host.rows.has(kept.first); });
  const std::uint64_t seed = Rng(options_.seed * 1'000'003 + node * 101 + host.lives).next();
  host.executor = std::make_unique<HostExecutor>(world_);
  host.model = make_model_(node, host.lives);
  TrainerOptions trainer = options_.trainer;
  trainer.step_time = host.step_time;
  host.learners = std::make_unique<HostLearners>(
      world_, *host.executor, *host.model, trainer, make_distortion_ ? make_distortion_(node) : nullptr,
      fragments_, options_.initial, options_.rows_of ? std::optional(host.rows) : std::nullopt);
  host.directory = std::make_unique<Directory>(*this, seed + 1);
  host.store = std::make_unique<Store>(*this, host);
  host.rounds_store = std::make_unique<RoundsStore>(world_, host, options_.disk_time);
  host.work = std::make_unique<Work>(world_, options_.work_time, host.alive);
  host.counting = std::make_unique<CountingCaller>(network_.caller(host.address), host);
  net::PeerCaller& out = *host.counting;
  host.caller = make_caller_ ? make_caller_(node, out, host.key) : nullptr;
  net::PeerCaller& caller = host.caller ? *host.caller : out;
  rounds::TrainingOptions training = options_.training;
  training.rows = host.rows;
  training.size = host.disk.size;
  training.outer.architecture_version += host.disk.size;
  rounds::StepPool* steps = options_.steps ? options_.steps(node) : nullptr;
  if (steps == nullptr && options_.from_snapshot) steps = &steps_;
  host.training = std::make_unique<rounds::TrainingRounds>(
      rounds::TrainingServices{host.key, caller, *host.directory, *host.executor, world_.clock(),
                               host.learners->by_row(), *host.rounds_store, *host.work, host.disk.spool,
                               host.counted, logger_, &pool_, steps, nullptr,
                               options_.room ? options_.room(node) : nullptr, options_.resize},
      training, [this, node](std::uint64_t round, std::uint32_t row, const rounds::Anchor& anchor) {
        saw_anchor(node, round, row, anchor);
      });
  host.watched = std::make_unique<Watched>(*this, node, *host.training);
  chain::ChainOptions chain = options_.chain;
  chain.delegation = delegation(host);
  chain.voucher = host.voucher;
  chain.rows = host.rows;
  host.chain = std::make_unique<chain::ChainNode>(
      chain::ChainServices{host.key, caller, *host.directory, *host.executor, world_.clock(), *host.store,
                           host.counted, &cache_, *host.watched, logger_},
      std::move(chain), host.id, seed);
  host.training->attach(*host.chain);
  for (const auto& [row, kept] : host.disk.anchors)
    for (const auto& [round, anchor] : kept) host.training->offer(row, round, anchor);
  network_.set_handler(host.address, [this, node](const net::Caller& from, net::Method method,
                                                  ByteSpan request, const net::Respond& respond) {
    on_call(node, from, method, request, respond);
  });
  network_.set_online(host.address, true);
  host.training->start();
  host.chain->start();
}

void ChainWorld::kill(std::size_t node) {
  Host& host = *hosts_.at(node);
  if (!host.alive) return;
  host.executor->stop();
  host.alive.reset();
  network_.set_online(host.address, false);
}

void ChainWorld::on_call(std::size_t node, const net::Caller& from, net::Method method, ByteSpan request,
                         const net::Respond& answer) {
  Host& host = *hosts_[node];
  if (!host.alive || !host.chain) return;
  host.cost.received += request.size();
  const net::Respond respond = [&host, answer](Expected<Bytes> bytes) {
    ++host.cost.messages;
    if (bytes.ok()) host.cost.bytes += bytes->size();
    answer(std::move(bytes));
  };
  if (host.answers && host.answers(from, method, request, respond)) return;
  if (chain::ChainServer::handles(method)) return host.chain->on_call(from, method, request, respond);
  if (method == net::Method::RoundPiece) return host.training->on_call(from, request, respond);
  respond(make_error(ErrorCode::Unsupported, "no such method"));
}

}  // namespace neuroshard::sim
