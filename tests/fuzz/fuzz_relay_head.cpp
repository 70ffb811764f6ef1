// The relay's port: heads of requests and answers, control lines. A complete head does not depend on what
// follows.
#include <string>

#include "core/base/check.h"
#include "core/nat/relay_head.h"

using neuroshard::ByteSpan;
using namespace neuroshard::nat;  // NOLINT

namespace {

template <class T>
void check_size(const neuroshard::Expected<std::optional<T>>& parsed, std::size_t size, std::size_t most) {
  if (parsed.ok() && parsed->has_value())
    NS_CHECK((*parsed)->size > 0 && (*parsed)->size <= std::min(size, most));
  // An incomplete one has room to become whole.
  if (parsed.ok() && !parsed->has_value()) NS_CHECK(size < most);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes(data, size);
  const auto request = parse_request_head(bytes);
  check_size(request, size, max_head_bytes);
  if (request.ok() && request->has_value()) {
    const auto again = parse_request_head(bytes.first((*request)->size));
    NS_CHECK(again.ok() && again->has_value() && (*again)->target == (*request)->target);
    (void)callee_in_target((*request)->target);
    (void)parse_relay_ticket((*request)->target);
  }
  check_size(parse_response_head(bytes), size, max_head_bytes);
  const auto line = parse_control_line(bytes);
  check_size(line, size, max_control_line);
  if (line.ok() && line->has_value() && (*line)->kind == ControlLine::Kind::Invite) {
    const std::string written = format_invitation((*line)->session, (*line)->caller);
    const auto again = parse_control_line(neuroshard::as_bytes(std::string_view(written)));
    NS_CHECK(again.ok() && again->has_value() && (*again)->caller == (*line)->caller);
  }
  return 0;
}
