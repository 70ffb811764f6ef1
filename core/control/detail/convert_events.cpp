#include <utility>

#include "core/base/utf8.h"
#include "core/control/detail/convert.h"
#include "core/control/detail/convert_parts.h"

namespace neuroshard::control::detail {
namespace {

constexpr std::size_t max_error_text = 1024;  // a status travels in the trailers, which are bounded

struct Encoder {
  wire::Event* to;

  void operator()(const node::StateChanged& event) const {
    to->mutable_state_changed()->set_state(static_cast<std::uint32_t>(event.state));
    if (event.error) encode(*event.error, to->mutable_state_changed()->mutable_error());
  }
  void operator()(const node::Prepared& event) const {
    wire::Prepared* prepared = to->mutable_prepared();
    prepared->set_step(event.step);
    prepared->set_restored_from(event.restored_from);
    prepared->set_train_tokens(event.train_tokens);
    prepared->set_held_out_tokens(event.held_out_tokens);
    prepared->set_vocabulary(event.vocabulary);
    prepared->set_files_added(event.files_added);
  }
  void operator()(const node::StepFinished& event) const {
    encode(event.step, to->mutable_step_finished()->mutable_step());
    if (event.evaluation) encode(*event.evaluation, to->mutable_step_finished()->mutable_evaluation());
  }
  void operator()(const node::ActivityProgress& event) const {
    to->mutable_activity_progress()->set_activity(valid_utf8(event.activity));
    to->mutable_activity_progress()->set_done(event.done);
    to->mutable_activity_progress()->set_total(event.total);
  }
  void operator()(const node::CheckpointWritten& event) const {
    to->mutable_checkpoint_written()->set_name(event.name);
  }
  void operator()(const node::CheckpointsChanged&) const { to->mutable_checkpoints_changed(); }
  void operator()(const node::SettingChanged& event) const {
    to->mutable_setting_changed()->set_name(event.name);
    to->mutable_setting_changed()->set_value(valid_utf8(event.value));
  }
  void operator()(const node::AlertRaised& event) const {
    encode(event.alert, to->mutable_alert_raised()->mutable_alert());
  }
  void operator()(const node::AlertCleared& event) const { to->mutable_alert_cleared()->set_key(event.key); }
  void operator()(const node::Ended& event) const {
    to->mutable_ended();
    if (event.error) encode(*event.error, to->mutable_ended()->mutable_error());
  }
  // The sender of the command gets these as its answer.
  void operator()(const node::CommandProgress&) const {}
  void operator()(const node::CommandDone&) const {}
};

template <class Message>
std::optional<Error> error_of(const Message& message) {
  if (!message.has_error()) return std::nullopt;
  return decode(message.error());
}

}  // namespace

void encode(const Error& from, wire::Error* to) {
  to->set_code(1 + static_cast<std::uint32_t>(from.code));
  to->set_message(valid_utf8(from.message, max_error_text));
  to->set_context(valid_utf8(from.context, max_error_text));
}

Error decode(const wire::Error& from) {
  constexpr auto last = static_cast<std::uint32_t>(ErrorCode::Internal);
  const bool known = from.code() >= 1 && from.code() <= last + 1;
  return {known ? static_cast<ErrorCode>(from.code() - 1) : ErrorCode::Internal, from.message(),
          from.context()};
}

bool encode(const node::Event& from, wire::Event* to) {
  std::visit(Encoder{to}, from);
  return to->kind_case() != wire::Event::KIND_NOT_SET;
}

std::optional<node::Event> decode(const wire::Event& from) {
  switch (from.kind_case()) {
    case wire::Event::kStateChanged:
      return node::StateChanged{small_enum<node::RunState>(from.state_changed().state()),
                                error_of(from.state_changed())};
    case wire::Event::kPrepared: {
      const wire::Prepared& prepared = from.prepared();
      return node::Prepared{prepared.step(),         prepared.restored_from(),
                            prepared.train_tokens(), prepared.held_out_tokens(),
                            prepared.vocabulary(),   prepared.files_added()};
    }
    case wire::Event::kStepFinished: {
      node::StepFinished step{decode(from.step_finished().step()), std::nullopt};
      if (from.step_finished().has_evaluation()) step.evaluation = decode(from.step_finished().evaluation());
      return step;
    }
    case wire::Event::kActivityProgress:
      return node::ActivityProgress{from.activity_progress().activity(), from.activity_progress().done(),
                                    from.activity_progress().total()};
    case wire::Event::kCheckpointWritten: return node::CheckpointWritten{from.checkpoint_written().name()};
    case wire::Event::kCheckpointsChanged: return node::CheckpointsChanged{};
    case wire::Event::kSettingChanged:
      return node::SettingChanged{from.setting_changed().name(), from.setting_changed().value()};
    case wire::Event::kAlertRaised: return node::AlertRaised{decode(from.alert_raised().alert())};
    case wire::Event::kAlertCleared: return node::AlertCleared{from.alert_cleared().key()};
    case wire::Event::kEnded: return node::Ended{error_of(from.ended())};
    case wire::Event::KIND_NOT_SET: break;
  }
  return std::nullopt;
}

grpc::Status to_status(const Error& error) {
  using grpc::StatusCode;
  static constexpr std::pair<ErrorCode, StatusCode> codes[] = {
      {ErrorCode::InvalidArgument, StatusCode::INVALID_ARGUMENT},
      {ErrorCode::NotFound, StatusCode::NOT_FOUND},
      {ErrorCode::AlreadyExists, StatusCode::ALREADY_EXISTS},
      {ErrorCode::Corrupt, StatusCode::DATA_LOSS},
      {ErrorCode::Timeout, StatusCode::DEADLINE_EXCEEDED},
      {ErrorCode::Unavailable, StatusCode::UNAVAILABLE},
      {ErrorCode::Busy, StatusCode::FAILED_PRECONDITION},
      {ErrorCode::Exhausted, StatusCode::RESOURCE_EXHAUSTED},
      {ErrorCode::Denied, StatusCode::PERMISSION_DENIED},
      {ErrorCode::Unsupported, StatusCode::UNIMPLEMENTED},
      {ErrorCode::Cancelled, StatusCode::CANCELLED}};
  StatusCode status = StatusCode::INTERNAL;
  for (const auto& [code, value] : codes)
    if (code == error.code) status = value;
  wire::Error details;
  encode(error, &details);
  return {status, details.message(), details.SerializeAsString()};
}

Error to_error(const grpc::Status& status) {
  wire::Error details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details()) &&
      details.code() != 0)
    return decode(details);
  using grpc::StatusCode;
  ErrorCode code = ErrorCode::Internal;
  switch (status.error_code()) {
    case StatusCode::UNAVAILABLE: code = ErrorCode::Unavailable; break;
    case StatusCode::DEADLINE_EXCEEDED: code = ErrorCode::Timeout; break;
    case StatusCode::CANCELLED: code = ErrorCode::Cancelled; break;
    case StatusCode::RESOURCE_EXHAUSTED: code = ErrorCode::Exhausted; break;
    case StatusCode::UNAUTHENTICATED:
    case StatusCode::PERMISSION_DENIED: code = ErrorCode::Denied; break;
    case StatusCode::UNIMPLEMENTED: code = ErrorCode::Unsupported; break;
    case StatusCode::INVALID_ARGUMENT: code = ErrorCode::InvalidArgument; break;
    default: break;
  }
  if (code == ErrorCode::Unsupported)
    return make_error(
        code,
        "the running core is older and does not know this call: stop it and start the installed, "
        "newer one");
  return make_error(code, status.error_message());
}

}  // namespace neuroshard::control::detail
