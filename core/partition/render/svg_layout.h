// Where a picture's boxes stand: one column per block from left to right, its nodes in rows by their longest
// path inside the block, ordered by the mean position of their inputs and readers.
#pragma once

#include <cstdint>
#include <vector>

#include "core/partition/search/partition.h"

namespace neuroshard::partition {

inline constexpr double svg_box_width = 96, svg_box_height = 20;

struct SvgColumn {
  double left = 0, width = 0, bottom = 0;
};

struct SvgLayout {
  std::vector<std::uint32_t> block_of;  // per node
  std::vector<double> x, y;             // per node: centre of its box
  std::vector<std::uint32_t> row;       // per node, within its column
  std::vector<SvgColumn> columns;       // per block
  double right = 0, bottom = 0;         // of all columns
};

// `top`, `left`: of the first column. Boxes start `header` below the top.
SvgLayout lay_out(const ComputationGraph& graph, const PartitionResult& result, double left, double top,
                  double header);

}  // namespace neuroshard::partition
