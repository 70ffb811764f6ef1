// The certificate that a node shows on its connections: X.509, self-signed, Ed25519 (RFC 8410), made from the
// node key. Nothing in it but the key matters: the peer's id is the hash of that key (node_id), and TLS
// proves that the peer holds it. The dates only bound how long a certificate that was copied somewhere is of
// any use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"
#include "core/crypto/secret.h"

namespace neuroshard::crypto {

// The subject of every certificate; a client asks for this name whatever the address.
inline constexpr const char* certificate_name = "neuroshard-node";
inline constexpr std::size_t max_certificate_bytes = 8u << 10;  // PEM; ours have less than 1 KiB

struct CertificatePair {
  std::string certificate;  // PEM
  Secret key;               // PEM, PKCS #8
};

// Valid from a day before `now` (clocks differ) for ten years; without `now` always, for a reader that trusts
// this one certificate. name: what it is made out to.  Errors: Internal.
Expected<CertificatePair> make_certificate(const KeyPair& key, std::optional<WallTime> now,
                                           const char* name = certificate_name);

// Why a certificate is not taken.
enum class CertificateFault : std::uint8_t { Missing, Malformed, NotEd25519, NotYetValid, Expired };
std::string_view to_string(CertificateFault fault);

// Reads a peer's certificate, any bytes are safe: the key in it, or why not. Does not check who holds the key
// (the TLS handshake has done so) nor whose it should be (the caller compares).  Threads: any.
std::variant<PublicKey, CertificateFault> read_certificate(std::string_view pem, WallTime now);

}  // namespace neuroshard::crypto
