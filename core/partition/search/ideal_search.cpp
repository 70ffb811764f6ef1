#include "core/partition/search/ideal_search.h"

#include <algorithm>
#include <bit>

#include "core/partition/search/detail/ideal_store.h"
#include "core/partition/search/detail/reachability.h"

namespace neuroshard::partition {
namespace {

using detail::IdealStore;

constexpr double rounding = 1e-10;
// Layers up to this size are filtered pairwise by absorption.
constexpr std::size_t max_pairwise = 12'000;
// Memory for ideals; a search that needs more gives up.
constexpr std::size_t max_store_bytes = 512u << 20;
// Codes of used devices fit 64 bits.
constexpr double max_code = 9e18;

class Search {
 public:
  Search(const TensorGraph& graph, const std::vector<Device>& devices, double limit,
         const IdealSearchLimits& limits)
      : graph_(graph),
        kinds_(kinds_of(devices)),
        limit_(limit * (1 + rounding)),
        limits_(limits),
        words_((graph.size() + 63) / 64),
        reach_(graph),
        store_(words_) {
    prepare();
  }

  IdealAnswer run();

 private:
  void prepare();
  void begin(std::uint32_t state);
  void extend(std::size_t at);
  void take(NodeIndex v);
  void give_back(NodeIndex v, std::size_t candidates);
  void leaf();
  bool absorbed() const;
  bool is_free(NodeIndex v) const;
  void block(NodeIndex v);
  double cost_with(NodeIndex x) const;
  bool out_of_steps();
  void thin(std::vector<std::uint32_t>* layer);
  void absorb_layer(std::vector<std::uint32_t>* layer);
  void read_chain(std::uint32_t state);
  double rest_capacity(std::uint64_t used) const;

  const TensorGraph& graph_;
  const std::vector<DeviceKind> kinds_;
  const double limit_;
  const IdealSearchLimits& limits_;
  const std::size_t words_;
  const detail::Reachability reach_;
  IdealStore store_;
  IdealAnswer answer_;
  bool truncated_ = false;
  bool out_ = false;

  double total_work_ = 0;
  std::vector<std::uint64_t> light_;  // bit per node
  std::vector<double> produced_cost_;
  std::vector<std::uint64_t> place_;  // weight of each kind in the code of used devices

