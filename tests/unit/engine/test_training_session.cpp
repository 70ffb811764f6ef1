// The training session over a toy compute module: the loss falls, a kill costs time but never the result, and
// nothing that goes wrong around the training stops it or loses anything.
#include <QtTest>

#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/writer.h"
#include "core/data/loader.h"
#include "core/engine/training_checkpoints.h"
#include "core/engine/training_history.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/session_run.h"

using neuroshard::CancelSource;
using neuroshard::CancelToken;
using neuroshard::ErrorCode;
using neuroshard::Expected;
using neuroshard::LogLevel;
using neuroshard::config::DataDirectory;
using neuroshard::config::Setting;
using neuroshard::engine::PrepareOptions;
using neuroshard::engine::SessionInfo;
using neuroshard::engine::SessionMode;
using neuroshard::engine::StepReport;
using neuroshard::engine::TrainingHistory;
using neuroshard::engine::TrainingServices;
using neuroshard::engine::TrainingSession;
using neuroshard::testing::checkpoints_of;
using neuroshard::testing::FaultFileEnv;
using neuroshard::testing::Faults;
using neuroshard::testing::Run;
using neuroshard::testing::TrainingFixture;
namespace compute = neuroshard::compute;
namespace storage = neuroshard::storage;

class TestTrainingSession : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void loss_falls_and_is_reported();
  void kill_and_resume_repeats_bit_for_bit_data();
  void kill_and_resume_repeats_bit_for_bit();
  void stop_within_a_step_changes_nothing();
  void a_warm_up_goes_on_from_the_checkpoint();
  void clean_stop_saves_once();
  void disk_full_goes_on_and_recovers();
  void on_a_full_disk_fewer_checkpoints_are_kept();
  void text_that_is_away_is_told_apart();
  void an_evaluation_reads_text_again_that_failed_once();
  void diverged_step_is_not_applied();
  void another_tokenizer_is_refused();
  void another_network_is_refused();
  void no_text_says_what_to_give();
  void text_in_the_data_directory_is_refused();
  void generation_opens_the_trained_weights();
  void history_has_no_gap_after_a_kill();
  void damaged_history_is_moved_aside();
  void damaged_checkpoint_is_passed_over();
  void a_position_in_the_text_of_another_node_data();
  void a_position_in_the_text_of_another_node();
};

void TestTrainingSession::loss_falls_and_is_reported() {
  TrainingFixture fixture;
  Run run(fixture, "d");
  QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
  QVERIFY(run.info->tokenizer_learned);
  QCOMPARE(run.info->files_added, std::uint64_t{1});
  QCOMPARE(run.info->sequences_per_step, 8u);
  QVERIFY(run.info->train_tokens > 8 * run.info->held_out_tokens && run.info->held_out_tokens > 0);
  double first = 0, last = 0, first_validation = 0, last_validation = 0;
  for (std::uint64_t step = 1; step <= 40; ++step) {
    const StepReport report = run.step();
    QCOMPARE(report.step, step);
    QCOMPARE(report.tokens, std::uint64_t{128});
    QCOMPARE(report.total_tokens, step * 128);
    QVERIFY(report.gradient_norm > 0 && report.tokens_per_second > 0);
    QCOMPARE(report.validation.has_value(), step % 10 == 0);
    if (step == 1) {
      first = report.loss;
      QCOMPARE(report.learning_rate, 0.01 / 5);
    }
    if (report.validation) {
      if (first_validation == 0) first_validation = report.validation->loss;
      last_validation = report.validation->loss;
      QCOMPARE(report.validation->split, std::string("held-out"));
      QVERIFY(report.validation->bits_per_byte > 0);
      QVERIFY(!report.validation->complete);
    }
    // All tokens of the step and no others: the evaluation's are not counted.
    std::uint64_t routed = 0;
    for (const std::uint64_t count : report.router_load) routed += count;
    QCOMPARE(routed, std::uint64_t{128});
    last = report.loss;
  }
  QVERIFY(std::abs(first - std::log(300.0)) < 0.1);  // knows nothing at first
  QVERIFY2(last < 0.7 * first, qPrintable(QString::number(last)));
  QVERIFY(last_validation < first_validation);
  const auto complete = run.session->evaluate(true, CancelToken());
  QVERIFY(complete.ok() && complete->complete);
  QVERIFY(complete->tokens > 200);
  const auto measured =
      run.session->history().series("val_loss", 40, 40, 10);  // with the one that was due at step 40
  QVERIFY(measured.ok() && measured->size() == 1 && measured->front().count == 2);
}

