// The description of the local HTTP server: its routes, and the bodies that it takes, as OpenAPI 3.0.
#pragma once

#include <string>

#include "core/serve/openai_request.h"

namespace neuroshard::serve {

const std::string& openapi_page();

// JSON schema of the body of a kind. Says what its parser takes: its properties are request_fields(), its bounds the
// parser's.
std::string request_schema(TextKind kind);

}  // namespace neuroshard::serve
