#include "core/data/detail/pickle_tensor.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <vector>

namespace neuroshard::data::detail {
namespace {

enum class Kind : std::uint8_t {
  Mark,
  Integer,
  Boolean,
  String,
  Tuple,
  Global,
  Storage,
  OrderedDict,
  Tensor
};

struct Value;
// Shared, so that a memo used twice costs nothing and a small file can't grow into a large tree.
using ValuePtr = std::shared_ptr<const Value>;

struct Value {
  Kind kind = Kind::Mark;
  std::int64_t integer = 0;
  std::string text;  // String, Global ("module name")
  std::vector<ValuePtr> items;
  std::uint32_t depth = 0;  // of nested tuples: bounds the recursion of destruction
  PickledTensor tensor;     // Storage, Tensor
};

constexpr std::uint32_t max_tuple_depth = 4;
constexpr const char* rebuild_tensor = "torch._utils _rebuild_tensor_v2";
constexpr const char* long_storage = "torch LongStorage";
constexpr const char* int_storage = "torch IntStorage";
constexpr const char* ordered_dict = "collections OrderedDict";

Error corrupt(std::string_view what) {
  return make_error(ErrorCode::Corrupt, fmt::format("not a torch tensor file: {}", what));
}
Error unsupported(std::string_view what) {
  return make_error(ErrorCode::Unsupported,
                    fmt::format("{}; a shard is one 1-D tensor of int64, saved by torch.save", what));
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 100)) result += c >= 0x20 && c < 0x7f ? c : '?';
  return result;
}

ValuePtr make_value(Kind kind) {
  auto value = std::make_shared<Value>();
  value->kind = kind;
  return value;
}
ValuePtr make_integer(std::int64_t integer) {
  auto value = std::make_shared<Value>();
  value->kind = Kind::Integer;
  value->integer = integer;
  return value;
}

class Machine {
 public:
  explicit Machine(ByteSpan pickle) : pickle_(pickle) {}

  Expected<PickledTensor> run() {
    NS_ASSIGN_OR_RETURN(const std::uint8_t start, byte());
    if (start != 0x80) return corrupt("data.pkl does not begin like a pickle");
    NS_ASSIGN_OR_RETURN(const std::uint8_t protocol, byte());
    if (protocol != 2) {
      return unsupported(fmt::format("the file uses pickle protocol {} instead of 2", protocol));
    }
    while (true) {
      NS_ASSIGN_OR_RETURN(const std::uint8_t opcode, byte());
      if (opcode == '.') return result();
      NS_RETURN_IF_ERROR(execute(opcode));
      if (stack_.size() > max_pickle_stack) return corrupt("data.pkl nests too deeply");
    }
  }

 private:
  Expected<std::uint8_t> byte() {
    if (at_ >= pickle_.size()) return corrupt("data.pkl ends early");
    return pickle_[at_++];
  }
  Expected<ByteSpan> take(std::size_t count) {
    if (count > pickle_.size() - at_) return corrupt("data.pkl ends early");
    const ByteSpan bytes = pickle_.subspan(at_, count);
    at_ += count;
    return bytes;
  }
  template <class T>
  Expected<std::int64_t> integer() {
    NS_ASSIGN_OR_RETURN(const ByteSpan bytes, take(sizeof(T)));
    return static_cast<std::int64_t>(load_le<T>(bytes.data()));
  }
  void push(ValuePtr value) { stack_.push_back(std::move(value)); }
  Expected<ValuePtr> pop() {
    if (stack_.empty() || stack_.back()->kind == Kind::Mark)
      return corrupt("data.pkl takes from an empty stack");
    ValuePtr value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }

  Expected<void> execute(std::uint8_t opcode) {
    switch (opcode) {
      case 'K': return push_integer<std::uint8_t>();
      case 'M': return push_integer<std::uint16_t>();
      case 'J': return push_integer<std::int32_t>();
      case 0x8a: return long_integer();
      case 0x88:
      case 0x89: push(make_value(Kind::Boolean)); return {};
      case 'X': return string();
      case 'c': return global();
      case '(': push(make_value(Kind::Mark)); return {};
      case ')': return tuple(0);
      case 0x85: return tuple(1);
      case 0x86: return tuple(2);
      case 0x87: return tuple(3);
      case 't': return marked_tuple();
      case 'q': return memo_put<std::uint8_t>();
      case 'r': return memo_put<std::uint32_t>();
      case 'h': return memo_get<std::uint8_t>();
      case 'j': return memo_get<std::uint32_t>();
      case 'Q': return persistent_id();
      case 'R': return reduce();
      case ']': return unsupported("the file holds a list");
      case '}': return unsupported("the file holds a dictionary");
      case 'N': return unsupported("the file holds None");
      case 'G': return unsupported("the file holds a Python number");
      default: return unsupported(fmt::format("data.pkl has the operation 0x{:02x}", opcode));
    }
  }

