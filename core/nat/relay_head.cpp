#include "core/nat/relay_head.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::nat {
namespace {

Error corrupt(std::string_view what) {
  return make_error(ErrorCode::Corrupt, fmt::format("not an HTTP head: {}", what));
}

bool is_token(char c) {
  // RFC 9110 §5.6.2
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_visible(char c) {
  return c > ' ' && c < 127;
}

bool all(std::string_view text, bool (*allowed)(char)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

// The next line without its CRLF, cut off `text`. Nothing while its end is missing.
Expected<std::optional<std::string_view>> next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view seen = text.substr(0, end);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto byte = static_cast<unsigned char>(seen[i]);
    const bool line_end = seen[i] == '\r' && i + 1 == seen.size();
    if ((byte < ' ' && byte != '\t' && !line_end) || byte == 127) return corrupt("a control character");
  }
  if (end == std::string_view::npos) return std::optional<std::string_view>();
  if (seen.empty() || seen.back() != '\r') return corrupt("a line without its carriage return");
  text.remove_prefix(end + 1);
  return std::optional(seen.substr(0, seen.size() - 1));
}

// The first line and the size of the whole head, whose other lines are checked and ignored.
struct Head {
  std::string_view first;
  std::size_t size;
};
Expected<std::optional<Head>> parse_head(ByteSpan bytes) {
  const std::string_view whole = as_text(bytes.first(std::min(bytes.size(), max_head_bytes)));
  std::string_view rest = whole;
  Head head{};
  for (std::size_t lines = 0; lines <= max_head_lines; ++lines) {
    NS_ASSIGN_OR_RETURN(const auto line, next_line(rest));
    if (!line) {
      if (whole.size() < max_head_bytes) return std::optional<Head>();
      return make_error(ErrorCode::Exhausted,
                        fmt::format("the HTTP head is longer than {} bytes", max_head_bytes));
    }
    if (lines == 0) {
      head.first = *line;
    } else if (line->empty()) {
      head.size = whole.size() - rest.size();
      return std::optional(head);
    } else if (!all(line->substr(0, line->find(':')), is_token) ||
               line->find(':') == std::string_view::npos) {
      return corrupt("a header without a name");
    }
  }
  return make_error(ErrorCode::Exhausted,
                    fmt::format("the HTTP head has more than {} lines", max_head_lines));
}

constexpr std::string_view version = "HTTP/1.1";

}  // namespace

Expected<std::optional<RequestHead>> parse_request_head(ByteSpan bytes) {
  // A client of another protocol is refused before it has sent a whole line.
  for (std::size_t i = 0; i < std::min<std::size_t>(bytes.size(), 16) && bytes[i] != ' '; ++i)
    if (bytes[i] < 'A' || bytes[i] > 'Z' || i == 15) return corrupt("it does not begin with a method");
  NS_ASSIGN_OR_RETURN(const auto head, parse_head(bytes));
  if (!head) return std::optional<RequestHead>();
  const std::size_t first = head->first.find(' '), second = head->first.rfind(' ');
  if (first == std::string_view::npos || first == second)
    return corrupt("the request line has not three parts");
  RequestHead request{head->first.substr(0, first), head->first.substr(first + 1, second - first - 1),
                      head->size};
  if (head->first.substr(second + 1) != version) return corrupt("only HTTP/1.1 is supported here");
  if (!all(request.target, is_visible)) return corrupt("the target is not one word");
  return std::optional(request);
}

Expected<std::optional<ResponseHead>> parse_response_head(ByteSpan bytes) {
  NS_ASSIGN_OR_RETURN(const auto head, parse_head(bytes));
  if (!head) return std::optional<ResponseHead>();
  const std::string_view line = head->first;
  const bool shaped =
      line.size() >= 12 && line.substr(0, 7) == "HTTP/1." && line[8] == ' ' &&
      std::all_of(line.begin() + 9, line.begin() + 12, [](char c) { return c >= '0' && c <= '9'; });
  if (!shaped) return corrupt("the status line is not one");
  ResponseHead response;
  response.status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  response.reason = line.size() > 13 ? line.substr(13) : std::string_view();
  response.size = head->size;
  return std::optional(response);
}

Expected<Hash256> callee_in_target(std::string_view target) {
  const std::string_view host = target.substr(0, target.rfind(':'));
  const std::string_view digits = host.substr(0, host.find('.'));
  if (digits.size() != 64)
    return make_error(ErrorCode::InvalidArgument, "the target is not the id of a node");
  return hash_from_hex(digits);
}

Expected<RelayTicket> parse_relay_ticket(std::string_view text) {
  RelayTicket ticket{};
  if (text.size() != 2 * ticket.size())
    return make_error(ErrorCode::InvalidArgument, "this is not a relay's ticket");
  NS_ASSIGN_OR_RETURN(const Bytes bytes, from_hex(text));
  std::copy(bytes.begin(), bytes.end(), ticket.begin());
  return ticket;
}

Expected<std::optional<ControlLine>> parse_control_line(ByteSpan bytes) {
  std::string_view rest = as_text(bytes.first(std::min(bytes.size(), max_control_line)));
  const std::size_t offered = rest.size();
  NS_ASSIGN_OR_RETURN(const auto line, next_line(rest));
  if (!line) {
    if (offered < max_control_line) return std::optional<ControlLine>();
    return make_error(ErrorCode::Exhausted, "the relay's control line is too long");
  }
  ControlLine control;
  control.size = offered - rest.size();
  constexpr std::string_view invite = "INVITE ";
  if (*line == "PING") return std::optional(control);
  if (*line == "PONG") {
    control.kind = ControlLine::Kind::Pong;
    return std::optional(control);
  }
  const std::size_t blank = line->rfind(' ');
  if (line->substr(0, invite.size()) != invite || blank < invite.size())
    return make_error(ErrorCode::Corrupt, "the relay's control line is not valid");
  control.kind = ControlLine::Kind::Invite;
  NS_ASSIGN_OR_RETURN(control.session,
                      parse_relay_ticket(line->substr(invite.size(), blank - invite.size())));
  NS_ASSIGN_OR_RETURN(control.caller, platform::parse_endpoint(line->substr(blank + 1)));
  return std::optional(control);
}

std::string format_invitation(const RelayTicket& session, const platform::Endpoint& caller) {
  return fmt::format("INVITE {} {}\r\n", to_hex(session), to_text(caller));
}

}  // namespace neuroshard::nat
