// neuroshardd as scripts and people meet it: help, exit codes, JSON, settings, profiles.
#include <QJsonArray>
#include <QTest>
#include <cmath>

#include "tests/support/process.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestCommandLine : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void help_of_every_command_has_examples();
  void help_shows_options_of_which_one_is_given();
  void completion_names_what_the_help_names();
  void exit_codes_are_in_the_help();
  void version();
  void wrong_usage_is_64_data();
  void wrong_usage_is_64();
  void a_repeated_flag_takes_one_word_each_time();
  void errors_are_json_when_asked();
  void profiles_are_made_and_shown();
  void the_outer_step_is_that_of_the_flags();
  void founders_and_voters_are_chosen_and_explained();
  void sizes_to_grow_to_are_chosen_and_shown();
  void wrong_sizes_are_64_and_say_what_is_allowed();
  void existing_files_are_not_replaced();
  void settings_of_a_fresh_directory();
  void environment_and_flags_are_locked();
  void other_network_is_refused();
  void generate_without_a_directory_is_66();
  void unwritable_directory_is_77();
  void no_text_is_66();

 private:
  QString path(const QString& name) const { return folder_.filePath(name); }

  QTemporaryDir folder_;
};

namespace {

QStringList command_names(const QByteArray& help) {
  QStringList names;
  bool inside = false;
  for (const QByteArray& line : help.split('\n')) {
    if (line.startsWith("Commands:")) {
      inside = true;
    } else if (inside && line.startsWith("  ") && line.size() > 2 && line[2] != ' ') {
      names << QString::fromUtf8(line.trimmed().split(' ').first());
    } else if (inside && line.trimmed().isEmpty()) {
      break;
    } else if (inside && !line.startsWith(QByteArray(30, ' '))) {
      names << "not in the column of its description: " + QString::fromUtf8(line);
    }
  }
  return names;
}

}  // namespace

void TestCommandLine::help_of_every_command_has_examples() {
  const ProcessResult root = run_node({"--help"});
  QVERIFY2(root.ok(), root.text().constData());
  const QStringList commands = command_names(root.out);
  for (const char* name :
       {"run", "train", "wallet", "genesis", "generate", "checkpoint", "network", "settings", "bench"}) {
    QVERIFY2(commands.contains(name), name);
  }
  for (const QString& command : commands) {
    const ProcessResult help = run_node({command, "--help"});
    QVERIFY2(help.ok(), help.text().constData());
    QVERIFY2(help.out.contains("Usage: neuroshardd " + command.toUtf8()), help.text().constData());
    bool examples = help.out.contains("Examples:");
    for (const QString& sub : command_names(help.out)) {
      const ProcessResult sub_help = run_node({command, sub, "--help"});
      QVERIFY2(sub_help.ok(), sub_help.text().constData());
      examples = examples || sub_help.out.contains("Examples:");
    }
    QVERIFY2(examples, qPrintable(command));
  }
}

void TestCommandLine::help_shows_options_of_which_one_is_given() {
  const ProcessResult help = run_node({"wallet", "backup", "--help"});
  QVERIFY2(help.ok(), help.text().constData());
  QVERIFY2(help.out.contains("\n  --words ") && !help.out.contains("Commands:"), help.text().constData());
}