  template <class T>
  Expected<void> push_integer() {
    NS_ASSIGN_OR_RETURN(const std::int64_t value, integer<T>());
    push(make_integer(value));
    return {};
  }

  Expected<void> long_integer() {
    NS_ASSIGN_OR_RETURN(const std::uint8_t length, byte());
    if (length > 8) return corrupt("data.pkl has a number beyond 64 bits");
    NS_ASSIGN_OR_RETURN(const ByteSpan bytes, take(length));
    std::uint64_t value = length > 0 && (bytes[length - 1] & 0x80) != 0 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = length; i-- > 0;) value = (value << 8) | bytes[i];
    push(make_integer(static_cast<std::int64_t>(value)));
    return {};
  }

  Expected<void> string() {
    NS_ASSIGN_OR_RETURN(const std::int64_t length, integer<std::uint32_t>());
    if (length > static_cast<std::int64_t>(max_pickle_string))
      return corrupt("data.pkl has an overlong name");
    NS_ASSIGN_OR_RETURN(const ByteSpan bytes, take(static_cast<std::size_t>(length)));
    auto value = std::make_shared<Value>();
    value->kind = Kind::String;
    value->text = as_text(bytes);
    push(std::move(value));
    return {};
  }

  Expected<std::string> line() {
    std::string text;
    while (true) {
      NS_ASSIGN_OR_RETURN(const std::uint8_t c, byte());
      if (c == '\n') return text;
      if (text.size() >= max_pickle_string) return corrupt("data.pkl has an overlong name");
      text += static_cast<char>(c);
    }
  }

  Expected<void> global() {
    NS_ASSIGN_OR_RETURN(const std::string module, line());
    NS_ASSIGN_OR_RETURN(const std::string name, line());
    const std::string full = module + ' ' + name;
    if (full != rebuild_tensor && full != long_storage && full != int_storage && full != ordered_dict) {
      const std::string shown = printable(module) + '.' + printable(name);
      if (module == "torch" && name.size() > 7 && name.ends_with("Storage")) {
        return unsupported(fmt::format("the values are of type {}", shown));
      }
      return unsupported(fmt::format("the file asks for the Python object {}, which is refused", shown));
    }
    auto value = std::make_shared<Value>();
    value->kind = Kind::Global;
    value->text = full;
    push(std::move(value));
    return {};
  }

  Expected<void> make_tuple(std::size_t first) {
    auto value = std::make_shared<Value>();
    value->kind = Kind::Tuple;
    for (std::size_t i = first; i < stack_.size(); ++i) {
      if (stack_[i]->kind == Kind::Mark) return corrupt("data.pkl takes from an empty stack");
      if (stack_[i]->depth + 1 > value->depth) value->depth = stack_[i]->depth + 1;
      value->items.push_back(stack_[i]);
    }
    if (value->depth > max_tuple_depth) return corrupt("data.pkl nests too deeply");
    stack_.resize(first);
    push(std::move(value));
    return {};
  }
  Expected<void> tuple(std::size_t count) {
    if (stack_.size() < count) return corrupt("data.pkl takes from an empty stack");
    return make_tuple(stack_.size() - count);
  }
  Expected<void> marked_tuple() {
    for (std::size_t i = stack_.size(); i-- > 0;) {
      if (stack_[i]->kind != Kind::Mark) continue;
      NS_RETURN_IF_ERROR(make_tuple(i + 1));
      stack_.erase(stack_.begin() + static_cast<std::ptrdiff_t>(i));
      return {};
    }
    return corrupt("data.pkl closes a tuple that was not opened");
  }

  template <class T>
  Expected<void> memo_put() {
    NS_ASSIGN_OR_RETURN(const std::int64_t index, integer<T>());
    if (index >= static_cast<std::int64_t>(max_pickle_memo))
      return corrupt("data.pkl remembers too many values");
    if (stack_.empty() || stack_.back()->kind == Kind::Mark) return corrupt("data.pkl remembers nothing");
    memo_[static_cast<std::size_t>(index)] = stack_.back();
    return {};
  }
  template <class T>
  Expected<void> memo_get() {
    NS_ASSIGN_OR_RETURN(const std::int64_t index, integer<T>());
    if (index >= static_cast<std::int64_t>(max_pickle_memo) || !memo_[static_cast<std::size_t>(index)]) {
      return corrupt("data.pkl recalls a value that it never stored");
    }
    push(memo_[static_cast<std::size_t>(index)]);
    return {};
  }

  // ('storage', storage type, key, location, items)
  Expected<void> persistent_id() {
    NS_ASSIGN_OR_RETURN(const ValuePtr id, pop());
    const auto& items = id->items;
    if (id->kind != Kind::Tuple || items.size() != 5 || items[0]->text != "storage" ||
        items[1]->kind != Kind::Global || items[2]->kind != Kind::String || items[4]->kind != Kind::Integer ||
        items[4]->integer < 0) {
      return corrupt("data.pkl describes its storage in an unknown way");
    }
    auto value = std::make_shared<Value>();
    value->kind = Kind::Storage;
    if (items[1]->text == long_storage) {
      value->tensor.item_size = 8;
    } else if (items[1]->text == int_storage) {
      value->tensor.item_size = 4;
    } else {
      return corrupt("data.pkl describes its storage in an unknown way");
    }
    value->tensor.storage_key = items[2]->text;
    value->tensor.storage_items = static_cast<std::uint64_t>(items[4]->integer);
    push(std::move(value));
    return {};
  }

  Expected<void> reduce() {
    NS_ASSIGN_OR_RETURN(const ValuePtr arguments, pop());
    NS_ASSIGN_OR_RETURN(const ValuePtr callable, pop());
    if (callable->kind != Kind::Global || arguments->kind != Kind::Tuple) {
      return corrupt("data.pkl calls a value that is not a function");
    }
    if (callable->text == ordered_dict && arguments->items.empty()) {
      push(make_value(Kind::OrderedDict));
      return {};
    }
    if (callable->text == rebuild_tensor) return rebuild(*arguments);
    return corrupt("data.pkl calls a value that is not a function");
  }

  // (storage, first item, size, stride, requires_grad, backward_hooks)
  Expected<void> rebuild(const Value& arguments) {
    const auto& items = arguments.items;
    if (items.size() != 6 || items[0]->kind != Kind::Storage || items[1]->kind != Kind::Integer ||
        items[2]->kind != Kind::Tuple || items[3]->kind != Kind::Tuple || items[4]->kind != Kind::Boolean ||
        items[5]->kind != Kind::OrderedDict) {
      return corrupt("data.pkl describes its tensor in an unknown way");
    }
    const auto& size = items[2]->items;
    const auto& stride = items[3]->items;
    if (size.size() != 1 || stride.size() != 1) {
      return unsupported(fmt::format("the tensor has {} dimensions", size.size()));
    }
    if (size[0]->kind != Kind::Integer || stride[0]->kind != Kind::Integer || size[0]->integer < 0 ||
        items[1]->integer < 0) {
      return corrupt("data.pkl describes its tensor in an unknown way");
    }
    if (size[0]->integer > 1 && stride[0]->integer != 1) {
      return unsupported("the tensor is a strided view (save tensor.contiguous() instead)");
    }
    auto value = std::make_shared<Value>();
    value->kind = Kind::Tensor;
    value->tensor = items[0]->tensor;
    value->tensor.first_item = static_cast<std::uint64_t>(items[1]->integer);
    value->tensor.items = static_cast<std::uint64_t>(size[0]->integer);
    const PickledTensor& tensor = value->tensor;
    if (tensor.first_item > tensor.storage_items || tensor.items > tensor.storage_items - tensor.first_item) {
      return corrupt("the tensor reaches beyond its storage");
    }
    push(std::move(value));
    return {};
  }

  Expected<PickledTensor> result() {
    if (stack_.size() != 1) return corrupt("data.pkl leaves no single value");
    if (stack_[0]->kind != Kind::Tensor) return unsupported("the file holds something other than a tensor");
    return stack_[0]->tensor;
  }

  ByteSpan pickle_;
  std::size_t at_ = 0;
  std::vector<ValuePtr> stack_;
  std::array<ValuePtr, max_pickle_memo> memo_;
};

