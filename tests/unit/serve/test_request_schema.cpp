// The description of the request bodies against their parser: every field and every bound of the one is the other's.
// From each schema values are made that just keep it, and values that just break it.
#include <QtTest>
#include <nlohmann/json.hpp>
#include <set>

#include "core/serve/openai_request.h"
#include "core/serve/openapi.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT
using namespace neuroshard::serve;
using Json = nlohmann::ordered_json;

namespace {

struct Samples {
  std::vector<Json> right, wrong;
};

Samples samples(const Json& schema);

void add_numbers(const Json& schema, Samples& to) {
  const bool whole = schema["type"] == "integer";
  if (whole) to.wrong.push_back(1.5);
  to.wrong.push_back("1");
  if (!schema.contains("minimum")) {
    to.right = {0, -1, 12345678901};
    return;
  }
  const double step = whole ? 1 : 1e-3, least = schema["minimum"], most = schema["maximum"];
  for (const double value : {least, most})
    to.right.push_back(whole ? Json(static_cast<std::int64_t>(value)) : Json(value));
  for (const double value : {least - step, most + step})
    to.wrong.push_back(whole ? Json(static_cast<std::int64_t>(value)) : Json(value));
}

void add_texts(const Json& schema, Samples& to) {
  const std::size_t least = schema.value("minLength", 0u), most = schema.value("maxLength", 100u);
  to.right = {std::string(least, 'a'), std::string(most, 'a')};
  if (least > 0) to.wrong.push_back(std::string(least - 1, 'a'));
  if (schema.contains("maxLength")) to.wrong.push_back(std::string(most + 1, 'a'));
  to.wrong.push_back(Json{{"a", 1}});
}

void add_lists(const Json& schema, Samples& to) {
  const Samples items = samples(schema["items"]);
  const std::size_t least = schema["minItems"], most = schema["maxItems"];
  const auto list = [&items](std::size_t count) {
    return Json(std::vector<Json>(count, items.right.front()));
  };
  to.right = {list(least), list(most)};
  for (const Json& item : items.right) to.right.push_back(Json::array({item}));
  if (least > 0) to.wrong.push_back(list(least - 1));
  to.wrong.push_back(list(most + 1));
}

void add_objects(const Json& schema, Samples& to) {
  if (schema.contains("maxProperties")) {
    const Samples values = samples(schema["additionalProperties"]);
    Json many = Json::object();
    for (std::size_t i = 0; i <= schema["maxProperties"].get<std::size_t>(); ++i) {
      if (i == schema["maxProperties"].get<std::size_t>()) to.right.push_back(many);
      many[std::to_string(i)] = values.right.front();
    }
    to.wrong.push_back(many);
    for (const Json& value : values.right) to.right.push_back(Json{{"7", value}});
    for (const Json& value : values.wrong) to.wrong.push_back(Json{{"7", value}});
    to.wrong.push_back(Json{{"word", values.right.front()}});
    return;
  }
  Json whole = Json::object();
  for (const auto& [name, property] : schema["properties"].items())
    whole[name] = samples(property).right.front();
  to.right.push_back(whole);
  for (const auto& [name, property] : schema["properties"].items()) {
    for (const Json& value : samples(property).wrong) {
      to.wrong.push_back(whole);
      to.wrong.back()[name] = value;
    }
  }
  for (const Json& name : schema.value("required", Json::array())) {
    to.wrong.push_back(whole);
    to.wrong.back().erase(name.get<std::string>());
  }
  if (schema.value("additionalProperties", true) == false) {
    to.wrong.push_back(whole);
    to.wrong.back()["surprise"] = 1;
  }
}

Samples samples(const Json& schema) {
  Samples to;
  if (schema.contains("anyOf")) {
    for (const Json& choice : schema["anyOf"])
      for (const Json& value : samples(choice).right) to.right.push_back(value);
    to.wrong = {true, 7, Json{{"a", 1}}};
    return to;
  }
  if (schema.contains("enum")) {
    for (const Json& value : schema["enum"]) to.right.push_back(value);
    to.wrong = {"something else", 12345};
    return to;
  }
  const std::string type = schema.value("type", "");
  if (type == "integer" || type == "number") add_numbers(schema, to);
  if (type == "string") add_texts(schema, to);
  if (type == "array") add_lists(schema, to);
  if (type == "object") add_objects(schema, to);
  if (type == "boolean") {
    to.right = {true, false};
    to.wrong = {1, "true"};
  }
  if (type.empty()) to.right = {"anything", 5};
  return to;
}

Json schema_of(TextKind kind) {
  return Json::parse(request_schema(kind));
}

// A body in which every field may have each of its values.
Json base_of(TextKind kind) {
  if (kind == TextKind::Embedding) return {{"model", "m"}, {"input", "Once"}};
  if (kind == TextKind::Chat)
    return {{"model", "m"}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"logprobs", true}};
  return {{"model", "m"}, {"prompt", "Once"}, {"echo", true}};
}

}  // namespace

