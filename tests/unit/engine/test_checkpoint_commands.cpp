// A person's commands for a node's checkpoints, next to the training: the same tests run on the engine itself and
// through the control service.
#include <QtTest>

#include <algorithm>

#include "core/checkpoint/writer.h"
#include "core/engine/checkpoint_import.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/core_fixture.h"

using namespace neuroshard;  // NOLINT
using testing::Core;
using testing::until;

class TestCheckpointCommands : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void checkpoints_are_verified_compared_and_kept_data() { testing::engine_and_remote(); }
  void checkpoints_are_verified_compared_and_kept();
  void prune_does_what_its_preview_says_data() { testing::engine_and_remote(); }
  void prune_does_what_its_preview_says();
  void checkpoints_travel_data() { testing::engine_and_remote(); }
  void checkpoints_travel();
  void models_go_to_other_programs_data() { testing::engine_and_remote(); }
  void models_go_to_other_programs();
  void an_import_that_stops_leaves_no_tokenizer();
  void restore_and_undo_data() { testing::engine_and_remote(); }
  void restore_and_undo();
  void a_restored_loss_has_its_own_step();
  void restore_of_a_paused_model_data() { testing::engine_and_remote(); }
  void restore_of_a_paused_model();
  void restore_before_the_first_preparation();
  void restore_of_a_damaged_one_changes_nothing();
};

void TestCheckpointCommands::checkpoints_are_verified_compared_and_kept() {
  QFETCH(const bool, remote);
  Core core(remote);
  QVERIFY(core.train(12));
  auto list = core.checkpoints();
  QCOMPARE(list.size(), std::size_t{3});  // after steps 12, 10, 5
  QCOMPARE(list[0].step, std::uint64_t{12});
  QCOMPARE(list[0].parent, list[1].name);
  QCOMPARE(list[0].hash.size(), std::size_t{64});
  QVERIFY(!list[0].intact);
  const auto good = core.done(core.node().verify_checkpoint(list[0].name));
  QVERIFY2(!good.error, good.error ? good.error->describe().c_str() : "");
  QVERIFY(std::get<node::VerifyResult>(good.result).intact);
  QVERIFY(until([&] { return core.checkpoints()[0].intact == true; }));
  QVERIFY(core.checkpoints()[0].verified_at.has_value());
  QVERIFY(!core.all<node::CheckpointsChanged>().empty());

  const auto same = core.done(core.node().compare_checkpoints(list[1].name, list[1].name));
  QCOMPARE(std::get<node::CheckpointComparison>(same.result).distance, 0.0);
  const auto apart = core.done(core.node().compare_checkpoints(list[2].name, list[0].name));
  const auto& comparison = std::get<node::CheckpointComparison>(apart.result);
  QCOMPARE(comparison.slots.size(), std::size_t{5});  // embed, layer 0, two experts, head
  QCOMPARE(comparison.first.step, std::uint64_t{5});
  for (const node::SlotDistance& slot : comparison.slots) {
    // The toy trains embedding and head only.
    const bool learns = slot.slot == "embed" || slot.slot == "head";
    QCOMPARE(slot.distance > 0, learns);
    QCOMPARE(slot.cosine < 1, learns);
    if (learns) QVERIFY(slot.relative > 0 && slot.relative < 2);
  }

  // One changed byte is found, named, and remembered.
  QFile file(QString::fromStdString(core.folder(list[2].name) + "/weights.safetensors"));
  QVERIFY(file.open(QIODevice::ReadWrite) && file.seek(file.size() - 3));
  char byte = 0;
  QVERIFY(file.peek(&byte, 1) == 1);
  byte = static_cast<char>(byte ^ 1);
  QVERIFY(file.write(&byte, 1) == 1);
  file.close();
  const auto bad = core.done(core.node().verify_checkpoint(list[2].name));
  const auto& found = std::get<node::VerifyResult>(bad.result);
  QVERIFY(!found.intact);
  QVERIFY2(found.problem.find("weights.safetensors") != std::string::npos, found.problem.c_str());
  core.restart();
  QVERIFY(core.checkpoints()[2].intact == false);

  QVERIFY(!core.done(core.node().pin_checkpoint(list[1].name, true)).error);
  QVERIFY(core.checkpoints()[1].pinned);
  QCOMPARE(core.done(core.node().delete_checkpoint(list[1].name)).error->code, ErrorCode::Denied);
  QCOMPARE(core.done(core.node().delete_checkpoint(list[0].name)).error->code, ErrorCode::Denied);
  QVERIFY(!core.done(core.node().pin_checkpoint(list[1].name, false)).error);
  QVERIFY(!core.done(core.node().delete_checkpoint(list[1].name)).error);
  QCOMPARE(core.checkpoints().size(), std::size_t{2});
  QCOMPARE(core.done(core.node().verify_checkpoint("no such")).error->code, ErrorCode::NotFound);
}

