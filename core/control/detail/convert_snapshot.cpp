#include <algorithm>
#include <limits>

#include "core/control/detail/convert.h"
#include "core/control/detail/convert_parts.h"

namespace neuroshard::control::detail {

void encode(const node::StepView& from, wire::Step* to) {
  to->set_step(from.step);
  to->set_loss(from.loss);
  to->set_learning_rate(from.learning_rate);
  to->set_gradient_norm(from.gradient_norm);
  to->set_tokens(from.tokens);
  to->set_tokens_per_second(from.tokens_per_second);
  to->set_balance(from.balance);
  to->set_micro_batch(from.micro_batch);
  to->set_data_seconds(from.data_seconds);
  to->set_compute_seconds(from.compute_seconds);
  to->set_optimizer_seconds(from.optimizer_seconds);
  to->set_waiting_seconds(from.waiting_seconds);
}

node::StepView decode(const wire::Step& from) {
  node::StepView to;
  to.step = from.step();
  to.loss = from.loss();
  to.learning_rate = from.learning_rate();
  to.gradient_norm = from.gradient_norm();
  to.tokens = from.tokens();
  to.tokens_per_second = from.tokens_per_second();
  to.balance = from.balance();
  to.micro_batch = from.micro_batch();
  to.data_seconds = from.data_seconds();
  to.compute_seconds = from.compute_seconds();
  to.optimizer_seconds = from.optimizer_seconds();
  to.waiting_seconds = from.waiting_seconds();
  return to;
}

void encode(const node::EvaluationView& from, wire::Evaluation* to) {
  to->set_step(from.step);
  to->set_loss(from.loss);
  if (from.bits_per_byte) to->set_bits_per_byte(*from.bits_per_byte);
}

node::EvaluationView decode(const wire::Evaluation& from) {
  node::EvaluationView to{from.step(), from.loss(), std::nullopt};
  if (from.has_bits_per_byte()) to.bits_per_byte = from.bits_per_byte();
  return to;
}

void encode(const node::Alert& from, wire::Alert* to) {
  node::Alert bounded = from;
  node::bound(bounded);
  to->set_key(bounded.key);
  to->set_severity(static_cast<std::uint32_t>(from.severity));
  to->set_message(bounded.message);
  to->set_since(to_unix_ms(from.since));
}

node::Alert decode(const wire::Alert& from) {
  return {from.key(), small_enum<node::Severity>(from.severity()), from.message(), wall_time(from.since())};
}

namespace {

void encode_training(const node::TrainingView& from, wire::Training* to) {
  if (from.last_step) encode(*from.last_step, to->mutable_last_step());
  if (from.smoothed_loss) to->set_smoothed_loss(*from.smoothed_loss);
  if (from.last_evaluation) encode(*from.last_evaluation, to->mutable_last_evaluation());
  if (from.best_evaluation_loss) to->set_best_evaluation_loss(*from.best_evaluation_loss);
  to->set_step(from.step);
  to->set_target_step(from.target_step);
  to->set_data_source(from.data_source);
  to->set_activity(from.activity);
  to->set_activity_share(from.activity_share);
}

node::TrainingView decode_training(const wire::Training& from) {
  node::TrainingView to;
  if (from.has_last_step()) to.last_step = decode(from.last_step());
  if (from.has_smoothed_loss()) to.smoothed_loss = from.smoothed_loss();
  if (from.has_last_evaluation()) to.last_evaluation = decode(from.last_evaluation());
  if (from.has_best_evaluation_loss()) to.best_evaluation_loss = from.best_evaluation_loss();
  to.step = from.step();
  to.target_step = from.target_step();
  to.data_source = from.data_source();
  to.activity = from.activity();
  to.activity_share = from.activity_share();
  return to;
}

void encode_who(const node::Snapshot& from, wire::Snapshot* to) {
  wire::Identity* identity = to->mutable_identity();
  identity->set_node_id(from.identity.node_id);
  identity->set_wallet_id(from.identity.wallet_id);
  identity->set_instance_id(from.identity.instance_id);
  identity->set_wallet_protected(from.identity.wallet_protected);
  wire::Program* program = to->mutable_program();
  program->set_version(from.program.version);
  program->set_pid(from.program.pid);
  program->set_started(to_unix_ms(from.program.started));
  program->set_data_directory(from.program.data_directory);
  program->set_network(from.program.network);
  program->set_network_id(from.program.network_id);
  program->set_notice(from.program.notice);
}

void encode_machine(const node::Snapshot& from, wire::Snapshot* to) {
  wire::Compute* compute = to->mutable_compute();
  compute->set_device(from.compute.device);
  compute->set_kernels(from.compute.kernels);
  compute->set_isa(from.compute.isa);
  compute->set_precision(from.compute.precision);
  compute->set_threads(from.compute.threads);
  wire::Model* model = to->mutable_model();
  model->set_layers(from.model.layers);
  model->set_hidden(from.model.hidden);
  model->set_experts(from.model.experts);
  model->set_experts_per_token(from.model.experts_per_token);
  model->set_vocab(from.model.vocab);
  model->set_sequence(from.model.sequence);
  model->set_parameters(from.model.parameters);
  model->set_active_parameters(from.model.active_parameters);
  wire::Resources* resources = to->mutable_resources();
  resources->set_resident_bytes(from.resources.resident_bytes);
  resources->set_memory_limit_bytes(from.resources.memory_limit_bytes);
  resources->set_disk_free_bytes(from.resources.disk_free_bytes);
  resources->set_memory_total_bytes(from.resources.memory_total_bytes);
  resources->set_directory_bytes(from.resources.directory_bytes);
  if (from.resources.cpu_share) resources->set_cpu_share(*from.resources.cpu_share);
}

void decode_machine(const wire::Snapshot& from, node::Snapshot* to) {
  const wire::Compute& compute = from.compute();
  to->compute = {compute.device(), compute.kernels(), compute.isa(), compute.precision(), compute.threads()};
  const wire::Model& model = from.model();
  to->model = {model.layers(), model.hidden(),   model.experts(),    model.experts_per_token(),
               model.vocab(),  model.sequence(), model.parameters(), model.active_parameters()};
  const wire::Resources& resources = from.resources();
  to->resources = {resources.resident_bytes(),  resources.memory_limit_bytes(),
                   resources.disk_free_bytes(), resources.memory_total_bytes(),
                   resources.directory_bytes(), std::nullopt};
  if (resources.has_cpu_share()) to->resources.cpu_share = resources.cpu_share();
}

void encode_peers(const node::PeersView& from, wire::Peers* to) {
  to->set_taking_part(from.taking_part);
  to->set_connected(from.connected);
  if (from.bytes_in_per_second) to->set_bytes_in_per_second(*from.bytes_in_per_second);
  if (from.bytes_out_per_second) to->set_bytes_out_per_second(*from.bytes_out_per_second);
}

node::PeersView decode_peers(const wire::Peers& from) {
  node::PeersView to{from.taking_part(), from.connected(), std::nullopt, std::nullopt};
  if (from.has_bytes_in_per_second()) to.bytes_in_per_second = from.bytes_in_per_second();
  if (from.has_bytes_out_per_second()) to.bytes_out_per_second = from.bytes_out_per_second();
  return to;
}

void encode_contributing(const node::Snapshot& from, wire::Snapshot* to) {
  wire::Contributing* contributing = to->mutable_contributing();
  contributing->set_on(from.contributing);
  for (const node::PauseReason& reason : from.pause_reasons) {
    wire::PauseReason* sent = contributing->add_reason();
    sent->set_key(reason.key);
    sent->set_text(reason.text);
    if (reason.until) sent->set_until(to_unix_ms(*reason.until));
    sent->set_can_override(reason.can_override);
  }
  if (from.snoozed_until) contributing->set_snoozed_until(to_unix_ms(*from.snoozed_until));
  if (from.overridden_until) contributing->set_overridden_until(to_unix_ms(*from.overridden_until));
  contributing->set_finishing(from.finishing);
  contributing->set_safe_mode(from.safe_mode);
  to->mutable_sensors();
  for (const node::SensorView& sensor : from.sensors) {
    wire::Sensor* sent = to->mutable_sensors()->add_sensor();
    sent->set_key(sensor.key);
    sent->set_value(sensor.value);
    sent->set_note(sensor.note);
  }
}

void decode_contributing(const wire::Snapshot& from, node::Snapshot* to) {
  const wire::Contributing& contributing = from.contributing();
  to->contributing = contributing.on();
  for (const wire::PauseReason& sent : contributing.reason()) {
    node::PauseReason reason{sent.key(), sent.text(), std::nullopt, sent.can_override()};
    if (sent.has_until()) reason.until = wall_time(sent.until());
    to->pause_reasons.push_back(std::move(reason));
  }
  if (contributing.has_snoozed_until()) to->snoozed_until = wall_time(contributing.snoozed_until());
  if (contributing.has_overridden_until()) to->overridden_until = wall_time(contributing.overridden_until());
  to->finishing = contributing.finishing();
  to->safe_mode = contributing.safe_mode();
  for (const wire::Sensor& sensor : from.sensors().sensor())
    to->sensors.push_back({sensor.key(), sensor.value(), sensor.note()});
}

// One part of a change: replaces the old one when it is there.
#define NS_FOR_EACH_PART(visit)                                                                              \
  visit(contributing) visit(identity) visit(program) visit(compute) visit(model) visit(training)             \
      visit(checkpoint) visit(resources) visit(alerts) visit(sensors) visit(undo) visit(rounds) visit(peers) \
          visit(http)

}  // namespace

void encode(const node::Snapshot& from, wire::Snapshot* to) {
  to->set_full(true);
  to->set_version(from.version);
  to->set_taken(to_unix_ms(from.taken));
  to->set_state(static_cast<std::uint32_t>(from.state));
  encode_contributing(from, to);
  encode_who(from, to);
  encode_machine(from, to);
  encode_training(from.training, to->mutable_training());
  encode(from.rounds, to->mutable_rounds());
  encode_peers(from.peers, to->mutable_peers());
  to->mutable_http()->set_address(from.http.address);
  to->mutable_http()->set_trouble(from.http.trouble);
  to->mutable_checkpoint()->set_newest(from.checkpoint.newest);
  to->mutable_checkpoint()->set_newest_at(to_unix_ms(from.checkpoint.newest_at));
  to->mutable_undo()->set_checkpoint(from.undo.checkpoint);
  to->mutable_undo()->set_step(from.undo.step);
  to->mutable_alerts();
  for (const node::Alert& alert : from.alerts) encode(alert, to->mutable_alerts()->add_alert());
}

node::Snapshot decode(const wire::Snapshot& from) {
  node::Snapshot to;
  to.version = from.version();
  to.taken = wall_time(from.taken());
  to.state = small_enum<node::RunState>(from.state());
  decode_contributing(from, &to);
  const wire::Identity& identity = from.identity();
  to.identity = {identity.node_id(), identity.wallet_id(), identity.instance_id(),
                 identity.wallet_protected()};
  const wire::Program& program = from.program();
  to.program = {program.version(),        program.pid(),     wall_time(program.started()),
                program.data_directory(), program.network(), program.network_id(),
                program.notice()};
  decode_machine(from, &to);
  to.training = decode_training(from.training());
  to.checkpoint = {from.checkpoint().newest(), wall_time(from.checkpoint().newest_at())};
  to.undo = {from.undo().checkpoint(), from.undo().step()};
  to.rounds = decode(from.rounds());
  to.peers = decode_peers(from.peers());
  to.http = {from.http().address(), from.http().trouble()};
  for (const wire::Alert& alert : from.alerts().alert()) to.alerts.push_back(decode(alert));
  node::bound(to);
  return to;
}

void leave_out_unchanged(const wire::Snapshot& last, wire::Snapshot* next) {
  next->set_full(false);
#define NS_LEAVE_OUT(part)                                                                      \
  if (last.has_##part() && last.part().SerializeAsString() == next->part().SerializeAsString()) \
    next->clear_##part();
  NS_FOR_EACH_PART(NS_LEAVE_OUT)
#undef NS_LEAVE_OUT
}

void merge(wire::Snapshot&& change, wire::Snapshot* whole) {
  // Parts that the change leaves out come from the old whole. The change then is the new whole, with the
  // fields that a newer core added.
#define NS_TAKE_OVER(part) \
  if (!change.has_##part() && whole->has_##part()) change.mutable_##part()->Swap(whole->mutable_##part());
  NS_FOR_EACH_PART(NS_TAKE_OVER)
#undef NS_TAKE_OVER
  whole->Swap(&change);
}

#undef NS_FOR_EACH_PART

}  // namespace neuroshard::control::detail
