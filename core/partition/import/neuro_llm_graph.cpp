#include "core/partition/import/neuro_llm_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/check.h"
#include "core/compute/module.h"
#include "core/compute/slot.h"

namespace neuroshard::partition {
namespace {

using compute::ModelShape;
using compute::SlotId;
using compute::SlotKind;

constexpr double value_bytes = sizeof(float);
// Parameters, gradients and two moments.
constexpr double trained_copies = 4;

class Builder {
 public:
  Builder(const ModelShape& shape, const ModelGraphOptions& options)
      : shape_(shape),
        options_(options),
        tokens_(static_cast<double>(options.sequences) * shape.sequence),
        query_(static_cast<double>(shape.heads) * shape.head_dim),
        key_(static_cast<double>(shape.kv_heads) * shape.head_dim) {}

  CostedGraph run();

 private:
  struct Node {
    std::string id, op;
    double params = 0;  // numbers of parameters
    double flops = 0;   // of one forward pass
    double values = 0;  // read and written beside the parameters
    double output = 0;  // values of the output
    std::vector<std::uint32_t> inputs;
  };
  std::uint32_t add(const Node& node);
  double parameters(SlotId slot, std::string_view suffix) const;
  double parameters(SlotId slot) const {
    return static_cast<double>(compute::slot_parameter_count(shape_, slot));
  }
  // A matrix product over `tokens` rows with the slot's parameter of that name.
  std::uint32_t product(const std::string& id, SlotId slot, std::string_view parameter, double tokens,
                        double in, double out, std::vector<std::uint32_t> inputs);
  std::uint32_t norm(const std::string& id, SlotId slot, std::string_view parameter, std::uint32_t input);

  double attention_flops() const { return 2 * tokens_ * query_ * shape_.sequence; }
  double expert_tokens() const { return tokens_ * shape_.experts_per_token / shape_.experts; }
  double stream() const { return tokens_ * shape_.hidden; }
  // All a layer's slot computes but the experts, and what it reads and writes.
  Node slot_node(std::uint32_t layer) const;
  Node expert_node(std::uint32_t layer, std::uint32_t expert) const;

  std::uint32_t whole_layer(std::uint32_t layer, std::uint32_t x);
  std::uint32_t slots(std::uint32_t layer, std::uint32_t x);
  std::uint32_t operators(std::uint32_t layer, std::uint32_t x);
  std::uint32_t expert_operators(std::uint32_t layer, std::uint32_t expert, double tokens, std::uint32_t x,
                                 std::vector<std::uint32_t> also);
  std::uint32_t dispatch(std::uint32_t layer, std::uint32_t expert, std::vector<std::uint32_t> from,
                         std::uint32_t home);
  void head(std::uint32_t x);

