#include "ui/pages/chain_card.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/pages/confirm.h"
#include "ui/text/chain_text.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/gauge.h"

namespace neuroshard::ui {
namespace {

QLabel* line(const char* name, const char* role, Card* card) {
  QLabel* label = make_paragraph({}, role, card);
  label->setObjectName(QLatin1String(name));
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  label->hide();
  card->body()->addWidget(label);
  return label;
}

void show_line(QLabel* label, const QString& text) {
  label->setText(text);
  label->setVisible(!text.isEmpty());
}

}  // namespace

ChainCard::ChainCard(const Theme& theme, Bridge& bridge, QWidget* parent)
    : Card(tr("Agreement"), parent), bridge_(bridge) {
  setObjectName(QStringLiteral("chain_card"));
  set_caption(tr("the blocks that the voters certify"));
  standing_ = line("chain_standing", "strong", this);
  presence_ = line("chain_presence", nullptr, this);
  recovery_ = line("chain_recovery", "warning", this);
  go_on_ = new QPushButton(this);
  go_on_->setObjectName(QStringLiteral("chain_go_on"));
  go_on_->hide();
  connect(go_on_, &QPushButton::clicked, this, [this] { ask(); });
  body()->addWidget(go_on_, 0, Qt::AlignLeft);
  outcome_ = line("chain_outcome", "muted", this);
  others_ = line("chain_others", "warning", this);
  blocks_ = new Fact(theme, tr("Blocks"), this);
  voters_ = new Fact(theme, tr("Voters"), this);
  committee_ = new Fact(theme, tr("Votes reachable"), this);
  candidates_ = new Fact(theme, tr("Candidates"), this);
  for (const auto& [first, second] : {std::pair{blocks_, voters_}, std::pair{committee_, candidates_}}) {
    auto* row = new QHBoxLayout;
    row->addWidget(first, 1);
    row->addWidget(second, 1);
    body()->addLayout(row);
  }
  body()->addStretch(1);
}

void ChainCard::show_chain(const node::ChainView& chain, bool may_steer) {
  shown_ = chain;
  const bool known = !chain.genesis.empty();
  show_line(standing_,
            known ? ChainWords::standing(chain) : tr("This node looks for the network's history."));
  show_line(presence_, known ? ChainWords::presence(chain) : QString());
  show_line(others_, ChainWords::others(chain));
  show_line(recovery_, ChainWords::recovery(chain));
  go_on_->setText(chain.asks_succession.empty() ? tr("Go on without them …") : tr("Decide …"));
  go_on_->setVisible(ChainWords::offers_continuation(chain));
  go_on_->setEnabled(may_steer);
  const auto age = std::chrono::seconds(static_cast<std::int64_t>(chain.block_age));
  blocks_->set(known ? Format::integer(chain.height) : Format::dash(),
               known ? tr("the newest %1 ago").arg(Format::duration(age)) : QString());
  blocks_->setToolTip(known ? tr("Genesis %1").arg(QString::fromStdString(chain.genesis)) : QString());
  voters_->set(known ? Format::integer(chain.voters) : Format::dash(),
               known ? tr("nodes that vote: %1").arg(Format::integer(chain.committee)) : QString());
  const bool counted = known && chain.active_units > 0;
  committee_->set(counted ? Format::percent(static_cast<double>(chain.heard_units) /
                                            static_cast<double>(chain.active_units))
                          : Format::dash(),
                  tr("more than two thirds certify a block"));
  candidates_->set(known ? Format::integer(chain.candidates) : Format::dash(), tr("train without a vote"));
}

void ChainCard::show_outcome(const QString& text) {
  show_line(outcome_, text);
}

void ChainCard::ask() {
  Question question;
  question.destructive = true;
  const node::ChainView chain = shown_;
  QStringList without;
  if (chain.asks_succession.empty()) {
    for (const std::string& id : chain.missing) without << QString::fromStdString(id);
    question.title = tr("Go on without the missing members?");
    question.text =
        tr("Members that do not answer:\n%1\n\nThey lose their votes until they return. If they still "
           "run together elsewhere, the network splits in two, and the work of one half is lost later.")
            .arg(without.join(QLatin1Char('\n')));
    question.action = tr("Go on without them");
  } else {
    question.title = tr("Go on with the other members?");
    question.text =
        tr("Other members go on without some that do not answer, or did so while this node was away. If you "
           "agree, this node goes on with them, and members that are left out have no vote until they "
           "return. If you do not agree, this node waits for the members that are left out.");
    question.action = tr("Agree");
  }
  const QString agree = QString::fromStdString(chain.asks_succession);
  confirm(
      this, question, [this, without, agree] { Q_EMIT decided(without, agree); }, &bridge_);
}

}  // namespace neuroshard::ui
