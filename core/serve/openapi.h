// The description of the local HTTP server: its routes, and the bodies that it takes, as OpenAPI 3.0.
#pragma once

#include <string>

namespace neuroshard::serve {

const std::string& openapi_page();

// JSON schema of the body of /v1/completions, or of /v1/chat/completions. Says what parse_completion() and
// parse_chat() take: its properties are request_fields(), its bounds theirs.
std::string request_schema(bool chat);

}  // namespace neuroshard::serve
