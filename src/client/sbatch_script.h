// Batch scripts: their #SBATCH and #BERTH lines. As Slurm does, options are read up to the first
// line that is neither blank nor a comment; the text itself travels with the job unchanged. Lines
// that look as if they were meant as options but are not are told of, never passed over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/draft.h"

namespace berth::client {

struct ScriptWord {
  std::string text;
  int column = 0;  // from one
};
struct ScriptLine {
  bool is_own = false;  // #BERTH
  int line = 0;
  std::vector<ScriptWord> words;
};
struct ScriptHead {
  std::vector<ScriptLine> lines;
  std::vector<std::string> notes;  // "job.sh:9: …"
};

/// Errors are "file:line:column: …", all of them.
[[nodiscard]] Result<ScriptHead> read_script_head(std::string_view text, const std::string& file);

/// Reads the lines into the draft and puts the script into its spec.
[[nodiscard]] Result<void> apply_script(Draft& draft, std::string text, const std::string& file);

}  // namespace berth::client
