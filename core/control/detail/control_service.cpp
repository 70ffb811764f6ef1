#include "core/control/detail/control_service.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <future>

#include <proto/control.grpc.pb.h>
#include "core/base/utf8.h"
#include "core/control/detail/call_rules.h"
#include "core/control/detail/convert.h"
#include "core/control/detail/dispatch.h"
#include "core/control/detail/event_hub.h"
#include "core/control/detail/places.h"

namespace neuroshard::control::detail {
namespace {

using grpc::ServerContext;
using grpc::Status;

constexpr Duration poll = std::chrono::milliseconds(200);  // between two checks whether the call may go on

Status too_busy() {
  return to_status(
      make_error(ErrorCode::Busy, "too many commands and queries are under way; try again in a moment"));
}

class ControlService final : public wire::Control::Service {
 public:
  ControlService(node::Node& node, Logger& logger, const Cookies& cookies, const ServerOptions& options)
      : node_(node),
        logger_(logger),
        cookies_(cookies),
        options_(options),
        watchers_(options.limits.watchers, options.limits.invited_watchers),
        calls_(options.limits.calls, options.limits.invited_calls),
        hub_(node, options.limits) {}

  void stop() { hub_.stop(); }

  Status Hello(ServerContext* context, const wire::HelloRequest* request, wire::HelloReply* reply) override {
    if (const auto allowed = check_caller(*context, Scope::Look, /*any_version=*/true); !allowed.ok())
      return to_status(allowed.error());
    logger_.debug("control", fmt::format("{} ({}) says hello", valid_utf8(request->program(), 100),
                                         valid_utf8(request->build(), 40)));
    reply->mutable_control()->set_major(options_.speaks.major);
    reply->mutable_control()->set_minor(options_.speaks.minor);
    reply->set_build(options_.build);
    reply->set_format(options_.format);
    for (const char* capability : {"snapshot", "series", "logs", "checkpoints", "settings", "snooze",
                                   "checkpoint_commands", "generate", "model", "data", "session"})
      reply->add_capabilities(capability);
    if (cookies_.check(*context, Scope::Steer).ok()) reply->add_capabilities(std::string(steer_capability));
    reply->set_pid(node_.snapshot()->program.pid);
    return Status::OK;
  }

  Status Watch(ServerContext* context, const wire::WatchRequest* request,
               grpc::ServerWriter<wire::Update>* writer) override {
    const auto caller = check_caller(*context, Scope::Look);
    if (!caller.ok()) return to_status(caller.error());
    const Place place(watchers_, *caller);
    if (!place.ok()) return to_status(too_many_watchers(*caller));
    EventHub::Watcher watcher(hub_, request->events());
    std::shared_ptr<const node::Snapshot> seen;
    wire::Snapshot sent;
    while (true) {
      const bool stopping = hub_.stopping();  // read first: events before it are still sent
      auto batch = watcher.take();
      const auto view = node_.snapshot();
      if ((!seen || view->version != seen->version) && !write_snapshot(*view, &sent, writer))
        return Status::CANCELLED;
      seen = view;
      if (batch.too_slow) {
        return to_status(
            make_error(ErrorCode::Exhausted,
                       "this program reads events too slowly; connect again for the latest state"));
      }
      if (!write_events(batch, writer)) return Status::CANCELLED;
      if (stopping) return to_status(make_error(ErrorCode::Unavailable, "the core has stopped"));
      if (const Status status = may_go_on(*context, Scope::Look); !status.ok()) return status;
      watcher.wait(options_.limits.period);
    }
  }

  Status Command(ServerContext* context, const wire::CommandRequest* request,
                 wire::CommandReply* reply) override {
    const auto caller = check_caller(*context, Scope::Steer);
    if (!caller.ok()) return to_status(caller.error());
    const Place place(calls_, *caller);
    if (!place.ok()) return too_busy();
    const auto id = begin(*request, {});
    if (!id.ok()) return to_status(id.error());
    bool ended = false;
    Status status = wait_done(*context, *id, reply, &ended);
    if (!ended) abandon(*request, *id);
    return status;
  }

  Status Run(ServerContext* context, const wire::CommandRequest* request,
             grpc::ServerWriter<wire::CommandUpdate>* writer) override {
    const auto caller = check_caller(*context, Scope::Steer);
    if (!caller.ok()) return to_status(caller.error());
    const Place place(calls_, *caller);
    if (!place.ok()) return too_busy();
    const auto feed = std::make_shared<EventHub::Feed>();
    const auto id = begin(*request, [feed](node::TextPiece piece) { feed->add_piece(std::move(piece)); });
    if (!id.ok()) return to_status(id.error());
    hub_.follow(feed, *id);
    bool ended = false;
    Status status = tell(*context, *id, *feed, writer, &ended);
    hub_.forget(feed);
    if (!ended) abandon(*request, *id);
    return status;
  }

