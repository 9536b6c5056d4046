// Completion scripts, made from the same description as the help: a new option is completed from
// the day it exists. The names that go with options (policies, keys, placements, formats) come from
// the registries.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "apps/cli.h"
#include "base/suggest.h"
#include "perf/estimator.h"
#include "placements/placements.h"
#include "policies/registry.h"
#include "trace/generator.h"
#include "trace/reader.h"

namespace berth {

namespace {

/// What completes the commands of a group: `slurm` takes `capture` …
std::string value_of_group(const CliCommand& group) { return "COMMAND of " + group.name; }

/// A group as one command that takes the names of its own commands, and the options of all of them.
CliCommand flattened(CliCommand command) {
  if (command.commands.empty()) return command;
  CliOption names;
  names.names = {"COMMAND"};
  names.value = value_of_group(command);
  names.positional = true;
  const auto is_there = [&command](const CliOption& option) {
    return std::ranges::find(command.options, option.names, &CliOption::names) !=
           command.options.end();
  };
  for (const CliCommand& below : command.commands) {
    for (const CliOption& option : below.options) {
      if (!option.positional && !is_there(option)) command.options.push_back(option);
    }
  }
  command.options.push_back(std::move(names));
  return command;
}

/// Words for a kind of value; kinds without words are completed as files (FILE, CLUSTER), folders
/// (DIR) or not.
std::map<std::string, std::vector<std::string>> words_by_value(const CliCommand& root) {
  std::map<std::string, std::vector<std::string>> words;
  for (const PolicyEntry& entry : policy_registry()) words["POLICY"].push_back(entry.name);
  words["POLICIES"] = words["POLICY"];
  words["POLICIES"].emplace_back("all");
  for (const PlacementInfo& info : placements()) words["PLACEMENT"].push_back(info.name);
  for (const EstimatorInfo& info : estimators())
    words["ESTIMATOR"].push_back(info.form.substr(0, info.form.find(':')));
  for (const FormatInfo& info : trace_formats()) words["FORMAT"].push_back(info.name);
  for (const FormatInfo& info : generator_sources()) words["SOURCE"].push_back(info.name);
  words["SHELL"] = {"bash", "zsh", "fish"};
  for (const CliCommand& group : root.commands) {
    for (const CliCommand& below : group.commands)
      words[value_of_group(group)].push_back(below.name);
  }
  for (auto& [value, list] : words) {  // a form such as "oracle:S" stands beside "oracle"
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return words;
}

std::vector<std::string> keys_of(const PolicyEntry& entry) {
  std::vector<std::string> keys;
  for (const ParamSpec& param : entry.params) keys.push_back(param.key + "=");
  return keys;
}

std::vector<std::string> all_keys() {
  std::vector<std::string> keys;
  for (const PolicyEntry& entry : policy_registry()) {
    for (const std::string& key : keys_of(entry)) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  for (const PolicyEntry& entry : policy_registry()) {
    for (const std::string& key : keys_of(entry)) keys.push_back(entry.name + "." + key);
  }
  return keys;
}

std::string option_names(const CliCommand& command) {
  std::vector<std::string> names;
  for (const CliOption& option : command.options) {
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return fmt::format("{}", fmt::join(names, " "));
}

/// What bash does for one kind of value: the body of a case branch.
std::string bash_action(const std::string& value,
                        const std::map<std::string, std::vector<std::string>>& words) {
  if (value == "KEY=VALUE")
    return "compopt -o nospace; COMPREPLY=($(compgen -W \"$(_berth_keys)\" -- \"$cur\"))";
  if (value == "POLICIES") {
    return fmt::format(
        "compopt -o nospace; local head=\"\"; [[ $cur == *,* ]] && head=\"${{cur%,*}},\"; "
        "COMPREPLY=($(compgen -P \"$head\" -W \"{}\" -- \"${{cur##*,}}\"))",
        fmt::join(words.at(value), " "));
  }
  if (const auto found = words.find(value); found != words.end()) {
    return fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))",
                       fmt::join(found->second, " "));
  }
  if (value == "FILE" || value == "CLUSTER")
    return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))";
  if (value == "DIR") return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))";
  return ":";
}

