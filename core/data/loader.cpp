#include "core/data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <utility>

namespace neuroshard::data {
namespace {

class PlanLoader final : public Loader {
 public:
  PlanLoader(Dataset& dataset, const LoaderOptions& options, Executor* io)
      : dataset_(dataset),
        options_(options),
        ring_(dataset.shards(Split::Train), options.node_id, options.sequence, options.shard_count),
        io_(io) {
    position_.shard_id = ring_.front().id;
    position_.recent_losses.reserve(options.rotation.window);
  }
  ~PlanLoader() override { give_up_fetch(); }

  void begin_round(std::uint64_t round, const Hash256& beacon) override {
    close_run();
    if (network_round_ && round < *network_round_) return;
    network_round_ = round;
    if (beacon == Hash256{}) return;
    // A draw holds while its shard is fetched: else a download longer than a round would never end.
    const bool fetches = newest_ && waits_;
    (fetches ? later_ : newest_) = BeaconDraw{round, beacon, ring_.total()};
    if (!fetches) later_.reset();
  }

  Expected<Batch> next(std::uint64_t step, const CancelToken& cancel) override {
    LoaderPosition position = position_;
    RotationReason rotation = last_rotation_;
    ring_.use(draw_of(position));  // a round that could not begin may have changed it
    if (begins_round(position, step)) rotation = begin_record(step, &position);
    if (!shard_ || shard_->entry.id != position.shard_id) {
      NS_RETURN_IF_ERROR(fetch_needed(position.shard_id));
      NS_ASSIGN_OR_RETURN(shard_, dataset_.load(position.shard_id, cancel));
      fetch_ahead(position);
    }
    waits_ = false;
    const BatchRecord record = record_of(position);
    const std::uint64_t number = position.in_network ? position.in_network->batches : step;
    NS_ASSIGN_OR_RETURN(Batch batch, make_batch(record, number, shard_->tokens, options_.sequence));
    batch.shard_id = shard_->entry.id;
    batch.source = shard_->entry.source;
    ++position.steps_on_shard;
    position.tokens_on_shard += batch.token_count();
    if (position.in_network) note(record, batch, &*position.in_network);
    position_ = std::move(position);
    last_rotation_ = rotation;
    return batch;
  }

  void report_loss(float loss) override {
    if (!std::isfinite(loss)) return;
    auto& losses = position_.recent_losses;
    if (losses.size() >= options_.rotation.window) losses.erase(losses.begin());
    losses.push_back(loss);
  }

  LoaderPosition position() const override { return position_; }

  Expected<void> restore(const LoaderPosition& position) override {
    if (position.started && ring_.usable(position.shard_id) == nullptr) {
      return make_error(ErrorCode::NotFound,
                        fmt::format("the checkpoint was training on shard {}, which this data no longer has; "
                                    "restore the data or start a new run",
                                    position.shard_id));
    }
    if (position.recent_losses.size() > options_.rotation.window) {
      return make_error(ErrorCode::Corrupt,
                        "the loader position has more losses than the rotation rule uses");
    }
    position_ = position;
    ring_.use(draw_of(position_));
    if (!position.started) position_.shard_id = ring_.front().id;
    last_rotation_ = RotationReason::Stay;
    return {};
  }

  std::optional<BatchRecord> record() const override {
    if (!position_.started) return std::nullopt;
    return record_of(position_);
  }

  std::optional<BatchWork> last_batches(std::uint64_t batches) override {
    if (!position_.in_network) return std::nullopt;
    close_run();
    const std::vector<BatchRun>& runs = position_.in_network->runs;
    std::uint64_t found = 0;
    auto from = runs.end();
    while (found < batches && from != runs.begin()) found += (--from)->count;
    if (found != batches) return std::nullopt;
    return BatchWork{
        dataset_.manifest().tokenizer_hash, options_.sequence, options_.batch_tokens, {from, runs.end()}};
  }

