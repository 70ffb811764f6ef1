// Commands that tell what happens on their way, over real loopback gRPC: progress, text, results,
// cancellation, and the bounds of what one program may ask for at the same time.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/control/control_fixture.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestControlCommands : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    fixture_ = std::make_unique<ControlFixture>();
    fixture_->node.checkpoints.resize(2);
    fixture_->node.checkpoints[0].name = "c2";
    fixture_->node.checkpoints[1].name = "c1";
    QVERIFY(fixture_->start().ok());
    remote_ = fixture_->connect();
    QVERIFY(remote_ != nullptr);
  }
  void cleanup() {
    remote_.reset();
    fixture_.reset();
  }
  void progress_and_result_belong_to_their_command();
  void text_comes_in_pieces_and_before_the_outcome();
  void requests_and_pieces_of_text_arrive_whole();
  void an_embedding_arrives();
  void cancel_reaches_the_core();
  void a_reader_that_goes_away_cancels_its_text_and_nothing_else();
  void what_commands_carry_arrives();
  void answers_arrive_as_they_were_given();
  void numbers_beyond_any_model_do_not_arrive();
  void an_invitation_is_made_when_it_is_asked_for();
  void texts_of_peers_that_are_no_text_do_not_hide_the_network();
  void a_flood_of_commands_is_refused_with_its_reason();
  void reasons_sensors_and_undo_arrive();

 private:
  std::unique_ptr<ControlFixture> fixture_;
  std::unique_ptr<control::RemoteNode> remote_;
};

void TestControlCommands::progress_and_result_belong_to_their_command() {
  testing::FakeNode& node = fixture_->node;
  const Events events(*remote_);
  node.hold_commands();
  const auto first = remote_->verify_checkpoint("c1");
  const auto second = remote_->verify_checkpoint("c2");
  QVERIFY(first.ok() && second.ok());
  QVERIFY(until([&] { return node.held("verify c1") != 0 && node.held("verify c2") != 0; }));
  const auto last_done = [&](node::CommandId id) {
    std::uint64_t done = 0;
    for (const auto& progress : events.all<node::CommandProgress>())
      if (progress.id == id) done = progress.done;
    return done;
  };
  // Told again until it arrives: what comes before the call listens may be lost.
  QVERIFY(until([&] {
    node.progress(node.held("verify c1"), "reading", 5, 10);
    return last_done(*first) == 5;
  }));
  QCOMPARE(last_done(*second), std::uint64_t{0});
  QCOMPARE(events.all<node::CommandProgress>().front().activity, std::string("reading"));
  node.finish(node.held("verify c2"), node::CommandResult(node::VerifyResult{"c2", false, "damaged", 7}));
  const auto done = events.done(*second);
  QVERIFY(done && !done->error);
  QCOMPARE(std::get<node::VerifyResult>(done->result).problem, std::string("damaged"));
  node.finish(node.held("verify c1"), make_error(ErrorCode::Io, "the disk is gone"));
  QCOMPARE(events.done(*first)->error->code, ErrorCode::Io);
}

void TestControlCommands::text_comes_in_pieces_and_before_the_outcome() {
  testing::FakeNode& node = fixture_->node;
  const Events events(*remote_);
  std::mutex mutex;
  std::string text;
  const auto add = [&](const node::TextPiece& piece) {
    std::lock_guard lock(mutex);
    text += piece.text;
  };
  const auto seen = [&] {
    std::lock_guard lock(mutex);
    return text;
  };
  node.hold_commands();
  node::GenerateRequest request;
  request.prompt = "Once";
  const auto id = remote_->generate(request, add);
  QVERIFY(until([&] { return node.held("generate Once") != 0; }));
  node.say(node.held("generate Once"), "upon ");
  QVERIFY(until([&] { return seen() == "upon "; }));
  node.say(node.held("generate Once"), "a time");
  node::GenerateResult result;
  result.tokens = 3;
  result.stopped_by = "length";
  node.finish(node.held("generate Once"), node::CommandResult(result));
  const auto done = events.done(*id);
  QVERIFY(done && !done->error);
  QCOMPARE(seen(), std::string("upon a time"));
  QCOMPARE(std::get<node::GenerateResult>(done->result).tokens, 3u);
  request.prompt.assign(node::max_prompt_bytes + 1, 'x');
  QCOMPARE(remote_->generate(request, add).error().code, ErrorCode::InvalidArgument);
  request.prompt.assign(node::max_prompt_bytes, 'x');  // the longest one still fits into a request
  node.finish_commands();
  const auto longest = remote_->generate(request, add);
  QVERIFY(!events.done(*longest)->error);
}