std::string bash_script(const CliCommand& root) {
  const auto words = words_by_value(root);
  std::vector<std::string> commands;
  for (const CliCommand& command : root.commands) commands.push_back(command.name);
  std::string text =
      "# bash completion of berth; `source <(berth completion bash)`\n_berth_keys() {\n"
      "  local i policy=\"\"\n  for ((i = 1; i < ${#COMP_WORDS[@]} - 1; ++i)); do\n"
      "    [[ ${COMP_WORDS[i]} == --policy || ${COMP_WORDS[i]} == -p ]] && "
      "policy=${COMP_WORDS[i+1]}\n  done\n"
      "  case $policy in\n";
  for (const PolicyEntry& entry : policy_registry()) {
    text += fmt::format("    {}) echo \"{}\" ;;\n", entry.name, fmt::join(keys_of(entry), " "));
  }
  text += fmt::format("    *) echo \"{}\" ;;\n  esac\n}}\n", fmt::join(all_keys(), " "));
  text += fmt::format(
      "_berth() {{\n  COMPREPLY=()\n  local cur=${{COMP_WORDS[COMP_CWORD]}} "
      "prev=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  if ((COMP_CWORD == 1)); then\n    COMPREPLY=($(compgen -W \"{} {}\" -- \"$cur\"))\n    "
      "return\n  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n",
      fmt::join(commands, " "), option_names(root));
  for (const CliCommand& group : root.commands) {
    const CliCommand command = flattened(group);
    text += fmt::format("    {})\n      case $prev in\n", command.name);
    std::string positional = ":";
    for (const CliOption& option : command.options) {
      if (option.positional)
        positional = bash_action(option.value, words);
      else if (!option.value.empty()) {
        text += fmt::format("        {}) {}; return ;;\n", fmt::join(option.names, "|"),
                            bash_action(option.value, words));
      }
    }
    text += fmt::format(
        "      esac\n      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); "
        "else {}; fi ;;\n",
        option_names(command), positional);
  }
  return text + "  esac\n}\ncomplete -F _berth berth\n";
}

/// Inside single quotes of zsh and fish.
std::string in_quotes(std::string text) {
  std::erase(text, '\'');
  return text;
}
std::string in_brackets(std::string text) {
  std::string result;
  for (const char c : in_quotes(std::move(text))) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const std::string& value,
                       const std::map<std::string, std::vector<std::string>>& words) {
  if (value == "KEY=VALUE") return fmt::format("compadd -S \"\" -- {}", fmt::join(all_keys(), " "));
  if (value == "POLICIES")
    return fmt::format("_values -s , policy {}", fmt::join(words.at(value), " "));
  if (const auto found = words.find(value); found != words.end())
    return fmt::format("({})", fmt::join(found->second, " "));
  if (value == "FILE" || value == "CLUSTER") return "_files";
  if (value == "DIR") return "_files -/";
  return " ";
}

std::string zsh_script(const CliCommand& root) {
  const auto words = words_by_value(root);
  std::string text =
      "#compdef berth\n# zsh completion of berth; `source <(berth completion zsh)` after "
      "compinit\n_berth() {\n"
      "  local -a commands\n  commands=(\n";
  for (const CliCommand& command : root.commands)
    text += fmt::format("    '{}:{}'\n", command.name, in_brackets(command.summary));
  text +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n";
  for (const CliCommand& group : root.commands) {
    const CliCommand command = flattened(group);
    text += fmt::format("    {})\n      _arguments", command.name);
    for (const CliOption& option : command.options) {
      if (option.positional) {
        text += fmt::format(" \\\n        '*:{}:{}'", option.names.front(),
                            zsh_action(option.value, words));
        continue;
      }
      for (const std::string& name : option.names) {
        const std::string repeat = option.value == "KEY=VALUE" ? "*" : "";
        text += fmt::format(" \\\n        '{}{}[{}]{}'", repeat, name, in_brackets(option.help),
                            option.value.empty() ? ""
                                                 : fmt::format(":{}:{}", option.value,
                                                               zsh_action(option.value, words)));
      }
    }
    text += " ;;\n";
  }
  return text + "  esac\n}\ncompdef _berth berth\n";
}

std::string fish_script(const CliCommand& root) {
  const auto words = words_by_value(root);
  std::string text =
      "# fish completion of berth; save as ~/.config/fish/completions/berth.fish\ncomplete -c "
      "berth -f\n";
  for (const CliCommand& group : root.commands) {
    const CliCommand command = flattened(group);
    text += fmt::format("complete -c berth -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                        in_quotes(command.summary));
    for (const CliOption& option : command.options) {
      text += fmt::format("complete -c berth -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : option.names) {
        if (option.positional) continue;
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (const auto found = words.find(option.value); found != words.end()) {
        text += fmt::format("{} -a '{}'", option.positional ? "" : " -x",
                            fmt::join(found->second, " "));
      } else if (option.value == "KEY=VALUE") {
        text += fmt::format(" -x -a '{}'", fmt::join(all_keys(), " "));
      } else if (option.value == "FILE" || option.value == "CLUSTER" || option.value == "DIR") {
        text += option.positional ? " -F" : " -r -F";
      } else if (!option.value.empty()) {
        text += " -x";
      }
      text += fmt::format(" -d '{}'\n", in_quotes(option.help));
    }
  }
  return text;
}

}  // namespace

Result<std::string> completion_script(const std::string& shell, const CliCommand& root) {
  if (shell == "bash") return bash_script(root);
  if (shell == "zsh") return zsh_script(root);
  if (shell == "fish") return fish_script(root);
  return fail(fmt::format(
      "completion: {} (bash, zsh or fish; as in `source <(berth completion bash)`)",
      shell.empty() ? "for which shell?" : fmt::format("'{}' is no shell we know", shell)));
}

}  // namespace berth
