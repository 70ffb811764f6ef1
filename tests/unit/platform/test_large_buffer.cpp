// Large buffers: zeros of the size asked for, owned by one object at a time; and a thread's processor time.
#include <QtTest>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>

#include "core/platform/process/large_buffer.h"
#include "core/platform/sensor/cpu.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using platform::LargeBuffer;

class TestLargeBuffer : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void zeros_of_that_size() {
    const std::size_t bytes = (std::size_t{5} << 20) + 3;
    const LargeBuffer buffer = LargeBuffer::allocate(bytes);
    QVERIFY(!buffer.empty());
    QCOMPARE(buffer.size(), bytes);
    QCOMPARE(reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096, std::uintptr_t{0});
    buffer.touch();
    QVERIFY(std::all_of(buffer.data(), buffer.data() + bytes, [](std::uint8_t b) { return b == 0; }));
    buffer.data()[bytes - 1] = 7;
    QCOMPARE(buffer.data()[bytes - 1], std::uint8_t{7});
  }

  void moved_not_copied() {
    LargeBuffer first = LargeBuffer::allocate(8192);
    first.data()[100] = 42;
    const std::uint8_t* const where = first.data();
    LargeBuffer second = std::move(first);
    QVERIFY(second.data() == where && second.data()[100] == 42);
    LargeBuffer third = LargeBuffer::allocate(4096);
    third = std::move(second);
    QVERIFY(third.data() == where && third.size() == 8192);
    third = {};
    QVERIFY(third.empty() && third.size() == 0);
  }

  void more_than_there_is_is_refused() {
    QVERIFY(LargeBuffer::allocate(std::numeric_limits<std::size_t>::max() / 2).empty());
    QVERIFY(LargeBuffer::allocate(0).empty());
    const LargeBuffer nothing;
    nothing.touch();
    QVERIFY(nothing.empty());
  }

  // Of this thread: it grows with the thread's work, and not with another's.
  void processor_time_counts_own_work() {
    const Duration begin = platform::thread_processor_time();
    const auto work = [](Duration most) {
      const Duration started = platform::thread_processor_time();
      while (platform::thread_processor_time() - started < most) {
      }
    };
    work(std::chrono::milliseconds(2));
    const Duration before = platform::thread_processor_time();
    QVERIFY(before - begin >= std::chrono::milliseconds(2));
    std::thread other(work, std::chrono::milliseconds(50));
    other.join();
    QVERIFY(platform::thread_processor_time() - before < std::chrono::milliseconds(50));
  }
};

NS_TEST(TestLargeBuffer)
#include "test_large_buffer.moc"
