// Measures the window against its budgets, beside an empty Qt window:   bench_gui [--json FILE] [--seconds N]
//
// Starts itself for what needs a fresh process: "bench_gui --child empty|window START_NS", which prints the
// time from START_NS to the first painted frame, and its memory.
#include <sys/resource.h>
#include <time.h>

#include <QApplication>
#include <QClipboard>
#include <QElapsedTimer>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QKeyEvent>
#include <QMainWindow>
#include <QPaintEvent>
#include <QProcess>
#include <QTemporaryDir>
#include <QTimer>
#include <algorithm>
#include <cstdio>

#include "tests/bench/gui/load_node.h"
#include "ui/bridge/bridge.h"
#include "ui/models/log_model.h"
#include "ui/models/preferences.h"
#include "ui/pages/log_view.h"
#include "ui/pages/logs_page.h"
#include "ui/theme/theme.h"
#include "ui/window/main_window.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT
using testing::LoadNode;

namespace {

constexpr double window_budget_ms = 1000, switch_budget_ms = 100, event_budget_ms = 16, idle_budget = 0.01,
                 memory_budget_mib = 150;

std::int64_t now_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

double cpu_seconds() {
  return static_cast<double>(now_ns(CLOCK_PROCESS_CPUTIME_ID)) * 1e-9;
}

double memory_mib() {
  QFile file(QStringLiteral("/proc/self/status"));
  if (!file.open(QIODevice::ReadOnly)) return 0;
  for (const QByteArray& line : file.readAll().split('\n'))
    if (line.startsWith("VmRSS:")) return line.mid(6).trimmed().split(' ').front().toDouble() / 1024;
  return 0;
}

struct Events {
  std::vector<double> wall_ms;
  double longest_wall_ms = 0, longest_cpu_ms = 0;
  QString longest;
};

// Times every event that the event loop hands out; what an event sends on in the course of it is part of it.
class TimedApplication final : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override {
    if (!measuring || depth_ > 0) return QApplication::notify(receiver, event);
    const QByteArray name = receiver->metaObject()->className();
    const QEvent::Type type = event->type();
    ++depth_;
    const std::int64_t wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
    const bool result = QApplication::notify(receiver, event);
    const double wall_ms = static_cast<double>(now_ns(CLOCK_MONOTONIC) - wall) * 1e-6;
    const double cpu_ms = static_cast<double>(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) * 1e-6;
    --depth_;
    events.wall_ms.push_back(wall_ms);
    events.longest_wall_ms = std::max(events.longest_wall_ms, wall_ms);
    if (cpu_ms > events.longest_cpu_ms) {
      events.longest_cpu_ms = cpu_ms;
      events.longest = QString::fromLatin1(name) + QStringLiteral(", event %1").arg(type);
    }
    return result;
  }

  bool measuring = false;
  Events events;

 private:
  int depth_ = 0;
};

void run_for(int milliseconds) {
  QEventLoop loop;
  QTimer::singleShot(milliseconds, Qt::PreciseTimer, &loop, &QEventLoop::quit);
  loop.exec();
}

Events measure(TimedApplication& application, int milliseconds) {
  application.events = {};
  application.measuring = true;
  run_for(milliseconds);
  application.measuring = false;
  return application.events;
}

class PaintWatch final : public QObject {
 public:
  explicit PaintWatch(QWidget* widget) { widget->installEventFilter(this); }
  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() == QEvent::Paint) painted = true;
    return false;
  }
  bool painted = false;
};

// A window as the app makes it, with a core at full rate behind it.
struct App {
  App()
      : theme(std::make_unique<DesktopSchemeSource>()),
        preferences(folder.filePath(QStringLiteral("app.ini"))) {
    theme.apply(*qApp);
    node = std::make_shared<LoadNode>();
    bridge.attach(node);
    Page::Context context{bridge, theme, clock};
    context.preferences = &preferences;
    window = std::make_unique<MainWindow>(context);
  }
  ~App() {
    window.reset();
    bridge.attach(nullptr);
  }
  QTemporaryDir folder;
  SystemClock clock;
  Theme theme;
  Preferences preferences;
  std::shared_ptr<LoadNode> node;
  Bridge bridge;
  std::unique_ptr<MainWindow> window;
};

int child(const QByteArray& what, std::int64_t start) {
  std::unique_ptr<App> app;
  std::unique_ptr<QMainWindow> empty;
  QWidget* window = nullptr;
  if (what == "empty") {
    empty = std::make_unique<QMainWindow>();
    empty->resize(1280, 800);
    window = empty.get();
  } else {
    app = std::make_unique<App>();
    window = app->window.get();
  }
  PaintWatch watch(what == "empty" ? window : app->window->centralWidget());
  window->show();
  while (!watch.painted) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  const double ms = static_cast<double>(now_ns(CLOCK_MONOTONIC) - start) * 1e-6;
  do run_for(500);  // and until the start is over: every page is made
  while (app != nullptr && !app->window->pages_made());
  run_for(500);
  const double memory = memory_mib(), cpu = cpu_seconds();
  QElapsedTimer wall;
  wall.start();
  run_for(5000);
  std::printf("%.2f %.2f %.5f\n", ms, memory,
              (cpu_seconds() - cpu) / (static_cast<double>(wall.elapsed()) / 1000));
  return 0;
}

