#include "core/engine/detail/engine_node.h"

#include <utility>

#include "core/base/check.h"
#include "core/crypto/keys.h"
#include "core/platform/file/directory_lock.h"

namespace neuroshard::engine {

std::unique_ptr<Engine> Engine::start(std::unique_ptr<config::DataDirectory> directory,
                                      EngineServices services, EngineOptions options) {
  return std::make_unique<detail::EngineNode>(std::move(directory), services, std::move(options));
}

}  // namespace neuroshard::engine

namespace neuroshard::engine::detail {
namespace {

constexpr std::size_t core_queue = 1024;  // a flood of commands is refused with Busy

node::ModelView model_view(const config::ConsensusPart& consensus) {
  const compute::ModelShape shape = config::model_shape(consensus);
  node::ModelView view;
  view.layers = shape.layers;
  view.hidden = shape.hidden;
  view.experts = shape.experts;
  view.experts_per_token = shape.experts_per_token;
  view.vocab = shape.vocab;
  view.sequence = shape.sequence;
  view.parameters = compute::model_parameter_count(shape);
  view.active_parameters = compute::active_parameter_count(shape);
  return view;
}

std::shared_ptr<TrainingHistory> open_history(const config::DataDirectory& directory,
                                              const EngineServices& services) {
  auto history = TrainingHistory::open(services.files, directory.state_database_path(), services.clock);
  NS_CHECK(history.ok());  // without a file, it is kept in memory
  return std::move(*history);
}

// The values of the snapshot that never change.
void describe(const config::DataDirectory& directory, const EngineServices& services,
              const EngineOptions& options, node::Snapshot* snapshot) {
  const config::NetworkProfile& profile = directory.profile();
  snapshot->identity = {to_hex(crypto::node_id(directory.node_key().public_key())), directory.wallet_id(),
                        directory.instance_id(), directory.wallet_protected()};
  snapshot->program = {options.version,
                       static_cast<std::uint64_t>(platform::read_lock_holder(directory.path()).pid),
                       services.clock.wall_now(),
                       directory.path(),
                       profile.consensus.name,
                       to_hex(directory.network_id()),
                       config::network_notice(profile)};
  snapshot->model = model_view(profile.consensus);
}

// Of a node that trains alone.
class NoDecisions final : public node::MemberDecisions {
 public:
  Expected<void> continue_network(const node::ContinuationRequest&,
                                  node::Reply<node::ContinuationReply>) override {
    return make_error(ErrorCode::Unsupported, "this node trains alone: it is in no network that could go on");
  }
  Expected<void> revoke_node(const node::RevocationRequest&, node::Reply<node::RevocationReply>) override {
    return make_error(ErrorCode::Unsupported, "this node trains alone: no other node counts here");
  }
  Expected<void> query_what_if(const node::WhatIfQuery&, node::Reply<node::WhatIf>) override {
    return make_error(ErrorCode::Unsupported,
                      "this node trains alone: no network depends on its memory. Join one with "
                      "neuroshardd run --join LINK, and ask again");
  }
};

}  // namespace

EngineNode::EngineNode(std::unique_ptr<config::DataDirectory> directory, EngineServices services,
                       EngineOptions options)
    : EngineParts(options.decisions ? options.decisions : std::make_shared<NoDecisions>()),
      directory_(std::move(directory)),
      services_(services),
      options_(std::move(options)),
      core_(make_thread_executor("ns-core", core_queue)),
      arrivals_(std::make_shared<net::Mailbox>(*core_)),
      publisher_(services_.clock, {options_.rounds_view, options_.http_view, options_.network}),
      jobs_(*arrivals_),
      commands_(*core_, *arrivals_, jobs_, publisher_),
      context_{*directory_, services_, options_, open_history(*directory_, services_), *core_, *arrivals_,
               publisher_,  jobs_,     commands_},
      reader_(*core_, commands_),
      files_(context_),
      host_(context_),
      settings_(context_),
      contribute_(context_, reader_, settings_),
      model_(context_, reader_),
      history_(*context_.history, reader_),
      resources_(context_, reader_),
      training_(context_, host_, contribute_, model_),
      restore_(context_, files_, host_, training_),
      checkpoints_(context_, files_, reader_),
      records_(context_, files_, reader_),
      text_(context_, host_, training_) {
  describe(*directory_, services_, options_, &publisher_.draft());
  // Most urgent first.
  jobs_.add_source([this] { return settings_.start_next(); });
  jobs_.add_source([this] { return restore_.start_next(); });
  jobs_.add_source([this] { return training_.end_if_due(); });
  jobs_.add_source([this] { return training_.pause_if_due(); });
  jobs_.add_source([this] { return text_.start_next_turn(); });
  jobs_.add_source([this] { return end_if_due(); });
  jobs_.add_source([this] { return text_.drop_model_if_due(); });
  jobs_.add_source([this] { return training_.start_next(); });
  restore_.open();
  contribute_.open();
  for (const node::Alert& alert : options_.alerts) publisher_.raise(alert);
  publisher_.look_at_http();
  publisher_.publish();
  look_ = [this] {
    if (jobs_.ended()) return;
    contribute_.look();
    if (training_.finish_if_round_is_over()) jobs_.advance();  // a rule may have paused it
    if (jobs_.ended()) return;                                 // by one of the calls above
    if (options_.rounds_alerts) publisher_.replace_rounds_alerts(options_.rounds_alerts());
    publisher_.look_at_http();
    resources_.look();
    look_timer_ = core_->post_after(options_.resource_period, look_);
  };
  if (!core_->post(look_)) services_.logger.warning("engine", "the core thread did not start");
}

EngineNode::~EngineNode() {
  static_cast<void>(request_shutdown().ok());  // refused when a shutdown has begun
  // The final checkpoint first; only then may the threads end.
  ended_.get_future().wait();
  jobs_.stop();
  contribute_.stop();
  files_.stop();
  reader_.stop();
  core_.reset();
}

bool EngineNode::end_if_due() {
  if (!commands_.shutting_down()) return false;
  // Cancelled work on files starts the next job when it has ended.
  if (commands_.has_cancellable()) return true;
  jobs_.end();
  look_timer_.reset();
  resources_.end();
  text_.end();
  contribute_.end();
  publisher_.set_state(node::RunState::Stopping);
  training_.end();
  commands_.done_all(shutdowns_, training_.shutdown_error());
  publisher_.emit(node::Ended{training_.shutdown_error()});
  ended_.set_value();
  return true;
}

std::shared_ptr<const node::Snapshot> EngineNode::snapshot() const {
  return publisher_.snapshot();
}

std::unique_ptr<node::Subscription> EngineNode::subscribe(node::EventHandler on_event) {
  return publisher_.subscribe(std::move(on_event));
}

Expected<node::CommandId> EngineNode::start_training(const node::TrainingPlan& plan) {
  return training_.start(plan);
}

Expected<node::CommandId> EngineNode::stop_training() {
  return training_.stop();
}

Expected<node::CommandId> EngineNode::set_contributing(bool on) {
  return contribute_.set_contributing(on);
}

Expected<node::CommandId> EngineNode::snooze(std::chrono::seconds duration) {
  return contribute_.snooze(duration);
}

Expected<node::CommandId> EngineNode::finish() {
  return training_.finish();
}

Expected<node::CommandId> EngineNode::override_rules(std::chrono::seconds duration) {
  return contribute_.override_rules(duration);
}

Expected<void> EngineNode::report_session(const node::SessionSensors& sensors) {
  return contribute_.report_session(sensors);
}

Expected<node::CommandId> EngineNode::save_checkpoint() {
  return training_.save();
}

Expected<node::CommandId> EngineNode::restore_checkpoint(const std::string& name) {
  return restore_.restore(name);
}

Expected<node::CommandId> EngineNode::undo_restore() {
  return restore_.undo();
}

Expected<node::CommandId> EngineNode::verify_checkpoint(const std::string& name) {
  return checkpoints_.verify(name);
}

Expected<node::CommandId> EngineNode::compare_checkpoints(const std::string& first,
                                                          const std::string& second) {
  return checkpoints_.compare(first, second);
}

Expected<node::CommandId> EngineNode::pin_checkpoint(const std::string& name, bool pinned) {
  return checkpoints_.pin(name, pinned);
}

Expected<node::CommandId> EngineNode::delete_checkpoint(const std::string& name) {
  return checkpoints_.remove(name);
}

Expected<node::CommandId> EngineNode::prune_checkpoints(const node::PrunePolicy& policy) {
  return checkpoints_.prune(policy);
}

Expected<node::CommandId> EngineNode::export_checkpoint(const std::string& name, const std::string& format,
                                                        const std::string& path) {
  return checkpoints_.export_to(name, format, path);
}

Expected<node::CommandId> EngineNode::import_checkpoint(const std::string& path) {
  return checkpoints_.import_from(path);
}

Expected<node::CommandId> EngineNode::generate(const node::GenerateRequest& request,
                                               node::TextHandler on_text) {
  return text_.generate(request, std::move(on_text));
}

Expected<void> EngineNode::cancel(node::CommandId id) {
  commands_.cancel(id);
  return {};
}

Expected<node::CommandId> EngineNode::set_setting(const std::string& name, const std::string& value) {
  NS_ASSIGN_OR_RETURN(SettingChange change, parse_setting_change(name, value));
  if (change.id == config::Setting::Contribute) return set_contributing(change.value.word == "on");
  return settings_.request(std::move(change));
}

Expected<node::CommandId> EngineNode::request_shutdown() {
  return commands_.accept_shutdown([this](node::CommandId id) {
    shutdowns_.push_back(id);
    training_.shut_down();
    publisher_.set_state(node::RunState::Stopping);
  });
}

Expected<void> EngineNode::query_series(const node::SeriesQuery& query, node::Reply<node::Series> reply) {
  return history_.series(query, std::move(reply));
}

Expected<void> EngineNode::query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) {
  return history_.logs(query, std::move(reply));
}

