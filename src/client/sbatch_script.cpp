#include "client/sbatch_script.h"

#include <fmt/format.h>

#include "base/split.h"

namespace berth::client {

namespace {

constexpr std::size_t kMaxFaults = 20;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Words of one line from `at` on, quotes and backslashes as in a shell; '#' before a word ends it.
Result<std::vector<ScriptWord>> words_of(std::string_view line, std::size_t at) {
  std::vector<ScriptWord> words;
  while (true) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size() || line[at] == '#') return words;
    ScriptWord word{{}, static_cast<int>(at) + 1};
    char quote = 0;
    std::size_t opened = 0;
    for (; at < line.size() && (quote != 0 || !is_blank(line[at])); ++at) {
      const char c = line[at];
      if (quote != 0 ? c == quote : (c == '"' || c == '\'')) {
        opened = at;
        quote = quote != 0 ? '\0' : c;
      } else if (c == '\\' && quote != '\'' && at + 1 < line.size()) {
        word.text += line[++at];
      } else {
        word.text += c;
      }
    }
    if (quote != 0) return fail(fmt::format("{}: a {} is not closed", opened + 1, quote));
    words.push_back(std::move(word));
  }
}

bool begins_word(std::string_view line, std::string_view word) {
  return line.starts_with(word) && (line.size() == word.size() || is_blank(line[word.size()]));
}

/// "# SBATCH", "#sbatch", "##SBATCH" with an option behind: perhaps meant, perhaps switched off.
bool looks_like_an_option(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && (line[at] == '#' || is_blank(line[at]))) ++at;
  const std::string_view rest = line.substr(at);
  if (rest.size() < 8) return false;
  std::string name(rest.substr(0, 6));
  for (char& c : name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name == "SBATCH" && is_blank(rest[6]) && rest.find('-', 6) != std::string_view::npos;
}

class HeadReader {
 public:
  HeadReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Result<ScriptHead> read() {
    int number = 0;
    for (const std::string_view line : split(text_, '\n')) {
      ++number;
      if (number == 1) check_first(line);
      if (line.ends_with('\r')) {
        wrong(number, line.size(), "a DOS line break: the script would not run (dos2unix helps)");
        break;
      }
      const bool is_option = begins_word(line, "#SBATCH") || begins_word(line, "#BERTH");
      if (ended_at_ > 0)
        after_the_head(line, number, is_option);
      else if (is_option)
        add(line, number);
      else
        plain(line, number);
    }
    if (!error_.messages.empty()) return tl::unexpected<Error>(std::move(error_));
    return std::move(head_);
  }

 private:
  void wrong(int line, std::size_t column, std::string_view what) {
    if (error_.messages.size() < kMaxFaults)
      error_.messages.push_back(fmt::format("{}:{}:{}: {}", file_, line, column, what));
  }
  void check_first(std::string_view line) {
    if (!line.starts_with("#!"))
      wrong(1, 1, "a script begins with #! and its interpreter, as in #!/bin/bash");
  }
  void add(std::string_view line, int number) {
    const bool is_own = line.starts_with("#BERTH");
    auto words = words_of(line, is_own ? 6 : 7);
    if (!words) {
      error_.messages.push_back(fmt::format("{}:{}:{}", file_, number, words.error().text()));
      return;
    }
    if (!words->empty() && (words->front().text == "hetjob" || words->front().text == "packjob")) {
      wrong(number, static_cast<std::size_t>(words->front().column),
            "jobs of several kinds in one are not supported: submit one for each");
      return;
    }
    if (!words->empty()) head_.lines.push_back({is_own, number, *std::move(words)});
  }
  void plain(std::string_view line, int number) {
    std::size_t at = 0;
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at < line.size() && line[at] != '#') {
      ended_at_ = number;
    } else if (number > 1 && looks_like_an_option(line)) {
      head_.notes.push_back(fmt::format(
          "{}:{}: a comment; options are on lines that begin with #SBATCH", file_, number));
    } else if (begins_word(line, "#PBS") || begins_word(line, "#BSUB")) {
      head_.notes.push_back(
          fmt::format("{}:{}: lines of other schedulers are not read", file_, number));
    }
  }
  void after_the_head(std::string_view, int number, bool is_option) {
    if (!is_option) return;
    head_.notes.push_back(
        fmt::format("{}:{}: not read, because the script's commands begin in line {}", file_,
                    number, ended_at_));
  }

  std::string_view text_;
  const std::string& file_;
  int ended_at_ = 0;  // line of the first command
  ScriptHead head_;
  Error error_;
};

}  // namespace

Result<ScriptHead> read_script_head(std::string_view text, const std::string& file) {
  if (text.find('\0') != std::string_view::npos)
    return fail(fmt::format("{}:1:1: a NUL byte: this is no script", file));
  if (text.size() > kMaxScriptBytes) {
    return fail(fmt::format("{}:1:1: {} bytes, at most {} are a script (submit a command instead)",
                            file, text.size(), kMaxScriptBytes));
  }
  return HeadReader(text, file).read();
}

Result<void> apply_script(Draft& draft, std::string text, const std::string& file) {
  BERTH_TRY(auto head, read_script_head(text, file));
  Error error;
  for (const ScriptLine& line : head.lines) {
    const OptionTable& table = line.is_own ? own_options() : sbatch_options();
    draft.is_slurm = draft.is_slurm || !line.is_own;
    std::vector<std::string> words;
    for (const ScriptWord& word : line.words) words.push_back(word.text);
    const Parsed parsed = parse_options(table.specs(), words, OperandOrder::Mixed);
    const std::size_t noted = draft.notes.size();
    for (const OptionFault& fault : table.apply(draft, parsed)) {
      error.messages.push_back(
          fmt::format("{}:{}:{}: {}", file, line.line, line.words[fault.word].column, fault.text));
    }
    for (const std::string& operand : parsed.operands) {
      error.messages.push_back(fmt::format("{}:{}:{}: '{}' is no option", file, line.line,
                                           line.words.front().column, operand));
    }
    for (std::size_t i = noted; i < draft.notes.size(); ++i)
      draft.notes[i] = fmt::format("{}:{}: {}", file, line.line, draft.notes[i]);
  }
  if (error.messages.size() > kMaxFaults) {
    const std::size_t more = error.messages.size() - kMaxFaults;
    error.messages.resize(kMaxFaults);
    error.messages.push_back(fmt::format("{}: and {} more", file, more));
  }
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  for (std::string& note : head.notes) draft.note(std::move(note));
  draft.spec.script = std::move(text);
  return {};
}

}  // namespace berth::client
