// The messages of the table's members, as bytes. Readers check every length; a message of another length than
// it says is Corrupt. Contacts with addresses that a stranger must not make nodes dial are dropped.
//
//   request   version u8 = 1 · port u16 (where the sender answers; 0: a client) · body
//     ping        –                       answer: the endpoint at which the sender is seen (18 bytes)
//     find node   target 32               answer: contacts
//     find value  key 32                  answer: u8 records, the records, contacts
//     store       one record              answer: empty
//   contacts  u8 count ≤ 20, then each: id 32 · address 16 · port u16
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/dht/record.h"
#include "core/net/peer_caller.h"

namespace neuroshard::dht {

inline constexpr std::size_t max_contacts = 20;  // of one answer
inline constexpr std::size_t max_answer_records =
    16;  // of one answer; a member with more picks some at random

struct Request {
  std::uint16_t port = 0;
  net::NodeId target{};  // find node: an id; find value: a key
  Record record;         // store
};

Bytes encode_request(net::Method method, const Request& request);
// The record's signature is not checked.
Expected<Request> decode_request(net::Method method, ByteSpan bytes);

struct Found {
  std::vector<Record> records;
  std::vector<net::Contact> contacts;
};

Bytes encode_found(net::Method method, const std::vector<const Record*>& records,
                   const std::vector<net::Contact>& contacts);
// one_lan: private addresses count, too.
Expected<Found> decode_found(net::Method method, ByteSpan bytes, bool one_lan);

Bytes encode_endpoint(const platform::Endpoint& endpoint);
Expected<platform::Endpoint> decode_endpoint(ByteSpan bytes);

}  // namespace neuroshard::dht
