// The certificate made from the node key, and what is refused in a peer's.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <QtTest>

#include "core/crypto/certificate.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"

using namespace neuroshard;
using namespace neuroshard::crypto;

class TestCertificate : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void it_carries_the_node_key();
  void its_dates_are_looked_at();
  void other_keys_are_refused_data();
  void other_keys_are_refused();
  void any_bytes_are_safe();
  void it_is_signed_with_its_key();
};

namespace {

const WallTime now{std::chrono::milliseconds(1'800'000'000'000)};

CertificatePair made(const KeyPair& key) {
  return make_certificate(key, now).value();
}

// A certificate of another kind of key, otherwise as ours.
std::string foreign(EVP_PKEY* key) {
  X509* certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), 1);
  ASN1_TIME_set(X509_getm_notBefore(certificate), to_unix_ms(now) / 1000 - 60);
  ASN1_TIME_set(X509_getm_notAfter(certificate), to_unix_ms(now) / 1000 + 60);
  X509_set_pubkey(certificate, key);
  const bool own_hash = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED448;
  X509_sign(certificate, key, own_hash ? nullptr : EVP_sha256());
  BIO* text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(text, certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(text, &data);
  std::string pem(data, static_cast<std::size_t>(size));
  BIO_free_all(text);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return pem;
}

CertificateFault fault(std::string_view pem, WallTime at = now) {
  const auto read = read_certificate(pem, at);
  const auto* const found = std::get_if<CertificateFault>(&read);
  return found != nullptr ? *found : CertificateFault(255);
}

}  // namespace

void TestCertificate::it_carries_the_node_key() {
  test::CountingEntropy entropy;
  const KeyPair key = KeyPair::generate(entropy);
  const CertificatePair pair = made(key);
  const auto read = read_certificate(pair.certificate, now);
  QVERIFY(std::holds_alternative<PublicKey>(read));
  QVERIFY(std::get<PublicKey>(read) == key.public_key());
  QVERIFY(pair.certificate.size() < 1024);
  QVERIFY(pair.certificate.find("PRIVATE") == std::string::npos);
  // The same key, the same moment: the same certificate.
  QCOMPARE(made(key).certificate, pair.certificate);
}

void TestCertificate::its_dates_are_looked_at() {
  test::CountingEntropy entropy;
  const std::string pem = made(KeyPair::generate(entropy)).certificate;
  const auto hours = [](int count) { return std::chrono::hours(count); };
  QVERIFY(std::holds_alternative<PublicKey>(read_certificate(pem, now - hours(23))));
  QCOMPARE(fault(pem, now - hours(25)), CertificateFault::NotYetValid);
  QVERIFY(std::holds_alternative<PublicKey>(read_certificate(pem, now + hours(24 * 3649))));
  QCOMPARE(fault(pem, now + hours(24 * 3651)), CertificateFault::Expired);
}

void TestCertificate::other_keys_are_refused_data() {
  QTest::addColumn<QByteArray>("kind");
  for (const char* kind : {"RSA", "EC", "ED448"}) QTest::newRow(kind) << QByteArray(kind);
}

void TestCertificate::other_keys_are_refused() {
  QFETCH(QByteArray, kind);
  EVP_PKEY* const key = kind == "RSA"  ? EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{2048})
                        : kind == "EC" ? EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256")
                                       : EVP_PKEY_Q_keygen(nullptr, nullptr, "ED448");
  QVERIFY(key != nullptr);
  QCOMPARE(fault(foreign(key)), CertificateFault::NotEd25519);
}

void TestCertificate::any_bytes_are_safe() {
  QCOMPARE(fault(""), CertificateFault::Missing);
  QCOMPARE(fault("hello"), CertificateFault::Malformed);
  QCOMPARE(fault(std::string(100'000, 'x')), CertificateFault::Malformed);
  test::CountingEntropy entropy;
  const std::string pem = made(KeyPair::generate(entropy)).certificate;
  for (std::size_t size = 0; size < pem.size() - 2; ++size)
    QVERIFY(!std::holds_alternative<PublicKey>(read_certificate(pem.substr(0, size), now)));
  for (std::size_t i = 0; i < pem.size(); ++i) {  // read or refused, never a crash
    std::string changed = pem;
    changed[i] = static_cast<char>(changed[i] ^ 2);
    static_cast<void>(read_certificate(changed, now));
  }
}

void TestCertificate::it_is_signed_with_its_key() {
  test::CountingEntropy entropy;
  const std::string pem = made(KeyPair::generate(entropy)).certificate;
  BIO* text = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* certificate = PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
  QVERIFY(certificate != nullptr);
  QCOMPARE(X509_verify(certificate, X509_get0_pubkey(certificate)), 1);
  X509_free(certificate);
  BIO_free_all(text);
}

NS_TEST(TestCertificate)
#include "test_certificate.moc"
