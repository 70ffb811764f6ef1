// Values of core/node as messages, and back. Reading accepts anything a peer may send: numbers of an
// enumeration that this build does not know are kept as they are (to_string says "unknown"), missing parts
// keep their defaults.
#pragma once

#include <grpcpp/support/status.h>

#include <optional>
#include <vector>

#include <proto/control.pb.h>
#include "core/node/member_decisions.h"
#include "core/node/network_view.h"
#include "core/node/node.h"
#include "core/node/records.h"
#include "core/node/rounds_report.h"

namespace neuroshard::control::detail {

namespace wire = ::neuroshard::control::v1;

void encode(const node::Snapshot& from, wire::Snapshot* to);  // full
node::Snapshot decode(const wire::Snapshot& from);
// Takes from `next` the parts that `last` has in the same form, so that only the changed ones are sent.
void leave_out_unchanged(const wire::Snapshot& last, wire::Snapshot* next);
// Lays a change over `whole`; fields that this build does not know are kept.
void merge(wire::Snapshot&& change, wire::Snapshot* whole);

// False for events that are not sent (CommandDone, CommandProgress).
bool encode(const node::Event& from, wire::Event* to);
std::optional<node::Event> decode(
    const wire::Event& from);  // nothing: of a kind that this build does not know

void encode(const node::Series& from, wire::SeriesReply* to);
node::Series decode(const wire::SeriesReply& from);
void encode(const node::LogPage& from, wire::LogPage* to);
node::LogPage decode(const wire::LogPage& from);
void encode(const node::CheckpointPage& from, wire::CheckpointPage* to);
node::CheckpointPage decode(const wire::CheckpointPage& from);
void encode(const std::vector<node::SettingEntry>& from, wire::SettingList* to);
std::vector<node::SettingEntry> decode(const wire::SettingList& from);
void encode(const node::EvaluationPage& from, wire::EvaluationPage* to);
node::EvaluationPage decode(const wire::EvaluationPage& from);
void encode(const node::PrunePreview& from, wire::PrunePreview* to);
node::PrunePreview decode(const wire::PrunePreview& from);
void encode(const std::vector<node::SlotEntry>& from, wire::SlotList* to);
std::vector<node::SlotEntry> decode(const wire::SlotList& from);
void encode(const std::vector<node::ExpertLoad>& from, wire::ExpertList* to);
std::vector<node::ExpertLoad> decode(const wire::ExpertList& from);
void encode(const node::NetworkView& from, wire::Network* to);
node::NetworkView decode(const wire::Network& from);
void encode(const node::Invitation& from, wire::Invitation* to);
node::Invitation decode(const wire::Invitation& from);
void encode(const node::HttpKey& from, wire::HttpKeyReply* to);
node::HttpKey decode(const wire::HttpKeyReply& from);
void encode(const node::RoundsReport& from, wire::RoundsReport* to);
node::RoundsReport decode(const wire::RoundsReport& from);
void encode(const node::ContinuationRequest& from, wire::ContinuationRequest* to);
node::ContinuationRequest decode(const wire::ContinuationRequest& from);
void encode(const node::ContinuationReply& from, wire::ContinuationReply* to);
node::ContinuationReply decode(const wire::ContinuationReply& from);
void encode(const node::RevocationRequest& from, wire::RevocationRequest* to);
node::RevocationRequest decode(const wire::RevocationRequest& from);
void encode(const node::RevocationReply& from, wire::RevocationReply* to);
node::RevocationReply decode(const wire::RevocationReply& from);
void encode(const node::WhatIfQuery& from, wire::WhatIfQuery* to);
// InvalidArgument: a change that this build does not know.
Expected<node::WhatIfQuery> decode(const wire::WhatIfQuery& from);
void encode(const node::WhatIf& from, wire::WhatIf* to);
node::WhatIf decode(const wire::WhatIf& from);
void encode(const node::DataView& from, wire::Data* to);
node::DataView decode(const wire::Data& from);
void encode(const std::vector<node::TokenPiece>& from, wire::TokenList* to);
std::vector<node::TokenPiece> decode(const wire::TokenList& from);

void encode(const node::PrunePolicy& from, wire::PrunePolicy* to);
node::PrunePolicy decode(const wire::PrunePolicy& from);
void encode(const node::GenerateRequest& from, wire::Generate* to);
node::GenerateRequest decode(const wire::Generate& from);
void encode(const node::TextPiece& from, wire::TextPiece* to);
node::TextPiece decode(const wire::TextPiece& from);
void encode(const node::SessionSensors& from, wire::SessionReport* to);
node::SessionSensors decode(const wire::SessionReport& from);
void encode(const node::CommandProgress& from, wire::CommandProgress* to);  // without the id
node::CommandProgress decode(const wire::CommandProgress& from);
void encode(const node::CommandResult& from, wire::CommandReply* to);
node::CommandResult decode_result(const wire::CommandReply& from);

// An Error travels whole, beside the status code that gRPC's own tools understand.
grpc::Status to_status(const Error& error);
Error to_error(const grpc::Status& status);

}  // namespace neuroshard::control::detail