Expected<void> EngineNode::query_checkpoints(const node::CheckpointQuery& query,
                                             node::Reply<node::CheckpointPage> reply) {
  return checkpoints_.query(query, std::move(reply));
}

Expected<void> EngineNode::query_prune(const node::PrunePolicy& policy,
                                       node::Reply<node::PrunePreview> reply) {
  return checkpoints_.preview_prune(policy, std::move(reply));
}

Expected<void> EngineNode::query_slots(node::Reply<std::vector<node::SlotEntry>> reply) {
  return model_.slots(std::move(reply));
}

Expected<void> EngineNode::query_experts(node::Reply<std::vector<node::ExpertLoad>> reply) {
  return model_.experts(std::move(reply));
}

Expected<void> EngineNode::query_data(node::Reply<node::DataView> reply) {
  return model_.data(std::move(reply));
}

Expected<void> EngineNode::query_network(node::Reply<node::NetworkView> reply) {
  return commands_.ask([this, reply = std::move(reply)] {
    if (options_.network == nullptr) return reply(node::NetworkView{});
    options_.network->view(reply);
  });
}

Expected<void> EngineNode::query_invitation(bool with_vote, node::Reply<node::Invitation> reply) {
  if (options_.network == nullptr)
    return make_error(ErrorCode::Unsupported, "this node is in no network, so it can't invite others");
  return commands_.ask(
      [this, with_vote, reply = std::move(reply)] { options_.network->invite(with_vote, reply); });
}

Expected<void> EngineNode::http_key(node::HttpKeyAction action, node::Reply<node::HttpKey> reply) {
  if (!options_.http_key)
    return make_error(ErrorCode::Unsupported,
                      "this node has no local HTTP server: it was not started by run");
  return commands_.ask([this, action, reply = std::move(reply)] { options_.http_key(action, reply); });
}

Expected<void> EngineNode::query_rounds(node::Reply<node::RoundsReport> reply) {
  return commands_.ask([this, reply = std::move(reply)] {
    if (!options_.rounds_report) return reply(node::RoundsReport{});
    options_.rounds_report(reply);
  });
}

Expected<void> EngineNode::test_reachability() {
  if (options_.network == nullptr)
    return make_error(ErrorCode::Unsupported, "this node is in no network, so it can't ask other nodes");
  options_.network->test_reachability();
  return {};
}

Expected<void> EngineNode::query_tokens(const std::string& text,
                                        node::Reply<std::vector<node::TokenPiece>> reply) {
  return model_.tokens(text, std::move(reply));
}

Expected<void> EngineNode::query_settings(node::Reply<std::vector<node::SettingEntry>> reply) {
  return settings_.query(std::move(reply));
}

}  // namespace neuroshard::engine::detail
