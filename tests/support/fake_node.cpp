#include "tests/support/fake_node.h"

#include <algorithm>

namespace neuroshard::testing {
namespace {

// As the history keeps them: buckets as wide as a power of two, at multiples of their width, the narrowest
// that are not more than was asked for; least, most, mean and count of several values are those of all of
// them.
std::vector<node::SeriesBucket> merged_buckets(const std::vector<node::SeriesBucket>& all,
                                               const node::SeriesQuery& query) {
  std::vector<node::SeriesBucket> result;
  if (all.empty()) return result;
  const std::uint64_t newest = all.back().first_step + all.back().width - 1;
  const std::uint64_t from = std::max(all.front().first_step, query.from_step);
  const std::uint64_t to = query.to_step == 0 ? newest : std::min(newest, query.to_step - 1);
  if (from > to) return result;
  unsigned level = 0;
  while ((to >> level) - (from >> level) + 1 > query.buckets) ++level;
  for (const node::SeriesBucket& one : all) {
    // The outer buckets may reach beyond the range, as the history's do.
    if ((one.first_step >> level) < (from >> level) || (one.first_step >> level) > (to >> level)) continue;
    const std::uint64_t at = one.first_step >> level << level;
    if (result.empty() || result.back().first_step != at) {
      result.push_back(one);
      result.back().first_step = at;
      result.back().width = std::max(one.width, std::uint64_t{1} << level);
      continue;
    }
    node::SeriesBucket& into = result.back();
    const auto before = static_cast<double>(into.count), more = static_cast<double>(one.count);
    into.mean = (into.mean * before + one.mean * more) / (before + more);
    into.least = std::min(into.least, one.least);
    into.most = std::max(into.most, one.most);
    into.count += one.count;
  }
  return result;
}

}  // namespace

std::vector<node::SessionSensors> FakeNode::reports() const {
  std::lock_guard lock(values_);
  return reports_;
}

std::shared_ptr<const node::Snapshot> FakeNode::snapshot() const {
  return published();
}

std::unique_ptr<node::Subscription> FakeNode::subscribe(node::EventHandler on_event) {
  return add_subscriber(std::move(on_event));
}

Expected<void> FakeNode::known(const std::string& checkpoint) const {
  for (const node::CheckpointEntry& entry : checkpoints)
    if (entry.name == checkpoint) return {};
  return make_error(ErrorCode::NotFound, "there is no checkpoint " + checkpoint);
}

void FakeNode::remove_checkpoint(const std::string& name) {
  std::erase_if(checkpoints, [&name](const node::CheckpointEntry& entry) { return entry.name == name; });
  emit(node::CheckpointsChanged{});
}

Expected<node::CommandId> FakeNode::start_training(const node::TrainingPlan& plan) {
  return accept("train " + plan.text_path + " " + std::to_string(plan.steps) + " " +
                std::to_string(plan.until_step));
}
Expected<node::CommandId> FakeNode::stop_training() {
  return accept("stop training");
}
Expected<node::CommandId> FakeNode::set_contributing(bool on) {
  return accept(on ? "contribute on" : "contribute off", [on](node::Snapshot& next) {
    next.contributing = on;
    next.state = on ? node::RunState::Training : node::RunState::Paused;
    next.pause_reasons.clear();
    if (on) next.snoozed_until.reset();
    if (!on) next.pause_reasons.push_back({"user", "you switched contributing off", std::nullopt, false});
  });
}
Expected<node::CommandId> FakeNode::snooze(std::chrono::seconds duration) {
  if (duration > node::max_snooze) return make_error(ErrorCode::InvalidArgument, "too long");
  return accept("snooze " + std::to_string(duration.count()));
}
Expected<node::CommandId> FakeNode::finish() {
  return accept("finish");
}
Expected<node::CommandId> FakeNode::override_rules(std::chrono::seconds duration) {
  return accept("override " + std::to_string(duration.count()));
}
Expected<void> FakeNode::report_session(const node::SessionSensors& sensors) {
  std::lock_guard lock(values_);
  reports_.push_back(sensors);
  return {};
}
Expected<node::CommandId> FakeNode::save_checkpoint() {
  return accept("save");
}
Expected<node::CommandId> FakeNode::restore_checkpoint(const std::string& name) {
  NS_RETURN_IF_ERROR(known(name));
  return accept("restore " + name, [](node::Snapshot& next) {
    next.undo = {next.checkpoint.newest, next.training.step};
  });
}
Expected<node::CommandId> FakeNode::undo_restore() {
  return accept("undo", [](node::Snapshot& next) { next.undo = {}; });
}
Expected<node::CommandId> FakeNode::verify_checkpoint(const std::string& name) {
  NS_RETURN_IF_ERROR(known(name));
  return accept("verify " + name, {}, [this, name]() -> node::CommandResult {
    node::VerifyResult result = verified;
    if (result.name.empty()) result.name = name;
    for (node::CheckpointEntry& entry : checkpoints)
      if (entry.name == name) entry.intact = result.intact;
    emit(node::CheckpointsChanged{});
    return result;
  });
}
Expected<node::CommandId> FakeNode::compare_checkpoints(const std::string& first, const std::string& second) {
  NS_RETURN_IF_ERROR(known(first));
  NS_RETURN_IF_ERROR(known(second));
  return accept("compare " + first + " " + second, {}, [this, first, second]() -> node::CommandResult {
    node::CheckpointComparison result = comparison;
    if (result.first.name.empty()) result.first.name = first;
    if (result.second.name.empty()) result.second.name = second;
    return result;
  });
}
Expected<node::CommandId> FakeNode::pin_checkpoint(const std::string& name, bool pinned) {
  NS_RETURN_IF_ERROR(known(name));
  return accept((pinned ? "pin " : "unpin ") + name, {}, [this, name, pinned]() -> node::CommandResult {
    for (node::CheckpointEntry& entry : checkpoints)
      if (entry.name == name) entry.pinned = pinned;
    emit(node::CheckpointsChanged{});
    return {};
  });
}
Expected<node::CommandId> FakeNode::delete_checkpoint(const std::string& name) {
  NS_RETURN_IF_ERROR(known(name));
  return accept("delete " + name, {}, [this, name]() -> node::CommandResult {
    remove_checkpoint(name);
    return {};
  });
}
Expected<node::CommandId> FakeNode::prune_checkpoints(const node::PrunePolicy& policy) {
  return accept("prune " + std::to_string(policy.keep_newest), {}, [this]() -> node::CommandResult {
    for (const std::string& name : prune.remove) remove_checkpoint(name);
    return {};
  });
}
Expected<node::CommandId> FakeNode::export_checkpoint(const std::string& name, const std::string& format,
                                                      const std::string& path) {
  NS_RETURN_IF_ERROR(known(name));
  return accept("export " + name + " " + format + " " + path);
}
Expected<node::CommandId> FakeNode::import_checkpoint(const std::string& path) {
  return accept("import " + path, {}, [this]() -> node::CommandResult {
    emit(node::CheckpointsChanged{});
    return node::ImportResult{"imported"};
  });
}
Expected<node::CommandId> FakeNode::generate(const node::GenerateRequest& request,
                                             node::TextHandler on_text) {
  if (request.prompt.size() > node::max_prompt_bytes)
    return make_error(ErrorCode::InvalidArgument, "the prompt is too long");
  {
    std::lock_guard lock(values_);
    generated = request;
  }
  const auto effect = [this, on_text]() -> node::CommandResult {
    node::GenerateResult result;
    result.stopped_by = "length";
    for (const std::string& piece : text) {
      if (on_text) on_text({piece, {}, false});
      ++result.tokens;
    }
    for (const node::TextPiece& piece : pieces) {
      if (on_text) on_text(piece);
      if (!piece.of_prompt) result.tokens += static_cast<std::uint32_t>(piece.tokens.size());
    }
    return result;
  };
  return accept("generate " + request.prompt, {}, effect, on_text);
}
Expected<void> FakeNode::cancel(node::CommandId id) {
  note_command("cancel " + std::to_string(id));
  NodeScript::finish(id, make_error(ErrorCode::Cancelled, "cancelled"));
  return {};
}
Expected<node::CommandId> FakeNode::set_setting(const std::string& name, const std::string& value) {
  return accept("set " + name + " " + value);
}
Expected<node::CommandId> FakeNode::request_shutdown() {
  return accept("shutdown");
}

Expected<void> FakeNode::query_series(const node::SeriesQuery& query, node::Reply<node::Series> reply) {
  if (query.buckets < 1 || query.buckets > node::max_series_buckets)
    return make_error(ErrorCode::InvalidArgument, "ask for 1 to 4096 entries");
  node::Series found{query.name, {}};
  if (const auto at = series.find(query.name); at != series.end()) {
    found.buckets = merged_buckets(at->second, query);
  } else if (query.name == "loss") {
    for (std::size_t i = 0; i < query.buckets; ++i) {
      const auto step = static_cast<double>(i + 1);
      found.buckets.push_back({i, 1, 1, step, step, step});
    }
  }
  return answer<node::Series>("series " + query.name, std::move(reply), std::move(found));
}

Expected<void> FakeNode::query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) {
  node::LogPage page;
  for (const node::LogEntry& entry : logs) {
    if (entry.sequence <= query.after || entry.record.level < query.least) continue;
    if (page.entries.size() == query.limit) {
      page.more = true;
      break;
    }
    page.entries.push_back(entry);
  }
  const std::uint64_t newest = logs.empty() ? 0 : logs.back().sequence;
  page.next = page.entries.empty() ? std::min(query.after, newest) : page.entries.back().sequence;
  if (query.after != 0 && !logs.empty() && logs.front().sequence > query.after + 1)
    page.dropped = logs.front().sequence - query.after - 1;
  return answer<node::LogPage>("logs", std::move(reply), std::move(page));
}