  // The ideal that is being extended, and the block grown over it.
  std::uint32_t parent_ = 0;
  std::uint32_t kind_ = 0;
  double base_work_ = 0;  // of the parent ideal
  std::size_t base_count_ = 0;
  double needed_work_ = 0;  // least work of the block, or the rest does not fit the other devices
  std::vector<std::uint64_t> ideal_;
  std::vector<std::uint32_t> missing_;      // inputs of a node that are not in the ideal
  std::vector<std::uint32_t> waiting_;      // consumers of a tensor that are not in the ideal
  std::vector<std::uint8_t> inner_;         // tensor was produced in the block
  std::vector<std::uint32_t> readers_;      // nodes of the block that read a tensor from before
  std::vector<std::uint32_t> left_out_of_;  // consumers of an inner tensor that were left out
  std::vector<NodeIndex> candidates_;
  std::vector<NodeIndex> left_out_, taken_;
  std::vector<std::uint64_t> blocked_;  // left out, or after something that was
  double blocked_work_ = 0;
  std::vector<std::uint64_t> undo_;  // rows of blocked_ to come back to
  double work_ = 0, in_ = 0, out_cost_ = 0, sure_out_ = 0, params_ = 0;
  std::uint64_t steps_here_ = 0;
  std::vector<std::uint32_t>* next_ = nullptr;
  bool reached_all_ = false;
  std::uint32_t last_ = 0;
};

void Search::prepare() {
  const std::size_t n = graph_.size();
  total_work_ = graph_.total_work();
  light_.assign(words_, 0);
  for (NodeIndex v = 0; v < n; ++v) {
    double out = 0;
    for (const TensorIndex t : graph_.produced[v]) out += graph_.tensors[t].cost;
    produced_cost_.push_back(out);
    const bool light = std::all_of(kinds_.begin(), kinds_.end(), [&](const DeviceKind& kind) {
      return out * kind.device.io_factor <= graph_.work[v] * kind.device.work_factor;
    });
    if (light) light_[v / 64] |= std::uint64_t{1} << (v % 64);
  }
  std::uint64_t place = 1;
  for (const DeviceKind& kind : kinds_) {
    place_.push_back(place);
    place *= kind.count + 1;
  }
  ideal_.assign(words_, 0);
  missing_.resize(n);
  waiting_.resize(graph_.tensors.size());
  inner_.assign(graph_.tensors.size(), 0);
  readers_.assign(graph_.tensors.size(), 0);
  left_out_of_.assign(graph_.tensors.size(), 0);
}

double Search::rest_capacity(std::uint64_t used) const {
  double capacity = 0;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    const std::uint64_t count = used / place_[i] % (kinds_[i].count + 1);
    capacity += static_cast<double>(kinds_[i].count - count) * limit_ / kinds_[i].device.work_factor;
  }
  return capacity;
}

// Makes `state` the ideal to extend.
void Search::begin(std::uint32_t state) {
  parent_ = state;
  std::copy_n(store_.bits(state), words_, ideal_.begin());
  base_work_ = 0;
  base_count_ = 0;
  candidates_.clear();
  left_out_.clear();
  taken_.clear();
  const auto inside = [&](NodeIndex v) { return (ideal_[v / 64] >> (v % 64)) & 1; };
  for (TensorIndex t = 0; t < graph_.tensors.size(); ++t) {
    const Tensor& tensor = graph_.tensors[t];
    waiting_[t] = 0;
    for (const NodeIndex c : tensor.consumers) waiting_[t] += !inside(c);
  }
  for (NodeIndex v = 0; v < graph_.size(); ++v) {
    if (inside(v)) {
      base_work_ += graph_.work[v];
      ++base_count_;
      continue;
    }
    missing_[v] = 0;
    for (const NodeIndex u : graph_.predecessors[v]) missing_[v] += !inside(u);
    if (missing_[v] == 0) candidates_.push_back(v);
  }
  work_ = in_ = out_cost_ = sure_out_ = params_ = 0;
  blocked_work_ = 0;
  blocked_.assign(words_, 0);
}

void Search::take(NodeIndex v) {
  ideal_[v / 64] |= std::uint64_t{1} << (v % 64);
  taken_.push_back(v);
  work_ += graph_.work[v];
  params_ += graph_.params[v];
  for (const TensorIndex t : graph_.consumed[v]) {
    --waiting_[t];
    if (inner_[t]) {
      if (waiting_[t] == 0) out_cost_ -= graph_.tensors[t].cost;
    } else if (readers_[t]++ == 0) {
      in_ += graph_.tensors[t].cost;
    }
  }
  for (const TensorIndex t : graph_.produced[v]) {
    inner_[t] = 1;
    out_cost_ += graph_.tensors[t].cost;
  }
  for (const NodeIndex s : graph_.successors[v]) {
    if (--missing_[s] == 0) candidates_.push_back(s);
  }
}

void Search::give_back(NodeIndex v, std::size_t candidates) {
  for (const NodeIndex s : graph_.successors[v]) ++missing_[s];
  candidates_.resize(candidates);
  for (const TensorIndex t : graph_.produced[v]) inner_[t] = 0;
  for (const TensorIndex t : graph_.consumed[v]) {
    ++waiting_[t];
    if (!inner_[t]) --readers_[t];
  }
  taken_.pop_back();
  ideal_[v / 64] &= ~(std::uint64_t{1} << (v % 64));
}

bool Search::out_of_steps() {
  if (out_) return true;
  ++answer_.steps;
  if (++steps_here_ > limits_.steps_per_ideal) return truncated_ = true;
  if (answer_.steps > limits_.steps) out_ = true;
  if ((answer_.steps & 1023) == 0 && limits_.stop && limits_.stop()) out_ = true;
  return out_;
}

// Taking v costs nothing, now or later in this branch, so what leaves it out is absorbed.
bool Search::is_free(NodeIndex v) const {
  if (graph_.work[v] > 0 || graph_.params[v] > 0 || produced_cost_[v] > 0) return false;
  return std::all_of(graph_.consumed[v].begin(), graph_.consumed[v].end(), [&](TensorIndex t) {
    return inner_[t] || readers_[t] > 0 || !(graph_.tensors[t].cost > 0);
  });
}

// v and everything after it can't be in the block any more.
void Search::block(NodeIndex v) {
  const auto add = [&](std::size_t word, std::uint64_t bits) {
    for (std::uint64_t rest = bits & ~blocked_[word]; rest != 0; rest &= rest - 1) {
      blocked_work_ += graph_.work[word * 64 + static_cast<std::size_t>(std::countr_zero(rest))];
    }
    blocked_[word] |= bits;
  };
  add(v / 64, std::uint64_t{1} << (v % 64));
  for (std::size_t w = 0; w < words_; ++w) add(w, reach_.after.row(v)[w]);
}

// Decides candidate `at` and everything after it.
void Search::extend(std::size_t at) {
  if (reached_all_ || out_of_steps()) return;
  const Device& device = kinds_[kind_].device;
  const double sure = device.block_cost(work_, in_ + sure_out_, params_, 0);
  if (sure > limit_) return;
  // The nodes left out, and all their successors, are missing for the fill.
  if (total_work_ - base_work_ - blocked_work_ < needed_work_) return;
  // Even if the rest of T goes into work, the other devices could not do what remains.
  if (device.block_cost(needed_work_, in_ + sure_out_, 0, 0) > limit_) return;
  if (at == candidates_.size()) {
    leaf();
    return;
  }
  const NodeIndex v = candidates_[at];
  const double work = work_, in = in_, out = out_cost_, sure_out = sure_out_, params = params_;
  const std::size_t count = candidates_.size();
  if (device.block_cost(work + graph_.work[v], in + sure_out, params + graph_.params[v], 0) <= limit_) {
    take(v);
    extend(at + 1);
    give_back(v, count);
    work_ = work, in_ = in, out_cost_ = out, params_ = params;
  }
  if (is_free(v)) return;
  left_out_.push_back(v);
  for (const TensorIndex t : graph_.consumed[v]) {
    if (inner_[t] && left_out_of_[t]++ == 0) sure_out_ += graph_.tensors[t].cost;
  }
  const double blocked_work = blocked_work_;
  undo_.insert(undo_.end(), blocked_.begin(), blocked_.end());
  block(v);
  extend(at + 1);
  std::copy_n(undo_.end() - static_cast<std::ptrdiff_t>(words_), words_, blocked_.begin());
  undo_.resize(undo_.size() - words_);
  blocked_work_ = blocked_work;
  for (const TensorIndex t : graph_.consumed[v]) {
    if (inner_[t]) --left_out_of_[t];
  }
  left_out_.pop_back();
  sure_out_ = sure_out;
}

// Cost of the block with x added, whose inputs are all in the ideal.
double Search::cost_with(NodeIndex x) const {
  double in = in_, out = out_cost_ + produced_cost_[x];
  for (const TensorIndex t : graph_.consumed[x]) {
    if (inner_[t]) {
      if (waiting_[t] == 1) out -= graph_.tensors[t].cost;
    } else if (readers_[t] == 0) {
      in += graph_.tensors[t].cost;
    }
  }
  return kinds_[kind_].device.block_cost(work_ + graph_.work[x], in + out, params_ + graph_.params[x], 0);
}

bool Search::absorbed() const {
  return std::any_of(left_out_.begin(), left_out_.end(), [&](NodeIndex x) {
    return ((light_[x / 64] >> (x % 64)) & 1) && cost_with(x) <= limit_ * (1 - 4 * rounding);
  });
}

// The ideal as it stands ends a block.
void Search::leaf() {
  if (taken_.empty()) return;
  const double cost = kinds_[kind_].device.block_cost(work_, in_ + out_cost_, params_, 0);
  if (cost > limit_ || work_ < needed_work_ * (1 - rounding) || absorbed()) return;
  const std::uint64_t used = store_.used(parent_) + place_[kind_];
  const auto [state, is_new] = store_.insert(ideal_.data(), used, parent_, kind_, kinds_.size() == 1);
  if (!is_new) return;
  ++answer_.ideals;
  if (store_.bytes() > max_store_bytes) out_ = true;
  store_.set_score(state, base_work_ + work_ - out_cost_);
  if (base_count_ + taken_.size() == graph_.size()) {
    reached_all_ = true;
    last_ = state;
    return;
  }
  next_->push_back(state);
}

// Drops the ideals that a larger one of the layer absorbs.
void Search::absorb_layer(std::vector<std::uint32_t>* layer) {
  std::sort(layer->begin(), layer->end(), [&](std::uint32_t a, std::uint32_t b) {
    return store_.score(a) != store_.score(b) ? store_.score(a) > store_.score(b) : a < b;
  });
  if (layer->size() > max_pairwise) return;
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t small : *layer) {
    const bool covered = std::any_of(kept.begin(), kept.end(), [&](std::uint32_t large) {
      if (store_.used(large) != store_.used(small)) return false;
      for (std::size_t w = 0; w < words_; ++w) {
        const std::uint64_t s = store_.bits(small)[w], l = store_.bits(large)[w];
        if ((s & ~l) != 0 || (l & ~s & ~light_[w]) != 0) return false;
      }
      return true;
    });
    if (!covered) kept.push_back(small);
  }
  *layer = std::move(kept);
}

