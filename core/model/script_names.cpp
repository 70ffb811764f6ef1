#include "core/model/script_names.h"

#include <optional>
#include <vector>

namespace neuroshard::model {
namespace {

using torch::jit::Node;
using torch::jit::Value;

struct Chain {
  std::string first;  // with its type, as LibTorch says it
  std::string path;   // of names, with dots
};

// "0(Residual).conv1(Conv2d).SELF(Conv2d)"; a type's name may hold dots.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts{""};
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == '.' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Chain chain_of(const Node& operation) {
  Chain chain;
  for (const std::string& part : split(torch::jit::utils::getNodesModuleHierarchy(operation))) {
    const std::string name = part.substr(0, part.find_first_of("(:"));
    // A method of the module itself, a function that belongs to none, the whole model.
    if (name.empty() || name == "SELF" || name == "UNKNOWN_INSTANCE" || name == "top") continue;
    if (chain.first.empty()) chain.first = part;
    chain.path += (chain.path.empty() ? "" : ".") + name;
  }
  return chain;
}

// The prefix before `path` in the name of one of the operation's parameters.
std::optional<std::string> found_before(const Node& operation, const std::string& path) {
  if (path.empty()) return {};
  for (const Value* input : operation.inputs()) {
    const std::string name = input->hasDebugName() ? input->debugName() : std::string();
    if (name.rfind("self.", 0) != 0) continue;
    const std::string owner = "." + name.substr(5, name.rfind('.') - 5);
    const std::string end = "." + path;
    if (owner.size() < end.size() || owner.compare(owner.size() - end.size(), end.size(), end) != 0) continue;
    const std::string before = owner.substr(0, owner.size() - end.size());
    return before.empty() ? std::string() : before.substr(1) + ".";
  }
  return {};
}

}  // namespace

ScriptNames::ScriptNames(const ScriptStructure& structure) {
  for (const Node* operation : structure.operations()) {
    const Chain chain = chain_of(*operation);
    if (const auto before = found_before(*operation, chain.path)) before_[chain.first].insert(*before);
  }
}

std::string ScriptNames::place(const Node& operation) const {
  const Chain chain = chain_of(operation);
  if (const auto own = found_before(operation, chain.path)) return *own + chain.path;
  const auto known = before_.find(chain.first);
  return known != before_.end() && known->second.size() == 1 ? *known->second.begin() + chain.path
                                                             : chain.path;
}

}  // namespace neuroshard::model