void TestTrainingSession::kill_and_resume_repeats_bit_for_bit_data() {
  QTest::addColumn<QList<int>>("kills");
  QTest::newRow("before the first checkpoint") << QList<int>{3};
  QTest::newRow("just after one") << QList<int>{10};
  QTest::newRow("between two") << QList<int>{13};
  QTest::newRow("again and again") << QList<int>{1, 7, 8, 16, 24};
}

void TestTrainingSession::kill_and_resume_repeats_bit_for_bit() {
  QFETCH(QList<int>, kills);
  TrainingFixture fixture;
  { Run import(fixture, "fresh"); }
  fixture.copy("fresh", "uninterrupted");
  fixture.copy("fresh", "killed");
  constexpr int total = 30;
  std::vector<double> expected;
  {
    Run run(fixture, "uninterrupted", "");
    expected = run.steps(total);
  }
  std::vector<double> losses(total);
  for (const int until : kills + QList<int>{total}) {
    Run run(fixture, "killed", "");
    QVERIFY(run.info.ok());
    QVERIFY(run.info->step % 5 == 0 && run.info->step <= static_cast<std::uint64_t>(until));
    while (run.session->steps_done() < static_cast<std::uint64_t>(until)) {
      const StepReport report = run.step();
      losses[report.step - 1] = report.loss;
    }
  }
  QCOMPARE(losses, expected);
}

void TestTrainingSession::stop_within_a_step_changes_nothing() {
  TrainingFixture fixture;
  { Run import(fixture, "fresh"); }
  fixture.copy("fresh", "stopped");
  std::vector<double> expected;
  {
    Run run(fixture, "fresh", "");
    expected = run.steps(12);
  }
  fixture.settings[neuroshard::config::Setting::MaxMicroBatch] = "8";
  Run run(fixture, "stopped", "");
  std::vector<double> losses = run.steps(6);
  CancelSource source;
  source.cancel();
  QCOMPARE(run.session->step(source.token()).error().code, ErrorCode::Cancelled);
  QCOMPARE(run.session->steps_done(), std::uint64_t{6});
  QVERIFY(run.session->finish().ok());  // and what is saved now has nothing of the stopped step in it
  run.session.reset();
  run.directory.reset();
  Run resumed(fixture, "stopped", "");
  QCOMPARE(resumed.info->step, std::uint64_t{6});
  for (const double loss : resumed.steps(6)) losses.push_back(loss);
  QCOMPARE(losses, expected);
}

void TestTrainingSession::a_warm_up_goes_on_from_the_checkpoint() {
  TrainingFixture fixture;
  {
    Run run(fixture, "d");
    QVERIFY(run.info.ok());
    run.session->round_model()->set_places({}, 5);
    run.step();
    QVERIFY(run.session->finish().ok());
  }
  Run again(fixture, "d");
  QVERIFY(again.info.ok());
  QCOMPARE(again.session->round_model()->since_arrival(), std::uint64_t{6});
}