void TestCheckpointCommands::prune_does_what_its_preview_says() {
  QFETCH(const bool, remote);
  Core core(remote);
  QVERIFY(core.train(12));
  const auto list = core.checkpoints();
  QCOMPARE(list.size(), std::size_t{3});
  QVERIFY(!core.done(core.node().pin_checkpoint(list[2].name, true)).error);
  const node::PrunePolicy policy{1, 0, 0};
  const auto preview =
      core.ask<node::PrunePreview>([&](node::Node& n, node::Reply<node::PrunePreview> reply) {
        return n.query_prune(policy, std::move(reply));
      });
  QVERIFY(preview.ok());
  QCOMPARE(preview->remove, std::vector<std::string>{list[1].name});
  QCOMPARE(preview->bytes, list[1].bytes);
  QCOMPARE(preview->kept, 2u);
  QCOMPARE(core.checkpoints().size(), std::size_t{3});  // only looked
  QVERIFY(!core.done(core.node().prune_checkpoints(policy)).error);
  const auto left = core.checkpoints();
  QCOMPARE(left.size(), std::size_t{2});
  QCOMPARE(left[1].name, list[2].name);
}

void TestCheckpointCommands::checkpoints_travel() {
  QFETCH(const bool, remote);
  Core core(remote);
  QVERIFY(core.train(6));
  const auto list = core.checkpoints();
  const std::string folder = core.fixture().path("copy"), file = core.fixture().path("model.safetensors");
  QCOMPARE(core.done(core.node().export_checkpoint(list[0].name, "checkpoint", "here")).error->code,
           ErrorCode::InvalidArgument);
  QCOMPARE(core.done(core.node().export_checkpoint(list[0].name, "zip", folder)).error->code,
           ErrorCode::InvalidArgument);
  QVERIFY(!core.done(core.node().export_checkpoint(list[0].name, "safetensors", file)).error);
  QVERIFY(QFile::exists(QString::fromStdString(file)));
  QVERIFY(!core.done(core.node().export_checkpoint(list[0].name, "checkpoint", folder)).error);
  QCOMPARE(core.done(core.node().export_checkpoint(list[0].name, "checkpoint", folder)).error->code,
           ErrorCode::AlreadyExists);
  const auto refused = core.done(core.node().export_checkpoint(list[0].name, "gguf", folder + ".gguf"));
  QVERIFY(refused.error->describe().find("balancing biases") != std::string::npos);
  // Damaged ones stay outside.
  const std::string damaged = core.fixture().path("damaged");
  QVERIFY(!core.done(core.node().export_checkpoint(list[0].name, "checkpoint", damaged)).error);
  QFile weights(QString::fromStdString(damaged + "/weights.safetensors"));
  QVERIFY(weights.open(QIODevice::ReadWrite) && weights.seek(weights.size() - 1));
  QVERIFY(weights.putChar('!'));
  weights.close();
  QCOMPARE(core.done(core.node().import_checkpoint(damaged)).error->code, ErrorCode::Corrupt);
  QCOMPARE(core.checkpoints().size(), list.size());
  const auto imported = core.done(core.node().import_checkpoint(folder));
  QVERIFY2(!imported.error, imported.error ? imported.error->describe().c_str() : "");
  const std::string name = std::get<node::ImportResult>(imported.result).name;
  const auto after = core.checkpoints();
  QCOMPARE(after.size(), list.size() + 1);
  QCOMPARE(after.front().name, list.front().name);  // an import is never the newest by itself
  QVERIFY(std::any_of(after.begin(), after.end(),
                      [&](const auto& entry) { return entry.name == name && entry.pinned; }));
  QCOMPARE(core.done(core.node().import_checkpoint(folder)).error->code, ErrorCode::AlreadyExists);
  QCOMPARE(core.checkpoints().size(), list.size() + 1);
}

// With the tokenizer that the checkpoint names.
void TestCheckpointCommands::models_go_to_other_programs() {
  QFETCH(const bool, remote);
  testing::TinyNetwork network;
  network.router_bias_gamma_nano = 0;
  Core core(remote, nullptr, network);
  QVERIFY(core.train(6));
  const std::string name = core.checkpoints()[0].name;
  for (const char* format : {"huggingface", "gguf:q8_0"}) {
    const std::string path = core.fixture().path(format);
    const auto exported = core.done(core.node().export_checkpoint(name, format, path));
    QVERIFY2(!exported.error, exported.error ? exported.error->describe().c_str() : "");
    QVERIFY(QFile::exists(QString::fromStdString(path)));
  }
  const auto refused =
      core.done(core.node().export_checkpoint(name, "huggingface:q8_0", core.fixture().path("folder")));
  QCOMPARE(refused.error->code, ErrorCode::InvalidArgument);
}

