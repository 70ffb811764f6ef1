#include "ui/pages/experts_page.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QLocale>
#include <QStandardItemModel>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/node/node.h"
#include "ui/bridge/bridge.h"
#include "ui/pages/grid_twin.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/bar_chart.h"
#include "ui/widgets/card.h"
#include "ui/widgets/card_grid.h"
#include "ui/widgets/cell_grid.h"
#include "ui/widgets/chart_style.h"
#include "ui/widgets/export_button.h"
#include "ui/widgets/gauge.h"
#include "ui/widgets/table_view.h"

namespace neuroshard::ui {
namespace {

constexpr int page_margin = 16, column_width = 380;
constexpr int classes = 10;
constexpr double class_width = 0.2, full_heat = 2;  // times an even load

class Words {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::ExpertsPage)
};

std::uint32_t experts_of(const std::vector<node::ExpertLoad>& loads) {
  std::uint32_t experts = 0;
  for (const node::ExpertLoad& load : loads)
    experts = std::max(experts, std::min(load.expert, node::max_experts - 1) + 1);
  return experts;
}

// Other nodes alone know the load of the experts that they hold.
std::vector<node::ExpertLoad> known(const std::vector<node::ExpertLoad>& loads) {
  std::vector<node::ExpertLoad> mine;
  std::copy_if(loads.begin(), loads.end(), std::back_inserter(mine),
               [](const node::ExpertLoad& load) { return load.mine; });
  return mine;
}

QString no_cell() {
  return Words::tr("Select a cell with the mouse or the arrow keys to see its details.");
}

QString no_loads() {
  return Words::tr("The loads appear with the first training step of a model with experts.");
}

QString times(double load) {
  return QLocale().toString(load, 'f', 2);
}

}  // namespace

GridContent load_matrix(const std::vector<node::ExpertLoad>& loads) {
  GridContent content;
  std::uint32_t layers = 0;
  const std::uint32_t experts = experts_of(loads);
  // So that one number far out does not make a huge grid.
  const auto most = static_cast<std::uint32_t>(node::max_slots / std::max(experts, 1u)) + 1;
  for (const node::ExpertLoad& load : loads) layers = std::max(layers, std::min(load.layer, most - 1) + 1);
  for (std::uint32_t expert = 0; expert < experts; ++expert) content.columns << QString::number(expert);
  for (std::uint32_t layer = 0; layer < layers; ++layer) content.rows << Words::tr("Layer %1").arg(layer);
  content.cells.resize(static_cast<std::size_t>(layers) * experts);
  for (const node::ExpertLoad& load : loads) {
    if (load.layer >= layers || load.expert >= experts) continue;
    const double even = load.share * experts;
    GridCell& cell = content.cells[static_cast<std::size_t>(load.layer) * experts + load.expert];
    if (!load.mine) {
      cell.text = Format::dash();
      cell.description = Words::tr("Layer %1, expert %2: held by other nodes, which know its load")
                             .arg(QString::number(load.layer), QString::number(load.expert));
      continue;
    }
    cell.text = times(even);
    cell.heat = std::clamp(even / full_heat, 0.0, 1.0);
    cell.outlined = true;
    cell.description =
        Words::tr(
            "Layer %1, expert %2: %3 of the layer's tokens, %4 times an even load; bias %5; %6 tokens so far")
            .arg(QString::number(load.layer), QString::number(load.expert), Format::percent(load.share),
                 times(even), Format::significant(load.bias, 3),
                 Format::si(static_cast<double>(load.tokens)));
  }
  return content;
}

std::vector<double> load_classes(const std::vector<node::ExpertLoad>& loads) {
  std::vector<double> counts(classes, 0);
  const double experts = experts_of(loads);
  for (const node::ExpertLoad& load : known(loads)) {
    const int at = static_cast<int>(std::floor(load.share * experts / class_width + 1e-9));
    counts[static_cast<std::size_t>(std::clamp(at, 0, classes - 1))] += 1;
  }
  return counts;
}