void TestTrainingSession::clean_stop_saves_once() {
  TrainingFixture fixture;
  fixture.settings[neuroshard::config::Setting::CheckpointEverySteps] = "1000";
  {
    Run run(fixture, "d");
    run.steps(3);
    QVERIFY(run.session->finish().ok());
    QCOMPARE(checkpoints_of(fixture, "d"), std::size_t{1});
    QVERIFY(run.session->finish().ok());
    QCOMPARE(checkpoints_of(fixture, "d"), std::size_t{1});
  }
  Run again(fixture, "d");
  QCOMPARE(again.info->step, std::uint64_t{3});
  QCOMPARE(again.info->files_added, std::uint64_t{0});  // the same text once more is known
  QVERIFY(again.session->finish().ok());
  QCOMPARE(checkpoints_of(fixture, "d"), std::size_t{1});
}

void TestTrainingSession::disk_full_goes_on_and_recovers() {
  TrainingFixture fixture;
  { Run import(fixture, "d"); }
  {
    FaultFileEnv full(fixture.files(), Faults{.room_bytes = 3000});
    Run run(fixture, "d", "", SessionMode::Train, &full);
    QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
    int alerts = 0;
    for (int i = 0; i < 15; ++i) {
      for (const auto& alert : run.step().alerts) {
        QCOMPARE(alert.category, std::string("checkpoint"));
        QCOMPARE(alert.level, LogLevel::Error);
        ++alerts;
      }
    }
    QVERIFY(alerts >= 1);
    QCOMPARE(run.session->steps_done(), std::uint64_t{15});
    // A stop says that its checkpoint is not there.
    const auto finished = run.session->finish();
    QVERIFY(!finished.ok());
    QCOMPARE(finished.error().code, ErrorCode::Exhausted);
    const auto events = run.session->history().events_after(0, 50, LogLevel::Error);
    QVERIFY(events.ok() && !events->events.empty());
  }
  QCOMPARE(checkpoints_of(fixture, "d"), std::size_t{0});
  // With room again, everything works.
  Run run(fixture, "d", "");
  QVERIFY(run.info.ok());
  run.steps(2);
  QVERIFY(run.session->finish().ok());
  QCOMPARE(checkpoints_of(fixture, "d"), std::size_t{1});
}

void TestTrainingSession::on_a_full_disk_fewer_checkpoints_are_kept() {
  TrainingFixture fixture;
  fixture.settings[Setting::CheckpointEverySteps] = "1000";
  {
    Run run(fixture, "d");
    for (int i = 0; i < 3; ++i) {
      run.steps(1);
      QVERIFY(run.session->save().ok());
    }
  }
  QCOMPARE(checkpoints_of(fixture, "d"), std::size_t{3});
  fixture.settings[Setting::CheckpointKeepLast] = "1";
  FaultFileEnv full(fixture.files(), Faults{.room_bytes = 3000});
  Run run(fixture, "d", "", SessionMode::Train, &full);
  QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
  run.steps(1);
  QCOMPARE(run.session->save().error().code, ErrorCode::Exhausted);
  QCOMPARE(checkpoints_of(fixture, "d"), std::size_t{2});  // the newest, and what it falls back to
}

void TestTrainingSession::text_that_is_away_is_told_apart() {
  TrainingFixture fixture;
  FaultFileEnv files(fixture.files());
  {
    Run run(fixture, "d", "text.txt", SessionMode::Train, &files);
    QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
    files.take_away(".pt");
    const auto step = run.session->step(CancelToken());
    QVERIFY(!step.ok());
    QCOMPARE(step.error().code, ErrorCode::Unavailable);
    QVERIFY(run.session->text_is_away());
    files.take_away("");
    QCOMPARE(run.step().step, std::uint64_t{1});
    QVERIFY(!run.session->text_is_away());
  }
  files.take_away("manifest.json.sig");
  Run again(fixture, "d", "", SessionMode::Train, &files);
  QVERIFY(!again.info.ok());
  QCOMPARE(again.info.error().code, ErrorCode::Unavailable);
  QVERIFY(again.session->text_is_away());
}

