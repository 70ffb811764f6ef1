#include "ui/pages/rounds_cards.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QStandardItemModel>
#include <QVBoxLayout>

#include "ui/pages/chain_card.h"
#include "ui/pages/grid_twin.h"
#include "ui/pages/sections.h"
#include "ui/text/format.h"
#include "ui/text/rounds_text.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/card_grid.h"
#include "ui/widgets/gauge.h"
#include "ui/widgets/plot_panel.h"
#include "ui/widgets/plot_widget.h"
#include "ui/widgets/table_view.h"

namespace neuroshard::ui {
namespace {

constexpr int column_width = 330, table_height = 240, plot_height = 220, icon_side = 20, id_characters = 12;

QString text(const std::string& from) {
  return QString::fromStdString(from);
}

QString short_id(const std::string& id) {
  return text(id).left(id_characters);
}

void show_line(QLabel* label, const QString& line) {
  label->setText(line);
  label->setVisible(!line.isEmpty());
}

QLabel* paragraph(const char* name, const char* role, QVBoxLayout* into) {
  QLabel* label = make_paragraph({}, role);
  label->setObjectName(QLatin1String(name));
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  label->hide();
  into->addWidget(label);
  return label;
}

// Two facts beside each other.
void add_facts(QVBoxLayout* into, QWidget* first, QWidget* second) {
  auto* row = new QHBoxLayout;
  row->addWidget(first, 1);
  row->addWidget(second, 1);
  into->addLayout(row);
}

// Alerts about rounds that do not count; such an alert leads to this card. The caution shows the trouble
// itself.
QString alerts_of(const node::Snapshot& snapshot) {
  QStringList messages;
  for (const node::Alert& alert : snapshot.alerts)
    if (alert.key.rfind("rounds_", 0) == 0 && alert.key != "rounds_trouble") messages << text(alert.message);
  return messages.join(QStringLiteral("\n\n"));
}

// "1a2b3c4d5e6f: late …; this node: left out …".
QString exceptions(const node::RoundEntry& round) {
  QStringList notes;
  for (const node::RoundMemberEntry& member : round.who) {
    if (member.note.empty()) continue;
    notes << RoundsCards::tr("%1: %2").arg(member.mine ? RoundsCards::tr("this node") : short_id(member.id),
                                           text(member.note));
  }
  return notes.isEmpty() ? RoundsCards::tr("nobody") : notes.join(RoundsCards::tr("; "));
}

QString rule_of(const node::RoundEntry& round) {
  if (!round.fetched) return text(round.rule);
  return round.rule.empty() ? RoundsCards::tr("fetched from others")
                            : RoundsCards::tr("%1: fetched from others").arg(text(round.rule));
}

// "this node 50 %, 1a2b3c4d5e6f 50 % (candidate)".
QString contributors(const node::RoundEntry& round) {
  QStringList names;
  for (const node::RoundMemberEntry& member : round.who) {
    if (!member.contributed) continue;
    QString name = member.mine ? RoundsCards::tr("this node") : short_id(member.id);
    if (member.share) name += QLatin1Char(' ') + Format::percent(*member.share);
    if (member.standing == "candidate") name = RoundsCards::tr("%1 (candidate)").arg(name);
    names << name;
  }
  return names.join(QStringLiteral(", "));
}

TableView* make_table(const QString& name, const char* object, const QStringList& headings,
                      QStandardItemModel*& model, const QString& file, const QString& empty) {
  auto* table = new TableView(name);
  table->setObjectName(QLatin1String(object));
  model = new QStandardItemModel(table);
  model->setHorizontalHeaderLabels(headings);
  table->setModel(model);
  table->set_file_name(file);
  table->set_empty_text(empty);
  table->setMinimumHeight(table_height);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  return table;
}

}  // namespace

RoundsCards::RoundsCards(const Theme& theme, Bridge& bridge, Sections& sections, QWidget* parent)
    : QWidget(parent), theme_(theme), bridge_(bridge) {
  setObjectName(QStringLiteral("rounds_cards"));
  hide();
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(12);
  auto* grid = new CardGrid(column_width, this);
  column->addWidget(grid);
  sections.add([this, grid] { grid->add(make_round()); });
  sections.add([this, grid] { grid->add(make_network()); });
  sections.add([this, grid] { grid->add(make_chain()); });
  sections.add([this, grid] { grid->add(make_losses()); });
  sections.add([this, column] { column->addWidget(make_rounds()); });
  sections.add([this, column] { column->addWidget(make_nodes()); });
  connect(&theme, &Theme::changed, this, [this] { shown_icon_.clear(); });
}

ChainCard* RoundsCards::make_chain() {
  chain_ = new ChainCard(theme_, bridge_, this);
  connect(chain_, &ChainCard::decided, this, &RoundsCards::continuation_decided);
  return chain_;
}

void RoundsCards::show_continuation(const QString& outcome) {
  chain_->show_outcome(outcome);
}

PlotPanel* RoundsCards::make_losses() {
  losses_ = new PlotPanel(theme_, tr("Network loss"), QStringLiteral("network-loss"));
  losses_->setObjectName(QStringLiteral("rounds_losses"));
  losses_->set_caption(tr("median of the members, by round"));
  losses_->setMinimumHeight(plot_height);
  losses_->set_options({.format_y = [](double value) { return Format::loss(value); }, .x = PlotX::Round});
  losses_->plot()->set_empty_text(tr("The curve begins with the first round that this node sees."));
  return losses_;
}

Card* RoundsCards::make_round() {
  auto* card = new Card(tr("Outer rounds"));
  phase_ = paragraph("rounds_phase", "strong", card->body());
  progress_ = new QProgressBar(card);
  progress_->setObjectName(QStringLiteral("rounds_progress"));
  progress_->setAccessibleName(tr("This node's part of the round"));
  progress_->setTextVisible(false);
  progress_->setRange(0, 1000);
  card->body()->addWidget(progress_);
  alerts_ = paragraph("rounds_alerts", "warning", card->body());
  caution_ = paragraph("rounds_caution", "warning", card->body());
  left_out_ = paragraph("rounds_left_out", "muted", card->body());
  round_ = new Fact(theme_, tr("Rounds certified"), card);
  members_ = new Fact(theme_, tr("Members"), card);
  waiting_ = new Fact(theme_, tr("Waiting"), card);
  traffic_ = new Fact(theme_, tr("Sent"), card);
  add_facts(card->body(), round_, members_);
  add_facts(card->body(), waiting_, traffic_);
  card->body()->addStretch(1);
  return card;
}

Card* RoundsCards::make_network() {
  auto* card = new Card(tr("All nodes together"));
  card->set_caption(tr("medians of signed reports"));
  auto* row = new QHBoxLayout;
  agreement_icon_ = new QLabel(card);
  agreement_icon_->setFixedSize(icon_side, icon_side);
  row->addWidget(agreement_icon_, 0, Qt::AlignTop);
  agreement_ = make_paragraph({}, "strong", card);
  agreement_->setObjectName(QStringLiteral("rounds_agreement"));
  row->addWidget(agreement_, 1);
  card->body()->addLayout(row);
  loss_ = new Fact(theme_, tr("Network loss"), card);
  own_loss_ = new Fact(theme_, tr("Loss here"), card);
  nodes_training_ = new Fact(theme_, tr("Nodes training"), card);
  tokens_ = new Fact(theme_, tr("Trained together"), card);
  add_facts(card->body(), loss_, own_loss_);
  add_facts(card->body(), nodes_training_, tokens_);
  verified_ = paragraph("rounds_verified", "muted", card->body());
  card->body()->addStretch(1);
  return card;
}

Card* RoundsCards::make_rounds() {
  auto* card = new Card(tr("Last rounds"), this);
  problem_ = paragraph("rounds_problem", "danger", card->body());
  round_table_ = make_table(tr("Last rounds"), "rounds_table",
                            {tr("Round"), tr("When"), tr("Took"), tr("Waited here"), tr("Contributed"),
                             tr("Late or left out"), tr("Contributors"), tr("Rule")},
                            rounds_, QStringLiteral("rounds"),
                            tr("No round has been certified since the start of the core."));
  card->body()->addWidget(round_table_);
  refused_ = paragraph("rounds_refused", "muted", card->body());
  return card;
}

Card* RoundsCards::make_nodes() {
  auto* card = new Card(tr("Nodes that train"), this);
  card->set_caption(tr("as each node reports, signed; all nodes of a wallet count as one"));
  node_table_ = make_table(tr("Nodes that train"), "rounds_nodes",
                           {tr("Node"), tr("Wallet"), tr("State"), tr("Weights"), tr("Round"), tr("Loss"),
                            tr("Tokens/s"), tr("Steps"), tr("Rounds that counted"), tr("Reported")},
                           nodes_, QStringLiteral("training-nodes"), tr("No node has reported yet."));
  card->body()->addWidget(node_table_);
  return card;
}

void RoundsCards::show_problem(const QString& problem) {
  show_line(problem_, problem);
}

void RoundsCards::show_snapshot(const node::Snapshot& snapshot, bool may_steer) {
  const node::RoundsView& rounds = snapshot.rounds;
  setVisible(rounds.taking_part);
  if (!rounds.taking_part) return;
  show_line(phase_, RoundsWords::phase(rounds));
  progress_->setVisible(rounds.inner_steps > 0);
  progress_->setValue(
      rounds.inner_steps > 0
          ? static_cast<int>(1000.0 * std::min(rounds.steps, rounds.inner_steps) / rounds.inner_steps)
          : 0);
  progress_->setToolTip(
      tr("%1 of %2 steps").arg(Format::integer(rounds.steps), Format::integer(rounds.inner_steps)));
  show_line(alerts_, alerts_of(snapshot));
  show_line(caution_, RoundsWords::caution(rounds));
  chain_->show_chain(rounds.chain, may_steer);
  show_line(left_out_, rounds.left_out_reason.empty()
                           ? QString()
                           : tr("This node's contribution was left out %n time(s); the last time: %1",
                                nullptr, static_cast<int>(rounds.left_out))
                                 .arg(text(rounds.left_out_reason)));
  round_->set(Format::integer(rounds.round),
              tr("%n contribution(s) from here", nullptr, static_cast<int>(rounds.contributed)));
  members_->set(rounds.members > 0 ? Format::integer(rounds.members) : Format::dash(),
                rounds.round > 0
                    ? tr("%1 contributed to the last round").arg(Format::integer(rounds.contributors))
                    : QString());
  waiting_->set(Format::percent(rounds.waiting_share),
                tr("of the time; %1 in all").arg(Format::seconds(rounds.waiting_seconds)));
  traffic_->set(Format::bytes(rounds.bytes_sent),
                tr("received %1").arg(Format::bytes(rounds.bytes_received)));
  const node::GlobalTrainingView& global = rounds.global;
  const RoundsWords::Judgement judged = RoundsWords::agreement(global);
  agreement_->setText(judged.text);
  if (shown_icon_ != judged.icon) {
    shown_icon_ = judged.icon;
    const Token token = judged.tone == Tone::Working   ? Token::Working
                        : judged.tone == Tone::Warning ? Token::Warning
                                                       : Token::Info;
    agreement_icon_->setPixmap(theme_.icon(judged.icon, token).pixmap(icon_side, icon_side));
  }
  loss_->set(Format::loss(global.loss), RoundsWords::trend(global));
  own_loss_->set(Format::loss(snapshot.training.smoothed_loss), tr("nats per token"));
  nodes_training_->set(
      global.reports > 0 ? Format::integer(global.training_nodes) : Format::dash(),
      global.reports > 0 ? tr("of %n wallet(s)", nullptr, static_cast<int>(global.wallets)) : QString());
  tokens_->set(
      global.tokens > 0 ? Format::si(static_cast<double>(global.tokens)) : Format::dash(),
      global.steps > 0
          ? tr("tokens, %1 step(s)", nullptr, global.steps == 1 ? 1 : 2).arg(Format::integer(global.steps))
          : tr("tokens"));
  show_line(verified_,
            global.verified_reason.empty()
                ? QString()
                : (global.verified ? tr("Progress is shown: %1") : tr("Progress is not shown yet: %1"))
                      .arg(text(global.verified_reason)));
}

void RoundsCards::show_report(const node::RoundsReport& report, WallTime now) {
  show_problem({});
  std::vector<QStringList> rows;
  for (const node::RoundEntry& round : report.rounds) {
    rows.push_back({Format::integer(round.round), Format::ago(round.at, now),
                    round.seconds > 0 ? Format::seconds(round.seconds) : Format::dash(),
                    round.seconds > 0 ? Format::seconds(round.waited) : Format::dash(),
                    tr("%1 of %2").arg(Format::integer(round.contributors), Format::integer(round.members)),
                    exceptions(round), contributors(round), rule_of(round)});
  }
  fill_rows(*rounds_, rows, rounds_->columnCount());
  rows.clear();
  for (const node::TrainingNodeEntry& one : report.nodes) {
    rows.push_back(
        {one.mine ? tr("%1 (this node)").arg(short_id(one.id)) : short_id(one.id),
         one.wallet.empty() ? Format::dash() : text(one.wallet),
         !one.counts    ? tr("not a member")
         : one.training ? tr("training")
                        : tr("not training"),
         !one.agrees   ? Format::dash()
         : *one.agrees ? tr("✓ the same")
                       : tr("⚠ different"),
         Format::integer(one.round), Format::loss(one.loss), Format::integer(one.tokens_per_second),
         Format::integer(one.steps),
         one.synced + one.missed > 0
             ? tr("%1 of %2").arg(Format::integer(one.synced), Format::integer(one.synced + one.missed))
             : Format::dash(),
         Format::ago(one.at, now)});
  }
  fill_rows(*nodes_, rows, nodes_->columnCount());
  QStringList refused;
  for (const node::RefusedEntry& one : report.refused)
    refused << tr("%1 (%2)").arg(text(one.reason), Format::integer(one.count));
  show_line(refused_, refused.isEmpty()
                          ? QString()
                          : tr("Not taken from others: %1").arg(refused.join(QStringLiteral(", "))));
  PlotSeries losses;
  losses.name = tr("Network loss");
  for (const node::GlobalLossPoint& point : report.losses)
    losses.points.push_back({static_cast<double>(point.round), point.loss, point.loss, point.loss, 1});
  if (losses.points.empty()) return losses_->plot()->set_series({});
  const double from = losses.points.front().x, to = losses.points.back().x;
  losses_->plot()->set_series({std::move(losses)});
  losses_->plot()->view()->set_full({from, std::max(to, from + 1)});
}

}  // namespace neuroshard::ui