class TestRequestSchema : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void its_fields_are_the_parsers_data() { all_kinds(); }
  void its_fields_are_the_parsers() {
    QFETCH(TextKind, kind);
    std::set<std::string> described;
    const Json properties = schema_of(kind)["properties"];
    for (const auto& [name, schema] : properties.items()) described.insert(name);
    const std::vector<std::string> names = request_fields(kind);
    QVERIFY(described == std::set<std::string>(names.begin(), names.end()));
    Json value = base_of(kind);
    value["surprise"] = 1;
    QCOMPARE(parse(kind, value.dump()).error.code, std::string("unknown_parameter"));
  }

  void its_bounds_are_the_parsers_data() { all_kinds(); }
  void its_bounds_are_the_parsers() {
    QFETCH(TextKind, kind);
    const Json schema = schema_of(kind);
    std::size_t right = 0, wrong = 0;
    for (const auto& [name, property] : schema["properties"].items()) {
      if (kind == TextKind::Chat && name == "logprobs") continue;  // the base needs it for top_logprobs
      const Samples values = samples(property);
      for (const Json& value : values.right) {
        Json body = base_of(kind);
        body[name] = value;
        const ParsedRequest parsed = parse(kind, body.dump());
        QVERIFY2(parsed.request,
                 (name + ": " + value.dump().substr(0, 80) + ": " + parsed.error.message).c_str());
        ++right;
      }
      for (const Json& value : values.wrong) {
        Json body = base_of(kind);
        body[name] = value;
        const ParsedRequest parsed = parse(kind, body.dump());
        QVERIFY2(!parsed.request, (name + ": " + value.dump().substr(0, 80) + " is taken").c_str());
        QVERIFY2(parsed.error.param == name, (name + ": " + parsed.error.message).c_str());
        ++wrong;
      }
    }
    const std::size_t least = kind == TextKind::Embedding ? 8 : 40;
    QVERIFY(right > least && wrong > least);
    for (const Json& name : schema["required"]) {
      Json body = base_of(kind);
      body.erase(name.get<std::string>());
      QVERIFY(!parse(kind, body.dump()).request);
    }
  }

  void the_description_has_the_schemas() {
    const Json page = Json::parse(openapi_page());
    QCOMPARE(page["openapi"], "3.0.3");
    for (const auto& [path, kind] : {std::pair("/v1/completions", TextKind::Completion),
                                     std::pair("/v1/chat/completions", TextKind::Chat),
                                     std::pair("/v1/embeddings", TextKind::Embedding)})
      QVERIFY(page["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"] ==
              schema_of(kind));
  }

 private:
  static void all_kinds() {
    QTest::addColumn<TextKind>("kind");
    QTest::newRow("completions") << TextKind::Completion;
    QTest::newRow("chat") << TextKind::Chat;
    QTest::newRow("embeddings") << TextKind::Embedding;
  }
};

NS_TEST(TestRequestSchema)
#include "test_request_schema.moc"