void TestTrainingSession::an_evaluation_reads_text_again_that_failed_once() {
  TrainingFixture fixture;
  FaultFileEnv files(fixture.files());
  int reads = 0;
  Run run(fixture, "d", "text.txt", SessionMode::Train, &files);
  QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
  files.take_away(".pt");
  files.before_read([&](const std::string& path) {
    if (path.ends_with(".pt") && ++reads == 2) files.take_away("");
  });
  const auto validation = run.session->evaluate(true, CancelToken());
  QVERIFY2(validation.ok(), validation.ok() ? "" : validation.error().describe().c_str());
  QVERIFY(reads >= 2);
  QVERIFY(!run.session->text_is_away());
}

void TestTrainingSession::diverged_step_is_not_applied() {
  TrainingFixture fixture;
  { Run import(fixture, "d"); }
  fixture.copy("d", "copy");
  Run reference(fixture, "copy", "");
  const std::vector<double> expected = reference.steps(4);
  Run run(fixture, "d", "");
  run.steps(3);
  run.module->controls.spoil_step = 4;
  const auto spoiled = run.session->step(CancelToken());
  QCOMPARE(spoiled.error().code, ErrorCode::Corrupt);
  QVERIFY(spoiled.error().message.find("Restore an earlier checkpoint") != std::string::npos);
  QCOMPARE(run.session->steps_done(), std::uint64_t{3});
  run.module->controls.spoil_step = 0;
  QCOMPARE(run.step().loss, expected.back());
}

void TestTrainingSession::another_tokenizer_is_refused() {
  TrainingFixture fixture;
  {
    Run run(fixture, "d");
    run.steps(1);
    QVERIFY(run.session->finish().ok());
  }
  neuroshard::testing::write_text(
      fixture.path("other.txt"),
      std::string("zyx wvu tsr ") + std::string(3000, 'q') + neuroshard::testing::simple_text(5, 50));
  { Run other(fixture, "e", "other.txt"); }
  // The node's key signs its data, so the other data comes with the other key: keep everything but the
  // checkpoints.
  fixture.copy("d/checkpoints", "e/checkpoints");
  Run run(fixture, "e", "");
  QVERIFY(!run.info.ok());
  QCOMPARE(run.info.error().code, ErrorCode::InvalidArgument);
  QVERIFY(run.info.error().message.find("another tokenizer") != std::string::npos);
}

void TestTrainingSession::another_network_is_refused() {
  TrainingFixture fixture;
  {
    Run run(fixture, "d");
    run.steps(1);
    QVERIFY(run.session->finish().ok());
  }
  neuroshard::testing::TinyNetwork network;
  network.experts = 4;
  TrainingFixture other(network);
  { Run fresh(other, "e"); }
  std::filesystem::copy(fixture.path("d") + "/checkpoints", other.path("e") + "/checkpoints",
                        std::filesystem::copy_options::recursive);
  Run run(other, "e", "");
  QVERIFY(!run.info.ok());
  QCOMPARE(run.info.error().code, ErrorCode::InvalidArgument);
  QVERIFY(run.info.error().message.find("another network") != std::string::npos);
}

void TestTrainingSession::no_text_says_what_to_give() {
  TrainingFixture fixture;
  const Run run(fixture, "d", "");
  QVERIFY(!run.info.ok());
  QCOMPARE(run.info.error().code, ErrorCode::NotFound);
  QVERIFY(run.info.error().message.find("--text") != std::string::npos);
  const Run missing(fixture, "e", "missing.txt");
  QCOMPARE(missing.info.error().code, ErrorCode::NotFound);
}

void TestTrainingSession::text_in_the_data_directory_is_refused() {
  TrainingFixture fixture;
  { Run import(fixture, "d"); }
  neuroshard::testing::write_text(fixture.path("d/notes.txt"), neuroshard::testing::simple_text(2, 1500));
  for (const char* inside : {"d/notes.txt", "d/./notes.txt", "d"}) {
    const Run run(fixture, "d", inside);
    QVERIFY2(!run.info.ok(), inside);
    QCOMPARE(run.info.error().code, ErrorCode::InvalidArgument);
    QVERIFY(run.info.error().message.find("in the data directory") != std::string::npos);
  }
  const Run run(fixture, "d");  // beside it
  QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
}

