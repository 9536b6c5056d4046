// Options as getopt_long reads them, from a table: short ones joined, values attached or not, long
// names cut where they stay unique. All faults of a line are collected, with the word they are
// about.

#include "client/options.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/suggest.h"

namespace berth::client {

namespace {

class Reader {
 public:
  Reader(std::span<const OptionSpec> known, std::span<const std::string> words)
      : known_(known), words_(words) {}

  // "--" ends the options; what comes after is for the program, whatever it looks like.
  Parsed read(OperandOrder order) {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_];
      if (word == "--") {
        parsed_.has_separator = true;
        parsed_.before_separator = parsed_.operands.size();
        ++next_;
        take_rest();
      } else if (word.starts_with("--")) {
        long_option(word);
      } else if (is_short(word)) {
        short_options(word);
        // `berth submit train.sh --fast`: from the program on, words belong to it.
      } else if (order == OperandOrder::Leading) {
        take_rest();
      } else {
        parsed_.operands.push_back(words_[next_++]);
      }
    }
    if (!parsed_.has_separator) parsed_.before_separator = parsed_.operands.size();
    return std::move(parsed_);
  }

 private:
  static bool is_short(std::string_view word) {
    return word.size() >= 2 && word[0] == '-' &&
           // "-5" is a number, as in a priority, not an option.
           std::isdigit(static_cast<unsigned char>(word[1])) == 0;
  }
  void take_rest() {
    parsed_.operands.insert(parsed_.operands.end(),
                            words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
    next_ = words_.size();
  }
  void wrong(std::string text) { parsed_.faults.push_back({next_, std::move(text)}); }

  /// The option of this name or, if only one begins so, of this beginning.
  /// A full name wins over names that begin with it: --set is not ambiguous beside --settings.
  const OptionSpec* find(std::string_view name) {
    std::vector<const OptionSpec*> begun;
    for (const OptionSpec& option : known_) {
      if (!option.name.empty() && option.name == name) return &option;
      if (!name.empty() && option.name.starts_with(name)) begun.push_back(&option);
    }
    if (begun.size() == 1) return begun.front();
    std::vector<std::string> names;
    for (const OptionSpec& option : known_)
      if (!option.name.empty()) names.push_back("--" + std::string(option.name));
    if (begun.size() > 1) {
      names.clear();
      for (const OptionSpec* option : begun) names.push_back("--" + std::string(option->name));
      wrong(fmt::format("'--{}' may be {}", name, fmt::join(names, ", ")));
      return nullptr;
    }
    const auto near = nearest_names(fmt::format("--{}", name), names);
    wrong(fmt::format("no option is called '--{}'{}", name,
                      near.empty() ? std::string(" (see --help)")
                                   : fmt::format(" (did you mean {}?)", fmt::join(near, ", "))));
    return nullptr;
  }

  void long_option(std::string_view word) {
    const auto equals = word.find('=');
    const OptionSpec* option = find(word.substr(2, equals == word.npos ? equals : equals - 2));
    const bool has_value = equals != std::string_view::npos;
    if (option == nullptr) {
      ++next_;
    } else if (has_value && option->takes == Takes::Nothing) {
      wrong(fmt::format("--{} takes no value", option->name));
      ++next_;
    } else if (has_value || option->takes != Takes::Value) {
      add(option, has_value ? word.substr(equals + 1) : std::string_view{});
    } else {
      with_next_word(option, fmt::format("--{}", option->name));
    }
  }

  void add(const OptionSpec* option, std::string_view value) {
    parsed_.options.push_back({option, std::string(value), next_});
    ++next_;
  }

  // The next word is the value even if it begins with a dash, as in getopt.
  void with_next_word(const OptionSpec* option, const std::string& name) {
    if (next_ + 1 >= words_.size()) {
      wrong(fmt::format("{} needs a value ({})", name,
                        option->value.empty() ? "VALUE" : option->value));
      ++next_;
      return;
    }
    parsed_.options.push_back({option, words_[next_ + 1], next_});
    next_ += 2;
  }

  /// "-n4", "-n 4", "-n=4", and letters without values in one word: "-hl".
  /// A letter that takes a value takes the rest of the word.
  void short_options(std::string_view word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const auto option = std::ranges::find(known_, word[i], &OptionSpec::letter);
      if (option == known_.end() || word[i] == 0) {
        wrong(fmt::format("no option is called '-{}' (see --help)", word.substr(i, 1)));
        break;
      }
      if (option->takes == Takes::Nothing) {
        parsed_.options.push_back({&*option, {}, next_});
        continue;
      }
      std::string_view value = word.substr(i + 1);
      if (value.starts_with('=')) value.remove_prefix(1);
      if (!value.empty() || option->takes == Takes::Maybe) return add(&*option, value);
      return with_next_word(&*option, fmt::format("-{}", word[i]));
    }
    ++next_;
  }

  std::span<const OptionSpec> known_;
  std::span<const std::string> words_;
  std::size_t next_ = 0;
  Parsed parsed_;
};

}  // namespace

bool Parsed::has(std::string_view name) const {
  return std::ranges::any_of(options, [&](const Given& one) { return one.option->name == name; });
}

std::string Parsed::value(std::string_view name) const {
  const auto all = values(name);
  return all.empty() ? std::string{} : all.back();
}

std::vector<std::string> Parsed::values(std::string_view name) const {
  std::vector<std::string> all;
  for (const Given& one : options)
    if (one.option->name == name) all.push_back(one.value);
  return all;
}

Parsed parse_options(std::span<const OptionSpec> known, std::span<const std::string> words,
                     OperandOrder order) {
  return Reader(known, words).read(order);
}

}  // namespace berth::client
