#include "ui/pages/together_card.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/text/chain_text.h"
#include "ui/text/format.h"
#include "ui/text/state_text.h"
#include "ui/widgets/gauge.h"
#include "ui/widgets/tone.h"

namespace neuroshard::ui {
namespace {

constexpr int icon_side = 20;

QString text_of(const node::ChainView& chain) {
  if (chain.genesis.empty()) return {};
  QStringList parts{ChainWords::block(chain) + QLatin1Char('.'), ChainWords::presence(chain),
                    ChainWords::standing(chain), ChainWords::others(chain), ChainWords::recovery(chain)};
  parts.removeAll(QString());
  return parts.join(QLatin1Char(' '));
}

void show_line(QLabel* label, const QString& text) {
  label->setText(text);
  label->setVisible(!text.isEmpty());
}

}  // namespace

TogetherCard::TogetherCard(const Theme& theme, QWidget* parent)
    : Card(tr("The model of the network"), parent), theme_(theme) {
  network_ = make_paragraph(Format::dash(), "strong", this);
  note_ = make_paragraph({}, "muted", this);
  note_->setObjectName(QStringLiteral("overview_network_note"));
  body()->addWidget(network_);
  body()->addWidget(note_);
  together_ = new QWidget(this);
  together_->setObjectName(QStringLiteral("overview_together"));
  together_->hide();
  auto* inside = new QVBoxLayout(together_);
  inside->setContentsMargins(0, 0, 0, 0);
  inside->setSpacing(grid_step);
  auto* facts = new QHBoxLayout;
  loss_ = new Fact(theme, tr("Network loss"), together_);
  loss_->setToolTip(tr("Median of the losses that members report for the newest round"));
  nodes_ = new Fact(theme, tr("Nodes training"), together_);
  facts->addWidget(loss_, 1);
  facts->addWidget(nodes_, 1);
  inside->addLayout(facts);
  add_agreement(inside);
  auto* more = new QPushButton(tr("Rounds and nodes"), together_);
  more->setProperty("role", QStringLiteral("link"));
  connect(more, &QPushButton::clicked, this, &TogetherCard::rounds_wanted);
  inside->addWidget(more, 0, Qt::AlignLeft);
  body()->addWidget(together_);
  body()->addStretch(1);
  connect(&theme, &Theme::changed, this, [this] { draw_agreement(); });
}

void TogetherCard::add_agreement(QVBoxLayout* inside) {
  auto* row = new QHBoxLayout;
  agreement_icon_ = new QLabel(together_);
  agreement_icon_->setFixedSize(icon_side, icon_side);
  agreement_ = make_paragraph({}, nullptr, together_);
  agreement_->setObjectName(QStringLiteral("overview_agreement"));
  row->addWidget(agreement_icon_, 0, Qt::AlignTop);
  row->addWidget(agreement_, 1);
  inside->addLayout(row);
  rounds_ = make_paragraph({}, "muted", together_);
  rounds_->setObjectName(QStringLiteral("overview_rounds"));
  chain_ = make_paragraph({}, "muted", together_);
  chain_->setObjectName(QStringLiteral("overview_chain"));
  caution_ = make_paragraph({}, "warning", together_);
  caution_->setObjectName(QStringLiteral("overview_caution"));
  inside->addWidget(rounds_);
  inside->addWidget(chain_);
  inside->addWidget(caution_);
}

void TogetherCard::show_network(const node::Snapshot& snapshot) {
  const std::string& network = snapshot.program.network;
  network_->setText(network.empty() ? Format::dash() : QString::fromStdString(network));
  const bool takes_part = snapshot.rounds.taking_part;
  together_->setVisible(takes_part);
  note_->setVisible(!takes_part);
  if (takes_part) return show_rounds(snapshot.rounds);
  const QString without = StateWords::without_network(snapshot);
  note_->setText(!without.isEmpty() ? without
                 : snapshot.peers.taking_part
                     ? tr("This node has joined the network but trains for itself, without rounds.")
                     : tr("This node trains alone. In a network, this card shows the network loss "
                          "and whether all nodes agree."));
}

void TogetherCard::show_rounds(const node::RoundsView& rounds) {
  const node::GlobalTrainingView& global = rounds.global;
  loss_->set(Format::loss(global.loss), RoundsWords::trend(global));
  nodes_->set(global.reports > 0 ? Format::integer(global.training_nodes) : Format::dash(),
              rounds.members > 0 ? tr("%n member(s)", nullptr, static_cast<int>(rounds.members)) : QString());
  const QString icon_before = judged_.icon;
  judged_ = RoundsWords::agreement(global);
  agreement_->setText(judged_.text);
  if (judged_.icon != icon_before) draw_agreement();
  const QString phase = RoundsWords::phase(rounds);
  rounds_->setText(
      rounds.round > 0 ? tr("Round %1 is certified. %2").arg(Format::integer(rounds.round), phase) : phase);
  show_line(chain_, text_of(rounds.chain));
  show_line(caution_, RoundsWords::caution(rounds));
}

void TogetherCard::draw_agreement() {
  if (judged_.icon.isEmpty()) return;
  agreement_icon_->setPixmap(theme_.icon(judged_.icon, token_of(judged_.tone)).pixmap(icon_side, icon_side));
}

}  // namespace neuroshard::ui