void TestTrainingSession::generation_opens_the_trained_weights() {
  TrainingFixture fixture;
  std::vector<float> trained;
  {
    Run run(fixture, "d");
    run.steps(2);
    QVERIFY(run.session->finish().ok());
    const compute::SlotBuffers slot = run.session->stage().slot(0);
    trained.assign(slot.parameters, slot.parameters + slot.count);
  }
  {
    Run run(fixture, "d", "", SessionMode::Generate);
    QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
    QCOMPARE(run.info->step, std::uint64_t{2});
    const compute::SlotBuffers slot = run.session->stage().slot(0);
    QVERIFY(slot.gradient == nullptr && slot.moment1 == nullptr);
    QCOMPARE(std::vector<float>(slot.parameters, slot.parameters + slot.count), trained);
    QCOMPARE(run.session->tokenizer().vocab_size(), run.info->vocabulary);
    QVERIFY(run.session->finish().ok());
    const auto events = run.session->history().events_after(0, 100);
    QVERIFY(events.ok());
    for (const auto& event : events->events)
      QVERIFY2(event.text.find("continues after") == std::string::npos, event.text.c_str());
  }
  { Run import(fixture, "untrained"); }
  const Run nothing(fixture, "untrained", "", SessionMode::Generate);
  QCOMPARE(nothing.info.error().code, ErrorCode::NotFound);
}

void TestTrainingSession::history_has_no_gap_after_a_kill() {
  TrainingFixture fixture;
  {
    Run run(fixture, "d");
    run.steps(13);
  }
  Run run(fixture, "d");
  QVERIFY(run.info->step == 10 || run.info->step == 5);  // the save of step 10 may have been cut off
  const auto resumed_at = static_cast<std::int64_t>(run.info->step);
  auto values = run.session->history().series("loss", 0, 1000, 1000);
  QVERIFY(values.ok());
  QCOMPARE(values->size(), static_cast<std::size_t>(resumed_at));
  run.steps(7);
  values = run.session->history().series("loss", 0, 1000, 1000);
  QCOMPARE(values->size(), static_cast<std::size_t>(resumed_at + 7));
  for (std::size_t i = 0; i < values->size(); ++i)
    QCOMPARE((*values)[i].first, static_cast<std::int64_t>(i + 1));
  QCOMPARE(run.session->history().series("val_loss", 0, 1000, 1000)->size(), std::size_t{1});
}

// The first page is whole: the database opens, and only a query finds the damage.
void TestTrainingSession::damaged_history_is_moved_aside() {
  TrainingFixture fixture;
  const std::string path = fixture.path("state.db");
  {
    const auto history = TrainingHistory::open(fixture.files(), path, fixture.clock());
    QVERIFY(history.ok());
    StepReport report;
    for (report.step = 1; report.step <= 200; ++report.step) (*history)->add(report);
    (*history)->flush();
  }
  {
    constexpr qint64 page = 4096;
    QFile file(QString::fromStdString(path));
    QVERIFY(file.open(QIODevice::ReadWrite));
    QVERIFY(file.size() > 5 * page && file.seek(page));
    file.write(QByteArray(file.size() - page, '\x55'));
  }
  for (const char* left : {"-wal", "-shm"}) QVERIFY(!std::filesystem::exists(path + left));
  const auto history = TrainingHistory::open(fixture.files(), path, fixture.clock());
  QVERIFY2(history.ok(), history.ok() ? "" : history.error().describe().c_str());
  QVERIFY(std::filesystem::exists(path + ".damaged"));
  QVERIFY((*history)->series_names().empty());
  const auto events = (*history)->events_after(0, 10, LogLevel::Warning);
  QVERIFY(events.ok() && events->events.size() == 1);
  QVERIFY(events->events[0].text.find("moved aside") != std::string::npos);
  // The new one is on the disk.
  (*history)->flush();
  QVERIFY(std::filesystem::exists(path));
}

