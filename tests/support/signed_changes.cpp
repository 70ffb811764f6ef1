#include "tests/support/signed_changes.h"

#include <algorithm>

#include "core/rounds/round_posts.h"

namespace neuroshard::test {
namespace {

constexpr std::size_t most_rows = chain::max_rows;
constexpr std::size_t most_members = 4096;
constexpr std::size_t vector_rows = 1;
constexpr int most_depth = 2;  // of relayed items in relayed items

}  // namespace

// ---- Numbers, hashes, lists

void SignedChanges::alter(std::uint64_t& value) {
  if (mutator_.one_in(2)) return;
  value = mutator_.one_in(2) ? value + mutator_.rng().below(5) - 2 : mutator_.odd_number(value);
}

void SignedChanges::alter(std::uint32_t& value) {
  std::uint64_t wide = value;
  alter(wide);
  value = static_cast<std::uint32_t>(wide);
}

void SignedChanges::alter(Hash256& hash) {
  if (mutator_.one_in(2)) return;
  if (mutator_.one_in(4))
    hash[mutator_.rng().below(hash.size())] ^= 1;
  else
    hash = pool_.any_hash(mutator_.rng());
}

std::uint32_t SignedChanges::voter() {
  if (member_ && !mutator_.one_in(8)) return *member_;
  return mutator_.one_in(4) ? static_cast<std::uint32_t>(mutator_.odd_number(4))
                            : static_cast<std::uint32_t>(mutator_.rng().below(8));
}

// ---- Votes and quorums

void SignedChanges::alter(chain::Vote& vote) {
  if (mutator_.one_in(4)) vote.step = static_cast<chain::VoteStep>(1 + mutator_.rng().below(4));
  alter(vote.height);
  alter(vote.previous);
  alter(vote.view);
  alter(vote.block);
}

void SignedChanges::alter(chain::Quorum& quorum) {
  if (mutator_.one_in(4)) alter(static_cast<chain::Vote&>(quorum));
  alter_list(quorum.signatures);
  if (mutator_.one_in(2)) {
    const std::uint32_t number = voter();
    const chain::SignedVote own = chain::sign_vote(quorum, number, key_, pool_.network());
    quorum.signatures.push_back({number, own.signature});
    std::sort(quorum.signatures.begin(), quorum.signatures.end(),
              [](const auto& a, const auto& b) { return a.voter < b.voter; });
  }
}

// ---- Statements

WallTime SignedChanges::odd_time(Duration from_now) {
  const auto near = clock_.wall_now() + std::chrono::duration_cast<std::chrono::milliseconds>(from_now);
  if (!mutator_.one_in(6)) return near;
  const std::uint64_t odd = mutator_.odd_number(static_cast<std::uint64_t>(to_unix_ms(near)));
  return WallTime(std::chrono::milliseconds(static_cast<std::int64_t>(odd)));
}

crypto::Delegation SignedChanges::delegation() {
  std::uint64_t sequence = 1;
  alter(sequence);
  return crypto::delegate(key_, key_.public_key(), pool_.network(), odd_time(std::chrono::hours(24 * 300)),
                          sequence);
}

void SignedChanges::alter(chain::Statement& statement) {
  Rng& rng = mutator_.rng();
  statement.node = key_.public_key();
  alter(statement.reference.height);
  if (mutator_.one_in(3)) alter(statement.reference.hash);
  switch (rng.below(7)) {
    case 0: {
      chain::Register joins;
      joins.delegation = delegation();
      joins.beacon = {pool_.any_hash(rng), rng.below(100), static_cast<std::uint32_t>(1 + rng.below(4096))};
      alter(joins.beacon.first_round);
      statement.what = joins;
      break;
    }
    case 1: statement.what = chain::Away{}; break;
    case 2: statement.what = chain::Back{}; break;
    case 3: statement.what = chain::Leave{}; break;
    case 4: {
      chain::Commit commits;
      commits.beacon = {pool_.any_hash(rng), rng.below(100),
                        static_cast<std::uint32_t>(1 + rng.below(65'536))};
      alter(commits.beacon.first_round);
      statement.what = commits;
      break;
    }
    case 5: return chain::sign_revocation(statement, key_, pool_.network());  // the node is its own wallet
    default: break;                                                           // as it is
  }
  chain::sign_statement(statement, key_, pool_.network());
}

// ---- Blocks

void SignedChanges::alter(chain::BlockBody& body) {
  Rng& rng = mutator_.rng();
  alter_list(body.statements);
  alter_list(body.evidence);
  if (mutator_.one_in(3)) {
    body.silent.push_back(voter());
    std::sort(body.silent.begin(), body.silent.end());
  }
  if (body.close) {
    alter(body.close->round);
    alter_list(body.close->contributions);
    alter_list(body.close->vectors);
    for (chain::ContributionEntry& entry : body.close->contributions) {
      if (!mutator_.one_in(4)) continue;
      alter(entry.member);
      alter(entry.tokens);
      alter(entry.work);
      alter(entry.reveal);
    }
    for (chain::Vector& vector : body.close->vectors) vector.round = body.close->round;
  }
  if (body.result) {
    alter(body.result->round);
    alter_list(body.result->rows);
    for (chain::RowResult& row : body.result->rows) {
      alter(row.row);
      if (!row.carried) alter(row.anchor);
      if (!row.carried) alter(row.norm_bits);
    }
  }
  if (mutator_.one_in(4) && pool_.knows({net::Method::ChainPost, 6})) {
    const Message& known = pool_.any_of({net::Method::ChainPost, 6}, rng);
    auto statement = chain::decode_statement(ByteSpan(known.request).subspan(1));
    if (statement.ok()) {
      if (mutator_.one_in(2)) alter(*statement);
      body.statements.push_back(std::move(*statement));
    }
  }
  if (mutator_.one_in(8)) body.close.reset();
  if (mutator_.one_in(8)) body.result.reset();
}

chain::BlockPtr SignedChanges::altered(const chain::Block& block) {
  chain::BlockHeader header = block.header;
  chain::BlockBody body = block.body;
  Hash256 opening = block.opening;
  if (header.height > 0) alter(header.height);
  alter(header.time_ms);
  if (mutator_.one_in(3)) alter(header.previous);
  if (mutator_.one_in(3)) alter(header.registry);
  if (header.height > 0 && mutator_.one_in(4)) alter(opening);
  if (!mutator_.one_in(4)) alter(body);
  if (body.close)
    for (chain::Vector& vector : body.close->vectors) vector.opening = opening;
  header.body = chain::body_root(body, opening);
  return chain::make_block(header, std::move(body), opening, pool_.network());
}

std::optional<Bytes> SignedChanges::change_body(ByteSpan bytes) {
  auto read = chain::decode_item(bytes, pool_.network());
  auto* const proposal = read.ok() ? std::get_if<chain::Proposal>(&*read) : nullptr;
  if (proposal == nullptr) return std::nullopt;
  const chain::Block& block = *proposal->block;
  chain::BlockHeader header = block.header;
  chain::BlockBody body = block.body;
  alter(body);
  if (body.close)
    for (chain::Vector& vector : body.close->vectors) vector.opening = block.opening;
  header.body = chain::body_root(body, block.opening);
  proposal->block = chain::make_block(header, std::move(body), block.opening, pool_.network());
  if (proposal->prepare && member_) {
    const chain::Vote vote{chain::VoteStep::Prepare, header.height, header.previous, proposal->view,
                           proposal->block->hash};
    proposal->prepare = chain::sign_vote(vote, *member_, key_, pool_.network()).signature;
  }
  return chain::encode_item(*proposal);
}

chain::CertifiedBlock SignedChanges::altered(const chain::CertifiedBlock& block) {
  chain::Certificate certificate = *block.certificate;
  chain::BlockPtr content = mutator_.one_in(2) ? altered(*block.block) : block.block;
  certificate.commits.block = content->hash;
  certificate.commits.height = content->header.height;
  certificate.commits.previous = content->header.previous;
  alter(certificate.commits);
  if (mutator_.one_in(4)) certificate.lock = certificate.commits;
  return chain::make_certified(std::move(content), std::move(certificate));
}

// ---- The rounds' posts

Bytes SignedChanges::changed_contribution(ByteSpan post) {
  auto posted = rounds::decode_contribution_post(post, most_rows);
  if (!posted) return {};
  chain::Contribution& c = posted->contribution;
  c.node = key_.public_key();
  alter(c.opening);
  alter(c.round);
  alter(c.batches);
  alter(c.reveal);
  for (chain::RowWork& row : c.rows) {
    alter(row.row);
    alter(row.tokens);
    alter(row.payload_bytes);
    alter(row.payload);
  }
  alter_list(c.rows);
  std::sort(c.rows.begin(), c.rows.end(), [](const auto& a, const auto& b) { return a.row < b.row; });
  chain::sign_contribution(c, key_, pool_.network());
  std::vector<rounds::Payload> payloads;
  if (c.rows.size() == posted->payloads.size() && !mutator_.one_in(3))
    for (auto& [row, payload] : posted->payloads)
      payloads.push_back(
          in_memory(mutator_.one_in(2) ? mutator_.mutate(std::move(payload), {}) : std::move(payload)));
  return rounds::encode_contribution_post(c, payloads);
}

Bytes SignedChanges::changed_vector(ByteSpan post) {
  auto vector = chain::decode_vector(post, most_members, vector_rows);
  if (!vector.ok()) return {};
  vector->voter = voter();
  alter(vector->opening);
  alter(vector->round);
  alter(vector->contributions);
  if (mutator_.one_in(2)) {
    vector->members.clear();
    std::uint32_t number = 0;
    for (std::size_t left = mutator_.rng().below(12); left > 0; --left) {
      number += 1 + static_cast<std::uint32_t>(mutator_.rng().below(3));
      vector->members.push_back(number);
    }
    for (chain::Bitmap& payloads : vector->payloads) {
      payloads = chain::Bitmap(vector->members.size());
      for (std::size_t i = 0; i < payloads.size(); ++i)
        if (mutator_.one_in(2)) payloads.set(i);
    }
  }
  chain::sign_vector(*vector, key_, pool_.network());
  return chain::encode_vector(*vector);
}

// ---- Items of the chain

Bytes SignedChanges::changed_relayed(chain::RelayedPost post, int depth) {
  Rng& rng = mutator_.rng();
  post.path = static_cast<chain::RelayPath>(rng.below(3));
  for (Bytes& item : post.items) {
    if (mutator_.one_in(2)) continue;
    if (auto changed = changed_item(item, depth + 1); changed.ok()) item = std::move(*changed);
  }
  alter_list(post.items);
  while (!post.items.empty() && mutator_.one_in(2) && post.items.size() < 64)
    post.items.push_back(post.items[rng.below(post.items.size())]);
  if (post.items.empty()) return {};
  return chain::encode_item(post);
}

Expected<Bytes> SignedChanges::changed_item(ByteSpan item, int depth) {
  NS_ASSIGN_OR_RETURN(chain::ChainItem read, chain::decode_item(item, pool_.network()));
  struct Visitor {
    SignedChanges& self;
    int depth;
    const Hash256& network() const { return self.pool_.network(); }
    Bytes operator()(chain::Proposal& proposal) {
      proposal.block = self.altered(*proposal.block);
      self.alter(proposal.view);
      if (self.mutator_.one_in(3)) {
        proposal.justification.emplace();
        static_cast<chain::Vote&>(*proposal.justification) = {
            chain::VoteStep::Prepare, proposal.block->header.height, proposal.block->header.previous,
            proposal.view, proposal.block->hash};
        self.alter(*proposal.justification);
      }
      const chain::Vote prepare{chain::VoteStep::Prepare, proposal.block->header.height,
                                proposal.block->header.previous, proposal.view, proposal.block->hash};
      if (self.mutator_.one_in(2))
        proposal.prepare = chain::sign_vote(prepare, self.voter(), self.key_, network()).signature;
      return chain::encode_item(proposal);
    }
    Bytes operator()(chain::SignedVote& vote) {
      self.alter(vote.vote);
      return chain::encode_item(chain::sign_vote(vote.vote, self.voter(), self.key_, network()));
    }
    Bytes operator()(chain::NewView& view) {
      self.alter(view.height);
      self.alter(view.previous);
      self.alter(view.view);
      if (view.lock) self.alter(*view.lock);
      return chain::encode_item(view);
    }
    Bytes operator()(chain::Locked& locked) {
      self.alter(locked.prepares);
      return chain::encode_item(locked);
    }
    Bytes operator()(chain::CertifiedPost& post) {
      if (post.block) {
        post.block = self.altered(*post.block);
        post.height = post.block->block->header.height;
        post.hash = post.block->block->hash;
      } else {
        self.alter(post.height);
        self.alter(post.hash);
      }
      return chain::encode_item(post);
    }
    Bytes operator()(chain::StatementPost& post) {
      self.alter(post.statement);
      return chain::encode_item(post);
    }
    Bytes operator()(chain::EvidencePost& post) { return chain::encode_item(post); }
    Bytes operator()(chain::Heartbeat& heartbeat) {
      heartbeat.node = self.key_.public_key();
      self.alter(heartbeat.tip.height);
      self.alter(heartbeat.tip.hash);
      self.alter(heartbeat.time_ms);
      self.alter(heartbeat.boot);
      self.alter(heartbeat.incarnation);
      chain::sign_heartbeat(heartbeat, self.key_, network());
      return chain::encode_item(heartbeat);
    }
    Bytes operator()(chain::GenesisHello& hello) {
      self.alter(hello.tokenizer);
      hello.founder.node = self.key_.public_key();
      if (auto* joins = std::get_if<chain::Register>(&hello.founder.what)) {
        joins->delegation = self.delegation();
        joins->voucher.reset();
        joins->voucher_signature = {};
      }
      chain::sign_statement(hello.founder, self.key_, network());
      return chain::encode_item(hello);
    }
    Bytes operator()(chain::GenesisProposal& proposal) {
      proposal.block = self.altered(*proposal.block);
      return chain::encode_item(proposal);
    }
    Bytes operator()(chain::GenesisSignature& signature) {
      self.alter(signature.block);
      const chain::Vote vote{chain::VoteStep::Genesis, 0, {}, 0, signature.block};
      signature.node = self.key_.public_key();
      signature.signature = chain::sign_vote(vote, 0, self.key_, network()).signature;
      return chain::encode_item(signature);
    }
    Bytes operator()(chain::SuccessionProposal& proposal) {
      chain::BlockBody body = proposal.block->body;
      if (body.succession) self.alter_list(body.succession->continuing);
      chain::BlockHeader header = proposal.block->header;
      header.body = chain::body_root(body, proposal.block->opening);
      proposal.block = chain::make_block(header, std::move(body), proposal.block->opening, network());
      proposal.signatures.block = proposal.block->hash;
      self.alter(proposal.signatures);
      return chain::encode_item(proposal);
    }
    Bytes operator()(chain::VoucherOffer& offer) {
      offer.held.voucher.issuer = self.key_.public_key();
      self.alter(offer.held.voucher.serial);
      self.alter(offer.held.voucher.expires_ms);
      chain::sign_voucher(offer.held.voucher, self.key_, network());
      return chain::encode_item(offer);
    }
    Bytes operator()(chain::RelayedPost& post) {
      if (depth >= most_depth) return {};
      return self.changed_relayed(std::move(post), depth);
    }
    Bytes operator()(chain::RoundsPost& post) {
      if (post.kind == rounds::contribution_kind)
        post.bytes = self.changed_contribution(post.bytes);
      else
        post.bytes = self.changed_vector(post.bytes);
      return post.bytes.empty() ? Bytes() : chain::encode_item(post);
    }
  };
  Bytes bytes = std::visit(Visitor{*this, depth}, read);
  if (bytes.empty()) return make_error(ErrorCode::Unsupported, "nothing to change");
  return bytes;
}

}  // namespace neuroshard::test
