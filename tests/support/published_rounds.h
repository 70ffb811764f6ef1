// A network with outer rounds whose text a publisher serves: its dataset and its HTTP server beside the nodes. Header
// only; needs Qt.
#pragma once

#include <QRegularExpression>

#include "tests/support/rounds_run.h"

namespace neuroshard::test {

class PublishedRounds {
 public:
  RoundsRun run;

  // Dataset, publisher, profile and tracker. Empty: it all stands; else what went wrong.
  QByteArray make(const QString& network, const QString& inner_steps, int text_bytes, int shard_tokens) {
    const QStringList key{"--publisher-key", run.path("publisher.key"), "--force"};
    if (const QByteArray wrong = run.make(network, inner_steps, key); !wrong.isEmpty()) return wrong;
    const ProcessResult shown = run_node({"network", "show", run.profile()});
    const QString id =
        QRegularExpression("id ([0-9a-f]{64})").match(QString::fromUtf8(shown.out)).captured(1);
    QFile text(run.path("published.txt"));
    if (!text.open(QIODevice::WriteOnly) || text.write(made_up_text(11, text_bytes)) <= 0)
      return "no room for the text";
    text.close();
    const ProcessResult built =
        run_node({"genesis", "build", run.path("published.txt"), "--out", run.path("out"), "--key",
                  run.path("publisher.key"), "--network", id, "--vocabulary", "300", "--shard-tokens",
                  QString::number(shard_tokens), "--threads", "1", "--json"});
    if (!built.ok()) return built.text() + shown.text();
    server_ = std::make_unique<NodeProcess>(
        QStringList{"genesis", "serve", run.path("out"), "--port", "0", "--json"});
    const int port = wait_for_object(*server_, "port")["port"].toInt();
    if (port == 0) return "the publisher does not serve";
    // The address is not part of the network's id.
    const ProcessResult named = run.create(
        network, inner_steps,
        key + QStringList{"--manifest-url", QString("http://127.0.0.1:%1/manifest.json").arg(port)});
    return named.ok() ? QByteArray() : named.text();
  }

 private:
  std::unique_ptr<NodeProcess> server_;
};

}  // namespace neuroshard::test
