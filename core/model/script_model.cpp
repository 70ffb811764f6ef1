#include "core/model/script_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>

#include <algorithm>
#include <limits>

#include "core/model/script_companions.h"
#include "core/model/script_values.h"

namespace neuroshard::model {
namespace {

using compute::Status;

c10::FunctionSchema schema_of(const torch::jit::Module& module) {
  return module.get_method("forward").function().getSchema();
}

std::string describe_arguments(const c10::FunctionSchema& schema) {
  std::string text;
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    text += (i > 1 ? ", " : "") + argument.name() + ": " + argument.type()->annotation_str() +
            (argument.default_value() ? " (optional)" : "");
  }
  return text.empty() ? "no arguments" : text;
}

bool takes_tensor(const c10::TypePtr& type) {
  return c10::TensorType::get()->isSubtypeOf(*type);
}

at::Tensor make_sample(const compute::ScriptSample& sample, at::Generator& generator) {
  const std::vector<std::int64_t> sizes(sample.sizes, sample.sizes + sample.dims);
  const at::ScalarType type = scalar_type(sample.type);
  if (at::isFloatingType(type)) return at::randn(sizes, generator, at::TensorOptions()).to(type);
  return at::randint(sample.below, sizes, generator, at::TensorOptions().dtype(at::kLong)).to(type);
}

// Checked before a reader of the file multiplies them.
void check_samples(Span<const compute::ScriptSample> samples) {
  const auto wrong = [](const char* text) { return ScriptError(ErrorCode::InvalidArgument, text); };
  if (samples.size() > compute::max_script_inputs) throw wrong("There are more than 64 inputs.");
  for (const compute::ScriptSample& sample : samples) {
    if (sample.dims > compute::max_script_dims) throw wrong("An input has more than 8 dimensions.");
    if (sample.type > compute::ScriptType::Bool) throw wrong("An input has an unknown type of elements.");
    if (sample.below < 1) throw wrong("The integers of an input require an upper bound of 1 or more.");
    double elements = 1;
    for (std::uint32_t i = 0; i < sample.dims; ++i) {
      if (sample.sizes[i] < 0) throw wrong("An input has a negative size.");
      elements *= static_cast<double>(sample.sizes[i]);
    }
    if (elements > 1e12) throw wrong("An input is too large.");
  }
}

torch::jit::Module checked_module(const compute::ScriptHost& host, const compute::ScriptOptions& options) {
  check_samples(options.samples);
  return read_script(host);
}

}  // namespace

void add_deviation(const c10::IValue& value, const c10::IValue& expected, compute::ScriptDeviation& worst) {
  const auto as_tensor = [](const c10::IValue& leaf) {
    if (leaf.isTensor()) return leaf.toTensor();
    return at::scalar_tensor(
        leaf.isBool() ? at::Scalar(static_cast<std::int64_t>(leaf.toBool())) : leaf.toScalar(),
        at::TensorOptions().dtype(at::kDouble));
  };
  const at::Tensor a = as_tensor(value), b = as_tensor(expected);
  double absolute = std::numeric_limits<double>::infinity();
  double scale = 1;
  if (a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type()) {
    if (a.numel() == 0) return;
    const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
    const at::Tensor same = at::logical_or(x.eq(y), at::logical_and(x.isnan(), y.isnan()));
    const at::Tensor difference = x.sub(y).abs().masked_fill(same, 0.0);
    if (!difference.isnan().any().item<bool>()) absolute = difference.max().item<double>();
    const at::Tensor finite = y.abs().masked_fill(at::logical_not(y.isfinite()), 0.0);
    scale = std::max(1.0, finite.max().item<double>());
  }
  worst.absolute = std::max(worst.absolute, absolute);
  worst.relative = std::max(worst.relative, absolute / scale);
}

LoadedScript::LoadedScript(const compute::ScriptHost& host, const compute::ScriptOptions& options)
    : module_(checked_module(host, options)),
      samples_(options.samples.begin(), options.samples.end()),
      seed_(options.seed),
      companions_(options.companions),
      structure_((check_arguments(), freeze_script(module_))),
      profile_(profile_script(structure_, make_arguments(0), options.passes, options.companions, host)),
      units_(make_units(structure_, profile_)),
      whole_(whole_program(structure_)) {
  arguments_.push_back(make_arguments(0));
  // Lent for this call only.
  for (compute::ScriptSample& sample : samples_) sample.data = nullptr;
}