  Status Cancel(ServerContext* context, const wire::CancelRequest* request, wire::CancelReply*) override {
    if (const auto allowed = check_caller(*context, Scope::Steer); !allowed.ok())
      return to_status(allowed.error());
    const auto asked = node_.cancel(request->id());
    return asked.ok() ? Status::OK : to_status(asked.error());
  }

  Status ReportSession(ServerContext* context, const wire::SessionReport* request,
                       wire::SessionReportReply*) override {
    if (const auto allowed = check_caller(*context, Scope::Steer); !allowed.ok())
      return to_status(allowed.error());
    const auto taken = node_.report_session(decode(*request));
    return taken.ok() ? Status::OK : to_status(taken.error());
  }

  Status QuerySeries(ServerContext* context, const wire::SeriesQuery* request,
                     wire::SeriesReply* reply) override {
    return answer<node::Series>(
        *context, Scope::Look,
        [&](node::Reply<node::Series> done) {
          return node_.query_series(
              {request->name().substr(0, 64), request->from_step(), request->to_step(), request->buckets()},
              std::move(done));
        },
        reply);
  }

  Status QueryLogs(ServerContext* context, const wire::LogQuery* request, wire::LogPage* reply) override {
    const auto least = static_cast<LogLevel>(std::min(request->least(), 3u));
    return answer<node::LogPage>(
        *context, Scope::Look,
        [&](node::Reply<node::LogPage> done) {
          return node_.query_logs({request->after(), request->limit(), least}, std::move(done));
        },
        reply);
  }

  Status QueryCheckpoints(ServerContext* context, const wire::CheckpointQuery* request,
                          wire::CheckpointPage* reply) override {
    return answer<node::CheckpointPage>(
        *context, Scope::Look,
        [&](node::Reply<node::CheckpointPage> done) {
          return node_.query_checkpoints({request->after().substr(0, 256), request->limit()},
                                         std::move(done));
        },
        reply);
  }

  Status QuerySettings(ServerContext* context, const wire::SettingsQuery*,
                       wire::SettingList* reply) override {
    return answer<std::vector<node::SettingEntry>>(
        *context, Scope::Look,
        [&](node::Reply<std::vector<node::SettingEntry>> done) {
          return node_.query_settings(std::move(done));
        },
        reply);
  }

  Status QueryPrune(ServerContext* context, const wire::PrunePolicy* request,
                    wire::PrunePreview* reply) override {
    return answer<node::PrunePreview>(
        *context, Scope::Look,
        [&](node::Reply<node::PrunePreview> done) {
          return node_.query_prune(decode(*request), std::move(done));
        },
        reply);
  }

  Status QuerySlots(ServerContext* context, const wire::SlotsQuery*, wire::SlotList* reply) override {
    return answer<std::vector<node::SlotEntry>>(
        *context, Scope::Look,
        [&](node::Reply<std::vector<node::SlotEntry>> done) { return node_.query_slots(std::move(done)); },
        reply);
  }

  Status QueryExperts(ServerContext* context, const wire::ExpertsQuery*, wire::ExpertList* reply) override {
    return answer<std::vector<node::ExpertLoad>>(
        *context, Scope::Look,
        [&](node::Reply<std::vector<node::ExpertLoad>> done) { return node_.query_experts(std::move(done)); },
        reply);
  }

  Status QueryData(ServerContext* context, const wire::DataQuery*, wire::Data* reply) override {
    return answer<node::DataView>(
        *context, Scope::Look,
        [&](node::Reply<node::DataView> done) { return node_.query_data(std::move(done)); }, reply);
  }

  Status QueryNetwork(ServerContext* context, const wire::NetworkQuery*, wire::Network* reply) override {
    return answer<node::NetworkView>(
        *context, Scope::Look,
        [&](node::Reply<node::NetworkView> done) { return node_.query_network(std::move(done)); }, reply);
  }

  Status QueryInvitation(ServerContext* context, const wire::InvitationQuery* request,
                         wire::Invitation* reply) override {
    return answer<node::Invitation>(
        *context, Scope::Steer,
        [&](node::Reply<node::Invitation> done) {
          return node_.query_invitation(request->with_vote(), std::move(done));
        },
        reply);
  }

  Status HttpKey(ServerContext* context, const wire::HttpKeyRequest* request,
                 wire::HttpKeyReply* reply) override {
    return answer<node::HttpKey>(
        *context, Scope::Steer,
        [&](node::Reply<node::HttpKey> done) -> Expected<void> {
          if (request->action() > static_cast<std::uint32_t>(node::HttpKeyAction::Remove))
            return make_error(ErrorCode::InvalidArgument, "this core does not know that action on the key");
          return node_.http_key(static_cast<node::HttpKeyAction>(request->action()), std::move(done));
        },
        reply);
  }

