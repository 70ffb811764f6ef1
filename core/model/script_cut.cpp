#include "core/model/script_cut.h"

#include <algorithm>
#include <map>

#include "core/model/script_file.h"

namespace neuroshard::model {
namespace {

using compute::script_driver;
using torch::jit::Value;

void check(const ScriptUnits& units, Span<const std::uint32_t> block_of, std::uint32_t blocks) {
  const auto wrong = [](const char* what) {
    return ScriptError(ErrorCode::InvalidArgument, std::string("The cut is not a pipeline: ") + what);
  };
  if (block_of.size() != units.nodes.size() || blocks == 0)
    throw wrong("it does not give every node a block.");
  for (std::size_t i = 0; i < block_of.size(); ++i) {
    if (block_of[i] >= blocks) throw wrong("it names a block that does not exist.");
    for (const std::uint32_t input : units.nodes[i].inputs) {
      if (block_of[input] > block_of[i]) throw wrong("a value flows backwards.");
    }
  }
  for (const auto& group : units.groups) {
    for (const std::uint32_t node : group) {
      if (block_of[node] != block_of[group[0]]) throw wrong("it divides nodes that must share a block.");
    }
  }
}

class Cutter {
 public:
  Cutter(const ScriptStructure& structure, const ScriptUnits& units, Span<const std::uint32_t> block_of)
      : structure_(structure), units_(units), block_of_(block_of) {}

  ScriptCut cut(std::uint32_t blocks) {
    ScriptCut cut;
    cut.contents.resize(blocks);
    const ScriptNodes& operations = structure_.operations();
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const std::uint32_t block = block_of_maker(structure_.maker_of_operation(i));
      cut.contents[block].push_back(operations[i]);
      for (Value* source : structure_.sources(operations[i])) send(source, block);
    }
    // A constant comes from the first block.
    for (Value* result : structure_.results()) send(result, script_driver);
    start_blocks(blocks);
    for (auto& [ends, values] : links_) {
      const auto block = [](std::int64_t end) {
        return end < 0 || end > 0xffffffff ? script_driver : static_cast<std::uint32_t>(end);
      };
      cut.links.push_back({block(ends.first), block(ends.second), std::move(values)});
    }
    for (std::uint32_t b = 0; b < blocks; ++b) {
      ScriptValues inputs, outputs;
      for (const ScriptCutLink& link : cut.links) {
        ScriptValues* list = link.to == b ? &inputs : link.from == b ? &outputs : nullptr;
        if (list != nullptr) list->insert(list->end(), link.values.begin(), link.values.end());
      }
      cut.blocks.push_back(structure_.extract(cut.contents[b], inputs, outputs));
    }
    return cut;
  }

 private:
  std::uint32_t block_of_maker(std::size_t maker) const { return block_of_[units_.node_of_maker[maker]]; }

  // The ends order as the header says: the driver is before all blocks as a sender and after them as a
  // receiver.
  void send(Value* value, std::uint32_t to) {
    if (structure_.folded(value->node())) {
      add(value, 0, to);
      return;
    }
    const std::size_t maker = structure_.maker(value);
    const bool argument = maker < structure_.argument_count();
    // An argument that is only handed back enters at the first block.
    const bool placed = units_.node_of_maker[maker] != ScriptUnits::no_node;
    const std::uint32_t home = placed ? block_of_maker(maker) : 0;
    if (argument) add(value, script_driver, home);
    if (home != to) add(value, home, to);
  }

  // A worker runs its block when a message of each incoming link is there: each needs one.
  void start_blocks(std::uint32_t blocks) {
    std::vector<bool> receives(blocks);
    for (const auto& [ends, values] : links_) {
      if (ends.second < std::int64_t{blocks}) receives[static_cast<std::size_t>(ends.second)] = true;
    }
    for (std::uint32_t b = 0; b < blocks; ++b) {
      if (!receives[b]) links_[{-1, b}];
    }
  }

  void add(Value* value, std::uint32_t from, std::uint32_t to) {
    constexpr std::int64_t after_all = std::int64_t{1} << 40;
    const std::int64_t sender = from == script_driver ? std::int64_t{-1} : from;
    ScriptValues& values = links_[{sender, to == script_driver ? after_all : to}];
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }

  const ScriptStructure& structure_;
  const ScriptUnits& units_;
  Span<const std::uint32_t> block_of_;
  std::map<std::pair<std::int64_t, std::int64_t>, ScriptValues> links_;
};

}  // namespace

ScriptCut cut_script(const ScriptStructure& structure, const ScriptUnits& units,
                     Span<const std::uint32_t> block_of, std::uint32_t blocks) {
  check(units, block_of, blocks);
  return Cutter(structure, units, block_of).cut(blocks);
}

}  // namespace neuroshard::model