  RotationReason last_rotation() const override { return last_rotation_; }

 private:
  static std::optional<BeaconDraw> draw_of(const LoaderPosition& position) {
    if (!position.in_network) return std::nullopt;
    return position.in_network->draw;
  }
  void close_run() {
    if (position_.in_network) position_.in_network->run_open = false;
  }

  // A node that trains on without its network has local rounds, too.
  bool begins_round(const LoaderPosition& position, std::uint64_t step) const {
    if (!position.started) return true;
    if (!newest_) return step / options_.steps_per_round != position.round;
    return !position.in_network || position.in_network->round != *network_round_;
  }

  RotationReason begin_record(std::uint64_t step, LoaderPosition* position) {
    RotationReason reason = RotationReason::Stay;
    if (position->started) {
      const ShardProgress progress{position->steps_on_shard, position->tokens_on_shard,
                                   ring_.usable(position->shard_id)->tokens, position->recent_losses};
      reason = should_rotate(progress, options_.rotation);
    }
    const bool enters = newest_ && !position->in_network;
    if (enters) position->in_network = LoaderPosition::InNetwork{};
    if (enters || (position->in_network && !ring_.holds(position->shard_id))) reason = RotationReason::Drawn;
    if (reason != RotationReason::Stay) move_on(reason, position);
    position->round = step / options_.steps_per_round;
    position->round_offset = position->tokens_on_shard;
    if (position->in_network) {
      if (network_round_) position->in_network->round = *network_round_;
      position->in_network->batches = 0;
      position->in_network->run_open = false;
    }
    position->started = true;
    return reason;
  }

  // The ring's end, or another ring than the shard's, takes the newest beacon.
  void move_on(RotationReason reason, LoaderPosition* position) {
    const bool draws = newest_ && (reason == RotationReason::Drawn || ring_.is_last(position->shard_id)) &&
                       !(position->in_network->draw == *newest_);
    if (draws) {
      position->in_network->draw = *newest_;
      ring_.use(newest_);
    }
    const bool begins = draws || reason == RotationReason::Drawn;
    if (position->started) ++position->shard_index;
    position->shard_id = begins ? ring_.front().id : ring_.after(position->shard_id).id;
    position->steps_on_shard = 0;
    position->tokens_on_shard = 0;
    position->recent_losses.clear();
  }

  BatchRecord record_of(const LoaderPosition& position) const {
    const ShardEntry& shard = *ring_.usable(position.shard_id);
    BatchRecord record{position.round,        shard.id,
                       shard.sha256,          dataset_.manifest().tokenizer_hash,
                       position.round_offset, options_.batch_tokens};
    if (options_.own_batches || position.in_network) record.driver = options_.node_id;
    if (position.in_network) {
      record.round = position.in_network->round;
      record.draw = ShardDraw{position.in_network->draw.round, position.in_network->draw.total};
    }
    return record;
  }

  // Of a person's own text, neither the file's hash nor that of its tokens goes to others.
  static void note(const BatchRecord& record, const Batch& batch, LoaderPosition::InNetwork* place) {
    const bool own = is_own_shard(record.shard_id);
    if (!place->run_open) {
      if (place->runs.size() >= max_batch_runs) place->runs.erase(place->runs.begin());
      place->runs.push_back({record.round, *record.draw, record.shard_id, own ? Hash256{} : record.shard_hash,
                             record.offset, place->batches, 0, Hash256{}});
      place->run_open = true;
    }
    BatchRun& run = place->runs.back();
    if (!own) run.digest = next_digest(run.digest, batch);
    ++run.count;
    ++place->batches;
  }

  // On the io thread.
  struct Fetch {
    ShardId id = 0;
    CancelSource cancel;
    std::future<Expected<void>> result;
  };

  static bool ends_within(const Fetch& fetch, Duration wait) {
    return fetch.result.wait_for(wait) == std::future_status::ready;
  }

