// The command line of a node that starts anew in its process: as a new program, or with another model.
#pragma once

#include <string>
#include <vector>

namespace neuroshard::app {

// How far the start before it came.
struct EarlierStart {
  bool joined = false;    // the user agreed to the invitation
  bool prepared = false;  // the text was imported
};

// `arguments`: those of the start before, the program's name first. Nobody is asked again, and text that was
// imported may be gone meanwhile.
std::vector<std::string> arguments_of_next_start(const std::vector<std::string>& arguments,
                                                 const EarlierStart& before);

}  // namespace neuroshard::app
