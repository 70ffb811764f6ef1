#include "core/engine/detail/session_host.h"

#include <utility>

#include "core/compute/stage.h"
#include "core/engine/detail/data_view.h"

namespace neuroshard::engine::detail {

node::EvaluationView evaluation_view(std::uint64_t step, const Validation& validation) {
  node::EvaluationView view{step, validation.loss, std::nullopt};
  if (validation.bits_per_byte > 0) view.bits_per_byte = validation.bits_per_byte;
  return view;
}

SessionHost::SessionHost(const EngineContext& context)
    : context_(context), router_(config::model_shape(context.directory.profile().consensus)) {}

SessionHost::~SessionHost() = default;

Expected<SessionHost::Ready> SessionHost::open(const PrepareOptions& options, std::uint64_t evaluate_at) {
  text_.reset();
  close();
  ++weights_;
  auto ready = [&]() -> Expected<Ready> {
    Ready result;
    NS_ASSIGN_OR_RETURN(result.info, open_training(options));
    if (evaluate_at != 0 && result.info.step >= evaluate_at) {
      const auto validation = training_->evaluate(false, options.cancel);
      if (validation.ok())
        result.evaluation = evaluation_view(result.info.step, *validation);
      else if (validation.error().code != ErrorCode::Busy)  // its text is still being fetched
        return validation.error();
    }
    return result;
  }();
  if (!ready.ok()) {
    const bool away = training_ && training_->text_is_away();
    close();
    if (!away) return ready;
    Ready later;
    later.away = ready.error();
    return later;
  }
  ready->restored_at = saved_at(ready->info.restored_from);
  if (const data::Dataset* dataset = training_->dataset()) {
    ready->data = describe_data(context_.directory, context_.services.files, *dataset);
    ready->tokenizer = std::make_shared<const data::Tokenizer>(dataset->tokenizer());
  }
  return ready;
}

Expected<SessionInfo> SessionHost::open_training(const PrepareOptions& options) {
  const EngineOptions& engine = context_.options;
  TrainingServices services{context_.services.files, context_.services.clock, context_.services.logger};
  services.history = context_.history;
  services.rounds = engine.rounds != nullptr;
  if (engine.rounds) services.no_memory = [rounds = engine.rounds] { rounds->lacks_memory(); };
  services.pipeline = engine.pipeline;
  services.peers = engine.data_peers;
  services.held_checkpoints = engine.held_checkpoints;
  services.disk = engine.disk;
  NS_ASSIGN_OR_RETURN(training_, engine.make_session(context_.directory, services));
  NS_ASSIGN_OR_RETURN(SessionInfo info, training_->prepare(options));
  if (RoundModel* model = training_->round_model(); engine.rounds && model != nullptr)
    NS_RETURN_IF_ERROR(engine.rounds->attach(*model));
  return info;
}

WallTime SessionHost::saved_at(const std::string& checkpoint) const {
  if (checkpoint.empty()) return {};
  const auto entry = context_.catalogue().find(checkpoint);
  return entry.ok() ? entry->manifest.saved_at : WallTime{};
}

Expected<SessionHost::Turn> SessionHost::step(std::uint32_t threads, std::uint64_t target, bool has_text,
                                              const CancelToken& cancel) {
  training_->limit_threads(threads);
  ++weights_;
  const std::shared_ptr<RoundTrainer>& rounds = context_.options.rounds;
  const std::shared_ptr<PipelineTrainer>& pipeline = context_.options.pipeline;
  RoundTrainer::Turn turn = RoundTrainer::Turn::Train;
  if (rounds) {
    NS_ASSIGN_OR_RETURN(turn, rounds->before_step());
    if (turn == RoundTrainer::Turn::Rest) {
      if (pipeline) pipeline->rest();
      return Turn{};
    }
    if (turn == RoundTrainer::Turn::OtherModel)
      return Turn{std::nullopt, rounds->wanted_model(), std::nullopt};
  }
  if (!has_text && !pipeline) {
    rounds->wait_for_request();
    return Turn{};
  }
  if (pipeline) pipeline->set_assisting(!has_text || turn == RoundTrainer::Turn::Assist);
  auto stepped = training_->step(cancel);
  if (!stepped.ok() && training_->text_is_away()) {
    if (pipeline) pipeline->rest();
    return Turn{std::nullopt, std::nullopt, std::move(stepped).error()};
  }
  if (!stepped.ok() && pipeline && stepped.error().code == ErrorCode::Timeout) return Turn{};
  NS_ASSIGN_OR_RETURN(StepReport report, std::move(stepped));
  if (rounds) rounds->after_step(report.tokens);
  if (report.step == target && !report.validation) {
    if (auto validation = training_->evaluate(false, cancel); validation.ok())
      report.validation = *validation;
  }
  if (!report.router_load.empty()) {
    std::vector<float> bias(report.router_load.size());
    training_->stage().router_bias(bias.data());
    router_.add(report.router_load, bias);
  }
  return Turn{Step{std::move(report), router_.view(), training_->shard_in_use()}, std::nullopt, std::nullopt};
}

Expected<std::string> SessionHost::save() {
  return training_->save();
}

Expected<void> SessionHost::finish() {
  if (!training_) return {};
  return training_->finish();
}

void SessionHost::close() {
  if (context_.options.rounds) context_.options.rounds->detach();
  training_.reset();
}

std::uint64_t SessionHost::weights() const {
  if (context_.options.pipeline) return context_.options.pipeline->texts().round();
  return weights_;
}

std::uint64_t SessionHost::text_step() const {
  if (context_.options.pipeline) return weights() * context_.options.rounds->inner_steps();
  return training_ ? training_->steps_done() : text_->steps_done();
}

std::optional<checkpoint::Entry> SessionHost::newest_checkpoint() const {
  const auto entries = context_.catalogue().list();
  if (!entries.ok() || entries->empty()) return std::nullopt;
  return entries->front();
}

Expected<TrainingSession*> SessionHost::open_for_text(const CancelToken& interrupt,
                                                      const std::string& checkpoint) {
  if (training_ && !checkpoint.empty())
    return make_error(
        ErrorCode::Unavailable,
        "the model that trains is in memory, and another checkpoint would need as much again: finish "
        "training first, then other checkpoints can answer");
  if (training_) {
    if (context_.options.pipeline) context_.options.pipeline->texts().set_interrupt(interrupt);
    return training_.get();
  }
  if (text_ && text_checkpoint_ == checkpoint) return text_.get();
  text_.reset();  // its memory first
  PrepareOptions options;
  options.mode = SessionMode::Generate;
  options.checkpoint = checkpoint;
  options.cancel = interrupt;
  TrainingServices services{context_.services.files, context_.services.clock, context_.services.logger};
  services.history = context_.history;
  NS_ASSIGN_OR_RETURN(auto opened, context_.options.make_session(context_.directory, services));
  NS_RETURN_IF_ERROR(opened->prepare(options));
  text_ = std::move(opened);
  ++weights_;
  text_checkpoint_ = checkpoint;
  return text_.get();
}

}  // namespace neuroshard::engine::detail
