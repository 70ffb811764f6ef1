// The states of the rows that a node has when it starts: those on its disk, the weights that its model begins with,
// and their hashes, which a genesis of this node names.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/chain_files.h"
#include "core/rounds/fragments.h"
#include "core/rounds/step.h"

namespace neuroshard::runtime {

struct ChainBeginning {
  // By row; null: the model is made again later, or this node does not hold the row.
  std::vector<rounds::Anchor> first;
  std::vector<std::vector<engine::StateFile>> kept;  // by row, the newest state first
  std::vector<Hash256> hashes;                       // of each row's first state; zeros: not known
  std::vector<std::string> notes;                    // for the log
};

struct BeginningSources {
  storage::FileEnv& disk;
  engine::RowFiles rows;
  std::string directory;  // D; states of the former format are in D/rounds
  Hash256 network{};
  rounds::OuterRules rules;
  std::vector<rounds::Fragment> fragments;  // by row
  bool has_blocks = false;                  // the disk has a history
  bool changes_size = false;                // a state may be of the model of another size
  // The first state of a row that this node does not hold, so that it can name the row's hash; null: it holds all.
  std::function<Expected<rounds::Anchor>(std::uint32_t row)> other_row = nullptr;
};

// first: the weights of the model's begin, by row. A state may have gigabytes, so this is for a thread that may
// wait.
ChainBeginning read_beginning(const BeginningSources& from, std::vector<rounds::Anchor> first);

}  // namespace neuroshard::runtime
