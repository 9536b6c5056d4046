// Options as shells give them: short and long, "--x=V", "--x V", "-xV", "-x V", unique beginnings
// of long names. One reader for our own commands, for those called by Slurm's names, and for
// #SBATCH lines; what an option means is its owner's business.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth::client {

enum class Takes : unsigned char { Nothing, Value, Maybe };  // Maybe: only as --x=V or -xV

struct OptionSpec {
  std::string_view name;  // without dashes; may be empty if there is a letter
  char letter = 0;
  Takes takes = Takes::Nothing;
  std::string_view value;  // "FILE", "N": for help
  std::string_view help;
  std::string_view group = "Options";
};

/// One option as it was given.
struct Given {
  const OptionSpec* option = nullptr;
  std::string value;
  std::size_t word = 0;  // its position among the words
};

struct OptionFault {
  std::size_t word = 0;
  std::string text;
};

struct Parsed {
  std::vector<Given> options;
  std::vector<std::string> operands;
  std::vector<OptionFault> faults;   // everything that is wrong, not only the first
  bool has_separator = false;        // "--" was there
  std::size_t before_separator = 0;  // operands before it

  [[nodiscard]] bool has(std::string_view name) const;
  /// The last value given; empty if none.
  [[nodiscard]] std::string value(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
};

/// Mixed: operands and options in any order. Leading: the first operand ends the options; the rest
/// belongs to it (a script and its arguments).
enum class OperandOrder : unsigned char { Mixed, Leading };

[[nodiscard]] Parsed parse_options(std::span<const OptionSpec> known,
                                   std::span<const std::string> words, OperandOrder order);

}  // namespace berth::client
