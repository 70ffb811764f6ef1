#include "core/export/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::exporting {
namespace {

// llama.cpp's number of the type that most tensors have.
std::uint32_t file_type(StoredType type) {
  switch (type) {
    case StoredType::F32: return 0;
    case StoredType::F16: return 1;
    case StoredType::BF16: return 32;
    case StoredType::Q8_0: break;
  }
  return 7;
}

constexpr std::int32_t token_type(TokenKind kind) {
  switch (kind) {
    case TokenKind::Normal: return 1;
    case TokenKind::Control: return 3;
    case TokenKind::Unused: break;
  }
  return 5;
}

Expected<void> check_bounds(const compute::ModelShape& shape) {
  if (shape.experts > llama_max_experts) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the model has {} experts; llama.cpp reads at most {}", shape.experts,
                                  llama_max_experts));
  }
  if (shape.layers > llama_max_layers) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("the model has {} layers; llama.cpp reads at most {}", shape.layers, llama_max_layers));
  }
  return {};
}

void add_model(const compute::ModelShape& shape, std::vector<GgufEntry>* entries) {
  const auto add = [entries](const char* key, GgufValue value) {
    entries->push_back({std::string("llama.") + key, std::move(value)});
  };
  add("block_count", shape.layers);
  add("context_length", shape.sequence);
  add("embedding_length", shape.hidden);
  add("feed_forward_length", shape.ffn);
  add("vocab_size", shape.vocab);
  add("attention.head_count", shape.heads);
  add("attention.head_count_kv", shape.kv_heads);
  add("attention.key_length", shape.head_dim);
  add("attention.value_length", shape.head_dim);
  add("attention.layer_norm_rms_epsilon", shape.rms_epsilon);
  add("rope.dimension_count", shape.head_dim);
  add("rope.freq_base", shape.rope_theta);
  if (shape.experts > 1) {
    add("expert_count", shape.experts);
    add("expert_used_count", shape.experts_per_token);
  }
}

void add_tokenizer(const Vocabulary& vocabulary, std::vector<GgufEntry>* entries) {
  std::vector<std::int32_t> types;
  for (const TokenKind kind : vocabulary.kinds) types.push_back(token_type(kind));
  const auto add = [entries](const char* key, GgufValue value) {
    entries->push_back({std::string("tokenizer.") + key, std::move(value)});
  };
  add("ggml.model", std::string("gpt2"));
  add("ggml.pre", std::string("gpt-2"));
  add("ggml.tokens", vocabulary.tokens);
  add("ggml.token_type", std::move(types));
  add("ggml.merges", vocabulary.merges);
  add("ggml.bos_token_id", std::uint32_t{begin_of_text});
  add("ggml.eos_token_id", std::uint32_t{data::eos_token});
  add("ggml.unknown_token_id", std::uint32_t{data::unknown_token});
  add("ggml.padding_token_id", std::uint32_t{data::pad_token});
  add("ggml.add_bos_token", false);
  add("ggml.add_eos_token", false);
  add("chat_template", std::string(plain_chat_template));
}

class Parts {
 public:
  explicit Parts(StoredType type) : type_(type) {}

  void matrix(std::string name, const compute::ParameterInfo& info, std::uint32_t rotated_head = 0) {
    add(std::move(name), {info.dims[1], info.dims[0]}, matrix_type(info.dims[1]), {info}, rotated_head);
  }
  void exact(std::string name, const compute::ParameterInfo& info) {
    std::vector<std::uint64_t> dims(info.dims.rbegin(), info.dims.rend());
    add(std::move(name), std::move(dims), StoredType::F32, {info}, 0);
  }
  void stack(std::string name, std::vector<compute::ParameterInfo> infos) {
    const std::vector<std::uint64_t> dims = {infos[0].dims[1], infos[0].dims[0], infos.size()};
    add(std::move(name), dims, matrix_type(dims[0]), std::move(infos), 0);
  }
  std::vector<GgufPart> take() { return std::move(parts_); }

 private:
  StoredType matrix_type(std::uint64_t row) const {
    return type_ == StoredType::Q8_0 && row % q8_0_block != 0 ? StoredType::F16 : type_;
  }
  void add(std::string name, std::vector<std::uint64_t> dims, StoredType type,
           std::vector<compute::ParameterInfo> infos, std::uint32_t rotated_head) {
    parts_.push_back({{std::move(name) + ".weight", std::move(dims), type}, std::move(infos), rotated_head});
  }

  StoredType type_;
  std::vector<GgufPart> parts_;
};

