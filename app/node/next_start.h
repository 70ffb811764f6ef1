// Whether a node starts anew in its process, as a new program or with another model, and with which command
// line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/cancel.h"

namespace neuroshard::app {

// How far the start before it came.
struct EarlierStart {
  bool joined = false;    // the data directory keeps what the invitation says
  bool prepared = false;  // the text was imported
};

struct Ending {
  std::string_view next;  // why the node goes on in this process, for people; empty: it does not
  EarlierStart start;
  CancelSource stopped;  // by another program
};

// Something comes next, and nobody has stopped the node: neither by a signal (`stop`) nor by another program.
bool starts_anew(const Ending& ending, const CancelToken& stop);

// `arguments`: those of the start before, the program's name first. An invitation that was followed is left out:
// others can read command lines. So is text that was imported: it may be gone meanwhile.
std::vector<std::string> arguments_of_next_start(const std::vector<std::string>& arguments,
                                                 const EarlierStart& before);

}  // namespace neuroshard::app
