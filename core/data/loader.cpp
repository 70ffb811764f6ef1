#include "core/data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/data/detail/json_fields.h"

namespace neuroshard::data {
namespace {

using nlohmann::json;

constexpr std::size_t max_position_bytes = 64u << 10;
constexpr std::uint32_t max_window = 4096;
constexpr const char* where = "loader position";

class PlanLoader final : public Loader {
 public:
  PlanLoader(Dataset& dataset, const LoaderOptions& options, std::vector<ShardEntry> ring, Executor* io)
      : dataset_(dataset), options_(options), ring_(std::move(ring)), io_(io) {
    position_.shard_id = ring_.front().id;
    position_.recent_losses.reserve(options.rotation.window);
  }
  ~PlanLoader() override { cancel_fetch_.cancel(); }

  Expected<Batch> next(std::uint64_t step, const CancelToken& cancel) override {
    const std::uint64_t round = step / options_.steps_per_round;
    LoaderPosition position = position_;
    RotationReason rotation = last_rotation_;
    if (!position.started || round != position.round) {
      rotation = begin_round(round, &position);
    }
    if (!shard_ || shard_->entry.id != position.shard_id) {
      NS_ASSIGN_OR_RETURN(shard_, dataset_.load(position.shard_id, cancel));
      fetch_ahead(position);
    }
    NS_ASSIGN_OR_RETURN(Batch batch,
                        make_batch(record_of(position), step, shard_->tokens, options_.sequence));
    batch.source = shard_->entry.source;
    ++position.steps_on_shard;
    position.tokens_on_shard += batch.token_count();
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
    if (!position.started) {
      position_ = position;
      position_.shard_id = ring_.front().id;
      return {};
    }
    if (find(position.shard_id) == ring_.size()) {
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
    last_rotation_ = RotationReason::Stay;
    return {};
  }

  std::optional<BatchRecord> record() const override {
    if (!position_.started) return std::nullopt;
    return record_of(position_);
  }
  RotationReason last_rotation() const override { return last_rotation_; }

 private:
  std::size_t find(ShardId id) const {
    const auto at =
        std::find_if(ring_.begin(), ring_.end(), [id](const ShardEntry& s) { return s.id == id; });
    return static_cast<std::size_t>(at - ring_.begin());
  }
  const ShardEntry& after(ShardId id) const { return ring_[(find(id) + 1) % ring_.size()]; }

  RotationReason begin_round(std::uint64_t round, LoaderPosition* position) const {
    RotationReason reason = RotationReason::Stay;
    if (position->started) {
      const ShardProgress progress{position->steps_on_shard, position->tokens_on_shard,
                                   ring_[find(position->shard_id)].tokens, position->recent_losses};
      reason = should_rotate(progress, options_.rotation);
    }
    if (reason != RotationReason::Stay) {
      position->shard_id = after(position->shard_id).id;
      ++position->shard_index;
      position->steps_on_shard = 0;
      position->tokens_on_shard = 0;
      position->recent_losses.clear();
    }
    position->round = round;
    position->round_offset = position->tokens_on_shard;
    position->started = true;
    return reason;
  }

  BatchRecord record_of(const LoaderPosition& position) const {
    const ShardEntry& shard = ring_[find(position.shard_id)];
    BatchRecord record{position.round,        shard.id,
                       shard.sha256,          dataset_.manifest().tokenizer_hash,
                       position.round_offset, options_.batch_tokens};
    if (options_.own_batches) record.driver = options_.node_id;
    return record;
  }

  // A full queue only means that the next shard is fetched when it is needed.
  void fetch_ahead(const LoaderPosition& position) {
    if (io_ == nullptr || ring_.size() < 2) return;
    Dataset* dataset = &dataset_;
    const bool posted =
        io_->post([dataset, id = after(position.shard_id).id, cancel = cancel_fetch_.token()] {
          if (!cancel.cancelled()) (void)dataset->prefetch(id, cancel);
        });
    (void)posted;
  }

  Dataset& dataset_;
  const LoaderOptions options_;
  const std::vector<ShardEntry> ring_;  // this driver's shards, in the order in which it takes them
  Executor* const io_;
  CancelSource cancel_fetch_;
  LoaderPosition position_;
  RotationReason last_rotation_ = RotationReason::Stay;
  std::shared_ptr<const ShardTokens> shard_;
};

// Every shard of a solo node in ring order; the first m of the hash sequence in a network.
std::vector<ShardEntry> shards_of_driver(const std::vector<ShardEntry>& usable,
                                         const LoaderOptions& options) {
  const auto total = static_cast<std::uint32_t>(usable.size());
  std::vector<ShardEntry> ring;
  if (options.beacon) {
    for (const std::uint32_t at :
         network_shard_order(*options.beacon, options.node_id, total, options.shard_count)) {
      ring.push_back(usable[at]);
    }
    return ring;
  }
  const std::uint32_t first = solo_first_shard(options.node_id, total);
  for (std::uint32_t i = 0; i < total; ++i) ring.push_back(usable[(first + i) % total]);
  return ring;
}

Expected<void> check_options(const LoaderOptions& options) {
  if (options.sequence == 0 || options.batch_tokens == 0 || options.steps_per_round == 0 ||
      options.shard_count == 0) {
    return make_error(ErrorCode::InvalidArgument,
                      "sequence, batch tokens, steps per round and shard count must be at least 1");
  }
  if (options.rotation.window < 2 || options.rotation.window > max_window ||
      options.rotation.window % 2 != 0) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the rotation window must be even, from 2 to {}", max_window));
  }
  return {};
}

}  // namespace

std::string LoaderPosition::to_json() const {
  json losses = json::array();
  for (const float loss : recent_losses) losses.push_back(static_cast<double>(loss));
  const json value = {{"round", round},
                      {"shard_id", shard_id},
                      {"shard_index", shard_index},
                      {"round_offset", round_offset},
                      {"steps_on_shard", steps_on_shard},
                      {"tokens_on_shard", tokens_on_shard},
                      {"recent_losses", std::move(losses)},
                      {"started", started}};
  return value.dump();
}

Expected<LoaderPosition> LoaderPosition::from_json(std::string_view text) {
  NS_ASSIGN_OR_RETURN(const json value, detail::parse_object(as_bytes(text), max_position_bytes, where));
  const detail::Fields fields(value, where);
  LoaderPosition position;
  NS_ASSIGN_OR_RETURN(position.round, fields.number("round"));
  NS_ASSIGN_OR_RETURN(const std::uint64_t id, fields.number("shard_id", 0xffffffffu));
  position.shard_id = static_cast<ShardId>(id);
  NS_ASSIGN_OR_RETURN(const std::uint64_t index, fields.number("shard_index", 0xffffffffu));
  position.shard_index = static_cast<std::uint32_t>(index);
  NS_ASSIGN_OR_RETURN(position.round_offset, fields.number("round_offset"));
  NS_ASSIGN_OR_RETURN(position.steps_on_shard, fields.number("steps_on_shard"));
  NS_ASSIGN_OR_RETURN(position.tokens_on_shard, fields.number("tokens_on_shard"));
  NS_ASSIGN_OR_RETURN(position.started, fields.flag("started"));
  NS_ASSIGN_OR_RETURN(const json* losses, fields.array("recent_losses", max_window));
  for (const json& loss : *losses) {
    const double number = loss.is_number() ? loss.get<double>() : std::nan("");
    if (!std::isfinite(static_cast<float>(number))) {
      return fields.wrong("recent_losses", "has a value that is not a finite number");
    }
    position.recent_losses.push_back(static_cast<float>(number));
  }
  return position;
}

Expected<std::unique_ptr<Loader>> Loader::create(Dataset& dataset, const LoaderOptions& options,
                                                 Executor* io) {
  NS_RETURN_IF_ERROR(check_options(options));
  std::vector<ShardEntry> usable;
  std::uint64_t most = 0;
  for (const ShardEntry& shard : dataset.shards(Split::Train)) {
    most = std::max(most, shard.tokens);
    if (shard.tokens > options.sequence) usable.push_back(shard);
  }
  if (most == 0) {
    return make_error(ErrorCode::NotFound, "there is no text to train on yet; add text with --text PATH");
  }
  if (usable.empty()) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("the text is too small: its largest shard has {} tokens, and one sequence requires {}; "
                    "add more text with --text PATH",
                    most, std::uint64_t{options.sequence} + 1));
  }
  return std::unique_ptr<Loader>(
      std::make_unique<PlanLoader>(dataset, options, shards_of_driver(usable, options), io));
}

}  // namespace neuroshard::data