ExpertsPage::ExpertsPage(const Context& context, QWidget* parent) : Page(context, parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(page_margin, 12, page_margin, page_margin);
  column->setSpacing(12);
  sections().add([this, column] { column->addWidget(make_matrix()); });
  sections().add([this, column] {
    auto* grid = new CardGrid(column_width, this);
    grid->add(make_spread());
    grid->add(make_scarcity());
    column->addWidget(grid);
    column->addStretch(1);
  });
  pause_.setSingleShot(true);
  pause_.setInterval(period);
  connect(&pause_, &QTimer::timeout, this, [this] {
    if (step_ != asked_step_) ask();
  });
}

Card* ExpertsPage::make_scarcity() {
  auto* scarcity = new Card(tr("Scarcity bonus"));
  auto* bonus = new Fact(theme(), tr("Bonus for rare experts"), scarcity);
  bonus->set(Format::dash(), tr("Planned for networks: a node that holds rare experts will earn more. While "
                                "a node trains alone, each expert has one holder."));
  scarcity->body()->addWidget(bonus);
  return scarcity;
}

Card* ExpertsPage::make_matrix() {
  auto* card = new Card(tr("Load of the experts"), this);
  card->set_caption(tr("1.00: an even share of the layer's tokens"));
  QToolButton* twin = make_twin_button(theme(), tr("Load of the experts"), card);
  card->add_control(new ExportButton(
      theme(), tr("Load of the experts"), QStringLiteral("expert-load"), [this] { return table_->csv(); },
      [this] { return picture_of(*matrix_, theme()); }, card));
  auto* picture = new QWidget(card);
  auto* inside = new QVBoxLayout(picture);
  inside->setContentsMargins(0, 0, 0, 0);
  matrix_ = new CellGrid(theme(), tr("Load of the experts"), picture);
  matrix_->setObjectName(QStringLiteral("expert_matrix"));
  detail_ = make_paragraph(no_loads(), "muted", picture);
  inside->addWidget(matrix_);
  inside->addWidget(detail_);
  connect(matrix_, &CellGrid::current_changed, this, [this](int row, int cell) {
    if (row < 0) return detail_->setText(no_cell());
    const GridContent& content = matrix_->content();
    detail_->setText(
        content
            .cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(content.columns.size()) +
                   static_cast<std::size_t>(cell)]
            .description);
  });
  table_ = new TableView(tr("Load of the experts, as a table"), card);
  model_ = new QStandardItemModel(table_);
  model_->setHorizontalHeaderLabels(
      {tr("Layer"), tr("Expert"), tr("Share"), tr("Times even"), tr("Bias"), tr("Tokens"), tr("Nodes")});
  table_->setModel(model_);
  table_->set_file_name(QStringLiteral("expert-load"));
  table_->setMinimumHeight(280);
  add_twin(card, twin, picture, table_);
  return card;
}

Card* ExpertsPage::make_spread() {
  auto* card = new Card(tr("Balance of the load"));
  auto* facts = new QHBoxLayout;
  balance_ = new Fact(theme(), tr("Balance (1 is even)"), card);
  busiest_ = new Fact(theme(), tr("Busiest"), card);
  quietest_ = new Fact(theme(), tr("Quietest"), card);
  for (Fact* fact : {balance_, busiest_, quietest_}) facts->addWidget(fact);
  card->body()->addLayout(facts);
  const QString load = tr("Load, times an even share"), count = tr("Experts");
  histogram_ = new BarChart(theme(), tr("Experts by load"), load, count, card);
  spread_twin_ = make_twin_button(theme(), tr("Experts by load"), card);
  spread_twin_->setObjectName(QStringLiteral("spread_twin"));
  card->add_control(new ExportButton(
      theme(), tr("Experts by load"), QStringLiteral("experts-by-load"), [this] { return histogram_->csv(); },
      [this] { return picture_of(*histogram_, theme()); }, card));
  auto* table = new TableView(tr("Experts by load, as a table"), card);
  table->setObjectName(QStringLiteral("spread_table"));
  classes_ = new QStandardItemModel(table);
  classes_->setHorizontalHeaderLabels({load, count});
  table->setModel(classes_);
  table->set_file_name(QStringLiteral("experts-by-load"));
  table->setMinimumHeight(histogram_->minimumHeight());
  add_twin(card, spread_twin_, histogram_, table);
  card->body()->addStretch(1);
  histogram_->hide();  // until there are loads
  spread_twin_->setEnabled(false);
  return card;
}

