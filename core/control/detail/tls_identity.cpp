#include "core/control/detail/tls_identity.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <memory>

namespace neuroshard::control::detail {
namespace {

constexpr long day = 86'400;

template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* object) const { release(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Release<X509, X509_free>>;
using Buffer = std::unique_ptr<BIO, Release<BIO, BIO_free_all>>;
using Extension = std::unique_ptr<X509_EXTENSION, Release<X509_EXTENSION, X509_EXTENSION_free>>;

std::string text_of(BIO* buffer) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(buffer, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

bool add_extension(X509* certificate, int id, const std::string& value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool fill(X509* certificate, EVP_PKEY* key, WallTime now) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  unsigned char serial[8] = {};
  if (RAND_bytes(serial, sizeof(serial)) != 1) return false;
  std::uint64_t number = 0;
  for (const unsigned char byte : serial) number = number << 8 | byte;
  X509_NAME* name = X509_get_subject_name(certificate);
  return X509_set_version(certificate, X509_VERSION_3) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), number >> 1) == 1 &&
         ASN1_TIME_set(X509_getm_notBefore(certificate), seconds - day) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), seconds + 3650 * day) != nullptr &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(certificate_name), -1, -1,
                                    0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         // It may not sign others, so trusting it trusts one key.
         add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
         add_extension(certificate, NID_subject_alt_name, fmt::format("DNS:{}", certificate_name)) &&
         X509_sign(certificate, key, nullptr) > 0;
}

}  // namespace

Expected<TlsIdentity> make_tls_identity(WallTime now) {
  const Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  const Certificate certificate(X509_new());
  const Buffer key_text(BIO_new(BIO_s_mem()));
  const Buffer certificate_text(BIO_new(BIO_s_mem()));
  if (!key || !certificate || !key_text || !certificate_text || !fill(certificate.get(), key.get(), now) ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return make_error(ErrorCode::Internal, "OpenSSL can't make a key for the control service");
  }
  return TlsIdentity{text_of(certificate_text.get()), text_of(key_text.get())};
}

}  // namespace neuroshard::control::detail