void TestControlCommands::requests_and_pieces_of_text_arrive_whole() {
  testing::FakeNode& node = fixture_->node;
  node.text.clear();
  node.pieces = {{"On", {{79, "On", std::nullopt, {}}}, true},
                 {"ce", {{99, "c\xFF", -0.5, {{7, "x", -0.25}, {2, "", -3}}}, {101, "e", -1, {}}}, false}};
  const Events events(*remote_);
  std::mutex mutex;
  std::vector<node::TextPiece> seen;
  node::GenerateRequest request;
  request.prompt_tokens = {1, 70'000};
  request.min_p = 0.1;
  request.repetition_penalty = 1.5;
  request.logit_bias = {{3, -2.5}};
  request.stop = {"a", "\n\n"};
  request.logprobs = 0;
  request.echo = request.whole_prompt = true;
  const auto id = remote_->generate(request, [&](const node::TextPiece& piece) {
    std::lock_guard lock(mutex);
    seen.push_back(piece);
  });
  QVERIFY(!events.done(*id)->error);
  const node::GenerateRequest& got = node.generated;
  QCOMPARE(got.prompt_tokens, request.prompt_tokens);
  QCOMPARE(got.stop, request.stop);
  QVERIFY(got.min_p == 0.1 && got.repetition_penalty == 1.5 && got.logprobs == 0u && got.echo &&
          got.whole_prompt);
  QVERIFY(got.logit_bias.size() == 1 && got.logit_bias[0].token == 3 && got.logit_bias[0].bias == -2.5);
  std::lock_guard lock(mutex);
  QCOMPARE(seen.size(), std::size_t{2});
  QVERIFY(seen[0].of_prompt && seen[0].text == "On" && !seen[0].tokens.at(0).logprob);
  const node::GeneratedToken& token = seen[1].tokens.at(0);
  QVERIFY(!seen[1].of_prompt && token.token == 99 && token.text == "c\xFF" && token.logprob == -0.5);
  QVERIFY(token.top.size() == 2 && token.top[1].token == 2 && token.top[1].logprob == -3);
  QCOMPARE(seen[1].tokens.size(), std::size_t{2});
}

void TestControlCommands::an_embedding_arrives() {
  testing::FakeNode& node = fixture_->node;
  const Events events(*remote_);
  node.hold_commands();
  node::GenerateRequest request;
  request.prompt = "Once";
  request.max_tokens = 0;
  request.embedding = true;
  const auto id = remote_->generate(request, {});
  QVERIFY(until([&] { return node.held("generate Once") != 0; }));
  QVERIFY(node.generated.embedding && node.generated.max_tokens == 0);
  node::GenerateResult result;
  result.embedding = {0.5f, -0.25f};
  node.finish(node.held("generate Once"), node::CommandResult(result));
  const auto done = events.done(*id);
  QVERIFY(done && !done->error);
  QCOMPARE(std::get<node::GenerateResult>(done->result).embedding, result.embedding);
}

void TestControlCommands::cancel_reaches_the_core() {
  const Events events(*remote_);
  fixture_->node.hold_commands();
  const auto compare = remote_->compare_checkpoints("c1", "c2");
  QVERIFY(remote_->cancel(*compare).ok());  // at once: before the core has told its id
  const auto done = events.done(*compare);
  QVERIFY(done && done->error);
  QCOMPARE(done->error->code, ErrorCode::Cancelled);
  QVERIFY(remote_->cancel(12'345).ok());
}

void TestControlCommands::a_reader_that_goes_away_cancels_its_text_and_nothing_else() {
  testing::FakeNode& node = fixture_->node;
  node.hold_commands();
  QVERIFY(remote_->generate({}, {}).ok());
  QVERIFY(remote_->verify_checkpoint("c1").ok());
  QVERIFY(until([&] { return node.held("generate") != 0 && node.held("verify") != 0; }));
  remote_.reset();
  QVERIFY(until([&] { return node.held("generate") == 0; }));
  QVERIFY(node.held("verify") != 0);
}

void TestControlCommands::what_commands_carry_arrives() {
  const Events events(*remote_);
  const auto succeeds = [&](const Expected<node::CommandId>& sent) {
    const auto done = sent.ok() ? events.done(*sent) : std::nullopt;
    return done && !done->error;
  };
  QVERIFY(succeeds(remote_->restore_checkpoint("c1")));
  QVERIFY(succeeds(remote_->undo_restore()));
  QVERIFY(succeeds(remote_->pin_checkpoint("c1", true)));
  QVERIFY(succeeds(remote_->delete_checkpoint("c1")));
  QVERIFY(succeeds(remote_->prune_checkpoints({3, 1000, 2})));
  QVERIFY(succeeds(remote_->export_checkpoint("c2", "checkpoint", "/tmp/x")));
  QVERIFY(succeeds(remote_->import_checkpoint("/tmp/y")));
  QVERIFY(succeeds(remote_->records().export_history("jsonl", "/tmp/z")));
  QVERIFY(succeeds(remote_->override_rules(std::chrono::seconds(60))));
  const auto reached = fixture_->node.commands();
  for (const char* expected :
       {"restore c1", "undo", "pin c1", "delete c1", "prune 3", "export c2 checkpoint /tmp/x",
        "import /tmp/y", "export history jsonl /tmp/z", "override 60"}) {
    QVERIFY2(std::find(reached.begin(), reached.end(), expected) != reached.end(), expected);
  }
  node::SessionSensors sensors;
  sensors.input_idle = std::chrono::seconds(90);
  sensors.full_screen = true;
  sensors.full_screen_program = "player";
  QVERIFY(remote_->report_session(sensors).ok());
  QVERIFY(until([&] { return !fixture_->node.reports().empty(); }));
  const auto report = fixture_->node.reports().front();
  QCOMPARE(report.input_idle->count(), 90);
  QVERIFY(*report.full_screen && !report.metered);
  QCOMPARE(report.full_screen_program, std::string("player"));
}

void TestControlCommands::answers_arrive_as_they_were_given() {
  testing::FakeNode& node = fixture_->node;
  node.slots = {{"expert 3.5", "expert", 3, 5, 100, 1600, true, 2},
                {"head", "head", 0, 0, 7, 8, false, std::nullopt}};
  node.experts = {{1, 2, 0.25, -0.5, true, std::nullopt, 77}};
  node.data.source = "folder";
  node.data.bytes_per_token = 3.5;
  node.data.shard_count = 9;
  node.data.shards = {{4, "s4", "cached", 10, 20, true, "ab"}};
  node.prune = {{"c1"}, 100, 1};
  const auto slots =
      answer<std::vector<node::SlotEntry>>([&](auto reply) { return remote_->query_slots(reply); });
  QCOMPARE(slots->size(), std::size_t{2});
  QCOMPARE(slots->at(0).name, std::string("expert 3.5"));
  QCOMPARE(*slots->at(0).replicas, 2u);
  QVERIFY(slots->at(0).mine && !slots->at(1).replicas);
  const auto experts =
      answer<std::vector<node::ExpertLoad>>([&](auto reply) { return remote_->query_experts(reply); });
  QCOMPARE(experts->at(0).bias, -0.5);
  QCOMPARE(experts->at(0).tokens, std::uint64_t{77});
  const auto data = answer<node::DataView>([&](auto reply) { return remote_->query_data(reply); });
  QCOMPARE(data->bytes_per_token, 3.5);
  QCOMPARE(data->shard_count, std::uint64_t{9});
  QVERIFY(data->shards.at(0).in_use);
  const auto prune = answer<node::PrunePreview>([&](auto reply) { return remote_->query_prune({}, reply); });
  QCOMPARE(prune->remove, std::vector<std::string>{"c1"});
  node.recorded.evaluations = {{WallTime(std::chrono::milliseconds(7)),
                                "c2",
                                "ab",
                                200,
                                "book.txt",
                                "cd",
                                1000,
                                300,
                                {4.5, 2.25, 61},
                                {5.5, 2.75, 40},
                                "sample.txt",
                                100,
                                4}};
  const auto evaluations = answer<node::EvaluationPage>(
      [&](auto reply) { return remote_->records().query_evaluations({10}, reply); });
  const node::EvaluationEntry& evaluated = evaluations->entries.at(0);
  QCOMPARE(to_unix_ms(evaluated.at), std::int64_t{7});
  QCOMPARE(evaluated.checkpoint + evaluated.checkpoint_hash + evaluated.text + evaluated.text_hash +
               evaluated.baseline_text,
           std::string("c2abbook.txtcdsample.txt"));
  QCOMPARE(evaluated.step + evaluated.text_bytes + evaluated.text_tokens, std::uint64_t{1500});
  QCOMPARE(evaluated.model.bits_per_byte, 2.25);
  QCOMPARE(evaluated.baseline.loss, 5.5);
  QCOMPARE(evaluated.model.cloze_right + evaluated.baseline.cloze_right, 101u);
  QCOMPARE(evaluated.cloze_questions + evaluated.cloze_choices, 104u);
  QVERIFY(!evaluations->more);
  // Tokens are bytes, not characters.
  const auto tokens = answer<std::vector<node::TokenPiece>>(
      [&](auto reply) { return remote_->query_tokens("\xC3\xA9", reply); });
  QCOMPARE(tokens->size(), std::size_t{2});
  QCOMPARE(tokens->at(0).text, std::string("\xC3"));
  QCOMPARE(remote_->query_tokens(std::string(node::max_token_text + 1, 'x'), [](auto) {}).error().code,
           ErrorCode::InvalidArgument);
  // The largest layer map is answered.
  node.slots.assign(node::max_slots, node.slots[0]);
  const auto most =
      answer<std::vector<node::SlotEntry>>([&](auto reply) { return remote_->query_slots(reply); });
  QVERIFY2(most.ok(), most.ok() ? "" : most.error().describe().c_str());
  QCOMPARE(most->size(), node::max_slots);
}

void TestControlCommands::numbers_beyond_any_model_do_not_arrive() {
  constexpr std::uint32_t last = 0xFFFF'FFFFu;
  testing::FakeNode& node = fixture_->node;
  node.slots = {{"far out", "layer", last, 0, 1, 1, true, std::nullopt},
                {"far out", "expert", 0, node::max_experts, 1, 1, true, std::nullopt},
                {"expert 3.5", "expert", 3, 5, 100, 1600, true, 2}};
  node.experts = {{node::max_layers, 0, 0.25, 0, true, std::nullopt, 77},
                  {0, last, 0.25, 0, true, std::nullopt, 77},
                  {1, 2, 0.25, 0, true, std::nullopt, 77}};
  const auto slots =
      answer<std::vector<node::SlotEntry>>([&](auto reply) { return remote_->query_slots(reply); });
  QCOMPARE(slots->size(), std::size_t{1});
  QCOMPARE(slots->at(0).name, std::string("expert 3.5"));
  const auto experts = [this] {
    return answer<std::vector<node::ExpertLoad>>([&](auto reply) { return remote_->query_experts(reply); });
  };
  QCOMPARE(experts()->size(), std::size_t{1});
  node.experts.assign(node::max_slots + 1, {1, 2, 0.25, 0, true, std::nullopt, 77});
  QCOMPARE(experts()->size(), node::max_slots);
}

void TestControlCommands::an_invitation_is_made_when_it_is_asked_for() {
  testing::FakeNode& node = fixture_->node;
  node.network.invitation = "neuroshard:join?to=AA";
  const auto made = [&](bool with_vote) {
    return answer<node::Invitation>([&](auto reply) { return remote_->query_invitation(with_vote, reply); });
  };
  QCOMPARE(made(false)->link, std::string("neuroshard:join?to=AA"));
  QVERIFY(made(false)->no_vote.empty());
  QCOMPARE(made(true)->no_vote, std::string("this node's wallet has no vote"));
  node.network.can_let_vote = node.network.votes_by_invitation = true;
  const auto view = answer<node::NetworkView>([&](auto reply) { return remote_->query_network(reply); });
  QVERIFY(view->can_let_vote && view->votes_by_invitation);
  const auto with_vote = made(true);
  QVERIFY(with_vote->may_vote && with_vote->no_vote.empty());
  QCOMPARE(with_vote->link, std::string("neuroshard:join?to=AA-vote4"));
  QVERIFY2((node.invited == std::vector<bool>{false, false, true, true}), "one for each question");
}

void TestControlCommands::texts_of_peers_that_are_no_text_do_not_hide_the_network() {
  testing::FakeNode& node = fixture_->node;
  const std::string bad = "\xFFno", good = "\xEF\xBF\xBDno";
  node.network.relay_trouble = node.network.turn_trouble = node.network.summary = bad;
  node.network.found = {bad};
  node.network.sources.resize(1);
  node.network.sources[0].state = bad;
  node.network.peers.resize(1);
  node.network.peers[0].problem = node.network.peers[0].version = bad;
  node.network.bans.resize(1);
  node.network.bans[0].reason = bad;
  node.network.refusals.resize(1);
  node.network.refusals[0].reason = bad;
  const auto view = answer<node::NetworkView>([&](auto reply) { return remote_->query_network(reply); });
  QVERIFY2(view.ok(), view.ok() ? "" : view.error().describe().c_str());
  QCOMPARE(view->relay_trouble, good);
  QCOMPARE(view->turn_trouble, good);
  QCOMPARE(view->summary, good);
  QCOMPARE(view->found, std::vector<std::string>{good});
  QCOMPARE(view->sources.at(0).state, good);
  QCOMPARE(view->peers.at(0).problem, good);
  QCOMPARE(view->peers.at(0).version, good);
  QCOMPARE(view->bans.at(0).reason, good);
  QCOMPARE(view->refusals.at(0).reason, good);
}

void TestControlCommands::a_flood_of_commands_is_refused_with_its_reason() {
  testing::FakeNode& node = fixture_->node;
  node.hold_commands();
  std::vector<Expected<node::CommandId>> sent;
  for (int i = 0; i < 16; ++i) sent.push_back(remote_->verify_checkpoint("c1"));
  QVERIFY(until([&] { return node.commands().size() == 16; }));
  // This program's own bound, and the core's for everybody.
  QCOMPARE(remote_->verify_checkpoint("c1").error().code, ErrorCode::Busy);
  grpc::ClientContext context;
  fixture_->sign(&context);
  wire::CommandRequest request;
  request.mutable_finish();
  wire::CommandReply reply;
  const grpc::Status status = fixture_->raw()->Command(&context, request, &reply);
  QCOMPARE(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  QVERIFY2(status.error_message().find("under way") != std::string::npos, status.error_message().c_str());
  QCOMPARE(node.commands().size(), std::size_t{16});
  // The core goes on answering whoever follows it.
  node.publish([](node::Snapshot& next) { next.training.step = 9; });
  QVERIFY(until([&] { return remote_->snapshot()->training.step == 9; }));
}

void TestControlCommands::reasons_sensors_and_undo_arrive() {
  const WallTime later(std::chrono::milliseconds(1'700'000'000'123));
  fixture_->node.publish([&](node::Snapshot& next) {
    next.pause_reasons = {{"battery", "on battery", later, true}, {"user", "off", std::nullopt, false}};
    next.overridden_until = later;
    next.finishing = next.safe_mode = true;
    next.sensors = {{"battery", "63 %", "pauses"}};
    next.undo = {"c1", 5};
    next.resources.cpu_share = 0.5;
    next.resources.directory_bytes = 123;
    next.training.last_step = node::StepView{};
    next.training.last_step->waiting_seconds = 0.25;
  });
  QVERIFY(until([&] { return remote_->snapshot()->safe_mode; }));
  const auto view = remote_->snapshot();
  QCOMPARE(view->pause_reasons.size(), std::size_t{2});
  QCOMPARE(view->pause_reasons[0].key, std::string("battery"));
  QVERIFY(view->pause_reasons[0].until == later && view->pause_reasons[0].can_override);
  QVERIFY(!view->pause_reasons[1].until);
  QVERIFY(view->overridden_until == later && view->finishing);
  QCOMPARE(view->sensors.at(0).note, std::string("pauses"));
  QCOMPARE(view->undo.checkpoint, std::string("c1"));
  QCOMPARE(*view->resources.cpu_share, 0.5);
  QCOMPARE(view->resources.directory_bytes, std::uint64_t{123});
  QCOMPARE(view->training.last_step->waiting_seconds, 0.25);
  fixture_->node.publish([](node::Snapshot& next) {
    next.sensors.clear();
    next.undo = {};
    next.safe_mode = false;
  });
  QVERIFY(until([&] { return !remote_->snapshot()->safe_mode; }));
  QVERIFY(remote_->snapshot()->sensors.empty() && remote_->snapshot()->undo.checkpoint.empty());
}

NS_TEST(TestControlCommands)
#include "test_commands.moc"