// Another model with another tokenizer can still come into the directory.
void TestCheckpointCommands::an_import_that_stops_leaves_no_tokenizer() {
  testing::TinyNetwork network;
  network.router_bias_gamma_nano = 0;
  Core core(false, nullptr, network);
  QVERIFY(core.train(6));
  const std::string folder = core.fixture().path("model");
  const auto exported =
      core.done(core.node().export_checkpoint(core.checkpoints()[0].name, "huggingface", folder));
  QVERIFY2(!exported.error, exported.error ? exported.error->describe().c_str() : "");
  const auto directory = core.fixture().open("e").value();
  storage::FileEnv& files = core.fixture().files();
  const std::string tokenizer = directory->data_path() + "/tokenizer.json";
  const engine::FolderImport from{files, core.fixture().clock(), *directory, folder};
  auto writer = checkpoint::Writer::open(files, directory->node_key(), directory->checkpoints_path()).value();
  CancelSource cancel;
  cancel.cancel();
  QCOMPARE(engine::import_folder(from, writer, {}, cancel.token()).error().code, ErrorCode::Cancelled);
  QVERIFY(!files.exists(tokenizer));
  const auto imported = engine::import_folder(from, writer);
  QVERIFY2(imported.ok(), imported.ok() ? "" : imported.error().describe().c_str());
  QVERIFY(files.exists(tokenizer));
}

void TestCheckpointCommands::restore_and_undo() {
  QFETCH(const bool, remote);
  Core core(remote);
  QCOMPARE(core.done(core.node().undo_restore()).error->code, ErrorCode::NotFound);
  QVERIFY(core.train(12));
  const auto list = core.checkpoints();
  const auto restored = core.done(core.node().restore_checkpoint(list[2].name));
  QVERIFY2(!restored.error, restored.error ? restored.error->describe().c_str() : "");
  auto view = core.node().snapshot();
  QCOMPARE(view->undo.checkpoint, list[0].name);
  QCOMPARE(view->undo.step, std::uint64_t{12});
  QCOMPARE(view->training.step, std::uint64_t{5});
  // Losses and tokens are the restored state's, whose step 5 is before the first evaluation.
  QVERIFY(!view->training.last_evaluation && !view->training.best_evaluation_loss);
  const auto data = core.ask<node::DataView>(
      [](node::Node& n, node::Reply<node::DataView> reply) { return n.query_data(std::move(reply)); });
  QCOMPARE(data->tokens_seen, std::uint64_t{5 * 128});
  // Training goes on from there; what an undo needs outlives the retention rules.
  QVERIFY(core.train(30));
  view = core.node().snapshot();
  QCOMPARE(view->training.step, std::uint64_t{35});
  QCOMPARE(core.all<node::Prepared>().back().step, std::uint64_t{5});
  QCOMPARE(view->undo.checkpoint, list[0].name);
  core.restart();
  QCOMPARE(core.node().snapshot()->training.step, std::uint64_t{35});  // no model is read yet
  QCOMPARE(core.node().snapshot()->undo.checkpoint, list[0].name);
  QCOMPARE(core.node().snapshot()->checkpoint.newest, core.checkpoints()[0].name);
  QVERIFY(core.node().snapshot()->checkpoint.newest_at == core.checkpoints()[0].at);
  QVERIFY(!core.done(core.node().undo_restore()).error);
  QVERIFY(core.node().snapshot()->undo.checkpoint.empty());
  QVERIFY(core.train(1));
  QCOMPARE(core.all<node::Prepared>().back().step, std::uint64_t{12});
  // Ten minutes and fifty steps later it is too late; either alone is not.
  QVERIFY(!core.done(core.node().restore_checkpoint(core.checkpoints()[1].name)).error);
  QVERIFY(!core.node().snapshot()->undo.checkpoint.empty());
  core.fixture().jump(node::undo_time * 2);
  QVERIFY(core.train(node::undo_steps - 10));
  QVERIFY(!core.node().snapshot()->undo.checkpoint.empty());
  QVERIFY(core.train(20));
  QVERIFY(core.node().snapshot()->undo.checkpoint.empty());
  QVERIFY(!core.done(core.node().restore_checkpoint(core.checkpoints()[1].name)).error);
  QVERIFY(core.train(node::undo_steps + 10));
  QVERIFY(!core.node().snapshot()->undo.checkpoint.empty());
  core.restart();
  QVERIFY(!core.node().snapshot()->undo.checkpoint.empty());
  core.fixture().jump(node::undo_time * 2);
  QVERIFY(core.train(1));
  QVERIFY(core.node().snapshot()->undo.checkpoint.empty());
}