void LoadedScript::check_arguments() const {
  const c10::FunctionSchema schema = schema_of(module_);
  const auto& arguments = schema.arguments();
  std::string problem;
  if (samples_.size() + 1 > arguments.size()) problem = "there are more inputs than arguments";
  for (std::size_t i = 1; i < arguments.size() && problem.empty(); ++i) {
    const c10::Argument& argument = arguments[i];
    const bool given = i <= samples_.size();
    if (given && !takes_tensor(argument.type())) problem = "\"" + argument.name() + "\" takes no tensor";
    const bool optional = argument.type()->kind() == c10::TypeKind::OptionalType;
    if (!given && !argument.default_value() && !optional) problem = "\"" + argument.name() + "\" is missing";
  }
  if (problem.empty()) return;
  throw ScriptError(ErrorCode::InvalidArgument, "The inputs don't fit the model: " + problem +
                                                    ". forward() takes " + describe_arguments(schema) +
                                                    ". Give the shape of each tensor in this order.");
}

LoadedScript::Values LoadedScript::make_arguments(std::uint64_t batch) const {
  at::Generator generator = at::detail::createCPUGenerator(seed_ + batch);
  const c10::FunctionSchema schema = schema_of(module_);
  Values values;
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (i > samples_.size()) {
      values.push_back(argument.default_value() ? *argument.default_value() : c10::IValue());
      continue;
    }
    const compute::ScriptSample& sample = samples_[i - 1];
    at::Tensor tensor = make_sample(sample, generator);
    if (sample.data != nullptr) {
      tensor =
          at::from_blob(const_cast<void*>(sample.data), tensor.sizes(), tensor.options().requires_grad(false))
              .clone();
    }
    values.emplace_back(std::move(tensor));
  }
  return values;
}

compute::ScriptNode LoadedScript::node(std::uint32_t index) const {
  const ScriptUnitNode& from = units_.nodes[index];
  compute::ScriptNode node;
  node.id = from.id.c_str();
  node.op = from.op.c_str();
  node.operations = from.operations;
  node.traffic_bytes = from.traffic;
  node.seconds = from.seconds;
  node.timed_only = from.timed_only;
  node.param_bytes = from.param_bytes;
  node.output_bytes = from.output_bytes;
  node.inputs = from.inputs;
  return node;
}

Status LoadedScript::make_batches(std::uint32_t count) {
  return guarded_script("running the model", [&] {
    const Values first = arguments_[0];
    arguments_.assign(1, first);
    expected_.clear();
    messages_.clear();
    const torch::jit::GraphOptimizerEnabledGuard plain(false);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i > 0) arguments_.push_back(make_arguments(i));
      Values leaves;
      flatten(module_.forward(copy_arguments(arguments_[i])), leaves);
      for (c10::IValue& leaf : leaves) {
        if (leaf.isTensor()) leaf = leaf.toTensor().clone();  // of its own, whatever the model does next
      }
      expected_.push_back(std::move(leaves));
    }
  });
}

Status LoadedScript::run_whole(std::uint32_t batch) {
  return guarded_script("running the model", [&] {
    check_batch(batch, 0);
    Values stack = copy_arguments(arguments_[batch]);
    whole_.run(stack);
  });
}

Status LoadedScript::cut(Span<const std::uint32_t> block_of, std::uint32_t blocks) {
  return guarded_script("cutting the model", [&] {
    cut_ = cut_script(structure_, units_, block_of, blocks);
    messages_.clear();
  });
}

compute::ScriptLink LoadedScript::link(std::uint32_t index) const {
  const ScriptCutLink& from = cut_.links[index];
  compute::ScriptLink link;
  link.from = from.from;
  link.to = from.to;
  link.values = static_cast<std::uint32_t>(from.values.size());
  for (const torch::jit::Value* value : from.values) {
    const auto bytes = profile_.bytes.find(value);
    link.bytes += bytes == profile_.bytes.end() ? 8 : bytes->second;
  }
  return link;
}