void ExpertsPage::shown() {
  shown_ = true;
  ask();
}

void ExpertsPage::hidden() {
  shown_ = false;
  pause_.stop();
}

void ExpertsPage::refresh(const node::Snapshot& snapshot) {
  if (is_another_core(snapshot)) {
    clear_loads();
    pause_.stop();
    asked_step_.reset();
  }
  step_ = snapshot.training.step;
  const auto& last = snapshot.training.last_step;
  balance_->set(last && last->balance > 0 ? times(last->balance) : Format::dash());
  if (step_ != asked_step_ && !pause_.isActive()) ask();
}

void ExpertsPage::ask() {
  if (!shown_ || asking_ || !bridge().attached()) return;
  asking_ = true;
  asked_step_ = step_;
  bridge().query<std::vector<node::ExpertLoad>>(
      this,
      [](node::Node& node, node::Reply<std::vector<node::ExpertLoad>> reply) {
        return node.query_experts(std::move(reply));
      },
      [this](const Expected<std::vector<node::ExpertLoad>>& answer) {
        asking_ = false;
        if (answer.ok()) answer->empty() ? clear_loads() : show_loads(*answer);
        if (shown_) pause_.start();
      });
}

void ExpertsPage::clear_loads() {
  matrix_->set_content({});
  detail_->setText(no_loads());
  model_->setRowCount(0);
  classes_->setRowCount(0);
  histogram_->set_bars({}, {});
  histogram_->hide();
  spread_twin_->setEnabled(false);
  busiest_->set(Format::dash());
  quietest_->set(Format::dash());
}

void ExpertsPage::show_loads(const std::vector<node::ExpertLoad>& loads) {
  if (matrix_->content().rows.isEmpty()) detail_->setText(no_cell());
  matrix_->set_content(load_matrix(loads));
  const double experts = experts_of(loads);
  std::vector<QStringList> rows;
  for (const node::ExpertLoad& load : loads)
    rows.push_back({QString::number(load.layer), QString::number(load.expert),
                    load.mine ? Format::percent(load.share) : Format::dash(),
                    load.mine ? times(load.share * experts) : Format::dash(),
                    load.mine ? Format::significant(load.bias, 3) : Format::dash(),
                    load.mine ? Format::si(static_cast<double>(load.tokens)) : Format::dash(),
                    load.replicas ? Format::integer(*load.replicas) : Format::dash()});
  fill_rows(*model_, rows, 0);
  QStringList names;
  for (int i = 0; i < classes; ++i)
    names << (i + 1 < classes ? QLocale().toString(i * class_width, 'f', 1)
                              : tr("%1+").arg(QLocale().toString(i * class_width, 'f', 1)));
  const std::vector<double> counts = load_classes(loads);
  histogram_->set_bars(names, counts);
  histogram_->setVisible(!spread_twin_->isChecked());
  spread_twin_->setEnabled(true);
  rows.clear();
  for (int i = 0; i < classes; ++i)
    rows.push_back(
        {names[i], Format::integer(static_cast<std::uint64_t>(counts[static_cast<std::size_t>(i)]))});
  fill_rows(*classes_, rows, 0);
  const auto by_share = [](const node::ExpertLoad& a, const node::ExpertLoad& b) {
    return a.share < b.share;
  };
  const std::vector<node::ExpertLoad> mine = known(loads);
  if (mine.empty()) {
    busiest_->set(Format::dash());
    quietest_->set(Format::dash());
    return;
  }
  const auto [least, most] = std::minmax_element(mine.begin(), mine.end(), by_share);
  const auto where = [](const node::ExpertLoad& load) {
    return tr("layer %1, expert %2").arg(load.layer).arg(load.expert);
  };
  busiest_->set(times(most->share * experts), where(*most));
  quietest_->set(times(least->share * experts), where(*least));
}

}  // namespace neuroshard::ui
