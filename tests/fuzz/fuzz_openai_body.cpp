// Bodies of the local HTTP server: whatever they hold, a request that is taken is within the bounds of the seam.
#include "core/base/bytes.h"
#include "core/base/check.h"
#include "core/serve/openai_request.h"

namespace serve = neuroshard::serve;
namespace node = neuroshard::node;

namespace {

void check(const serve::ParsedRequest& parsed) {
  NS_CHECK(!serve::render(parsed.error).empty());
  if (!parsed.request) {
    NS_CHECK(!parsed.error.message.empty());
    return;
  }
  NS_CHECK(!parsed.request->model.empty());
  NS_CHECK(!parsed.request->prompts.empty() && parsed.request->prompts.size() <= serve::max_prompts);
  for (const node::GenerateRequest& prompt : parsed.request->prompts) {
    NS_CHECK(prompt.prompt.size() <= node::max_prompt_bytes);
    NS_CHECK(prompt.prompt_tokens.size() <= node::max_prompt_tokens);
    NS_CHECK(prompt.max_tokens <= node::max_generated_tokens &&
             (prompt.max_tokens > 0 || prompt.echo || prompt.embedding));
    if (prompt.embedding) {
      NS_CHECK(prompt.max_tokens == 0 && !prompt.echo && !prompt.logprobs);
      NS_CHECK(!prompt.prompt.empty() || !prompt.prompt_tokens.empty());
    }
    NS_CHECK(prompt.stop.size() <= node::max_stop_sequences && prompt.logit_bias.size() <= node::max_biases);
    NS_CHECK(prompt.logprobs.value_or(0) <= node::max_logprobs);
    NS_CHECK(prompt.temperature >= 0 && prompt.top_p > 0 && prompt.top_p <= 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(neuroshard::as_text(neuroshard::ByteSpan{data, size}));
  check(serve::parse_completion(body));
  check(serve::parse_chat(body));
  check(serve::parse_embeddings(body));
  return 0;
}