// In a real bash: what it offers after some words is what --help lists.
void TestCommandLine::completion_names_what_the_help_names() {
  const ProcessResult script = run_node({"completion", "bash"});
  QVERIFY2(script.ok(), script.text().constData());
  QCOMPARE(run_node({"completion", "tcsh"}).exit_code, 64);
  const auto offered = [&](const QStringList& words) {
    QProcess bash;
    bash.start("bash",
               QStringList{"--norc", "-c",
                           QString::fromUtf8(script.out) +
                               "COMP_WORDS=(neuroshardd \"$@\" ''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
                               "_neuroshardd; printf '%s\\n' \"${COMPREPLY[@]}\"",
                           "bash"} +
                   words);
    bash.waitForFinished(30'000);
    return QString::fromUtf8(bash.readAllStandardOutput()).split('\n', Qt::SkipEmptyParts);
  };
  const QStringList commands = command_names(run_node({"--help"}).out);
  QVERIFY(commands.contains("completion"));
  for (const QString& command : commands) QVERIFY2(offered({}).contains(command), qPrintable(command));
  for (const QString& command : command_names(run_node({"checkpoint", "--help"}).out))
    QVERIFY2(offered({"--json", "checkpoint"}).contains(command), qPrintable(command));
  for (const char* option : {"--words", "--data-dir"})  // its own, also those of a group, and a global one
    QVERIFY2(offered({"wallet", "backup"}).contains(option), option);
  QVERIFY(!offered({"wallet", "show"}).contains("--words"));
  QCOMPARE(offered({"train", "--precision"}), (QStringList{"auto", "fp32", "bf16"}));
  QCOMPARE(offered({"completion"}).mid(0, 3), (QStringList{"bash", "zsh", "fish"}));
}

void TestCommandLine::exit_codes_are_in_the_help() {
  const QByteArray help = run_node({"--help"}).out;
  for (const char* code : {"\n    0 ", "\n    1 ", "\n   64 ", "\n   65 ", "\n   66 ", "\n   69 ", "\n   70 ",
                           "\n   73 ", "\n   74 ", "\n   75 ", "\n   77 ", "\n  130 "}) {
    QVERIFY2(help.contains(code), code);
  }
}

void TestCommandLine::version() {
  const ProcessResult result = run_node({"--version"});
  QVERIFY(result.ok());
  QVERIFY(result.out.startsWith("neuroshardd 0."));
}

void TestCommandLine::wrong_usage_is_64_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::newRow("nothing") << QStringList{};
  QTest::newRow("unknown command") << QStringList{"fly"};
  QTest::newRow("unknown flag") << QStringList{"train", "--fast"};
  QTest::newRow("no number") << QStringList{"train", "--steps", "many"};
  QTest::newRow("no steps") << QStringList{"train", "--steps", "0"};
  QTest::newRow("negative") << QStringList{"train", "--steps", "-3"};
  QTest::newRow("both ends") << QStringList{"train", "--steps", "3", "--until-step", "5"};
  QTest::newRow("group without command") << QStringList{"network"};
  QTest::newRow("missing required") << QStringList{"network", "create"};
  QTest::newRow("bad name") << QStringList{"network", "create", "--name", "My Net"};
  QTest::newRow("bad shape") << QStringList{"network", "create", "--name", "x", "--hidden", "100"};
  QTest::newRow("bad rate") << QStringList{"network", "create", "--name", "x", "--peak-lr", "fast"};
  QTest::newRow("bad founder") << QStringList{"network", "create", "--name",    "x",
                                              "--from",  "devnet", "--founder", "me"};
  QTest::newRow("founders alone, and none")
      << QStringList{"network", "create", "--name", "x", "--from", "devnet", "--voters", "founders"};
  QTest::newRow("temperature") << QStringList{"generate", "--temperature", "-1"};
}

void TestCommandLine::wrong_usage_is_64() {
  QFETCH(QStringList, arguments);
  const ProcessResult result = run_node(arguments + QStringList{"--data-dir", path("never")});
  QCOMPARE(result.exit_code, 64);
  QVERIFY(result.err.contains("neuroshardd: "));
  QVERIFY(!QFileInfo::exists(path("never")));
}

// The rest is the command's own: which checkpoint, and no second node to ask.
void TestCommandLine::a_repeated_flag_takes_one_word_each_time() {
  const ProcessResult result = run_node({"checkpoint", "fetch", "--profile", "devnet", "--at", "127.0.0.1:9",
                                         "newest", "--at", "here", "--data-dir", path("fetching")});
  QCOMPARE(result.exit_code, 64);
  QVERIFY2(result.err.contains("\"here\" is not an address"), result.text().constData());
}

void TestCommandLine::errors_are_json_when_asked() {
  const ProcessResult result = run_node({"network", "show", "nowhere", "--json"});
  QCOMPARE(result.exit_code, 66);
  QVERIFY(result.out.isEmpty());
  const QList<QJsonObject> lines = json_lines(result.err);
  QCOMPARE(lines.size(), 1);
  const QJsonObject error = lines[0]["error"].toObject();
  QCOMPARE(error["code"].toString(), QString("not found"));
  QVERIFY(error["message"].toString().contains("mainnet"));
  QVERIFY(error.contains("context"));
}