void add_layer(const compute::ModelShape& shape, std::uint32_t layer, Parts* parts) {
  const std::string name = fmt::format("blk.{}.", layer);
  const auto own = compute::slot_parameters(shape, {compute::SlotKind::Layer, layer, 0});
  parts->exact(name + "attn_norm", own[0]);
  parts->matrix(name + "attn_q", own[1], shape.head_dim);
  parts->matrix(name + "attn_k", own[2], shape.head_dim);
  parts->matrix(name + "attn_v", own[3]);
  parts->matrix(name + "attn_output", own[4]);
  parts->exact(name + "ffn_norm", own[5]);
  constexpr const char* matrices[] = {"ffn_gate", "ffn_up", "ffn_down"};
  if (shape.experts == 1) {
    const auto dense = compute::slot_parameters(shape, {compute::SlotKind::Expert, layer, 0});
    for (std::size_t i = 0; i < 3; ++i) parts->matrix(name + matrices[i], dense[i]);
    return;
  }
  parts->exact(name + "ffn_gate_inp", own[6]);
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<compute::ParameterInfo> stacked;
    for (std::uint32_t expert = 0; expert < shape.experts; ++expert)
      stacked.push_back(compute::slot_parameters(shape, {compute::SlotKind::Expert, layer, expert})[i]);
    parts->stack(name + matrices[i] + "_exps", std::move(stacked));
  }
}

// The rows of whole heads in the order of llama.cpp: row i and row i + D/2 become neighbours.
void interleave_halves(Span<const float> heads, std::uint64_t head_rows, std::uint64_t width,
                       std::vector<float>* out) {
  out->resize(heads.size());
  const std::uint64_t half = head_rows / 2;
  for (std::uint64_t row = 0; row < heads.size() / width; ++row) {
    const std::uint64_t head = row / head_rows, within = row % head_rows;
    const std::uint64_t to = head * head_rows + within % half * 2 + within / half;
    std::copy_n(heads.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                out->begin() + static_cast<std::ptrdiff_t>(to * width));
  }
}

}  // namespace

Expected<std::vector<GgufEntry>> gguf_entries(const checkpoint::Manifest& manifest,
                                              const std::string& checkpoint_id, const Vocabulary& vocabulary,
                                              StoredType type) {
  NS_RETURN_IF_ERROR(check_bounds(manifest.architecture));
  std::vector<GgufEntry> entries = {
      {"general.architecture", std::string("llama")},
      {"general.type", std::string("model")},
      {"general.name", fmt::format("NeuroShard step {}", manifest.step)},
      {"general.alignment", static_cast<std::uint32_t>(gguf_alignment)},
      {"general.file_type", file_type(type)},
      {"general.quantization_version", std::uint32_t{2}},
      {"neuroshard.checkpoint", checkpoint_id},
      {"neuroshard.network_id", to_hex(manifest.network_id)},
      {"neuroshard.step", manifest.step},
      {"neuroshard.tokens_seen", manifest.tokens_seen},
  };
  add_model(manifest.architecture, &entries);
  add_tokenizer(vocabulary, &entries);
  return entries;
}

std::vector<GgufPart> gguf_parts(const compute::ModelShape& shape, StoredType type) {
  Parts parts(type);
  parts.matrix("token_embd", compute::slot_parameters(shape, {compute::SlotKind::Embed, 0, 0})[0]);
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) add_layer(shape, layer, &parts);
  const auto head = compute::slot_parameters(shape, {compute::SlotKind::Head, 0, 0});
  parts.exact("output_norm", head[0]);
  parts.matrix("output", head[1]);
  return parts.take();
}

Expected<void> read_part(SourceWeights& weights, const GgufPart& part,
                         const std::function<Expected<void>(ByteSpan)>& use) {
  Bytes stored;
  std::vector<float> reordered;
  for (const compute::ParameterInfo& parameter : part.parameters) {
    const std::uint64_t width = parameter.dims.back();
    const std::uint64_t unit = part.rotated_head != 0 ? part.rotated_head * width : width;
    NS_RETURN_IF_ERROR(weights.read(parameter, unit, [&](Span<const float> values) -> Expected<void> {
      if (part.rotated_head != 0) {
        interleave_halves(values, part.rotated_head, width, &reordered);
        values = {reordered.data(), reordered.size()};
      }
      stored.clear();
      Expected<void> converted = append_stored(part.tensor.type, values, &stored);
      if (!converted.ok()) return std::move(converted).error().with_context(parameter.name);
      return use(stored);
    }));
  }
  return {};
}

}  // namespace neuroshard::exporting
