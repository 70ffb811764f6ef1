#include "core/crypto/certificate.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

#include "core/crypto/hash.h"

namespace neuroshard::crypto {
namespace {

constexpr long day = 86'400;
constexpr long years = 3650 * day;
constexpr long end_of_dates = 253'402'300'799;  // the last second of 9999, the end of RFC 5280

template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* object) const { release(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Release<X509, X509_free>>;
using Buffer = std::unique_ptr<BIO, Release<BIO, BIO_free_all>>;
using Extension = std::unique_ptr<X509_EXTENSION, Release<X509_EXTENSION, X509_EXTENSION_free>>;

std::string_view content(BIO* buffer) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(buffer, &data);
  return size > 0 ? std::string_view(data, static_cast<std::size_t>(size)) : std::string_view();
}

bool add_extension(X509* certificate, int id, const std::string& value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

long unix_seconds(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

bool fill(X509* certificate, EVP_PKEY* key, const PublicKey& public_key, std::optional<WallTime> now,
          const char* made_out_to) {
  const long seconds = now ? unix_seconds(*now) : 0;
  const long from = now ? seconds - day : 0, until = now ? seconds + years : end_of_dates;
  // The serial number need only differ between certificates of one key.
  Bytes serial_of(public_key.begin(), public_key.end());
  append_le(serial_of, static_cast<std::int64_t>(seconds));
  const auto serial = load_le<std::uint64_t>(sha256(serial_of).data());
  X509_NAME* name = X509_get_subject_name(certificate);
  return X509_set_version(certificate, X509_VERSION_3) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) == 1 &&
         ASN1_TIME_set(X509_getm_notBefore(certificate), from) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), until) != nullptr &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(made_out_to), -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         // It may not sign others, so trusting it trusts one key.
         add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
         add_extension(certificate, NID_subject_alt_name, fmt::format("DNS:{}", made_out_to)) &&
         X509_sign(certificate, key, nullptr) > 0;
}

}  // namespace

Expected<CertificatePair> make_certificate(const KeyPair& key_pair, std::optional<WallTime> now,
                                           const char* name) {
  Hash256 seed = key_pair.seed();
  const Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  wipe({seed.data(), seed.size()});
  const Certificate certificate(X509_new());
  const Buffer key_text(BIO_new(BIO_s_secmem()));
  const Buffer certificate_text(BIO_new(BIO_s_mem()));
  if (!key || !certificate || !key_text || !certificate_text ||
      !fill(certificate.get(), key.get(), key_pair.public_key(), now, name) ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return make_error(ErrorCode::Internal, fmt::format("OpenSSL can't make the certificate of {}", name));
  }
  return CertificatePair{std::string(content(certificate_text.get())),
                         Secret::copy_of(content(key_text.get()))};
}

std::string_view to_string(CertificateFault fault) {
  switch (fault) {
    case CertificateFault::Missing: return "it sent no certificate";
    case CertificateFault::Malformed: return "its certificate can't be read";
    case CertificateFault::NotEd25519: return "the key of its certificate is not an Ed25519 key";
    case CertificateFault::NotYetValid: return "its certificate is not valid yet (are both clocks right?)";
    case CertificateFault::Expired: return "its certificate has expired (are both clocks right?)";
  }
  return "its certificate was rejected";
}

std::variant<PublicKey, CertificateFault> read_certificate(std::string_view pem, WallTime now) {
  if (pem.empty()) return CertificateFault::Missing;
  if (pem.size() > max_certificate_bytes) return CertificateFault::Malformed;
  const Buffer text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Certificate certificate(text ? PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr) : nullptr);
  if (!certificate) return CertificateFault::Malformed;
  EVP_PKEY* const key = X509_get0_pubkey(certificate.get());
  if (key == nullptr) return CertificateFault::Malformed;
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519) return CertificateFault::NotEd25519;
  PublicKey public_key{};
  std::size_t size = public_key.size();
  if (EVP_PKEY_get_raw_public_key(key, public_key.data(), &size) != 1 || size != public_key.size())
    return CertificateFault::Malformed;
  std::time_t seconds = unix_seconds(now);
  const int from = X509_cmp_time(X509_get0_notBefore(certificate.get()), &seconds);
  const int until = X509_cmp_time(X509_get0_notAfter(certificate.get()), &seconds);
  if (from == 0 || until == 0) return CertificateFault::Malformed;
  if (from > 0) return CertificateFault::NotYetValid;
  if (until < 0) return CertificateFault::Expired;
  return public_key;
}

}  // namespace neuroshard::crypto
