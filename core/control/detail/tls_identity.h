// The control key: made anew for every start of the service and never stored, so that a control.json can only
// lead to the process that wrote it.
#pragma once

#include <string>

#include "core/base/expected.h"

namespace neuroshard::control::detail {

// The name in the certificate; the client asks for it at every address.
inline constexpr const char* certificate_name = "neuroshard-control";

struct TlsIdentity {
  std::string certificate;  // PEM, self-signed
  std::string key;          // PEM
};

// Ed25519 (RFC 8410). Valid at any time: each side trusts exactly this certificate, and clocks are set.
Expected<TlsIdentity> make_tls_identity();

}  // namespace neuroshard::control::detail
