#include "core/plan/holder_speeds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/check.h"
#include "core/plan/chain.h"

namespace neuroshard::plan {

std::vector<double> counted_speeds(const std::vector<std::uint32_t>& said) {
  std::vector<std::uint32_t> known;
  std::copy_if(said.begin(), said.end(), std::back_inserter(known),
               [](std::uint32_t speed) { return speed != 0; });
  if (known.empty()) return std::vector<double>(said.size(), 1.0);
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>((known.size() - 1) / 2);
  std::nth_element(known.begin(), middle, known.end());
  const double median = *middle;
  std::vector<double> counted;
  for (const std::uint32_t speed : said)
    counted.push_back(speed == 0 ? median : std::min<double>(speed, most_over_median * median));
  return counted;
}

double range_work(const compute::ModelShape& shape, const compute::StageRange& range) {
  double work = range.embed ? embedding_work(shape) : 0;
  work += layer_work(shape) * range.layer_count;
  return range.head ? work + head_work(shape) : work;
}

// All sessions in the ratio of the speeds, less one for each holder's own driver. A holder that its own session fills gets none.
std::vector<double> shares_of_others(const std::vector<double>& speeds, std::size_t drivers) {
  NS_CHECK(!speeds.empty());
  const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<double> shares;
  for (const double speed : speeds)
    shares.push_back(std::max(0.0, speed / all * static_cast<double>(drivers) - 1));
  double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (!(sum > 0)) {  // as many drivers as holders: they are all holders of this part
    shares = speeds;
    sum = all;
  }
  for (double& share : shares) share /= sum;
  return shares;
}

std::size_t holder_at(const std::vector<double>& shares, double place) {
  NS_CHECK(!shares.empty() && place >= 0);
  double left = place - std::floor(place);
  for (std::size_t holder = 0; holder + 1 < shares.size(); ++holder) {
    if (left < shares[holder]) return holder;
    left -= shares[holder];
  }
  // Rounding may leave a rest beyond the last share; a holder without a share is never chosen.
  std::size_t last = shares.size() - 1;
  while (last > 0 && !(shares[last] > 0)) --last;
  return last;
}

}  // namespace neuroshard::plan
