// The records of a registry as bytes: each comes back as it was, has no second form, and takes at least the bytes by
// which a reader bounds their number.
#include <QtTest>
#include <algorithm>

#include "core/chain/detail/registry_records.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"

using namespace neuroshard;         // NOLINT
using namespace neuroshard::chain;  // NOLINT

namespace {

template <class Record, class Read>
bool comes_back(const Record& record, Read read) {
  Bytes bytes;
  append(bytes, record);
  ByteReader in(bytes);
  const Record again = read(in);
  return in.at_end() && again == record;
}

template <class Record>
std::size_t size_of(const Record& record) {
  Bytes bytes;
  append(bytes, record);
  return bytes.size();
}

MemberRecord plain_member() {
  MemberRecord member;
  member.number = 3;
  member.wallet = 2;
  member.key = test::key_numbered(5).public_key();
  member.id = crypto::node_id(member.key);
  member.presence = Presence::Dormant;
  member.presence_height = 40;
  member.dormant_ms = 41;
  member.registered_height = 4;
  member.contributions = 6;
  member.last_round = 7;
  member.beacon = {Hash256{8}, 9, 10};
  member.revealed = Hash256{11};
  member.revealed_round = 12;
  return member;
}

// With every optional part.
MemberRecord full_member() {
  MemberRecord member = plain_member();
  member.next_beacon = BeaconCommitment{Hash256{13}, 14, 15};
  member.rows = RowSet::of({1, 9});
  member.follows_plan = true;
  member.moved_height = 16;
  member.memory_tiers = 17;
  member.offered_height = 18;
  member.speed = 19;
  return member;
}

// Whether a member can be read whose encoding has this value in its last bytes.
bool is_readable_ending_in(const MemberRecord& member, std::size_t bytes_at_end, std::uint8_t value) {
  Bytes bytes;
  append(bytes, member);
  std::fill(bytes.end() - static_cast<std::ptrdiff_t>(bytes_at_end), bytes.end(), value);
  ByteReader in(bytes);
  read_member(in);
  return in.at_end();
}

}  // namespace

class TestRegistryRecords : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void records_come_back();
  void members_come_back_with_and_without_each_part();
  void a_part_without_a_value_has_no_bytes();
  void an_unknown_presence_is_refused();
  void a_closed_round_comes_back();
  void no_record_is_shorter_than_its_bound();
};

void TestRegistryRecords::records_come_back() {
  RowRecord row{Hash256{1}, 2, {3, 4, 5, 6, 7, 8, 9, 10}};
  QVERIFY(comes_back(row, read_row));
  WalletRecord wallet;
  wallet.number = 1;
  wallet.key = test::key_numbered(6).public_key();
  wallet.vouched = true;
  wallet.expelled = true;
  wallet.admitted_height = 2;
  wallet.counted_tokens = 3;
  wallet.qualifying = 4;
  wallet.last_qualifying = 5;
  wallet.last_voucher_round = 6;
  wallet.highest_serial = 7;
  wallet.used_serials = 8;
  QVERIFY(comes_back(wallet, read_wallet));
  QVERIFY(comes_back(RevocationRecord{Hash256{1}, Hash256{2}, 3}, read_revocation));
  QVERIFY(
      comes_back(OpenRow{1, 2, Hash256{3}, 4, Hash256{5}, 6, 7, Hash256{8}, 9, {12, 10, 11}}, read_open_row));
  QVERIFY(comes_back(StrikeRecord{1, 2, Hash256{3}}, read_strike));
  SizeRecord size;
  size.size = 2;
  size.next = 3;
  size.results = 1;
  QVERIFY(comes_back(size, read_size));
}

void TestRegistryRecords::members_come_back_with_and_without_each_part() {
  QVERIFY(comes_back(plain_member(), read_member));
  QVERIFY(comes_back(full_member(), read_member));
  const MemberRecord plain = plain_member(), full = full_member();
  // Of rows that are not all of them: the plan, and a move. Of an offer: the speed.
  MemberRecord next_beacon = plain, rows = plain, planned, moved, offers = plain, fast;
  next_beacon.next_beacon = full.next_beacon;
  rows.rows = full.rows;
  planned = moved = rows;
  planned.follows_plan = true;
  moved.moved_height = full.moved_height;
  offers.memory_tiers = full.memory_tiers;
  offers.offered_height = full.offered_height;
  fast = offers;
  fast.speed = full.speed;
  for (const MemberRecord& member : {next_beacon, rows, planned, moved, offers, fast}) {
    QVERIFY(comes_back(member, read_member));
    QVERIFY(size_of(member) > size_of(plain));
  }
}

// Else two encodings, and two roots, would mean the same.
void TestRegistryRecords::a_part_without_a_value_has_no_bytes() {
  MemberRecord member = plain_member();
  member.rows = RowSet::of({1});
  member.moved_height = 16;
  QVERIFY(is_readable_ending_in(member, 8, 1));
  QVERIFY(!is_readable_ending_in(member, 8, 0));
  member = plain_member();
  member.memory_tiers = 17;
  member.offered_height = 18;
  QVERIFY(is_readable_ending_in(member, 8, 1));
  QVERIFY(!is_readable_ending_in(member, 8, 0));
  member.speed = 19;
  QVERIFY(is_readable_ending_in(member, 4, 1));
  QVERIFY(!is_readable_ending_in(member, 4, 0));
}

void TestRegistryRecords::an_unknown_presence_is_refused() {
  Bytes bytes;
  append(bytes, plain_member());
  const std::size_t presence = 4 + 4 + 32;
  QCOMPARE(bytes[presence], static_cast<std::uint8_t>(Presence::Dormant));
  for (const std::uint8_t other : {0, 3, 255}) {
    bytes[presence] = other;
    ByteReader in(bytes);
    read_member(in);
    QVERIFY(!in.good());
  }
}

void TestRegistryRecords::a_closed_round_comes_back() {
  ClosedRound closed;
  closed.height = 5;
  closed.contributions = {{1, 500, Hash256{2}, {}, Hash256{3}, {}}, {4, 600, Hash256{5}, {}, Hash256{6}, {}}};
  closed.contributors = {{1, 4}, {}};
  for (const std::optional<ClosedRound>& round : {std::optional<ClosedRound>(), std::optional(closed)}) {
    Bytes bytes;
    append_closed(bytes, round);
    ByteReader in(bytes);
    QVERIFY(read_closed(in) == round);
    QVERIFY(in.at_end());
  }
}

void TestRegistryRecords::no_record_is_shorter_than_its_bound() {
  QCOMPARE(size_of(RowRecord{}), row_bytes);
  QCOMPARE(size_of(WalletRecord{}), wallet_bytes);
  QCOMPARE(size_of(plain_member()), least_member_bytes);
  QCOMPARE(size_of(RevocationRecord{}), revocation_bytes);
  QCOMPARE(size_of(OpenRow{}), least_open_row_bytes);
  QCOMPARE(size_of(StrikeRecord{}), strike_bytes);
}

NS_TEST(TestRegistryRecords)
#include "test_registry_records.moc"
