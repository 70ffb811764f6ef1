#include "core/partition/import/onnx_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/partition/graph/graph.h"
#include "core/partition/graph/wire_format.h"

namespace neuroshard::partition {
namespace {

constexpr int max_nesting = 8;
constexpr std::size_t max_name = 1024;
constexpr std::size_t max_values = 500'000;      // initializers, value infos of one graph
constexpr std::size_t max_node_inputs = 10'000;  // of one node, and outputs
constexpr std::size_t max_attributes = 200;      // of one node
constexpr std::size_t max_list = 65'536;         // numbers of one attribute

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt,
                    fmt::format("{} is damaged or truncated: this is not an ONNX model", what));
}

Error too_many(const char* what, std::size_t most) {
  return make_error(ErrorCode::Exhausted, fmt::format("the ONNX model has more than {} {}", most, what));
}

// Reads messages; counts what all of them together may hold.
class Parser {
 public:
  Expected<OnnxModel> model(ByteSpan bytes);

 private:
  Expected<std::string> name(const WireReader& field) const;
  Expected<OnnxGraph> graph(ByteSpan bytes, int depth);
  Expected<OnnxNode> node(ByteSpan bytes, int depth);
  Expected<OnnxAttribute> attribute(ByteSpan bytes, int depth, std::string* name_of);
  Expected<OnnxTensor> tensor(ByteSpan bytes) const;
  Expected<std::pair<std::string, OnnxTensorType>> value(ByteSpan bytes) const;
  Expected<OnnxTensorType> type(ByteSpan bytes) const;
  Expected<OnnxDimension> dimension(ByteSpan bytes) const;

  std::size_t nodes_ = 0, edges_ = 0, values_ = 0;
};

Expected<std::string> Parser::name(const WireReader& field) const {
  if (field.type() != WireType::Bytes) return corrupt("a name of the model");
  if (field.text().size() > max_name) return too_many("bytes in a name", max_name);
  if (!is_utf8(field.text())) return corrupt("a name of the model");
  return std::string(field.text());
}

// Integers of raw_data, little-endian.
void read_raw(ByteSpan raw, OnnxTensor* tensor) {
  const auto size = static_cast<std::size_t>(element_bytes(tensor->type));
  for (std::size_t i = 0; size > 0 && i + size <= raw.size() && tensor->integers.size() < max_onnx_constant;
       i += size) {
    const std::uint8_t* at = raw.data() + i;
    switch (tensor->type) {
      case OnnxType::Int64:
      case OnnxType::Uint64: tensor->integers.push_back(load_le<std::int64_t>(at)); break;
      case OnnxType::Int32: tensor->integers.push_back(load_le<std::int32_t>(at)); break;
      case OnnxType::Uint8:
      case OnnxType::Bool: tensor->integers.push_back(*at); break;
      default: return;
    }
  }
}

// Packed or raw floats, little-endian; exactly `count` of them or none.
void read_reals(ByteSpan raw, std::size_t count, OnnxTensor* tensor) {
  if (raw.size() != count * sizeof(float)) return;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = load_le<std::uint32_t>(raw.data() + i * sizeof(float));
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    tensor->reals.push_back(static_cast<double>(value));
  }
}

// TensorProto.
Expected<OnnxTensor> Parser::tensor(ByteSpan bytes) const {
  OnnxTensor result;
  ByteSpan raw;
  WireReader reals{{}};
  bool listed = false;
  WireReader field(bytes);
  while (field.next()) {
    switch (field.field()) {
      case 1:
        if (!for_each_varint(field, [&](std::uint64_t v) {
              if (result.dims.size() <= max_onnx_rank) result.dims.push_back(static_cast<std::int64_t>(v));
            }))
          return corrupt("a tensor");
        if (result.dims.size() > max_onnx_rank) return too_many("dimensions in a tensor", max_onnx_rank);
        break;
      case 2: result.type = static_cast<OnnxType>(std::min<std::uint64_t>(field.number(), 255)); break;
      case 5:  // int32_data
      case 7:  // int64_data
        listed = true;
        if (!for_each_varint(field, [&](std::uint64_t v) {
              if (result.integers.size() < max_onnx_constant + 1)
                result.integers.push_back(static_cast<std::int64_t>(v));
            }))
          return corrupt("a tensor");
        break;
      case 8: {
        NS_ASSIGN_OR_RETURN(result.name, name(field));
        break;
      }
      case 9: raw = field.bytes(); break;
      case 4: reals = field; break;
      case 14: result.external = field.number() == 1; break;
      default: break;
    }
  }
  if (field.damaged()) return corrupt("a tensor");
  if (!listed) read_raw(raw, &result);
  double count = 1;
  for (const std::int64_t dim : result.dims) {
    if (dim < 0) return corrupt("a tensor (a negative dimension)");
    count *= static_cast<double>(dim);
  }
  result.has_values = !result.external && static_cast<double>(result.integers.size()) == count &&
                      count <= static_cast<double>(max_onnx_constant) && (listed || count > 0 || raw.empty());
  const bool integral = result.type == OnnxType::Int64 || result.type == OnnxType::Int32 ||
                        result.type == OnnxType::Uint8 || result.type == OnnxType::Bool ||
                        result.type == OnnxType::Uint64;
  result.has_values = result.has_values && integral;
  if (!result.has_values) result.integers.clear();
  if (result.type == OnnxType::Float && !result.external && count <= static_cast<double>(max_onnx_rank)) {
    read_reals(raw.empty() ? reals.bytes() : raw, static_cast<std::size_t>(count), &result);
  }
  return result;
}

