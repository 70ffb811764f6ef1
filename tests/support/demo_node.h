// A fake core in the middle of a training run of the solo model, with data for every page; the same on every
// run. For screenshots and tests of layout.
#pragma once

#include <memory>

#include "core/base/clock.h"
#include "tests/support/fake_node.h"

namespace neuroshard::testing {

// Times are relative to the clock's present.
std::shared_ptr<FakeNode> make_demo_node(const Clock& clock);
// The same core as a member of a network that trains in rounds, with peers; one of them holds other weights.
void join_demo_network(FakeNode& node, const Clock& clock);

}  // namespace neuroshard::testing
