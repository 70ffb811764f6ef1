// What a node has of the rows when it starts: the states on its disk, the weights that its model begins with,
// and their hashes, which a genesis of this node names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/engine/chain_files.h"
#include "core/rounds/fragments.h"
#include "core/rounds/step.h"

namespace neuroshard::runtime {

struct ChainBeginning {
  std::vector<rounds::Anchor> first;                   // by row; null: the model is made again later
  std::vector<std::optional<engine::StateFile>> kept;  // by row
  std::vector<Hash256> hashes;                         // of `first`; zeros where it is null
  std::vector<std::string> notes;                      // for the log
};

struct BeginningSources {
  storage::FileEnv& disk;
  engine::ChainFiles& files;
  std::string directory;  // D; states of the former format are in D/rounds
  Hash256 network{};
  rounds::OuterRules rules;
  std::vector<rounds::Fragment> fragments;  // by row
  bool has_blocks = false;                  // the disk has a history
};

// first: the weights of the model's begin, by row. A state may have gigabytes, so this is for a thread that may
// wait.
ChainBeginning read_beginning(const BeginningSources& from, std::vector<rounds::Anchor> first);

}  // namespace neuroshard::runtime