Status LoadedScript::block_file(std::uint32_t block, Span<const std::uint8_t>* file) {
  return guarded_script("writing a block", [&] {
    if (block >= cut_.blocks.size()) throw ScriptError(ErrorCode::InvalidArgument, "There is no such block.");
    block_file_ = write_piece(*cut_.blocks[block]);
    *file = {reinterpret_cast<const std::uint8_t*>(block_file_.data()), block_file_.size()};
  });
}

void LoadedScript::check_batch(std::uint32_t batch, std::uint32_t link) const {
  if (batch >= arguments_.size() || (link != 0 && link >= cut_.links.size()))
    throw ScriptError(ErrorCode::InvalidArgument, "There is no such micro-batch or link.");
}

Status LoadedScript::driver_message(std::uint32_t batch, std::uint32_t link,
                                    Span<const std::uint8_t>* message) {
  return guarded_script("packing an input", [&] {
    check_batch(batch, link);
    std::vector<std::uint8_t>& bytes = messages_[{batch, link}];
    if (bytes.empty()) {
      for (const torch::jit::Value* value : cut_.links.at(link).values)
        append_value(arguments_[batch].at(structure_.maker(value)), bytes);
    }
    *message = bytes;
  });
}

Status LoadedScript::compare(std::uint32_t batch, std::uint32_t link, Span<const std::uint8_t> message,
                             compute::ScriptDeviation* deviation) {
  return guarded_script("comparing a result", [&] {
    check_batch(batch, link);
    if (batch >= expected_.size())
      throw ScriptError(ErrorCode::InvalidArgument, "This micro-batch has no expected results.");
    const ScriptValues& values = cut_.links.at(link).values;
    ScriptMessageReader reader(message);
    std::unordered_map<const torch::jit::Value*, Values> came;
    for (const torch::jit::Value* value : values) flatten(reader.next(value->type()), came[value]);
    reader.finish();
    const Values& expected = expected_[batch];
    std::size_t leaf = 0;
    for (std::size_t r = 0; r < structure_.results().size(); ++r) {
      const auto at = came.find(structure_.results()[r]);
      const std::size_t count = profile_.result_leaves[r];
      if (at != came.end()) {
        if (at->second.size() != count || leaf + count > expected.size())
          throw ScriptError(
              ErrorCode::Unsupported,
              "The model's results have another form for other values; they can't be compared.");
        for (std::size_t i = 0; i < count; ++i) add_deviation(at->second[i], expected[leaf + i], *deviation);
      }
      leaf += count;
    }
    if (leaf != expected.size())
      throw ScriptError(ErrorCode::Unsupported,
                        "The model's results have another form for other values; they can't be compared.");
  });
}

LoadedBlock::LoadedBlock(const compute::ScriptHost& host)
    : graph_(read_piece(host)),
      program_(graph_),
      output_count_(static_cast<std::uint32_t>(graph_->outputs().size())),
      inputs_(graph_->inputs().size()),
      taken_(inputs_.size(), false) {}

Status LoadedBlock::take(std::uint32_t first, std::uint32_t count, Span<const std::uint8_t> message) {
  return guarded_script("reading a message", [&] {
    if (first > inputs_.size() || count > inputs_.size() - first)
      throw ScriptError(ErrorCode::InvalidArgument, "The block has fewer inputs.");
    ScriptMessageReader reader(message);
    for (std::uint32_t i = first; i < first + count; ++i) {
      inputs_[i] = reader.next(graph_->inputs()[i]->type());
      taken_[i] = true;
    }
    reader.finish();
  });
}

Status LoadedBlock::run() {
  return guarded_script("running a block", [&] {
    if (std::find(taken_.begin(), taken_.end(), false) != taken_.end())
      throw ScriptError(ErrorCode::InvalidArgument, "The block lacks an input.");
    std::fill(taken_.begin(), taken_.end(), false);
    outputs_ = std::move(inputs_);
    inputs_.assign(taken_.size(), {});
    program_.run(outputs_);
  });
}

Status LoadedBlock::give(std::uint32_t first, std::uint32_t count, Span<const std::uint8_t>* message) {
  return guarded_script("packing a message", [&] {
    if (first > outputs_.size() || count > outputs_.size() - first)
      throw ScriptError(ErrorCode::InvalidArgument, "The block has fewer outputs.");
    message_.clear();
    for (std::uint32_t i = first; i < first + count; ++i) append_value(outputs_[i], message_);
    *message = message_;
  });
}

}  // namespace neuroshard::model
