#include "core/rpc/detail/verifier.h"

namespace neuroshard::rpc::detail {
namespace {

class Verifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  Verifier(std::shared_ptr<Shared> shared, std::optional<net::NodeId> pin, std::shared_ptr<Verdict> verdict)
      : shared_(std::move(shared)), pin_(pin), verdict_(std::move(verdict)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* status) override {
    const grpc::string_ref pem = request->peer_cert();
    auto result = shared_->check_certificate(std::string(pem.data(), pem.size()), expected());
    *status = result.ok() ? grpc::Status::OK
                          : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, result.error().message);
    if (verdict_) verdict_->set(std::move(result));
    return true;  // done at once
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  // A channel that reconnects must find the same node as before.
  std::optional<net::NodeId> expected() const {
    if (pin_ || !verdict_) return pin_;
    const auto before = verdict_->get();
    return before && before->ok() ? std::optional(**before) : std::nullopt;
  }

  const std::shared_ptr<Shared> shared_;
  const std::optional<net::NodeId> pin_;
  const std::shared_ptr<Verdict> verdict_;
};

}  // namespace

std::shared_ptr<grpc::experimental::CertificateVerifier> make_verifier(std::shared_ptr<Shared> shared,
                                                                       std::optional<net::NodeId> pin,
                                                                       std::shared_ptr<Verdict> verdict) {
  return grpc::experimental::ExternalCertificateVerifier::Create<Verifier>(std::move(shared), pin,
                                                                           std::move(verdict));
}

}  // namespace neuroshard::rpc::detail
