// Messages of the control service, in both directions between a core and a program. A message that is read converts to the
// node's values and back to the same message; lists and texts of a snapshot keep their limits; a command does what it says.
// The low bits of the first byte choose the reader. Its high bit marks seeds that have every field of a message: they
// convert back to the same bytes, so a field that a conversion forgets is found.
#if __has_include(<google/protobuf/stubs/logging.h>)  // until protobuf 22
#include <google/protobuf/stubs/logging.h>
#define NS_FUZZ_OLD_PROTOBUF
#endif

#include <algorithm>
#include <iterator>

#include "core/control/detail/convert.h"
#include "core/control/detail/convert_parts.h"
#include "core/control/detail/dispatch.h"
#include "tests/fuzz/chosen_reader.h"
#include "tests/support/fake_node.h"

using namespace neuroshard;                   // NOLINT
using namespace neuroshard::control::detail;  // NOLINT

namespace {

// Of damaged bytes only the part before the damage: without it one mutation in ten would reach the conversions.
template <class Message>
std::optional<Message> parse(ByteSpan input) {
  Message message;
  if (message.ParseFromArray(input.data(), static_cast<int>(input.size()))) return message;
  if (message.ParseFromString(message.SerializeAsString())) return message;
  return std::nullopt;
}

// As the other side reads it: gRPC refuses a message that does not parse.
template <class Message>
Message sent(const Message& message) {
  Message received;
  NS_CHECK(received.ParseFromString(message.SerializeAsString()));
  return received;
}

template <class Message, class Value>
Message message_of(const Value& value) {
  Message message;
  encode(value, &message);
  return sent(message);
}

// The readers return what is sent back; empty: nothing is.
using Answer = std::string;

template <class Message>
Answer read(ByteSpan input) {
  const auto message = parse<Message>(input);
  if (!message) return {};
  const Answer once = message_of<Message>(decode(*message)).SerializeAsString();
  const auto again = parse<Message>(as_bytes(once));
  NS_CHECK(again && message_of<Message>(decode(*again)).SerializeAsString() == once);
  return once;
}

// The limits of core/node.
void check_limits(const node::Snapshot& snapshot) {
  NS_CHECK(node::encoded_bytes(snapshot) <= node::max_snapshot_bytes);
  NS_CHECK(message_of<wire::Snapshot>(snapshot).ByteSizeLong() <= node::encoded_bytes(snapshot));
  NS_CHECK(snapshot.rounds.chain.missing.size() <= node::max_missing);
  if (const auto& part = snapshot.rounds.part) {
    NS_CHECK(part->reason <= node::PartReason::SlowPart);
    for (const auto* list : {&part->holders, &part->speeds, &part->checkers})
      NS_CHECK(list->size() <= node::max_path);
  }
  if (const auto& memory = snapshot.rounds.memory) NS_CHECK(memory->asked <= node::SizeChange::Down);
}

// A window makes a grid as large as the numbers say.
template <class Message>
Answer read_grid(ByteSpan input) {
  const auto message = parse<Message>(input);
  if (!message) return {};
  const auto entries = decode(*message);
  NS_CHECK(entries.size() <= node::max_slots);
  for (const auto& entry : entries)
    NS_CHECK(entry.layer < node::max_layers && entry.expert < node::max_experts);
  return read<Message>(input);
}

Answer read_snapshot(ByteSpan input) {
  const auto message = parse<wire::Snapshot>(input);
  if (!message) return {};
  const node::Snapshot snapshot = decode(*message);
  check_limits(snapshot);
  NS_CHECK(!to_string(snapshot.state).empty());
  for (const node::Alert& alert : snapshot.alerts) NS_CHECK(!to_string(alert.severity).empty());
  return read<wire::Snapshot>(input);
}

// Two snapshots of one core: the second travels as a change and arrives whole.
Answer read_change(ByteSpan input) {
  if (input.size() < 2) return {};
  const std::size_t first = std::min<std::size_t>(input[0] | input[1] << 8, input.size() - 2);
  const auto last = parse<wire::Snapshot>(input.subspan(2, first));
  const auto next = parse<wire::Snapshot>(input.subspan(2 + first));
  if (!last || !next) return {};
  auto whole = message_of<wire::Snapshot>(decode(*last));
  const auto expected = message_of<wire::Snapshot>(decode(*next));
  wire::Snapshot change = expected;
  leave_out_unchanged(whole, &change);
  merge(sent(change), &whole);
  NS_CHECK(message_of<wire::Snapshot>(decode(whole)).SerializeAsString() == expected.SerializeAsString());
  // Another core's messages, as they come.
  wire::Snapshot any = *last;
  merge(wire::Snapshot(*next), &any);
  check_limits(decode(any));
  return {};
}

Answer read_event(ByteSpan input) {
  const auto message = parse<wire::Event>(input);
  if (!message) return {};
  const auto event = decode(*message);
  NS_CHECK(event.has_value() == (message->kind_case() != wire::Event::KIND_NOT_SET));
  if (!event) return {};
  wire::Event once, twice;
  NS_CHECK(encode(*event, &once));
  once = sent(once);
  NS_CHECK(once.kind_case() == message->kind_case());
  const auto again = decode(once);
  NS_CHECK(again && encode(*again, &twice));
  NS_CHECK(once.SerializeAsString() == twice.SerializeAsString());
  return once.SerializeAsString();
}

// No duration wraps around on its way to the node.
void check_seconds(const std::string& command, std::string_view name, std::uint64_t seconds) {
  const auto most = static_cast<std::uint64_t>(node::max_snooze.count()) + 1;
  NS_CHECK(command == std::string(name) + std::to_string(std::min(seconds, most)));
}

Answer read_command(ByteSpan input) {
  const auto request = parse<wire::CommandRequest>(input);
  if (!request) return {};
  testing::FakeNode node;
  node.checkpoints.resize(1);
  node.checkpoints[0].name = "t1";  // as the seeds name it
  const auto id = dispatch(node, *request, {});
  const std::vector<std::string> reached = node.commands();
  NS_CHECK(reached.size() == (id.ok() ? 1 : 0));
  if (request->command_case() == wire::CommandRequest::COMMAND_NOT_SET)
    NS_CHECK(id.error().code == ErrorCode::Unsupported);
  if (!id.ok()) return {};
  if (request->has_snooze()) check_seconds(reached[0], "snooze ", request->snooze().seconds());
  if (request->has_override_rules())
    check_seconds(reached[0], "override ", request->override_rules().seconds());
  if (request->has_generate())
    NS_CHECK(message_of<wire::Generate>(node.generated).SerializeAsString() ==
             message_of<wire::Generate>(decode(request->generate())).SerializeAsString());
  return {};
}

Answer read_reply(ByteSpan input) {
  const auto message = parse<wire::CommandReply>(input);
  if (!message) return {};
  const auto once = message_of<wire::CommandReply>(decode_result(*message));
  NS_CHECK(once.result_case() == message->result_case());
  const auto twice = message_of<wire::CommandReply>(decode_result(once));
  NS_CHECK(once.SerializeAsString() == twice.SerializeAsString());
  if (message->has_snapshot()) check_limits(decode(message->snapshot()));
  return once.SerializeAsString();
}

Answer read_what_if_query(ByteSpan input) {
  const auto message = parse<wire::WhatIfQuery>(input);
  if (!message) return {};
  const auto query = decode(*message);
  NS_CHECK(query.ok() == (message->has_memory() || message->leave()));
  if (!query.ok()) return {};
  const auto once = message_of<wire::WhatIfQuery>(*query);
  const auto again = decode(once);
  NS_CHECK(again.ok() && again->memory_bytes == query->memory_bytes);
  return once.SerializeAsString();
}

Answer read_what_if(ByteSpan input) {
  const auto message = parse<wire::WhatIf>(input);
  if (!message) return {};
  const node::WhatIf answer = decode(*message);
  NS_CHECK(answer.now.asks <= node::SizeChange::Down && answer.then.asks <= node::SizeChange::Down);
  return read<wire::WhatIf>(input);
}

Answer read_rounds(ByteSpan input) {
  const auto message = parse<wire::RoundsReport>(input);
  if (!message) return {};
  const node::RoundsReport report = decode(*message);
  NS_CHECK(report.rounds.size() <= node::max_round_entries);
  NS_CHECK(report.nodes.size() <= node::max_training_nodes);
  NS_CHECK(report.losses.size() <= node::max_global_losses);
  return read<wire::RoundsReport>(input);
}

// A failed call: a code, then the details.
Answer read_status(ByteSpan input) {
  if (input.empty()) return {};
  const auto code = static_cast<grpc::StatusCode>(input[0]);
  const std::string details(as_text(input.subspan(1)));
  const Error error = to_error(grpc::Status(code, details, details));
  NS_CHECK(error.code <= ErrorCode::Internal);
  NS_CHECK(!to_string(error.code).empty());
  return {};
}

// Texts of any bytes: messages of peers, names of files. A message with them still arrives.
Answer read_text(ByteSpan input) {
  const std::string text(as_text(input));
  for (const ErrorCode code : {ErrorCode::Corrupt, ErrorCode::Io}) {
    const Error error = to_error(to_status({code, text, text}));
    NS_CHECK(error.code == code);
    wire::Event event;
    NS_CHECK(encode(node::Event(node::Ended{Error{code, text, text}}), &event));
    sent(event);
  }
  node::LogPage page;
  page.entries.push_back({1, {}, {LogLevel::Info, text, text}});
  message_of<wire::LogPage>(page);
  node::SessionSensors session;
  session.full_screen_program = text;
  message_of<wire::SessionReport>(session);
  node::Snapshot snapshot;
  snapshot.rounds.trouble = snapshot.http.trouble = text;
  snapshot.alerts.push_back({text, node::Severity::Notice, text, {}});
  node::bound(snapshot);
  message_of<wire::Snapshot>(snapshot);
  return {};
}

constexpr Answer (*readers[])(ByteSpan) = {read_snapshot,
                                           read_change,
                                           read_event,
                                           read_command,
                                           read_reply,
                                           read_what_if_query,
                                           read_what_if,
                                           read_rounds,
                                           read_status,
                                           read_text,
                                           read<wire::SeriesReply>,
                                           read<wire::LogPage>,
                                           read<wire::CheckpointPage>,
                                           read<wire::SettingList>,
                                           read<wire::EvaluationPage>,
                                           read<wire::PrunePreview>,
                                           read<wire::PrunePolicy>,
                                           read_grid<wire::SlotList>,
                                           read_grid<wire::ExpertList>,
                                           read<wire::Network>,
                                           read<wire::Invitation>,
                                           read<wire::HttpKeyReply>,
                                           read<wire::ContinuationRequest>,
                                           read<wire::ContinuationReply>,
                                           read<wire::RevocationRequest>,
                                           read<wire::RevocationReply>,
                                           read<wire::Data>,
                                           read<wire::TokenList>,
                                           read<wire::TextPiece>,
                                           read<wire::SessionReport>,
                                           read<wire::CommandProgress>};

// It writes a line for every text that is no UTF-8.
void silence_protobuf() {
#ifdef NS_FUZZ_OLD_PROTOBUF
  [[maybe_unused]] static const auto before = google::protobuf::SetLogHandler(nullptr);
#endif
}

constexpr std::uint8_t complete = 0x80;

Answer read_any(std::uint8_t choice, ByteSpan input) {
  return readers[(choice & ~complete) % std::size(readers)](input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  silence_protobuf();
  return fuzz::read_chosen(data, size, read_any);
}

extern "C" void check_seed(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || (data[0] & complete) == 0) return;
  const ByteSpan input{data + 1, size - 1};
  const Answer answer = read_any(data[0], input);
  NS_CHECK(fuzz::same(Bytes(answer.begin(), answer.end()), input));
}
