// Any bytes as a batch script: a draft or an Error that says where, never a crash, a hang or a
// throw. What is accepted settles into a spec within its limits, or says why not.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "client/sbatch_script.h"
#include "model/job_spec_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  berth::client::Draft draft;
  draft.context.directory = "/work";
  draft.context.environment = {{"HOME", "/root"}};
  draft.context.now = 1'763'300'000;
  const auto applied = berth::client::apply_script(draft, text, "fuzz.sh");
  if (!applied) {
    BERTH_CHECK(!applied.error().messages.empty(), "an error says something");
    for (const std::string& message : applied.error().messages)
      BERTH_CHECK(message.starts_with("fuzz.sh:"), "an error says where");
    return 0;
  }
  BERTH_CHECK(draft.spec.script == text, "the script travels unchanged");
  if (!berth::client::settle(draft)) return 0;
  BERTH_CHECK(draft.spec.gpus >= 0 && draft.spec.cpus >= 0 && draft.spec.memory_mib >= 0,
              "counts do not overflow");
  BERTH_CHECK(!draft.spec.env.contains("BERTH_TOKEN") || text.find("BERTH_TOKEN") != text.npos,
              "the token stays at home");
  static_cast<void>(berth::problems(draft.spec));
  return 0;
}