Expected<void> FakeNode::query_checkpoints(const node::CheckpointQuery& query,
                                           node::Reply<node::CheckpointPage> reply) {
  auto at = checkpoints.begin();
  if (!query.after.empty()) {
    at = std::find_if(checkpoints.begin(), checkpoints.end(),
                      [&query](const auto& entry) { return entry.name == query.after; });
    if (at != checkpoints.end()) ++at;
  }
  node::CheckpointPage page;
  for (; at != checkpoints.end() && page.entries.size() < query.limit; ++at) page.entries.push_back(*at);
  page.more = at != checkpoints.end();
  return answer<node::CheckpointPage>("checkpoints", std::move(reply), std::move(page));
}

Expected<void> FakeNode::query_prune(const node::PrunePolicy&, node::Reply<node::PrunePreview> reply) {
  return answer<node::PrunePreview>("prune", std::move(reply), prune);
}

Expected<void> FakeNode::query_slots(node::Reply<std::vector<node::SlotEntry>> reply) {
  return answer<std::vector<node::SlotEntry>>("slots", std::move(reply), slots);
}

Expected<void> FakeNode::query_experts(node::Reply<std::vector<node::ExpertLoad>> reply) {
  return answer<std::vector<node::ExpertLoad>>("experts", std::move(reply), experts);
}

