#include "app/node/commands/bench/bench_streams.h"

#include <algorithm>
#include <functional>
#include <future>
#include <memory>

#include "core/base/executor.h"

namespace neuroshard::app {
namespace {

constexpr std::size_t floats_each = 24u << 20;  // 96 MiB an array: beyond the caches
constexpr std::size_t floats_read = 64u << 20;
constexpr std::size_t lanes = 64;  // sums that do not wait for each other

// Runs a function once per part, each part always on the same thread.
class Team {
 public:
  explicit Team(unsigned threads) {
    for (unsigned i = 0; i < std::max(1u, threads); ++i)
      threads_.push_back(make_thread_executor("bench-stream", 4));
  }
  std::size_t size() const { return threads_.size(); }
  Expected<void> run(const std::function<void(std::size_t part)>& work) {
    std::vector<std::promise<void>> done(size());
    std::size_t posted = 0;
    for (; posted < size(); ++posted) {
      if (!threads_[posted]->post([&work, &done, posted] {
            work(posted);
            done[posted].set_value();
          }))
        break;
    }
    for (std::size_t i = 0; i < posted; ++i) done[i].get_future().wait();
    if (posted == size()) return {};
    return make_error(ErrorCode::Unavailable, "a measuring thread accepted no work");
  }

 private:
  std::vector<std::unique_ptr<Executor>> threads_;
};

struct Range {
  std::size_t begin, end;
};
Range part_of(std::size_t count, std::size_t part, std::size_t parts) {
  return {count * part / parts, count * (part + 1) / parts};
}

}  // namespace

Contender update_contender(unsigned threads) {
  auto team = std::make_shared<Team>(threads);
  auto arrays = std::make_shared<std::vector<std::vector<float>>>(2, std::vector<float>(floats_each, 1.0f));
  return {"a += s*c", [team, arrays]() -> Expected<double> {
            NS_RETURN_IF_ERROR(team->run([&](std::size_t part) {
              const auto [begin, end] = part_of(floats_each, part, team->size());
              float* const a = (*arrays)[0].data();
              const float* const c = (*arrays)[1].data();
              for (std::size_t i = begin; i < end; ++i) a[i] += 3.0f * c[i];
            }));
            return 3.0 * floats_each * sizeof(float);
          }};
}

Contender read_contender(unsigned threads) {
  auto team = std::make_shared<Team>(threads);
  auto array = std::make_shared<std::vector<float>>(floats_read, 1.0f);
  auto sums = std::make_shared<std::vector<float>>(team->size());
  return {"read", [team, array, sums]() -> Expected<double> {
            NS_RETURN_IF_ERROR(team->run([&](std::size_t part) {
              const auto [begin, end] = part_of(floats_read, part, team->size());
              float lane[lanes] = {};
              for (std::size_t i = begin; i + lanes <= end; i += lanes) {
                for (std::size_t j = 0; j < lanes; ++j) lane[j] += (*array)[i + j];
              }
              for (const float value : lane) (*sums)[part] += value;
            }));
            if ((*sums)[0] <= 0) return make_error(ErrorCode::Internal, "the sum of ones is not positive");
            return double{floats_read} * sizeof(float);
          }};
}

}  // namespace neuroshard::app