void TestTrainingSession::damaged_checkpoint_is_passed_over() {
  TrainingFixture fixture;
  fixture.settings[neuroshard::config::Setting::CheckpointEverySteps] = "1000";
  std::string newest;
  {
    Run run(fixture, "d");
    run.steps(2);
    QVERIFY(run.session->save().ok());
    run.steps(2);
    newest = *run.session->save();
  }
  for (const auto& file : std::filesystem::directory_iterator(fixture.path("d/checkpoints/" + newest))) {
    if (file.path().extension() != ".safetensors") continue;
    QFile damaged(QString::fromStdString(file.path().string()));
    QVERIFY(damaged.open(QIODevice::ReadWrite));
    damaged.seek(damaged.size() - 100);
    damaged.write("torn");
  }
  Run run(fixture, "d");
  QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
  QCOMPARE(run.info->step, std::uint64_t{2});
  // A step that fails has no report; the first one that is done says it.
  CancelSource cancel;
  cancel.cancel();
  QCOMPARE(run.session->step(cancel.token()).error().code, ErrorCode::Cancelled);
  const StepReport report = run.step();
  QVERIFY(!report.alerts.empty());
  QCOMPARE(report.alerts.front().category, std::string("checkpoint"));
}

void TestTrainingSession::a_position_in_the_text_of_another_node_data() {
  QTest::addColumn<quint64>("inner_steps");
  QTest::addColumn<bool>("is_here");
  QTest::addColumn<bool>("goes_on");
  QTest::newRow("its shard is not here") << quint64{0} << false << false;
  QTest::newRow("a backup with the same text") << quint64{0} << true << true;
  QTest::newRow("its number means another text") << quint64{10} << true << false;
}

void TestTrainingSession::a_position_in_the_text_of_another_node() {
  namespace checkpoint = neuroshard::checkpoint;
  QFETCH(const quint64, inner_steps);
  QFETCH(const bool, is_here);
  QFETCH(const bool, goes_on);
  neuroshard::testing::TinyNetwork network;
  network.inner_steps = inner_steps;
  network.router_bias_gamma_nano = 0;
  TrainingFixture fixture(network);
  { Run import(fixture, "other"); }
  fixture.copy("other", "d");
  {
    Run run(fixture, "other", "");
    run.steps(3);
    QVERIFY(run.session->finish().ok());
  }
  storage::FileEnv& files = fixture.files();
  const checkpoint::Entry theirs =
      checkpoint::Catalogue(files, fixture.path("other/checkpoints")).current().value().value();
  checkpoint::Manifest manifest = theirs.manifest;
  auto position = neuroshard::data::LoaderPosition::from_json(manifest.loader_position).value();
  QVERIFY(position.started);
  if (!is_here) position.shard_id += 1000;
  manifest.loader_position = position.to_json();
  const auto key = neuroshard::crypto::KeyPair::from_seed(neuroshard::Hash256{9});
  QVERIFY(storage::write_file_atomic(files, theirs.path + "/manifest.json",
                                     checkpoint::sign_and_encode(manifest, key))
              .ok());
  {
    const auto directory = fixture.open("d").value();
    const std::string root = directory->checkpoints_path();
    auto writer = checkpoint::Writer::open(files, directory->node_key(), root).value();
    const auto imported = writer.adopt(checkpoint::open_folder(files, theirs.path).value());
    QVERIFY2(imported.ok(), imported.ok() ? "" : imported.error().describe().c_str());
    QVERIFY(checkpoint::Catalogue(files, root).choose(imported->name).ok());
  }
  Run run(fixture, "d", "");
  QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
  QCOMPARE(run.info->step, std::uint64_t{3});
  QCOMPARE(run.session->shard_in_use().has_value(), goes_on);
  QCOMPARE(run.step().step, std::uint64_t{4});
}

NS_TEST(TestTrainingSession)
#include "test_training_session.moc"