void append_text(Bytes& target, std::string_view text) {
  target.insert(target.end(), text.begin(), text.end());
}

void append_string(Bytes& target, std::string_view text) {
  target.push_back('X');
  append_le(target, static_cast<std::uint32_t>(text.size()));
  append_text(target, text);
}

void append_integer(Bytes& target, std::uint64_t value) {
  if (value <= 0xff) {
    target.push_back('K');
    target.push_back(static_cast<std::uint8_t>(value));
  } else if (value <= 0xffff) {
    target.push_back('M');
    append_le(target, static_cast<std::uint16_t>(value));
  } else {
    target.push_back('J');
    append_le(target, static_cast<std::int32_t>(value));
  }
}

}  // namespace

Expected<PickledTensor> read_tensor_pickle(ByteSpan pickle) {
  if (pickle.size() > max_pickle_bytes) return unsupported("the file describes more than one tensor");
  return Machine(pickle).run();
}

Bytes write_tensor_pickle(std::uint64_t items) {
  NS_CHECK(items <= 0x7fffffff);
  Bytes out;
  out.reserve(160);
  append_text(out, "\x80\x02");
  append_text(out, "ctorch._utils\n_rebuild_tensor_v2\n((");
  append_string(out, "storage");
  append_text(out, "ctorch\nLongStorage\n");
  append_string(out, "0");
  append_string(out, "cpu");
  append_integer(out, items);
  append_text(out, "tQK");
  out.push_back(0);
  append_integer(out, items);
  append_text(out, "\x85K\x01\x85\x89");
  append_text(out, "ccollections\nOrderedDict\n)RtR.");
  return out;
}

}  // namespace neuroshard::data::detail
