#include "core/chain/statements.h"

#include <algorithm>

#include "core/chain/detail/formats.h"

namespace neuroshard::chain {
namespace {

// The numbers of the kinds are the alternatives' positions, from 1.
enum class Kind : std::uint8_t {
  Register = 1,
  Vouch,
  Away,
  Back,
  Leave,
  Commit,
  Revoke,
  Move,
  Offer,
  OfferWithSpeed
};

auto voucher_fields(auto& voucher) {
  return std::tie(voucher.issuer, voucher.key, voucher.serial, voucher.expires_ms, voucher.signature);
}

// All but the signature.
Bytes signed_part(const Voucher& voucher) {
  return bytes_of(std::tie(voucher.issuer, voucher.key, voucher.serial, voucher.expires_ms));
}

Bytes use_part(const crypto::PublicKey& node, const crypto::PublicKey& wallet) {
  return bytes_of(std::tie(node, wallet));
}

auto vouch_fields(auto& vouch) {
  return std::tuple_cat(voucher_fields(vouch.voucher), std::tie(vouch.voucher_signature, vouch.wallet));
}

void write(Bytes& bytes, const Register& what) {
  append_array(bytes, crypto::encode_delegation(what.delegation));
  append_record(bytes, commitment_fields(what.beacon));
  append_optional_flags(bytes, {what.voucher.has_value(), !what.rows.is_all(), what.follows_plan});
  if (what.voucher) {
    append_record(bytes, voucher_fields(*what.voucher));
    append_array(bytes, what.voucher_signature);
  }
  append_rows(bytes, what.rows);
}
void write(Bytes& bytes, const Vouch& what) {
  append_record(bytes, vouch_fields(what));
}
void write(Bytes&, const Away&) {}
void write(Bytes&, const Back&) {}
void write(Bytes&, const Leave&) {}
void write(Bytes& bytes, const Commit& what) {
  append_record(bytes, commitment_fields(what.beacon));
}
void write(Bytes& bytes, const Revoke& what) {
  append_array(bytes, what.wallet);
}
void write(Bytes& bytes, const Move& what) {
  append_optional_flags(bytes, {false, !what.rows.is_all(), what.follows_plan});
  append_rows(bytes, what.rows);
}
void write(Bytes& bytes, const Offer& what) {
  append_le(bytes, what.memory_tiers);
  if (what.speed != 0) append_le(bytes, what.speed);
}

Register read_register(ByteReader& in, const crypto::PublicKey& node) {
  Register what;
  auto delegation = crypto::parse_delegation(in.bytes(crypto::delegation_bytes));
  if (delegation.ok()) what.delegation = *std::move(delegation);
  if (!delegation.ok() || what.delegation.node_key != node) in.fail();
  what.beacon = read_commitment(in);
  const OptionalFlags flags = read_optional_flags(in);
  if (flags.optional) {
    in.read(voucher_fields(what.voucher.emplace()));
    what.voucher_signature = in.array<crypto::Signature>();
  }
  if (flags.rows) what.rows = read_rows(in);
  if (flags.moved || flags.offers || flags.speed) in.fail();
  what.follows_plan = flags.follows_plan;
  return what;
}

Move read_move(ByteReader& in) {
  const OptionalFlags flags = read_optional_flags(in);
  if (flags.optional || !flags.rows || flags.moved || flags.offers || flags.speed) in.fail();
  return {read_rows(in), flags.follows_plan};
}

Vouch read_vouch(ByteReader& in) {
  Vouch what;
  in.read(vouch_fields(what));
  return what;
}

// An offer without a speed has the bytes that it had before there were speeds.
Kind kind_of(const Statement& statement) {
  const Offer* const offer = std::get_if<Offer>(&statement.what);
  if (offer != nullptr && offer->speed != 0) return Kind::OfferWithSpeed;
  return static_cast<Kind>(statement.what.index() + 1);
}

Offer read_offer_with_speed(ByteReader& in) {
  Offer what;
  in.read(std::tie(what.memory_tiers, what.speed));
  if (what.speed == 0) in.fail();
  return what;
}

Bytes signed_part(const Statement& statement) {
  Bytes bytes;
  append_array(bytes, statement.node);
  append_record(bytes, reference_fields(statement.reference));
  bytes.push_back(static_cast<std::uint8_t>(kind_of(statement)));
  std::visit([&bytes](const auto& what) { write(bytes, what); }, statement.what);
  return bytes;
}

bool voucher_is_used(const Voucher& voucher, const crypto::Signature& signature,
                     const crypto::PublicKey& node, const crypto::PublicKey& wallet, const Hash256& network) {
  return voucher_holds(voucher, network) && crypto::verify(voucher.key, crypto::Purpose::ChainVoucherUse,
                                                           network, use_part(node, wallet), signature);
}

bool inner_holds(const Register& what, const crypto::PublicKey& node, const Hash256& network) {
  if (!crypto::check_delegation(what.delegation, node, network, WallTime::min()).ok()) return false;
  return !what.voucher ||
         voucher_is_used(*what.voucher, what.voucher_signature, node, what.delegation.wallet_key, network);
}
bool inner_holds(const Vouch& what, const crypto::PublicKey& node, const Hash256& network) {
  return voucher_is_used(what.voucher, what.voucher_signature, node, what.wallet, network);
}
// The signer's, and what it signs for.
struct Signing {
  crypto::PublicKey key;
  crypto::Purpose purpose;
};
Signing signing_of(const Statement& statement) {
  if (const auto* revoke = std::get_if<Revoke>(&statement.what))
    return {revoke->wallet, crypto::Purpose::ChainRevocation};
  return {statement.node, crypto::Purpose::ChainStatement};
}

template <class Plain>
bool inner_holds(const Plain&, const crypto::PublicKey&, const Hash256&) {
  return true;
}

}  // namespace

bool operator==(const Register& a, const Register& b) {
  return crypto::encode_delegation(a.delegation) == crypto::encode_delegation(b.delegation) &&
         a.beacon == b.beacon && a.voucher == b.voucher && a.voucher_signature == b.voucher_signature &&
         a.rows == b.rows && a.follows_plan == b.follows_plan;
}

void sign_voucher(Voucher& voucher, const crypto::KeyPair& issuer, const Hash256& network) {
  voucher.issuer = issuer.public_key();
  voucher.signature = issuer.sign(crypto::Purpose::ChainVoucher, network, signed_part(voucher));
}

bool voucher_holds(const Voucher& voucher, const Hash256& network) {
  return crypto::verify(voucher.issuer, crypto::Purpose::ChainVoucher, network, signed_part(voucher),
                        voucher.signature);
}

Bytes encode_voucher(const Voucher& voucher) {
  return bytes_of(voucher_fields(voucher));
}

Expected<Voucher> decode_voucher(ByteSpan bytes) {
  ByteReader in(bytes);
  Voucher voucher;
  in.read(voucher_fields(voucher));
  if (!in.at_end()) return corrupt("a voucher can't be read");
  return voucher;
}

void sign_statement(Statement& statement, const crypto::KeyPair& node, const Hash256& network) {
  statement.node = node.public_key();
  statement.signature = node.sign(crypto::Purpose::ChainStatement, network, signed_part(statement));
}

void sign_revocation(Statement& statement, const crypto::KeyPair& wallet, const Hash256& network) {
  statement.what = Revoke{wallet.public_key()};
  statement.signature = wallet.sign(crypto::Purpose::ChainRevocation, network, signed_part(statement));
}

bool statement_holds(const Statement& statement, const Hash256& network) {
  const Signing by = signing_of(statement);
  return crypto::verify(by.key, by.purpose, network, signed_part(statement), statement.signature) &&
         std::visit([&](const auto& what) { return inner_holds(what, statement.node, network); },
                    statement.what);
}

crypto::Signature use_voucher(const crypto::KeyPair& voucher_key, const crypto::PublicKey& node,
                              const crypto::PublicKey& wallet, const Hash256& network) {
  return voucher_key.sign(crypto::Purpose::ChainVoucherUse, network, use_part(node, wallet));
}

Bytes encode_statement(const Statement& statement) {
  Bytes bytes = signed_part(statement);
  append_array(bytes, statement.signature);
  return bytes;
}

Expected<Statement> decode_statement(ByteSpan bytes) {
  if (bytes.size() > max_statement_bytes) return corrupt("a member's statement is too long");
  ByteReader in(bytes);
  Statement statement;
  statement.node = in.array<crypto::PublicKey>();
  in.read(reference_fields(statement.reference));
  switch (static_cast<Kind>(in.number<std::uint8_t>())) {
    case Kind::Register: statement.what = read_register(in, statement.node); break;
    case Kind::Vouch: statement.what = read_vouch(in); break;
    case Kind::Away: statement.what = Away{}; break;
    case Kind::Back: statement.what = Back{}; break;
    case Kind::Leave: statement.what = Leave{}; break;
    case Kind::Commit: statement.what = Commit{read_commitment(in)}; break;
    case Kind::Revoke: statement.what = Revoke{in.array<crypto::PublicKey>()}; break;
    case Kind::Move: statement.what = read_move(in); break;
    case Kind::Offer: statement.what = Offer{in.number<std::uint32_t>()}; break;
    case Kind::OfferWithSpeed: statement.what = read_offer_with_speed(in); break;
    default: in.fail();
  }
  statement.signature = in.array<crypto::Signature>();
  if (!in.at_end()) return corrupt("a member's statement can't be read");
  return statement;
}

}  // namespace neuroshard::chain