  Status QueryRounds(ServerContext* context, const wire::RoundsQuery*, wire::RoundsReport* reply) override {
    return answer<node::RoundsReport>(
        *context, Scope::Look,
        [&](node::Reply<node::RoundsReport> done) { return node_.query_rounds(std::move(done)); }, reply);
  }

  Status TestReachability(ServerContext* context, const wire::ReachabilityTest*,
                          wire::ReachabilityTestReply*) override {
    if (const auto allowed = check_caller(*context, Scope::Steer); !allowed.ok())
      return to_status(allowed.error());
    const auto begun = node_.test_reachability();
    return begun.ok() ? Status::OK : to_status(begun.error());
  }

  Status ContinueNetwork(ServerContext* context, const wire::ContinuationRequest* request,
                         wire::ContinuationReply* reply) override {
    return answer<node::ContinuationReply>(
        *context, Scope::Steer,
        [&](node::Reply<node::ContinuationReply> done) {
          return node_.decisions().continue_network(decode(*request), std::move(done));
        },
        reply);
  }

  Status RevokeNode(ServerContext* context, const wire::RevocationRequest* request,
                    wire::RevocationReply* reply) override {
    return answer<node::RevocationReply>(
        *context, Scope::Steer,
        [&](node::Reply<node::RevocationReply> done) {
          return node_.decisions().revoke_node(decode(*request), std::move(done));
        },
        reply);
  }

  Status QueryWhatIf(ServerContext* context, const wire::WhatIfQuery* request, wire::WhatIf* reply) override {
    return answer<node::WhatIf>(
        *context, Scope::Look,
        [&](node::Reply<node::WhatIf> done) -> Expected<void> {
          NS_ASSIGN_OR_RETURN(const node::WhatIfQuery query, decode(*request));
          return node_.decisions().query_what_if(query, std::move(done));
        },
        reply);
  }

  Status QueryEvaluations(ServerContext* context, const wire::EvaluationQuery* request,
                          wire::EvaluationPage* reply) override {
    return answer<node::EvaluationPage>(
        *context, Scope::Look,
        [&](node::Reply<node::EvaluationPage> done) {
          return node_.records().query_evaluations({request->limit()}, std::move(done));
        },
        reply);
  }

  Status QueryTokens(ServerContext* context, const wire::TokensQuery* request,
                     wire::TokenList* reply) override {
    return answer<std::vector<node::TokenPiece>>(
        *context, Scope::Look,
        [&](node::Reply<std::vector<node::TokenPiece>> done) {
          return node_.query_tokens(request->text(), std::move(done));
        },
        reply);
  }

 private:
  // The id of the caller's invitation; empty: a program of this user.
  Expected<std::string> check_caller(const ServerContext& context, Scope needed, bool any_version = false) {
    auto allowed = cookies_.check(context, needed);
    if (!allowed.ok()) {
      // Powers of two: a flood of wrong cookies must not fill the log.
      const std::uint64_t count = refused_.fetch_add(1) + 1;
      if ((count & (count - 1)) == 0)
        logger_.warning("control",
                        fmt::format("refused {} call(s) whose cookie does not permit them", count));
      return allowed;
    }
    if (!any_version) NS_RETURN_IF_ERROR(check_version(context, options_.speaks));
    return allowed;
  }

  // Between two waits of a call. Not OK: the caller disconnected, or its invitation was revoked or expired.
  Status may_go_on(const ServerContext& context, Scope needed) const {
    if (context.IsCancelled()) return Status::CANCELLED;
    const auto allowed = cookies_.check(context, needed);
    return allowed.ok() ? Status::OK : to_status(allowed.error());
  }

  Error too_many_watchers(const std::string& invitation) const {
    if (invitation.empty())
      return make_error(ErrorCode::Exhausted, fmt::format("{} programs already follow this core; close one",
                                                          options_.limits.watchers));
    return make_error(ErrorCode::Exhausted,
                      "too many invited programs already follow this core; close one of them");
  }

  // Of a call that ends before its command: nobody reads a text any more; the other commands were given to be
  // done.
  void abandon(const wire::CommandRequest& request, node::CommandId id) {
    if (request.has_generate()) static_cast<void>(node_.cancel(id).ok());
  }

  // Waits until a command is done, may_go_on() ends the call, or the core stops. ended: set when the command
  // is done.
  Status wait_done(const ServerContext& context, node::CommandId id, wire::CommandReply* reply, bool* ended) {
    while (true) {
      const bool stopping = hub_.stopping();
      if (const auto done = hub_.wait_done(id, poll)) {
        *ended = true;
        if (done->error) return to_status(*done->error);
        encode(done->result, reply);
        break;
      }
      if (stopping)
        return to_status(make_error(ErrorCode::Unavailable, "the core stopped before this was done"));
      if (const Status status = may_go_on(context, Scope::Steer); !status.ok()) return status;
    }
    reply->set_id(id);
    encode(*node_.snapshot(), reply->mutable_snapshot());
    return Status::OK;
  }