struct ChildResult {
  double window_ms = 0, memory = 0, idle = 0;
};

// The middle of five starts.
ChildResult run_children(const QString& what) {
  std::vector<ChildResult> results;
  for (int i = 0; i < 5; ++i) {
    QProcess process;
    process.setProcessChannelMode(QProcess::ForwardedErrorChannel);
    process.start(QCoreApplication::applicationFilePath(),
                  {QStringLiteral("--child"), what, QString::number(now_ns(CLOCK_MONOTONIC))});
    process.waitForFinished(60'000);
    const auto words = process.readAllStandardOutput().simplified().split(' ');
    if (words.size() == 3) results.push_back({words[0].toDouble(), words[1].toDouble(), words[2].toDouble()});
  }
  if (results.empty()) return {};
  std::sort(results.begin(), results.end(),
            [](const auto& a, const auto& b) { return a.window_ms < b.window_ms; });
  return results[results.size() / 2];
}

class Report {
 public:
  void add(const QString& what, double value, const QString& unit, double budget, const QString& note = {}) {
    const bool bounded = budget > 0;
    const bool kept = !bounded || value <= budget;
    failed_ = failed_ || !kept;
    std::printf("%-44s %10.3f %-4s %s%s%s\n", qPrintable(what), value, qPrintable(unit),
                bounded ? qPrintable(QStringLiteral("budget %1: ").arg(budget)) : "",
                bounded ? (kept ? "kept " : "MISSED ") : "", qPrintable(note));
    rows_.append(QJsonObject{{"what", what},
                             {"value", value},
                             {"unit", unit},
                             {"budget", budget},
                             {"kept", kept},
                             {"note", note}});
  }
  bool failed() const { return failed_; }
  void write(const QString& path) const {
    QFile file(path);
    if (file.open(QIODevice::WriteOnly)) file.write(QJsonDocument(rows_).toJson());
  }

 private:
  QJsonArray rows_;
  bool failed_ = false;
};

double switch_ms(MainWindow& window, const QString& key) {
  QElapsedTimer timer;
  timer.start();
  window.open_page(key);
  PaintWatch watch(window.page(key));
  // One turn at a time: with a time limit, turns would be taken until nothing is left to do.
  while (!watch.painted && timer.elapsed() < 2'000)
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  return static_cast<double>(timer.nsecsElapsed()) * 1e-6;
}

// How long until a page is painted; in brackets the processor time of it, which other programs lengthen less.
class Switches {
 public:
  void visit(App& app, const QString& key) {
    const std::int64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
    const double ms = switch_ms(*app.window, key);
    const double cpu_ms = static_cast<double>(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) * 1e-6;
    longest_ = std::max(longest_, ms);
    all_ += QStringLiteral("%1 %2 (%3)").arg(key).arg(ms, 0, 'f', 0).arg(cpu_ms, 0, 'f', 0);
  }
  void report(Report& report, const QString& what) const {
    report.add(QStringLiteral("page switch, %1, slowest").arg(what), longest_, QStringLiteral("ms"),
               switch_budget_ms, all_.join(QStringLiteral(", ")));
  }

 private:
  double longest_ = 0;
  QStringList all_;
};

void add_events(Report& report, const QString& what, const Events& events) {
  report.add(QStringLiteral("longest event ") + what, events.longest_cpu_ms, QStringLiteral("ms"),
             event_budget_ms,
             QStringLiteral("wall %1 ms, %2 events, %3")
                 .arg(events.longest_wall_ms, 0, 'f', 2)
                 .arg(events.wall_ms.size())
                 .arg(events.longest));
}

// A page that is opened before the window had time to make it: each in a window of its own, at once.
void measure_hasty_visits(Report& report, const QStringList& keys) {
  Switches switches;
  for (const QString& key : keys) {
    if (key == keys.front()) continue;  // open from the start
    App app;
    app.node->start(1000, 0);
    PaintWatch watch(app.window->centralWidget());
    app.window->show();
    while (!watch.painted) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    run_for(100);
    switches.visit(app, key);
    app.node->stop();
  }
  switches.report(report, QStringLiteral("first visit, at once after the start"));
}

void measure_pages(App& app, TimedApplication& application, Report& report, int milliseconds) {
  app.node->start(1000, 0);
  run_for(200);
  application.events = {};
  application.measuring = true;
  while (!app.window->pages_made()) run_for(50);
  run_for(500);
  application.measuring = false;
  add_events(report, QStringLiteral("while pages are made in advance"), application.events);
  const QStringList keys = app.window->page_keys();
  app.window->open_page(keys.back());
  for (const char* visit : {"first visit", "later"}) {
    Switches switches;
    for (const QString& key : keys) {
      switches.visit(app, key);
      run_for(300);
    }
    switches.report(report, QLatin1String(visit));
  }
  for (const QString& key : keys) {
    app.window->open_page(key);
    run_for(500);
    add_events(report, QStringLiteral("at 1000 changes/s: ") + key, measure(application, milliseconds));
  }
  app.node->stop();
}

void measure_log(App& app, TimedApplication& application, Report& report, int milliseconds) {
  app.window->open_page(QStringLiteral("logs"));
  auto* page = qobject_cast<LogsPage*>(app.window->page(QStringLiteral("logs")));
  app.node->start(100, 10'000);
  run_for(6'000);  // until the view is full, so that lines are removed too
  const double cpu = cpu_seconds();
  QElapsedTimer wall;
  wall.start();
  const Events events = measure(application, milliseconds);
  const double seconds = static_cast<double>(wall.elapsed()) / 1000;
  add_events(report, QStringLiteral("at 10,000 log lines/s"), events);
  report.add(QStringLiteral("processor at 10,000 log lines/s"), 100 * (cpu_seconds() - cpu) / seconds,
             QStringLiteral("%"), 0, QStringLiteral("of one core, with the source of the lines"));
  app.node->stop();
  const std::uint64_t written = app.node->log_lines();
  run_for(500);
  const LogModel& model = page->model();
  const std::uint64_t last = model.rowCount() == 0 ? 0 : model.line(model.rowCount() - 1).sequence;
  report.add(QStringLiteral("log lines missing at the end"), static_cast<double>(written - last), {}, 0.5);
  auto* view = page->findChild<LogView*>();
  const QString before = QGuiApplication::clipboard()->text();
  application.events = {};
  application.measuring = true;
  // As the keys do it.
  QCoreApplication::postEvent(
      view, new QKeyEvent(QEvent::KeyPress, Qt::Key_A, Qt::ControlModifier, QStringLiteral("a")));
  QCoreApplication::postEvent(
      view, new QKeyEvent(QEvent::KeyPress, Qt::Key_C, Qt::ControlModifier, QStringLiteral("c")));
  wall.restart();
  while (QGuiApplication::clipboard()->text() == before && wall.elapsed() < 20'000) run_for(20);
  application.measuring = false;
  add_events(report,
             QStringLiteral("while %1 log lines are copied")
                 .arg(QGuiApplication::clipboard()->text().count(u'\n') + 1),
             application.events);
  report.add(QStringLiteral("log lines dropped"), static_cast<double>(model.dropped()), {}, 0.5);
}

}  // namespace

int main(int argc, char** argv) {
  TimedApplication application(argc, argv);
  const QStringList arguments = QCoreApplication::arguments();
  if (arguments.size() == 4 && arguments[1] == QStringLiteral("--child"))
    return child(arguments[2].toUtf8(), arguments[3].toLongLong());
  const auto option = [&arguments](const QString& name, const QString& standard) {
    const qsizetype at = arguments.indexOf(name);
    return at >= 0 && at + 1 < arguments.size() ? arguments[at + 1] : standard;
  };
  const int milliseconds = option(QStringLiteral("--seconds"), QStringLiteral("4")).toInt() * 1000;
  Report report;
  const ChildResult empty = run_children(QStringLiteral("empty")),
                    window = run_children(QStringLiteral("window"));
  report.add(QStringLiteral("window visible, empty Qt window"), empty.window_ms, QStringLiteral("ms"), 0);
  report.add(QStringLiteral("window visible"), window.window_ms, QStringLiteral("ms"), window_budget_ms);
  report.add(QStringLiteral("memory, empty Qt window"), empty.memory, QStringLiteral("MiB"), 0);
  report.add(QStringLiteral("memory after the start, every page made"), window.memory, QStringLiteral("MiB"),
             memory_budget_mib);
  report.add(QStringLiteral("idle processor, empty Qt window"), 100 * empty.idle, QStringLiteral("%"), 0);
  report.add(QStringLiteral("idle processor, core attached"), 100 * window.idle, QStringLiteral("%"),
             100 * idle_budget);
  App app;
  measure_hasty_visits(report, app.window->page_keys());
  app.window->show();
  measure_pages(app, application, report, milliseconds);
  measure_log(app, application, report, milliseconds);
  report.add(QStringLiteral("memory with every page and a full log"), memory_mib(), QStringLiteral("MiB"),
             memory_budget_mib);
  const QString json = option(QStringLiteral("--json"), {});
  if (!json.isEmpty()) report.write(json);
  return report.failed() ? 1 : 0;
}
