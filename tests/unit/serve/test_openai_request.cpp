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

  void embeddings_take_texts_and_tokens() {
    const auto parsed = parse_embeddings(
        R"({"model":"m","input":["One",[5,6]],"encoding_format":"base64","dimensions":null,"user":"u"})");
    QVERIFY2(parsed.request.has_value(), parsed.error.message.c_str());
    QVERIFY(parsed.request->kind == TextKind::Embedding && parsed.request->base64);
    QCOMPARE(parsed.request->prompts.size(), std::size_t{2});
    QCOMPARE(parsed.request->prompts.at(0).prompt, std::string("One"));
    QCOMPARE(parsed.request->prompts.at(1).prompt_tokens, (std::vector<std::uint32_t>{5, 6}));
    for (const node::GenerateRequest& one : parsed.request->prompts)
      QVERIFY(one.embedding && one.max_tokens == 0);
    QVERIFY(!parse_embeddings(R"({"model":"m","input":"x"})").request->base64);
    std::string many = "\"x\"";
    for (std::size_t i = 0; i < max_prompts; ++i) many += ",\"x\"";
    const auto refused = [](const std::string& body) {
      const ApiError error = parse_embeddings(body).error;
      return QString::fromStdString(error.param + " " + error.code);
    };
    QCOMPARE(refused("{\"model\":\"m\",\"input\":[" + many + "]}"), QString("input "));
    QCOMPARE(refused(R"({"model":"m","input":""})"), QString("input "));
    QCOMPARE(refused(R"({"model":"m","input":["x",""]})"), QString("input "));
    QCOMPARE(refused(R"({"model":"m","input":[]})"), QString("input "));
    QCOMPARE(refused(R"({"model":"m","input":[[]]})"), QString("input "));
    QCOMPARE(refused(R"({"model":"m"})"), QString("input "));
    QCOMPARE(refused(R"({"input":"x"})"), QString("model "));
    QCOMPARE(refused(R"({"model":"m","input":"x","dimensions":8})"),
             QString("dimensions unsupported_parameter"));
    QCOMPARE(refused(R"({"model":"m","input":"x","encoding_format":"int8"})"), QString("encoding_format "));
    QCOMPARE(refused(R"({"model":"m","input":"x","stream":true})"), QString("stream unknown_parameter"));
  }

  void embeddings_are_rendered() {
    QCOMPARE(render_embedding(1, {0.5f, -0.1f, 1e-10f}, false),
             std::string(R"({"object":"embedding","index":1,"embedding":[0.5,-0.1,1e-10]})"));
    // Python: base64.b64encode(struct.pack("<3f", 0.5, -0.1, 1e-10)).
    QCOMPARE(render_embedding(0, {0.5f, -0.1f, 1e-10f}, true),
             std::string(R"({"object":"embedding","index":0,"embedding":"AAAAP83MzL3/5tsu"})"));
    QVERIFY(render_embedding(0, {1.0f}, true).find("\"AACAPw==\"") != std::string::npos);
    ReplyHead head;
    head.model = "m";
    head.fingerprint = "7-abc";
    QCOMPARE(render_embeddings(head, "A,B", {5, 0}),
             std::string(R"({"object":"list","data":[A,B],"model":"m","system_fingerprint":"7-abc",)"
                         R"("usage":{"prompt_tokens":5,"total_tokens":5}})"));
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