// TensorShapeProto.Dimension.
Expected<OnnxDimension> Parser::dimension(ByteSpan bytes) const {
  OnnxDimension result;
  WireReader field(bytes);
  while (field.next()) {
    // Old exporters write −1 for an open dimension; a size of 0 is one.
    if (field.is(1, WireType::Varint)) result.size = field.integer() >= 0 ? field.integer() : -1;
    if (field.field() == 2) {
      NS_ASSIGN_OR_RETURN(result.name, name(field));
    }
  }
  if (field.damaged()) return corrupt("a shape");
  return result;
}

// TypeProto; only tensors have a shape here.
Expected<OnnxTensorType> Parser::type(ByteSpan bytes) const {
  OnnxTensorType result;
  WireReader outer(bytes);
  while (outer.next()) {
    if (!outer.is(1, WireType::Bytes)) continue;
    WireReader tensor(outer.bytes());
    while (tensor.next()) {
      if (tensor.field() == 1)
        result.type = static_cast<OnnxType>(std::min<std::uint64_t>(tensor.number(), 255));
      if (!tensor.is(2, WireType::Bytes)) continue;
      result.has_shape = true;
      WireReader shape(tensor.bytes());
      while (shape.next()) {
        if (!shape.is(1, WireType::Bytes)) continue;
        if (result.dims.size() == max_onnx_rank) return too_many("dimensions in a shape", max_onnx_rank);
        NS_ASSIGN_OR_RETURN(OnnxDimension dim, dimension(shape.bytes()));
        result.dims.push_back(std::move(dim));
      }
      if (shape.damaged()) return corrupt("a shape");
    }
    if (tensor.damaged()) return corrupt("a type");
  }
  if (outer.damaged()) return corrupt("a type");
  return result;
}

// ValueInfoProto.
Expected<std::pair<std::string, OnnxTensorType>> Parser::value(ByteSpan bytes) const {
  std::pair<std::string, OnnxTensorType> result;
  WireReader field(bytes);
  while (field.next()) {
    if (field.field() == 1) {
      NS_ASSIGN_OR_RETURN(result.first, name(field));
    } else if (field.is(2, WireType::Bytes)) {
      NS_ASSIGN_OR_RETURN(result.second, type(field.bytes()));
    }
  }
  if (field.damaged()) return corrupt("a value's type");
  return result;
}

// AttributeProto.
Expected<OnnxAttribute> Parser::attribute(ByteSpan bytes, int depth, std::string* name_of) {
  OnnxAttribute result;
  WireReader field(bytes);
  while (field.next()) {
    switch (field.field()) {
      case 1: {
        NS_ASSIGN_OR_RETURN(*name_of, name(field));
        break;
      }
      case 2: result.real = field.real(); break;
      case 3: result.integer = field.integer(); break;
      case 4: result.text = field.text().substr(0, max_name); break;
      case 5: {
        NS_ASSIGN_OR_RETURN(OnnxTensor value, tensor(field.bytes()));
        result.tensor = std::make_shared<OnnxTensor>(std::move(value));
        break;
      }
      case 6:     // g
      case 11: {  // graphs
        if (depth >= max_nesting) return too_many("graphs inside each other", max_nesting);
        NS_ASSIGN_OR_RETURN(OnnxGraph inner, graph(field.bytes(), depth + 1));
        result.graphs.push_back(std::make_shared<OnnxGraph>(std::move(inner)));
        break;
      }
      case 7:
        result.reals += field.type() == WireType::Bytes ? field.bytes().size() / sizeof(float) : 1;
        break;
      case 8:
        if (!for_each_varint(field, [&](std::uint64_t v) {
              if (result.integers.size() <= max_list) result.integers.push_back(static_cast<std::int64_t>(v));
            }))
          return corrupt("an attribute");
        if (result.integers.size() > max_list) return too_many("numbers in an attribute", max_list);
        break;
      default: break;
    }
  }
  if (field.damaged()) return corrupt("an attribute");
  return result;
}

