#include "ui/window/main_window.h"

#include <QCloseEvent>
#include <QHBoxLayout>
#include <QListWidget>
#include <QScrollArea>
#include <QShortcut>
#include <QStackedWidget>
#include <QTimer>
#include <QVBoxLayout>

#include "ui/bridge/bridge.h"
#include "ui/pages/alert_action.h"
#include "ui/theme/theme.h"
#include "ui/widgets/banner.h"
#include "ui/window/header.h"
#include "ui/window/idle_steps.h"
#include "ui/window/status_line.h"
#include "ui/window/veil.h"

namespace neuroshard::ui {
namespace {

constexpr int collapse_below = 900;  // pixels of the window: then the rail shows icons only
constexpr int rail_wide = 176, rail_narrow = 58, rail_item_height = 40;
constexpr std::chrono::seconds ageing_period{1};  // of the age of stale data; idle while it is live
constexpr const char* core_key = "core";
constexpr const char* alert_prefix = "alert_";

}  // namespace

MainWindow::MainWindow(Page::Context context, QWidget* parent)
    : QMainWindow(parent), context_(std::move(context)) {
  context_.navigate = [this](const QString& key, const QString& detail) { open_page(key, detail); };
  setWindowTitle(tr("NeuroShard"));
  setWindowIcon(QIcon(QStringLiteral(":/icons/neuroshard.svg")));
  setMinimumSize(640, 480);
  resize(1280, 800);
  factories_ = page_factories();
  pages_.resize(factories_.size(), nullptr);
  build();
  add_shortcuts();
  connect(&context_.bridge, &Bridge::snapshot_changed, this, &MainWindow::refresh);
  connect(&context_.bridge, &Bridge::attached_changed, this, &MainWindow::refresh);
  ageing_ = new QTimer(this);
  ageing_->setInterval(ageing_period);
  connect(ageing_, &QTimer::timeout, this, &MainWindow::refresh);
  rail_->setCurrentRow(0);
  plan_pages();
}

MainWindow::~MainWindow() = default;

void MainWindow::build() {
  auto* central = new QWidget(this);
  auto* row = new QHBoxLayout(central);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(0);
  build_rail();
  row->addWidget(rail_);
  auto* column = new QVBoxLayout;
  column->setSpacing(0);
  header_ = new Header(context_, central);
  column->addWidget(header_);
  auto* inset = new QVBoxLayout;
  inset->setContentsMargins(16, 0, 16, 0);
  banners_ = new QVBoxLayout;
  banners_->setContentsMargins(0, 8, 0, 0);
  banners_->setSpacing(8);
  inset->addLayout(banners_);
  column->addLayout(inset);
  stack_ = new QStackedWidget(central);
  column->addWidget(stack_, 1);
  veil_ = new Veil(context_.theme, stack_);
  status_ = new StatusLine(context_.theme, central);
  column->addWidget(status_);
  row->addLayout(column, 1);
  setCentralWidget(central);
  for (std::size_t i = 0; i < factories_.size(); ++i) {
    auto* scroll = new QScrollArea(stack_);
    scroll->setObjectName(QStringLiteral("page_scroll"));
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setFocusPolicy(Qt::NoFocus);
    stack_->addWidget(scroll);
  }
  connect(rail_, &QListWidget::currentRowChanged, this, &MainWindow::select);
  connect(header_, &Header::command_failed, this, [this](const QString& what, const QString& why) {
    BannerContent content;
    content.tone = Tone::Warning;
    content.title = tr("“%1” failed").arg(what);
    content.text = why;
    content.can_close = true;
    show_banner(QStringLiteral("command"), content);
  });
}

void MainWindow::build_rail() {
  rail_ = new QListWidget(this);
  rail_->setObjectName(QStringLiteral("rail"));
  rail_->setAccessibleName(tr("Pages"));
  rail_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  rail_->setIconSize({22, 22});
  rail_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  for (const PageFactory& factory : factories_) {
    auto* item = new QListWidgetItem(context_.theme.icon(factory.icon), factory.title, rail_);
    item->setSizeHint({0, rail_item_height});
    item->setToolTip(item->text());
  }
}

void MainWindow::add_shortcuts() {
  for (int i = 0; i < rail_->count() && i < 10; ++i) {
    auto* shortcut =
        new QShortcut(QKeySequence(Qt::CTRL | static_cast<Qt::Key>(Qt::Key_0 + (i + 1) % 10)), this);
    connect(shortcut, &QShortcut::activated, this, [this, i] { rail_->setCurrentRow(i); });
    QListWidgetItem* item = rail_->item(i);
    item->setToolTip(tr("%1 (%2)").arg(item->text(), shortcut->key().toString(QKeySequence::NativeText)));
  }
}

QMenu* MainWindow::menu() const {
  return header_->menu();
}

QStringList MainWindow::page_keys() const {
  QStringList keys;
  for (const PageFactory& factory : factories_) keys << factory.key;
  return keys;
}

QString MainWindow::current_page() const {
  return current_ < 0 ? QString() : factories_[static_cast<std::size_t>(current_)].key;
}

Page* MainWindow::build_page(int row) {
  Page*& page = pages_[static_cast<std::size_t>(row)];
  if (page != nullptr) return page;
  // In its place from the beginning: with a new parent, all of its parts would be styled again.
  page = factories_[static_cast<std::size_t>(row)].make(
      context_, qobject_cast<QScrollArea*>(stack_->widget(row))->viewport());
  page->setObjectName(factories_[static_cast<std::size_t>(row)].key);
  return page;
}

Page* MainWindow::make_page(int row) {
  Page* page = build_page(row);
  page->sections().make_all();
  auto* scroll = qobject_cast<QScrollArea*>(stack_->widget(row));
  if (scroll->widget() == nullptr) scroll->setWidget(page);  // this measures it
  return page;
}

// A page costs more than a click may take on a slow machine, so all are made before they are opened, in
// pieces.
void MainWindow::plan_pages() {
  std::vector<std::function<bool()>> steps;
  for (int row = 0; row < static_cast<int>(pages_.size()); ++row)
    if (row != current_) steps.emplace_back([this, row] { return prepare_page(row); });
  page_making_ = new IdleSteps(std::move(steps), this);
}

// One piece of it; false: that was the last.
bool MainWindow::prepare_page(int row) {
  Page* page = pages_[static_cast<std::size_t>(row)];
  if (page == nullptr) {
    build_page(row);
    return true;
  }
  if (page->sections().make_next()) return true;
  if (qobject_cast<QScrollArea*>(stack_->widget(row))->widget() == nullptr) {
    make_page(row);
    return true;
  }
  if (row != current_) page->prepare();
  return false;
}

bool MainWindow::pages_made() const {
  return page_making_->done();
}

Page* MainWindow::page(const QString& key) const {
  const auto row = static_cast<int>(page_keys().indexOf(key));
  return row < 0 ? nullptr : const_cast<MainWindow*>(this)->make_page(row);
}

void MainWindow::open_page(const QString& key, const QString& detail) {
  const auto row = static_cast<int>(page_keys().indexOf(key));
  if (row < 0) return;
  rail_->setCurrentRow(row);
  if (!detail.isEmpty()) make_page(row)->open_detail(detail);
}

void MainWindow::select(int row) {
  if (row < 0 || row == current_) return;
  if (current_ >= 0 && isVisible()) pages_[static_cast<std::size_t>(current_)]->hidden();
  current_ = row;
  Page* page = make_page(row);
  stack_->setCurrentIndex(row);
  header_->set_title(page->title());
  if (isVisible()) page->shown();
  refresh();
  Q_EMIT page_opened(current_page());
}

void MainWindow::refresh() {
  if (!isVisible()) return;  // a hidden window draws nothing
  const auto snapshot = context_.bridge.snapshot();
  const bool attached = context_.bridge.attached();
  header_->refresh(snapshot.get(), attached);
  status_->refresh(snapshot.get(), attached, context_.bridge.age());
  if (attached == ageing_->isActive()) attached ? ageing_->stop() : ageing_->start();
  show_core(attached);
  if (snapshot == nullptr) return;
  show_alerts(*snapshot);
  if (current_ >= 0) pages_[static_cast<std::size_t>(current_)]->refresh(*snapshot);
}

// The last values of a lost core stay: they are dimmed and marked as old.
void MainWindow::show_core(bool attached) {
  const bool stale = !attached && context_.bridge.snapshot() != nullptr;
  if (stale == !veil_->isHidden()) return;
  veil_->setVisible(stale);
  if (!stale) {
    clear_banner(QString::fromLatin1(core_key));
    return;
  }
  veil_->raise();
  if (shown_banners_.count(QString::fromLatin1(core_key)) != 0) return;  // the application knows more
  BannerContent content;
  content.tone = Tone::Danger;
  content.title = tr("The core is not running");
  content.text = tr("Training has stopped. This window shows the last known values. Saved data is safe.");
  show_banner(QString::fromLatin1(core_key), content);
}

// Alerts that cannot wait stand over every page; the others are on the overview.
void MainWindow::show_alerts(const node::Snapshot& snapshot) {
  QStringList present;
  for (const node::Alert& alert : snapshot.alerts) {
    if (alert.severity != node::Severity::Critical) continue;
    const QString key = QString::fromLatin1(alert_prefix) + QString::fromStdString(alert.key);
    const QString message = QString::fromStdString(alert.message);
    present << key;
    const auto closed = closed_alerts_.find(key);
    if (closed != closed_alerts_.end() && closed->second == message) continue;
    const auto shown = shown_banners_.find(key);
    if (shown != shown_banners_.end() && shown->second->content().text == message) continue;
    BannerContent content;
    content.tone = Tone::Danger;
    content.title = tr("NeuroShard needs attention");
    content.text = message;
    content.can_close = true;
    if (const AlertAction action = alert_action(QString::fromStdString(alert.key)); !action.page.isEmpty())
      content.actions.push_back(
          {action.text, [this, action] { open_page(action.page, action.detail); }, false});
    show_banner(key, content);
  }
  QStringList over;
  for (const auto& [key, banner] : shown_banners_)
    if (key.startsWith(QLatin1String(alert_prefix)) && !present.contains(key)) over << key;
  for (const QString& key : over) clear_banner(key);
  for (auto at = closed_alerts_.begin(); at != closed_alerts_.end();)
    at = present.contains(at->first) ? std::next(at) : closed_alerts_.erase(at);
}

void MainWindow::show_banner(const QString& key, const BannerContent& content) {
  Banner*& banner = shown_banners_[key];
  if (banner == nullptr) {
    banner = new Banner(context_.theme, centralWidget());
    banner->setObjectName(QStringLiteral("banner_") + key);
    const auto put_away = [this, key] {
      std::function<void()> then;
      if (const auto found = shown_banners_.find(key); found != shown_banners_.end()) {
        closed_alerts_[key] = found->second->content().text;
        then = found->second->content().on_close;
      }
      clear_banner(key);
      if (then) then();
    };
    connect(banner, &Banner::closed, this, put_away, Qt::QueuedConnection);
  }
  banner->set_content(content);
  banners_->removeWidget(banner);
  int at = 0;
  while (at < banners_->count()) {
    const auto* other = qobject_cast<Banner*>(banners_->itemAt(at)->widget());
    if (other == nullptr || other->content().tone < content.tone) break;
    ++at;
  }
  banners_->insertWidget(at, banner);
}

void MainWindow::clear_banner(const QString& key) {
  const auto found = shown_banners_.find(key);
  if (found == shown_banners_.end()) return;
  found->second->hide();
  found->second->deleteLater();
  shown_banners_.erase(found);
}

void MainWindow::update_rail() {
  const bool narrow = width() < collapse_below;
  rail_->setFixedWidth(narrow ? rail_narrow : rail_wide);
  header_->set_narrow(narrow);
  for (int i = 0; i < rail_->count(); ++i) {
    QListWidgetItem* item = rail_->item(i);
    const QString& title = factories_[static_cast<std::size_t>(i)].title;
    item->setText(narrow ? QString() : title);
    item->setData(Qt::AccessibleTextRole, title);
  }
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (may_close && !may_close()) {
    event->ignore();
    return;
  }
  event->accept();
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  update_rail();
}

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  if (event->spontaneous()) return;
  update_rail();
  if (current_ >= 0) pages_[static_cast<std::size_t>(current_)]->shown();
  refresh();
  page_making_->start();
}

void MainWindow::hideEvent(QHideEvent* event) {
  QMainWindow::hideEvent(event);
  if (event->spontaneous()) return;
  ageing_->stop();
  page_making_->stop();
  if (current_ >= 0) pages_[static_cast<std::size_t>(current_)]->hidden();
}

}  // namespace neuroshard::ui
