#include "core/outer/evidence.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace neuroshard::outer {
namespace {

// Sums over coordinates, lane l those ≡ l mod 8, joined by a fixed tree.
class Lanes {
 public:
  void add(std::size_t index, double value) { lanes_[index % 8] += value; }
  double sum() const {
    return ((lanes_[0] + lanes_[4]) + (lanes_[2] + lanes_[6])) +
           ((lanes_[1] + lanes_[5]) + (lanes_[3] + lanes_[7]));
  }

 private:
  double lanes_[8] = {};
};

double ratio(double a, double b) {
  if (b > 0) return a / b;
  return a > 0 ? std::numeric_limits<double>::infinity() : 1;
}

}  // namespace

bool is_usual(const Evidence& evidence) {
  return evidence.cosine >= usual_cosine && evidence.norm_ratio >= least_norm_ratio &&
         evidence.norm_ratio <= most_norm_ratio && evidence.variance_ratio <= most_variance_ratio;
}

Expected<Evidence> compare(Span<const float> delta, Span<const float> reference) {
  if (delta.size() != reference.size() || delta.empty())
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("deltas that are compared need one size, not {} and {} values",
                                  delta.size(), reference.size()));
  Lanes both, squares_d, squares_r, sum_d, sum_r;
  for (std::size_t i = 0; i < delta.size(); ++i) {
    const double d = delta[i], r = reference[i];
    both.add(i, d * r);
    squares_d.add(i, d * d);
    squares_r.add(i, r * r);
    sum_d.add(i, d);
    sum_r.add(i, r);
  }
  const double dd = squares_d.sum(), rr = squares_r.sum(), n = static_cast<double>(delta.size());
  if (!std::isfinite(dd) || !std::isfinite(rr))
    return make_error(ErrorCode::InvalidArgument, "a delta that is compared has a value that is not finite");
  const double mean_d = sum_d.sum() / n, mean_r = sum_r.sum() / n;
  Evidence evidence;
  evidence.cosine = dd > 0 && rr > 0 ? both.sum() / (std::sqrt(dd) * std::sqrt(rr)) : 0;
  evidence.norm_ratio = ratio(std::sqrt(dd), std::sqrt(rr));
  evidence.variance_ratio = ratio(dd / n - mean_d * mean_d, rr / n - mean_r * mean_r);
  return evidence;
}

}  // namespace neuroshard::outer