// The checkpoint after step 15 has the held-out loss of step 10.
void TestCheckpointCommands::a_restored_loss_has_its_own_step() {
  Core core(false);
  QVERIFY(core.train(18));
  const auto list = core.checkpoints();
  const auto between = std::find_if(list.begin(), list.end(), [](const node::CheckpointEntry& entry) {
    return entry.step > 10 && entry.step < 18;
  });
  QVERIFY(between != list.end() && between->held_out_loss);
  const auto restored = core.done(core.node().restore_checkpoint(between->name));
  QVERIFY2(!restored.error, restored.error ? restored.error->describe().c_str() : "");
  const auto view = core.node().snapshot();
  QCOMPARE(view->training.step, between->step);
  QCOMPARE(view->training.last_evaluation->step, std::uint64_t{10});
  QCOMPARE(view->training.last_evaluation->loss, *between->held_out_loss);
}

void TestCheckpointCommands::restore_of_a_paused_model() {
  QFETCH(const bool, remote);
  Core core(remote);
  QVERIFY(core.train(6));
  QVERIFY(core.node().start_training({}).ok());
  QVERIFY(until([&] { return core.node().snapshot()->training.step > 8; }));
  QVERIFY(!core.done(core.node().set_contributing(false)).error);
  QVERIFY(until([&] { return core.node().snapshot()->state == node::RunState::Paused; }));
  const std::uint64_t left_at = core.node().snapshot()->training.step;
  const auto list = core.checkpoints();
  QVERIFY(list.size() >= 2);
  QVERIFY(!core.done(core.node().restore_checkpoint(list[1].name)).error);
  QVERIFY(until([&] { return core.node().snapshot()->state == node::RunState::Paused; }));
  QCOMPARE(core.node().snapshot()->undo.step, left_at);  // every step was kept
  QCOMPARE(core.node().snapshot()->training.step, list[1].step);
  QVERIFY(core.node().snapshot()->training.best_evaluation_loss == list[1].held_out_loss);
  QVERIFY(!core.done(core.node().set_contributing(true)).error);
  QVERIFY(until([&] { return core.all<node::Prepared>().back().step == list[1].step; }));
  QVERIFY(until([&] { return core.node().snapshot()->training.step > list[1].step; }));
}

// The training still gets the number of steps that it was started with.
void TestCheckpointCommands::restore_before_the_first_preparation() {
  Core core(false);
  QVERIFY(core.train(6));
  const auto list = core.checkpoints();
  QVERIFY(list.size() >= 2);
  QVERIFY(!core.done(core.node().set_contributing(false)).error);
  QVERIFY(!core.done(core.node().start_training({core.fixture().path("text.txt"), 4, 0})).error);
  QVERIFY(until([&] { return core.node().snapshot()->state == node::RunState::Paused; }));
  QVERIFY(!core.done(core.node().restore_checkpoint(list[1].name)).error);
  QVERIFY(!core.done(core.node().set_contributing(true)).error);
  QVERIFY(core.idle());
  QCOMPARE(core.node().snapshot()->training.step, list[1].step + 4);
}

void TestCheckpointCommands::restore_of_a_damaged_one_changes_nothing() {
  Core core(false);
  QVERIFY(core.train(6));
  const auto list = core.checkpoints();
  QFile file(QString::fromStdString(core.folder(list[1].name) + "/optimizer.safetensors"));
  QVERIFY(file.open(QIODevice::ReadWrite) && file.seek(file.size() - 1));
  QVERIFY(file.putChar('!'));
  file.close();
  QVERIFY(core.node().start_training({}).ok());
  QVERIFY(until([&] { return core.node().snapshot()->training.step > 6; }));
  QCOMPARE(core.done(core.node().restore_checkpoint(list[1].name)).error->code, ErrorCode::Corrupt);
  const std::uint64_t step = core.node().snapshot()->training.step;
  QVERIFY(until([&] { return core.node().snapshot()->training.step > step + 3; }));
  QVERIFY(core.node().snapshot()->undo.checkpoint.empty());
}

NS_TEST(TestCheckpointCommands)
#include "test_checkpoint_commands.moc"