void Search::thin(std::vector<std::uint32_t>* layer) {
  if (layer->size() <= limits_.layer) return;
  layer->resize(limits_.layer);  // sorted by absorb_layer, fullest first
  truncated_ = true;
}

void Search::read_chain(std::uint32_t state) {
  std::vector<std::uint32_t> chain;
  for (; state != store_.root(); state = store_.parent(state)) chain.push_back(state);
  std::reverse(chain.begin(), chain.end());
  answer_.block_of.assign(graph_.size(), 0);
  answer_.kind_of_block.clear();
  for (std::uint32_t b = 0; b < chain.size(); ++b) {
    answer_.kind_of_block.push_back(store_.kind(chain[b]));
    for (NodeIndex v = 0; v < graph_.size(); ++v) {
      const bool now = (store_.bits(chain[b])[v / 64] >> (v % 64)) & 1;
      const bool before = (store_.bits(store_.parent(chain[b]))[v / 64] >> (v % 64)) & 1;
      if (now && !before) answer_.block_of[v] = b;
    }
  }
}

IdealAnswer Search::run() {
  std::vector<std::uint32_t> layer{store_.root()};
  std::uint32_t blocks = 0;
  for (const DeviceKind& kind : kinds_) blocks += kind.count;
  for (std::uint32_t b = 0; b < blocks && !layer.empty(); ++b) {
    std::vector<std::uint32_t> next;
    next_ = &next;
    for (const std::uint32_t state : layer) {
      begin(state);
      steps_here_ = 0;
      for (kind_ = 0; kind_ < kinds_.size(); ++kind_) {
        const std::uint64_t used = store_.used(state);
        if (used / place_[kind_] % (kinds_[kind_].count + 1) == kinds_[kind_].count) continue;
        needed_work_ = total_work_ - base_work_ - rest_capacity(used + place_[kind_]) * (1 + rounding);
        extend(0);
        if (reached_all_) {
          answer_.verdict = IdealVerdict::Found;
          read_chain(last_);
          return std::move(answer_);
        }
        if (out_) return std::move(answer_);
      }
    }
    absorb_layer(&next);
    thin(&next);
    layer = std::move(next);
  }
  answer_.verdict = truncated_ ? IdealVerdict::Unknown : IdealVerdict::Refuted;
  return std::move(answer_);
}

}  // namespace

IdealAnswer search_ideals(const TensorGraph& graph, const std::vector<Device>& devices, double limit,
                          const IdealSearchLimits& limits) {
  double codes = 1;
  for (const DeviceKind& kind : kinds_of(devices)) codes *= kind.count + 1;
  if (codes > max_code) return {};
  return Search(graph, devices, limit, limits).run();
}

}  // namespace neuroshard::partition