// NodeProto.
Expected<OnnxNode> Parser::node(ByteSpan bytes, int depth) {
  if (++nodes_ > max_nodes) return too_many("nodes", max_nodes);
  OnnxNode result;
  WireReader field(bytes);
  while (field.next()) {
    switch (field.field()) {
      case 1:
      case 2: {
        if (++edges_ > max_edges) return too_many("inputs and outputs of nodes", max_edges);
        auto& list = field.field() == 1 ? result.inputs : result.outputs;
        if (list.size() == max_node_inputs) return too_many("inputs or outputs of a node", max_node_inputs);
        NS_ASSIGN_OR_RETURN(std::string text, name(field));
        list.push_back(std::move(text));
        break;
      }
      case 3: {
        NS_ASSIGN_OR_RETURN(result.name, name(field));
        break;
      }
      case 4: {
        NS_ASSIGN_OR_RETURN(result.op, name(field));
        break;
      }
      case 5: {
        if (result.attributes.size() == max_attributes)
          return too_many("attributes of a node", max_attributes);
        std::string key;
        NS_ASSIGN_OR_RETURN(OnnxAttribute value, attribute(field.bytes(), depth, &key));
        result.attributes.insert_or_assign(std::move(key), std::move(value));
        break;
      }
      case 7: {
        NS_ASSIGN_OR_RETURN(result.domain, name(field));
        break;
      }
      default: break;
    }
  }
  if (field.damaged()) return corrupt("a node");
  return result;
}

// GraphProto.
Expected<OnnxGraph> Parser::graph(ByteSpan bytes, int depth) {
  OnnxGraph result;
  WireReader field(bytes);
  while (field.next()) {
    if (field.type() != WireType::Bytes) continue;
    switch (field.field()) {
      case 1: {
        NS_ASSIGN_OR_RETURN(OnnxNode value_of, node(field.bytes(), depth));
        result.nodes.push_back(std::move(value_of));
        break;
      }
      case 2: {
        NS_ASSIGN_OR_RETURN(result.name, name(field));
        break;
      }
      case 5: {
        if (++values_ > max_values) return too_many("weights and values", max_values);
        NS_ASSIGN_OR_RETURN(OnnxTensor value_of, tensor(field.bytes()));
        result.initializers.push_back(std::move(value_of));
        break;
      }
      case 15:
        return make_error(ErrorCode::Unsupported,
                          "the ONNX model has sparse weights; store them as dense tensors first");
      case 11:
      case 12:
      case 13: {
        if (++values_ > max_values) return too_many("weights and values", max_values);
        NS_ASSIGN_OR_RETURN(auto value_of, value(field.bytes()));
        auto& list = field.field() == 11   ? result.inputs
                     : field.field() == 12 ? result.outputs
                                           : result.values;
        list.push_back(std::move(value_of));
        break;
      }
      default: break;
    }
  }
  if (field.damaged()) return corrupt("the graph of the model");
  return result;
}

// ModelProto.
Expected<OnnxModel> Parser::model(ByteSpan bytes) {
  OnnxModel result;
  bool has_graph = false;
  WireReader field(bytes);
  while (field.next()) {
    switch (field.field()) {
      case 1: result.ir_version = field.integer(); break;
      case 2: {
        NS_ASSIGN_OR_RETURN(result.producer, name(field));
        break;
      }
      case 7: {
        if (field.type() != WireType::Bytes) return corrupt("the graph of the model");
        NS_ASSIGN_OR_RETURN(result.graph, graph(field.bytes(), 0));
        has_graph = true;
        break;
      }
      case 8: {  // OperatorSetIdProto
        std::string domain;
        std::int64_t version = 0;
        WireReader part(field.bytes());
        while (part.next()) {
          if (part.field() == 1) domain = part.text().substr(0, max_name);
          if (part.field() == 2) version = part.integer();
        }
        if (part.damaged()) return corrupt("an operator set");
        if (domain.empty() || domain == "ai.onnx") result.opset = version;
        break;
      }
      case 25:
        return make_error(ErrorCode::Unsupported,
                          "the ONNX model defines its own functions; inline them first (onnx.inliner)");
      default: break;
    }
  }
  if (field.damaged() || !has_graph || result.ir_version <= 0) return corrupt("the file");
  return result;
}

}  // namespace

double element_bytes(OnnxType type) {
  switch (static_cast<std::uint32_t>(type)) {
    case 2:
    case 3:
    case 9:
    case 17:
    case 18:
    case 19:
    case 20: return 1;  // 17 to 20: the 8-bit floats
    case 4:
    case 5:
    case 10:
    case 16: return 2;
    case 1:
    case 6:
    case 12: return 4;
    case 7:
    case 11:
    case 13:
    case 14: return 8;
    case 15: return 16;
    case 21:
    case 22:
    case 23: return 0.5;
    default: return 0;
  }
}

Expected<OnnxModel> parse_onnx(ByteSpan bytes) {
  return Parser().model(bytes);
}

}  // namespace neuroshard::partition
