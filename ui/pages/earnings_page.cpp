#include "ui/pages/earnings_page.h"

#include <QFormLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "ui/pages/page_body.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/empty_state.h"

namespace neuroshard::ui {

EarningsPage::EarningsPage(const Context& context, QWidget* parent) : Page(context, parent) {
  QVBoxLayout* page_column = make_page_column(this);
  auto* card = new Card;
  auto* empty = new EmptyState(theme(), icon(), tr("Nothing is earned yet"),
                               tr("NEURO is credited for work that other nodes have checked. Who trains "
                                  "alone has nobody to check it; and for work in a network this version "
                                  "keeps no ledger yet, so nothing is paid there either. With a ledger this "
                                  "page shows what is confirmed and what is pending, day by day, and for "
                                  "every credit the signed proof behind it."));
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
  page_column->addWidget(identity);
}

void EarningsPage::refresh(const node::Snapshot& snapshot) {
  network_->setText(snapshot.program.network.empty() ? Format::dash()
                                                     : QString::fromStdString(snapshot.program.network));
  const node::IdentityView& identity = snapshot.identity;
  wallet_->setText(identity.wallet_id.empty()
                       ? tr("none yet: \"neuroshardd wallet create\" makes one, with words to write down")
                       : QString::fromStdString(identity.wallet_id));
}

}  // namespace neuroshard::ui
