// One lookup against members that answer what a test wants, each as it is called.
#include <QtTest>

#include "core/dht/lookup.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::dht;
using net::Contact;
using net::NodeId;

namespace {

NodeId id(std::uint8_t number) {
  NodeId made{};
  made[0] = number;
  return made;
}

// Each address in a group of its own.
platform::Endpoint at(std::uint8_t number) {
  return {platform::IpAddress::v4(20, number, 1, 1), 9000};
}

Record record(std::uint64_t sequence) {
  return {"/layers/1", {}, sequence, WallTime{std::chrono::hours(1)}, Bytes(8, 1), {}};
}

}  // namespace

class TestLookup : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_wrong_address_does_not_hide_a_member();
  void a_member_that_answered_is_known_by_its_own_address();
  void a_member_answers_one_path_only();

 private:
  // Answers of the members by their true addresses. A call to another address fails.
  LookupResult look_up(net::Method method, std::vector<Contact> first,
                       const std::map<NodeId, std::pair<platform::Endpoint, Found>>& members);
  std::vector<Contact> called_;
};

LookupResult TestLookup::look_up(net::Method method, std::vector<Contact> first,
                                 const std::map<NodeId, std::pair<platform::Endpoint, Found>>& members) {
  called_.clear();
  std::vector<std::function<void()>> waiting;
  LookupResult result;
  bool ended = false;
  const auto ask = [&](const Contact& contact, net::CallDone done) {
    called_.push_back(contact);
    const auto member = members.find(contact.id);
    if (member == members.end() || member->second.first != contact.endpoint) {
      waiting.push_back(
          [done = std::move(done)] { done(make_error(ErrorCode::Unavailable, "another key answered")); });
      return;
    }
    std::vector<const Record*> records;
    for (const Record& one : member->second.second.records) records.push_back(&one);
    waiting.push_back(
        [done = std::move(done), bytes = encode_found(method, records, member->second.second.contacts)] {
          done(bytes);
        });
  };
  LookupOptions options;
  options.quorum = 2;
  const auto lookup = std::make_shared<Lookup>(id(0), id(1), method, /*one_lan=*/false, options,
                                               std::move(first), std::vector<Contact>(), id(200),
                                               Lookup::Services{ask, [](const Record&) { return true; },
                                                                [&](LookupResult found) {
                                                                  result = std::move(found);
                                                                  ended = true;
                                                                }});
  lookup->start();
  while (!waiting.empty()) {
    const auto next = std::move(waiting.front());
    waiting.erase(waiting.begin());
    next();
  }
  if (!ended) qFatal("the lookup did not end");
  return result;
}

// The first member to be called names the only holder at an address where another node answers.
void TestLookup::a_wrong_address_does_not_hide_a_member() {
  const Contact false_member{id(8), at(8)}, honest{id(16), at(16)}, holder{id(1), at(1)};
  Found lie, truth, value;
  lie.contacts = {{holder.id, at(99)}};
  truth.contacts = {holder};
  value.records = {record(5)};
  const auto result = look_up(net::Method::DhtFindValue, {false_member, honest},
                              {{false_member.id, {false_member.endpoint, lie}},
                               {honest.id, {honest.endpoint, truth}},
                               {holder.id, {holder.endpoint, value}}});
  QCOMPARE(result.records.size(), 1u);
  QCOMPARE(result.records.front().sequence, 5u);
  QVERIFY(std::find(called_.begin(), called_.end(), Contact{holder.id, at(99)}) != called_.end());
}

void TestLookup::a_member_that_answered_is_known_by_its_own_address() {
  const Contact false_member{id(8), at(8)}, honest{id(16), at(16)}, member{id(3), at(3)};
  Found lie, truth;
  lie.contacts = {{member.id, at(98)}, {member.id, at(99)}};
  truth.contacts = {member};
  const auto result = look_up(net::Method::DhtFindNode, {honest, false_member},
                              {{false_member.id, {false_member.endpoint, lie}},
                               {honest.id, {honest.endpoint, truth}},
                               {member.id, {member.endpoint, {}}}});
  std::size_t known = 0;
  for (const KnownContact& one : result.known) {
    if (one.contact.id != member.id) continue;
    ++known;
    QCOMPARE(one.contact.endpoint, member.endpoint);
  }
  QCOMPARE(known, 1u);
}

void TestLookup::a_member_answers_one_path_only() {
  const Contact one{id(8), at(8)}, other{id(16), at(16)}, member{id(3), at(3)};
  Found both;
  both.contacts = {member, {member.id, at(97)}};
  const auto result = look_up(net::Method::DhtFindNode, {one, other},
                              {{one.id, {one.endpoint, both}},
                               {other.id, {other.endpoint, both}},
                               {member.id, {member.endpoint, {}}}});
  QCOMPARE(std::count(called_.begin(), called_.end(), member), 1);
  QCOMPARE(std::count_if(result.answered.begin(), result.answered.end(),
                         [&](const Contact& contact) { return contact.id == member.id; }),
           1);
}

NS_TEST(TestLookup)
#include "test_lookup.moc"