  const ModelShape& shape_;
  const ModelGraphOptions& options_;
  const double tokens_, query_, key_;
  CostedGraph result_;
};

std::uint32_t Builder::add(const Node& node) {
  GraphNode result;
  result.id = node.id;
  result.op = node.op;
  result.param_bytes = node.params * value_bytes * (options_.training ? trained_copies : 1);
  result.output_bytes = node.output * value_bytes * (options_.training ? 2 : 1);
  result.inputs = node.inputs;
  std::sort(result.inputs.begin(), result.inputs.end());
  const double passes = options_.training ? 3 : 1;
  result_.graph.nodes.push_back(std::move(result));
  result_.costs.push_back({passes * node.flops, passes * (node.values + node.params) * value_bytes});
  return static_cast<std::uint32_t>(result_.graph.nodes.size() - 1);
}

double Builder::parameters(SlotId slot, std::string_view suffix) const {
  for (const compute::ParameterInfo& parameter : compute::slot_parameters(shape_, slot)) {
    const std::string_view name = parameter.name;
    if (name.size() >= suffix.size() && name.substr(name.size() - suffix.size()) == suffix)
      return static_cast<double>(parameter.count);
  }
  NS_CHECK(false);
  return 0;
}

std::uint32_t Builder::product(const std::string& id, SlotId slot, std::string_view parameter, double tokens,
                               double in, double out, std::vector<std::uint32_t> inputs) {
  const double count = parameters(slot, parameter);
  return add(
      {id, "product", count, 2 * count * tokens, tokens * (in + out), tokens * out, std::move(inputs)});
}

std::uint32_t Builder::norm(const std::string& id, SlotId slot, std::string_view parameter,
                            std::uint32_t input) {
  const double count = parameters(slot, parameter);
  return add({id, "norm", count, 2 * count * tokens_, 2 * stream(), stream(), {input}});
}

// Norm, queries, keys, values, attention, projection with the residual, norm, router: their reads and writes.
Builder::Node Builder::slot_node(std::uint32_t layer) const {
  const SlotId slot{SlotKind::Layer, layer, 0};
  const double params = parameters(slot);
  const double wide = query_ + 2 * key_;
  const double values = tokens_ * (8 * shape_.hidden + 2 * wide + 2 * query_ + shape_.experts);
  return {compute::to_string(slot),
          "attention",
          params,
          2 * params * tokens_ + attention_flops(),
          values,
          stream(),
          {}};
}

// Gate, up, their product, down with the residual.
Builder::Node Builder::expert_node(std::uint32_t layer, std::uint32_t expert) const {
  const SlotId slot{SlotKind::Expert, layer, expert};
  const double params = parameters(slot), tokens = expert_tokens();
  const double values = tokens * (3.0 * shape_.hidden + 6.0 * shape_.ffn);
  return {compute::to_string(slot),
          "feed-forward",
          params,
          2 * params * tokens,
          values,
          tokens * shape_.hidden,
          {}};
}

std::uint32_t Builder::whole_layer(std::uint32_t layer, std::uint32_t x) {
  Node sum = slot_node(layer);
  for (std::uint32_t e = 0; e < shape_.experts; ++e) {
    const Node expert = expert_node(layer, e);
    sum.params += expert.params;
    sum.flops += expert.flops;
    sum.values += expert.values;
  }
  // Experts that no token of the request chose are not read.
  sum.op = shape_.experts > 1 ? "layer with experts" : "layer";
  sum.inputs = {x};
  return add(sum);
}

// The tensor that the router sends one expert: a view that shares the block of what it is taken from.
std::uint32_t Builder::dispatch(std::uint32_t layer, std::uint32_t expert, std::vector<std::uint32_t> from,
                                std::uint32_t home) {
  const double rows = expert_tokens() * shape_.hidden;
  const std::uint32_t node =
      add({fmt::format("dispatch {}.{}", layer, expert), "dispatch", 0, 0, 2 * rows, rows, std::move(from)});
  result_.graph.colocated.push_back({home, node});
  return node;
}

std::uint32_t Builder::slots(std::uint32_t layer, std::uint32_t x) {
  Node attention = slot_node(layer);
  attention.inputs = {x};
  const std::uint32_t home = add(attention);
  if (shape_.experts == 1) {
    Node expert = expert_node(layer, 0);
    expert.inputs = {home};
    return add(expert);
  }
  std::vector<std::uint32_t> parts{home};
  for (std::uint32_t e = 0; e < shape_.experts; ++e) {
    Node expert = expert_node(layer, e);
    expert.inputs = {dispatch(layer, e, {home}, home)};
    parts.push_back(add(expert));
  }
  const double rows = expert_tokens() * shape_.experts * shape_.hidden;
  return add({fmt::format("combine {}", layer), "combine", 0, 0, 2 * stream() + rows, stream(), parts});
}

std::uint32_t Builder::expert_operators(std::uint32_t layer, std::uint32_t expert, double tokens,
                                        std::uint32_t x, std::vector<std::uint32_t> also) {
  const SlotId slot{SlotKind::Expert, layer, expert};
  const bool sparse = shape_.experts > 1;
  const std::string id = compute::to_string(slot) + " ";
  const double hidden = shape_.hidden, ffn = shape_.ffn;
  const std::uint32_t gate =
      product(id + "gate", slot, sparse ? "w1.weight" : "gate_proj.weight", tokens, hidden, ffn, {x});
  const std::uint32_t up =
      product(id + "up", slot, sparse ? "w3.weight" : "up_proj.weight", tokens, hidden, ffn, {x});
  const std::uint32_t act = add({id + "swiglu", "swiglu", 0, 0, 3 * tokens * ffn, tokens * ffn, {gate, up}});
  also.push_back(act);
  return product(id + "down", slot, sparse ? "w2.weight" : "down_proj.weight", tokens, ffn, hidden,
                 std::move(also));
}

std::uint32_t Builder::operators(std::uint32_t layer, std::uint32_t x) {
  const SlotId slot{SlotKind::Layer, layer, 0};
  const std::string id = compute::to_string(slot) + " ";
  const double hidden = shape_.hidden;
  const std::uint32_t normed = norm(id + "attention norm", slot, "input_layernorm.weight", x);
  const std::uint32_t q = product(id + "query", slot, "q_proj.weight", tokens_, hidden, query_, {normed});
  const std::uint32_t k = product(id + "key", slot, "k_proj.weight", tokens_, hidden, key_, {normed});
  const std::uint32_t v = product(id + "value", slot, "v_proj.weight", tokens_, hidden, key_, {normed});
  const std::uint32_t attended = add({id + "attention",
                                      "attention",
                                      0,
                                      attention_flops(),
                                      tokens_ * 2 * (query_ + key_),
                                      tokens_ * query_,
                                      {q, k, v}});
  const std::uint32_t sum =
      product(id + "output", slot, "o_proj.weight", tokens_, query_, hidden, {x, attended});
  const std::uint32_t mixed = norm(id + "mixture norm", slot, "post_attention_layernorm.weight", sum);
  if (shape_.experts == 1) return expert_operators(layer, 0, tokens_, mixed, {sum});
  const std::uint32_t router =
      product(id + "router", slot, "gate.weight", tokens_, hidden, shape_.experts, {mixed});
  std::vector<std::uint32_t> parts{sum, router};
  for (std::uint32_t e = 0; e < shape_.experts; ++e) {
    const std::uint32_t rows = dispatch(layer, e, {mixed, router}, router);
    parts.push_back(expert_operators(layer, e, expert_tokens(), rows, {}));
  }
  const double rows = expert_tokens() * shape_.experts * hidden;
  return add({fmt::format("combine {}", layer), "combine", 0, 0, 2 * stream() + rows, stream(), parts});
}

void Builder::head(std::uint32_t x) {
  const SlotId slot{SlotKind::Head, 0, 0};
  // Logits are made and used piece by piece; they never leave the node.
  const double logits = tokens_ * shape_.vocab;
  if (options_.level == ModelLevel::Operator) {
    const std::uint32_t normed = norm("head norm", slot, "model.norm.weight", x);
    const double count = parameters(slot, "lm_head.weight");
    add({"head", "product", count, 2 * count * tokens_, stream() + logits, 0, {normed}});
    return;
  }
  const double count = parameters(slot);
  add({"head", "head", count, 2 * count * tokens_, 3 * stream() + logits, 0, {x}});
}

CostedGraph Builder::run() {
  const SlotId embed{SlotKind::Embed, 0, 0};
  std::uint32_t x = add({"embed", "lookup", parameters(embed), 0, 2 * stream(), stream(), {}});
  // A lookup reads the rows it needs, not the table.
  result_.costs[x].bytes = 2 * stream() * value_bytes * (options_.training ? 3 : 1);
  for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
    switch (options_.level) {
      case ModelLevel::Layer: x = whole_layer(layer, x); break;
      case ModelLevel::Slot: x = slots(layer, x); break;
      case ModelLevel::Operator: x = operators(layer, x); break;
    }
  }
  head(x);
  result_.graph.convention = fmt::format(
      "NeuroLLM of {} layers, {} of {} parameters per token; {} of {} tokens", shape_.layers,
      compute::active_parameter_count(shape_), compute::model_parameter_count(shape_),
      options_.training ? "forward and backward pass" : "forward pass", static_cast<std::uint64_t>(tokens_));
  return std::move(result_);
}

}  // namespace

Expected<CostedGraph> model_graph(const ModelShape& shape, const ModelGraphOptions& options) {
  NS_RETURN_IF_ERROR(compute::validate(shape));
  if (options.sequences == 0 || options.sequences > 1'000'000) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} sequences per request; give 1 to 1000000", options.sequences));
  }
  // An upper bound before anything is built: 5 operators per expert with its dispatch, 9 beside them.
  const double nodes = 3 + static_cast<double>(shape.layers) * (10 + 5.0 * shape.experts);
  if (nodes > static_cast<double>(max_nodes)) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("the model would have up to {:.0f} nodes; the most is {}", nodes, max_nodes));
  }
  return Builder(shape, options).run();
}

}  // namespace neuroshard::partition