Expected<void> FakeNode::query_data(node::Reply<node::DataView> reply) {
  return answer<node::DataView>("data", std::move(reply), data);
}

Expected<void> FakeNode::query_network(node::Reply<node::NetworkView> reply) {
  return answer<node::NetworkView>("network", std::move(reply), network);
}
Expected<void> FakeNode::query_invitation(bool with_vote, node::Reply<node::Invitation> reply) {
  node::Invitation made;
  {
    std::lock_guard lock(values_);
    invited.push_back(with_vote);
    made.may_vote = with_vote && network.can_let_vote;
    made.link = network.invitation + (made.may_vote ? "-vote" + std::to_string(invited.size()) : "");
    if (with_vote && !made.may_vote) made.no_vote = "this node's wallet has no vote";
  }
  return answer<node::Invitation>("invitation", std::move(reply), std::move(made));
}
Expected<void> FakeNode::http_key(node::HttpKeyAction action, node::Reply<node::HttpKey> reply) {
  node::HttpKey now;
  {
    std::lock_guard lock(values_);
    if (action == node::HttpKeyAction::Renew) http_key_now.key = "ns-fedcba9876543210";
    if (action == node::HttpKeyAction::Remove) http_key_now.key.clear();
    now = http_key_now;
  }
  return answer<node::HttpKey>("http_key", std::move(reply), std::move(now));
}
Expected<void> FakeNode::query_rounds(node::Reply<node::RoundsReport> reply) {
  return answer<node::RoundsReport>("rounds", std::move(reply), rounds);
}
Expected<void> FakeNode::test_reachability() {
  std::lock_guard lock(values_);
  network.testing = true;
  return {};
}

Expected<node::CommandId> FakeRecords::export_history(const std::string& format, const std::string& path) {
  return script_.accept("export history " + format + " " + path);
}
Expected<void> FakeRecords::query_evaluations(const node::EvaluationQuery& query,
                                              node::Reply<node::EvaluationPage> reply) {
  node::EvaluationPage page;
  page.more = evaluations.size() > query.limit;
  for (std::size_t i = 0; i < std::min(query.limit, evaluations.size()); ++i)
    page.entries.push_back(evaluations[i]);
  return script_.answer<node::EvaluationPage>("evaluations", std::move(reply), std::move(page));
}

Expected<void> FakeNode::query_tokens(const std::string& bytes,
                                      node::Reply<std::vector<node::TokenPiece>> reply) {
  if (bytes.size() > node::max_token_text)
    return make_error(ErrorCode::InvalidArgument, "the text is too long");
  std::vector<node::TokenPiece> tokens;
  for (const char byte : bytes) tokens.push_back({static_cast<unsigned char>(byte), std::string(1, byte)});
  return answer<std::vector<node::TokenPiece>>("tokens", std::move(reply), std::move(tokens));
}

Expected<void> FakeNode::query_settings(node::Reply<std::vector<node::SettingEntry>> reply) {
  return answer<std::vector<node::SettingEntry>>("settings", std::move(reply), settings);
}

}  // namespace neuroshard::testing
