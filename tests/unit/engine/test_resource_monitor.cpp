// The resource monitor measures the data directory once a minute, also after the reading thread had no room.
#include <QtTest>

#include <future>
#include <utility>

#include "core/engine/detail/command_queue.h"
#include "core/engine/detail/resource_monitor.h"
#include "tests/support/pump_executor.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/training_fixture.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::engine::detail;  // NOLINT

namespace {

// The core executor of the test, which decides when a minute is over.
class CoreExecutor final : public Executor {
 public:
  bool post(Task task) override { return inner_.post(std::move(task)); }
  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override {
    if (delay < std::chrono::seconds(60)) return inner_.post_after(delay, std::move(task));
    minute = std::move(task);
    return std::make_unique<TimerHandle>();
  }
  bool on_thread() const override { return inner_.on_thread(); }
  bool run_until(const std::function<bool()>& condition) { return inner_.run_until(condition); }

  Task minute;

 private:
  testing::PumpExecutor inner_;
};

}  // namespace

class TestResourceMonitor : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_full_queue_delays_the_next_measurement() {
    testing::TrainingFixture fixture;
    const auto directory = fixture.open("d");
    QVERIFY(directory.ok());
    CoreExecutor core;
    const auto arrivals = std::make_shared<net::Mailbox>(core);
    JobScheduler jobs(*arrivals);
    SnapshotPublisher publisher(fixture.clock(), {});
    CommandQueue commands(core, *arrivals, jobs, publisher);
    DiskReader reader(core, commands);
    const engine::EngineServices services{fixture.files(), fixture.clock(), fixture.logger()};
    engine::EngineOptions options;
    const EngineContext context{**directory, services,  options, nullptr, core,
                                *arrivals,   publisher, jobs,    commands};
    ResourceMonitor monitor(context, reader);
    const std::uint64_t& measured = publisher.draft().resources.directory_bytes;
    monitor.look();
    QVERIFY(core.run_until([&] { return core.minute != nullptr; }));
    const std::uint64_t before = measured;
    QVERIFY(before > 0);

    // The reading thread is busy, and its queue has no room.
    std::promise<void> begun, go_on;
    const std::shared_future<void> until = go_on.get_future().share();
    QVERIFY(reader
                .read([&begun, until] {
                  begun.set_value();
                  until.wait();
                })
                .ok());
    begun.get_future().wait();
    while (reader.read([] {}).ok()) continue;
    testing::write_text(fixture.path("d/more"), std::string(1000, 'x'));
    std::exchange(core.minute, nullptr)();
    monitor.look();
    QCOMPARE(measured, before);

    go_on.set_value();
    QVERIFY(core.run_until([&] {
      monitor.look();
      return measured >= before + 1000;
    }));
    reader.stop();
  }
};

NS_TEST(TestResourceMonitor)
#include "test_resource_monitor.moc"
