#include <nlohmann/json.hpp>

#include "core/serve/detail/api_state.h"
#include "core/serve/openapi.h"

namespace neuroshard::serve::detail {

const std::vector<Route>& routes() {
  static const std::vector<Route> all = {
      {"GET", "/health", "Whether the node works", false},
      {"GET", "/openapi.json", "This description", false},
      {"GET", "/metrics", "Figures in Prometheus' text format", true},
      {"GET", "/api/stats", "State of the node", true},
      {"GET", "/api/training/global", "Training of the network and of this node", true},
      {"GET", "/api/training/history", "Loss by step", true},
      {"GET", "/api/network", "Peers and reachability", true},
      {"GET", "/api/layers", "Slots of the model", true},
      {"GET", "/api/experts", "Load of the experts", true},
      {"GET", "/api/checkpoints", "The newest checkpoints", true},
      {"GET", "/v1/models", "The model that this node can use", true},
      {"POST", "/v1/completions", "Continue texts, or give their log-probabilities", true,
       TextKind::Completion},
      {"POST", "/v1/chat/completions", "Answer in a conversation", true, TextKind::Chat},
      {"POST", "/v1/embeddings", "Give the embeddings of texts", true, TextKind::Embedding},
  };
  return all;
}

}  // namespace neuroshard::serve::detail

namespace neuroshard::serve {

namespace {

std::string describe_routes() {
  using detail::Route;
  using Json = nlohmann::ordered_json;
  Json paths = Json::object();
  for (const Route& route : detail::routes()) {
    const std::string method = route.method == std::string("GET") ? "get" : "post";
    const char* type = route.path == std::string("/metrics") ? "text/plain" : "application/json";
    Json entry = {{"summary", route.summary}};
    if (!route.needs_key) entry["security"] = Json::array();
    if (method == "post") {
      Json content = Json::object();
      content["application/json"] = {{"schema", Json::parse(request_schema(route.kind))}};
      entry["requestBody"] = {{"required", true}, {"content", std::move(content)}};
    }
    Json content = Json::object();
    content[type] = Json::object();
    Json ok = {{"description", "The answer"}};
    ok["content"] = std::move(content);
    Json error = {{"description", "The error, in \"error\": message, type, param, code"}};
    entry["responses"] = {{"200", std::move(ok)}, {"default", std::move(error)}};
    paths[route.path][method] = std::move(entry);
  }
  Json page = {{"openapi", "3.0.3"}, {"info", {{"title", "NeuroShard, local HTTP"}, {"version", "1"}}}};
  page["components"]["securitySchemes"]["key"] = {{"type", "http"}, {"scheme", "bearer"}};
  Json need = Json::object();
  need["key"] = Json::array();
  page["security"] = Json::array();
  page["security"].push_back(std::move(need));
  page["paths"] = std::move(paths);
  return page.dump();
}

}  // namespace

const std::string& openapi_page() {
  static const std::string page = describe_routes();
  return page;
}

}  // namespace neuroshard::serve
