// Memory bandwidth: the limit of all streaming work.
#include <cstring>
#include <memory>

#include "app/node/commands/bench/bench_row.h"

namespace neuroshard::app {
namespace {

constexpr std::size_t copy_bytes = 32u << 20;  // beyond every cache that one core fills alone
constexpr int copies = 4;

}  // namespace

Contender memcpy_yardstick() {
  auto from = std::make_shared<std::vector<char>>(copy_bytes, 'x');
  auto to = std::make_shared<std::vector<char>>(copy_bytes);
  return {"memcpy", [from, to]() -> Expected<double> {
            for (int i = 0; i < copies; ++i) {
              (*from)[0] = static_cast<char>(i);  // each copy has new content
              std::memcpy(to->data(), from->data(), copy_bytes);
            }
            return double{copies} * copy_bytes;
          }};
}

// STREAM's triad (McCalpin 1995): a = b + s·c; bytes read and written are counted, the write-allocate is not.
Expected<BenchReport> bench_memory(BenchContext& context) {
  constexpr std::size_t count = copy_bytes / sizeof(float);
  auto arrays = std::make_shared<std::vector<std::vector<float>>>(3, std::vector<float>(count, 1.0f));
  const Contender triad{"triad", [arrays]() -> Expected<double> {
                          float* const a = (*arrays)[0].data();
                          const float* const b = (*arrays)[1].data();
                          const float* const c = (*arrays)[2].data();
                          for (int pass = 0; pass < copies; ++pass) {
                            const float scale = 1.0f + static_cast<float>(pass);
                            for (std::size_t i = 0; i < count; ++i) a[i] = b[i] + scale * c[i];
                          }
                          return 3.0 * copies * copy_bytes;
                        }};
  BenchReport report{{"GB/s", 1e9}, {"GB/s", 1e9}, {}, {}, {{"threads", "1"}}};
  NS_ASSIGN_OR_RETURN(report.result, run_interleaved(context.clock, memcpy_yardstick(), {triad},
                                                     context.rounds, context.stop));
  return report;
}

}  // namespace neuroshard::app