void TestCommandLine::profiles_are_made_and_shown() {
  const QString file = path("village.json");
  const ProcessResult made = run_node({"network", "create", "--name", "village", "--layers", "2", "--hidden",
                                       "64", "--head-dim", "32", "--experts", "1", "--experts-per-token", "1",
                                       "--peak-lr", "2.5e-4", "--out", file, "--json"});
  QVERIFY2(made.ok(), made.text().constData());
  const ProcessResult shown = run_node({"network", "show", file, "--json"});
  QVERIFY2(shown.ok(), shown.text().constData());
  const QJsonObject profile = json_lines(shown.out).value(0);
  QCOMPARE(profile["network_id"].toString(), json_lines(made.out).value(0)["network_id"].toString());
  const QJsonObject consensus = profile["consensus"].toObject();
  QCOMPARE(consensus["peak_learning_rate_nano"].toInt(), 250'000);
  QCOMPARE(consensus["experts"].toInt(), 1);
  QCOMPARE(consensus["sequence"].toInt(), 256);
  const ProcessResult people = run_node({"network", "show", "mainnet"});
  QVERIFY(people.out.contains("there is no bootstrap"));
  QCOMPARE(json_lines(run_node({"network", "show", "--json"}).out).size(), 4);

  const ProcessResult signed_one =
      run_node({"network", "create", "--name", "club", "--from", "devnet", "--publisher-key",
                path("club.key"), "--out", path("club.json")});
  QVERIFY2(signed_one.ok(), signed_one.text().constData());
  // Nobody looks for this network at the addresses of a built-in one.
  const ProcessResult club = run_node({"network", "show", path("club.json"), "--json"});
  QVERIFY2(club.ok(), club.text().constData());
  QVERIFY(json_lines(club.out).value(0)["directory"].toObject()["bootstrap"].toArray().isEmpty());
  QVERIFY(!(QFileInfo(path("club.key")).permissions() & (QFile::ReadGroup | QFile::ReadOther)));
}

// The profile that it begins with has no outer loop.
void TestCommandLine::the_outer_step_is_that_of_the_flags() {
  const QString file = path("outer.json");
  const QStringList create{"network", "create", "--from", "solo", "--name", "outer",
                           "--force", "--out",  file,     "--h",  "100"};
  const auto rates = [&](const QStringList& more) {
    const ProcessResult made = run_node(create + more);
    if (!made.ok()) qWarning("%s", made.text().constData());
    const QJsonObject consensus =
        json_lines(run_node({"network", "show", file, "--json"}).out).value(0)["consensus"].toObject();
    return std::pair(consensus["outer_learning_rate_nano"].toDouble(),
                     consensus["outer_momentum_nano"].toDouble());
  };
  QCOMPARE(rates({}), std::pair(7e8, 9e8));
  QCOMPARE(rates({"--outer-lr", "0.5"}), std::pair(5e8, 9e8));
  QCOMPARE(rates({"--outer-lr", "0.5", "--outer-momentum", "0.8"}), std::pair(5e8, 8e8));
  const ProcessResult wrong = run_node(create + QStringList{"--outer-lr", "3"});
  QCOMPARE(wrong.exit_code, 64);
  QVERIFY2(wrong.err.contains("outer_learning_rate_nano"), wrong.err.constData());
}

void TestCommandLine::founders_and_voters_are_chosen_and_explained() {
  const auto create = [this](const QStringList& more) {
    return run_node(QStringList{"network", "create", "--from", "devnet", "--name", "family", "--force",
                                "--out", path("family.json")} +
                    more);
  };
  const ProcessResult nobody = create({"--founder", "mine", "--data-dir", path("founder")});
  QCOMPARE(nobody.exit_code, 66);
  QVERIFY2(nobody.err.contains("neuroshardd wallet create"), nobody.err.constData());
  const ProcessResult wallet = run_node({"wallet", "create", "--json", "--data-dir", path("founder")});
  QVERIFY2(wallet.ok(), wallet.text().constData());
  const QString own = json_lines(wallet.out).value(0)["public_key"].toString();
  const QString other(64, 'a');
  const ProcessResult made =
      create({"--voters", "invited", "--founder", other, "--founder", "mine", "--data-dir", path("founder")});
  QVERIFY2(made.ok(), made.text().constData());
  QVERIFY2(made.err.contains("becomes a voter by an invitation"), made.err.constData());
  QVERIFY(!made.err.contains("names no founder"));
  const auto shown = [this] {
    return json_lines(run_node({"network", "show", path("family.json"), "--json"}).out).value(0);
  };
  QStringList founders{own, other};
  founders.sort();
  QCOMPARE(shown()["consensus"].toObject()["founders"].toVariant().toStringList(), founders);
  QVERIFY(run_node({"network", "show", path("family.json")}).out.contains(own.toLatin1()));

  const ProcessResult open =
      create({"--voters", "open", "--admission-contributions", "8", "--genesis", other});
  QVERIFY2(open.ok(), open.text().constData());
  // 8 contributions for the first wallet, then one a round.
  QVERIFY2(open.err.contains("2 wallets, 9 rounds") && open.err.contains("9 wallets, 16 rounds"),
           open.err.constData());
  QVERIFY(open.err.contains("names no founder"));
  QCOMPARE(shown()["directory"].toObject()["genesis"].toString(), other);
}

void TestCommandLine::sizes_to_grow_to_are_chosen_and_shown() {
  const QString file = path("tower.json");
  const auto sizes_of = [&](const QStringList& more) {
    const ProcessResult made = run_node(
        QStringList{"network", "create", "--from", "devnet", "--name", "tower", "--force", "--out", file} +
        more);
    if (!made.ok()) qWarning("%s", made.text().constData());
    return json_lines(run_node({"network", "show", file, "--json"}).out).value(0)["grows_to"].toArray();
  };
  constexpr double tier = 500'000'000;
  QVERIFY(sizes_of({}).isEmpty());
  // Two whole copies, and what a person says.
  QJsonArray sizes = sizes_of({"--grow-to", "6x128", "--grow-to", "6x256@4GB", "--grow-to", "8x256@4GiB"});
  QCOMPARE(sizes.size(), 3);
  const double member = sizes[0].toObject()["member_bytes"].toDouble(),
               all = sizes[0].toObject()["network_bytes"].toDouble();
  QVERIFY(member >= tier && all >= 2 * member && std::fmod(member, tier) == 0 && std::fmod(all, tier) == 0);
  QCOMPARE(sizes[1].toObject()["member_bytes"].toDouble(), 8 * tier);
  QCOMPARE(sizes[1].toObject()["network_bytes"].toDouble(), 8 * tier);
  QCOMPARE(sizes[2].toObject()["member_bytes"].toDouble(), 9 * tier);
  QVERIFY(sizes[2].toObject()["parameters"].toDouble() > sizes[1].toObject()["parameters"].toDouble());
  const ProcessResult people = run_node({"network", "show", file});
  QVERIFY2(
      people.out.contains("8 layers of width 256") && people.out.contains("4.5 GB of each, 4.5 GB of all"),
      people.out.constData());
  // A part needs less than the model.
  const QJsonArray whole = sizes_of({"--grow-to", "8x1024"});
  const QJsonArray parts = sizes_of({"--sync", "parts=4", "--grow-to", "8x1024"});
  QVERIFY(parts[0].toObject()["member_bytes"].toDouble() < whole[0].toObject()["member_bytes"].toDouble());
  QVERIFY(parts[0].toObject()["network_bytes"].toDouble() >=
          2 * parts[0].toObject()["member_bytes"].toDouble());
  // A larger size never needs less than the one before, whoever named that.
  sizes = sizes_of({"--grow-to", "6x128@20GB", "--grow-to", "8x128"});
  QCOMPARE(sizes[1].toObject()["member_bytes"].toDouble(), 40 * tier);
  for (const QStringList& sync : {QStringList{}, QStringList{"--sync", "parts=4"}}) {
    sizes = sizes_of(sync + QStringList{"--grow-to", "all"});
    QVERIFY(sizes.size() > 20 && sizes.size() <= 64);
    QCOMPARE(sizes.last().toObject()["layers"].toInt(), 64);
    QVERIFY(sizes.last().toObject()["hidden"].toInt() > 6000);
    // A profile that is made from it keeps them.
    const QString copy = path("copy.json");
    QVERIFY(run_node({"network", "create", "--from", file, "--name", "copy", "--force", "--out", copy}).ok());
    QCOMPARE(json_lines(run_node({"network", "show", copy, "--json"}).out).value(0)["grows_to"].toArray(),
             sizes);
  }
}

void TestCommandLine::wrong_sizes_are_64_and_say_what_is_allowed() {
  const auto refused = [](const QStringList& more, const char* says, const char* from = "devnet") {
    const ProcessResult result =
        run_node(QStringList{"network", "create", "--from", from, "--name", "tower"} + more);
    if (result.exit_code == 64 && result.err.contains(says)) return true;
    qWarning("%d %s", result.exit_code, result.text().constData());
    return false;
  };
  for (const char* text : {"6", "6x", "x128", "6*128", "6x128x2", "6x128GB", "all@2GB", ""})
    QVERIFY2(refused({"--grow-to", text}, "it must be LAYERSxWIDTH like 6x256, "), text);
  QVERIFY(refused({"--grow-to", "6x128@"}, "positive number of bytes"));
  QVERIFY(refused({"--grow-to", "6x128@much"}, "the memory of --grow-to 6x128@much is \"much\""));
  QVERIFY(refused({"--grow-to", "10x384@1GB"}, "10x384: 1 GB is too little, because a member needs "));
  QVERIFY(refused({"--grow-to", "6x128@1000TB"}, "between 1 and 262144 times 500 MB"));
  QVERIFY(refused({"--grow-to", "2x128"}, "deeper or wider than 4x128"));
  QVERIFY(refused({"--grow-to", "6x130"}, "multiple of head_dim, 32"));
  QVERIFY(refused({"--grow-to", "9999999999x128"}, "at most 1024 layers"));
  QVERIFY(refused({"--grow-to", "6x128@4GB", "--grow-to", "8x128@2GB"}, "of a member must be at least 8"));
  QVERIFY(refused({"--grow-to", "all", "--grow-to", "6x128"}, "name either it or single sizes"));
  QVERIFY(refused({"--grow-to", "6x128", "--grows", "0"}, "leave out --grows 0"));
  QVERIFY(refused({"--grow-to", "6x128", "--sync", "fragments=2"}, "different steps"));
  QVERIFY(refused({"--grow-to", "8x256"}, "without an outer loop", "solo"));
  QVERIFY(refused({"--grow-to", "all", "--layers", "5"}, "even number"));
}

void TestCommandLine::existing_files_are_not_replaced() {
  const QStringList create{"network", "create", "--name", "once", "--out", path("once.json")};
  QVERIFY(run_node(create).ok());
  QCOMPARE(run_node(create).exit_code, 73);
  QVERIFY(run_node(create + QStringList{"--force"}).ok());
}

void TestCommandLine::settings_of_a_fresh_directory() {
  const QString directory = path("settings");
  // Reading makes nothing.
  const ProcessResult list = run_node({"settings", "list", "--json", "--data-dir", directory});
  QVERIFY2(list.ok(), list.text().constData());
  QVERIFY(json_lines(list.out).size() > 10);
  QVERIFY(!QFileInfo::exists(directory));
  QVERIFY(run_node({"settings", "set", "memory_limit", "2GiB", "--data-dir", directory}).ok());
  QCOMPARE(run_node({"settings", "get", "memory_limit", "--data-dir", directory}).out, QByteArray("2GiB\n"));
  QCOMPARE(run_node({"settings", "set", "memory_limit", "much", "--data-dir", directory}).exit_code, 64);
  QCOMPARE(run_node({"settings", "get", "memory", "--data-dir", directory}).exit_code, 64);
  QVERIFY(run_node({"settings", "reset", "memory_limit", "--data-dir", directory}).ok());
  QCOMPARE(run_node({"settings", "get", "memory_limit", "--data-dir", directory}).out, QByteArray("0\n"));
}

void TestCommandLine::environment_and_flags_are_locked() {
  NodeProcess process({"settings", "get", "cpu_threads", "--json", "--data-dir", path("locked")},
                      {"NEUROSHARD_CPU_THREADS=3"});
  const QJsonObject setting = json_lines(process.finish().out).value(0);
  QCOMPARE(setting["value"].toString(), QString("3"));
  QCOMPARE(setting["origin"].toString(), QString("environment"));
  QVERIFY(setting["locked"].toBool());
  NodeProcess change({"settings", "set", "cpu_threads", "2", "--data-dir", path("locked")},
                     {"NEUROSHARD_CPU_THREADS=3"});
  QCOMPARE(change.finish().exit_code, 77);
}

void TestCommandLine::other_network_is_refused() {
  const QString directory = path("network");
  QVERIFY(
      run_node({"settings", "set", "cpu_threads", "1", "--data-dir", directory, "--profile", "solo"}).ok());
  const ProcessResult other =
      run_node({"train", "--steps", "1", "--data-dir", directory, "--profile", "devnet"});
  QCOMPARE(other.exit_code, 64);
  QVERIFY(other.err.contains("'solo'") && other.err.contains("'devnet'"));
}

void TestCommandLine::generate_without_a_directory_is_66() {
  const ProcessResult result = run_node({"generate", "--prompt", "x", "--data-dir", path("nothing")});
  QCOMPARE(result.exit_code, 66);
  QVERIFY(result.err.contains("neuroshardd train"));
}

void TestCommandLine::unwritable_directory_is_77() {
  // Not even root can write here.
  const ProcessResult result = run_node({"train", "--steps", "1", "--data-dir", "/proc/self/neuroshard"});
  QVERIFY2(result.exit_code == 77 || result.exit_code == 66, result.text().constData());
  QVERIFY(result.err.contains("/proc"));
}

void TestCommandLine::no_text_is_66() {
  const ProcessResult missing =
      run_node({"train", "--steps", "1", "--text", path("no-such-text"), "--data-dir", path("no-text")});
  QCOMPARE(missing.exit_code, 66);
  QVERIFY2(missing.err.contains("no-such-text"), missing.text().constData());
}

NS_TEST(TestCommandLine)
#include "test_command_line.moc"