  // Sends the progress of a command until it is done, may_go_on() ends the call, or the core stops. ended:
  // set when the command is done.
  Status tell(const ServerContext& context, node::CommandId id, EventHub::Feed& feed,
              grpc::ServerWriter<wire::CommandUpdate>* writer, bool* ended) {
    wire::CommandUpdate accepted;
    accepted.set_accepted(id);
    if (!writer->Write(accepted)) return Status::CANCELLED;
    while (true) {
      const bool stopping = hub_.stopping();
      auto batch = feed.wait_and_take(poll);
      wire::CommandUpdate update;
      if (!batch.text.empty()) {
        update.set_text(std::move(batch.text));
        if (!writer->Write(update)) return Status::CANCELLED;
      }
      for (const node::TextPiece& piece : batch.pieces) {
        update.mutable_piece()->Clear();
        encode(piece, update.mutable_piece());
        if (!writer->Write(update)) return Status::CANCELLED;
      }
      if (batch.progress && !batch.done) {
        encode(*batch.progress, update.mutable_progress());
        if (!writer->Write(update)) return Status::CANCELLED;
      }
      if (batch.done) {
        *ended = true;
        if (batch.done->error) return to_status(*batch.done->error);
        wire::CommandReply* reply = update.mutable_done();
        reply->set_id(id);
        encode(*node_.snapshot(), reply->mutable_snapshot());
        encode(batch.done->result, reply);
        return writer->Write(update) ? Status::OK : Status::CANCELLED;
      }
      if (stopping)
        return to_status(make_error(ErrorCode::Unavailable, "the core stopped before this was done"));
      if (const Status status = may_go_on(context, Scope::Steer); !status.ok()) return status;
    }
  }

  bool write_snapshot(const node::Snapshot& view, wire::Snapshot* sent,
                      grpc::ServerWriter<wire::Update>* writer) {
    wire::Update update;
    wire::Snapshot whole;
    encode(view, &whole);
    *update.mutable_snapshot() = whole;
    if (sent->full()) leave_out_unchanged(*sent, update.mutable_snapshot());
    sent->Swap(&whole);
    return writer->Write(update);
  }

  bool write_events(const EventHub::Batch& batch, grpc::ServerWriter<wire::Update>* writer) {
    for (const node::Event& event : batch.events) {
      wire::Update update;
      update.set_dropped_steps(batch.dropped_steps);
      if (encode(event, update.mutable_event()) && !writer->Write(update)) return false;
    }
    return true;
  }

  Expected<node::CommandId> begin(const wire::CommandRequest& request, node::TextHandler on_text) {
    if (request.has_shutdown() && options_.on_shutdown) options_.on_shutdown();
    return dispatch(node_, request, std::move(on_text));
  }

  // Puts a question to the node and waits for the answer, as long as the caller does.
  template <class T, class Ask, class Message>
  Status answer(ServerContext& context, Scope needed, const Ask& ask, Message* reply) {
    const auto caller = check_caller(context, needed);
    if (!caller.ok()) return to_status(caller.error());
    const Place place(calls_, *caller);
    if (!place.ok()) return too_busy();
    const auto promise = std::make_shared<std::promise<Expected<T>>>();
    auto future = promise->get_future();
    const Expected<void> asked = ask([promise](Expected<T> value) { promise->set_value(std::move(value)); });
    if (!asked.ok()) return to_status(asked.error());
    while (future.wait_for(poll) != std::future_status::ready) {
      if (const Status status = may_go_on(context, needed); !status.ok()) return status;
      if (hub_.stopping()) return to_status(make_error(ErrorCode::Unavailable, "the core is stopping"));
    }
    const Expected<T> value = future.get();
    if (!value.ok()) return to_status(value.error());
    encode(*value, reply);
    return Status::OK;
  }

  node::Node& node_;
  Logger& logger_;
  const Cookies& cookies_;
  const ServerOptions options_;
  Places watchers_, calls_;
  std::atomic<std::uint64_t> refused_{0};
  EventHub hub_;
};

}  // namespace

ControlCalls make_control_calls(node::Node& node, Logger& logger, const Cookies& cookies,
                                const ServerOptions& options) {
  auto service = std::make_unique<ControlService>(node, logger, cookies, options);
  auto* const raw = service.get();
  return {std::move(service), [raw] { raw->stop(); }};
}

}  // namespace neuroshard::control::detail
