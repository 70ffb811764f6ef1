// The local HTTP server as the settings http, http_port and http_key_file ask for it.
#pragma once

#include <memory>

#include "core/config/data_directory.h"
#include "core/runtime/runtime_services.h"
#include "core/serve/api_server.h"

namespace neuroshard::runtime {

// Listening, not started; null when http is off. Makes the key's file (mode 0600) when it is missing.
// Errors: Unavailable (the port is taken), InvalidArgument (no usable key in the file), those of the file.
Expected<std::unique_ptr<serve::ApiServer>> open_api_server(const config::DataDirectory& directory,
                                                            const RuntimeServices& services);

}  // namespace neuroshard::runtime
