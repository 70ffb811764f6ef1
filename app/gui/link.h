// neuroshard: links, from a browser or another program. The app always shows the request and asks for a yes
// before it follows a link.
//   neuroshard:attach?file=/path/to/control.json    connect to the core that the file names
//   neuroshard:join?to=…                            an invitation to a network; the core reads it
//   neuroshard:invite?peer=host:port                a computer of the network to begin with
#pragma once

#include <QString>
#include <variant>

namespace neuroshard::gui {

struct AttachLink {
  QString file;  // an absolute path on this machine
};
struct JoinLink {
  QString link;  // all of it
};
struct InviteLink {
  QString peer;  // host:port
};
struct UnknownLink {
  QString why;  // for people
};
using Link = std::variant<AttachLink, JoinLink, InviteLink, UnknownLink>;

// Any text is safe.
Link parse_link(const QString& text);

}  // namespace neuroshard::gui
