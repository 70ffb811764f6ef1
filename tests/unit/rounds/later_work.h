// The other thread of a node's rounds, which stands still until the test says so. Header only.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "core/rounds/learner.h"

namespace neuroshard::test {

struct LaterWork final : rounds::RoundWork {
  void run(std::function<void()> job, std::function<void()> done) override {
    jobs.emplace_back(std::move(job), std::move(done));
  }
  void run_all() {
    for (const auto& [job, done] : std::exchange(jobs, {})) {
      job();
      done();
    }
  }
  std::vector<std::pair<std::function<void()>, std::function<void()>>> jobs;
};

}  // namespace neuroshard::test