  void give_up_fetch() {
    if (fetch_) fetch_->cancel.cancel();
    fetch_.reset();
  }

  // In place of another one. Where the queue is full, the shard is fetched when it is needed next.
  void begin_fetch(ShardId id) {
    give_up_fetch();
    Fetch fetch;
    fetch.id = id;
    const auto task = std::make_shared<std::packaged_task<Expected<void>()>>(
        [dataset = &dataset_, id, cancel = fetch.cancel.token()]() -> Expected<void> {
          if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "the shard is not needed any more");
          return dataset->prefetch(id, cancel);
        });
    fetch.result = task->get_future();
    if (io_->post([task] { (*task)(); })) fetch_ = std::move(fetch);
  }

  void fetch_ahead(const LoaderPosition& position) {
    if (io_ != nullptr && ring_.size() >= 2) begin_fetch(ring_.after(position.shard_id).id);
  }

  // Where this thread must not wait for a download, the io thread gets the file of the shard here first.
  Expected<void> fetch_needed(ShardId id) {
    const bool waited = std::exchange(waits_, false);
    if (io_ == nullptr || !options_.longest_wait) return {};
    // A fetch ahead that ended long ago says nothing about now.
    const bool goes_on = fetch_ && fetch_->id == id && (waited || !ends_within(*fetch_, Duration{}));
    if (!goes_on) begin_fetch(id);
    // One wait is enough for a file that is here. Later looks hold nothing up.
    if (!fetch_ || !ends_within(*fetch_, goes_on && waited ? Duration{} : *options_.longest_wait)) {
      waits_ = true;
      return make_error(ErrorCode::Busy, "the next text is still being fetched");
    }
    if (later_) newest_ = *std::exchange(later_, std::nullopt);
    return std::exchange(fetch_, std::nullopt)->result.get();
  }

  Dataset& dataset_;
  const LoaderOptions options_;
  ShardRing ring_;
  Executor* const io_;
  std::optional<Fetch> fetch_;  // of the shard that is needed, or ahead
  bool waits_ = false;          // the last next() gave Busy
  LoaderPosition position_;
  std::optional<std::uint64_t> network_round_;  // by begin_round()
  std::optional<BeaconDraw> newest_, later_;    // later_: comes into force when the fetch under way has ended
  RotationReason last_rotation_ = RotationReason::Stay;
  std::shared_ptr<const ShardTokens> shard_;
};

Expected<void> check_options(const LoaderOptions& options) {
  if (options.sequence == 0 || options.batch_tokens == 0 || options.steps_per_round == 0 ||
      options.shard_count == 0) {
    return make_error(ErrorCode::InvalidArgument,
                      "sequence, batch tokens, steps per round and shard count must be at least 1");
  }
  if (options.rotation.window < 2 || options.rotation.window > max_rotation_window ||
      options.rotation.window % 2 != 0) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the rotation window must be even, from 2 to {}", max_rotation_window));
  }
  return {};
}

}  // namespace

Expected<std::unique_ptr<Loader>> Loader::create(Dataset& dataset, const LoaderOptions& options,
                                                 Executor* io) {
  NS_RETURN_IF_ERROR(check_options(options));
  std::uint64_t most = 0;
  for (const ShardEntry& shard : dataset.shards(Split::Train)) most = std::max(most, shard.tokens);
  if (most == 0) {
    return make_error(ErrorCode::NotFound,
                      "there is no text to train on yet; add text on the Training page of the app, or with "
                      "--text PATH");
  }
  if (most <= options.sequence) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("the text is too small: its largest shard has {} tokens, and one sequence requires {}; "
                    "add more text on the Training page of the app, or with --text PATH",
                    most, std::uint64_t{options.sequence} + 1));
  }
  return std::unique_ptr<Loader>(std::make_unique<PlanLoader>(dataset, options, io));
}

}  // namespace neuroshard::data
