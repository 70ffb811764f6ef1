// A stream within one process keeps the contract of streams between nodes (core/net/peer_channel.h).
#include <QtTest>

#include "core/net/local_stream.h"
#include "tests/support/busy_executor.h"
#include "tests/support/manual_executor.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

struct Ends {
  testing::ManualExecutor executor;
  std::pair<std::shared_ptr<PeerStream>, std::shared_ptr<PeerStream>> ends = make_local_stream(executor);
  std::vector<std::string> heard;  // by the second end
  std::vector<Error> errors;
  int written = 0;

  void write(const std::string& text) {
    ends.first->write(Bytes(text.begin(), text.end()), [this](const Expected<void>& done) {
      if (done.ok())
        ++written;
      else
        errors.push_back(done.error());
    });
  }
  void read() {
    ends.second->read([this](const Expected<std::optional<ByteChain>>& read) {
      if (!read.ok()) return errors.push_back(read.error());
      const Bytes bytes = read->has_value() ? (*read)->bytes() : Bytes{'.'};
      heard.emplace_back(bytes.begin(), bytes.end());
    });
  }
};

}  // namespace

class TestLocalStream : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void messages_come_in_order_and_later() {
    Ends ends;
    ends.write("one");
    QCOMPARE(ends.written, 0);  // never from within the call
    ends.executor.run();
    ends.write("two");
    ends.executor.run();
    for (int i = 0; i < 2; ++i) {
      ends.read();
      ends.executor.run();
    }
    QCOMPARE(ends.heard, (std::vector<std::string>{"one", "two"}));
    ends.ends.first->finish();
    ends.read();
    ends.executor.run();
    QCOMPARE(ends.heard.back(), std::string("."));
    QVERIFY(ends.errors.empty());
  }

  void a_slow_reader_slows_the_writer() {
    Ends ends;
    const std::string large(local_stream_bytes / 2 + 1, 'x');
    ends.write(large);
    ends.executor.run();
    QCOMPARE(ends.written, 1);
    ends.write(large);
    ends.executor.run();
    QCOMPARE(ends.written, 1);
    ends.read();
    ends.executor.run();
    QCOMPARE(ends.written, 2);
  }

  void messages_have_a_size() {
    Ends ends;
    ends.write("");
    ends.executor.run();
    ends.write(std::string(max_message_bytes + 1, 'x'));
    ends.executor.run();
    QCOMPARE(ends.errors.size(), std::size_t{2});
    QCOMPARE(ends.errors[1].code, ErrorCode::InvalidArgument);
  }

  void a_break_reaches_both_ends() {
    Ends ends;
    ends.read();
    ends.ends.first->break_off(make_error(ErrorCode::Busy, "no time"));
    ends.executor.run();
    QCOMPARE(ends.errors.size(), std::size_t{1});
    QCOMPARE(ends.errors[0].message, std::string("no time"));
    ends.write("late");
    ends.executor.run();
    QCOMPARE(ends.errors[1].code, ErrorCode::Cancelled);
  }

  void an_end_that_is_destroyed_breaks_it() {
    Ends ends;
    ends.read();
    ends.ends.first.reset();
    ends.executor.run();
    QCOMPARE(ends.errors.size(), std::size_t{1});
    QCOMPARE(ends.errors[0].code, ErrorCode::Cancelled);
  }

  // An answer waits until the executor has room.
  void a_full_executor_loses_nothing() {
    testing::BusyExecutor executor(1);
    auto [first, second] = make_local_stream(executor);
    int written = 0, read = 0;
    first->write({'a'}, [&](const Expected<void>& done) { written += done.ok() ? 1 : 0; });
    second->read([&](const Expected<std::optional<ByteChain>>& message) { read += message.ok() ? 1 : 0; });
    executor.manual.run();
    QCOMPARE(written, 1);
    QCOMPARE(read, 1);
  }

  // Both have finished, and all was read: then it is over, not broken.
  void an_end_after_both_have_finished() {
    Ends ends;
    ends.ends.first->finish();
    ends.ends.second->finish();
    ends.ends.first.reset();
    ends.read();
    ends.executor.run();
    QCOMPARE(ends.heard.back(), std::string("."));
    QVERIFY(ends.errors.empty());
  }
};

NS_TEST(TestLocalStream)
#include "test_local_stream.moc"
