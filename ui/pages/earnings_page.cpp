#include "ui/pages/earnings_page.h"

#include <QFormLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/pages/page_body.h"
#include "ui/pages/wallet_nodes_dialog.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/empty_state.h"

namespace neuroshard::ui {

EarningsPage::EarningsPage(const Context& context, QWidget* parent) : Page(context, parent) {
  QVBoxLayout* page_column = make_page_column(this);
  auto* card = new Card;
  auto* empty = new EmptyState(
      theme(), icon(), tr("Nothing is earned yet"),
      tr("NEURO is credited for work that other nodes have checked. Nobody checks the work of a node that "
         "trains alone, and this version keeps no ledger for networks yet. With a ledger, this page will "
         "show confirmed and pending credits by day, each with its signed proof."));
  empty->set_action(tr("See the network"));
  connect(empty, &EmptyState::action_clicked, this, [this] { navigate(QStringLiteral("network")); });
  card->body()->addWidget(empty, 1);
  page_column->addWidget(card, 1);
  auto* identity = new Card(tr("Where it will go"));
  auto* form = new QFormLayout;
  form->setHorizontalSpacing(2 * grid_step);
  const auto add = [form](const QString& what, const char* object) {
    QLabel* value = make_label(Format::dash());
    value->setObjectName(QString::fromLatin1(object));
    value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    form->addRow(make_label(what, "muted"), value);
    return value;
  };
  network_ = add(tr("Network"), "earnings_network");
  wallet_ = add(tr("Wallet"), "earnings_wallet");
  identity->body()->addLayout(form);
  computers_ = new QPushButton(tr("Computers of this wallet …"));
  computers_->setObjectName(QStringLiteral("earnings_computers"));
  connect(computers_, &QPushButton::clicked, this, &EarningsPage::open_computers);
  identity->body()->addWidget(computers_, 0, Qt::AlignLeft);
  page_column->addWidget(identity);
}

void EarningsPage::refresh(const node::Snapshot& snapshot) {
  network_->setText(snapshot.program.network.empty() ? Format::dash()
                                                     : QString::fromStdString(snapshot.program.network));
  const node::IdentityView& identity = snapshot.identity;
  wallet_->setText(identity.wallet_id.empty()
                       ? tr("none yet: run \"neuroshardd wallet create\" and write down its words")
                       : QString::fromStdString(identity.wallet_id));
  directory_ = QString::fromStdString(snapshot.program.data_directory);
  own_node_ = QString::fromStdString(identity.node_id);
  // A network without a chain has no members, and the wallet is a file on the core's own computer.
  computers_->setVisible(!identity.wallet_id.empty() && !snapshot.rounds.chain.genesis.empty() &&
                         !context().core_program.isEmpty() && !context().elsewhere());
}

void EarningsPage::open_computers() {
  (new WalletNodesDialog(context().core_program, directory_, own_node_, this))->open();
}

}  // namespace neuroshard::ui
