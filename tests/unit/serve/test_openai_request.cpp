// Bodies of OpenAI's clients: what is asked of the node, and what is refused and why.
#include <QtTest>

#include "core/serve/openai_reply.h"
#include "core/serve/openai_request.h"
#include "core/serve/request_guard.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT
using namespace neuroshard::serve;

class TestOpenaiRequest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_completion_has_openai_defaults() {
    const auto parsed = parse_completion(R"({"model":"m","prompt":"Once"})");
    QVERIFY(parsed.request.has_value());
    const node::GenerateRequest& prompt = parsed.request->prompts.at(0);
    QCOMPARE(prompt.prompt, std::string("Once"));
    QCOMPARE(prompt.max_tokens, 16u);
    QCOMPARE(prompt.temperature, 1.0);
    QCOMPARE(prompt.top_k, 0u);
    QVERIFY(prompt.whole_prompt && !prompt.logprobs && !prompt.echo && prompt.stop.empty());
  }

  void every_field_arrives() {
    const auto parsed = parse_completion(
        R"({"model":"m","prompt":[[5,6],[7]],"max_tokens":0,"echo":true,"logprobs":3,"stop":["a","b"],"seed":0,
            "temperature":0,"top_p":0.5,"top_k":9,"min_p":0.1,"repetition_penalty":1.5,"logit_bias":{"12":-3},
            "stream":true,"stream_options":{"include_usage":true},"n":1,"user":"u","suffix":null})");
    QVERIFY2(parsed.request.has_value(), parsed.error.message.c_str());
    QVERIFY(parsed.request->stream && parsed.request->include_usage);
    QCOMPARE(parsed.request->prompts.size(), std::size_t{2});
    const node::GenerateRequest& second = parsed.request->prompts.at(1);
    QCOMPARE(second.prompt_tokens, std::vector<std::uint32_t>{7});
    QCOMPARE(second.max_tokens, 0u);
    QCOMPARE(second.logprobs.value_or(9), 3u);
    QCOMPARE(second.stop.size(), std::size_t{2});
    QVERIFY(second.seed != 0);
    QCOMPARE(second.top_p, 0.5);
    QCOMPARE(second.top_k, 9u);
    QCOMPARE(second.min_p, 0.1);
    QCOMPARE(second.repetition_penalty, 1.5);
    QCOMPARE(second.logit_bias.at(0).token, 12u);
    QCOMPARE(second.logit_bias.at(0).bias, -3.0);
  }

  void a_chat_becomes_one_text() {
    const auto parsed = parse_chat(
        R"({"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"},
            {"role":"assistant","content":"Yes?"},{"role":"user","content":[{"type":"text","text":"Why"}]}],
            "logprobs":true,"top_logprobs":2,"max_completion_tokens":7})");
    QVERIFY2(parsed.request.has_value(), parsed.error.message.c_str());
    const node::GenerateRequest& prompt = parsed.request->prompts.at(0);
    QCOMPARE(prompt.prompt, std::string("Be brief.\n\nUser: Hi\nAssistant: Yes?\nUser: Why\nAssistant:"));
    QCOMPARE(prompt.stop, std::vector<std::string>{"\nUser:"});
    QCOMPARE(prompt.max_tokens, 7u);
    QCOMPARE(prompt.logprobs.value_or(9), 2u);
  }

  void refused_bodies_name_the_field_data() {
    QTest::addColumn<QString>("body");
    QTest::addColumn<QString>("param");
    QTest::newRow("no JSON") << "{"
                             << "";
    QTest::newRow("no object") << "[]"
                               << "";
    QTest::newRow("too deep") << R"({"prompt":[[[[[[[[[1]]]]]]]]]})"
                              << "";
    QTest::newRow("no model") << R"({"prompt":"x"})"
                              << "model";
    QTest::newRow("no prompt") << R"({"model":"m"})"
                               << "prompt";
    QTest::newRow("two answers") << R"({"model":"m","prompt":"x","n":2})"
                                 << "n";
    QTest::newRow("unknown") << R"({"model":"m","prompt":"x","tools":[]})"
                             << "tools";
    QTest::newRow("type") << R"({"model":"m","prompt":"x","max_tokens":"3"})"
                          << "max_tokens";
    QTest::newRow("no tokens") << R"({"model":"m","prompt":"x","max_tokens":0})"
                               << "max_tokens";
    QTest::newRow("too many") << R"({"model":"m","prompt":"x","max_tokens":5000})"
                              << "max_tokens";
    QTest::newRow("negative") << R"({"model":"m","prompt":"x","temperature":-1})"
                              << "temperature";
    QTest::newRow("penalty") << R"({"model":"m","prompt":"x","presence_penalty":0.5})"
                             << "presence_penalty";
    QTest::newRow("empty stop") << R"({"model":"m","prompt":"x","stop":""})"
                                << "stop";
    QTest::newRow("bad token") << R"({"model":"m","prompt":[1,-2]})"
                               << "prompt";
    QTest::newRow("mixed") << R"({"model":"m","prompt":["x",{}]})"
                           << "prompt";
    QTest::newRow("bias") << R"({"model":"m","prompt":"x","logit_bias":{"the":1}})"
                          << "logit_bias";
    QTest::newRow("suffix") << R"({"model":"m","prompt":"x","suffix":"y"})"
                            << "suffix";
  }
  void refused_bodies_name_the_field() {
    QFETCH(QString, body);
    QFETCH(QString, param);
    const auto parsed = parse_completion(body.toStdString());
    QVERIFY(!parsed.request);
    QCOMPARE(parsed.error.status, 400);
    QCOMPARE(QString::fromStdString(parsed.error.param), param);
    QVERIFY(!parsed.error.message.empty());
  }

  void log_probabilities_are_rendered_as_openai_does() {
    ReplyHead head{false, "cmpl-1", 5, "m", "f", true, false};
    Choice choice;
    choice.text = "é\xEF\xBF\xBD";
    choice.finish = "stop";
    choice.tokens = {{4, "é", std::nullopt, {}}, {5, "\xFF", -1.5, {{6, "x", -0.5}}}};
    const std::string text = render_whole(head, {choice}, {3, 2});
    for (const char* part :
         {R"("tokens":["é","bytes:\\xff"])", R"("token_logprobs":[null,-1.5])",
          R"("top_logprobs":[null,{"x":-0.5,"bytes:\\xff":-1.5}])", R"("text_offset":[0,1])",
          R"("finish_reason":"stop")", R"("total_tokens":5)", R"("system_fingerprint":"f")"}) {
      QVERIFY2(text.find(part) != std::string::npos, (std::string(part) + " is not in " + text).c_str());
    }
  }

  void only_this_computer_and_its_key_are_let_in() {
    QVERIFY(is_own_host("127.0.0.1:8000", 8000) && is_own_host("LOCALHOST:8000", 8000));
    QVERIFY(is_own_host("[::1]:8000", 8000) && is_own_host("localhost", 80));
    for (const char* host :
         {"", "127.0.0.1", "127.0.0.1:8001", "localhost.evil:8000", "evil:8000", "127.0.0.1:80000"})
      QVERIFY2(!is_own_host(host, 8000), host);
    QVERIFY(is_own_origin("", 8000) && is_own_origin("http://localhost:8000", 8000));
    for (const char* origin : {"null", "https://localhost:8000", "http://evil", "http://localhost:8000.evil"})
      QVERIFY2(!is_own_origin(origin, 8000), origin);
    QVERIFY(has_key("Bearer secret", "secret") && has_key("bearer secret", "secret"));
    for (const char* sent :
         {"", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret"})
      QVERIFY2(!has_key(sent, "secret"), sent);
    QVERIFY(!has_key("Bearer ", ""));
  }
};

NS_TEST(TestOpenaiRequest)
#include "test_openai_request.moc"
