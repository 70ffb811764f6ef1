#include "core/control/detail/tls_identity.h"

#include "core/crypto/certificate.h"
#include "core/crypto/entropy.h"

namespace neuroshard::control::detail {

Expected<TlsIdentity> make_tls_identity() {
  crypto::SystemEntropy entropy;
  const crypto::KeyPair key = crypto::KeyPair::generate(entropy);
  NS_ASSIGN_OR_RETURN(const crypto::CertificatePair made,
                      crypto::make_certificate(key, std::nullopt, certificate_name));
  return TlsIdentity{made.certificate, std::string(made.key.text())};
}

}  // namespace neuroshard::control::detail
